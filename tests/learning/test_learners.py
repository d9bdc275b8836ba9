"""Learners on the oracle: their error is at most alpha in at least 1 - beta of the runs, at the stated m."""

import numpy as np
import pandas as pd
import pytest
from plain_oracle import Population, cube
from scipy.stats import binom, ks_2samp

import sfumato as sf
from sfumato.learning import Conjunction, DecisionList, DecisionStump, Interval, Parity, Threshold
from sfumato.learning.row_conditions import Condition

ALPHA, BETA, EPSILON = 0.2, 0.1, 1
FALSE_ALARM = 1e-6
FEATURES = ("a", "b", "c")
GRID = tuple(map(float, range(16)))
SPREAD = [1 + 3 * row[0] + 2 * row[1] * row[2] for row in cube(3)]  # no feature is fair, and none is independent


def truth(name):
    return Condition(name, f'"{name}"')


def booleans(label):
    return Population(FEATURES, cube(3), SPREAD, label), [truth(name) for name in ("y", *FEATURES)]


def numbers(label):
    weights = [1 + (value % 5) for value in range(16)]
    population = Population(("x",), [(value,) for value in GRID], weights, label)
    return population, [truth("y"), *(Condition("x", f'"x" >= {value!r}', value) for value in GRID)]


CASES = {
    "monotone conjunction": (Conjunction(FEATURES, "y", monotone=True), *booleans(lambda row: row["a"] and row["c"])),
    "conjunction": (Conjunction(FEATURES, "y"), *booleans(lambda row: row["a"] and not row["c"])),
    "label always false": (Conjunction(FEATURES, "y"), *booleans(lambda row: False)),
    "threshold": (Threshold("x", "y", GRID), *numbers(lambda row: row["x"] >= 6)),
    "first threshold": (Threshold("x", "y", GRID), *numbers(lambda row: True)),
    "interval": (Interval("x", "y", GRID), *numbers(lambda row: 4 <= row["x"] <= 9)),
    "empty interval": (Interval("x", "y", GRID), *numbers(lambda row: False)),
    "stump": (DecisionStump({"x": GRID}, "y"), *numbers(lambda row: row["x"] < 11)),
    "decision list": (
        DecisionList(FEATURES, "y"),
        *booleans(lambda row: False if row["b"] else True if row["a"] else not row["c"]),
    ),
}


def run(learner, population, conditions, m, tolerance):
    oracle = population.oracle(m, learner.k, EPSILON)
    hypothesis = learner.learn(oracle, tolerance, conditions)
    assert oracle.asked <= learner.k
    return population.error(hypothesis)


@pytest.mark.parametrize("case", CASES)
def test_the_error_is_at_most_alpha_at_the_stated_m(case):
    learner, population, conditions = CASES[case]
    stated = learner.guarantee(ALPHA, BETA, EPSILON)
    runs = 12
    failed = sum(run(learner, population, conditions, stated.m, stated.tolerance) > ALPHA for _ in range(runs))
    assert failed <= binom.isf(FALSE_ALARM, runs, BETA)


@pytest.mark.parametrize("case", ["monotone conjunction", "threshold", "stump", "decision list"])
def test_far_too_few_rows_fail(case):
    """Negative control: the same learner on 12 rows errs by more than alpha in more than beta of the runs."""
    learner, population, conditions = CASES[case]
    tolerance = learner.guarantee(ALPHA, BETA, EPSILON).tolerance
    failed = sum(run(learner, population, conditions, 12, tolerance) > ALPHA for _ in range(40))
    assert failed > 40 * BETA


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_how_far_the_stated_m_is_above_what_is_needed(case, capsys):
    learner, population, conditions = CASES[case]
    stated = learner.guarantee(ALPHA, BETA, EPSILON)
    runs = 200

    def failures(m):
        return sum(run(learner, population, conditions, m, stated.tolerance) > ALPHA for _ in range(runs))

    assert failures(stated.m) <= binom.isf(FALSE_ALARM, runs, BETA)
    low, high = 1, stated.m
    while high > 1.1 * low:
        middle = round((low * high) ** 0.5) if low > 1 else high // 2
        if middle in (low, high):
            break
        low, high = (low, middle) if failures(middle) <= BETA * runs else (middle, high)
    assert high <= stated.m
    with capsys.disabled():
        print(f"\n{case}: stated m = {stated.m:,}, enough in {runs} runs: about {high:,} ({stated.m / high:.1f} times)")


