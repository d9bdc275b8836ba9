"""scikit-learn's conventions: its own checks, clones, pipelines, and names of features."""

import warnings
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import sfumato as sf
from sfumato.learning import estimator_arguments

RANDOM = "Every fit draws new noise, so two fits differ."
NO_ERROR = "An error that depends on values would reveal them: such values have a defined meaning instead."
DECLARED = "Classes are declared, and never taken from the data."
NOISY = "The check wants an accuracy that noise does not leave on a few rows."
DO_NOT_APPLY = {
    "check_fit_idempotent": RANDOM,
    "check_classifier_data_not_an_array": RANDOM,
    "check_regressor_data_not_an_array": RANDOM,
    "check_supervised_y_2d": RANDOM,
    "check_regressors_int": RANDOM,
    "check_classifiers_one_label": RANDOM,
    "check_sample_weight_equivalence_on_dense_data": RANDOM,
    "check_methods_sample_order_invariance": RANDOM,
    "check_dtype_object": NO_ERROR,
    "check_estimators_empty_data_messages": NO_ERROR,
    "check_estimators_nan_inf": NO_ERROR,
    "check_supervised_y_no_nan": NO_ERROR,
    "check_classifiers_regression_target": NO_ERROR,
    "check_classifiers_classes": DECLARED,
    "check_pipeline_consistency": RANDOM,
    "check_transformer_general": RANDOM,
    "check_transformer_data_not_an_array": RANDOM,
    "check_clustering": "Which centre a row of the data belongs to is not stored: there are no labels_.",
    "check_classifiers_train": NOISY,
    "check_regressors_train": NOISY,
}
ESTIMATORS = [
    sf.learning.GaussianNB(epsilon=100, bounds=(-10, 10)),
    sf.learning.CategoricalNB(epsilon=100, bounds=(-10, 10), bins=8),
    sf.learning.LinearRegression(epsilon=100, bounds=(-10, 10), target_bounds=(-100, 100)),
    sf.learning.HistogramDensity(epsilon=100, bounds=(-10, 10), bins=3),
    sf.learning.DecisionTreeClassifier(epsilon=100, bounds=(-10, 10)),
    sf.learning.RandomForestClassifier(epsilon=100, bounds=(-10, 10), n_estimators=3),
    sf.learning.KMeans(2, epsilon=100, bounds=(-10, 10)),
    sf.learning.PCA(epsilon=100, bounds=(-10, 10)),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_the_checks_of_scikit_learn(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, expected_failed_checks=DO_NOT_APPLY, on_fail=None, on_skip=None)
    failed = [result["check_name"] for result in results if result["status"] == "failed"]
    assert failed == []
    assert sum(result["status"] == "passed" for result in results) >= 30


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_clones_parameters_and_predicting_before_fit(estimator):
    assert clone(estimator).get_params() == estimator.get_params()
    assert clone(estimator).set_params(epsilon=2).epsilon == 2
    predict = next(
        getattr(estimator, name) for name in ("predict", "score_samples", "transform") if hasattr(estimator, name)
    )
    with pytest.raises(NotFittedError):
        predict([[0.0]])


def test_pipelines_and_searches():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    model = sf.learning.GaussianNB(epsilon=5, bounds=(-3, 3), classes=[0, 1])
    piped = make_pipeline(FunctionTransformer(np.tanh), clone(model).set_params(bounds=(-1, 1))).fit(X, y)
    assert piped.score(X, y) > 0.7
    searched = GridSearchCV(model, {"epsilon": [1, 5]}, cv=2).fit(X, y)  # each fit has its own price
    assert searched.best_params_["epsilon"] in (1, 5)


def test_names_of_features_are_kept_and_compared():
    frame = pd.DataFrame({"a": [0.0, 1.0] * 50, "b": [1.0, 0.0] * 50})
    model = sf.learning.GaussianNB(epsilon=5, bounds=(0, 1), classes=[0, 1]).fit(frame, [0, 1] * 50)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert model.n_features_in_ == 2
    with pytest.raises(sf.errors.InvalidParameter, match="feature names"):
        model.predict(frame[["b", "a"]])
    model.fit(frame.to_numpy(), [0, 1] * 50)
    assert not hasattr(model, "feature_names_in_")


def test_estimators_are_listed():
    assert {"GaussianNB", "CategoricalNB", "LinearRegression", "HistogramDensity"} <= set(dir(sf.learning))
    with pytest.raises(AttributeError):
        _ = sf.learning.Perceptron


@pytest.mark.parametrize("name", ["GaussianNB", "CategoricalNB", "DecisionTreeClassifier", "RandomForestClassifier"])
@pytest.mark.parametrize("columns", [1, 30])
def test_the_labels_in_use_are_found_once(name, columns):
    """Whether Laplace or Gaussian noise is used is decided first: a second source would spend a second time."""
    with patch.object(estimator_arguments, "_find_labels", wraps=estimator_arguments._find_labels) as found:
        model = getattr(sf.learning, name)(epsilon=1, delta="1e-6", bounds=(0, 1))
        model.fit(np.zeros((2000, columns)), np.zeros(2000, int))
    assert found.call_count == 1
