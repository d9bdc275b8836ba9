"""A plan that cannot run is found before a charge, from declarations alone, without reading a row or a source."""

import threading
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines import measured_plan, plan_queries
from sfumato.engines.duckdb import empty_tables
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

COLUMNS = {
    "id": sf.Id(),
    "age": sf.Integer(0, 120),
    "pay": sf.Real(-100, 9_000, nullable=False),
    "city": sf.Category(["Rome", "O'slo"]),
    "smoker": sf.Boolean(),
    "job": sf.Text(),
    "born": sf.Date("1900-01-01", "2025-12-31"),
}
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM t",
    "SELECT city, COUNT(*) AS n, SUM(pay) AS s, AVG(age) AS a FROM t GROUP BY city",
    "SELECT city, smoker, VARIANCE(pay) AS v FROM t WHERE job LIKE '%x''y%' AND born > DATE '2000-01-01' GROUP BY 1, 2",
    "SELECT SUM(CASE WHEN age > 40 THEN pay ELSE 1 END) AS s, COUNT(age) AS n FROM t WHERE pay / (age - 3) > 2",
]
PEOPLE = [
    "SELECT COUNT(DISTINCT id) AS p FROM t",
    "SELECT city, COUNT(DISTINCT id) AS p FROM t WHERE age IS NULL GROUP BY city",
]
ROWS = pa.table({
    "id": ["a", "b"], "age": [1, 2], "pay": [1.0, 2.0], "city": ["Rome", "Rome"], "smoker": [True, False],
    "job": ["x", "y"], "born": ["2000-01-01", "2001-01-01"],
})  # fmt: skip


def tables(unit):
    declared = COLUMNS if unit == "id" else {name: column for name, column in COLUMNS.items() if name != "id"}
    table = Table("t", None, unit, declared)
    return table, Dataset("t", [table], sf.Budget(epsilon=9))


def planned(question, dataset):
    return choose_plan(bind(parse(question), dataset), sf.PureDP(1), dataset, {"t": "1"}).plan


@pytest.fixture(params=[sf.ROW, "id"])
def engine(request):
    table, dataset = tables(request.param)
    made = DuckDBEngine.of_data(table, ROWS)
    made.dataset, made.questions = dataset, QUESTIONS + (PEOPLE if request.param == "id" else [])
    yield made
    made.close()


def test_what_can_be_run_passes_and_runs(engine):
    for question in engine.questions:
        plan = planned(question, engine.dataset)
        engine.check(plan)
        engine.aggregate(plan)
        ReferenceEngine({}).check(plan)


def test_what_the_engine_cannot_bind_is_refused_in_one_text(engine, monkeypatch):
    """Negative control: a lowering that is wrong."""
    right = plan_queries.lower
    for wrong in ('"no such column"', "COUNT(*) +", "no_such_function(1)"):

        def broken(plan, stored, wrong=wrong):
            class Text:
                def sql(self, **options):
                    return right(plan, stored).sql(**options).replace("COUNT(*)", wrong).replace("SUM(", f"{wrong}(")

            return Text()

        monkeypatch.setattr(plan_queries, "lower", broken)
        with pytest.raises(sf.errors.KernelFault) as caught:
            engine.check(planned(QUESTIONS[1], engine.dataset))
        assert caught.value.message == "The engine cannot run this plan."
        assert caught.value.__context__ is None
        engine._queries._ready.clear()


def read(engine, plan):
    """Measure without the one constant text that hides every failure."""
    with engine._open_reader() as reader:
        return measured_plan._read_results(engine._queries, plan, reader)


def test_two_counts_of_one_cell_are_a_fault():
    """Negative control: a lowering that groups wrongly is noticed, although both counts exist."""
    table, dataset = tables("id")
    engine = DuckDBEngine.of_data(table, ROWS)
    plan = planned(PEOPLE[1], dataset)
    read(engine, plan)
    queries = engine._queries.find(plan)
    engine._queries.keep(plan, replace(queries, people="SELECT 'Rome', 1 UNION ALL SELECT 'Rome', 2"))
    with pytest.raises(sf.errors.KernelFault, match="one cell"):
        read(engine, plan)
    with pytest.raises(sf.errors.EngineFailed):
        engine.aggregate(plan)
    elsewhere = "SELECT 'Bern', 1 UNION ALL SELECT 'Bern', 2"  # no cell of the plan
    engine._queries.keep(plan, replace(queries, people=elsewhere))
    read(engine, plan)
    engine.close()


