"""Generated questions: DuckDB measures what plain Python measures, integer for integer; plain SQL agrees.

Three witnesses, each independent of the others in something: the reference engine runs the same plan without SQL; the
calm clinic, where nothing is bounded, is asked the analyst's own text; and every plan is certified and previewed.
"""

import re
from dataclasses import replace
from functools import cache
from itertools import islice

import pytest
from by_cell import list_by_cell
from generated_questions import questions
from hostile_clinic import open_clinic
from plain_answers import find_differences, make_plain_tables

import sfumato as sf
from sfumato.answering.plan_digests import name_plan
from sfumato.engines.reference import reference_engine, reference_rows
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.kernel.certify import certify
from sfumato.query.bind import bind
from sfumato.query.parse import parse
from sfumato.row_meanings import evaluate

SEEDS = range(12)
EACH = 30
MOST_CELLS = 2_000  # more take long in Python
LOSS = sf.PureDP(1)


@pytest.fixture(scope="module")
def hostile():
    """NULL, NaN, infinities, duplicates, people in one table only, and one person with far too many rows."""
    return open_clinic()


@pytest.fixture(scope="module")
def empty():
    """Without any people: rows that lead to no person are dropped."""
    return open_clinic(people=0)


@pytest.fixture(scope="module")
def calm():
    return open_clinic(crowd=3, calm=True)


@cache
def asked(seed):
    """The first questions of a seed."""
    return tuple(islice(questions(seed), EACH))


@cache
def bound(clinic, question):
    """The query and its plan; None where the question is refused, or too wide for plain Python."""
    try:
        query = bind(parse(question.text), clinic.curator.dataset)
        planned = clinic.curator.desk.plan(query, LOSS)
    except (sf.errors.QueryError, sf.errors.InvalidParameter):
        return None
    return None if (planned.plan.cells or 0) > MOST_CELLS else (query, planned)


def answerable(clinic, seeds=SEEDS):
    """The questions that are accepted, and their plans."""
    for question in (made for seed in seeds for made in asked(seed)):
        found = bound(clinic, question)
        if found is not None:
            yield question, *found


@cache
def measured(clinic, question):
    """DuckDB's integers."""
    engine = clinic.curator.engine
    return engine.aggregate(bound(clinic, question)[1].plan)


def agree(clinic, question, planned):
    exact, plan = measured(clinic, question), planned.plan
    return list_by_cell(exact, plan) == list_by_cell(ReferenceEngine(clinic.held).aggregate(plan), plan)


@pytest.mark.parametrize("seed", SEEDS)
def test_duckdb_measures_what_plain_python_measures(seed, hostile, empty):
    """Of each question also: the check passes, the certificate is made, the preview reads. One test, so that SQL is
    written once for each: that takes longest."""
    for question, _, planned in answerable(hostile, [seed]):
        plan, engine = planned.plan, hostile.curator.engine
        engine.check(plan)
        certificate, preview = certify(plan), hostile.curator.preview(question.text, epsilon=1)
        assert [measurement.name for measurement in certificate.measurements] == [
            measurement.name for measurement in plan.measurements
        ]
        assert preview.cost.epsilon == 1
        assert all(measurement.name in preview.explain() for measurement in plan.measurements)
        assert agree(hostile, question, planned), question.text
        queries = engine._queries.find(plan)
        empty.curator.engine._queries.keep(plan, queries)
        for other in (empty.curator.engine, ReferenceEngine(empty.held)):
            assert list_by_cell(other.aggregate(plan), plan) == {}, question.text


@pytest.mark.parametrize("seed", SEEDS)
def test_where_nothing_is_bounded_the_integers_are_plain_sqls(seed, calm):
    compared, plain = 0, make_plain_tables(calm)
    for question, query, planned in answerable(calm, [seed]):
        rows = plain.execute(question.plain).fetchall()
        wrong, numbers = find_differences(rows, query, planned, measured(calm, question))
        assert wrong == [], question.text
        assert agree(calm, question, planned), question.text
        compared += numbers
    assert compared > 10


