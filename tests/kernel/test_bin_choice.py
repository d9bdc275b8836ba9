"""Choices among bins: every law is worked out from the exponents that the code really flips with."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, product

import numpy as np
import pytest
from bin_flips import (
    REST,
    choose_one,
    compute_flip_law,
    compute_flip_law_in_floats,
    compute_top_law,
    flips_of,
    make_cell,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Exhausted, Scripted

from sfumato.accuracy.choice_margins import compute_bin_margin
from sfumato.errors import KernelFault, SfumatoError
from sfumato.kernel import bin_choice
from sfumato.kernel.bin_choice import OVERSHOOT, ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.neighbours import Neighbours

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE
HALF, QUARTERS = (Fraction(1, 2),), (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


def vectors(most, bins):
    """Every way to put a weight of at most `most` into the bins."""
    return [weights for weights in product(range(most + 1), repeat=bins) if sum(weights) <= most]


def worst_ratios(law_of, reach, bins, rests):
    """(|u|, |v|) -> the largest ratio P(out | rest + u)/P(out | rest + v), over everything that is small."""
    laws, worst = {}, {}
    units = vectors(reach, bins)

    def law(rest, unit):
        weights = tuple(a + b for a, b in zip(rest, unit, strict=True))
        if weights not in laws:
            laws[weights] = law_of(weights)
        return laws[weights]

    for rest in product(rests, repeat=bins):
        for u, v in product(units, repeat=2):
            ratio = math.prod(
                max(p / q for p, q in zip(one, two, strict=True))
                for one, two in zip(law(rest, u), law(rest, v), strict=True)
            )
            sizes = sum(u), sum(v)
            worst[sizes] = max(worst.get(sizes, 0), ratio)
    return worst


def worst_pair(worst, neighbours, several, reach):
    """The largest ratio between neighbours: what a unit holds is spread over one or two cells in every way."""
    parts = range(reach + 1)
    if neighbours is ADD:  # added or removed; two cells share the weight
        alone = [max(worst[0, size], worst[size, 0]) for size in parts]
        return max(alone[a] * (alone[b] if several else 1) for a in parts for b in range(reach + 1 - a))
    if not several:
        return max(worst.values())
    return max(
        worst[u, v] * worst[x, y]
        for u, v in product(parts, repeat=2)
        for x in range(reach + 1 - u)
        for y in range(reach + 1 - v)
    )


SMALL_QUANTILES = [
    (HALF, 1), (HALF, 2), ((Fraction(9, 10),), 1), ((Fraction(1, 5),), 2), (QUARTERS, 1),
    ((Fraction(1, 10), Fraction(1, 5)), 1),
]  # fmt: skip


@pytest.mark.parametrize("base", [Fraction(1, 2), Fraction(9, 10)], ids=str)
@pytest.mark.parametrize("case", SMALL_QUANTILES, ids=str)
def test_quantile_privacy_is_enumerated(case, base):
    """All small neighbours, one cell or two, added, removed or replaced: never more than e^epsilon, in Fractions.

    The exponents are whole numbers over parts * spread, so the law is rational in base = exp(-1/(parts * spread)), and
    e^epsilon = base^(-epsilon * parts * spread). Any base stands for some epsilon.
    """
    fractions, reach = case
    parts = math.lcm(*(fraction.denominator for fraction in fractions))
    plain = QuantileChoice(fractions, 3, reach, ADD, False, Decimal(1))

    def law_of(weights):
        rows = flips_of(plain, make_cell(*weights))
        steps = [[x * parts * plain.spread for x in row] for row in rows]
        assert all(step.denominator == 1 for row in steps for step in row)
        return [compute_flip_law([base ** int(step) for step in row]) for row in steps]

    worst = worst_ratios(law_of, reach, 3, range(4))
    for neighbours, several in product((ADD, REPLACE), (False, True)):
        choice = QuantileChoice(fractions, 3, reach, neighbours, several, Decimal(1))
        power = choice.spread * parts * Fraction(choice.epsilon)
        assert power.denominator == 1
        largest = worst_pair(worst, neighbours, several, reach)
        assert largest <= base ** -int(power)
        assert largest > base ** -int(power / 3)  # negative control: a third of the spread is caught


def loss_in_floats(choice, one, two):
    """The largest log ratio, summed over fractions, in units of epsilon."""
    total = 0.0
    for p, q in zip(flips_of(choice, one), flips_of(choice, two), strict=True):
        total += np.log(compute_flip_law_in_floats(p) / compute_flip_law_in_floats(q)).max()
    return total / float(choice.epsilon)


def test_quantile_privacy_is_nearly_tight():
    """Many empty bins on the far side: the bound is reached, so no smaller spread would do."""
    empty = [0] * 197
    one, two = make_cell(9, 1, *empty, 9), make_cell(10, 1, *empty, 9)
    median = QuantileChoice(HALF, 200, 1, ADD, False, Decimal("0.5"))
    assert 0.97 < loss_in_floats(median, two, one) <= 1 + 1e-9
    replaced = QuantileChoice(HALF, 200, 1, REPLACE, False, Decimal("0.5"))
    one, two = make_cell(8, 2, *empty, 10), make_cell(9, 2, *empty, 9)
    assert 0.8 < loss_in_floats(replaced, two, one) <= 1 + 1e-9
    # 3/4 of all: a unit that lies above moves scores by 3/4, either way
    upper = QuantileChoice((Fraction(3, 4),), 200, 1, ADD, False, Decimal("0.5"))
    one, two = make_cell(29, *empty, 1, 9), make_cell(29, *empty, 1, 10)
    assert 0.9 < loss_in_floats(upper, two, one) <= 1 + 1e-9
    # cells: with the one-cell spread, a unit that leaves one cell and enters another would lose more than epsilon
    careless = QuantileChoice((Fraction(3, 4),), 200, 1, REPLACE, False, Decimal("0.5"))
    assert 2 * loss_in_floats(careless, two, one) > 1
    assert 2 * loss_in_floats(QuantileChoice((Fraction(3, 4),), 200, 1, REPLACE, True, Decimal("0.5")), two, one) <= 1


def test_several_fractions_share_less_than_the_sum():
    """A unit is above some quantiles and below others: three quartiles cost 3.5, not 1.5 + 1 + 1.5."""
    assert QuantileChoice(HALF, 9, 1, ADD, False, Decimal(1)).spread == 1
    assert QuantileChoice(QUARTERS, 9, 1, ADD, False, Decimal(1)).spread == Fraction(7, 2)
    assert QuantileChoice(QUARTERS, 9, 1, REPLACE, True, Decimal(1)).spread == 7
    assert QuantileChoice(QUARTERS, 9, 1, REPLACE, False, Decimal(1)).spread == 6
    assert QuantileChoice((Fraction(9, 10),), 9, 5, ADD, False, Decimal("0.5")).spread == 18


sizes = st.sampled_from([1, 3, 1000, 1 << 40, 1 << 57, 1 << 62])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), sizes), min_size=1, max_size=6), st.sampled_from([2, 3, 1000, 999_983]))
def test_scores_are_exact_however_large(entries, parts):
    """The flips' exponents against the definition in Python's integers, far beyond 64 bits."""
    weights = [count * size if count * size < 1 << 63 else (1 << 63) - 1 for count, size in entries]
    choice = QuantileChoice((Fraction(1, parts),), len(weights), 3, ADD, False, Decimal("0.5"))
    (flips,) = flips_of(choice, make_cell(*weights))
    total, before, misses = sum(weights), 0, []
    for weight in weights:
        misses.append(max(parts * before - total, total - parts * (before + weight)))
        before += weight
    assert list(flips) == [(miss - min(misses)) / (parts * choice.spread) for miss in misses]


def test_the_bin_that_holds_the_rank_is_the_best_however_people_heap_up():
    """A score by the middle of a bin's ranks would choose 1 here, most often, though 55 of 100 have 0."""
    choice = QuantileChoice(HALF, 4, 1, ADD, False, Decimal("0.5"))
    (flips,) = flips_of(choice, make_cell(55, 20, 20, 5))
    assert [float(flip) for flip in flips] == [0, 5, 15, 25]
    (flips,) = flips_of(choice, make_cell(49, 0, 51, 0))
    assert flips[2] == 0
    assert min(flips[:2]) > 0


