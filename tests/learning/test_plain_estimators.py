"""Naive Bayes, linear regression and histogram density: accuracy, hostile data, fits through the curator."""

import numpy as np
import pandas as pd
import pytest
from exact_sources import ExactSource, read_rows
from sklearn.datasets import load_breast_cancer, load_iris

import sfumato as sf
from sfumato.learning.additive_rounds import fit_additive
from sfumato.learning.feature_columns import Classes
from sfumato.learning.histogram_density import make_kernel, project_counts, smooth_counts
from sfumato.learning.linear_rounds import fit_linear

LEARN = sf.learning


def draw(rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 3))
    return X, np.clip(X @ [0.5, -0.3, 0.0] + 0.1 + 0.1 * rng.normal(size=rows), -1, 1)


def test_naive_bayes_learns():
    for load, least in ((load_iris, 0.85), (load_breast_cancer, 0.85)):
        X, y = load(return_X_y=True)
        bounds = (X.min(axis=0), X.max(axis=0))
        model = LEARN.GaussianNB(epsilon=10, bounds=bounds, classes=np.unique(y)).fit(X, y)
        assert model.score(X, y) > least
        assert model.loss_ == sf.PureDP(10)
        assert model.theta_.shape == model.var_.shape == (len(np.unique(y)), X.shape[1])
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1)


def test_the_call_of_the_documentation_works_without_classes():
    X, y = load_iris(return_X_y=True)
    model = LEARN.GaussianNB(epsilon=20, bounds=(X.min(axis=0), X.max(axis=0))).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize("kind", [LEARN.GaussianNB, LEARN.CategoricalNB])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_columns_of_codes_and_of_numbers(kind, delta):
    rng = np.random.default_rng(1)
    y = rng.random(4000) < 0.4
    code = np.where(y, rng.choice(["a", "b"], 4000, p=[0.8, 0.2]), rng.choice(["a", "b"], 4000, p=[0.3, 0.7]))
    frame = pd.DataFrame({"code": code, "number": y + rng.normal(size=4000)})
    model = kind(epsilon=1, delta=delta, bounds=(-3, 4), categories={"code": ["a", "b"]}, classes=[False, True])
    assert model.fit(frame, y).score(frame, y) > 0.75
    table = np.exp(model.feature_log_prob_[0])
    assert table[1, 0] == pytest.approx(0.8, abs=0.05)
    assert np.allclose(table.sum(axis=1), 1)
    unseen = frame.assign(code="never declared", number=np.nan)
    assert np.isfinite(model.predict_log_proba(unseen)).all()


def test_linear_regression_finds_the_coefficients():
    X, y = draw(20_000)
    for neighbours in ("add-remove", "replace-one"):
        model = LEARN.LinearRegression(epsilon=10, bounds=(-1, 1), target_bounds=(-1, 1), neighbours=neighbours).fit(
            X, y
        )
        assert model.coef_ == pytest.approx([0.5, -0.3, 0.0], abs=0.05)
        assert model.intercept_ == pytest.approx(0.1, abs=0.05)
        assert model.score(X, y) > 0.8


def test_coefficients_are_in_the_units_of_the_columns():
    X, y = draw(20_000)
    scales, shifts = np.array([10.0, 1.0, 0.01]), np.array([5.0, -2.0, 0.0])
    model = LEARN.LinearRegression(epsilon=10, bounds=(shifts - scales, shifts + scales), target_bounds=(100, 300)).fit(
        X * scales + shifts, 200 + 100 * y
    )
    assert model.coef_ * scales / 100 == pytest.approx([0.5, -0.3, 0.0], abs=0.05)
    assert model.score(X * scales + shifts, 200 + 100 * y) > 0.8


