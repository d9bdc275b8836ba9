"""Sums of products with one box noise: bounds, the sampler and its loss, by enumeration."""

import math
from fractions import Fraction
from itertools import product

import pytest
from scripted import Exhausted, Scripted

import sfumato as sf
from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel import samplers
from sfumato.kernel.certify import certify
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.mechanisms import BoxNoise, choose_box_noise
from sfumato.kernel.neighbours import PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Factor, Grid, Key, Measurement, Products, Sum
from sfumato.kernel.row_sources import Scan
from sfumato.kernel.samplers import draw_in_box
from sfumato.kernel.sensitivity import bound_terms

RATIO = Fraction(2, 3)
X, Y = (Column(name, ColumnType.REAL) for name in ("x", "y"))
GRIDS = [Grid(-3, 2, -1), Grid(2, 5, -2), Grid(-4, -1, 0), Grid(0, 3, 1), Grid(0, 0, 0)]


def make_plan(quantity, neighbours="add-remove", *, cells=1, unit=sf.ROW, reach=1):
    keys = (Key(Column("cell", ColumnType.INTEGER), tuple(range(cells))),) if cells > 1 else ()
    owner = PrivacyUnit("t", unit, neighbours)
    measured = (Measurement("sums", quantity, PureDP(1)),)
    return BoundedPlan("t", Scan("t", "1", reach), owner, 1, (), keys, measured)


@pytest.mark.parametrize("one", GRIDS, ids=str)
@pytest.mark.parametrize("two", GRIDS, ids=str)
def test_every_product_lies_within_its_bounds(one, two):
    products = Products((Factor(X, one), Factor(Y, two)), ((), (0,), (1,), (0, 1), (0, 0), (1, 1)))
    steps = [range(grid.lower, grid.upper + 1) for grid in (one, two)]
    for term in products.terms:
        found = [math.prod(pair[place] for place in term) * products.find_multiplier(term) for pair in product(*steps)]
        least, most = products.find_bounds(term)
        assert least <= min(found)
        assert max(found) == most
        if not (len(term) == 2 and term[0] == term[1]):
            assert least == min(found)


def test_terms_are_in_the_steps_of_the_finest():
    products = Products((Factor(X, Grid(-4, 4, -2)), Factor(Y, Grid(-1, 1, 3))), ((), (0,), (0, 0), (0, 1), (1,)))
    assert products.exponent == -4
    assert [products.find_multiplier(term) for term in products.terms] == [16, 4, 1, 32, 128]
    assert products.width == 5


@pytest.mark.parametrize(
    ("factors", "terms"),
    [
        ((), ()),  # nothing is measured
        ((Factor(X, Grid(0, 1, 0)),), ((1,),)),  # another factor
        ((Factor(X, Grid(0, 1, 0)),), ((-1,),)),
        ((Factor(X, Grid(0, 1, 0)),), ((0, 0, 0),)),  # three factors
        ((Factor(X, Grid(0, 1 << 27, 0)),), ((0, 0),)),  # too many steps
        ((Factor(X, Grid(0, 1, -60)),), ((), (0,))),  # a multiplier that does not fit
    ],
)
def test_products_that_cannot_be(factors, terms):
    with pytest.raises(KernelFault):
        Products(factors, terms)


def test_only_an_epsilon_pays_and_cells_are_declared():
    products = Products((Factor(X, Grid(-8, 8, 0)),), ((0,), (0, 0)))
    with pytest.raises(KernelFault):
        Measurement("sums", products, ZCDP(1))
    plan = make_plan(products)
    with pytest.raises(KernelFault):
        BoundedPlan(
            "t",
            plan.source,
            plan.unit,
            1,
            (),
            (Key(X, None),),
            (*plan.measurements, Measurement("n", products, PureDP(1))),
        )


def place_in_box(units, shell, script, monkeypatch):
    """What `draw_in_box` returns with this shell and these bytes; None if it tries again."""
    calls = []

    def geometric(scale, size, entropy):
        calls.append(size)
        if len(calls) > 1:
            raise Exhausted
        return [shell] + [0] * (size - 1)

    monkeypatch.setattr(samplers, "geometric", geometric)
    try:
        return tuple(draw_in_box(units, Fraction(16), Scripted(script)))
    except Exhausted:
        assert calls[0] == len(units) + 1  # the shell is a sum of one more than there are terms
        return None


