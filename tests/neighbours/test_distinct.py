"""Different values: no neighbour moves their numbers and sums further than the kernel says, on both engines."""

from dataclasses import replace

import pandas as pd
import pytest
from examples import SLOW, count_examples
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.kernel.certify import certify
from sfumato.kernel.plan import Distinct
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

COLUMNS = {
    "id": sf.Id(),
    "age": sf.Integer(-2, 9),
    "pay": sf.Real(-100, 1e9),
    "city": sf.Category(["Rome", "Oslo", "Tromsø"]),
    "smoker": sf.Boolean(),
    "job": sf.Text(),
    "day": sf.Date("2024-01-01", "2024-01-20"),
    "code": sf.Id(),
}
QUESTIONS = [
    "SELECT COUNT(DISTINCT age) AS n FROM t",
    "SELECT COUNT(DISTINCT job) AS n, COUNT(DISTINCT smoker) AS s FROM t WHERE age > 1 OR age IS NULL",
    "SELECT city, COUNT(DISTINCT job) AS n, COUNT(DISTINCT smoker) AS s, COUNT(*) AS c FROM t GROUP BY city",
    "SELECT COUNT(DISTINCT pay) AS n, COUNT(DISTINCT pay / age) AS r, COUNT(DISTINCT 1e60 * pay) AS f FROM t",
    "SELECT COUNT(DISTINCT city, smoker, day) AS n, COUNT(DISTINCT code) AS c FROM t",
    "SELECT smoker, SUM(DISTINCT age) AS s, AVG(DISTINCT pay) AS a FROM t GROUP BY smoker",
    "SELECT SUM(DISTINCT age) AS s, SUM(DISTINCT age + 3) AS p FROM t",
    "SELECT job, COUNT(DISTINCT age) AS n, COUNT(DISTINCT day) AS d FROM t GROUP BY job",
    "SELECT COUNT(DISTINCT a.job) AS n FROM t AS a JOIN t AS b ON a.id = b.id AND a.city = b.city",
    "SELECT COUNT(DISTINCT x) AS n FROM (SELECT id, age AS x FROM t UNION ALL SELECT id, pay AS x FROM t) AS u",
    "SELECT COUNT(DISTINCT n) AS n FROM (SELECT id, COUNT(*) AS n FROM t GROUP BY id) AS u",
]
OF_ROWS = [question for question in QUESTIONS if "id" not in question]
numbers = st.sampled_from([None, float("nan"), float("inf"), -0.0, 0.0, 1.0, 2.0, 3.5, 7.0, 1e300, -50.25])
rows = st.fixed_dictionaries(
    {
        "age": numbers,
        "pay": numbers,
        "city": st.sampled_from(["Rome", "Oslo", "Tromsø", "Atlantis", None]),
        "smoker": st.sampled_from([True, False, None]),
        "job": st.sampled_from(["", "a", "A", "ä", "a:b", "NULL", None]),
        "day": st.sampled_from(["2024-01-03", "2024-01-09", "2031-01-01", None]),
        "code": st.sampled_from(["1", "01", "x", None]),
    }
)
people = st.lists(st.lists(rows, min_size=1, max_size=5), max_size=3)


def frame(owners):
    records = [{"id": f"p{index}", **row} for index, owned in owners for row in owned]
    table = pd.DataFrame(records, columns=list(COLUMNS)).astype(object)
    return table.astype({"age": float, "pay": float})


def planned(question, unit, neighbours):
    bounds = {} if unit is sf.ROW else {"max_rows_per_unit": 3, "max_groups_per_unit": 2}
    columns = {name: column for name, column in COLUMNS.items() if name != "id" or unit is not sf.ROW}
    table = Table("t", None, unit, columns, **bounds)
    dataset = Dataset("t", [table], sf.Budget(epsilon=100, delta="1e-3"), neighbours=neighbours)
    return choose_plan(bind(parse(question), dataset), sf.PureDP(1), dataset, {"t": "1"}).plan, table


