"""Random neighbouring tables: no engine's integers move further than the kernel's sensitivity says."""

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.model import Dataset, Table
from sfumato.engines.duckdb_engine import DuckDBEngine
from sfumato.engines.reference_engine import ReferenceEngine
from sfumato.kernel.certify import certify
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

COLUMNS = {
    "id": sf.Id(),
    "age": sf.Integer(-5, 120),
    "pay": sf.Real(-100, 9_000),
    "base": sf.Real(10, 20, nullable=False),
    "city": sf.Category(["Rome", "Oslo", "Tromsø"]),
    "smoker": sf.Boolean(),
}
QUESTIONS = [
    "SELECT COUNT(*) FROM t",
    "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM t GROUP BY city",
    "SELECT COUNT(age) AS n, SUM(pay) AS s FROM t WHERE smoker",
    "SELECT SUM(base) AS s FROM t",
    "SELECT SUM(age) AS s, COUNT(DISTINCT id) AS p FROM t WHERE city <> 'Rome' OR age IS NULL",
    "SELECT city, smoker, COUNT(DISTINCT id) p, SUM(CASE WHEN age > 40 THEN pay ELSE 1 END) s FROM t GROUP BY 1, 2",
    "SELECT VARIANCE(pay) AS v, AVG(pay - base) AS d FROM t WHERE pay / (age - 3) > 2 OR pay IS NULL",
    "SELECT age > 40 AS old, AVG(pay * 0.01) AS m FROM t GROUP BY old",
]
numbers = st.one_of(
    st.none(),
    st.floats(-200, 10_000),
    st.sampled_from([float("nan"), float("inf"), float("-inf"), 1e300, -0.0, 3.0, 0.1]),
)
rows = st.fixed_dictionaries(
    {
        "age": numbers,
        "pay": numbers,
        "base": numbers,
        "city": st.sampled_from(["Rome", "Oslo", "Tromsø", "Atlantis", None, ""]),
        "smoker": st.sampled_from([True, False, None]),
    }
)
people = st.lists(st.lists(rows, min_size=1, max_size=7), min_size=0, max_size=4)


def frame(owners):
    records = [{"id": f"p{index}", **row} for index, owned in owners for row in owned]
    table = pd.DataFrame(records, columns=list(COLUMNS))
    return table.astype({"age": float, "pay": float, "base": float, "city": object, "smoker": object, "id": object})


def engines(owners, table):
    duck = DuckDBEngine.of_data(table, frame(owners))
    names = [name[0] for name in duck._connection.execute(f'DESCRIBE "{table.name}"').fetchall()]
    held = duck._connection.execute(f'SELECT * FROM "{table.name}"').fetchall()
    return duck, ReferenceEngine({table.name: [dict(zip(names, row, strict=True)) for row in held]})


def measured(owners, plan, table):
    duck, reference = engines(owners, table)
    try:
        one, two = duck.aggregate(plan)._integers, reference.aggregate(plan)._integers
    finally:
        duck.close()
    for name in one:
        assert one[name].tolist() == two[name].tolist(), "engines differ"
    return one


def planned(question, unit, neighbours):
    bounds = {} if unit is sf.ROW else {"max_rows_per_unit": 3, "max_groups_per_unit": 2}
    columns = COLUMNS if unit is not sf.ROW else {name: each for name, each in COLUMNS.items() if name != "id"}
    table = Table("t", None, unit, columns, **bounds)
    dataset = Dataset("t", [table], sf.Budget(epsilon=100), neighbours=neighbours)
    query = bind(parse(question), dataset)
    return choose_plan(query, sf.PureDP(1), dataset, "1").plan, table


def check(question, unit, neighbours, one, two):
    plan, table = planned(question, unit, neighbours)
    certificate = certify(plan)
    before, after = measured(one, plan, table), measured(two, plan, table)
    for each in certificate.measurements:
        moved = [abs(int(a) - int(b)) for a, b in zip(before[each.name], after[each.name], strict=True)]
        assert sum(moved) <= each.sensitivity.l1, (question, each.name)
        assert sum(step * step for step in moved) <= each.sensitivity.l2_squared, (question, each.name)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@settings(max_examples=12, deadline=None)
@given(people, st.lists(rows, min_size=1, max_size=9), st.lists(rows, min_size=1, max_size=9))
def test_no_neighbour_moves_more(question, neighbours, others, mine, yours):
    rest = list(enumerate(others))
    with_me, without = [*rest, (99, mine)], rest
    if neighbours == "replace-one":
        without = [*rest, (98, yours)]
    check(question, "id", neighbours, with_me, without)


@pytest.mark.parametrize("question", [each for each in QUESTIONS if "DISTINCT" not in each])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@settings(max_examples=8, deadline=None)
@given(st.lists(rows, max_size=6), rows, rows)
def test_no_row_moves_more(question, neighbours, others, mine, yours):
    rest = [(0, others)]
    without = rest if neighbours == "add-remove" else [*rest, (1, [yours])]
    check(question, sf.ROW, neighbours, [*rest, (1, [mine])], without)


def test_a_bound_that_is_too_small_is_seen():
    """Negative control: with half the sensitivity, a person with many rows is over it."""
    plan, table = planned("SELECT SUM(pay) AS s FROM t", "id", "add-remove")
    mine = [{"age": 1, "pay": 9_000, "base": 10, "city": "Rome", "smoker": True}] * 5
    (name,) = (each.name for each in plan.measurements)
    moved = int(measured([(1, mine)], plan, table)[name][0])
    (certified,) = certify(plan).measurements
    assert certified.sensitivity.l1 / 2 < moved <= certified.sensitivity.l1
    assert replace(plan, bound=plan.bound) == plan