def shell_of(vector, units):
    return max(-(-abs(one) // unit) for one, unit in zip(vector, units, strict=True))


@pytest.mark.parametrize("units", [(1,), (3,), (1, 1), (1, 2), (3, 2)], ids=str)
def test_the_mass_of_box_noise_is_enumerated(units, monkeypatch):
    """For every shell, the mass of each vector within it is ratio**shell times one constant, and 0 outside."""
    terms, constants = len(units), set()
    for shell in range(4):
        chance = math.comb(shell + terms, terms) * RATIO**shell * (1 - RATIO) ** (terms + 1)
        found = {}
        bounds = [2 * unit * (shell + place) for place, unit in enumerate(units, 1)]
        whole = [256 // bound * bound for bound in bounds]  # a word beyond is drawn again: one byte each
        for words in product(*(range(most) for most in bounds)):
            drawn = place_in_box(units, shell, words, monkeypatch)
            if drawn is not None:
                found[drawn] = found.get(drawn, 0) + chance * math.prod(Fraction(1, bound) for bound in bounds)
        assert all(most % bound == 0 for most, bound in zip(whole, bounds, strict=True))
        assert set(found) == set(product(*(range(-shell * unit, shell * unit + 1) for unit in units)))
        assert len(set(found.values())) == 1
        constants |= {mass / RATIO**shell for mass in found.values()}
    assert len(constants) == 1


def test_words_beyond_the_last_whole_multiple_are_drawn_again():
    for bound in (1, 3, 100, 255, 256, 300):
        size = 1 if bound < 256 else 2  # 256 needs nine bits
        most = 256**size // bound * bound
        counted = [0] * bound
        for word in range(256**size):
            script = [*word.to_bytes(size, "little")]
            if word < most:
                counted[samplers._draw_below(bound, Scripted(script))] += 1
            else:
                assert samplers._draw_below(bound, Scripted([*script, *(0).to_bytes(size, "little")])) == 0
        assert len(set(counted)) == 1
    large = 1 << 200
    assert 0 <= samplers._draw_below(large, SYSTEM) < large


@pytest.mark.parametrize("cells", [1, 2, 3])
@pytest.mark.parametrize("moved", [(4, 4), (4, 8), (3, 7), (5, 11)], ids=str)
def test_the_loss_of_box_noise_is_enumerated(moved, cells):
    """Every change that the box allows, whole or spread over cells, passes at most `scale * epsilon` shells."""
    epsilon = Fraction(1, 8)
    noise = choose_box_noise([Fraction(one) for one in moved], cells, PureDP("0.125"))
    worst = 0
    vectors = list(product(*(range(-one, one + 1) for one in moved)))
    size_of = {
        vector: max(Fraction(abs(one), most) for one, most in zip(vector, moved, strict=True)) for vector in vectors
    }
    best = {}  # the most shells of a change of this size or less
    for vector, size in size_of.items():
        best[size] = max(best.get(size, 0), shell_of(vector, noise.units))
    sizes = sorted(best)
    for spread in product(sizes, repeat=cells):
        if sum(spread) <= 1:
            worst = max(worst, sum(best[size] for size in spread))
    assert worst <= noise.scale * epsilon
    if cells == 1:
        assert worst == noise.scale * epsilon  # no noise is wasted


@pytest.mark.parametrize("cells", [1, 2, 3])
def test_a_side_that_is_no_whole_number_is_rounded_up(cells):
    """Integers within a box of 7/2 and 21/2 pass as many shells as within one of 3 and 10."""
    moved = Fraction(7, 2), Fraction(21, 2)
    noise = choose_box_noise(moved, cells, PureDP("0.125"))
    assert noise.units == (1, 3)
    assert noise.scale == 8 * (4 + cells - 1)


def test_the_box_of_each_relation():
    products = Products((Factor(X, Grid(-4, 8, 0)),), ((), (0,), (0, 0)))
    assert bound_terms(make_plan(products), products) == (1, 8, 64)
    assert bound_terms(make_plan(products, cells=3), products) == (1, 8, 64)
    assert bound_terms(make_plan(products, "replace-one"), products) == (1, 12, 64)
    assert bound_terms(make_plan(products, "replace-one", cells=3), products) == (2, 16, 128)
    assert bound_terms(make_plan(products, unit="id", reach=5), products) == (5, 40, 320)


def test_a_certificate_has_the_box_noise():
    products = Products((Factor(X, Grid(-64, 64, -6)),), ((0,), (0, 0)))
    (one,) = certify(make_plan(products, cells=3)).measurements
    assert one.noise == BoxNoise((1, 1), Fraction(64 * 64 + 2))
    assert (one.width, one.exponent, one.loss) == (2, -12, PureDP(1))
    assert one.sensitivity.l1 == 2 * 64 * 64
    (two,) = certify(make_plan(products, "replace-one")).measurements
    assert two.noise == BoxNoise((2, 1), Fraction(64 * 64))
    (alone,) = certify(make_plan(Sum(X, Grid(-64, 64, -6)))).measurements
    assert not isinstance(alone.noise, BoxNoise)


@pytest.mark.parametrize(
    ("moved", "cells", "epsilon", "error"),
    [
        ((0, 1), 1, 1, KernelFault),  # a constant
        ((9, 9), 0, 1, KernelFault),
        ((9, 9), 1, 0, KernelFault),
        ((9, 9), 1, 1, InvalidParameter),  # a grid that is too coarse: the sampler would try for long
        ((1 << 50, 1 << 50), 1, "1e-9", InvalidParameter),  # noise that does not fit
    ],
)
def test_box_noise_that_cannot_be(moved, cells, epsilon, error):
    with pytest.raises(error):
        choose_box_noise([Fraction(one) for one in moved], cells, PureDP(epsilon))


def test_sides_are_at_least_one():
    with pytest.raises(KernelFault):
        draw_in_box((0, 1), Fraction(20), SYSTEM)
    with pytest.raises(KernelFault):
        draw_in_box((), Fraction(20), SYSTEM)


def test_every_cell_has_its_own_draw():
    noise = BoxNoise((1, 1), Fraction(1 << 40))
    drawn = noise.draw(8, SYSTEM).tolist()
    assert len(set(drawn)) == 8
    assert all(isinstance(one, int) for one in drawn)