def measure(owners, plan, table):
    """The integers of each measurement by cell, on DuckDB; the reference engine has the same."""
    duck = DuckDBEngine.of_data(table, frame(owners))
    try:
        names = [name[0] for name in duck._connection.execute('DESCRIBE "t"').fetchall()]
        held = duck._connection.execute('SELECT * FROM "t"').fetchall()
        duck.check(plan)
        one = duck.aggregate(plan)
    finally:
        duck.close()
    two = ReferenceEngine({"t": [dict(zip(names, row, strict=True)) for row in held]}).aggregate(plan)
    found = [by_cell(exact) for exact in (one, two)]
    for name, cells in found[1].items():  # the reference also lists keys that nobody is counted for
        assert found[0][name] == {cell: number for cell, number in cells.items() if cell in found[0][name]}
    return found[0]


def by_cell(exact):
    keys = exact._keys if exact._keys is not None else None
    return {
        name: {keys[place] if keys is not None else place: int(number) for place, number in enumerate(integers)}
        for name, integers in exact._integers.items()
    }


def check(question, unit, neighbours, one, two):
    plan, table = planned(question, unit, neighbours)
    before, after = measure(one, plan, table), measure(two, plan, table)
    for measurement in certify(plan).measurements:
        first, second = before[measurement.name], after[measurement.name]
        if plan.cells is None:  # a key that only one of the two has is released by no other measurement than the keys
            second = {cell: number for cell, number in second.items() if cell in first}
            first = {cell: number for cell, number in first.items() if cell in second}
        moved = [abs(first.get(cell, 0) - second.get(cell, 0)) for cell in {*first, *second}]
        assert sum(moved) <= measurement.sensitivity.l1, (question, measurement.name)
        assert sum(step * step for step in moved) <= measurement.sensitivity.l2_squared, (question, measurement.name)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@settings(max_examples=count_examples(8), deadline=None, suppress_health_check=SLOW)
@given(people, st.lists(rows, min_size=1, max_size=9), st.lists(rows, min_size=1, max_size=9))
def test_no_neighbour_moves_more_different_values(question, neighbours, others, mine, yours):
    rest = list(enumerate(others))
    without = rest if neighbours == "add-remove" else [*rest, (98, yours)]
    check(question, "id", neighbours, [*rest, (99, mine)], without)


