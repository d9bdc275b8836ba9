"""Every row-level function in whole questions: DuckDB = plain Python on hostile values, = plain SQL on calm ones.

Each form is summed, compared in WHERE, and grouped by where it has finitely many values.
"""

import re
from functools import cache
from itertools import count

import pytest
from by_cell import list_by_cell
from generated_questions import Question
from hostile_clinic import open_clinic
from plain_answers import find_differences, make_plain_tables

import sfumato as sf
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.query.bind import bind
from sfumato.query.function_words import ROW_FUNCTIONS
from sfumato.query.parse import parse
from sfumato.query.tokens import DATES
from sfumato.row_meanings import evaluate

NUMBERS = [  # over patients: income may be NULL; age is whole
    "LEAST(age, 40)", "LEAST(age, income, 77)", "GREATEST(income, 100)", "GREATEST(age, 3, income)", "age % 7",
    "MOD(age, 10)", "age // 10", "ROUND(income)", "ROUND(income, 1)", "ROUND(income, -2)", "TRUNC(income)",
    "SIGN(income)",
    "SQRT(ABS(income))", "POWER(age, 2)", "SQUARE(age)", "CAST(income AS INTEGER)", "CAST(smoker AS INTEGER)",
    "WIDTH_BUCKET(age, 0, 100, 10)", "NULLIF(age, 40)", "COALESCE(NULLIF(income, 0), 5)", "IFNULL(age, 1)",
    "CASE city WHEN 'Rome' THEN 1 WHEN 'Oslo' THEN age ELSE income END", "IF(smoker, age, -age)", "ABS(age - 50)",
    "LEAST(LENGTH(job), 30)", "LEAST(STRPOS(job, 'i'), 9)", "LEAST(LENGTH(TRIM(job)), 9)",
    "EXTRACT(year FROM born)", "EXTRACT(isodow FROM born)", "YEAR(LAST_DAY(born))", "MONTH(born + INTERVAL 40 DAY)",
    "DATE_DIFF('day', born, DATE '2011-01-01')", "DAY(DATE_TRUNC('month', born))", "MONTH(born - INTERVAL 3 MONTH)",
    "CASE WHEN smoker = 1 THEN 2 ELSE 0 END", "CASE WHEN smoker IS DISTINCT FROM TRUE THEN 1 ELSE 0 END",
]  # fmt: skip
NUMBERS += [  # the other names of functions, and those that engines could compute differently
    "FLOOR(income / 7)", "CEIL(income)", "CEILING(income / 3)", "TRUNCATE(income, 1)", "DIV(age, 7)", "POW(age, 2)",
    "LN(1 + age)", "LOG(1 + age)", "LOG10(1 + age)", "LOG2(1 + age)", "EXP(age / 50)", "HISTOGRAM(age, 10)",
    "NVL(age, 1)", "NVL2(income, age, 1)", "IIF(smoker, age, 1)", "IFF(smoker, age, 2)", "TRY_CAST(age AS DOUBLE)",
    "SAFE_CAST(income AS INTEGER)", "LEAST(LEN(job), 30)", "LEAST(CHAR_LENGTH(job), 30)",
    "LEAST(CHARACTER_LENGTH(job), 30)", "LEAST(INSTR(job, 'i'), 9)", "LEAST(POSITION('i' IN job), 9)",
    "DAYOFWEEK(born)", "DAYOFYEAR(born)", "DAYOFMONTH(born)", "ISODOW(born)", "WEEK(born)", "DATE_PART('year', born)",
    "DAY(DATETRUNC('month', born))", "DATEDIFF('month', born, DATE '2011-01-01')",
    "EXTRACT(year FROM AGE(DATE '2011-01-01', born))", "YEAR(DATE_ADD(born, INTERVAL 40 DAY))",
    "YEAR(DATE_SUB(born, INTERVAL 40 DAY))", "YEAR(DATEADD(month, -3, born))", "HOUR(CAST(born AS TIMESTAMP))",
    "MINUTE(CAST(born AS TIMESTAMP))", "DAY(DATE_FROM_PARTS(2000, 2, age))", "DAY(TO_DATE(born))", "DAY(DATE(born))",
    "SECOND(CAST(born AS TIMESTAMP))", "EPOCH(born)", "UNIX_SECONDS(born)", "EXTRACT(epoch FROM born)",
    "EXTRACT(second FROM CAST(born AS TIMESTAMP))", "TIMESTAMPDIFF(YEAR, born, DATE '2011-01-01')",
    "TIMESTAMPDIFF(HOUR, CAST(born AS TIMESTAMP), TIMESTAMP '2011-01-01 00:00:00')",
]  # fmt: skip
TRUTHS = [
    "UPPER(job) = 'SMITH'", "LOWER(city) = 'rome'", "TRIM(job) = 'smith'", "SUBSTR(job, 2, 3) = 'mit'",
    "LEFT(job, 1) = 's'", "RIGHT(job, 1) = 'h'", "REPLACE(job, 'i', 'y') = 'smyth'", "job || 'x' = 'smithx'",
    "CONCAT(city, '-', job) = 'Rome-smith'", "job ILIKE 'S%'", "STARTS_WITH(job, 's')", "ENDS_WITH(job, 'h')",
    "CONTAINS(job, 'mi')", "job NOT ILIKE '%I%'", "LPAD(job, 3, '*') = '*a'", "smoker = 1", "smoker <> 0",
    "smoker IS TRUE", "age IS NOT DISTINCT FROM 40", "DAYNAME(born) = 'Sunday'", "MONTHNAME(born) IN ('May', 'June')",
    "DECODE(city, 'Rome', 1, 'Oslo', 2, 0) > 1", "STRFTIME(born, '%Y-%m') = '1980-06'",
    "born + INTERVAL 1 YEAR > DATE '1981-01-01'", "MAKE_DATE(1980, 6, 1) < born", "CAST(age AS VARCHAR) = '40'",
]  # fmt: skip
TRUTHS += [
    "UCASE(job) = 'SMITH'", "LCASE(city) = 'rome'", "LTRIM(job) = 'smith'", "RTRIM(job) = 'smith'",
    "BTRIM(job) = 'smith'", "SUBSTRING(job, 2) = 'mith'", "RPAD(job, 6, '*') = 'smith*'", "STARTSWITH(job, 's')",
    "PREFIX(job, 's')", "ENDSWITH(job, 'h')", "SUFFIX(job, 'h')", "INITCAP(city) = 'Rome'",
    "REGEXP_MATCHES(job, 'mi')", "REGEXP_LIKE(job, '^s')", "REGEXP_CONTAINS(job, 'h$')",
    "REGEXP_FULL_MATCH(job, 'smit[hx]')", "TO_CHAR(born, 'YYYY-MM') = '1980-06'",
    "SPLIT_PART(job, 'm', 2) = 'ith'", "SUBSTRING_INDEX(job, 'i', -1) = 'th'",
    "DATE_FORMAT(born, '%Y-%m') = '1980-06'", "FORMAT_DATE('%Y-%m', born) = '1980-06'",
]  # fmt: skip
KEYS = [
    "UPPER(city)", "SUBSTR(city, 1, 1)", "age // 10", "ROUND(age, -1)", "WIDTH_BUCKET(age, 0, 100, 5)", "age % 3",
    "SIGN(age - 50)", "DAYNAME(born)", "MONTHNAME(born)", "STRFTIME(born, '%Y')", "LEFT(job, 2)", "LOWER(job)",
    "DECODE(city, 'Rome', 'it', 'other')", "CONCAT(city, '!')", "LENGTH(city)", "LEAST(age, 20)",
    "CAST(age AS VARCHAR)", "IF(smoker, 'yes', 'no')", "QUARTER(born)",
]  # fmt: skip
NUMBERS += [
    "SAFE_ADD(age, 3)", "SAFE_SUBTRACT(age, 3)", "SAFE_MULTIPLY(age, 3)", "SAFE_NEGATE(age)", "age + PI()",
    "CHOOSE(age - 10, 5, 7, 9)", "DAY(TIMESTAMP(born))",
]  # fmt: skip
PLAIN = {"age // 10": "FLOOR(age / 10)",
         "SAFE_ADD(age, 3)": "age + 3", "SAFE_SUBTRACT(age, 3)": "age - 3", "SAFE_MULTIPLY(age, 3)": "age * 3",
         "SAFE_NEGATE(age)": "-age", "DAY(TIMESTAMP(born))": "DAY(born)",
         "CHOOSE(age - 10, 5, 7, 9)": "CASE age - 10 WHEN 1 THEN 5 WHEN 2 THEN 7 WHEN 3 THEN 9 END",
         "DECODE(city, 'Rome', 1, 'Oslo', 2, 0) > 1": "COALESCE(city = 'Oslo', FALSE)",
         "DECODE(city, 'Rome', 'it', 'other')": "CASE WHEN city = 'Rome' THEN 'it' ELSE 'other' END",
         "WIDTH_BUCKET(age, 0, 100, 10)": "CASE WHEN age >= 100 THEN 11 ELSE FLOOR(age / 10) + 1 END",
         "WIDTH_BUCKET(age, 0, 100, 5)": "CASE WHEN age >= 100 THEN 6 ELSE FLOOR(age / 20) + 1 END",
         "HISTOGRAM(age, 10)": "LEAST(FLOOR(age / 10), CASE WHEN age IS NULL THEN NULL ELSE 9 END) * 10",
         "CEILING(income / 3)": "CEIL(income / 3)", "TRUNCATE(income, 1)": "TRUNC(income * 10) / 10",
         "DIV(age, 7)": "FLOOR(age / 7)", "NVL(age, 1)": "COALESCE(age, 1)",
         "NVL2(income, age, 1)": "CASE WHEN income IS NULL THEN 1 ELSE age END",
         "IIF(smoker, age, 1)": "CASE WHEN smoker THEN age ELSE 1 END",
         "IFF(smoker, age, 2)": "CASE WHEN smoker THEN age ELSE 2 END",
         "SAFE_CAST(income AS INTEGER)": "TRY_CAST(income AS INTEGER)",
         "LEAST(LEN(job), 30)": "LEAST(LENGTH(job), 30)", "LEAST(CHAR_LENGTH(job), 30)": "LEAST(LENGTH(job), 30)",
         "LEAST(CHARACTER_LENGTH(job), 30)": "LEAST(LENGTH(job), 30)",
         "YEAR(DATE_ADD(born, INTERVAL 40 DAY))": "YEAR(born + INTERVAL 40 DAY)",
         "YEAR(DATE_SUB(born, INTERVAL 40 DAY))": "YEAR(born - INTERVAL 40 DAY)",
         "YEAR(DATEADD(month, -3, born))": "YEAR(born - INTERVAL 3 MONTH)",
         "DAY(DATE_FROM_PARTS(2000, 2, age))":
             "CASE WHEN age BETWEEN 1 AND 29 THEN age END",
         "TIMESTAMPDIFF(YEAR, born, DATE '2011-01-01')": "DATE_SUB('year', born, DATE '2011-01-01')",
         "TIMESTAMPDIFF(HOUR, CAST(born AS TIMESTAMP), TIMESTAMP '2011-01-01 00:00:00')":
             "DATE_SUB('hour', CAST(born AS TIMESTAMP), TIMESTAMP '2011-01-01 00:00:00')",
         "SUBSTRING_INDEX(job, 'i', -1) = 'th'": "SPLIT_PART(job, 'i', -1) = 'th'",
         "DAY(TO_DATE(born))": "DAY(born)", "DAY(DATE(born))": "DAY(born)",
         "ISODOW(born)": "EXTRACT(isodow FROM born)", "BTRIM(job) = 'smith'": "TRIM(job, ' ') = 'smith'",
         "STARTSWITH(job, 's')": "STARTS_WITH(job, 's')", "ENDSWITH(job, 'h')": "SUFFIX(job, 'h')",
         "INITCAP(city) = 'Rome'": "city = 'Rome'", "REGEXP_LIKE(job, '^s')": "REGEXP_MATCHES(job, '^s')",
         "REGEXP_CONTAINS(job, 'h$')": "REGEXP_MATCHES(job, 'h$')",
         "TO_CHAR(born, 'YYYY-MM') = '1980-06'": "STRFTIME(born, '%Y-%m') = '1980-06'",
         "DATE_FORMAT(born, '%Y-%m') = '1980-06'": "STRFTIME(born, '%Y-%m') = '1980-06'",
         "FORMAT_DATE('%Y-%m', born) = '1980-06'": "STRFTIME(born, '%Y-%m') = '1980-06'",
         "UNIX_SECONDS(born)": "EPOCH(born)", "SQUARE(age)": "age * age", "CAST(age AS VARCHAR) = '40'": "age = 40",
         "CAST(age AS VARCHAR)": "CAST(CAST(age AS INTEGER) AS VARCHAR)"}  # fmt: skip
