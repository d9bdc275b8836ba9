"""Logistic regression: weights, rounds that follow from the noise, costs, and data that holds anything."""

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from recorded_source import RecordedSource, find_largest_move
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError

import sfumato as sf
from sfumato.kernel.neighbours import Neighbours
from sfumato.learning.array_statistics import ArrayStatistics
from sfumato.learning.feature_columns import Classes, Coded, Numeric
from sfumato.learning.linear_rounds import fit_linear
from sfumato.learning.noisy_statistics import read_price
from sfumato.learning.row_arrays import RowArrays, read_table

Model = sf.learning.LogisticRegression
FEATURES = (Numeric("x", 0.0, 10.0), Numeric("z", 0.0, 1.0), Coded("c", (0, 1, 2)))
DECLARED = {"bounds": ([0, 0, 0], [10, 1, 0]), "categories": [None, None, [0, 1, 2]]}
TARGET = Classes("y", (0, 1))


def make_rows(rows, seed=0):
    """Log-odds: 0.5 (x - 5) - z + (1, 0, -1)."""
    draw = np.random.default_rng(seed)
    x, z, c = draw.uniform(0, 10, rows), draw.uniform(0, 1, rows), draw.integers(0, 3, rows)
    odds = 0.5 * (x - 5) - z + np.array([1, 0, -1])[c]
    return np.column_stack([x, z, c]), (draw.random(rows) < 1 / (1 + np.exp(-odds))).astype(int)


def read_rows(X, y):
    return RowArrays(read_table(X), y, FEATURES, TARGET)


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_weights_are_those_of_the_data(delta, neighbours):
    X, y = make_rows(50_000)
    model = Model(10, delta=delta, classes=[0, 1], neighbours=neighbours, **DECLARED).fit(X, y)
    assert model.n_iter_ > 0
    assert model.coef_names_ == ("x0", "x1", "x2=0", "x2=1", "x2=2")
    (weights,) = model.coef_
    assert weights[:2] == pytest.approx([0.5, -1], abs=0.25)
    assert weights[2] - weights[4] == pytest.approx(2, abs=0.4)
    by_hand = model.intercept_[0] + X[:100, :2] @ weights[:2] + weights[2 + X[:100, 2].astype(int)]
    assert model.decision_function(X[:100]) == pytest.approx(by_hand, abs=1e-3)
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.03)


def test_little_budget_means_no_rounds_and_weights_from_class_sums():
    X, y = make_rows(2_000)
    model = Model("0.05", classes=[0, 1], **DECLARED).fit(X, y)
    assert model.n_iter_ == 0
    assert Model(100, classes=[0, 1], **DECLARED).fit(X, y).n_iter_ > 0


def scale(data):
    lower, upper = data.min(axis=0), data.max(axis=0)
    return (data - lower) / (upper - lower) * 2 - 1  # bundled data: its bounds are public


@pytest.mark.parametrize(("load", "epsilon", "least"), [(load_breast_cancer, 10, 0.85), (load_iris, 20, 0.8)])
def test_known_sets(load, epsilon, least):
    found = load()
    X, y = scale(found.data), found.target
    model = Model(epsilon, bounds=(-1, 1), classes=sorted(set(y.tolist()))).fit(X, y)
    assert model.score(X, y) > least
    chances = model.predict_proba(X)
    assert np.allclose(chances.sum(axis=1), 1)
    assert Model("0.001", bounds=(-1, 1), classes=sorted(set(y.tolist()))).fit(X, y).score(X, y) < least


@pytest.mark.parametrize(("epsilon", "calls"), [(20, None), ("0.3", 3), ("0.001", 4)])
def test_the_shares_of_a_fit_add_up_to_one(epsilon, calls):
    X, y = make_rows(3_000)
    source = RecordedSource(ArrayStatistics(read_rows(X, y), read_price(epsilon, 0), Neighbours.REPLACE_ONE))
    fitted = fit_linear(source, 2)
    assert sum(share for _, share in source.calls) == Fraction(1)
    assert len(source.calls) == (2 + fitted.rounds if calls is None else calls)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("epsilon", [200, 1])
def test_no_neighbour_moves_a_statistic_of_a_fit_by_more_than_its_bound(neighbours, epsilon):
    """Each statistic that a fit asked for, on random neighbours; and one of them reaches half of its bound."""
    X, y = make_rows(400)
    source = RecordedSource(ArrayStatistics(read_rows(X, y), read_price(epsilon, 0), neighbours))
    fit_linear(source, 2)
    assert find_largest_move(source, neighbours, X, y, read_rows) >= Fraction(1, 2)


def test_the_curator_gives_the_model_of_the_arrays_and_one_charge():
    X, y = make_rows(3_000)
    frame = pd.DataFrame(X, columns=["x", "z", "c"]).assign(c=X[:, 2].astype(int), y=y)
    columns = {
        "x": sf.Real(0, 10, nullable=False), "z": sf.Real(0, 1), "c": sf.Category([0, 1, 2]), "y": sf.Category([0, 1]),
    }  # fmt: skip
    curator = sf.protect(frame, name="rows", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=4_000))
    through = Model(2_000).fit(dataset=curator, features=["x", "z", "c"], target="y")
    directly = Model(2_000, classes=[0, 1], **DECLARED).fit(X, y)
    assert np.allclose(through.coef_, directly.coef_, atol=0.05)
    assert curator.budget.spent.epsilon == 2_000
    assert list(through.feature_names_in_) == ["x", "z", "c"]
    with pytest.raises(sf.errors.SfumatoError):
        Model(3_000).fit(dataset=curator, features=["x", "z", "c"], target="y")
    assert curator.budget.spent.epsilon == 2_000


@pytest.mark.parametrize("classes", [[0], [0, 1], [0, 1, 2]])
@pytest.mark.parametrize("epsilon", [1, 500])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.empty((0, 3)), np.empty(0)),
        (np.full((50, 3), np.nan), np.full(50, np.nan)),
        (np.ones((50, 3)), np.ones(50)),
        (np.full((1, 3), -1e300), np.array([7])),
    ],
    ids=["empty", "NaN", "constant", "undeclared"],
)
def test_what_the_data_holds_is_never_an_error(X, y, epsilon, classes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for neighbours in ("add-remove", "replace-one"):
            model = Model(epsilon, classes=classes, neighbours=neighbours, **DECLARED).fit(X, y)
            assert np.isfinite(model.predict_proba(np.full((2, 3), np.nan))).all()


def test_equal_bounds_give_the_weight_zero():
    X, y = make_rows(500)
    model = Model(5, bounds=([0, 1], [10, 1]), classes=[0, 1]).fit(X[:, :2], y)
    assert model.coef_[0, 1] == 0
    assert np.isfinite(model.coef_).all()


def test_declarations_are_checked():
    X, y = make_rows(10)
    for wrong in ({"bounds": None}, {"epsilon": 0}, {"delta": 2}, {"neighbours": "none"}):
        model = Model(**{"epsilon": 1, "classes": [0, 1], **DECLARED, **wrong})
        with pytest.raises(sf.errors.SfumatoError):
            model.fit(X, y)
        with pytest.raises(NotFittedError):
            model.predict(X)
    assert clone(model).get_params() == model.get_params()
