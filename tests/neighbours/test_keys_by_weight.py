"""Undeclared keys by weight: one person moves all weights by 1 in L2, and their keys weigh alike, on both engines."""

from dataclasses import replace

import pandas as pd
import pytest
from examples import SLOW, count_examples
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.kernel.certify import certify
from sfumato.kernel.key_rounds import KeyRounds
from sfumato.kernel.mechanisms import GaussianNoise
from sfumato.kernel.plan import Keys, WeightedKeys
from sfumato.kernel.weighted_keys import WHOLE, WeightedKeyRule, find_weight
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

COLUMNS = {"id": sf.Id(), "job": sf.Text(), "town": sf.Text(), "pay": sf.Real(0, 100)}
BY_JOB = "SELECT job, COUNT(*) AS n FROM t GROUP BY job"
QUESTIONS = [
    BY_JOB,
    "SELECT job, town, SUM(pay) AS s FROM t WHERE pay > 1 GROUP BY job, town",
    "SELECT town, MEDIAN(pay) AS m FROM t GROUP BY town",
]
GROUPS = 4
rows = st.fixed_dictionaries(
    {
        "job": st.sampled_from([None, "", "a", "A", "ä", "a:b", "NULL", "b", "c"]),
        "town": st.sampled_from([None, "x", "y"]),
        "pay": st.sampled_from([None, float("nan"), -1.0, 0.0, 2.0, 1e300]),
    }
)
people = st.lists(st.lists(rows, min_size=1, max_size=8), max_size=4)


def planned_in(rounds, question, neighbours):
    """The plan with its keys weighed in so many rounds."""
    plan, table = planned(question, neighbours)
    weighed = [
        replace(one, quantity=WeightedKeys(rounds)) if isinstance(one.quantity, Keys | WeightedKeys) else one
        for one in plan.measurements
    ]
    return replace(plan, measurements=tuple(weighed)), table


def list_holdings(exact):
    """The keys of each person, without the numbers that an engine gives to people and keys."""
    held = {}
    for person, cell in zip(exact._holdings.people.tolist(), exact._holdings.cells.tolist(), strict=True):
        held.setdefault(person, []).append(exact._keys[cell])
    return sorted(map(repr, map(sorted, held.values())))


def planned(question, neighbours, groups=GROUPS, **options):
    table = Table("t", None, "id", COLUMNS, max_rows_per_unit=3, max_groups_per_unit=groups)
    dataset = Dataset("t", [table], sf.Budget(epsilon=100, delta="1e-3"), neighbours=neighbours)
    return choose_plan(bind(parse(question), dataset), sf.PureDP(1), dataset, {"t": "1"}, **options).plan, table


def measure(owned, plan, table):
    """The weight of each key, on DuckDB; the reference engine has the same."""
    records = [{"id": f"p{index}", **row} for index, rows in owned.items() for row in rows]
    data = pd.DataFrame(records, columns=list(COLUMNS)).astype(object).astype({"pay": float})
    duck = DuckDBEngine.of_data(table, data)
    try:
        names = [name[0] for name in duck._connection.execute('DESCRIBE "t"').fetchall()]
        held = duck._connection.execute('SELECT * FROM "t"').fetchall()
        duck.check(plan)
        one = duck.aggregate(plan)
    finally:
        duck.close()
    two = ReferenceEngine({"t": [dict(zip(names, row, strict=True)) for row in held]}).aggregate(plan)
    name = next(one.name for one in plan.measurements if isinstance(one.quantity, WeightedKeys))
    found = [dict(zip(exact._keys, map(int, exact._integers[name]), strict=True)) for exact in (one, two)]
    assert found[0] == {key: weight for key, weight in found[1].items() if weight}
    assert (one._holdings is not None) == plan.holds_pairs
    if plan.holds_pairs:
        assert list_holdings(one) == list_holdings(two)
    return found[0]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("question", QUESTIONS)
