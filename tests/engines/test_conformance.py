"""One suite for all engines: their integers are the reference engine's, bit for bit.

Every aggregate, function and form of question, on hostile rows, on no rows, and with one person who has very many.
DuckDB is also compared in test_differential.py and its neighbours, with more questions.
"""

from functools import cache
from itertools import islice

import pytest
from by_cell import list_by_cell
from engines_under_test import ENGINES
from generated_questions import questions
from hostile_clinic import list_tables, open_clinic
from test_differential import MOST_CELLS
from test_function_questions import QUESTIONS as OF_FUNCTIONS
from test_row_functions import FUNCTIONS, ODD_NUMBERS, ODD_TEXTS, row, same

import sfumato as sf
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.query.bind import bind
from sfumato.query.parse import parse
from sfumato.row_meanings.evaluate import evaluate

LOSS = sf.PureDP(1)
STATES = {"hostile": {}, "empty": {"people": 0}, "crowd": {"people": 3, "crowd": 400}, "no sites": {"sites": False}}
LINKED = (  # subqueries that meet the outer row once: by the person and another column, or by the declared link
    "SELECT site, COUNT(*) AS n, SUM(cost) AS s FROM visits v WHERE EXISTS (SELECT 1 FROM visits w "
    "WHERE w.pid = v.pid AND w.kind = v.kind AND w.cost > 3) GROUP BY site",
    "SELECT COUNT(*) AS n FROM visits v WHERE NOT EXISTS (SELECT 1 FROM tests t WHERE t.visit_id = v.visit_id)",
    "SELECT COUNT(*) AS n FROM visits v WHERE (SELECT COUNT(*) FROM visits w "
    "WHERE w.pid = v.pid AND w.day = v.day) > 1",
    "SELECT COUNT(*) AS n, SUM(l) AS s FROM (SELECT visit_id, SUM(level) AS l FROM tests "
    "GROUP BY visit_id) WHERE l > 2",
    "SELECT MONTH(f) AS m, COUNT(*) AS n, SUM(k) AS k FROM (SELECT pid, MIN(day) AS f, MAX(day) AS l, "
    "COUNT(DISTINCT site) AS k FROM visits GROUP BY pid) AS t WHERE l > DATE '2020-01-01' GROUP BY m",
    "SELECT COUNT(*) AS n FROM visits v WHERE NOT v.kind IN (SELECT w.kind FROM visits w WHERE w.pid = v.pid "
    "AND w.cost > 3)",
    "SELECT COUNT(*) AS n FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.pid = v.pid AND w.day < v.day)",
    "SELECT SUM(k) AS k FROM (SELECT pid, kind, COUNT(DISTINCT cost) AS k FROM visits GROUP BY pid, kind) AS t",
)
BY_ID = (  # ids compared with constants: the person's, and another one
    "SELECT city, COUNT(*) AS n, SUM(age) AS s FROM patients WHERE pid <> 1 GROUP BY city",
    "SELECT COUNT(*) AS n FROM visits v WHERE v.pid > 2 OR v.visit_id IN ('v0', 'v3')",
    "SELECT CASE WHEN v.pid = '03' THEN 1 ELSE 0 END AS k, COUNT(*) AS n FROM patients p LEFT JOIN visits v "
    "ON p.pid = v.pid AND v.cost > 3 GROUP BY 1",
    "SELECT COUNT(*) AS n, SUM(k) AS s FROM (SELECT pid, COUNT(*) AS k FROM visits WHERE pid <> 2 GROUP BY pid) AS t "
    "WHERE pid BETWEEN 1 AND 4",
    "SELECT COUNT(*) AS n FROM (SELECT pid, kind, COUNT(*) AS k FROM visits GROUP BY pid, kind) AS t WHERE pid <> 1",
    "SELECT COUNT(*) AS n FROM (SELECT pid, age AS x FROM patients WHERE pid <> 1 UNION ALL SELECT pid, cost "
    "FROM visits) AS u WHERE pid < 4",
    "SELECT kind, COUNT(*) AS n, COUNT(DISTINCT pid) AS people FROM visits WHERE 1 <> pid GROUP BY kind",
    "SELECT COUNT(*) AS n FROM visits v JOIN tests t ON t.visit_id = v.visit_id WHERE t.visit_id <> 'v1' AND pid > 0",
)
FAST, MANY, EACH = (100, 101), range(200, 240), 30


