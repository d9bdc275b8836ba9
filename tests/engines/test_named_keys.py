"""Undeclared keys: the engine groups at most 8 r rows of one person, and at most g keys of one person leave it."""

from dataclasses import replace

import pandas as pd
import pytest
from by_cell import list_by_cell
from sqlglot import exp

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.engines.sql.lowering import lower_people
from sfumato.engines.sql.source_sql import lower_from
from sfumato.errors import KernelFault
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse
from sfumato.query.source_outline import check_work

GROUPS, PEOPLE, TEXTS = 3, 40, 5_000
ROWS_READ = 40  # of one person: 8 times max_rows_per_unit
TABLE = Table(
    "t", None, "p", {"p": sf.Id(), "job": sf.Text(), "x": sf.Real(0, 9), "site": sf.Integer(1, 2)},
    max_rows_per_unit=5, max_groups_per_unit=GROUPS,
)  # fmt: skip
DATASET = Dataset("t", [TABLE], sf.Budget(epsilon=9, delta="1e-6"))
QUESTIONS = [
    "SELECT job, COUNT(*) AS n FROM t GROUP BY job",
    "SELECT job, site, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a, STDDEV(x) AS d FROM t GROUP BY job, site",
    "SELECT job, COUNT(DISTINCT p) AS people FROM t GROUP BY job",
    "SELECT job, COUNT(*) AS n, MODE(site) AS m FROM t GROUP BY job",
    "SELECT job, MODE(site) AS m FROM t WHERE x > 1 GROUP BY job",
]


def engine_of(texts):
    """Many people with a few jobs each, and one with very many texts."""
    rows = [{"p": person, "job": f"job {(person + visit) % 7}", "x": float(visit), "site": 1 + visit % 2}
            for person in range(PEOPLE) for visit in range(4)]  # fmt: skip
    rows += [
        {"p": PEOPLE, "job": f"text {visit}", "x": float(visit % 9), "site": 1 + visit % 2} for visit in range(texts)
    ]
    return DuckDBEngine.of_data(TABLE, pd.DataFrame(rows, columns=list(TABLE.columns)))


@pytest.fixture(scope="module")
def crowded():
    return engine_of(TEXTS)


def plan_of(engine, sql):
    return choose_plan(bind(parse(sql), DATASET), sf.PureDP(1), DATASET, engine.versions).plan


def list_keys_fetched(engine, plan):
    """The keys in the result of each query of the plan. The first column of a key is the job."""
    fetched = [engine._connection.execute(query).fetchall() for query in engine._queries.find(plan)]
    return [{row[: len(plan.keys)] for row in rows} for rows in fetched]


@pytest.mark.parametrize("sql", QUESTIONS)
def test_at_most_so_many_keys_of_each_person_leave_the_engine(crowded, sql):
    fetched = list_keys_fetched(crowded, plan_of(crowded, sql))
    assert fetched
    for keys in fetched:
        assert len({job for job, *_ in keys if job.startswith("text")}) <= GROUPS
        assert any(job.startswith("job") for job, *_ in keys)


def test_keys_that_are_not_bounded_would_all_leave(crowded):
    """Negative control: without the bound on groups, a key for each of the person's rows that are read is fetched."""
    plan = replace(plan_of(crowded, QUESTIONS[0]), max_groups_per_unit=10**6)
    assert max(map(len, list_keys_fetched(crowded, plan))) == ROWS_READ + 7


@pytest.mark.parametrize("sql", QUESTIONS)
def test_one_persons_rows_are_bounded_before_they_are_grouped(crowded, sql):
    """Otherwise the answering time would reveal that one person has 200,000 texts."""
    (read,) = crowded._connection.execute(
        exp.select("COUNT(*)").from_(lower_from(plan_of(crowded, sql), {"job"})).sql("duckdb")
    ).fetchone()
    assert read == 4 * PEOPLE + ROWS_READ


def test_a_plan_that_groups_all_rows_of_a_person_is_refused(crowded):
    plan = plan_of(crowded, QUESTIONS[0])
    check_work(plan.source, groups_undeclared_keys=True)
    with pytest.raises(KernelFault, match="read a bounded number of rows"):
        check_work(replace(plan.source, most_met=None), groups_undeclared_keys=True)


def test_explain_says_how_many_rows_of_a_person_are_read():
    columns = {"p": sf.Id(), "job": sf.Text(), "city": sf.Category(["Rome"])}
    data = pd.DataFrame({"p": [1, 2], "job": ["a", "b"], "city": ["Rome", "Rome"]})
    with sf.protect(
        data, name="t", unit="p", columns=columns, budget=sf.Budget(epsilon=9, delta="1e-6"), max_rows_per_unit=5
    ) as curator:
        told = str(curator.ask("SELECT job, COUNT(*) AS n FROM t GROUP BY job", epsilon=1).explain())
        declared = str(curator.ask("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=1).explain())
    assert "at most 40 rows per person from t" in told
    assert "rows per person from t" not in declared


@pytest.mark.parametrize("sql", QUESTIONS)
def test_what_is_fetched_is_what_the_reference_measures(sql):
    engine = engine_of(60)
    plan = plan_of(engine, sql)
    names = [row[0] for row in engine._connection.execute('DESCRIBE "t"').fetchall()]
    held = [dict(zip(names, row, strict=True)) for row in engine._connection.execute('SELECT * FROM "t"').fetchall()]
    wanted = list_by_cell(ReferenceEngine({"t": held}).aggregate(plan), plan)
    assert wanted
    assert list_by_cell(engine.aggregate(plan), plan) == wanted


def test_which_keys_leave_depends_on_that_persons_rows_alone():
    """Adding or removing another person does not change the keys in which the person with many texts is counted."""
    kept = []
    for others in (range(PEOPLE), range(PEOPLE // 2)):
        rows = [{"p": person, "job": "job", "x": 1.0, "site": 1} for person in others]
        rows += [{"p": PEOPLE, "job": f"text {visit}", "x": 1.0, "site": 1} for visit in range(500)]
        engine = DuckDBEngine.of_data(TABLE, pd.DataFrame(rows, columns=list(TABLE.columns)))
        found = engine._connection.execute(lower_people(plan_of(engine, QUESTIONS[2])).sql("duckdb")).fetchall()
        kept.append({key for key, _ in found if key.startswith("text")})
    assert kept[0] == kept[1]
    assert len(kept[0]) == GROUPS
