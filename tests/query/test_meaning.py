"""The meaning of SQL: bound queries, their measurements, and their answers on both engines."""

import pandas as pd
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.errors import MissingBounds, QueryError, UnknownName, UnsupportedSyntax
from sfumato.kernel.expressions import Call, Literal
from sfumato.planning.planner import choose_plan
from sfumato.planning.quantity_chooser import name_kind
from sfumato.query.bind import bind
from sfumato.query.parse import parse
from sfumato.query.query import AggregateRef, KeyRef, Ordering, PostCall

COLUMNS = {
    "age": sf.Integer(-5, 120),
    "pay": sf.Real(0, 9_000),
    "base": sf.Real(10, 20, nullable=False),
    "city": sf.Category(["Rome", "Oslo", "Tromsø"]),
    "ward": sf.Category([1, 2, 7]),
    "smoker": sf.Boolean(),
    "sure": sf.Boolean(nullable=False),
    "job": sf.Text(),
    "born": sf.Date("1900-01-01", "2025-12-31"),
    "date": sf.Integer(0, 9),
    "Größe in cm": sf.Real(0, 250),
    'a"b.c': sf.Boolean(),
}
ROWS = [
    (30, 100.0, 11.0, "Rome", 1, True, True, "nurse", "1990-05-01", 1, 170.0, True),
    (70, 0.0, 12.0, "Oslo", 2, False, False, "Cook", "1950-01-01", 2, 180.0, False),
    (None, 500.0, 13.0, "Rome", 7, None, True, None, None, 3, None, None),
    (-3, None, 14.0, None, None, True, False, "miner", "2025-12-31", None, 150.0, True),
]
TABLE = Table("people", None, sf.ROW, COLUMNS)
DATASET = Dataset("people", [TABLE, Table("kinds", None, None, {}, public=True)], sf.Budget(epsilon=9))
VERSIONS = dict.fromkeys(DATASET.tables, "1")


def bound(sql):
    return bind(parse(sql), DATASET)


@pytest.fixture(scope="module")
def engines():
    frame = pd.DataFrame(ROWS, columns=list(COLUMNS)).astype({"smoker": object, 'a"b.c': object, "age": float})
    duck = DuckDBEngine.of_data(TABLE, frame)
    described = duck._connection.execute("DESCRIBE people").fetchall()
    held = duck._connection.execute("SELECT * FROM people").fetchall()
    names = [column[0] for column in described]
    yield duck, ReferenceEngine({"people": [dict(zip(names, row, strict=True)) for row in held]})
    duck.close()


def counted(engines, condition):
    plan = choose_plan(bound(f"SELECT COUNT(*) FROM people WHERE {condition}"), sf.PureDP(1), DATASET, VERSIONS).plan
    one, two = (engine.aggregate(plan)._integers for engine in engines)
    (name,) = one
    assert one[name].tolist() == two[name].tolist()
    return int(one[name][0])


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("smoker", 2),
        ("NOT smoker", 1),
        ("smoker = true", 2),
        ("smoker <> TRUE", 1),
        ("smoker IS NULL", 1),
        ("smoker IS NOT NULL", 3),
        ("NOT (smoker IS NULL)", 3),
        ("sure AND NOT smoker OR age > 60", 1),
        ("sure AND (NOT smoker OR age > 20)", 1),
        ("ward = 7", 1),
        ("ward IN (1, 7, 99)", 2),
        ("ward NOT IN (1, 7)", 1),
        ("ward < 3", 2),
        ("born > '1980-01-01'", 2),
        ("'1980-01-01' < born", 2),
        ("born > ('1980-01-01')", 2),
        ("born > DATE '1980-01-01'", 2),
        ("born BETWEEN '1950-01-01' AND DATE '1990-05-01'", 2),
        ("born IN ('1950-01-01', '1951-01-01')", 1),
        ("age > -4 AND age < - 2", 1),
        ("age = -3.0", 1),
        ("age BETWEEN -5 AND 30", 2),
        ("age NOT BETWEEN -5 AND 30", 1),
        ("base / pay > 0.1", 1),  # 11/100; 12/0 is NULL; 13/500
        ("base / pay IS NULL", 2),
        ("base / 0 IS NULL", 4),
        ("FLOOR(age / 10) = 3", 1),
        ("FLOOR(age / 10) = -1", 1),
        ("CEIL(age / 10) = 0", 1),
        ("ABS(age) = 3", 1),
        ("-age = 3", 1),
        ("+age = 30", 1),
        ("job LIKE '%n%'", 2),
        ("job NOT LIKE '%n%'", 1),
        ("job LIKE 'Coo_'", 1),
        ("job = 'it''s'", 0),
        ("job < 'a'", 1),  # by bytes
        ("COALESCE(age, 0) = 0", 1),
        ("COALESCE(city, 'none') = 'none'", 1),
        ("CASE WHEN smoker THEN age > 0 ELSE FALSE END", 1),
        ("CASE WHEN smoker THEN 1 WHEN NOT smoker THEN 2 END IS NULL", 1),
        ("CITY = 'Tromsø' OR City = 'Rome'", 2),
        ("people.city = 'Rome'", 2),
        ("date > 1", 2),
        ('"Größe in cm" > 160', 2),
        ('"GRÖSSE IN CM" > 160', 2),
        ('"a""b.c"', 2),
        ("TRUE", 4),
        ("1 = 2", 0),
        ("age IS NULL OR age > 60 OR pay IS NULL", 3),
    ],
)
def test_conditions_count_the_same_on_both_engines(condition, rows, engines):
    assert counted(engines, condition) == rows


