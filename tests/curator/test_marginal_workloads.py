"""Workloads of marginals: measured together by the best strategy, answers that agree, intervals that hold."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.kernel.plan import Strategy
from sfumato.planning.marginal_strategies import choose_marginal_strategy, list_closure, meet_variances

CITIES, JOBS = ["Rome", "Oslo", "Bergen"], ["cook", "nurse"]
DRAW = np.random.default_rng(7)
ROWS = 900
DATA = pd.DataFrame(
    {
        "city": DRAW.choice([*CITIES, "Atlantis"], ROWS, p=[0.5, 0.2, 0.2, 0.1]),  # unknown ones become NULL
        "job": DRAW.choice(JOBS, ROWS),
        "age": DRAW.integers(-2, 8, ROWS),  # some are clamped
        "pay": DRAW.random(ROWS) * 100,
        "id": [f"p{row}" for row in DRAW.integers(0, 400, ROWS)],
    }
)
COLUMNS = {
    "city": sf.Category(CITIES),
    "job": sf.Category(JOBS, nullable=False),
    "age": sf.Integer(0, 5),
    "pay": sf.Real(0, 100),
}
BUDGETS = {
    "zcdp": lambda: sf.Budget(epsilon=3_000, delta=1e-6, accounting="zcdp"),
    "gdp": lambda: sf.Budget(epsilon=3_000, delta=1e-6, accounting="gdp"),
    "basic": lambda: sf.Budget(epsilon=100_000),
}
KEYS = ["city", "job", "age", "job, age", "age, city", ""]


def write(keys, aggregate="COUNT(*)"):
    select = f"SELECT {keys}, {aggregate} AS n FROM t GROUP BY {keys}"
    return select if keys else f"SELECT {aggregate} AS n FROM t"


QUESTIONS = [write(keys) for keys in KEYS]


def protect(accounting="zcdp", unit=sf.ROW, **others):
    columns = COLUMNS if unit is sf.ROW else {**COLUMNS, "id": sf.Id()}
    bounds = {} if unit is sf.ROW else {"max_rows_per_unit": 2}
    return sf.protect(
        DATA if unit is not sf.ROW else DATA.drop(columns="id"), name="t", unit=unit, columns=columns,
        budget=BUDGETS[accounting](), **bounds, **others,
    )  # fmt: skip


def count_exactly(keys):
    city = DATA["city"].where(DATA["city"] != "Atlantis")
    table = DATA.assign(city=city, age=DATA["age"].clip(0, 5))
    names = keys.split(", ") if keys else []
    return table.groupby(names).size().to_dict() if names else {(): len(table)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("unit", [sf.ROW, "id"])
@pytest.mark.parametrize("accounting", sorted(BUDGETS))
def test_marginals_are_measured_together_and_agree(accounting, unit):
    with protect(accounting, unit) as table:
        plan = table.plan(QUESTIONS, epsilon=2)
        assert [share.loss for share in plan.shares] == [None] * len(QUESTIONS)
        assert "best strategy" in str(plan)
        answers = table.ask_all(plan)
        assert len([entry for entry in table.ledger().entries() if entry.kind == "charge"]) == 1
        by_keys = dict(zip(KEYS, answers, strict=True))
        jobs = {row["job"]: row["n"] for row in by_keys["job"].rows}
        added = dict.fromkeys(JOBS, 0)
        for row in by_keys["job, age"].rows:
            added[row["job"]] += row["n"]
        # ages may be NULL: jobs by age add up to the jobs less rows without an age. Here every row has one, but noise
        # is in the group for NULL too, so they agree up to its noise and rounding
        assert sum(jobs.values()) == pytest.approx(by_keys[""].rows[0]["n"], abs=2)
        margin = max(high - low for ends in by_keys["job"].intervals for low, high in ends.values())
        assert added == pytest.approx(jobs, abs=6 * margin)
        assert "measured together" in by_keys["job"].explain()
        assert all(part["statement"]["loss"] for part in by_keys["age, city"].disclosure["parts"])
        assert sum(Fraction(_read(answer.cost)) for answer in answers) == Fraction(_read(plan.cost))
        again = table.ask_all(QUESTIONS, epsilon=2)
        assert all(answer.cached for answer in again)
        assert [answer.rows for answer in again] == [answer.rows for answer in answers]
        assert table.ledger().verify().ok


def _read(cost):
    return next(one for one in (cost.mu_squared, cost.rho, cost.epsilon) if one is not None)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accounting", sorted(BUDGETS))
def test_with_little_noise_the_answers_are_exact(accounting):
    with protect(accounting) as table:
        paid = {"epsilon": 2_000} if accounting == "basic" else {"rho": 200}
        plan = table.plan(QUESTIONS, **paid)
        answers = table.ask_all(plan)
        assert plan.together or accounting != "zcdp"
        for keys, answer in zip(KEYS, answers, strict=True):
            exact, names = count_exactly(keys), keys.split(", ") if keys else []
            for row in answer.rows:
                cell = tuple(row[name] for name in names)
                assert row["n"] == exact.get(cell[0] if len(cell) == 1 else cell, 0)


@pytest.mark.filterwarnings("ignore")
def test_sums_are_measured_together_too_and_other_questions_are_not():
    sums = [write(keys, "SUM(pay)") for keys in ("city", "job", "")]
    apart = ["SELECT MEDIAN(age) AS m FROM t", "SELECT COUNT(*) AS n FROM t WHERE age > 3", write("city", "AVG(pay)")]
    with protect() as table:
        plan = table.plan([*QUESTIONS, *sums, *apart], rho=6)
        assert sorted(group.places for group in plan.together) == [(0, 1, 2, 3, 4, 5), (6, 7, 8)]
        assert [share.loss is None for share in plan.shares] == [True] * 9 + [False] * 3
        answers = table.ask_all(plan)
        assert [len(answer.rows) for answer in answers] == [3, 2, 6, 12, 18, 1, 3, 2, 1, 1, 1, 3]
        whole = answers[8].rows[0]["n"]
        assert sum(row["n"] for row in answers[7].rows) == pytest.approx(whole, rel=1e-9)  # every row has a job
        assert table.budget.spent.rho == pytest.approx(6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accounting", sorted(BUDGETS))
def test_margins_are_met_for_less_than_one_by_one(accounting):
    wanted = [(sql, margin) for sql, margin in zip(QUESTIONS, (20, 20, 25, 30, 30, 12), strict=True)]
    with protect(accounting) as table:
        plan = table.plan(wanted)
        (group,) = plan.together
        for (_, most), margins in zip(wanted, group.margins, strict=True):
            assert margins["n"] <= most
        tightest = max(margins["n"] / most for (_, most), margins in zip(wanted, group.margins, strict=True))
        assert tightest > 0.97
        alone = [table.plan([one]).shares[0].loss for one in wanted]
        currency = {"zcdp": lambda loss: loss.to_zcdp().rho, "gdp": lambda loss: loss.to_gdp().mu_squared}
        before = sum(currency.get(accounting, lambda loss: loss.epsilon)(loss) for loss in alone)
        assert float(_read(plan.cost)) < 0.85 * float(before)
        for answer, (_, most) in zip(table.ask_all(plan), wanted, strict=True):
            for ends in answer.intervals:
                low, high = ends["n"]
                assert (high - low) / 2 <= most * 1.0001


SIZES = [((2,) * 8, 3), ((16, 7, 15, 6, 5, 2, 42), 2), ((3, 4), 2), ((9, 100, 16, 7, 15, 6, 5, 2, 42), 3), ((2, 50), 1)]


def find_least_error(sizes, marginals, weights):
    """The bound by singular values, from the whole workload's eigenvalues: no Gaussian strategy is better."""
    total = 0.0
    for keys in list_closure(marginals):
        value = sum(
            weight * math.prod(size for place, size in enumerate(sizes) if place not in marginal)
            for marginal, weight in zip(marginals, weights, strict=True)
            if set(keys) <= set(marginal)
        )
        total += math.sqrt(value) * math.prod(sizes[key] - 1 for key in keys)
    return total**2 / math.prod(sizes) / 2


