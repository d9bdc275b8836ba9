"""Neighbours of counts tables: if one count differs by 1, no integer changes by more than is certified."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from by_cell import list_by_cell
from examples import SLOW, count_examples
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.kernel.certify import certify
from sfumato.kernel.neighbours import ROW
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

COLUMNS = {"type": sf.Category(["a", "b"]), "x": sf.Real(2, 10), "y": sf.Integer(3, 9, nullable=False)}
QUESTIONS = [
    "SELECT SUM(n) AS s FROM t",
    "SELECT type, SUM(n) AS s FROM t GROUP BY type",
    "SELECT SUM(n * 2) AS s, COUNT(*) AS c FROM t",
    "SELECT AVG(x) AS m, SUM(y) AS s, VARIANCE(y) AS v FROM t",
    "SELECT type, SUM(x * n) AS s FROM t WHERE y > 4 GROUP BY type",
    "SELECT MEDIAN(x) AS q, MAX(y) AS m FROM t",
    "SELECT y, SUM(n) AS s FROM t GROUP BY y",
]
PURE, GAUSS = sf.PureDP(1), sf.ZCDP(1)
records = st.tuples(
    st.sampled_from(["a", "b", "z", None]),
    st.one_of(st.none(), st.floats(0, 12), st.just(float("nan"))),
    st.integers(0, 12),
    st.integers(0, 7),
)


def declare(neighbours="add-remove", most=None):
    columns = COLUMNS if most is None else COLUMNS | {"n": sf.Integer(0, most)}
    table = Table("t", None, ROW, columns, count_column="n")
    return table, Dataset("d", [table], sf.Budget(epsilon=100, delta=1e-6), neighbours=neighbours)


def plan_of(question, dataset, loss=PURE):
    loss = PURE if "MEDIAN" in question else loss
    return choose_plan(bind(parse(question), dataset), loss, dataset, {"t": "1"}).plan


def as_source(rows, library, folder):
    names = ["type", "x", "y", "n"]
    data = pd.DataFrame(rows, columns=names).astype({"type": object, "x": float, "y": int, "n": object})
    if library == "object":
        return data
    data["n"] = data["n"].astype(np.float64 if library == "float" else np.int64)
    if library == "csv":
        data.to_csv(folder / "t.csv", index=False)
        return str(folder / "t.csv")
    return pl.from_pandas(data) if library == "polars" else data


def measure(plans, table, data):
    engine = DuckDBEngine.of_data(table, data)
    try:
        return [list_by_cell(engine.aggregate(plan), plan) for plan in plans]
    finally:
        engine.close()


def compare(plans, table, before, after):
    """How far each measurement moves, and how far it is certified to move."""
    for plan, one, two in zip(plans, measure(plans, table, before), measure(plans, table, after), strict=True):
        moved = dict.fromkeys((measurement.name for measurement in plan.measurements), 0)
        for where in one.keys() | two.keys():
            moved[where[0]] += abs(one.get(where, 0) - two.get(where, 0))
        for part in certify(plan).measurements:
            yield plan, part.name, moved[part.name], part.sensitivity.l1


@settings(max_examples=count_examples(12), deadline=None, suppress_health_check=SLOW)
@given(
    rows=st.lists(records, max_size=6), mine=records, most=st.sampled_from([None, 3]),
    loss=st.sampled_from([PURE, GAUSS]), library=st.sampled_from(["pandas", "polars", "float", "object", "csv"]),
    apart=st.booleans(),
)  # fmt: skip
def test_one_person_more_is_one_row_more(tmp_path_factory, rows, mine, most, loss, library, apart):
    """One count is larger by 1, in its own record or in a record that is added for it."""
    table, dataset = declare(most=most)
    plans, folder = [plan_of(question, dataset, loss) for question in QUESTIONS], tmp_path_factory.mktemp("counts")
    *values, count = mine
    one_more = [(*values, count), (*values, 1)] if apart else [(*values, count + 1)]
    before = as_source([*rows, mine], library, folder)
    (folder / "after").mkdir()
    after = as_source([*one_more, *rows[::-1]], library, folder / "after")
    for plan, name, far, most_moved in compare(plans, table, before, after):
        assert far <= most_moved, (plan, name)


@settings(max_examples=count_examples(12), deadline=None, suppress_health_check=SLOW)
@given(rows=st.lists(records, max_size=6), mine=records, yours=records, loss=st.sampled_from([PURE, GAUSS]))
def test_one_person_who_moves_is_one_row_replaced(tmp_path_factory, rows, mine, yours, loss):
    table, dataset = declare("replace-one")
    plans = [plan_of(question, dataset, loss) for question in QUESTIONS]
    before = [*rows, (*mine[:3], mine[3] + 1), yours]
    after = [*rows, mine, (*yours[:3], yours[3] + 1)]
    folder = tmp_path_factory.mktemp("counts")
    for plan, name, far, most_moved in compare(
        plans, table, *(as_source(side, "pandas", folder) for side in (before, after))
    ):
        assert far <= most_moved, (plan, name)


@pytest.mark.parametrize("nothing", [0, -4, None, "x", 2.5, float("nan")])
def test_a_record_without_people_is_no_record(tmp_path, nothing):
    table, dataset = declare()
    plans = [plan_of(QUESTIONS[1], dataset)]
    rows = [("a", 1.0, 4, 3), ("b", 1.0, 4, 2)]
    with_it = as_source([*rows, ("b", 7.0, 8, nothing)], "object", tmp_path)
    assert measure(plans, table, with_it) == measure(plans, table, as_source(rows, "object", tmp_path))


def test_the_certificate_is_reached():
    """Negative control: one person does move SUM(n) by 1, and two people move it too far."""
    table, dataset = declare()
    plans = [plan_of(QUESTIONS[0], dataset)]
    one, two, three = (as_source([("a", 1.0, 4, count)], "pandas", None) for count in (1, 2, 3))
    assert [found[2:] for found in compare(plans, table, one, two)] == [(1, 1)]
    assert [found[2:] for found in compare(plans, table, one, three)] == [(2, 1)]
