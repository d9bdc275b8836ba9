"""Generated questions: DuckDB measures what plain Python measures, integer for integer; plain SQL agrees.

Three witnesses, each independent of the others in something: the reference engine runs the same plan without SQL; the
calm clinic, where nothing is bounded, is asked the analyst's own text; and every plan is certified and previewed.
"""

import re
from functools import cache
from itertools import islice

import pytest
from generated_questions import questions
from hostile_clinic import open_clinic
from plain_answers import differences, plain_tables

import sfumato as sf
from sfumato.engines import reference_engine
from sfumato.engines.reference_engine import ReferenceEngine
from sfumato.kernel.certify import certify
from sfumato.kernel.plan import Kind, answer_key, digest
from sfumato.query.bind import bind
from sfumato.query.parse import parse

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
    """No people at all: the rows that lead to nobody are dropped."""
    return open_clinic(people=0)


@pytest.fixture(scope="module")
def calm():
    return open_clinic(crowd=3, calm=True)


@cache
def asked(seed):
    """The first questions of a seed."""
    return tuple(islice(questions(seed), EACH))


def bound(clinic, question):
    """The query and its plan; None where the question is refused, or too wide for plain Python."""
    try:
        query = bind(parse(question.text), clinic.curator.dataset)
    except sf.errors.QueryError:
        return None
    planned = clinic.curator.planned(query, LOSS)
    return None if (planned.plan.cells or 0) > MOST_CELLS else (query, planned)


def by_key(exact, plan):
    """Every integer that is not zero, under (measurement, cell, bin); keys that nobody holds are never released."""
    people = next((each.name for each in plan.measurements if each.kind is Kind.KEYS), None)
    shown = {}
    for number, cell in enumerate(exact._keys if exact._keys is not None else range(plan.cells)):
        if people is None or exact._integers[people][number]:
            shown |= {(name, cell): integers[number] for name, integers in exact._integers.items()}
            for name, bins in exact._bins.items():
                shown |= {(name, cell, place): weight for place, weight in bins[number].items()}
    return {where: value for where, value in shown.items() if value}


@pytest.mark.parametrize("seed", SEEDS)
def test_duckdb_measures_what_plain_python_measures(seed, hostile, empty):
    differing, engine = [], hostile.curator.engine
    for question in asked(seed):
        found = bound(hostile, question)
        if found is None:
            continue
        plan = found[1].plan
        assert answer_key(plan) == answer_key(bound(empty, question)[1].plan)
        engine.check(plan)
        empty.curator.engine._ready[digest(plan)] = engine._queries(plan)  # lowering takes longest, and is the same
        for clinic in (hostile, empty):
            measured = by_key(clinic.curator.engine._measure(plan), plan)
            if measured != by_key(ReferenceEngine(clinic.held).aggregate(plan), plan):
                differing.append(question.text)
    assert differing == []


@pytest.mark.parametrize("seed", SEEDS)
def test_without_bounding_the_integers_are_plain_sqls(seed, calm):
    compared, plain = 0, plain_tables(calm)
    for question in asked(seed):
        found = bound(calm, question)
        if found is None:
            continue
        query, planned = found
        exact = calm.curator.engine._measure(planned.plan)
        wrong, numbers = differences(plain.execute(question.plain).fetchall(), query, planned, exact)
        assert wrong == [], question.text
        assert by_key(exact, planned.plan) == by_key(ReferenceEngine(calm.held).aggregate(planned.plan), planned.plan)
        compared += numbers
    assert compared > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_every_plan_is_certified_and_previewed(seed, hostile):
    for question in asked(seed):
        found = bound(hostile, question)
        if found is None:
            continue
        certificate = certify(found[1].plan)
        preview = hostile.curator.preview(question.text, epsilon=1)
        assert {each.name for each in certificate.measurements} == {each.name for each in found[1].plan.measurements}
        assert preview.cost.epsilon == 1
        assert "One person" in preview.explain() or certificate.measurements


