"""Boosted additive models: what they learn, what they cost, what they refuse, and what their bands say."""

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from recorded_source import RecordedSource, find_largest_move
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import sfumato as sf
from sfumato.kernel.neighbours import Neighbours
from sfumato.learning.additive_rounds import fit_additive
from sfumato.learning.array_statistics import ArrayStatistics
from sfumato.learning.bin_merging import NoisyBins, merge_neighbours, merge_rare
from sfumato.learning.feature_columns import Classes, Coded, Numeric
from sfumato.learning.noisy_statistics import read_price
from sfumato.learning.row_arrays import RowArrays, read_table

Classifier, Regressor = sf.learning.BoostedAdditiveClassifier, sf.learning.BoostedAdditiveRegressor
FEATURES = (Numeric("x", 0.0, 10.0), Numeric("z", 0.0, 1.0), Coded("c", (0, 1, 2)))
DECLARED = {"bounds": ([0, 0, 0], [10, 1, 0]), "categories": [None, None, [0, 1, 2]]}


def make_rows(rows, seed=0):
    """x and c matter, z does not: log-odds of |x - 5| - 2.5 + (1, 0, -1)."""
    draw = np.random.default_rng(seed)
    x, z, c = draw.uniform(0, 10, rows), draw.uniform(0, 1, rows), draw.integers(0, 3, rows)
    odds = np.abs(x - 5) - 2.5 + np.array([1, 0, -1])[c]
    return np.column_stack([x, z, c]), (draw.random(rows) < 1 / (1 + np.exp(-odds))).astype(int), odds


def rank(values):
    return np.argsort(np.argsort(values))


def read_rows(X, y):
    return RowArrays(read_table(X), y, FEATURES, Classes("y", (0, 1)))


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_it_learns_functions_that_are_not_monotone(delta, neighbours):
    X, y, _ = make_rows(20_000)
    test, labels, odds = make_rows(4_000, 1)
    model = Classifier(2, delta=delta, classes=[0, 1], neighbours=neighbours, **DECLARED).fit(X, y)
    assert np.corrcoef(rank(model.decision_function(test)), rank(odds))[0, 1] > 0.9
    assert model.score(test, labels) > 0.97 * ((odds > 0) == labels).mean()
    chances = model.predict_proba(test)
    assert chances.shape == (4_000, 2)
    assert np.allclose(chances.sum(axis=1), 1)
    assert abs(chances[:, 1].mean() - labels.mean()) < 0.05


def test_noise_that_drowns_the_data_gives_a_model_that_knows_nothing():
    """Negative control: the test above can fail."""
    X, y, _ = make_rows(200)
    test, _, odds = make_rows(4_000, 1)
    scores = Classifier("0.001", classes=[0, 1], **DECLARED).fit(X, y).decision_function(test)
    assert np.std(scores) == 0 or np.corrcoef(rank(scores), rank(odds))[0, 1] < 0.9


def test_three_classes_have_three_scores():
    X, _, odds = make_rows(20_000)
    y = np.digitize(odds, [-1, 1])
    model = Classifier(4, delta="1e-6", classes=[0, 1, 2], **DECLARED).fit(X, y)
    assert model.decision_function(X[:5]).shape == (5, 3)
    assert np.allclose(model.predict_proba(X[:5]).sum(axis=1), 1)
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_the_regression_learns_and_stays_within_the_bounds(delta):
    X, _, odds = make_rows(20_000)
    y = 100 + 10 * odds + np.random.default_rng(5).normal(0, 5, len(odds))
    model = Regressor(2, delta=delta, target_bounds=(60, 140), **DECLARED).fit(X, y)
    assert model.score(X, y) > 0.75
    low = Regressor(2, delta=delta, target_bounds=(100, 110), **DECLARED).fit(X, y).predict(X)
    assert low.min() >= 100
    assert low.max() <= 110


def test_a_feature_without_signal_is_left_out_or_small():
    X, y, _ = make_rows(20_000)
    x, z, c = Classifier(4, delta="1e-6", classes=[0, 1], **DECLARED).fit(X, y).shape_functions_
    assert (x.name, z.name, c.name) == ("x0", "x1", "x2")
    assert np.ptp(z.values) < 0.5 < np.ptp(x.values)
    assert x.edges[0] == 0
    assert x.edges[-1] == 10
    assert len(x.edges) == len(x.values) + 1
    assert c.categories == (0, 1, 2)
    assert c.values[0] > c.values[1] > c.values[2]


