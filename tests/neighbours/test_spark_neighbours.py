"""Random neighbouring tables on Spark, from DataFrames on: one person changes no more than is certified."""

import math
from random import Random

import pytest
from by_cell import list_by_cell
from spark_session import start_spark, to_spark
from test_joins import PATIENTS, QUESTIONS, SITE_ROWS, SITES, VISITS, frames, planned

from sfumato.engines.spark.spark_engine import SparkEngine
from sfumato.kernel.certify import certify

NUMBERS = (None, math.nan, math.inf, -math.inf, 3.0, 50.0, -0.0, 0.5, 119.25)
WORDS = ("smith", "priest", "", None, "Smith", "ß:a", "a")


def draw_person(random, most):
    """Rows of one person in both tables: none, a few, or more than a join meets."""
    patients = [
        {
            "age": random.choice(NUMBERS),
            "city": random.choice(("Rome", "Oslo", "Bern", None)),
            "job": random.choice(WORDS),
        }
        for _ in range(random.randrange(most))
    ]
    visits = [
        {
            "cost": random.choice(NUMBERS),
            "site": random.choice((None, 1.0, 2.0, 3.0, 4.0)),
            "kind": random.choice(WORDS),
        }
        for _ in range(random.randrange(3 * most))
    ]
    return patients, visits


def load(session, owners):
    one, two = frames(owners)
    given = {"patients": (PATIENTS, one), "visits": (VISITS, two), "sites": (SITES, SITE_ROWS)}
    return SparkEngine.of_tables(
        session, {name: (table, session.createDataFrame(*to_spark(rows))) for name, (table, rows) in given.items()}
    )


def find_excess(plan, before, after):
    """The measurements that moved by more than is certified."""
    moved = {}
    lonely = {where[1] for where in before.keys() ^ after.keys() if where[0].startswith("keys")}
    for where in before.keys() | after.keys():
        if where[1] not in lonely or where[0].startswith("keys"):
            moved.setdefault(where[0], []).append(abs(before.get(where, 0) - after.get(where, 0)))
    return [
        one.name
        for one in certify(plan).measurements
        if sum(moved.get(one.name, [])) > one.sensitivity.l1
        or sum(step**2 for step in moved.get(one.name, [])) > one.sensitivity.l2_squared
    ]


def compare_neighbours(seed, questions):
    random, session = Random(seed), start_spark()
    rest = [(number, draw_person(random, 4)) for number in range(4)]
    with_me, without = [*rest, (99, draw_person(random, 16))], [*rest, (98, draw_person(random, 16))]
    engines = {"add-remove": (load(session, with_me), load(session, rest)), "replace-one": None}
    engines["replace-one"] = (engines["add-remove"][0], load(session, without))
    for neighbours, (one, two) in engines.items():
        for question in questions:
            plan = planned(question, neighbours)
            before, after = (list_by_cell(engine.aggregate(plan), plan) for engine in (one, two))
            assert find_excess(plan, before, after) == [], (seed, neighbours, question)
    for engine in {engines["add-remove"][0], engines["add-remove"][1], engines["replace-one"][1]}:
        engine.close()


def test_no_neighbour_moves_more_on_spark():
    compare_neighbours(1, QUESTIONS[2::6])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
def test_no_neighbour_moves_more_on_spark_in_any_question(seed):
    compare_neighbours(seed, QUESTIONS)


def test_a_larger_step_is_seen():
    """Negative control: one more step than is certified."""
    plan = planned("SELECT COUNT(*) AS n FROM visits", "add-remove")
    (certified,) = certify(plan).measurements
    step = int(certified.sensitivity.l1)
    assert find_excess(plan, {(certified.name, 0, 0): step}, {}) == []
    assert find_excess(plan, {(certified.name, 0, 0): step + 1}, {}) == [certified.name]
