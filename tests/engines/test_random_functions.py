"""Every row-level function, nested at random: DuckDB = plain Python on hostile values, = plain SQL on calm ones."""

import re
from functools import cache
from itertools import count, islice

import pytest
from by_cell import list_by_cell
from generated_functions import function_questions
from hostile_clinic import open_clinic
from plain_answers import find_differences, make_plain_tables

import sfumato as sf
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.kernel.certify import certify
from sfumato.query.bind import bind
from sfumato.query.function_words import ROW_FUNCTIONS
from sfumato.query.parse import parse
from sfumato.query.tokens import DATES
from sfumato.row_meanings import evaluate

SEEDS = range(8)
EACH = 60
MOST_CELLS = 2_000
LOSS = sf.PureDP(1)
SECONDS = {"SECOND", "EPOCH", "UNIX_SECONDS"}  # other names of EXTRACT: tests/engines/test_function_questions.py
# HISTOGRAM is a key of its own: tests/query/test_results.py. INITCAP is of declared values only, and unknown to plain
# DuckDB: tests/query/test_function_calls.py
ELSEWHERE = SECONDS | {"HISTOGRAM", "INITCAP"}
FUNCTIONS = {*ROW_FUNCTIONS, *DATES} - ELSEWHERE


@pytest.fixture(scope="module")
def hostile():
    return open_clinic()


@pytest.fixture(scope="module")
def calm():
    clinic = open_clinic(crowd=3, calm=True)
    return clinic, make_plain_tables(clinic)


@cache
def asked(seed):
    return tuple(islice(function_questions(seed), EACH))


@cache
def bound(clinic, question):
    """The query and its plan; None where it is refused: a nested number may lack a bound."""
    try:
        query = bind(parse(question.text), clinic.curator.dataset)
        planned = clinic.curator.desk.plan(query, LOSS)
        certify(planned.plan)  # refuses a constant
    except (sf.errors.QueryError, sf.errors.InvalidParameter):
        return None
    return None if (planned.plan.cells or 0) > MOST_CELLS else (query, planned)


def measure(clinic, plan):
    engine = clinic.curator.engine
    return engine.aggregate(plan)


def agrees(clinic, plan):
    expected = list_by_cell(ReferenceEngine(clinic.held).aggregate(plan), plan)
    return list_by_cell(measure(clinic, plan), plan) == expected


def compare(question, hostile, calm):
    """DuckDB's integers are plain Python's on hostile values. On calm ones, they are plain SQL's."""
    assert agrees(hostile, bound(hostile, question)[1].plan), question.text
    clinic, plain = calm
    query, planned = bound(clinic, question)
    rows = plain.execute(question.plain).fetchall()
    wrong, numbers = find_differences(rows, query, planned, measure(clinic, planned.plan))
    assert wrong == [], f"{question.text}\n{question.plain}"
    return numbers


def list_functions(question):
    return {name.upper() for name in re.findall(r"(\w+)\(", question.text)} & FUNCTIONS


@cache
def choose_questions(clinic):
    """The questions that bring a function that no question before them has."""
    chosen, seen = [], set()
    for question in (one for seed in SEEDS for one in asked(seed)):
        if list_functions(question) - seen and bound(clinic, question) is not None:
            chosen.append(question)
            seen |= list_functions(question)
    return chosen, seen


def test_every_function_nested_at_random(hostile, calm):
    chosen, seen = choose_questions(hostile)
    assert seen == FUNCTIONS
    assert sum(compare(question, hostile, calm) for question in chosen) > 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_random_functions_are_those_of_plain_python_and_plain_sql(seed, hostile, calm):
    found = [question for question in asked(seed) if bound(hostile, question) is not None]
    assert len(found) > 0.6 * EACH
    assert sum(compare(question, hostile, calm) for question in found) > 30


@pytest.mark.parametrize("broken", ["abs", "replace", "upper", "floor"])
def test_a_wrong_function_is_noticed(broken, hostile, monkeypatch):
    """Negative control: a function of plain Python that gives NULL now and then is noticed."""
    right, calls = evaluate._apply, count()

    def wrong(function, values):
        made = right(function, values)
        return None if function == broken and next(calls) % 5 == 4 else made

    questions = [*choose_questions(hostile)[0], *asked(0), *asked(1)]
    plans = [found[1].plan for question in questions if (found := bound(hostile, question)) is not None]
    used = [plan for plan in plans if f"function='{broken}'" in repr(plan)]
    assert used
    monkeypatch.setattr(evaluate, "_apply", wrong)
    assert not all(agrees(hostile, plan) for plan in used)
