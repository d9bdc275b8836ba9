"""Every function of a row, as analysts write it: plain DuckDB gives the same, and results are within derived bounds."""

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.sql.dialect import DUCKDB
from sfumato.engines.sql.scalars import lower_expression
from sfumato.errors import MissingBounds, QueryError
from sfumato.query.bind import bind
from sfumato.query.from_clause import FromBinder
from sfumato.query.function_words import CAST_FUNCTIONS, MOST_ARGUMENTS, ROW_FUNCTIONS
from sfumato.query.parse import parse, parse_expression
from sfumato.query.periods import convert_to_number
from sfumato.query.result_functions import RESULT_FUNCTIONS
from sfumato.query.row_expressions import RowBinder
from sfumato.query.size_limits import PartCounter
from sfumato.query.sql_text import print_sql
from sfumato.query.tokens import DATES
from sfumato.row_meanings.evaluate import evaluate

COLUMNS = {
    "age": sf.Integer(0, 120), "cost": sf.Real(-50, 500), "pay": sf.Real(1, 10_000, nullable=False),
    "few": sf.Integer(-3, 3), "city": sf.Category(["Rome", "Oslo", "Bérn"]), "job": sf.Text(), "old": sf.Boolean(),
    "born": sf.Date("1990-01-01", "2010-12-31"), "seen": sf.DateTime("2020-01-01T00:00:00", "2020-12-31T23:59:59"),
    "code": sf.Category(["1", "02", "x"]),
}  # fmt: skip
DATASET = Dataset("d", [Table("t", None, sf.ROW, COLUMNS)], sf.Budget(epsilon=9, delta=1e-6))
SCOPE = FromBinder(DATASET).bind_rows(parse("SELECT COUNT(*) FROM t"), {}).scope
SAME = """
LEAST(cost, 100); GREATEST(cost, 0); LEAST(cost, pay, 7); age % 10; MOD(age, 7); cost % 3; few % few; age // 10
few // 2; ROUND(cost, 2); ROUND(cost, -2); ROUND(cost); ROUND(age); TRUNC(cost); SIGN(cost); SIGN(few); ABS(cost)
FLOOR(cost / 50) * 50; CEIL(cost); CEILING(cost); CAST(cost AS INTEGER); cost::BIGINT; TRY_CAST(cost AS INT)
CAST(age AS VARCHAR(10)); CAST(age AS STRING); CAST(age AS DOUBLE); CAST(cost AS DECIMAL(10, 2)); CAST(seen AS DATE)
seen::date; CAST(born AS TIMESTAMP); CAST(old AS INTEGER); CAST(old AS TEXT); CAST(code AS INTEGER); CAST(born AS TEXT)
CAST(seen AS VARCHAR); CAST(few AS BOOLEAN); TRY_CAST(code AS DOUBLE); TRY_CAST(job AS DATE); LN(pay)
LOG(pay); LOG(2, pay); LOG10(pay); LOG2(pay); EXP(cost / 100); POWER(cost, 2); POW(few, 3); few ** 2
few ^ 4; POWER(pay, 0.3); POWER(2, few); POWER(pay, 0.5); NULLIF(age, 0); NULLIF(city, 'Rome'); IF(age > 18, 1, 0)
IFNULL(age, 0); COALESCE(city, 'none'); UPPER(city); UCASE(job); LOWER(job); LCASE(city); LTRIM(job); RTRIM(job)
TRIM(LEADING '0' FROM code); TRIM(job, 'x'); TRIM(job, ' '); SUBSTR(city, 1, 1); SUBSTRING(city, 2); LEFT(city, 2)
SUBSTRING(city FROM 2 FOR 3); RIGHT(city, 2); LENGTH(city); LENGTH(job); LEN(city); CONCAT(city, '-', age, job)
CHAR_LENGTH(city); CHARACTER_LENGTH(job); city || code; age || city; job ILIKE 'X%'; city ILIKE 'r%'
job NOT ILIKE 'a%'; job LIKE 'x!%%' ESCAPE '!'; job NOT LIKE 'x!%' ESCAPE '!'; STARTS_WITH(city, 'R')
PREFIX(job, 'x'); ENDS_WITH(city, 'o'); SUFFIX(job, 'x'); CONTAINS(city, 'om'); REPLACE(city, 'o', '00')
LPAD(code, 3, '0'); RPAD(job, 3, 'xy'); born + INTERVAL 3 DAY; born - INTERVAL '3' MONTH; seen + INTERVAL '3 hours'
REGEXP_MATCHES(job, '^x[ab]$'); REGEXP_LIKE(city, '^R'); REGEXP_FULL_MATCH(city, 'Rom[ae]')
REGEXP_MATCHES(job, 'x|yz?'); REGEXP_CONTAINS(city, 'o$'); REGEXP_CONTAINS(job, '(a|b)c')
DAYNAME(born); MONTHNAME(seen); DECODE(city, 'Rome', 1, 'Oslo', 2, 0); DECODE(age, NULL, 'a', 'b'); old = 1;
SECOND(seen); EPOCH(born); SPLIT_PART(job, 'x', 1); SPLIT_PART(city, 'o', 2); SPLIT_PART(city, 'o', -1)
DATE_PART('year', AGE(seen, TIMESTAMP '2010-06-15 12:00:00'))
born + INTERVAL 1 YEAR; seen - INTERVAL 90 MINUTE; DATEDIFF('day', born, seen); DATE_DIFF('month', born, seen)
DATE_PART('year', born); MAKE_DATE(YEAR(born), 1, 1); MAKE_DATE(2000 + few, few + 1, 29); LAST_DAY(born); LAST_DAY(seen)
EXTRACT(year FROM AGE(DATE '2020-06-15', born)); DATE_PART('year', AGE(seen, CAST(born AS TIMESTAMP)))
STRFTIME(born, '%Y-%m'); STRFTIME(seen, '%d.%m.%Y %H:%M:%S'); STRPOS(city, 'o'); POSITION('o' IN city); INSTR(job, 'x')
born - DATE '2000-01-01'; born + 5; ISODOW(born); EXTRACT(isodow FROM seen); DATETRUNC('month', seen)
CASE WHEN city = 'Rome' THEN 'it' ELSE city END; UPPER(SUBSTR(city, 1, 1)) || LOWER(SUBSTR(city, 2))
LEAST(born, DATE '2000-01-01'); GREATEST(seen, '2020-06-01'); age > 18 AND cost % 2 < 1; DAYOFMONTH(born)
PI() * cost; CAST('12' AS INTEGER) + few; YEAR(born) * 100 + MONTH(born); seen > DATE '2020-01-01' + INTERVAL 1 MONTH
"""
OURS = {  # functions that DuckDB writes differently, or does not have; what has no value is NULL here
    "SQRT(cost)": "CASE WHEN cost >= 0 THEN SQRT(cost) END", "POWER(cost, -2)": "1 / NULLIF(cost * cost, 0)",
    "SAFE_CAST(cost AS INT64)": "TRY_CAST(cost AS BIGINT)", "CAST(age AS FLOAT64)": "CAST(age AS DOUBLE)",
    "SAFE_ADD(age, few)": "age + few", "SAFE_SUBTRACT(cost, age - 1)": "cost - (age - 1)",
    "SAFE_MULTIPLY(few + 1, cost)": "(few + 1) * cost", "SAFE_NEGATE(few - 1)": "-(few - 1)",
    "CHOOSE(few, 'a', city)": "CASE WHEN few = 1 THEN 'a' WHEN few = 2 THEN city END",
    "CHOOSE(cost / 9, 1, 2)": "CASE WHEN TRUNC(cost / 9) = 1 THEN 1 WHEN TRUNC(cost / 9) = 2 THEN 2 END",
    "DIV(age, 10)": "age // 10", "SQUARE(cost)": "cost * cost", "TRUNCATE(cost, 1)": "TRUNC(cost * 10) / 10",
    "WIDTH_BUCKET(cost, 0, 100, 5)":
        "CASE WHEN cost < 0 THEN 0 WHEN cost >= 100 THEN 6 ELSE FLOOR(cost / 20) + 1 END",
    "HISTOGRAM(cost, 20)": "LEAST(FLOOR((cost + 50) / 27.5), CASE WHEN cost IS NULL THEN NULL ELSE 19 END) * 27.5 - 50",
    "DECODE(city, 'Rome', 1, 'Oslo', 2, 0)": "CASE WHEN city = 'Rome' THEN 1 WHEN city = 'Oslo' THEN 2 ELSE 0 END",
    "DECODE(age, NULL, 'a', 'b')": "CASE WHEN age IS NULL THEN 'a' ELSE 'b' END",
    "REGEXP_LIKE(city, '^R')": "REGEXP_MATCHES(CAST(city AS VARCHAR), '^R')",
    "REGEXP_CONTAINS(city, 'o$')": "REGEXP_MATCHES(CAST(city AS VARCHAR), 'o$')",
    "REGEXP_CONTAINS(job, '(a|b)c')": "REGEXP_MATCHES(job, '(a|b)c')",
    "EPOCH(seen)": "FLOOR(EPOCH(seen))", "UNIX_SECONDS(seen)": "FLOOR(EPOCH(seen))",
    "SUBSTRING_INDEX(job, ' ', 1)": "SPLIT_PART(job, ' ', 1)", "SUBSTRING_INDEX(city, 'o', -1)":
        "SPLIT_PART(city, 'o', -1)", "TIMESTAMPDIFF(YEAR, born, DATE '2020-02-28')":
        "DATE_SUB('year', born, DATE '2020-02-28')", "TIMESTAMPDIFF(hour, seen, TIMESTAMP '2020-06-15 12:30:00')":
        "DATE_SUB('hour', DATE_TRUNC('second', seen), TIMESTAMP '2020-06-15 12:30:00')",
    "TIMESTAMP(born)": "CAST(born AS TIMESTAMP)", "DATETIME(seen)": "CAST(seen AS TIMESTAMP)",
    "STRFTIME('%m', born)": "STRFTIME(born, '%m')",
    "NVL2(age, 1, 0)": "CASE WHEN age IS NOT NULL THEN 1 ELSE 0 END",
    "INITCAP(city)": "UPPER(SUBSTR(city, 1, 1)) || LOWER(SUBSTR(city, 2))",
    "cost / (pay / 60.0)": "cost / (pay / 60.0)",
    "NVL(age, 0)": "COALESCE(age, 0)", "IFF(age > 18, 'a', 'b')": "IF(age > 18, 'a', 'b')",
    "IIF(age > 18, 1, 0)": "IF(age > 18, 1, 0)", "BTRIM(job)": "TRIM(job, ' ')", "TRIM(job)": "TRIM(job, ' ')",
    "STARTSWITH(job, 'x')": "STARTS_WITH(job, 'x')", "ENDSWITH(job, 'x')": "SUFFIX(job, 'x')",
    "DATE_ADD(born, INTERVAL 3 DAY)": "born + INTERVAL 3 DAY",
    "DATE_SUB(born, INTERVAL 3 DAY)": "born - INTERVAL 3 DAY",
    "DATEADD(day, 3, born)": "born + INTERVAL 3 DAY", "DATEADD('month', -3, seen)": "seen - INTERVAL 3 MONTH",
    "DATE_FROM_PARTS(2000, age, 1)": "MAKE_DATE(2000, age, 1)", "TO_CHAR(seen, 'YYYY-MM')": "STRFTIME(seen, '%Y-%m')",
    "FORMAT_DATE('%Y', born)": "STRFTIME(born, '%Y')", "DATE_FORMAT(seen, '%Y-%m-%d')": "STRFTIME(seen, '%Y-%m-%d')",
    "DATE(seen)": "CAST(seen AS DATE)", "TO_DATE(seen)": "CAST(seen AS DATE)", "DATE_TRUNC(seen, MONTH)":
        "DATE_TRUNC('month', seen)", "cost::numeric": "ROUND(cost, 3)",
}  # fmt: skip
CALLS = {text.strip(): text.strip() for line in SAME.split("\n") for text in line.split(";") if text.strip()} | OURS
rows = st.fixed_dictionaries(
    {
        "age": st.none() | st.integers(0, 120),
        "cost": st.none() | st.sampled_from([-50.0, 0.0, -0.5, 2.5, 99.995, 500.0, 0.1]) | st.floats(-50, 500),
        "pay": st.sampled_from([1.0, 10.0, 1000.0, 10_000.0]) | st.floats(1, 10_000),
        "few": st.none() | st.integers(-3, 3),
        "city": st.none() | st.sampled_from(["Rome", "Oslo", "Bérn"]),
        "job": st.none() | st.sampled_from(["", " x ", "x%y", "Äx", "2020-02-30", "2020-02-29", "ß", "12", "a b"]),
        "old": st.none() | st.booleans(),
        "born": st.none() | st.sampled_from([date(2000, 2, 29), date(1999, 12, 31), date(2003, 1, 31)])
        | st.dates(date(1990, 1, 1), date(2010, 12, 31)),
        "seen": st.none() | st.datetimes(datetime(2020, 1, 1), datetime(2020, 12, 31, 23, 59, 59)),
        "code": st.none() | st.sampled_from(["1", "02", "x"]),
    }
)  # fmt: skip
TYPES = {
    "age": pa.int64(), "cost": pa.float64(), "pay": pa.float64(), "few": pa.int64(), "city": pa.string(),
    "job": pa.string(), "old": pa.bool_(), "born": pa.date32(), "seen": pa.timestamp("us"), "code": pa.string(),
}  # fmt: skip