def test_flips_are_scripted_and_enumerated():
    """Every pattern of coins and every byte of the pick: the chosen entry's probability is permute-and-flip's."""
    below, spread = np.array([[3, 0, 1, 1]], np.int64), Fraction(2)
    survive = [Fraction(1, 5), Fraction(1), Fraction(2, 3), Fraction(2, 3)]  # stand for exp(-below/spread)
    chosen = [Fraction(0)] * 4
    for pattern in product((False, True), repeat=4):
        if not pattern[1]:
            continue  # exp(0): never tails
        words = b"".join(bytes(8) if head else bytes([255] * 8) for head in pattern)
        picks = []
        for byte in range(256):
            try:
                exponents = bin_choice._compute_exponents(below, spread)
                picks += bin_choice.permute_and_flip(*exponents, Scripted([*words, byte]))
            except Exhausted:  # outside a whole multiple of the number of heads: drawn again
                assert byte >= 256 - 256 % sum(pattern)
        mass = math.prod(p if head else 1 - p for p, head in zip(survive, pattern, strict=True))
        for index in range(4):
            chosen[index] += mass * Fraction(picks.count(index), len(picks))
    assert chosen == compute_flip_law(survive)


def test_many_cells_are_chosen_as_one_by_one(monkeypatch):
    """Rows are flipped together, each by its own exponents, and every row's pick is its own."""
    weights = SYSTEM.take(50 * 64).reshape(50, 64).astype(np.int64)
    monkeypatch.setattr(bin_choice, "geometric", lambda scale, size, entropy: np.zeros(size, np.int64))
    for choice in (
        QuantileChoice(QUARTERS, 64, 2, ADD, True, Decimal(1)),
        ExtremeChoice(True, 64, 2, ADD, Decimal(1)),
        ExtremeChoice(False, 64, 2, ADD, Decimal(1)),
        ModeChoice(1, 64, 2, ADD, Decimal(1)),
    ):
        together = flips_of(choice, weights)
        alone = [flips_of(choice, row) for row in weights]
        for coin, row in enumerate(together):
            assert row == [x for single in alone for x in single[coin]]
    seen = []

    def one_head_each(approximate, exact, entropy):
        heads = np.zeros((50, 64), bool)
        heads[np.arange(50), np.arange(50)] = True
        seen.append(approximate.size)
        return heads.reshape(-1)

    monkeypatch.setattr(bin_choice, "flip_exp_neg", one_head_each)
    diagonal = list(range(50))
    assert ModeChoice(1, 64, 2, ADD, Decimal(1)).choose_cells(weights, SYSTEM) == [
        (bin_number,) for bin_number in diagonal
    ]
    assert ExtremeChoice(False, 64, 2, ADD, Decimal(1)).choose_cells(weights, SYSTEM) == diagonal
    assert ExtremeChoice(True, 64, 2, ADD, Decimal(1)).choose_cells(weights, SYSTEM) == [
        63 - bin_number for bin_number in diagonal
    ]
    assert QuantileChoice(QUARTERS, 64, 2, ADD, True, Decimal(1)).choose_cells(weights, SYSTEM) == [
        (bin_number,) * 3 for bin_number in diagonal
    ]
    assert set(seen) == {50 * 64}


