"""A pivot: a row belongs to one condition at most, so all conditions together cost what one costs (K-77)."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

import sfumato as sf
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.errors import KernelFault
from sfumato.ingest.hidden_names import UNIT
from sfumato.kernel.certify import certify
from sfumato.kernel.expressions import Call, Column, ColumnType, Literal
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Count, Grid, Halves, Key, Measurement, Pivot, Sum, Thirds
from sfumato.kernel.released_steps import number_conditions
from sfumato.kernel.row_sources import Scan
from sfumato.kernel.sensitivity import derive_sensitivity
from sfumato.row_meanings.evaluate import evaluate

X = Column("x", ColumnType.INTEGER)
TRUTHS = [Column(name, ColumnType.BOOLEAN) for name in "abc"]
GRID = Grid(-2, 6, 0)
PARTS = [Count(None), Count(X), Sum(X, GRID), Sum(X, GRID, 1), Halves(X, GRID), Thirds(X, GRID)]


def make_plan(quantity, neighbours, *, unit=ROW, most=1, keys=()):
    measured = Measurement("m", quantity, sf.PureDP(1))
    source = Scan("t", "1", most)
    return BoundedPlan("t", source, PrivacyUnit("t", unit, neighbours), 1, (), tuple(keys), (measured,))


@pytest.mark.parametrize("truths", list(product([True, False, None], repeat=3)))
def test_a_row_belongs_to_the_first_true_condition(truths):
    key = number_conditions(tuple(TRUTHS))
    found = evaluate(key.expression, dict(zip("abc", truths, strict=True)))
    assert found == (truths.index(True) if True in truths else None)
    assert key.values == (0, 1, 2)


def pivoted(rows, plan):
    records = [{UNIT: str(number), "x": x, "a": a, "b": b, "c": c} for number, (x, a, b, c) in enumerate(rows)]
    return ReferenceEngine({"t": records}).aggregate(plan)._integers["m"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_sensitivity_is_reached_and_never_passed(part, neighbours):
    """Every row and every pair of rows, of every value and every truth of overlapping conditions: the maximum."""
    plan = make_plan(Pivot(part, tuple(TRUTHS)), neighbours)
    rows = list(product([None, -2, -1, 2, 6], *([[True, False]] * 3)))
    empty = pivoted([], plan)
    vectors = {tuple(int(one) for one in pivoted([row], plan) - empty) for row in rows}
    if neighbours is Neighbours.ADD_REMOVE:
        moves = vectors
    else:
        moves = {tuple(a - b for a, b in zip(one, two, strict=True)) for one, two in product(vectors, repeat=2)}
    moved = derive_sensitivity(plan, Pivot(part, tuple(TRUTHS)))
    assert max(sum(map(abs, move)) for move in moves) == moved.l1
    assert max(sum(step * step for step in move) for move in moves) <= moved.l2_squared


def test_a_row_that_meets_several_conditions_counts_once():
    """Negative control: if it counted for all of them, it would move three times the sensitivity."""
    plan = make_plan(Pivot(Count(None), tuple(TRUTHS)), Neighbours.ADD_REMOVE)
    assert pivoted([(1, True, True, True)], plan).tolist() == [1, 0, 0]
    assert derive_sensitivity(plan, plan.measurements[0].quantity).l1 == 1 < 3


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_it_costs_what_one_more_key_costs(part, neighbours):
    pivot = Pivot(part, tuple(TRUTHS))
    plain = make_plan(part, neighbours, unit="id", most=3, keys=[Key(TRUTHS[0], (True, False))])
    plan = replace(plain, measurements=(Measurement("m", pivot, sf.PureDP(1)),))
    keyed = replace(plain, keys=(*plain.keys, number_conditions(tuple(TRUTHS))))
    (one,), (two,) = certify(plan).measurements, certify(keyed).measurements
    assert (one.sensitivity, one.noise, one.exponent) == (two.sensitivity, two.noise, two.exponent)
    assert one.width == 3 * part.width


def test_pivots_that_cannot_be():
    wide = Thirds(X, Grid(0, 1 << 16, 0))
    for part in (wide, Sum(X, GRID, 1 << 60)):
        with pytest.raises(KernelFault):
            Measurement("m", Pivot(part, tuple(TRUTHS)), sf.PureDP(1))
    with pytest.raises(KernelFault, match="loss"):
        Measurement("m", Pivot(Halves(X, GRID), tuple(TRUTHS)), sf.ZCDP(1))
    with pytest.raises(KernelFault, match="public values"):
        number_conditions(())
    plan = make_plan(Pivot(Count(None), (Literal(True),)), Neighbours.REPLACE_ONE)
    assert derive_sensitivity(plan, plan.measurements[0].quantity).l1 == Fraction(1)
    assert Call("not", (TRUTHS[0],)) != TRUTHS[0]