def bound(text):
    return RowBinder(SCOPE).bind(parse_expression(text))


TYPED = {text: bound(text) for text in CALLS}
LOWERED = {text: DUCKDB.write(lower_expression(typed.expression)) for text, typed in TYPED.items()}


def run(found, expressions):
    data = pa.table({name: pa.array([row[name] for row in found], kind) for name, kind in TYPES.items()})
    with duckdb.connect() as connection:
        connection.register("t", data)
        return connection.execute(f"SELECT {', '.join(expressions)} FROM t").fetchall()


def is_alike(one, two):
    """The same value, whatever its type. Logarithms and powers of DuckDB's own library differ in their last bits."""
    if isinstance(one, (float, int, Decimal)) and isinstance(two, (float, int, Decimal)):
        return float(one) == pytest.approx(float(two), rel=1e-9, abs=1e-9)
    if isinstance(one, date) and isinstance(two, datetime) and not isinstance(one, datetime):
        return datetime(one.year, one.month, one.day) == two
    return one == two


@settings(max_examples=4, deadline=None)
@given(found=st.lists(rows, min_size=5, max_size=30))
def test_plain_duckdb_gives_the_same(found):
    ours = run(found, LOWERED.values())
    plain = run(found, [f"TRY({text})" for text in CALLS.values()])
    wrong = [
        (text, row, mine, theirs)
        for row, one, two in zip(found, ours, plain, strict=True)
        for text, mine, theirs in zip(CALLS, one, two, strict=True)
        if not is_alike(mine, theirs)
    ]
    assert wrong == []