def test_more_cells_than_fit_at_once():
    weights = np.zeros((37, 4096), np.int64)
    weights[np.arange(37), 100 * np.arange(37)] = 10_000
    wanted = [100 * step for step in range(37)]
    assert [
        chosen for (chosen,) in QuantileChoice(HALF, 4096, 1, ADD, True, Decimal(1)).choose_cells(weights, SYSTEM)
    ] == (wanted)
    greatest = ExtremeChoice(True, 4096, 1, ADD, Decimal(1)).choose_cells(weights, SYSTEM)
    assert all(chosen >= right for chosen, right in zip(greatest, wanted, strict=True))
    assert (
        sum(chosen == right for chosen, right in zip(greatest, wanted, strict=True)) > 25
    )  # each is beyond in 1 of 100
    assert [chosen[0] for chosen in ModeChoice(3, 4096, 1, ADD, Decimal(1)).choose_cells(weights, SYSTEM)] == wanted
    assert ModeChoice(3, 4096, 1, ADD, Decimal(1)).choose_cells(np.zeros((0, 4096), np.int64), SYSTEM) == []


def test_quantiles_come_in_order(monkeypatch):
    picks = iter([[5], [2], [7]])
    monkeypatch.setattr(bin_choice, "permute_and_flip", lambda approximate, exact, entropy: next(picks))
    assert choose_one(QuantileChoice(QUARTERS, 9, 1, ADD, False, Decimal(1)), make_cell(*range(9))) == (2, 5, 7)


