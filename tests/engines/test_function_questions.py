"""Every row-level function in whole questions: DuckDB = plain Python on hostile values, = plain SQL on calm ones.

Each form is summed, compared in WHERE, and grouped by where it has finitely many values.
"""

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
from sfumato.query.parse import parse
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
TRUTHS = [
    "UPPER(job) = 'SMITH'", "LOWER(city) = 'rome'", "TRIM(job) = 'smith'", "SUBSTR(job, 2, 3) = 'mit'",
    "LEFT(job, 1) = 's'", "RIGHT(job, 1) = 'h'", "REPLACE(job, 'i', 'y') = 'smyth'", "job || 'x' = 'smithx'",
    "CONCAT(city, '-', job) = 'Rome-smith'", "job ILIKE 'S%'", "STARTS_WITH(job, 's')", "ENDS_WITH(job, 'h')",
    "CONTAINS(job, 'mi')", "job NOT ILIKE '%I%'", "LPAD(job, 3, '*') = '*a'", "smoker = 1", "smoker <> 0",
    "smoker IS TRUE", "age IS NOT DISTINCT FROM 40", "DAYNAME(born) = 'Sunday'", "MONTHNAME(born) IN ('May', 'June')",
    "DECODE(city, 'Rome', 1, 'Oslo', 2, 0) > 1", "STRFTIME(born, '%Y-%m') = '1980-06'",
    "born + INTERVAL 1 YEAR > DATE '1981-01-01'", "MAKE_DATE(1980, 6, 1) < born", "CAST(age AS VARCHAR) = '40'",
]  # fmt: skip
KEYS = [
    "UPPER(city)", "SUBSTR(city, 1, 1)", "age // 10", "ROUND(age, -1)", "WIDTH_BUCKET(age, 0, 100, 5)", "age % 3",
    "SIGN(age - 50)", "DAYNAME(born)", "MONTHNAME(born)", "STRFTIME(born, '%Y')", "LEFT(job, 2)", "LOWER(job)",
    "DECODE(city, 'Rome', 'it', 'other')", "CONCAT(city, '!')", "LENGTH(city)", "LEAST(age, 20)",
    "CAST(age AS VARCHAR)", "IF(smoker, 'yes', 'no')", "QUARTER(born)",
]  # fmt: skip
PLAIN = {"age // 10": "FLOOR(age / 10)", "DECODE(city, 'Rome', 1, 'Oslo', 2, 0) > 1": "COALESCE(city = 'Oslo', FALSE)",
         "DECODE(city, 'Rome', 'it', 'other')": "CASE WHEN city = 'Rome' THEN 'it' ELSE 'other' END",
         "WIDTH_BUCKET(age, 0, 100, 10)": "CASE WHEN age >= 100 THEN 11 ELSE FLOOR(age / 10) + 1 END",
         "WIDTH_BUCKET(age, 0, 100, 5)": "CASE WHEN age >= 100 THEN 6 ELSE FLOOR(age / 20) + 1 END",
         "SQUARE(age)": "age * age", "CAST(age AS VARCHAR) = '40'": "age = 40",
         "CAST(age AS VARCHAR)": "CAST(CAST(age AS INTEGER) AS VARCHAR)"}  # fmt: skip
LOSS = sf.PureDP(1)


def list_questions():
    for form in NUMBERS:
        plain = PLAIN.get(form, form)
        sums = "SELECT SUM({0}) AS a0, COUNT({0}) AS a1, AVG({0}) AS a2 FROM patients"
        yield Question(sums.format(form), sums.format(plain))
        where = "SELECT COUNT(*) AS a0 FROM patients WHERE {0} > 3"
        yield Question(where.format(form), where.format(plain))
    for form in TRUTHS:
        where = "SELECT COUNT(*) AS a0, SUM(age) AS a1 FROM patients WHERE {0}"
        yield Question(where.format(form), where.format(PLAIN.get(form, form)))
        negated = "SELECT COUNT(*) AS a0 FROM patients WHERE NOT ({0})"
        yield Question(negated.format(form), negated.format(PLAIN.get(form, form)))
    for form in KEYS:
        grouped = "SELECT {0} AS k0, COUNT(*) AS a0, SUM(income) AS a1 FROM patients GROUP BY 1"
        yield Question(grouped.format(form), grouped.format(PLAIN.get(form, form)))


QUESTIONS = tuple(list_questions())


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
    return engine._measure(plan_of(clinic, question)[1].plan, engine._take_cursor())


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