MOMENTS = {  # over visits, and the plain form
    "SECOND(seen)": "SECOND(seen)", "EXTRACT(second FROM seen)": "SECOND(seen)", "EPOCH(seen)": "FLOOR(EPOCH(seen))",
    "UNIX_SECONDS(seen)": "FLOOR(EPOCH(seen))", "EXTRACT(epoch FROM seen)": "FLOOR(EPOCH(seen))",
    "DATE_DIFF('second', TIMESTAMP '2024-02-29 23:59:59', seen)":
        "DATE_DIFF('second', TIMESTAMP '2024-02-29 23:59:59', seen)",
}  # fmt: skip
LOSS = sf.PureDP(1)


def list_questions():
    for form in NUMBERS:
        plain = PLAIN.get(form, form)
        sums = "SELECT SUM({0}) AS a0, COUNT({0}) AS a1, AVG({0}) AS a2 FROM patients"
        yield Question(sums.format(form), sums.format(plain))
        where = "SELECT COUNT(*) AS a0 FROM patients WHERE {0} > 3"
        yield Question(where.format(form), where.format(plain))
    for form, plain in MOMENTS.items():
        sums = "SELECT SUM({0}) AS a0, COUNT({0}) AS a1 FROM visits WHERE {0} > 9"
        yield Question(sums.format(form), sums.format(plain))
    for form in TRUTHS:
        where = "SELECT COUNT(*) AS a0, SUM(age) AS a1 FROM patients WHERE {0}"
        yield Question(where.format(form), where.format(PLAIN.get(form, form)))
        negated = "SELECT COUNT(*) AS a0 FROM patients WHERE NOT ({0})"
        yield Question(negated.format(form), negated.format(PLAIN.get(form, form)))
    for form in KEYS:
        grouped = "SELECT {0} AS k0, COUNT(*) AS a0, SUM(income) AS a1 FROM patients GROUP BY 1"
        yield Question(grouped.format(form), grouped.format(PLAIN.get(form, form)))