def functions_of(query):
    return [aggregate.function for aggregate in query.aggregates]


def test_aggregates_beside_select_are_charged():
    query = bound("SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING AVG(age) > 3 ORDER BY SUM(pay) DESC")
    assert functions_of(query) == ["COUNT", "AVG", "SUM"]
    assert query.having == PostCall(">", (AggregateRef(1), Literal(3)))
    assert query.order == (Ordering(AggregateRef(2), True),)
    wanted = choose_plan(query, sf.PureDP(1), DATASET, VERSIONS).plan.measurements
    assert [name_kind(measurement.quantity) for measurement in wanted] == [
        "count",
        "halves",
        "sum",
    ]  # rows; ages, with their number; pay


def test_the_same_aggregate_is_charged_once():
    query = bound("SELECT COUNT(*) AS n, COUNT(1) AS m, COUNT(base) AS b, count(*) * 2 AS t FROM people HAVING n > 2")
    assert functions_of(query) == ["COUNT"]


def test_count_of_a_column_leaves_nulls_out():
    query = bound("SELECT COUNT(age) AS n, COUNT(*) AS m FROM people")
    assert [aggregate.value is None for aggregate in query.aggregates] == [False, True]


@pytest.mark.parametrize(
    "group",
    ["city", "CITY", "people.city", "(city)", "1", "c"],
)
def test_a_key_is_one_key_however_it_is_spelled(group):
    query = bound(f"SELECT City AS c, COUNT(*) AS n FROM people GROUP BY {group} ORDER BY city")
    assert query.columns[0] == ("c", KeyRef(0))
    assert query.order == (Ordering(KeyRef(0), False),)
    assert query.keys[0].values == ("Rome", "Oslo", "Tromsø")


def test_expressions_are_keys():
    query = bound(
        "SELECT age > 65 AS old, FLOOR(age / 10) AS decade, CASE WHEN sure THEN -1 ELSE 1 END AS side, "
        "COALESCE(city, 'none') AS place, ward, COUNT(*) FROM people GROUP BY old, decade, side, 4, ward"
    )
    assert [key.values for key in query.keys] == [
        (False, True), tuple(range(-1, 13)), (-1, 1), ("Rome", "Oslo", "Tromsø", "none"), (1, 2, 7),
    ]  # fmt: skip
    assert [post for _, post in query.columns[:5]] == [KeyRef(index) for index in range(5)]


def test_a_key_twice_is_one_key():
    assert len(bound("SELECT COUNT(*) FROM people GROUP BY city, City, people.city").keys) == 1


def test_aliases_in_having_and_order():
    query = bound(
        "SELECT city, COUNT(*) AS n FROM people AS p GROUP BY p.city HAVING n > 10 AND N < 99 ORDER BY n, 1 DESC"
    )
    low, high = PostCall(">", (AggregateRef(0), Literal(10))), PostCall("<", (AggregateRef(0), Literal(99)))
    assert query.having == PostCall("and", (low, high))
    assert query.order == (Ordering(AggregateRef(0), False), Ordering(KeyRef(0), True))


def test_an_alias_hides_the_column_that_it_averages():
    query = bound("SELECT city, AVG(age) AS age FROM people GROUP BY city HAVING age > 30 ORDER BY age DESC")
    assert query.having == PostCall(">", (AggregateRef(0), Literal(30)))
    assert query.order == (Ordering(AggregateRef(0), True),)


def test_a_column_comes_before_an_alias_in_group_by():
    with pytest.raises(UnsupportedSyntax, match="city at 1:8 is neither in GROUP BY nor inside an aggregate"):
        bound("SELECT city, ward AS smoker, COUNT(*) FROM people GROUP BY smoker")


def test_a_table_that_has_an_alias_loses_its_name():
    with pytest.raises(UnknownName, match=r"There is no table 'people' here at 1:44\. Write p\."):
        bound("SELECT COUNT(*) FROM people AS p WHERE NOT people.sure")


