"""On every other engine too, no person moves its integers by more than the kernel's sensitivity.

DuckDB and Spark are tested in the files beside this one. Another engine joins with its entry in
tests/engines/engines_under_test.py.
"""

import pytest
from engines_under_test import ENGINES
from examples import SLOW, count_examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_sensitivity import QUESTIONS, frame, people, planned, rows

from sfumato.kernel.certify import certify

ELSEWHERE = ("duckdb", "spark")  # test_sensitivity.py and its neighbours; test_spark_neighbours.py


@pytest.fixture(scope="module", params=[name for name in ENGINES if name not in ELSEWHERE])
def under_test(request):
    with ENGINES[request.param](request) as offered:
        yield offered


def measure(under_test, owners, plan, table):
    engine = under_test.load({table.name: (table, frame(owners))})
    try:
        return engine.aggregate(plan)._integers
    finally:
        engine.close()


def list_moved(under_test, question, neighbours, pair):
    """Each measurement's sensitivity, and by how much the two datasets change it."""
    plan, table = planned(question, "id", neighbours)
    before, after = (measure(under_test, owners, plan, table) for owners in pair)
    for one in certify(plan).measurements:
        moved = [abs(int(a) - int(b)) for a, b in zip(before[one.name], after[one.name], strict=True)]
        yield one.sensitivity, moved


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@settings(max_examples=count_examples(8), suppress_health_check=[*SLOW, HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(QUESTIONS), people, st.lists(rows, min_size=1, max_size=9), st.lists(rows, min_size=1, max_size=9)
)
def test_no_neighbour_moves_more(under_test, neighbours, question, others, mine, yours):
    rest = list(enumerate(others))
    without = rest if neighbours == "add-remove" else [*rest, (98, yours)]
    for sensitivity, moved in list_moved(under_test, question, neighbours, ([*rest, (99, mine)], without)):
        assert sum(moved) <= sensitivity.l1, question
        assert sum(step * step for step in moved) <= sensitivity.l2_squared, question


def test_a_bound_that_is_too_small_is_seen(under_test):
    """Negative control: with half the sensitivity, a person with many rows is over it."""
    mine = [{"age": 1, "pay": 9_000, "base": 10, "city": "Rome", "smoker": True}] * 5
    ((sensitivity, moved),) = list_moved(under_test, "SELECT SUM(pay) AS s FROM t", "add-remove", ([(1, mine)], []))
    assert sensitivity.l1 / 2 < sum(moved) <= sensitivity.l1
