"""One row for each person and key: no neighbour moves a measurement over such rows further than the kernel says."""

import pytest
from examples import SLOW, count_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from test_distinct import check, measure, people, person, planned, rows

from sfumato.kernel.certify import certify
from sfumato.kernel.row_sources import PerKey

BY_CITY = "(SELECT id, city, SUM(pay) AS s, COUNT(*) AS n, MIN(age) AS a FROM t GROUP BY id, city) AS q"
BY_JOB = "(SELECT id, job, day, AVG(age) AS a FROM t WHERE smoker GROUP BY id, job, day HAVING COUNT(*) < 3) AS q"
QUESTIONS = [
    f"SELECT AVG(s) AS a, COUNT(*) AS n FROM {BY_CITY}",
    f"SELECT city, SUM(n) AS n, COUNT(DISTINCT id) AS p FROM {BY_CITY} WHERE a > 1 OR a IS NULL GROUP BY city",
    f"SELECT COUNT(DISTINCT job) AS j, SUM(a) AS a FROM {BY_JOB}",
    f"SELECT SUM(q.s) AS s FROM {BY_CITY} JOIN t ON q.id = t.id",
    "SELECT SUM(c) AS c FROM (SELECT id, FLOOR(pay / 3) AS f, COUNT(*) AS c FROM t GROUP BY id, f UNION ALL "
    "SELECT id, age AS f, COUNT(pay) AS c FROM t GROUP BY id, age) AS u",
    # bounds per group: the rows of a person in a group are added up, and the sum is clamped
    "SELECT city, SUM(pay, contribution_bounds_per_group => (0, 3)) AS s FROM t GROUP BY city",
    "SELECT COUNT(*, contribution_bounds_per_group => (0, 1)) AS n, SUM(age, contribution_bounds_per_group => (1, 2)) "
    "AS s FROM t WHERE smoker",
]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@settings(max_examples=count_examples(6), deadline=None, suppress_health_check=SLOW)
@given(people, st.lists(rows, min_size=1, max_size=9), st.lists(rows, min_size=1, max_size=9))
def test_no_neighbour_moves_more_rows_of_a_key(question, neighbours, others, mine, yours):
    rest = list(enumerate(others))
    without = rest if neighbours == "add-remove" else [*rest, (98, yours)]
    check(question, "id", neighbours, [*rest, (99, mine)], without)


COUNTED = "SELECT COUNT(*) AS n FROM (SELECT id, job, COUNT(*) AS c FROM t GROUP BY id, job) AS q"


def test_a_person_with_many_keys_weighs_as_much_as_the_bound():
    plan, table = planned(COUNTED, "id", "add-remove")
    assert isinstance(plan.source, PerKey)
    assert plan.source.max_rows == plan.reach == 2
    mine = [person(f"job {index}") for index in range(8)]
    (moved,) = measure([(1, mine)], plan, table)["count1"].values()
    (certified,) = certify(plan).measurements
    assert certified.sensitivity.l1 == 2 << 16
    assert (2 << 16) - 8 < moved <= 2 << 16


def test_other_people_do_not_change_a_weight():
    plan, table = planned(COUNTED, "id", "add-remove")
    mine = [person("a"), person("b")]
    alone = measure([(1, mine)], plan, table)["count1"][0]
    crowd = [(place, [person("c")]) for place in range(2, 9)]
    both = measure([(1, mine), *crowd], plan, table)["count1"][0]
    assert (alone, both) == (2 << 16, 9 << 16)


def test_declared_values_bound_the_rows():
    question = "SELECT SUM(c) AS c FROM (SELECT id, smoker, COUNT(*) AS c FROM t GROUP BY id, smoker) AS q"
    plan, _ = planned(question, "id", "add-remove")
    assert plan.source.max_rows == 2