def test_quantiles_are_right_where_there_is_plenty():
    weights = make_cell(*[1000] * 100)
    assert choose_one(QuantileChoice(QUARTERS, 100, 1, ADD, False, Decimal(1)), weights)[1] in (49, 50)
    lopsided = make_cell(9000, 0, 0, 1000)  # ties: 60 % and more in one bin
    wanted = tuple(Fraction(percent, 100) for percent in (25, 50, 75, 95))
    assert choose_one(QuantileChoice(wanted, 4, 1, ADD, False, Decimal(1)), lopsided) == (0, 0, 0, 3)
    nobody = {choose_one(QuantileChoice(HALF, 3, 1, ADD, False, Decimal(1)), make_cell(0, 0, 0)) for _ in range(200)}
    assert nobody == {(0,), (1,), (2,)}


def extreme_law(inward, target, x):
    """P(first head at k), exactly, for geometric noise of ratio x: term by term, then the rest of the series."""
    reached = list(accumulate(inward))
    law = [Fraction(0)] * len(inward)
    start = max(0, max(reached) - target)  # from here on, every exponent is target + noise - reached
    for noise in range(start):
        alive = (1 - x) * x**noise
        for k, up_to in enumerate(reached):
            heads = 1 if k == len(inward) - 1 else x ** max(0, target + noise - up_to)
            law[k] += alive * heads
            alive *= 1 - heads
    alive = [Fraction(1)]  # in powers of x**noise
    for k, up_to in enumerate(reached):
        tails = x ** (target - up_to) if k < len(inward) - 1 else 0
        heads = [0, *(c * tails for c in alive)] if k < len(inward) - 1 else alive
        for power, c in enumerate(heads):
            law[k] += c * (1 - x) * x ** (start * (power + 1)) / (1 - x ** (power + 1))
        alive = [a - tails * b for a, b in zip([*alive, 0], [0, *alive], strict=True)]
    assert sum(law) == 1
    return law


