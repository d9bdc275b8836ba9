"""On random neighbouring tables, no engine's products leave the box that the kernel derives: claim K-57."""

from fractions import Fraction

import pandas as pd
import pytest
from examples import SLOW, count_examples
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.kernel.expressions import Call, Column, ColumnType, Literal
from sfumato.kernel.losses import PureDP
from sfumato.kernel.neighbours import PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Factor, Grid, Key, Measurement, Products
from sfumato.kernel.row_sources import Derived, Scan
from sfumato.kernel.sensitivity import bound_terms

COLUMNS = {"id": sf.Id(), "x": sf.Real(-5, 9), "y": sf.Real(-100, 100), "city": sf.Category(["Rome", "Oslo"])}
X, Y, CITY = Column("x", ColumnType.REAL), Column("y", ColumnType.REAL), Column("city", ColumnType.TEXT)
RATIO = Call("/", (Y, Call("-", (X, Literal(3.0)))))  # NULL for x = 3, and outside its grid
FACTORS = Factor(X, Grid(-10, 18, -1)), Factor(Y, Grid(-400, 400, -2)), Factor(RATIO, Grid(-3, 50, 0))
PRODUCTS = Products(FACTORS, ((), (0,), (0, 0), (0, 1), (2,), (1, 2), (2, 2)))
ROWS_OF_UNIT = 3

numbers = st.one_of(
    st.none(),
    st.floats(-200, 300),
    st.sampled_from([float("nan"), float("inf"), float("-inf"), 1e300, -0.0, 3.0, 0.1]),
)
rows = st.fixed_dictionaries({"x": numbers, "y": numbers, "city": st.sampled_from(["Rome", "Oslo", "Elba", None])})
people = st.lists(st.lists(rows, min_size=1, max_size=5), max_size=3)
PLANS = {
    "one cell": ((), ()),
    "cells": ((), (Key(CITY, ("Rome", "Oslo")),)),
    "filtered": ((Call(">", (X, Literal(0.0))),), ()),
}


def make_plan(shape, unit, neighbours, *, derived=False):
    filters, keys = PLANS[shape]
    source = Scan("t", "1", 1 if unit is sf.ROW else ROWS_OF_UNIT)
    if derived:
        source = Derived(source, (), tuple((column.name, column) for column in (X, Y, CITY)))
    measured = (Measurement("sums", PRODUCTS, PureDP(1)),)
    return BoundedPlan("t", source, PrivacyUnit("t", unit, neighbours), 1, filters, keys, measured)


def make_table(unit):
    if unit is sf.ROW:
        return Table("t", None, unit, {name: column for name, column in COLUMNS.items() if name != "id"})
    return Table("t", None, unit, COLUMNS, max_rows_per_unit=ROWS_OF_UNIT)


def measure(owners, plan, table):
    records = [{"id": f"p{number}", **row} for number, owned in owners for row in owned]
    frame = pd.DataFrame(records, columns=list(COLUMNS)).astype({"x": float, "y": float, "city": object, "id": object})
    duck = DuckDBEngine.of_data(table, frame)
    try:
        one = duck.aggregate(plan)._integers["sums"].tolist()
        names = [name[0] for name in duck._connection.execute('DESCRIBE "t"').fetchall()]
        held = duck._connection.execute('SELECT * FROM "t"').fetchall()
    finally:
        duck.close()
    reference = ReferenceEngine({"t": [dict(zip(names, row, strict=True)) for row in held]})
    assert one == reference.aggregate(plan)._integers["sums"].tolist(), "engines differ"
    return one


def find_size(plan, before, after):
    """The sum over cells of the largest part of its bound that a term moves by."""
    box, width = bound_terms(plan, PRODUCTS), PRODUCTS.width
    moved = [abs(one - two) for one, two in zip(before, after, strict=True)]
    cells = [moved[start : start + width] for start in range(0, len(moved), width)]
    return sum(max(Fraction(step) / most for step, most in zip(cell, box, strict=True)) for cell in cells)


@pytest.mark.parametrize("shape", PLANS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("derived", [False, True], ids=["table", "subquery"])
@settings(max_examples=count_examples(5), deadline=None, suppress_health_check=SLOW)
@given(people, st.lists(rows, min_size=1, max_size=7), st.lists(rows, min_size=1, max_size=7))
def test_no_neighbour_leaves_the_box(shape, neighbours, derived, others, mine, yours):
    plan, table = make_plan(shape, "id", neighbours, derived=derived), make_table("id")
    rest = list(enumerate(others))
    without = rest if neighbours == "add-remove" else [*rest, (98, yours)]
    assert find_size(plan, measure([*rest, (99, mine)], plan, table), measure(without, plan, table)) <= 1


@pytest.mark.parametrize("shape", PLANS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@settings(max_examples=count_examples(5), deadline=None, suppress_health_check=SLOW)
@given(st.lists(rows, max_size=5), rows, rows)
def test_no_row_leaves_the_box(shape, neighbours, others, mine, yours):
    plan, table = make_plan(shape, sf.ROW, neighbours), make_table(sf.ROW)
    rest = [(0, others)]
    without = rest if neighbours == "add-remove" else [*rest, (1, [yours])]
    assert find_size(plan, measure([*rest, (1, [mine])], plan, table), measure(without, plan, table)) <= 1


def test_values_beyond_every_bound_are_clamped():
    """One row whose factors lie outside of their grids: each term is at most a side of the box."""
    for unit in (sf.ROW, "id"):
        plan, table = make_plan("one cell", unit, "add-remove"), make_table(unit)
        for x, y in ((1e300, -1e300), (300.0, 2.0), (-200.0, 150.0), (float("inf"), float("-inf"))):
            row = {"x": x, "y": y, "city": "Rome"}
            assert find_size(plan, measure([(1, [row])], plan, table), measure([], plan, table)) <= 1


def test_a_row_reaches_the_sides_of_the_box():
    """Negative control: the bounds are not larger than they must be, so that a smaller one would be seen."""
    for neighbours, others in (("add-remove", []), ("replace-one", [{"x": 9.0, "y": -100.0, "city": "Oslo"}])):
        for unit, times in ((sf.ROW, 1), ("id", 5)):
            plan, table = make_plan("cells", unit, neighbours), make_table(unit)
            mine = [{"x": 9.0, "y": 100.0, "city": "Rome"}] * times
            after = measure([(0, others * times)] if others else [], plan, table)
            assert find_size(plan, measure([(1, mine)], plan, table), after) == 1


def test_a_snapshot_of_no_rows_has_zeros():
    for shape in PLANS:
        plan = make_plan(shape, sf.ROW, "add-remove")
        assert not any(measure([], plan, make_table(sf.ROW)))