@pytest.mark.parametrize(("sizes", "most"), SIZES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_strategy_is_the_best_gaussian_one(sizes, most, weighted):
    marginals = [keys for size in range(1, most + 1) for keys in combinations(range(len(sizes)), size)]
    cells = np.array([math.prod(sizes[key] for key in keys) for keys in marginals])
    weights = (1 / cells if weighted else np.ones(len(cells))).tolist()
    found = choose_marginal_strategy(sizes, marginals, weights, gaussian=True)
    error = (np.array(weights) * cells) @ found.find_cell_variances(marginals)
    assert error == pytest.approx(find_least_error(sizes, marginals, weights), rel=1e-6)
    assert sum(block.share for block in found.blocks) == pytest.approx(1)


def test_the_bound_by_singular_values_is_that_of_the_matrix():
    """The bound that the tests compare with, on a small workload, from the matrix itself."""
    sizes, marginals = (2, 3), [(0,), (1,), (0, 1)]
    rows = [np.kron(np.eye(2), np.ones((1, 3))), np.kron(np.ones((1, 2)), np.eye(3)), np.eye(6)]
    values = np.linalg.svd(np.vstack(rows), compute_uv=False)
    assert find_least_error(sizes, marginals, [1] * 3) == pytest.approx(values.sum() ** 2 / 6 / 2)
    even = [2 * (2 + 3 + 6) * 3 / 2 / 2]  # negative control: a third of rho for each marginal is worse
    assert even[0] > 1.2 * find_least_error(sizes, marginals, [1] * 3)


@pytest.mark.parametrize("gaussian", [True, False])
def test_variances_are_those_of_the_weights(gaussian):
    sizes, marginals = (3, 2, 4), [(0, 1), (1, 2), (2,), ()]
    for found in (
        choose_marginal_strategy(sizes, marginals, [1.0, 2.0, 0.5, 3.0], gaussian=gaussian),
        meet_variances(sizes, marginals, [4.0, 5.0, 2.0, 1.0], gaussian=gaussian),
    ):
        variances = found.find_variances()
        for keys, stated in zip(marginals, found.find_cell_variances(marginals), strict=True):
            assert sum(variances[one.block] * one.square for one in found.weigh(keys)) == pytest.approx(stated)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accounting", ["zcdp", "basic"])
def test_intervals_hold_as_often_as_they_say(accounting):
    """60 answers of 6 marginals. Misses are counted by workload, since its noises depend on one another.

    The mean share of missed cells of 60 independent workloads, with mean at most 0.05 and deviation at most 0.08, is
    above 0.11 with a probability below 1e-6. Below 0.01, intervals would be far too wide.
    """
    shares = []
    with protect(accounting) as table:
        for number in range(60):
            missed = []
            for keys, answer in zip(KEYS, table.ask_all(QUESTIONS, epsilon=f"{1 + number / 1000:.3f}"), strict=True):
                assert not answer.cached
                exact, names = count_exactly(keys), keys.split(", ") if keys else []
                for row, ends in zip(answer.rows, answer.intervals, strict=True):
                    cell = tuple(row[name] for name in names)
                    low, high = ends["n"]
                    missed.append(not low <= exact.get(cell[0] if len(cell) == 1 else cell, 0) <= high)
            shares.append(np.mean(missed))
    assert 0.01 < np.mean(shares) < 0.11


@pytest.mark.filterwarnings("ignore")
def test_the_blocks_are_strategies_and_margins_with_epsilon_are_refused():
    with protect() as table, table.at_desk() as desk:
        plan = table.plan(QUESTIONS, rho=1)
        assert all(block.centred or not block.keys for block in plan.together[0].strategy.blocks)
        assert desk.dataset.budget.accounting == "zcdp"
        with pytest.raises(sf.errors.InvalidParameter, match="without margins"):
            table.plan([(QUESTIONS[0], 20)], epsilon=1)
        with pytest.raises(sf.errors.InvalidParameter, match="planned workload"):
            table.ask_all(plan, rho=1)
        with pytest.raises(sf.errors.InvalidParameter, match="pairs of SQL text"):
            table.plan(QUESTIONS)
        assert Strategy.__name__ == "Strategy"