FORMS = {
    "inner join": r" (INNER )?JOIN ", "left join": r"LEFT (OUTER )?JOIN", "using": r"USING \(", "CTE": r"WITH q\d+ AS",
    "CTE in a subquery": r"\(WITH ", "three SELECTs below": r"(SELECT.*){4}", "union": "UNION ALL",
    "self-join": r"visits.*JOIN visits", "public": "sites", "through another table": "tests", "row unit": "polls",
    "star": r"SELECT (q\d+\.)?\*[ ,]", "without aliases": r"FROM (patients|visits|tests)( WHERE| GROUP|$)",
    "per person": r"COUNT\(\*\) AS n.* GROUP BY", "per person, HAVING": r"GROUP BY \S+ HAVING",
    "onto a person's row": r"JOIN (\(SELECT \S+ AS pid, COUNT\(\*\) AS n|q\d+ q\d+)",
    "quantile": r"(QUANTILE_CONT|MEDIAN)\(.*AS a\d", "percentile": "WITHIN GROUP", "extreme": r"(MIN|MAX)\(.*AS a\d",
    "mode": r"MODE\(", "top": r"TOP_K\(", "case": "CASE WHEN", "division": " / ", "coalesce": r"COALESCE\(",
    "like": "LIKE", "in": r" IN \(", "between": "BETWEEN", "null": "IS (NOT )?NULL",
    "people": r"COUNT\(DISTINCT \S*pid\)",
    "different values": r"COUNT\(DISTINCT (?!\S*pid\))", "sum of different values": r"(SUM|AVG)\(DISTINCT",
    "mean": r"AVG\(.*AS a\d", "variance": r"(VARIANCE|STDDEV)\(", "dates": "EXTRACT|DATE_DIFF", "moments": "seen",
    "key by expression": "GROUP BY (FLOOR|CEIL|CASE|COALESCE|DATE_TRUNC|YEAR|EXTRACT)",
}  # fmt: skip


def test_there_are_300_different_questions_of_every_form(hostile):
    found = {question.text: planned.plan for question, _, planned in answerable(hostile)}
    assert len(found) > 0.85 * EACH * len(SEEDS), "too many were refused"
    assert len({name_plan(plan)[1] for plan in found.values()}) >= 300
    assert sum(plan.cells is None for plan in found.values()) >= 40, "keys that the data names"
    for form, pattern in FORMS.items():
        assert sum(re.search(pattern, text) is not None for text in found) >= 5, form


def test_an_empty_public_table_meets_nobody():
    clinic = open_clinic(sites=False)
    about = [question for question in answerable(clinic, SEEDS[:4]) if "sites" in question[0].text]
    assert len(about) > 5
    for question, _, planned in about:
        assert agree(clinic, question, planned), question.text


def floored(value, exponent):
    return int(max(-1e300, min(1e300, value * 2.0**-exponent)) // 1)


def without_bound(measured, row, most, *, per_row):
    return RIGHT["_contribution"](measured, replace(row, held=most), most, per_row=per_row)


def away_from_zero(measured, row, most, *, per_row):
    made = RIGHT["_contribution"](measured, row, most, per_row=per_row)
    return made - 1 if made < 0 and row.held > most else made


def other_order(texts, unit):
    return RIGHT["find_place"](texts, f"{unit}!")


def other_place(row):
    return RIGHT["_place"](row)[0][::-1]


def never_clamped(column, rows):
    return RIGHT["_of_unit"](replace(column, lower=-(1 << 60), upper=1 << 60), rows)


def zero_for_null(function, values):
    made = RIGHT["_apply"](function, values)
    return 0.0 if function == "/" and made is None else made


WRONG = {
    "_nearest": floored, "_contribution": without_bound, "_contribution ": away_from_zero, "find_place": other_order,
    "_place": other_place, "_of_unit": never_clamped, "_apply": zero_for_null,
}  # fmt: skip
WHERE = {"_contribution": reference_engine, "find_place": reference_engine, "_apply": evaluate}
RIGHT = {name.strip(): getattr(WHERE.get(name.strip(), reference_rows), name.strip()) for name in WRONG}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_reference_is_noticed(name, hostile, monkeypatch):
    """Negative controls: rounding, weights, their rounding, the order of groups and of rows that meet, a person's
    total, a division."""
    monkeypatch.setattr(WHERE.get(name.strip(), reference_rows), name.strip(), WRONG[name])
    assert not all(agree(hostile, question, planned) for question, _, planned in answerable(hostile))


def test_wrong_plain_answers_are_noticed(calm):
    """Negative control of the plain SQL: one more visit is noticed."""
    plain, wrong = make_plain_tables(calm), []
    plain.execute("INSERT INTO visits SELECT * FROM visits LIMIT 1")
    for question, query, planned in answerable(calm, SEEDS[:1]):
        rows = plain.execute(question.plain).fetchall()
        wrong += find_differences(rows, query, planned, measured(calm, question))[0]
    assert len(wrong) > 3