FORMS = {
    "inner join": r" (INNER )?JOIN ", "left join": r"LEFT (OUTER )?JOIN", "using": r"USING \(", "CTE": r"WITH q\d+ AS",
    "CTE in a subquery": r"\(WITH ", "three SELECTs below": r"(SELECT.*){4}",
    "union": "UNION ALL", "per person": r"COUNT\(\*\) AS n.* GROUP BY", "per person, HAVING": r"GROUP BY \S+ HAVING",
    "onto a person's row": r"JOIN (\(SELECT \S+ AS pid, COUNT\(\*\) AS n|q\d+ q\d+)", "self-join": r"visits.*JOIN visits",
    "public": "sites", "through another table": "tests", "quantile": r"QUANTILE_CONT|PERCENTILE_CONT|MEDIAN",
    "extremes": r"a\d FROM|(SELECT|,) (MIN|MAX)\(", "mode": r"MODE\(", "top": r"TOP_K\(", "case": r"CASE WHEN",
    "division": r" / ", "coalesce": r"COALESCE\(", "like": "LIKE", "in": r" IN \(", "between": "BETWEEN",
    "null": "IS (NOT )?NULL", "people": r"COUNT\(DISTINCT", "mean": r"AVG\(", "variance": r"VARIANCE\(|STDDEV\(",
    "key by expression": r"GROUP BY (FLOOR|CEIL|CASE|COALESCE|DATE_TRUNC|YEAR|EXTRACT)", "dates": r"EXTRACT|DATE_DIFF",
}  # fmt: skip


def test_there_are_300_different_questions_of_every_form(hostile):
    everything = [question for seed in SEEDS for question in asked(seed)]
    found = {question.text: plan for question in everything if (plan := bound(hostile, question)) is not None}
    assert len(found) > 0.85 * len(everything), "too many were refused"
    plans = [planned.plan for _, planned in found.values()]
    assert len({answer_key(plan) for plan in plans}) >= 300
    assert sum(plan.cells is None for plan in plans) >= 40, "keys that the data names"
    for form, pattern in FORMS.items():
        assert sum(re.search(pattern, text) is not None for text in found) >= 5, form


def test_an_empty_public_table_meets_nobody():
    clinic = open_clinic(sites=False)
    tried = 0
    for question in (each for seed in SEEDS for each in asked(seed) if "sites" in each.text):
        found = bound(clinic, question)
        if found is not None and tried < 20:
            plan, tried = found[1].plan, tried + 1
            measured = by_key(clinic.curator.engine._measure(plan), plan)
            assert measured == by_key(ReferenceEngine(clinic.held).aggregate(plan), plan), question.text
    assert tried == 20


def floored(value, exponent):
    return int(max(-1e300, min(1e300, value * 2.0**-exponent)) // 1)


def without_bound(each, row, most):
    return RIGHT["_contribution"](each, reference_engine.replace(row, held=most), most)


def away_from_zero(each, row, most):
    made = RIGHT["_contribution"](each, row, most)
    return made - 1 if made < 0 and row.held > most else made


def other_order(texts, unit):
    return RIGHT["_order"](texts, f"{unit}!")


def never_clamped(column, rows):
    return RIGHT["_of_unit"](reference_engine.replace(column, lower=-(1 << 60), upper=1 << 60), rows)


def zero_for_null(function, values):
    made = RIGHT["_apply"](function, values)
    return 0.0 if function == "/" and made is None else made


WRONG = {
    "_nearest": floored, "_contribution": without_bound, "_contribution ": away_from_zero, "_order": other_order,
    "_of_unit": never_clamped, "_apply": zero_for_null,
}  # fmt: skip
RIGHT = {name.strip(): getattr(reference_engine, name.strip()) for name in WRONG}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_reference_is_noticed(name, hostile, monkeypatch):
    """Negative controls: rounding, weights, their rounding, the order of groups, a person's total, a division."""
    monkeypatch.setattr(reference_engine, name.strip(), WRONG[name])
    for question in (each for seed in SEEDS for each in asked(seed)):
        found = bound(hostile, question)
        if found is not None:
            plan = found[1].plan
            measured = by_key(hostile.curator.engine._measure(plan), plan)
            if measured != by_key(ReferenceEngine(hostile.held).aggregate(plan), plan):
                return
    pytest.fail("nobody noticed")


def test_wrong_plain_answers_are_noticed(calm):
    """Negative control of the other witness: one row too many in a table."""
    plain, wrong = plain_tables(calm), []
    plain.execute("INSERT INTO visits SELECT * FROM visits LIMIT 1")
    for question in asked(0):
        found = bound(calm, question)
        if found is not None:
            exact = calm.curator.engine._measure(found[1].plan)
            wrong += differences(plain.execute(question.plain).fetchall(), *found, exact)[0]
    assert len(wrong) > 3
