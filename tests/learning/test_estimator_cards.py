"""What a notebook shows of estimators. All of it is declared or noisy."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import sfumato as sf
from sfumato.learning.estimator_cards import MOST_COEFFICIENTS

FRAME = pd.DataFrame({"age": np.linspace(0, 90, 3_000), "pay": np.tile([1.0, 2.0, 3.0], 1_000)})
BOUNDS = {"age": (0, 90), "pay": (0, 4)}
LABELS = np.where(FRAME["age"] > 40, "old", "young")
SCORED = {
    "LogisticRegression": sf.learning.LogisticRegression(100, bounds=BOUNDS, classes=["old", "young"]),
    "GaussianNB": sf.learning.GaussianNB(100, bounds=BOUNDS, classes=["old", "young"]),
    "CategoricalNB": sf.learning.CategoricalNB(100, bounds=BOUNDS, classes=["old", "young"]),
    "LinearRegression": sf.learning.LinearRegression(100, bounds=BOUNDS, target_bounds=(0, 90)),
    "HistogramDensity": sf.learning.HistogramDensity(100, bounds=BOUNDS),
    "DecisionTreeClassifier": sf.learning.DecisionTreeClassifier(100, bounds=BOUNDS, classes=["old", "young"]),
    "RandomForestClassifier": sf.learning.RandomForestClassifier(100, bounds=BOUNDS, classes=["old", "young"]),
    "BoostedAdditiveClassifier": sf.learning.BoostedAdditiveClassifier(100, bounds=BOUNDS, classes=["old", "young"]),
    "BoostedAdditiveRegressor": sf.learning.BoostedAdditiveRegressor(100, bounds=BOUNDS, target_bounds=(0, 90)),
    "KMeans": sf.learning.KMeans(2, epsilon=100, bounds=BOUNDS),
    "PCA": sf.learning.PCA(epsilon=100, bounds=BOUNDS),
}


def show(estimator):
    """The text and the HTML of a notebook, without the style."""
    made = estimator._repr_mimebundle_()
    assert set(made) == {"text/plain", "text/html"}
    assert estimator._repr_html_() == made["text/html"]
    assert "<script" not in made["text/html"]
    assert "http" not in made["text/html"]
    return made["text/plain"], re.sub(r"<style>.*?</style>", "", made["text/html"], flags=re.DOTALL)


def test_every_estimator_is_here():
    shown = {name for name in sf.learning.__all__ if hasattr(getattr(sf.learning, name), "get_params")}
    assert shown == set(SCORED)


@pytest.mark.parametrize("name", SCORED)
def test_an_estimator_shows_its_price_and_then_its_cost(name):
    estimator = clone(SCORED[name])
    for shown in show(estimator):
        assert "Not fitted yet: fit spends ε = 100." in shown
        assert name in shown
    estimator.fit(FRAME, FRAME["age"] if "Regress" in name and name != "LogisticRegression" else LABELS)
    for shown in show(estimator):
        assert "Fitted on 2 features: age, pay. It spent ε = 100." in shown
        assert "Not fitted" not in shown
        assert ("Classes: old, young." in shown) == hasattr(estimator, "classes_")


def test_coefficients_have_their_names_and_intervals():
    model = clone(SCORED["LinearRegression"]).fit(FRAME, FRAME["age"])
    text, made = show(model)
    low, high = model.coefficient_intervals()
    assert f"[{low[0]:,.4g}, {high[0]:,.4g}]" in text
    assert f"[{low[0]:,.4g}, {high[0]:,.4g}]" in made
    assert f"{model.coef_[0]:,.4g}" in text
    weights = clone(SCORED["LogisticRegression"]).fit(FRAME, LABELS)
    assert re.search(rf"^age +{re.escape(f'{weights.coef_[0, 0]:,.4g}')}$", show(weights)[0], re.MULTILINE)


def test_weights_of_several_classes_have_their_class():
    model = sf.learning.LogisticRegression(100, bounds=BOUNDS, classes=["a", "b", "c"])
    text, _ = show(model.fit(FRAME, np.tile(["a", "b", "c"], 1_000)))
    assert all(f"weight for {label}" in text for label in "abc")


def test_many_coefficients_are_counted():
    count = MOST_COEFFICIENTS + 3
    rows = np.zeros((500, count))
    model = sf.learning.LinearRegression(10, bounds=(-1, 1), target_bounds=(0, 1)).fit(rows, rows[:, 0])
    text, made = show(model)
    assert "… and 3 more: see coef_" in text
    assert f"Fitted on {count} features. " in made


def test_text_of_the_owner_is_escaped():
    model = sf.learning.GaussianNB(1, bounds=(0, 1), classes=["<b>", "c"])
    assert "<b>" not in show(model)[1]


def test_a_pipeline_shows_the_estimator_as_scikit_learn_does():
    assert "gaussiannb" in repr(make_pipeline(clone(SCORED["GaussianNB"])))
