"""Estimators, audited end to end: fits on two neighbouring arrays differ by no more than the loss that they state."""

from unittest.mock import patch

import numpy as np
import pytest

import sfumato as sf
from sfumato.kernel.mechanisms import BoxNoise, LaplaceNoise
from sfumato.learning import array_statistics

SAMPLES = 800
EPSILON = 1
ROWS = np.array([[0.9, -0.9], [-1.0, 1.0], [0.2, 0.1], [1.0, 1.0], [-0.5, 0.4]])
LABELS = np.array([1, 0, 1, 1, 0])
OUTLIER = ([[1.0, -1.0]], [1])
LEARN = sf.learning
pytestmark = pytest.mark.slow
BOUNDS = {"bounds": (-1, 1)}
CLASSES = {"bounds": (-1, 1), "classes": [0, 1]}


def show_bayes(model):
    return (*model.class_count_, *model.theta_.ravel(), *model.var_.ravel())


def show_trees(model):
    return tuple(share for tree in model.trees_ for share in tree.shares.ravel())


MODELS = {
    "GaussianNB": (lambda: LEARN.GaussianNB(EPSILON, **CLASSES), show_bayes),
    "CategoricalNB": (
        lambda: LEARN.CategoricalNB(EPSILON, bins=2, **CLASSES),
        lambda model: (*model.class_count_, *np.ravel(model.feature_log_prob_)),
    ),
    "labels that are found": (lambda: LEARN.GaussianNB(EPSILON, **BOUNDS), lambda model: tuple(model.classes_)),
    "LinearRegression": (
        lambda: LEARN.LinearRegression(EPSILON, target_bounds=(0, 1), **BOUNDS),
        lambda model: (*model.coef_, model.intercept_),
    ),
    "HistogramDensity": (
        lambda: LEARN.HistogramDensity(EPSILON, bins=2, **BOUNDS),
        lambda model: tuple(model.probabilities_.ravel()),
    ),
    "DecisionTreeClassifier": (lambda: LEARN.DecisionTreeClassifier(EPSILON, max_depth=2, **CLASSES), show_trees),
    "RandomForestClassifier": (
        lambda: LEARN.RandomForestClassifier(EPSILON, max_depth=2, n_estimators=1, **CLASSES),
        show_trees,
    ),
    "KMeans": (
        lambda: LEARN.KMeans(2, epsilon=EPSILON, **BOUNDS),
        lambda model: tuple(model.cluster_centers_.ravel()),
    ),
    "PCA": (
        lambda: LEARN.PCA(epsilon=EPSILON, **BOUNDS),
        lambda model: (*model.mean_, *model.explained_variance_, *model.components_.ravel()),
    ),
    "replace-one": (lambda: LEARN.GaussianNB(EPSILON, neighbours="replace-one", **CLASSES), show_bayes),
}


def fit_and_show(name):
    make, show = MODELS[name]

    def run(data):
        X, y = data
        model = make()
        model.fit(X) if isinstance(model, LEARN.HistogramDensity) else model.fit(X, y)
        return tuple(float(value) for value in show(model))

    return run


def choose_pair(name):
    """With the outlier and without it; or with another row in its place."""
    other = ([[-1.0, 1.0]], [0]) if name == "replace-one" else (np.empty((0, 2)), [])
    return tuple((np.vstack([ROWS, X]), np.append(LABELS, y).astype(int)) for X, y in (OUTLIER, other))


@pytest.mark.parametrize("name", MODELS)
def test_no_fit_loses_more_than_it_states(name):
    first, second = choose_pair(name)
    result = sf.lab.audit(fit_and_show(name), first, second, epsilon=EPSILON, samples=SAMPLES)
    assert result.verdict != "violated", result


@pytest.mark.parametrize("name", ["GaussianNB", "HistogramDensity"])
def test_the_audit_catches_noise_that_is_too_small(name):
    """Negative control: an eighth of the noise is found out."""
    choose, choose_box = array_statistics.choose_noise_for.__wrapped__, array_statistics.choose_box_for.__wrapped__

    def shrink(*arguments, **options):
        return LaplaceNoise(choose(*arguments, **options).scale / 8)

    def shrink_box(*arguments):
        box = choose_box(*arguments)
        return BoxNoise(box.units, box.scale / 8)

    first, second = choose_pair(name)
    with (
        patch.object(array_statistics, "choose_noise_for", shrink),
        patch.object(array_statistics, "choose_box_for", shrink_box),
    ):
        result = sf.lab.audit(fit_and_show(name), first, second, epsilon=EPSILON, samples=SAMPLES)
    assert result.verdict == "violated", result