QUESTIONS = tuple(list_questions())


def test_every_function_is_in_a_question():
    """No function of the table in the code is missing here: hostile values are tried on each, under each name."""
    named = {word.upper() for question in QUESTIONS for word in re.findall(r"(\w+)\(", question.text)}
    assert {*ROW_FUNCTIONS, *DATES} - named == set()


@pytest.fixture(scope="module")
def hostile():
    return open_clinic()


@pytest.fixture(scope="module")
def calm():
    clinic = open_clinic(crowd=3, calm=True)
    return clinic, make_plain_tables(clinic)


@cache
def plan_of(clinic, question):
    query = bind(parse(question.text), clinic.curator.dataset)
    return query, clinic.curator.desk.plan(query, LOSS)


def measure(clinic, question):
    engine = clinic.curator.engine
    return engine.aggregate(plan_of(clinic, question)[1].plan)


def agrees(clinic, question):
    plan = plan_of(clinic, question)[1].plan
    expected = list_by_cell(ReferenceEngine(clinic.held).aggregate(plan), plan)
    return list_by_cell(measure(clinic, question), plan) == expected


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.text[:90])
def test_duckdb_measures_what_plain_python_and_plain_sql_measure(question, hostile, calm):
    assert agrees(hostile, question)
    clinic, plain = calm
    query, planned = plan_of(clinic, question)
    rows = plain.execute(question.plain).fetchall()
    wrong, _ = find_differences(rows, query, planned, measure(clinic, question))
    assert wrong == []


@pytest.mark.parametrize("broken", ["floor", "lower", "upper", "round"])
def test_a_wrong_function_is_noticed(broken, hostile, monkeypatch):
    """Negative control: a function of the reference that gives NULL now and then is noticed."""
    right, calls = evaluate._apply, count()

    def wrong(function, values):
        made = right(function, values)
        return None if function == broken and next(calls) % 5 == 4 else made

    monkeypatch.setattr(evaluate, "_apply", wrong)
    used = [question for question in QUESTIONS if _calls(broken, plan_of(hostile, question)[1].plan)]
    assert used
    assert not all(agrees(hostile, question) for question in used)


def _calls(function, plan):
    return f"function='{function}'" in repr(plan)