@pytest.mark.parametrize("noise", [0, 1, 17, 1 << 70])
@pytest.mark.parametrize("largest", [False, True])
def test_extremes_flip_what_is_missing(monkeypatch, noise, largest):
    """The coin of each bin, by the definition: what target + noise lacks, over the spread; the last always falls."""
    choice = ExtremeChoice(largest, 5, 3, ADD, Decimal("0.5"))
    monkeypatch.setattr(bin_choice, "geometric", lambda scale, size, entropy: np.array([noise] * size, object))
    for weights in ([0, 0, 4, 9, 100], [50, 0, 0, 0, 1], [1 << 62] * 5, [0] * 5):
        (flips,) = flips_of(choice, make_cell(*weights))
        inward = weights[::-1] if largest else weights
        short = [max(0, choice.target + noise - up_to) for up_to in accumulate(inward)]
        assert [x * choice.spread for x in flips] == [*short[:-1], 0]


def test_the_noise_of_an_extreme_has_its_spread(monkeypatch):
    asked = []
    monkeypatch.setattr(bin_choice, "geometric", lambda *of: asked.append(of[:2]) or np.zeros(of[1], np.int64))
    choice = ExtremeChoice(True, 4, 3, REPLACE, Decimal("0.5"))
    choice.choose_cells(np.zeros((7, 4), np.int64), SYSTEM)
    assert choice.spread == 12
    assert asked == [(Fraction(12), 7)]


@pytest.mark.parametrize("x", [Fraction(1, 2), Fraction(9, 10)], ids=str)
@pytest.mark.parametrize("target", [1, 4])
@pytest.mark.parametrize("reach", [1, 2])
def test_extreme_privacy_is_exact(x, target, reach):
    """All small neighbours: an added or removed unit costs x^-reach, a replaced one twice that; both are reached.

    The law is rational in x = exp(-1/spread), and e^epsilon = x^(-epsilon * spread).
    """
    worst = worst_ratios(lambda inward: [extreme_law(inward, target, x)], reach, 3, (0, 1, target, target + reach))
    for neighbours, several in product((ADD, REPLACE), (False, True)):
        power = int(ExtremeChoice(True, 3, reach, neighbours, Decimal(1)).spread)  # epsilon is 1
        largest = worst_pair(worst, neighbours, several, reach)
        assert largest <= x**-power
        if target > reach:  # a target that one unit alone passes is safer still
            caught = Fraction(power) * (Fraction(19, 20) if reach == 1 else Fraction(4, 5))
            assert largest > x**-caught  # negative control: less noise than this is caught


def test_extremes_without_noise_on_the_target_leak():
    """Negative control: with a bare threshold, many empty bins tell whether somebody is there."""
    x, target, bins = Fraction(1, 2), 5, 40

    def without(inward):
        alive, law = Fraction(1), []
        for k, up_to in enumerate(accumulate(inward)):
            heads = 1 if k == bins - 1 else x ** max(0, target - up_to)
            law.append(alive * heads)
            alive *= 1 - heads
        return law

    def largest(law_of):
        one, two = law_of([0] * bins), law_of([1] + [0] * (bins - 1))
        return max(max(p / q, q / p) for p, q in zip(one, two, strict=True))

    assert largest(lambda inward: extreme_law(inward, target, x)) <= 1 / x
    assert largest(without) > 1 / x


@pytest.mark.parametrize(
    ("bins", "reach", "epsilon"), [(10, 1, "1"), (10, 1, "0.1"), (4096, 1, "1"), (4096, 10, "0.1")]
)
def test_extremes_rarely_overshoot(bins, reach, epsilon):
    """All weight in the innermost bin: an empty bin is chosen with probability at most OVERSHOOT, and nearly that."""
    choice = ExtremeChoice(True, bins, reach, ADD, Decimal(epsilon))
    rate = float(1 / choice.spread)
    noise = np.arange(int(60 / rate))
    survive = np.exp(-rate * (choice.target + noise))
    beyond = (-math.expm1(-rate) * np.exp(-rate * noise) * -np.expm1((bins - 1) * np.log1p(-survive))).sum()
    assert beyond <= OVERSHOOT
    assert beyond > float(OVERSHOOT) * math.exp(-rate) * 0.95


