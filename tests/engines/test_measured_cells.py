"""Rows of results become integers: each in the cell of its own key values, and nothing that is not an integer."""

from decimal import Decimal

import pytest

from sfumato.engines.measured_cells import collect_aggregates
from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.losses import ApproxDP, PureDP
from sfumato.kernel.neighbours import PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Count, Grid, Halves, Key, Keys, Measurement, Mode, People
from sfumato.kernel.row_sources import Scan

CITY, AGE = Column("city", ColumnType.TEXT), Column("age", ColumnType.INTEGER)
COUNT, PEOPLE = Measurement("n", Count(None), PureDP(1)), Measurement("people", People(), PureDP(1))
NAMED = Measurement("keys", Keys(), ApproxDP(1, "1e-6"))


def make_plan(*measurements, values=("Rome", 1)):
    source = Scan("t", "1", most_met=8)
    return BoundedPlan("t", source, PrivacyUnit("t", "id"), 1, (), (Key(CITY, values),), measurements)


def test_rows_are_added_to_the_cell_of_their_key_values():
    rows = [("Rome", 2), (1.0, 3), (1, 4), ("Oslo", 9), (None, 9), (True, 9)]
    exact = collect_aggregates(make_plan(COUNT), None, rows, {})
    assert exact._integers["n"].tolist() == [2, 7]  # 1 and 1.0 are one key; undeclared keys are dropped
    assert exact._keys is None


@pytest.mark.parametrize("wrong", [1.0, Decimal(1), "1", None], ids=repr)
def test_what_is_not_an_integer_is_refused(wrong):
    mode = Measurement("m", Mode(AGE, 1, (1, 2)), PureDP(1))
    for results in ((COUNT, [], [("Rome", wrong)], {}), (PEOPLE, [("Rome", wrong)], None, {})):
        with pytest.raises(TypeError):
            collect_aggregates(make_plan(results[0]), *results[1:])
    with pytest.raises(TypeError):
        collect_aggregates(make_plan(mode), None, None, {"m": [("Rome", 1, wrong)]})
    assert collect_aggregates(make_plan(mode), None, None, {"m": [("Rome", 2, 5)]})._bins["m"] == [{1: 5}, {}]


def test_two_rows_that_count_the_people_of_one_cell_are_refused():
    for key, same in (("Rome", "Rome"), (1, 1.0)):
        with pytest.raises(KernelFault, match="one cell"):
            collect_aggregates(make_plan(PEOPLE), [(key, 1), (same, 1)], None, {})
        with pytest.raises(KernelFault, match="one cell"):
            collect_aggregates(make_plan(NAMED, COUNT, values=None), None, [(key, 1, 1), (same, 1, 1)], {})


def test_one_result_counts_the_units_and_the_rows_of_undeclared_keys():
    halves = Measurement("h", Halves(AGE, Grid(0, 4, 0)), PureDP(1))
    rows = [("Rome", 2, 5, 10 << 16, 3 << 16), ("Oslo", 1, 7, 0, 0), (None, 9, 9, 9, 9)]
    exact = collect_aggregates(make_plan(NAMED, COUNT, halves, values=None), None, rows, {})
    assert exact._keys == (("Rome",), ("Oslo",))
    assert exact._integers["keys"].tolist() == [2, 1]
    assert exact._integers["n"].tolist() == [5, 7]
    assert len(exact._integers["h"]) == 4
