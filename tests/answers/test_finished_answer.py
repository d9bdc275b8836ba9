"""What is computed from released rows: it sees only these, costs nothing, and keeps intervals honest."""

import copy
import pickle
from decimal import Decimal

import duckdb
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import QueryError
from sfumato.query.bind import bind
from sfumato.query.parse import parse
from sfumato.query.released_tables import check_finish, run_finish

CITIES = ["Rome", "Oslo", "Lima"]
COLUMNS = {"id": sf.Id(), "city": sf.Category(CITIES), "age": sf.Integer(0, 99), "job": sf.Text()}
BY_CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"


@pytest.fixture
def people():
    data = pd.DataFrame(
        {
            "id": range(600),
            "city": [CITIES[row % 3 if row < 500 else 0] for row in range(600)],
            "age": [row % 90 for row in range(600)],
            "job": ["x"] * 600,
        }
    )
    return sf.protect(
        data, name="people", unit="id", columns=COLUMNS, budget=sf.Budget(epsilon=20, delta="1e-3"),
        max_rows_per_unit=1,
    )  # fmt: skip


def test_a_finish_is_computed_from_the_released_rows_alone(people):
    """The stored release of the plain question gives the same finished rows, for nothing."""
    plain = people.ask(BY_CITY, epsilon=1)
    shares = people.ask(
        "SELECT city, COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY city",
        epsilon=1,
    )
    assert shares.cost.epsilon == 0
    assert shares.cached
    total = sum(row["n"] for row in plain.rows)
    assert [row["n"] for row in shares.rows] == [row["n"] for row in plain.rows]
    assert [row["share"] for row in shares.rows] == pytest.approx([row["n"] / total for row in plain.rows], rel=1e-2)


def test_an_outer_select_keeps_intervals_and_widens_them_if_it_selects_by_noise(people):
    plain = people.ask(BY_CITY, epsilon=1)
    every = people.ask(f"SELECT city, n FROM ({BY_CITY}) t", epsilon=1)
    some = people.ask(f"SELECT city, n FROM ({BY_CITY}) t WHERE n > 10 ORDER BY n DESC LIMIT 1", epsilon=1)
    by_key = people.ask(f"SELECT city, n FROM ({BY_CITY}) t WHERE city <> 'Rome' ORDER BY city", epsilon=1)
    assert every.intervals == plain.intervals
    first = next(place for place, row in enumerate(plain.rows) if row["city"] == some.rows[0]["city"])
    low, high = some.intervals[0]["n"]
    assert low < plain.intervals[first]["n"][0]
    assert high > plain.intervals[first]["n"][1]
    named = {row["city"]: ends for row, ends in zip(plain.rows, plain.intervals, strict=True)}
    assert [named[row["city"]] for row in by_key.rows] == by_key.intervals


def test_several_releases_are_one_charge_and_one_answer(people):
    sql = "SELECT city, COUNT(*) AS n FROM people GROUP BY ROLLUP (city)"
    seen = people.preview(sql, epsilon=1)
    assert seen.cost.epsilon == 1
    assert seen.margins["n"] == pytest.approx(2 * people.preview(BY_CITY, epsilon=1).margins["n"], rel=0.05)
    answer = people.ask(sql, epsilon=1)
    assert answer.cost.epsilon == 1
    assert people.budget.spent.epsilon == 1
    assert [row["city"] for row in answer.rows] == [*CITIES, None]
    assert all("n" in ends for ends in answer.intervals)
    assert "divided equally among 2 releases" in answer.explain()
    assert len(answer.disclosure["parts"]) == 2
    assert people.ask(sql, epsilon=1).cost.epsilon == 0


def test_a_question_of_several_releases_is_refused_where_one_is_needed(people):
    sql = "SELECT city, COUNT(*) AS n FROM people GROUP BY ROLLUP (city)"
    for call in (
        lambda: people.upgrade(sql, epsilon=1),
        lambda: people.plan([(sql, 20)]),
    ):
        with pytest.raises(sf.errors.InvalidParameter, match="one release"):
            call()
    assert people.budget.spent.epsilon == 0