def test_everyone_has_an_integer_from_1_to_10():
    """The maximum of 1,000 people: right every time at epsilon 1. (Laplace noise of 9/epsilon would be off by nine.)"""
    weights = np.tile(make_cell(*[100] * 10), (200, 1))
    assert set(ExtremeChoice(True, 10, 1, ADD, Decimal(1)).choose_cells(weights, SYSTEM)) == {9}
    assert set(ExtremeChoice(False, 10, 1, ADD, Decimal(1)).choose_cells(weights, SYSTEM)) == {0}


def test_a_thousand_people_on_a_fine_grid():
    """4,096 bins, 1,000 people: the number of people beyond the answer is at most the margin."""
    places = SYSTEM.take(2000).view(np.uint16) % 4096
    weights = np.bincount(places, minlength=4096)
    choice = ExtremeChoice(True, 4096, 1, ADD, Decimal(1))
    margin = compute_bin_margin(choice, "0.9999999999")
    assert choice.target == 13
    assert compute_bin_margin(choice, "0.95") == 14
    beyond = np.append(weights[::-1].cumsum()[::-1][1:], 0)
    chosen = choice.choose_cells(np.tile(weights, (40, 1)), SYSTEM)
    assert max(beyond[bin_number] for bin_number in chosen) <= margin


@pytest.mark.parametrize("base", [Fraction(1, 2), Fraction(9, 10)], ids=str)
@pytest.mark.parametrize("reach", [1, 2])
def test_mode_privacy_is_enumerated(base, reach):
    """k = 1, as for quantiles: all small neighbours, in one cell or two."""
    plain = ModeChoice(1, 3, reach, ADD, Decimal(1))

    def law_of(weights):
        rows = flips_of(plain, make_cell(*weights))
        return [compute_flip_law([base ** int(x * plain.spread) for x in row]) for row in rows]

    worst = worst_ratios(law_of, reach, 3, range(3))
    for neighbours, several in product((ADD, REPLACE), (False, True)):
        power = int(ModeChoice(1, 3, reach, neighbours, Decimal(1)).spread)
        largest = worst_pair(worst, neighbours, several, reach)
        assert largest <= base**-power
        assert largest > base ** -(power / 2)  # negative control: half the spread is caught


def test_top_k_privacy_is_enumerated():
    """k = 2 of three bins: every outcome, every neighbour; half the noise, or one-sided noise, is caught."""
    x, k = 0.5, 2
    two_sided = (1 - x) / (1 + x) * x ** np.abs(np.arange(-REST, REST + 1))
    half = (1 - x**2) / (1 + x**2) * x ** (2 * np.abs(np.arange(-REST, REST + 1)))
    one_sided = np.where(np.arange(-REST, REST + 1) >= 0, (1 - x) * x ** np.abs(np.arange(-REST, REST + 1)), 0)

    def largest(mass):
        worst = 0
        for weights in product(range(3), repeat=3):
            for bin_ in range(3):
                more = [weight + (place == bin_) for place, weight in enumerate(weights)]
                p, q = compute_top_law(weights, mass, k), compute_top_law(more, mass, k)
                some = (p > 1e-6) | (q > 1e-6)
                worst = max(worst, (p[some] / q[some]).max(), (q[some] / p[some]).max())
        return worst

    assert 0.85 / x < largest(two_sided) <= 1 / x * (1 + 1e-3)
    assert largest(half) > 1.5 / x
    assert largest(one_sided) > 1.2 / x


def test_top_k_is_noise_and_order(monkeypatch):
    noise = np.array([0, 5, -9, 0, 0, 1, 1, 0])
    asked = []
    monkeypatch.setattr(bin_choice, "discrete_laplace", lambda *of: asked.append(of[:2]) or noise)
    choice = ModeChoice(2, 4, 3, REPLACE, Decimal("0.5"))
    assert choice.choose_cells(np.array([[4, 0, 12, 4], [1, 0, 0, 1]], np.int64), SYSTEM) == [(1, 0), (0, 1)]
    assert asked == [(Fraction(12), 8)]
    monkeypatch.undo()
    far = make_cell((1 << 63) - 1, 0, (1 << 63) - 1, 7)
    assert set(choose_one(choice, far)) == {0, 2}