def is_within(value, typed):
    if value is None:
        return typed.nullable
    if typed.values is not None and value not in typed.values:
        return False
    number = convert_to_number(value) if typed.type in ("date", "datetime") else value
    if isinstance(number, str) or typed.type == "boolean":
        return True
    above = typed.lower is None or typed.lower <= number
    return above and (typed.upper is None or number <= typed.upper) and (not typed.whole or float(number).is_integer())


@settings(max_examples=25, deadline=None)
@given(found=st.lists(rows, min_size=5, max_size=10))
def test_results_are_within_their_bounds(found):
    wrong = [
        (text, row)
        for text, typed in TYPED.items()
        for row in found
        if not is_within(evaluate(typed.expression, row), typed)
    ]
    assert wrong == []


def test_ends_of_bounds_are_within_bounds():
    ends = [{"age": age, "cost": cost, "pay": pay, "few": few, "city": city, "job": "x", "old": True, "born": born,
             "seen": seen, "code": code}
            for age, few in ((0, -3), (120, 3), (18, 0)) for cost in (-50.0, 500.0, 0.0) for pay in (1.0, 10_000.0)
            for city, code in (("Rome", "1"), ("Bérn", "x")) for born in (date(1990, 1, 1), date(2010, 12, 31))
            for seen in (datetime(2020, 1, 1), datetime(2020, 12, 31, 23, 59, 59))]  # fmt: skip
    test_results_are_within_their_bounds.hypothesis.inner_test(ends)


