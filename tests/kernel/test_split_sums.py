"""The parts of a row, enumerated: every value, every pair, and every rounding of a person's rows."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from bounded_plans import AGE, PLAN, changed
from scripted import Scripted

from sfumato.engines.reference.reference_engine import split_row
from sfumato.errors import KernelFault
from sfumato.kernel.certify import certify
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.neighbours import ROW, PrivacyUnit
from sfumato.kernel.plan import MOST_SPAN, Curve, Grid, Halves, Measurement, Thirds
from sfumato.kernel.release import ExactAggregates, release_with
from sfumato.kernel.reservation import Reservation
from sfumato.kernel.row_sources import Scan
from sfumato.kernel.split_sums import bound_parts, compute_halves, find_middle

BOUNDS = [(0, 1), (0, 2), (-3, 4), (5, 11), (-8, -1), (0, 7)]
WHOLE = 1 << 16
ALWAYS = replace(AGE, nullable=False)


def measured(quantity, lower, upper):
    return Measurement("s", quantity(ALWAYS, Grid(lower, upper, 0)), PureDP("0.5"))


@pytest.mark.parametrize(("lower", "upper"), [*BOUNDS, (-(1 << 24), 1 << 24), (1000, 1 << 23)])
def test_halves_are_whole_and_reach_both_bounds(lower, upper):
    grid = Grid(lower, upper, 0)
    middle, down, up = find_middle(grid, per_row=True)
    assert (middle - down, middle + up) == (lower, upper)
    middle, down, up = find_middle(grid, per_row=False)
    assert down == up
    assert down % WHOLE == 0
    assert middle - down <= lower <= upper <= middle + up
    assert down - max(upper - middle, middle - lower) < WHOLE


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_what_one_row_adds_is_enumerated(lower, upper):
    values = range(lower, upper + 1)
    for value in values:
        grid = Grid(lower, upper, 0)
        below, above = compute_halves(value - find_middle(grid, per_row=True)[0], 1, grid, per_row=True)
        assert (below, above) == (upper - value, value - lower)
        assert below + above == bound_parts(Halves(ALWAYS, grid), per_row=True)
        thirds = split_row(Thirds(ALWAYS, grid), value)
        assert thirds == (below**2, 2 * below * above, above**2)
        assert sum(thirds) == bound_parts(Thirds(ALWAYS, grid), per_row=True)
    curve = Curve(ALWAYS, Grid(lower, upper, 0))
    moves = [
        sum(abs(a - b) for a, b in zip(split_row(curve, one), split_row(curve, two), strict=True))
        for one, two in product(values, values)
    ]
    assert max(moves) <= bound_parts(curve, per_row=True)


def test_the_bound_of_a_curve_is_met():
    curve = Curve(ALWAYS, Grid(-8, 8, 0))
    one, two = split_row(curve, 8), split_row(curve, -4)
    assert sum(abs(a - b) for a, b in zip(one, two, strict=True)) == bound_parts(curve, per_row=True) == 9 * 64 // 4


@pytest.mark.parametrize("upper", [5, 65_537, 3 << 20])
def test_a_persons_halves_stay_below_their_bound_however_they_round(upper):
    """Every number of rows, and the values that round worst; the true bound, and not much less."""
    grid, most = Grid(0, upper, 0), 3
    middle, down, up = find_middle(grid, per_row=False)
    reached = Fraction(0)
    for rows in (*range(1, 40), 999, 65_536, 65_537, 1_000_003):
        weight = WHOLE if rows <= most else (WHOLE * most) // rows
        for value in (0, 1, middle, upper - 1, upper):
            steps = value - middle
            added = steps if rows <= most else (abs(steps) * most // rows) * (1 if steps >= 0 else -1)
            below, above = compute_halves(rows * added, rows * weight, grid, per_row=False)
            reached = max(reached, Fraction(abs(below) + abs(above), most * (down + up)))
    assert Fraction(99, 100) < reached <= 1


def test_unequal_distances_would_not_do_for_a_person():
    """Negative control: with distances as a row unit has them, a weight that rounds to nothing leaves a sum alone."""
    rows, most, upper = 1_000_003, 3, 1 << 24
    steps = 1 - upper  # a value at the lower bound, 0, of bounds whose middle is the upper but one
    added = -(abs(steps) * most // rows)
    weight = (WHOLE * most) // rows
    down, up = upper - 1, 1
    size = abs(up * rows * weight // WHOLE - rows * added) + abs(down * rows * weight // WHOLE + rows * added)
    assert size > most * (down + up)


def test_a_curve_is_for_rows_that_are_always_there():
    curve, replaced = measured(Curve, 0, 8), PrivacyUnit("people", ROW, "replace-one")
    plan = replace(PLAN, unit=replaced, measurements=(curve,))
    assert certify(plan).measurements[0].sensitivity.l1 == Fraction(9 * 16, 4)
    person = {"unit": PrivacyUnit("people", "id", "replace-one"), "source": Scan("people", "v1", 3)}
    may_be_null = (changed(curve, value=AGE),)
    for changes in ({"unit": PLAN.unit}, person, {"filters": (AGE,)}, {"measurements": may_be_null}):
        with pytest.raises(KernelFault, match="always have a value"):
            certify(replace(plan, **changes))


def test_parts_have_a_pure_loss_and_few_steps():
    with pytest.raises(KernelFault, match="cannot pay"):
        replace(measured(Halves, 0, 8), loss=ZCDP("0.5"))
    with pytest.raises(KernelFault, match="fewer steps"):
        measured(Thirds, 0, MOST_SPAN + 1)


def test_every_part_of_every_cell_has_its_own_noise():
    """The same entropy, all at once and one by one, gives the same noise in the order of cells and parts."""
    plan = replace(PLAN, measurements=(measured(Thirds, 0, 8),))
    certificate = certify(plan)
    (certified,) = certificate.measurements
    assert certified.width == 3
    noise = certified.noise.draw(3, Scripted(b"\x07\x35\x99" * 4_000)).tolist()
    exact = ExactAggregates(plan, {certified.name: [100, 200, 300]})
    released = release_with(exact, Reservation(1, certificate), Scripted(b"\x07\x35\x99" * 4_000))
    assert released.integers[certified.name] == (100 + noise[0], 200 + noise[1], 300 + noise[2])
    assert len(set(noise)) > 1
    for wrong in ([100], [100, 200], [1, 2, 3, 4, 5, 6]):
        with pytest.raises(KernelFault, match="number of cells"):
            release_with(
                ExactAggregates(plan, {certified.name: wrong}),
                Reservation(1, certificate),
                Scripted(b""),
            )