def test_a_finished_answer_can_be_pickled_copied_and_shown(people):
    answer = people.ask("SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM people GROUP BY city", 1)
    for other in (pickle.loads(pickle.dumps(answer)), copy.copy(answer)):
        assert (other.rows, other.intervals, other.explain()) == (answer.rows, answer.intervals, answer.explain())
    assert answer.keys == ("city",)
    assert "n_low" in answer.to_pandas(intervals=True)
    assert "No interval is stated for r" in answer._repr_html_()


CROWD = pd.DataFrame([(f"p{n}", "abc"[n % 3], "uv"[n % 2]) for n in range(3000)], columns=["id", "job", "town"])
BUDGETS = [
    sf.Budget(epsilon=4, delta="1e-4"),
    sf.Budget(rho=1, delta="1e-4", accounting="zcdp"),
    sf.Budget(mu=2, delta="1e-4", accounting="gdp"),
]


@pytest.fixture(params=BUDGETS, ids=["basic", "zcdp", "gdp"])
def crowd(request):
    columns = {"id": sf.Id(), "job": sf.Text(), "town": sf.Text()}
    with sf.protect(CROWD, name="crowd", unit="id", columns=columns, budget=request.param) as curator:
        yield curator


@pytest.mark.parametrize(
    ("sets", "shown"),
    [("ROLLUP (job, town)", 10), ("CUBE (job, town)", 12), ("GROUPING SETS ((job), (town), ())", 6)],
)
def test_undeclared_keys_share_one_delta_among_several_releases(crowd, sets, shown):
    """Epsilon and delta are split once: the question takes a hundredth of the budget's delta, as any other."""
    sql = f"SELECT job, town, COUNT(*) AS n FROM crowd GROUP BY {sets}"
    said = crowd.preview(sql, epsilon=2)
    assert (said.cost.delta, said.questions_left_by_delta) == (Decimal("0.000001"), 100)
    answer = crowd.ask(sql, epsilon=2)
    assert len(answer.rows) == shown
    assert answer.cost == said.cost == crowd.budget.spent
    truth = {(job, town): len(rows) for (job, town), rows in CROWD.groupby(["job", "town"])}
    for row in answer.rows:
        alike = [n for (job, town), n in truth.items() if row["job"] in (job, None) and row["town"] in (town, None)]
        assert abs(row["n"] - sum(alike)) < 300
    again = crowd.ask(sql, epsilon=2)
    assert (again.cached, again.rows, again.intervals) == (True, answer.rows, answer.intervals)
    assert crowd.budget.spent == answer.cost


def test_a_given_delta_is_split_exactly(crowd):
    sql = "SELECT job, town, COUNT(*) AS n FROM crowd GROUP BY CUBE (job, town)"
    assert crowd.preview(sql, epsilon=1, delta="1e-5").cost.delta == Decimal("0.00001")
    assert crowd.ask(sql, epsilon=1, delta="1e-5").cost.delta == Decimal("0.00001")


def test_without_a_delta_undeclared_keys_are_refused():
    sql = "SELECT job, COUNT(*) AS n FROM crowd GROUP BY ROLLUP (job)"
    columns = {"id": sf.Id(), "job": sf.Text()}
    with sf.protect(CROWD, name="crowd", unit="id", columns=columns, budget=sf.Budget(epsilon=1)) as curator:
        with pytest.raises(sf.errors.InvalidParameter, match="where a group key is undeclared"):
            curator.ask(sql, epsilon=1)
        assert curator.budget.spent.epsilon == 0


@pytest.mark.parametrize(("accounting", "amount"), [("zcdp", "rho"), ("gdp", "mu")])
def test_a_budget_without_a_delta_for_keys_says_how_to_declare_one(accounting, amount):
    """Under these accountings, epsilon and delta become one amount, and no delta is left for keys."""
    budget = sf.Budget(epsilon=4, delta="1e-4", accounting=accounting)
    columns = {"id": sf.Id(), "job": sf.Text()}
    with sf.protect(CROWD, name="crowd", unit="id", columns=columns, budget=budget) as curator:
        sql = "SELECT job, COUNT(*) AS n FROM crowd GROUP BY job"
        assert curator.preview(sql, epsilon=1).questions_left_by_delta == 0
        with pytest.raises(sf.errors.BudgetExceeded, match=f"declare one with {amount} and a delta"):
            curator.ask(sql, epsilon=1)