def find_coverage(width):
    """The share of values without noise that lie in the band, scaled by `width`."""
    draw = np.random.default_rng(3)
    X = draw.integers(0, 4, (3_000, 2))
    y = (draw.random(3_000) < 1 / (1 + np.exp(1.0 - X[:, 0] * 0.6 - X[:, 1] * 0.3))).astype(int)
    declared = {"categories": [4, 4], "classes": [0, 1]}
    exact = Classifier(2_000, **declared).fit(X, y).shape_functions_
    inside = []
    for _ in range(60):
        for shape, true in zip(Classifier(4, **declared).fit(X, y).shape_functions_, exact, strict=True):
            half = (shape.high - shape.low) / 2 * width
            inside.append(np.abs(shape.values - true.values) <= half)
    return np.mean(inside)


def test_bands_hold_the_function_without_noise():
    """Stated: 95 %. The negative control: a band of a quarter of the width holds clearly less."""
    assert find_coverage(1) > 0.85
    assert find_coverage(0.25) < 0.7


def test_the_shares_of_a_fit_are_public_and_add_up_to_one():
    X, y, _ = make_rows(5_000)
    price = read_price(2, 0)
    source = RecordedSource(ArrayStatistics(read_rows(X, y), price, Neighbours.ADD_REMOVE))
    fit_additive(source, 64, 5)
    assert [share for _, share in source.calls] == [Fraction(3, 10)] + [Fraction(7, 50)] * 5


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_no_neighbour_moves_a_statistic_of_a_fit_by_more_than_its_bound(neighbours):
    """Each statistic that a fit asked for, on random neighbours; and one of them reaches half of its bound."""
    X, y, _ = make_rows(400)
    source = RecordedSource(ArrayStatistics(read_rows(X, y), read_price(20, 0), neighbours))
    fit_additive(source, 16, 3)
    assert find_largest_move(source, neighbours, X, y, read_rows) >= Fraction(1, 2)


def protect(X, y, **budget):
    frame = pd.DataFrame(X, columns=["x", "z", "c"]).assign(c=X[:, 2].astype(int), y=y)
    columns = {
        "x": sf.Real(0, 10, nullable=False), "z": sf.Real(0, 1), "c": sf.Category([0, 1, 2]), "y": sf.Category([0, 1]),
    }  # fmt: skip
    return sf.protect(frame, name="rows", unit=sf.ROW, columns=columns, budget=sf.Budget(**budget))


def test_the_curator_gives_the_model_of_the_arrays_and_one_charge():
    X, y, _ = make_rows(3_000)
    curator = protect(X, y, epsilon=4_000)
    through = Classifier(2_000).fit(dataset=curator, features=["x", "z", "c"], target="y")
    directly = Classifier(2_000, classes=[0, 1], **DECLARED).fit(X, y)
    assert np.allclose(through.decision_function(X), directly.decision_function(X), atol=0.02)
    assert curator.budget.spent.epsilon == 2_000
    assert list(through.feature_names_in_) == ["x", "z", "c"]


def test_a_refused_fit_costs_nothing():
    X, y, _ = make_rows(100)
    curator = protect(X, y, epsilon=1)
    for wrong in ({"epsilon": 2}, {"bins": 1}, {"rounds": 0}, {"epsilon": 0}):
        with pytest.raises(sf.errors.SfumatoError):
            Classifier(**wrong).fit(dataset=curator, features=["x"], target="y")
    assert curator.budget.spent.epsilon == 0


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.empty((0, 3)), np.empty(0)),
        (np.full((50, 3), np.nan), np.full(50, np.nan)),
        (np.ones((50, 3)), np.ones(50)),
        (np.full((5, 3), np.inf), np.zeros(5)),
        (np.full((1, 3), -1e300), np.array([7])),
    ],
    ids=["empty", "NaN", "constant", "infinite", "undeclared"],
)
def test_what_the_data_holds_is_never_an_error(X, y, delta):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Classifier(1, delta=delta, classes=[0, 1], **DECLARED).fit(X, y)
        assert np.isfinite(model.predict_proba(np.zeros((2, 3)))).all()
        other = Regressor(1, delta=delta, target_bounds=(0, 1), **DECLARED).fit(X, y)
        assert np.isfinite(other.predict(np.full((2, 3), np.nan))).all()