@pytest.mark.parametrize("question", OF_ROWS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@settings(max_examples=count_examples(6), deadline=None, suppress_health_check=SLOW)
@given(st.lists(rows, max_size=6), rows, rows)
def test_no_row_moves_more_different_values(question, neighbours, others, mine, yours):
    without = [(0, others)] if neighbours == "add-remove" else [(0, others), (1, [yours])]
    check(question, sf.ROW, neighbours, [(0, others), (1, [mine])], without)


def person(job, age=1, smoker=True, city="Rome"):
    return {"age": age, "pay": 1.0, "city": city, "smoker": smoker, "job": job, "day": None, "code": None}


def test_the_bounds_are_reached():
    """Negative control: a person with many values uses the whole sensitivity, and half of it would be too little."""
    plan, table = planned("SELECT COUNT(DISTINCT job) AS n, COUNT(DISTINCT smoker) AS s FROM t", "id", "add-remove")
    mine = [person(f"job {index}", smoker=index % 2 == 0) for index in range(20)]
    found = measure([(1, mine)], plan, table)
    assert [cells[0] for cells in found.values()] == [3, 2]
    assert [int(one.sensitivity.l1) for one in certify(plan).measurements] == [3, 2]


def test_replaced_people_of_two_groups_reach_the_bound():
    plan, table = planned("SELECT city, COUNT(DISTINCT job) AS n FROM t GROUP BY city", "id", "replace-one")
    one, two = ([person(f"job {index}", city=city) for index in range(9)] for city in ("Rome", "Oslo"))
    before, after = (measure([(1, mine)], plan, table)["distinct1"] for mine in (one, two))
    (certified,) = certify(plan).measurements
    assert sum(abs(before[cell] - after[cell]) for cell in before) == 6 == certified.sensitivity.l1
    assert sum((before[cell] - after[cell]) ** 2 for cell in before) == 18 == certified.sensitivity.l2_squared


@pytest.mark.parametrize(
    ("question", "l1", "l2_squared"),
    [
        ("SELECT city, COUNT(DISTINCT smoker) AS n FROM t GROUP BY city", 3, 6),
        ("SELECT COUNT(DISTINCT smoker) AS n FROM t", 2, 4),
        ("SELECT COUNT(DISTINCT smoker, city) AS n FROM t", 3, 9),
        ("SELECT COUNT(DISTINCT smoker, job) AS n FROM t", 3, 9),
        ("SELECT SUM(DISTINCT age) AS s FROM t", 27, 27**2),
        ("SELECT SUM(DISTINCT smoker) AS s FROM t", 2, 4),
    ],
)
def test_lists_bound_what_one_person_adds(question, l1, l2_squared):
    plan, _ = planned(question, "id", "add-remove")
    (certified,) = certify(plan).measurements
    assert (certified.sensitivity.l1, certified.sensitivity.l2_squared) == (l1, l2_squared)


def test_values_outside_a_list_are_not_counted():
    """The plan's list is the bound, whatever the rows hold: here a plan has a shorter list than the catalog."""
    plan, table = planned("SELECT COUNT(DISTINCT city) AS n FROM t", "id", "add-remove")
    (measurement,) = plan.measurements
    key = replace(measurement.quantity.keys[0], values=("Rome",))
    narrowed = replace(plan, measurements=(replace(measurement, quantity=Distinct((key,))),))
    owners = [(1, [person("a", city=city) for city in ("Rome", "Oslo", "Tromsø")])]
    assert measure(owners, plan, table)["distinct1"][0] == 3
    assert measure(owners, narrowed, table)["distinct1"][0] == 1
    assert certify(narrowed).measurements[0].sensitivity.l1 == 1


def test_the_values_of_others_do_not_change_which_are_kept():
    """A person's kept values depend on their own rows alone."""
    plan, table = planned("SELECT COUNT(DISTINCT job) AS n FROM t", "id", "add-remove")
    mine = [person(f"job {index}") for index in range(9)]
    alone = measure([(1, mine)], plan, table)["distinct1"][0]
    same = [(index, [person(f"job {index}")]) for index in range(2, 11)]
    together = measure([(1, mine), *same], plan, table)["distinct1"][0]
    assert alone == 3
    assert 9 <= together <= 12


def test_null_zero_and_letters():
    """NULL is not counted, -0.0 is 0.0, and texts differ by their letters."""
    question = "SELECT COUNT(DISTINCT pay) AS p, COUNT(DISTINCT job) AS j, COUNT(DISTINCT age) AS a FROM t"
    plan, table = planned(question, "id", "add-remove")
    values = [(0.0, "a", 1), (-0.0, "A", None), (None, None, 1.0), (5.0, "", 30)]
    owners = [(index, [{**person(job, age), "pay": pay}]) for index, (pay, job, age) in enumerate(values)]
    assert [cells[0] for cells in measure(owners, plan, table).values()] == [2, 3, 2]


def test_sums_of_different_values_are_clamped_and_centred():
    plan, table = planned("SELECT SUM(DISTINCT age) AS s, AVG(DISTINCT age) AS a FROM t", "id", "add-remove")
    owners = [(index, [person("a", age)]) for index, age in enumerate([-2, 9, 9, 4, 99, None])]
    found = measure(owners, plan, table)
    centre = (-2 + 9) // 2
    assert found["distinctsum1"][0] == -2 + 9 + 4
    assert found["distinctsum2"][0] == (-2 - centre) + (9 - centre) + (4 - centre)
    assert found["distinct3"][0] == 3