COLUMNS_OF_SAMPLES = {
    **{name: sf.Boolean(nullable=False) for name in (*FEATURES, "y")}, "x": sf.Integer(0, 15, nullable=False),
}  # fmt: skip


def protect_sample(population, m):
    """The real curator on a fresh sample of the population."""
    places = population.generator.choice(len(population.rows), m, p=population.weights)
    data = pd.DataFrame([population.rows[place] for place in places], columns=population.columns)
    data["y"] = [population.labels[place] for place in places]
    columns = {name: COLUMNS_OF_SAMPLES[name] for name in data.columns}
    public = {"neighbours": "replace-one", "rows": m, "budget": sf.Budget(epsilon=100)}
    return sf.protect(
        data.astype({"x": int} if "x" in data else {}), name="people", unit=sf.ROW, columns=columns, **public
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", ["threshold", "conjunction"])
def test_200_fits_through_the_curator_keep_the_guarantee(case):
    learner, population, _ = CASES[case]
    stated = learner.guarantee(ALPHA, BETA, EPSILON)
    runs, failed = 200, 0
    for _ in range(runs):
        with protect_sample(population, stated.m) as curator:
            fitted = learner.fit(curator, epsilon=EPSILON, beta=BETA, alpha=ALPHA)
        assert fitted.alpha <= ALPHA * (1 + 1e-12)
        failed += population.error(fitted.hypothesis) > ALPHA
    assert failed <= binom.isf(FALSE_ALARM, runs, BETA)


@pytest.mark.slow
def test_the_plain_oracle_has_the_law_of_the_curator():
    """Learned thresholds on few rows, where they vary: through the curator, and with the oracle of these tests."""
    learner, population, conditions = CASES["threshold"]
    rows, tolerance = 30, 0.05

    def learn_plainly(epsilon):
        plain = (population.oracle(rows, learner.k, epsilon) for _ in range(4_000))
        return [learner.learn(oracle, tolerance, conditions).condition.at_least for oracle in plain]

    real = []
    for _ in range(300):
        with protect_sample(population, rows) as curator:
            oracle = curator.statistical_queries(learner.k, EPSILON, class_size=learner.class_size)
            rule = learner.learn(oracle, tolerance, learner.read_conditions(curator, "people"))
            real.append(rule.condition.at_least)
    assert ks_2samp(real, learn_plainly(EPSILON)).pvalue > FALSE_ALARM
    assert ks_2samp(real, learn_plainly(100)).pvalue < FALSE_ALARM  # negative control: almost no noise


def test_the_plain_oracle_has_the_noise_of_the_curator():
    """The spread of answers to one question about the same rows: 200 of the curator, and 20,000 of the plain one."""
    _, population, _ = CASES["threshold"]
    rows, queries = 200, 200
    psis = [f"x > 7.{number:03}" for number in range(queries)]  # the same rows, but different queries
    with protect_sample(population, rows) as curator:
        oracle = curator.statistical_queries(queries, epsilon=100)
        real = np.array(oracle.means(psis))
        scale = oracle.noise_scale
    plain = np.array(population.oracle(rows, queries, 100).means(["x > 7"] * 20_000))
    assert scale == pytest.approx(queries / (100 * rows))
    centred, other = (answers - np.median(answers) for answers in (real, plain))
    assert ks_2samp(centred, other).pvalue > FALSE_ALARM
    for factor in (0.1, 10):  # negative controls
        assert ks_2samp(centred, factor * other).pvalue < FALSE_ALARM


def test_what_each_learner_states():
    shown = {case: (learner.k, learner.class_size, learner.error_factor) for case, (learner, *_) in CASES.items()}
    assert shown["monotone conjunction"] == (3, 3, 6)
    assert shown["conjunction"] == (6, 6, 6)
    assert shown["threshold"] == (4, 15, 2)
    assert shown["interval"] == (8, 30, 4)
    assert shown["stump"] == (17, 17, 2)
    assert shown["decision list"] == (32, 2 * 27, 8)
    stated = CASES["threshold"][0].guarantee(ALPHA, BETA, EPSILON)
    assert (stated.k, stated.tolerance) == (4, 0.1)
    assert stated.m == sf.learning.sample_size(4, "0.1", BETA, EPSILON, class_size=15)


def clinic(rows=20_000):
    generator = np.random.default_rng(3)
    data = pd.DataFrame(
        {name: generator.random(rows) < share for name, share in zip(FEATURES, (0.8, 0.5, 0.7), strict=True)}
    )
    data["age"] = generator.integers(0, 100, rows)
    return data.assign(y=data["a"] & ~data["b"], old=data["age"] >= 60, middle=data["age"].between(30, 59))


COLUMNS = {
    **{name: sf.Boolean(nullable=False) for name in (*FEATURES, "y", "old")},
    "middle": sf.Boolean(),
    "age": sf.Integer(0, 120),
}


def protect(**options):
    data = clinic()
    return data, sf.protect(data, name="people", unit=sf.ROW, columns=COLUMNS, budget=sf.Budget(epsilon=20), **options)


TENS = tuple(range(0, 120, 10))
END_TO_END = {
    "conjunction": (Conjunction(FEATURES, "y"), "y", "a AND NOT b"),
    "threshold": (Threshold("age", "old", TENS), "old", "age >= 60"),
    "interval": (Interval("age", "middle", (0, 29, 30, 59, 60, 120)), "middle", "30 <= age <= 59"),
    "stump": (DecisionStump({"age": TENS, "a": None}, "old"), "old", "age >= 60"),
    "list": (DecisionList(FEATURES, "y"), "y", None),
}


@pytest.mark.parametrize("case", END_TO_END)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_fit_through_the_curator(case, relation):
    learner, target, expected = END_TO_END[case]
    public = {"neighbours": "replace-one", "rows": 20_000} if relation == "replace-one" else {}
    data, curator = protect(**public)
    with curator:
        fitted = learner.fit(curator, epsilon=4, beta=0.1, alpha=0.5 if public else None)
        assert curator.budget.spent.epsilon == 4
        if expected is not None:
            assert str(fitted.hypothesis) == expected
        rows = data.to_dict("records")
        error = np.mean([fitted.hypothesis.predict(row) != row[target] for row in rows])
        assert error <= fitted.alpha < 0.5
        assert 0 < fitted.queries <= learner.k
        noisy = curator.ask(f"SELECT AVG({fitted.sql}) AS share FROM people", epsilon=10).rows[0]["share"]
        assert abs(noisy - np.mean([fitted.hypothesis.predict(row) for row in rows])) < 0.01


def test_too_few_rows_are_refused_before_anything_is_spent():
    _, curator = protect(neighbours="replace-one", rows=20_000)
    with curator:
        learner = Conjunction(FEATURES, "y")
        with pytest.raises(sf.errors.InvalidParameter, match="rows at this beta and epsilon"):
            learner.fit(curator, epsilon="0.01", beta=0.1, alpha=0.01)
        with pytest.raises(sf.errors.InvalidParameter, match="column"):
            Conjunction(("a", "age"), "y").fit(curator, epsilon=1)
        with pytest.raises(sf.errors.UnknownName):
            Conjunction(("a", "salary"), "y").fit(curator, epsilon=1)
        assert curator.budget.spent.epsilon == 0


def test_alpha_needs_a_public_number_of_rows():
    _, curator = protect()
    with curator, pytest.raises(sf.errors.InvalidParameter, match="public number of rows"):
        Conjunction(FEATURES, "y").fit(curator, epsilon=1, alpha=0.1)


def test_parities_are_refused_with_the_reason():
    with pytest.raises(sf.errors.QueryError, match="cannot be learned from statistical queries") as refused:
        Parity(FEATURES, "y")
    assert "privately learnable by other means" in refused.value.hint


@pytest.mark.parametrize(
    "make",
    [
        lambda: Conjunction((), "y"), lambda: Conjunction(("y",), "Y"), lambda: Conjunction("abc", "y"),
        lambda: Threshold("x", "y", (1,)), lambda: Threshold("x", "y", (2, 1)), lambda: Interval("x", "y", (1, 1)),
        lambda: Threshold("x", "y", (0, float("nan"))), lambda: DecisionStump({"x": []}, "y"),
        lambda: DecisionStump(["x"], "y"), lambda: DecisionList(("a", "a"), "y"), lambda: Threshold("x", "y", 3),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(make):
    with pytest.raises(sf.errors.InvalidParameter):
        make()