@pytest.mark.parametrize("text", CALLS)
def test_a_question_that_is_printed_is_the_same(text):
    assert bound(print_sql(parse_expression(text))) == TYPED[text]


def test_every_function_is_here():
    used = {name.upper() for text in CALLS for name in re.findall(r"(\w+)\(", text)}
    assert set(ROW_FUNCTIONS) - used == set()


def test_every_function_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
    listed = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", text))
    assert {*ROW_FUNCTIONS, *RESULT_FUNCTIONS, *DATES} - listed == set()


@pytest.mark.parametrize("name", [name for name in ROW_FUNCTIONS if name not in CAST_FUNCTIONS])
def test_what_is_given_too_much_is_refused(name):
    """The parser would drop it silently."""
    most = MOST_ARGUMENTS.get(name, 5)
    unlimited = name in ("LEAST", "GREATEST", "CONCAT", "COALESCE", "CHOOSE")
    if not unlimited:
        with pytest.raises(QueryError):
            bound(f"{name}({', '.join(['age'] * (most + 1))})")


def test_sql_grows_as_the_limits_say():
    for text, typed in TYPED.items():
        parts = PartCounter().measure(typed.expression)[0]
        assert len(LOWERED[text]) < 150 * parts + 1_800, text
    with pytest.raises(QueryError, match="too"):
        bind(parse(f"SELECT SUM({'EXP(' * 4}cost / 5000{')' * 4}) FROM t"), DATASET)