@pytest.mark.parametrize(
    "wrong",
    [{"bins": 1}, {"bins": 10**6}, {"rounds": 0}, {"rounds": 2.5}, {"bounds": None}, {"epsilon": -1}, {"delta": 1}],
    ids=str,
)
def test_declarations_are_checked(wrong):
    X, y, _ = make_rows(10)
    model = Classifier(**{"epsilon": 1, "classes": [0, 1], **DECLARED, **wrong})
    with pytest.raises(sf.errors.InvalidParameter):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_the_model_holds_nothing_of_the_rows():
    """The size of a stored model follows from its bins, not from its rows."""
    X, y, _ = make_rows(50_000)
    sizes = [len(pickle.dumps(Classifier(1, classes=[0, 1], **DECLARED).fit(X[:n], y[:n]))) for n in (100, 50_000)]
    assert max(sizes) < 8_000


def test_scikit_learn_can_clone_and_pipe_it():
    X, y, _ = make_rows(2_000)
    model = Classifier(5, classes=[0, 1], **DECLARED)
    assert clone(model).get_params() == model.get_params()
    assert make_pipeline(FunctionTransformer(), model).fit(X, y).score(X, y) > 0.6


NOT_FOR_PRIVATE_ESTIMATORS = {
    "check_estimators_nan_inf": "a missing value has a defined meaning: an error would reveal it",
    "check_supervised_y_no_nan": "the same, for the target",
    "check_dtype_object": "the same, for entries that are no numbers",
    "check_estimators_empty_data_messages": "an empty dataset is no error: an error would reveal it",
    "check_classifiers_regression_target": "labels are counted as they are; undeclared ones fall in no class",
    "check_classifiers_classes": "texts as labels need classes=",
    "check_complex_data": "the type of y is refused before that of X",
    "check_fit_idempotent": "two fits have different noise",
    "check_classifier_data_not_an_array": "two fits have different noise",
    "check_regressor_data_not_an_array": "two fits have different noise",
    "check_regressors_int": "two fits have different noise",
    "check_supervised_y_2d": "two fits have different noise",
    "check_regressors_train": "200 rows are few for their noise",
    "check_classifiers_train": "30 rows are few for their noise",
    "check_n_features_in_after_fitting": "the message does not name the class",
    "check_decision_proba_consistency": "large log-odds of a few rows round to the same probability",
    "check_classifiers_one_label": "of ten rows: noise may name a second label, and predict it",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [
        Classifier(20, bounds=(-10, 10)),
        Regressor(20, bounds=(-10, 10), target_bounds=(-200, 200)),
        sf.learning.LogisticRegression(20, bounds=(-10, 10)),
    ],
    ids=repr,
)
def test_scikit_learn_accepts_it(model):
    results = check_estimator(model, on_fail=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert failed <= set(NOT_FOR_PRIVATE_ESTIMATORS)
    assert len(results) > 40


def describe(counts, excess, deviation=1.0):
    return NoisyBins(
        np.array(counts, float), np.array(excess, float)[:, None], deviation, np.array([deviation]), np.array([0.25])
    )


def test_neighbours_with_one_rate_are_merged_and_others_are_not():
    counts = np.full(20, 1_000.0)
    rate = np.repeat([0.2, -0.1, 0.2], [5, 10, 5])
    assert merge_neighbours(describe(counts, counts * rate)).tolist() == [0] * 5 + [1] * 10 + [2] * 5
    assert merge_neighbours(describe(counts, np.zeros(20))).tolist() == [0] * 20
    empty = np.tile([1_000.0, 0.0], 10)  # empty bins between others do not separate them
    noise = np.random.default_rng(2).normal(0, 2, 20)
    assert merge_neighbours(describe(empty, empty * 0.2 + noise, 2.0)).max() == 0


def test_rare_categories_are_one_group():
    assert merge_rare(describe([500, 3, 400, -2], [0, 0, 0, 0])).tolist() == [0, 2, 1, 2]


def test_shapes_are_drawn_with_bands():
    X, y, _ = make_rows(5_000)
    figure = Classifier(4, classes=[0, 1], **DECLARED).fit(X, y).plot_shapes()
    assert [panel.title for panel in figure.panels] == ["x0", "x1", "x2"]
    assert figure.svg().count("<polygon") >= 1
    assert "log-odds of 1" in figure.svg()
