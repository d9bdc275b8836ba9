"""A counts table on the embedded engine equals the reference engine on rows that plain Python repeats."""

import pandas as pd
from by_cell import list_by_cell
from examples import SLOW, count_examples
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.kernel.neighbours import ROW
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

TABLE = Table("t", None, ROW, {"type": sf.Category(["a", "b"]), "x": sf.Integer(0, 9)}, count_column="n")
QUESTIONS = [
    "SELECT type, SUM(n) AS s, COUNT(*) AS c FROM t GROUP BY type",
    "SELECT SUM(n * x) AS s, AVG(x) AS m, VARIANCE(x) AS v FROM t WHERE x > 1",
    "SELECT x, SUM(n) AS s FROM t GROUP BY x",
    "SELECT MEDIAN(x) AS q, MAX(x) AS m FROM t",
]
records = st.tuples(st.sampled_from(["a", "b", None]), st.one_of(st.none(), st.integers(0, 9)), st.integers(0, 6))


def plan_of(question, neighbours):
    dataset = Dataset("d", [TABLE], sf.Budget(epsilon=9), neighbours=neighbours)
    return choose_plan(bind(parse(question), dataset), sf.PureDP(1), dataset, {"t": "1"}).plan


@settings(max_examples=count_examples(15), deadline=None, suppress_health_check=SLOW)
@given(st.lists(records, max_size=8), st.sampled_from(["add-remove", "replace-one"]))
def test_every_integer_is_the_references(rows, neighbours):
    data = pd.DataFrame(rows, columns=["type", "x", "n"]).astype({"type": object, "x": "Int64", "n": int})
    people = [{"type": name, "x": x, "n": 1} for name, x, count in rows for _ in range(count)]
    engine, reference = DuckDBEngine.of_data(TABLE, data), ReferenceEngine({"t": people})
    try:
        for question in QUESTIONS:
            plan = plan_of(question, neighbours)
            assert list_by_cell(engine.aggregate(plan), plan) == list_by_cell(reference.aggregate(plan), plan), question
    finally:
        engine.close()


def test_another_number_of_people_is_noticed():
    """Negative control: the same records with one more person differ."""
    plan = plan_of(QUESTIONS[0], "add-remove")
    data = pd.DataFrame({"type": ["a"], "x": [1], "n": [3]})
    engine = DuckDBEngine.of_data(TABLE, data)
    try:
        wrong = ReferenceEngine({"t": [{"type": "a", "x": 1, "n": 1}] * 4}).aggregate(plan)
        assert list_by_cell(engine.aggregate(plan), plan) != list_by_cell(wrong, plan)
    finally:
        engine.close()