@settings(max_examples=count_examples(8), suppress_health_check=SLOW, deadline=None)
@given(people, st.lists(rows, min_size=1, max_size=8), st.lists(rows, min_size=1, max_size=8))
def test_no_neighbour_moves_the_weights_further(question, rounds, neighbours, others, one, two):
    plan, table = planned_in(rounds, question, neighbours)
    common = dict(enumerate(others))
    first = measure({**common, 99: one}, plan, table)
    second = measure(common if neighbours == "add-remove" else {**common, 77: two}, plan, table)
    moved = [first.get(key, 0) - second.get(key, 0) for key in {*first, *second}]
    (keys,) = (part for part in certify(plan).measurements if part.threshold is not None)
    assert sum(step * step for step in moved) <= keys.sensitivity.l2_squared
    assert sum(map(abs, moved)) <= keys.sensitivity.l1
    assert keys.sensitivity.l2_squared == (1 if neighbours == "add-remove" else 2) * WHOLE**2


@pytest.mark.parametrize("rounds", [1, 2])
def test_the_keys_of_one_person_weigh_alike(rounds):
    """Three keys weigh 1/sqrt(3) each. Of seven keys, a hash keeps four, which weigh 1/2 each."""
    plan, table = planned_in(rounds, BY_JOB, "add-remove")
    few = measure({1: [{"job": job, "town": "x", "pay": 1.0} for job in "abcc"]}, plan, table)
    assert few == {(job,): find_weight(3) for job in "abc"}
    many = measure({1: [{"job": job, "town": "x", "pay": 1.0} for job in "abcdefg"]}, plan, table)
    assert sorted(many.values()) == [WHOLE // 2] * GROUPS


def test_the_rule_is_chosen_before_data_is_read():
    def keys(question, groups, neighbours="add-remove"):
        plan, _ = planned(question, neighbours, groups)
        return plan.measurements[0].quantity

    assert keys(BY_JOB, 1) == Keys()
    assert keys(BY_JOB, 2) == WeightedKeys(1)
    assert keys(BY_JOB, 50) == WeightedKeys(2)
    assert keys("SELECT job, COUNT(DISTINCT id) AS n FROM t GROUP BY job", 50) == Keys()
    assert keys("SELECT job FROM t GROUP BY job", 50) == WeightedKeys(2)
    assert planned(BY_JOB, "add-remove", 1000)[0].max_groups_per_unit == 128
    by_weight = certify(planned(BY_JOB, "add-remove", 50)[0]).measurements[0]
    assert isinstance(by_weight.noise, GaussianNoise)
    assert by_weight.noise.rounded


def test_an_answer_shows_the_keys_of_many_people():
    data = pd.DataFrame(
        [(f"p{person}", f"item {item}") for person in range(900) for item in (person % 3, 3 + person, 4)],
        columns=["id", "item"],
    )
    with sf.protect(
        data, name="bought", unit="id", columns={"id": sf.Id(), "item": sf.Text()},
        budget=sf.Budget(epsilon=4, delta="1e-4"), max_rows_per_unit=20, max_groups_per_unit=20,
    ) as shop:  # fmt: skip
        sql = "SELECT item, COUNT(*) AS n FROM bought GROUP BY item"
        said = shop.preview(sql, epsilon=2).explain()
        assert "weigh 1/√n each" in said
        assert "K-74" in said
        answer = shop.ask(sql, epsilon=2)
        assert {row["item"] for row in answer.rows} == {"item 0", "item 1", "item 2", "item 4"}
        assert answer.cost.delta == shop.budget.spent.delta
        assert shop.ask(sql, epsilon=2).cached


def test_the_certificate_has_the_noise_of_the_rule():
    plan, _ = planned_in(1, BY_JOB, "replace-one")
    (keys,) = (part for part in certify(plan).measurements if part.threshold is not None)
    loss = keys.loss
    rule = WeightedKeyRule(loss.epsilon, loss.delta, GROUPS, plan.unit.neighbours)
    assert keys.noise == GaussianNoise(rule.deviation**2, rounded=True)
    assert keys.threshold == rule.threshold
    (keys,) = (
        part for part in certify(planned_in(2, BY_JOB, "replace-one")[0]).measurements if part.threshold is not None
    )
    assert keys.key_rounds == KeyRounds(loss.epsilon, loss.delta, GROUPS, plan.unit.neighbours)
    assert keys.threshold == keys.key_rounds.threshold
