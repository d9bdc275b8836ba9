"""On random neighbouring tables, the queries of a strategy move by no more than the kernel's sensitivity."""

from dataclasses import replace
from itertools import pairwise

import pytest
from examples import SLOW, count_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sensitivity import measured, people, planned, rows

import sfumato as sf
from sfumato.kernel.certify import certify
from sfumato.kernel.losses import PureDP
from sfumato.kernel.plan import Strategy

QUESTIONS = [
    "SELECT city, COUNT(*) AS n FROM t GROUP BY city",
    "SELECT city, smoker, SUM(pay) AS s FROM t GROUP BY city, smoker",
    "SELECT age > 40 AS old, SUM(base) AS s FROM t WHERE smoker GROUP BY old",
]
MATRICES = {
    "centred": lambda size: [[size * (row == column) - 1 for column in range(size)] for row in range(size)],
    "running": lambda size: [
        [int(row >= column) * (3 + row - column) for column in range(size)] for row in range(size)
    ],
    "plain": lambda size: [[int(row == column) for column in range(size)] for row in range(size)],
}


def mixed(question, unit, neighbours, kinds, *, nulls=False):
    """The question's plan, with strategies instead of plain cells; `nulls`: rows without a key have a cell too."""
    plan, table = planned(question, unit, neighbours)
    if nulls:
        plan = replace(plan, keys=tuple(replace(key, values=(*key.values, None)) for key in plan.keys))
    sizes = [len(key.values) for key in plan.keys]
    matrices = tuple(tuple(map(tuple, MATRICES[kind](size))) for kind, size in zip(kinds, sizes, strict=False))
    (measurement,) = plan.measurements
    return replace(plan, measurements=(replace(measurement, quantity=Strategy(measurement.quantity, matrices)),)), table


def find_move(plan, table, one, two):
    (name,) = (measurement.name for measurement in plan.measurements)
    before, after = measured(one, plan, table)[name], measured(two, plan, table)[name]
    moved = [abs(int(a) - int(b)) for a, b in zip(before, after, strict=True)]
    return sum(moved), sum(step * step for step in moved)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@settings(max_examples=count_examples(10), deadline=None, suppress_health_check=SLOW)
@given(
    people, st.lists(rows, min_size=1, max_size=9), st.lists(rows, min_size=1, max_size=9),
    st.tuples(*[st.sampled_from(sorted(MATRICES))] * 2), st.booleans(),
)  # fmt: skip
def test_no_person_moves_the_queries_further(question, neighbours, others, mine, yours, kinds, nulls):
    rest = list(enumerate(others))
    without = rest if neighbours == "add-remove" else [*rest, (98, yours)]
    plan, table = mixed(question, "id", neighbours, kinds, nulls=nulls)
    (certified,) = certify(plan).measurements
    l1, l2_squared = find_move(plan, table, [*rest, (99, mine)], without)
    assert l1 <= certified.sensitivity.l1
    assert l2_squared <= certified.sensitivity.l2_squared


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_bound_that_is_a_little_smaller_is_seen(neighbours):
    """Negative control: people with many rows in the worst cells reach the squared L2 sensitivity itself."""
    plan, table = mixed(QUESTIONS[0], "id", neighbours, ("centred",))
    row = {"age": 1, "pay": 9_000, "base": 10, "smoker": True}
    rome, oslo = ([{**row, "city": city}] * 3 for city in ("Rome", "Oslo"))
    without = [] if neighbours == "add-remove" else [(2, oslo)]
    (certified,) = certify(plan).measurements
    assert find_move(plan, table, [(1, rome)], without)[1] == certified.sensitivity.l2_squared


def test_a_planned_strategy_is_held_to_its_certificate():
    """The strategy of running totals, as the planner makes it: the first month is the worst for a person."""
    table = sf.catalog.dataset.Table("t", None, "id", {"id": sf.Id(), "month": sf.Integer(1, 12)}, max_rows_per_unit=2)
    dataset = sf.catalog.dataset.Dataset("t", [table], sf.Budget(epsilon=9, delta=1e-6, accounting="zcdp"))
    sql = "SELECT month, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY month) AS r FROM t GROUP BY month"
    query = sf.query.bind.bind(sf.query.parse.parse(sql), dataset)
    plan = sf.planning.planner.choose_plan(query, PureDP(1), dataset, {"t": "1"}).plan
    (measurement,) = plan.measurements
    assert isinstance(measurement.quantity, Strategy)
    (certified,) = certify(plan).measurements
    ((matrix,), weight) = (measurement.quantity.matrices, 2 << 16)
    columns = list(zip(*matrix, strict=True))
    squares = [sum(entry * entry for entry in column) for column in columns]
    assert certified.sensitivity.l2_squared == max(squares) * weight**2
    assert max(squares) / min(squares) < 1.01  # all months cost the same: no accuracy is given away
    assert all(one != two for one, two in pairwise(columns))