def test_sql_over_results_can_read_nothing_else(tmp_path):
    """Negative control of the analysis of names: even SQL that was never allowed finds no file and no setting."""
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    tables = ((("n", "BIGINT"),),)
    for sql in (
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM read_csv('{secret}')",
        "SET threads = 2",
        "INSTALL httpfs",
    ):
        with pytest.raises(QueryError):
            check_finish(sql, tables)
        with pytest.raises(QueryError):
            run_finish(sql, tables, [[[1]]])
    assert duckdb.connect().execute(f"SELECT * FROM '{secret}'").fetchall() == [(1,)]


def test_a_fault_that_only_rows_show_is_refused_before_any_charge(people):
    with pytest.raises(QueryError):
        people.ask("SELECT city, SUBSTR(COUNT(*), 1, 'x') AS s FROM people GROUP BY city", epsilon=1)
    assert people.budget.spent.epsilon == 0


def test_names_and_texts_of_analysts_stay_texts(people):
    """A quote in a name or a text does not end it."""
    answer = people.ask(
        "SELECT city AS \"a\"\"; DROP\", '''; --' AS t, COUNT(*) AS n FROM people GROUP BY city", epsilon=1
    )
    assert list(answer.rows[0]) == ['a"; DROP', "t", "n"]
    assert answer.rows[0]["t"] == "'; --"


def test_the_second_table_of_a_left_join_counts_only_people_with_a_partner(tmp_path):
    pd.DataFrame({"id": range(300)}).to_csv(tmp_path / "people.csv", index=False)
    pd.DataFrame({"id": [row // 2 for row in range(200)]}).to_csv(tmp_path / "visits.csv", index=False)
    (tmp_path / "catalog.toml").write_text("""
[dataset]
name = "d"
[budget]
epsilon = "9000"
[tables.people]
source = "people.csv"
unit_column = "id"
columns.id = { type = "id" }
[tables.visits]
source = "visits.csv"
unit_column = "id"
max_rows_per_unit = 2
columns.id = { type = "id" }
""")
    opened = sf.open(str(tmp_path))
    joined = "FROM people p LEFT JOIN visits v ON p.id = v.id"
    for sql, wanted in (
        (f"SELECT COUNT(DISTINCT v.id) AS n {joined}", [100]),
        (f"SELECT COUNT(DISTINCT p.id) AS n {joined}", [300]),
        (f"SELECT COUNT(DISTINCT p.id) AS n, COUNT(DISTINCT v.id) AS m {joined}", [300, 100]),
        (f"SELECT COUNT(v.id) AS n, COUNT(*) AS m {joined}", [200, 400]),
        (f"SELECT COUNT(*) AS n {joined} WHERE v.id IS NULL", [200]),
    ):
        assert list(opened.ask(sql, epsilon=500).rows[0].values()) == wanted, sql


def test_a_join_of_subqueries_repeats_no_row():
    """A public list with repeated values would repeat rows, so it is refused."""
    from sfumato.catalog.dataset import Dataset, Table

    tables = [
        Table("t", None, sf.ROW, {"k": sf.Category(["a", "b"]), "x": sf.Integer(0, 9)}),
        Table("many", None, None, {"k": sf.Category(["a", "b"])}, public=True, multiplicities=(("k", 2),)),
        Table("one", None, None, {"k": sf.Category(["a", "b"])}, public=True, multiplicities=(("k", 1),)),
    ]
    dataset = Dataset("t", tables, sf.Budget(epsilon=1))
    assert bind(parse("SELECT COUNT(*) FROM t WHERE k IN (SELECT k FROM one)"), dataset).filters
    with pytest.raises(QueryError, match="Several rows"):
        bind(parse("SELECT COUNT(*) FROM t WHERE k IN (SELECT k FROM many)"), dataset)