@pytest.fixture(scope="module", params=ENGINES)
def under_test(request):
    with ENGINES[request.param](request) as offered:
        yield offered


@pytest.fixture(scope="module")
def loaded(under_test):
    """Engines over the states of the clinic, each loaded once."""
    engines = {}

    def load(state):
        if state not in engines:
            engines[state] = under_test.load(list_tables(**STATES[state]))
        return engines[state]

    yield load
    for engine in engines.values():
        engine.close()


@cache
def clinic(state):
    return open_clinic(**STATES[state])


@cache
def expected(state, text):
    """The plan of a question and the reference engine's integers; None where the question is refused or too wide."""
    opened = clinic(state)
    try:
        plan = opened.curator.desk.plan(bind(parse(text), opened.curator.dataset), LOSS).plan
    except (sf.errors.QueryError, sf.errors.InvalidParameter):
        return None
    if (plan.cells or 0) > MOST_CELLS:
        return None
    return plan, list_by_cell(ReferenceEngine(opened.held).aggregate(plan), plan)


def compare(engine, state, texts):
    """The questions whose integers differ, and how many were compared."""
    wrong, compared = [], 0
    for text in texts:
        found = expected(state, text)
        if found is not None:
            plan, integers = found
            engine.check(plan)
            compared += 1
            if list_by_cell(engine.aggregate(plan), plan) != integers:
                wrong.append(text)
    return wrong, compared


@cache
def generated(seed):
    return tuple(question.text for question in islice(questions(seed), EACH))


@pytest.mark.parametrize("seed", FAST)
def test_generated_questions_have_the_reference_integers(under_test, loaded, seed):
    texts = generated(seed)[seed % under_test.every :: under_test.every]
    wrong, compared = compare(loaded("hostile"), "hostile", texts)
    assert wrong == []
    assert compared > len(texts) // 2


@pytest.mark.parametrize("state", [state for state in STATES if state != "hostile"])
def test_so_they_do_in_other_states(under_test, loaded, state):
    """Without people; with one person who has hundreds of rows in each table; with an empty public table."""
    texts = generated(FAST[0])[: EACH // 2][:: under_test.every]
    wrong, compared = compare(loaded(state), state, texts)
    assert wrong == []
    assert compared > len(texts) // 2


def test_every_function_in_a_question_has_the_reference_integers(under_test, loaded):
    texts = [question.text for question in OF_FUNCTIONS][:: under_test.every]
    wrong, compared = compare(loaded("hostile"), "hostile", texts)
    assert wrong == []
    assert compared == len(texts)


@pytest.mark.parametrize("state", ["hostile", "crowd"])
def test_subqueries_that_meet_one_row_have_the_reference_integers(loaded, state):
    assert compare(loaded(state), state, LINKED) == ([], len(LINKED))


@pytest.mark.parametrize("state", ["hostile", "crowd"])
def test_ids_beside_constants_have_the_reference_integers(loaded, state):
    assert compare(loaded(state), state, BY_ID) == ([], len(BY_ID))


@pytest.mark.slow
def test_all_functions_in_questions_have_the_reference_integers(loaded):
    assert compare(loaded("hostile"), "hostile", [question.text for question in OF_FUNCTIONS])[0] == []


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("seed", MANY)
def test_many_generated_questions_have_the_reference_integers(loaded, state, seed):
    assert compare(loaded(state), state, generated(seed))[0] == []


ODD_ROWS = [
    *(row(x=one, y=two) for one in ODD_NUMBERS for two in ODD_NUMBERS),
    *(row(t=one, u=two) for one in ODD_TEXTS for two in ODD_TEXTS[:5]),
]


def test_every_function_has_the_same_bits(under_test):
    """On odd numbers and texts. Days and moments are compared below."""
    found = under_test.evaluate(ODD_ROWS, FUNCTIONS)
    wrong = [
        (function, given, value, wanted)
        for given, values in zip(ODD_ROWS, found, strict=True)
        for function, value in zip(FUNCTIONS, values, strict=True)
        if not same(value, wanted := evaluate(function, given))
    ]
    assert wrong == []


def test_a_wrong_engine_is_noticed(under_test, loaded):
    """Negative control: the rows of another state are other integers."""
    assert compare(loaded("empty"), "hostile", generated(FAST[0])[:: under_test.every])[0]
