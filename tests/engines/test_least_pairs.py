"""At most g keys of a unit, those least by a hash: of units that have fewer, exactly as many, and more."""

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sqlglot import exp

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.measured_cells import HeldKeys, collect_aggregates, collect_texts, names_texts
from sfumato.engines.sql.lowering import lower_different
from sfumato.engines.sql.spark_dialect import SPARK
from sfumato.errors import KernelFault
from sfumato.kernel.plan import Different, WeightedKeys
from sfumato.kernel.weighted_keys import find_weight
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

GROUPS = 3
PRIME = 2**31 - 1
FIGURES = dict(zip("abcdef", "012345", strict=True))
ALONE = "SELECT job FROM t GROUP BY job"
PEOPLE = "SELECT job, COUNT(DISTINCT id) AS n FROM t GROUP BY job"
ROWS = "SELECT job, COUNT(*) AS n FROM t GROUP BY job"


def planned(question, name="t"):
    table = Table(name, None, "id", {"id": sf.Id(), "job": sf.Text()}, max_rows_per_unit=9, max_groups_per_unit=GROUPS)
    dataset = Dataset("d", [table], sf.Budget(epsilon=100, delta="1e-3"))
    text = question.replace("FROM t", f"FROM {name}")
    return choose_plan(bind(parse(text), dataset), sf.PureDP(1), dataset, {name: "1"}).plan, table


def hash_by_hand(text):
    return "".join(FIGURES.get(digit, digit) for digit in hashlib.md5(text.encode()).hexdigest())


def place_by_hand(job, unit):
    """(first * unit + second) modulo a prime."""
    numbers = hash_by_hand(f"{job}:")
    of_unit = unit if unit.isdigit() else hash_by_hand(unit)[:15]
    return (int(numbers[:15]) * int(of_unit) + int(numbers[15:30])) % PRIME


@pytest.mark.parametrize("name", ["t", "pairs", "kept", "each"])
@pytest.mark.parametrize("make_id", [str, lambda number: f"p{number}"])
@pytest.mark.parametrize("question", [ALONE, PEOPLE, ROWS])
def test_units_below_at_and_above_the_bound(question, make_id, name):
    """Unit n has n keys, and each row twice. The kept ones are computed here again, by hand."""
    held = {make_id(number): [f"job {key}" for key in range(number)] for number in range(1, 7)}
    data = pd.DataFrame([(unit, job) for unit, jobs in held.items() for job in jobs * 2], columns=["id", "job"])
    plan, table = planned(question, name=name)
    weighs = any(isinstance(one.quantity, WeightedKeys) for one in plan.measurements)
    expected: dict[tuple[str], int] = {}
    for unit, jobs in held.items():
        kept = sorted(jobs, key=lambda job: (place_by_hand(job, unit), job))[:GROUPS]
        for job in kept:
            expected[(job,)] = expected.get((job,), 0) + (find_weight(len(kept)) if weighs else 1)
    engine = DuckDBEngine.of_data(table, data)
    try:
        exact = engine.aggregate(plan)
    finally:
        engine.close()
    keys = next(one.name for one in plan.measurements if one.name.startswith("keys"))
    found = dict(zip(exact._keys, exact._integers[keys].tolist(), strict=True))
    assert found == expected


def test_no_two_tables_of_a_query_have_one_name():
    """Spark gets all tables of WITH at the front of the query, and refuses a name that is there twice."""
    columns = {"id": sf.Id(), "job": sf.Text(), "town": sf.Text()}
    dataset = Dataset("d", [Table("t", None, "id", columns)], sf.Budget(epsilon=100, delta="1e-3"))
    question = "SELECT job, COUNT(DISTINCT town) AS n, COUNT(*) AS m FROM t GROUP BY job"
    plan = choose_plan(bind(parse(question), dataset), sf.PureDP(1), dataset, {"t": "1"}).plan
    different = next(one.quantity for one in plan.measurements if isinstance(one.quantity, Different))
    names = [table.alias for table in lower_different(plan, different).find_all(exp.CTE)]
    assert len(names) == len(set(names)) == 4
    assert all(SPARK.write(lower_different(plan, different)).count(f"{name} AS (") == 1 for name in names)


def weigh_in(rounds, plan):
    return replace(plan, measurements=tuple(replace(one, quantity=WeightedKeys(rounds)) for one in plan.measurements))


def test_columns_give_what_rows_give():
    plan = weigh_in(1, planned(ALONE)[0])
    texts, units = ["b", "a", "", "ä"], [3, 2, 1, 9]
    assert names_texts(plan)
    one = collect_texts(plan, texts, np.array(units, np.int64))
    two = collect_aggregates(plan, zip(texts, units, strict=True), None, {})
    assert one._keys == two._keys
    assert {name: cells.tolist() for name, cells in one._integers.items()} == {
        name: cells.tolist() for name, cells in two._integers.items()
    }


def test_a_text_that_is_there_twice_is_refused():
    plan = weigh_in(1, planned(ALONE)[0])
    for texts in (["a", "a"], ["a", None], ["a", 1]):
        with pytest.raises(KernelFault):
            collect_texts(plan, texts, np.array([1, 1], np.int64))


def test_other_plans_are_read_by_rows():
    assert not names_texts(planned(ROWS)[0])
    assert not names_texts(planned("SELECT UPPER(job) AS j, job FROM t GROUP BY 1, 2")[0])
    with pytest.raises(KernelFault):
        collect_texts(planned(ROWS)[0], ["a"], np.array([1], np.int64))


@pytest.mark.parametrize("words", [[None] * 6, ["a", None] * 3, ["", None, "b"] * 9, ["a\x00b", None] * 9], ids=str)
@pytest.mark.parametrize("unit", [sf.ROW, "id"], ids=str)
@pytest.mark.parametrize("sql", ["SELECT w, COUNT(*) AS n FROM t GROUP BY w", "SELECT DISTINCT w FROM t"])
def test_a_missing_key_never_fails(words, unit, sql):
    """NULL is no key. A failure because of one would tell that somebody has none."""
    columns = {"w": sf.Text()} if unit is sf.ROW else {"w": sf.Text(), "id": sf.Id()}
    data = pa.table({"w": pa.array(words, pa.string()), "id": [str(place) for place in range(len(words))]})
    data = data.select(list(columns))
    with sf.protect(data, name="t", unit=unit, columns=columns, budget=sf.Budget(epsilon=900, delta="0.9")) as curator:
        answer = curator.ask(sql, epsilon=400, delta="0.1")
    assert {row["w"] for row in answer.rows} == {word for word in words if word is not None}


def test_holders_of_one_key_come_in_one_row():
    """In two rows of one key, a person could be there twice. A key that is none is left out."""
    plan = weigh_in(2, planned(ALONE)[0])
    exact = collect_aggregates(plan, [("b", ["p", "q"]), (None, ["p"]), ("a", ["q"])], None, {})
    assert exact._keys == (("b",), ("a",))
    assert exact._integers[plan.measurements[0].name].tolist() == [find_weight(1) + find_weight(2), find_weight(2)]
    with pytest.raises(KernelFault):
        collect_aggregates(plan, [("b", ["p"]), ("b", ["p"])], None, {})
    with pytest.raises(KernelFault):
        collect_aggregates(weigh_in(1, plan), HeldKeys([("b",)], np.array([1]), np.array([0])), None, {})