def test_no_data_is_touched(engine):
    """The check finds the fault even if the snapshot is gone."""
    engine._connection.close()
    for question in engine.questions:
        engine.check(planned(question, engine.dataset))
    with pytest.raises(sf.errors.EngineFailed):
        engine.aggregate(planned(QUESTIONS[0], engine.dataset))


def test_no_pinned_table_is_found(engine):
    """A query is bound to the declared columns, not to those of the snapshot beside them."""
    engine._connection.execute("CREATE TABLE u (x INTEGER)")
    engine._connection.execute("SELECT x FROM u")
    engine._empty.bind("SELECT age FROM t")
    with pytest.raises(duckdb.Error):
        engine._empty.bind("SELECT x FROM u")
    with engine._empty._empty().cursor() as cursor:
        cursor.execute(f"USE {engine._empty._catalog}")
        assert cursor.sql("SELECT COUNT(*) FROM t").fetchall() == [(0,)]


def test_a_table_that_is_not_there_is_refused(engine):
    other = Dataset("t", [Table("u", None, sf.ROW, {"x": sf.Integer(0, 1)})], sf.Budget(epsilon=1))
    plan = choose_plan(bind(parse("SELECT SUM(x) AS s FROM u"), other), sf.PureDP(1), other, {"u": "1"}).plan
    with pytest.raises(sf.errors.KernelFault):
        engine.check(plan)


def test_queries_that_differ_in_literals_are_bound_once(engine, monkeypatch):
    bound = []
    made = engine._empty._empty()

    class Counted:
        def cursor(self):
            self.real = made.cursor()
            return self

        def __enter__(self):
            return self

        def __exit__(self, *failure):
            self.real.close()

        def execute(self, query):
            return self.real.execute(query)

        def sql(self, query):
            bound.append(query)
            return self.real.sql(query)

    monkeypatch.setattr(engine._empty, "_empty", Counted)
    for age in range(8, 12):
        engine.check(planned(f"SELECT COUNT(*) AS n FROM t WHERE age > {age} AND job <> 'it''s {age}'", engine.dataset))
    assert len(bound) == 1
    engine.check(planned("SELECT COUNT(*) AS n FROM t WHERE age >= 1 AND job <> 'x'", engine.dataset))
    assert len(bound) == 2
    for age in range(8, 12):  # the condition narrows what is added up, so the query has other whole numbers
        engine.check(planned(f"SELECT SUM(age) AS s FROM t WHERE age > {age}", engine.dataset))
    assert len(bound) == 3
    assert len(set(bound)) == 3


def test_queries_that_differ_in_a_name_are_bound_apart():
    """Negative control: a name may contain digits, quotes and spaces."""
    columns = {name: sf.Integer(0, 9) for name in ("x1", "x2", "a 1", "a 2", "it's 1", "it's 2")}
    table = Table("t", None, sf.ROW, columns)
    engine = DuckDBEngine.of_data(table, pa.table({name: [1] for name in columns}))
    dataset = Dataset("t", [table], sf.Budget(epsilon=9))
    for name in columns:
        engine.check(planned(f'SELECT SUM("{name}") AS s FROM t', dataset))
    assert len(engine._empty._bound) == len(columns)
    engine.close()


def test_little_is_remembered(engine, monkeypatch):
    monkeypatch.setattr(empty_tables, "MOST_REMEMBERED", 2)
    for question in engine.questions:
        engine.check(planned(question, engine.dataset))
    assert len(engine._empty._bound) == 2
    assert len(engine._queries._ready) <= plan_queries.MOST_READY


def test_many_threads_check_at_once(engine):
    plans = [planned(question, engine.dataset) for question in engine.questions]
    failures = []

    def work():
        try:
            for plan in plans * 5:
                engine.check(plan)
                engine.aggregate(plan)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