KEYS = [
    ("FLOOR(cost / 50) * 50", tuple(range(-50, 501, 50))),
    ("ROUND(cost, -2)", tuple(range(-100, 501, 100))),
    ("age // 10", tuple(range(13))),
    ("WIDTH_BUCKET(cost, 0, 100, 2)", (0, 1, 2, 3)),
    ("UPPER(city)", ("ROME", "OSLO", "BÉRN")),
    ("HISTOGRAM(cost, 2)", (-50.0, 225.0)),
    ("SUBSTR(city, 1, 1)", ("R", "O", "B")),
    ("ROUND(few / 2, 1)", (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)),
    ("CASE WHEN city = 'Rome' THEN 'it' ELSE city END", ("it", "Oslo", "Bérn")),
    ("STRFTIME(seen, '%m')", tuple(f"{m:02}" for m in range(1, 13))),
    ("UPPER(SUBSTR(city, 1, 1)) || SUBSTR(city, 2)", ("Rome", "Oslo", "Bérn")),
    ("few * few", (0, 1, 4, 9)),
    ("COALESCE(city, 'none')", ("Rome", "Oslo", "Bérn", "none")),
    ("LAST_DAY(seen)", tuple(date(2020 + m // 12, m % 12 + 1, 1) - timedelta(1) for m in range(1, 13))),
    ("MOD(age, 3)", (0, 1, 2)),
    ("CAST(code AS INTEGER)", (1, 2)),
    ("LENGTH(city) + 0 * few", (4,)),
    ("few % 2 = 0", (False, True)),
]  # fmt: skip


@pytest.mark.parametrize(("key", "values"), KEYS)
def test_keys_of_functions_are_public(key, values):
    query = bind(parse(f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY k"), DATASET)
    assert query.keys[0].values == values
    assert query.cautions == ()


def test_conditions_leave_only_keys_that_pass():
    def keys(where):
        return bind(parse(f"SELECT city, COUNT(*) AS n FROM t WHERE {where} GROUP BY city"), DATASET).keys[0].values

    assert keys("city LIKE 'R%'") == ("Rome",)
    assert keys("city <> 'Rome'") == ("Oslo", "Bérn")
    assert keys("UPPER(city) IN ('ROME', 'OSLO') AND age > 3") == ("Rome", "Oslo")
    assert keys("city LIKE 'X%'") == ("Rome", "Oslo", "Bérn")  # no row passes, and the caution says so


def test_too_many_keys_are_reported():
    query = bind(parse("SELECT FLOOR(cost * 1000) AS k, COUNT(*) AS n FROM t GROUP BY k"), DATASET)
    assert query.keys[0].values is None
    assert "too many possible values" in query.cautions[0]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT SUM(LN(cost)) FROM t", ["no lower bound", "LN(1 + x)"]),
        ("SELECT SUM(LENGTH(job)) FROM t", ["no upper bound", "LEAST(x, 100)"]),
        ("SELECT SUM(CAST(job AS INTEGER)) FROM t", ["no bounds", "LEAST(GREATEST(x, 0), 100)"]),
        ("SELECT SUM(EXP(cost)) FROM t", ["upper bound of 230", "LEAST(x, 230)"]),
        ("SELECT SUM(POWER(cost, 0.3)) FROM t", ["lower bound above 0"]),
        ("SELECT SUM(HISTOGRAM(1 / age, 20)) FROM t", ["HISTOGRAM needs a number with bounds"]),
    ],
)
def test_the_missing_bound_is_named(sql, words):
    with pytest.raises(MissingBounds) as error:
        bind(parse(sql), DATASET)
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cost // 10", "FLOOR(a / b)"),
        ("age % 0", "divides by 0"),
        ("cost || 'x'", "Round it first"),
        ("SUBSTR(city, 0, 2)", "counts from 1"),
        ("SUBSTR(city, age)", "needs a number"),
        ("REPLACE(job, '', 'x')", "empty"),
        (f"REPLACE(REPLACE(job, 'a', '{'a' * 40}'), 'a', '{'a' * 40}')", "as long"),
        ("LPAD(job, 5000, 'x')", "1,000 characters"),
        ("born + INTERVAL 9000 YEAR", "years 1 to 9999"),
        ("born + INTERVAL 3 HOUR", "no hour"),
        ("seen + 1", "INTERVAL 3 DAY"),
        ("STRFTIME(born, '%B')", "%Y, %m"),
        ("EXTRACT(month FROM AGE(seen, born))", "only in years"),
        ("EXTRACT(year FROM AGE(born))", "day on which"),
        ("CAST(born AS INTEGER)", "DATE_DIFF"),
        ("CAST(city AS BOOLEAN)", "Compare"),
        ("LEAST(city, 'a')", "CASE"),
        ("LEAST(age)", "two values"),
        ("LOG(1, pay)", "base"),
        ("job LIKE 'a!b' ESCAPE '!'", "escape character"),
        ("SQRT(-1 - age)", "negative"),
        ("MAKE_DATE(cost, 1, 1)", "whole numbers"),
        ("WIDTH_BUCKET(cost, 9, 1, 3)", "below the upper"),
        ("TO_CHAR(born, 'Month')", "not supported"),
        ("'a' 'b' = city", "follows"),
        ("regexp_matches(job, 'a.*')", "LIKE, ILIKE"),
    ],
)  # fmt: skip
def test_refusals_name_what_to_write(text, words):
    with pytest.raises(QueryError) as error:
        bound(text)
    assert words in str(error.value), str(error.value)