GOOD = {"bins": 4, "reach": 1, "neighbours": ADD, "epsilon": Decimal(1)}


@pytest.mark.parametrize(
    ("kind", "wrong", "why"),
    [
        (QuantileChoice, {"fractions": ()}, "raction"),
        (QuantileChoice, {"fractions": (Fraction(1, 2), Fraction(1, 2))}, "raction"),
        (QuantileChoice, {"fractions": (Fraction(3, 4), Fraction(1, 2))}, "raction"),
        (QuantileChoice, {"fractions": (Fraction(1),)}, "raction"),
        (QuantileChoice, {"bins": 0}, "above zero"),
        (QuantileChoice, {"epsilon": 0}, "above zero"),
        (QuantileChoice, {"epsilon": Decimal("1e-30")}, "epsilon"),
        (QuantileChoice, {"neighbours": "both"}, "above zero"),
        (ExtremeChoice, {"reach": 0}, "above zero"),
        (ModeChoice, {"k": 0}, "chooses"),
        (ModeChoice, {"k": 5}, "chooses"),
        (ModeChoice, {"epsilon": Decimal(-1)}, "above zero"),
    ],
)
def test_bad_parameters(kind, wrong, why):
    own = {
        QuantileChoice: {"fractions": HALF, "several": False},
        ExtremeChoice: {"largest": True},
        ModeChoice: {"k": 1},
    }
    kind(**GOOD, **own[kind])
    with pytest.raises(SfumatoError, match=why):
        kind(**{**GOOD, **own[kind], **wrong})


@pytest.mark.parametrize(
    "weights",
    [
        [[1, 2, 3, 4]],
        make_cell(1, 2, 3)[np.newaxis],
        make_cell(1, 2, 3, -4)[np.newaxis],
        np.ones((1, 4)),
        make_cell(1, 2, 3, 4),
        None,
    ],
    ids=["list", "short", "negative", "floats", "one-dimensional", "none"],
)
def test_weights_that_no_engine_gives(weights):
    for choice in (
        QuantileChoice(HALF, 4, 1, ADD, False, 1),
        ExtremeChoice(True, 4, 1, ADD, 1),
        ModeChoice(2, 4, 1, ADD, 1),
    ):
        with pytest.raises(KernelFault):
            choice.choose_cells(weights, SYSTEM)


@pytest.mark.parametrize("largest", [True, False])
def test_an_extreme_that_nothing_reaches_is_the_innermost_bin(largest, monkeypatch):
    """All coins fall tails except those that cannot. The last bin always accepts."""
    monkeypatch.setattr(bin_choice, "flip_exp_neg", lambda approximate, exact, entropy: approximate == 0)
    choice = ExtremeChoice(largest, 5, 1, ADD, Decimal(1))
    for weights in (make_cell(0, 0, 0, 0, 0), make_cell(1, 0, 0, 0, 1)):
        assert choose_one(choice, weights) == (0 if largest else 4)


@pytest.mark.parametrize("drawn", [0, 1, 7])
def test_the_target_of_an_extreme_is_noisy(drawn, monkeypatch):
    """The coins are those of K-32 for the number that was drawn."""
    monkeypatch.setattr(bin_choice, "geometric", lambda scale, size, entropy: np.full(size, drawn))
    choice = ExtremeChoice(False, 4, 2, ADD, Decimal(1))
    weights = make_cell(3, 0, 9, 1)
    (row,) = flips_of(choice, weights)
    short = [max(choice.target + drawn - reached, 0) for reached in accumulate([3, 0, 9])]
    assert row == [lacking / choice.spread for lacking in short] + [0]