def test_having_by_keys():
    query = bound(
        "SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING city IN ('Rome', 'Oslo') AND n BETWEEN 1 AND 9"
    )
    assert isinstance(query.having, PostCall)
    assert query.having.function == "and"


def test_a_truth_value_is_added_up_without_its_nulls():
    value = bound("SELECT AVG(smoker) FROM people").aggregates[0].value
    assert (value.nullable, value.lower, value.upper, value.whole) == (True, 0, 1, True)
    assert not bound("SELECT AVG(sure) FROM people").aggregates[0].value.nullable


@pytest.mark.parametrize(
    ("expression", "lower", "upper", "whole", "nullable"),
    [
        ("age + 1", -4, 121, True, True),
        ("age - age", -125, 125, True, True),
        ("age * -2", -240, 10, True, True),
        ("base / 10", 1, 2, False, False),
        ("base / base", 0.5, 2, False, False),
        ("-base", -20, -10, False, False),
        ("ABS(age)", 0, 120, True, True),
        ("FLOOR(base / 3)", 3, 6, True, False),
        ("CEIL(base / 3)", 4, 7, True, False),
        ("CASE WHEN age > 3 THEN pay ELSE base END", 0, 9000, False, True),
        ("CASE WHEN age > 3 THEN base END", 10, 20, False, True),
        ("COALESCE(age, 200)", -5, 200, True, False),
        ("ward", 1, 7, True, True),
    ],
)
def test_bounds_follow_by_interval_arithmetic(expression, lower, upper, whole, nullable):
    value = bound(f"SELECT SUM({expression}) FROM people").aggregates[0].value
    assert (value.lower, value.upper, value.whole, value.nullable) == (lower, upper, whole, nullable)


@pytest.mark.parametrize("sql", ["SELECT SUM(base / age) FROM people", "SELECT SUM(1 + base / pay) FROM people"])
def test_what_has_no_bounds_is_not_added_up(sql):
    with pytest.raises(MissingBounds):
        bound(sql)


@pytest.mark.parametrize(
    "condition", ["age <> NULL", "age = NULL", "NULL = age", "age IN (1, NULL)", "age BETWEEN NULL AND 3", "NOT NULL"]
)
def test_null_is_compared_with_is_null_only(condition):
    with pytest.raises(QueryError) as refused:
        bound(f"SELECT COUNT(*) FROM people WHERE {condition}")
    if condition != "NOT NULL":
        assert "Use IS NULL" in refused.value.hint


def test_public_tables_are_not_asked():
    with pytest.raises(UnsupportedSyntax, match=r"kinds is a public table at 1:22.*Ask about a private table: people"):
        bound("SELECT COUNT(*) FROM kinds")


def test_chains_are_flat():
    query = bound(
        "SELECT COUNT(*) FROM people WHERE (sure AND (smoker AND age > 3)) AND (age > 1 OR age > 2 OR age > 3)"
    )
    assert len(query.filters) == 4
    assert isinstance(query.filters[3], Call)
    assert len(query.filters[3].arguments) == 3


def test_every_part_of_an_answer_is_presented():
    """Every type of output that binds can be presented: nothing fails after the charge."""
    frame = pd.DataFrame(ROWS, columns=list(COLUMNS)).astype({"smoker": object, 'a"b.c': object, "age": float})
    with sf.protect(frame, name="people", unit=sf.ROW, columns=COLUMNS, budget=sf.Budget(epsilon=9000)) as people:
        for sql in [
            "SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING city <> 'Rome' ORDER BY city DESC LIMIT 1",
            "SELECT smoker, NOT smoker AS other, COUNT(*) AS n FROM people GROUP BY smoker HAVING smoker AND n > -999",
            "SELECT ward + 1 AS w, COUNT(*) / ward AS n, 1 AS one, TRUE AS yes FROM people GROUP BY ward ORDER BY ward",
            "SELECT city = 'Rome' AS r, COUNT(*) AS n FROM people GROUP BY city HAVING city IN ('Rome') OR NOT r",
            "SELECT CASE WHEN sure THEN DATE '2020-01-01' ELSE DATE '2021-01-01' END AS d, COUNT(*) AS n FROM people "
            "GROUP BY d HAVING d > '2020-06-01' ORDER BY d",
            "SELECT ROUND(AVG(age), 1) AS a, -ABS(SUM(pay)) AS s, AVG(pay) > 3 AS t, COUNT(*) / 0 AS z FROM people",
            "SELECT FLOOR(age / 10) AS decade, COUNT(*) AS n FROM people GROUP BY decade ORDER BY n DESC, 1 LIMIT 3",
        ]:
            answer = people.ask(sql, epsilon=100)
            answer.to_pandas(intervals=True)
            assert answer.rows or "HAVING" in sql