def test_regression_on_codes():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"city": rng.choice(["Rome", "Oslo"], 20_000), "age": rng.uniform(0, 100, 20_000)})
    y = np.where(frame["city"] == "Rome", 30.0, 10.0) + 0.3 * frame["age"]
    model = LEARN.LinearRegression(
        epsilon=5, bounds={"age": (0, 100)}, categories={"city": ["Rome", "Oslo"]}, target_bounds=(0, 100)
    ).fit(frame, y)
    assert list(model.design_names_) == ["city=Rome", "city=Oslo", "age"]
    assert model.coef_[0] - model.coef_[1] == pytest.approx(20, abs=2)
    assert model.coef_[2] == pytest.approx(0.3, abs=0.05)


def test_regression_is_not_worse_than_the_mean_at_little_budget():
    X, y = draw(1000)
    scores = [
        LEARN.LinearRegression(epsilon="0.5", bounds=(-1, 1), target_bounds=(-1, 1)).fit(X, y).score(X, y)
        for _ in range(20)
    ]
    assert np.mean(scores) > -0.1


def test_densities_add_up_and_follow_the_data():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.beta(2, 5, 20_000), rng.random(20_000)])
    model = LEARN.HistogramDensity(epsilon=1, bounds=(0, 1), bins=10).fit(X)
    assert model.probabilities_.sum() == pytest.approx(1)
    assert (model.densities_ / 100).sum() == pytest.approx(1)
    assert model.probabilities_.sum(axis=1) == pytest.approx(np.histogram(X[:, 0], 10, (0, 1))[0] / 20_000, abs=0.01)
    assert model.score_samples([[0.25, 0.5]])[0] > model.score_samples([[0.95, 0.5]])[0]
    one = LEARN.HistogramDensity(epsilon=1, categories=[["a", "b"]], neighbours="replace-one").fit(
        [["a"]] * 90 + [["b"]] * 10
    )
    assert one.score_samples([["c"]])[0] == -np.inf


def test_projected_counts_are_the_nearest_ones():
    noisy = np.array([[5.0, -3.0], [1.0, 0.5]])
    projected = project_counts(noisy, 4.0)
    assert projected.sum() == pytest.approx(4)
    assert projected.min() >= 0
    rng = np.random.default_rng(0)
    for _ in range(200):  # no other non-negative counts of that total are nearer
        other = rng.dirichlet(np.ones(4)).reshape(2, 2) * 4
        assert np.sum((projected - noisy) ** 2) <= np.sum((other - noisy) ** 2) + 1e-9


def test_smoothing_helps_where_noise_is_large_and_only_there():
    rng = np.random.default_rng(6)
    truth = 1000 * np.exp(-0.5 * ((np.arange(40) - 20) / 6) ** 2) / 15
    noisy = truth + rng.laplace(0, 20, 40)
    smooth = smooth_counts(noisy, 20 * 2**0.5, (True,))
    assert np.sum((smooth - truth) ** 2) < np.sum((noisy - truth) ** 2) / 3
    spikes = np.where(np.arange(40) % 7 == 0, 5000.0, 0.0)
    assert np.array_equal(smooth_counts(spikes, 20 * 2**0.5, (True,)), spikes)
    assert np.array_equal(smooth_counts(noisy, 20 * 2**0.5, (False,)), noisy)  # codes have no order
    for width in (0.5, 3.0, 1e6):
        assert np.allclose(make_kernel(40, width).sum(axis=1), 1)


HOSTILE = {
    "nobody": ([], []),
    "one class": ([[0.5]] * 20, [1] * 20),
    "one row": ([[0.5]], [0]),
    "missing": ([[np.nan]] * 20, [0, 1] * 10),
    "infinite": ([[np.inf], [-np.inf]] * 10, [0, 1] * 10),
    "labels that are not declared": ([[0.5]] * 20, [7] * 20),
    "missing labels": ([[0.5]] * 20, [None, np.nan] * 10),
    "huge": ([[10**400], ["text"]] * 10, [10**400, "text"] * 10),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("epsilon", ["1e-6", 1, 1000])
def test_data_never_causes_an_error(name, epsilon, recwarn):
    X, y = HOSTILE[name]
    X = np.array(X, object).reshape(-1, 1)
    models = [
        LEARN.GaussianNB(epsilon, bounds=(0, 1), classes=[0, 1]).fit(X, y),
        LEARN.CategoricalNB(epsilon, bounds=(0, 1), classes=[0, 1]).fit(X, y),
        LEARN.GaussianNB(epsilon, bounds=(1, 1), classes=[0, 1], neighbours="replace-one").fit(X, y),
        LEARN.LinearRegression(epsilon, bounds=(0, 1), target_bounds=(0, 1)).fit(X, y),
        LEARN.LinearRegression(epsilon, bounds=(1, 1), target_bounds=(1, 1)).fit(X, y),
    ]
    for model in models:
        assert np.isfinite(model.predict([[0.3], [np.nan]])).all()
    assert LEARN.HistogramDensity(epsilon, bounds=(0, 1)).fit(X).probabilities_.sum() == pytest.approx(1)
    assert len(recwarn) == 0


def test_nothing_of_the_data_is_stored():
    X, y = draw(50)
    model = LEARN.GaussianNB(1, bounds=(-1, 1), classes=[0, 1]).fit(X, (y > 0).astype(int))
    held = [value for value in vars(model).values() if isinstance(value, np.ndarray)]
    assert all(value.size <= 6 for value in held)
    assert not hasattr(model, "n_samples_")


def protect(frame, **budget):
    columns = {
        "age": sf.Integer(0, 100), "income": sf.Real(0, 200), "city": sf.Category(["Rome", "Oslo"]),
        "smoker": sf.Boolean(), "id": sf.Id(),
    }  # fmt: skip
    return sf.protect(
        frame,
        name="people",
        unit="id",
        columns=columns,
        budget=sf.Budget(**{"epsilon": 100, **budget}),
        max_rows_per_unit=2,
    )


def test_fits_through_the_curator():
    """Each person has two rows; one charge for each fit; the models learn."""
    rng = np.random.default_rng(4)
    age, city = rng.integers(20, 80, 6000), rng.choice(["Rome", "Oslo"], 6000)
    frame = pd.DataFrame({"age": age, "city": city, "id": np.arange(6000) // 2})
    frame["income"] = np.clip(50 + age + 30 * (city == "Rome") + rng.normal(0, 5, 6000), 0, 200)
    frame["smoker"] = frame["income"] + rng.normal(0, 10, 6000) > 115
    with protect(frame) as curator:
        spent = 0
        for model, columns, target in (
            (LEARN.GaussianNB(epsilon=5), ["age", "city", "income"], "smoker"),
            (LEARN.CategoricalNB(epsilon=5), ["age", "city", "income"], "smoker"),
            (LEARN.LinearRegression(epsilon=5), ["age", "city"], "income"),
        ):
            model.fit(dataset=curator, features=columns, target=target)
            spent += 5
            assert curator.budget.spent.epsilon == spent
            assert model.loss_ == sf.PureDP(5)
            assert list(model.feature_names_in_) == columns
            assert model.score(frame[columns], frame[target]) > 0.75
        density = LEARN.HistogramDensity(epsilon=5, bins=5).fit(dataset=curator, features=["age", "city"])
        assert density.probabilities_.shape == (5, 2)
        assert curator.ledger().verify().ok


def test_no_fit_without_budget():
    frame = pd.DataFrame({"age": [30], "city": ["Rome"], "id": [1], "income": [50.0], "smoker": [True]})
    with protect(frame, epsilon=1) as curator:
        with pytest.raises(sf.errors.BudgetExceeded):
            LEARN.GaussianNB(epsilon=2).fit(dataset=curator, features=["age"], target="smoker")
        with pytest.raises(sf.errors.InvalidParameter, match="delta"):
            LEARN.HistogramDensity(epsilon=1, delta=1e-6).fit(dataset=curator, features=["age"])
        assert curator.budget.spent.epsilon == 0


@pytest.mark.parametrize(
    ("columns", "delta", "loss"),
    [(60, "0", sf.PureDP(1)), (3, "1e-6", sf.PureDP(1)), (60, "1e-6", sf.ApproxDP(1, "1e-6"))],
)
def test_naive_bayes_uses_the_better_noise(columns, delta, loss):
    """With many columns it is Gaussian noise; with few columns Laplace noise, which costs no delta."""
    X = np.zeros((20, columns))
    model = LEARN.GaussianNB(1, delta=delta, bounds=(-1, 1), classes=[0, 1]).fit(X, [0, 1] * 10)
    assert model.loss_ == loss


def test_intervals_of_codes_and_of_columns_that_nothing_determines():
    rng = np.random.default_rng(4)
    code, x = rng.integers(0, 3, 50_000), rng.uniform(-1, 1, 50_000)
    y = np.clip(0.3 * x + np.array([0.2, -0.1, -0.1])[code], -1, 1)
    model = LEARN.LinearRegression(5, bounds={0: (-1, 1)}, categories={1: [0, 1, 2]}, target_bounds=(-1, 1))
    low, high = model.fit(np.column_stack([x, code]), y).coefficient_intervals("0.999")
    assert np.all((low <= [0.3, 0.2, -0.1, -0.1]) & (high >= [0.3, 0.2, -0.1, -0.1]))
    assert np.all(high - low < 0.2)
    model = LEARN.LinearRegression(5, bounds=([-1, 2], [1, 2]), target_bounds=(-1, 1))  # the second is constant
    low, high = model.fit(np.column_stack([x, x]), 0.3 * x).coefficient_intervals()
    assert high[0] - low[0] < 0.2
    assert (low[1], high[1]) == (-np.inf, np.inf)
    model = LEARN.LinearRegression(5, bounds=(-1, 1), target_bounds=(-1, 1)).fit(np.column_stack([x, x]), 0.3 * x)
    assert np.isinf(model.coefficient_intervals()).all()  # two equal columns


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_density_is_one_in_all_however_large_the_noise_is(neighbours):
    X = np.random.default_rng(1).uniform(0, 1, (1000, 1))
    for epsilon in ("1e-14", "1e-16", "1e-17"):
        for _ in range(20):
            model = LEARN.HistogramDensity(epsilon, bounds=(0, 1), bins=8, neighbours=neighbours).fit(X)
            assert model.probabilities_.sum() == pytest.approx(1)


def test_counts_are_projected_to_the_nearest_ones():
    assert project_counts(np.array([3.0, 1.0, -2.0]), 2.0).tolist() == [2, 0, 0]
    assert project_counts(np.array([3.0, 2.0, -2.0]), 3.0).tolist() == [2, 1, 0]
    assert project_counts(np.array([1e17, 1e17, -1e17]), 3.0).tolist() == [1.5, 1.5, 0]


@pytest.mark.parametrize("classes", [(0, 1), (0, 1, 2)])
def test_weights_are_numbers_where_there_are_no_rows_and_hardly_any_noise(classes):
    rows = read_rows(np.empty((0, 1), object), np.empty(0), None, Classes("y", classes), [["a", "b"]])
    model = fit_linear(ExactSource(rows, noise=1e-9), len(classes)).model
    assert all(np.isfinite(term.values).all() for term in model.terms)
    assert np.isfinite(fit_additive(ExactSource(rows, noise=1e-9), 8, 2).intercepts).all()


def test_a_pair_of_bounds_for_each_of_two_columns_is_refused_with_what_was_meant():
    X, y = np.column_stack([np.arange(40.0), np.arange(40.0)]), np.arange(40.0)
    with pytest.raises(sf.errors.InvalidParameter, match=r"bounds=\(\[0, 0\], \[90, 100\]\)"):
        LEARN.LinearRegression(1, bounds=[(0, 90), (0, 100)], target_bounds=(0, 40)).fit(X, y)
    LEARN.LinearRegression(1, bounds=([0, 0], [90, 100]), target_bounds=(0, 40)).fit(X, y)
