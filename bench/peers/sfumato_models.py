"""Sfumato's estimators on arrays, with the bounds, codes and classes that the peers get."""

import inspect
from typing import Any

import numpy as np
from scores import BINS, Case, Floats, run

from sfumato import learning


def make(name: str, case: Case, **settings: object) -> Any:  # noqa: ANN401
    """The estimator with everything that is declared; `delta` only where the estimator can use it."""
    kind = getattr(learning, name)
    declared: dict[str, object] = {
        "epsilon": case.epsilon,
        "neighbours": case.neighbours,
        "bounds": find_bounds(case),
        "categories": {place: list(range(size)) for place, size in case.codes.items()} or None,
        "classes": list(range(case.classes)) if case.classes else None,
        "delta": case.delta,
        **settings,
    }
    known = inspect.signature(kind).parameters
    return kind(**{setting: value for setting, value in declared.items() if setting in known and value is not None})


def find_bounds(case: Case) -> tuple[Floats, Floats]:
    lower = np.array([0.0 if place in case.codes else -1.0 for place in range(case.columns)])
    upper = np.array([case.codes[place] - 1.0 if place in case.codes else 1.0 for place in range(case.columns)])
    return lower, upper


class Density:
    """The chances of the cells of the first column."""

    def __init__(self, case: Case) -> None:
        bounds = (np.array([-1.0]), np.array([1.0]))
        self.model = make("HistogramDensity", case, bounds=bounds, bins=BINS)

    def fit(self, features: Floats, _: Floats) -> "Density":
        self.model.fit(features[:, :1])
        edges = np.linspace(-1, 1, BINS + 1)
        middles = ((edges[1:] + edges[:-1]) / 2)[:, None]
        self.chances_ = np.exp(self.model.score_samples(middles)) * 2 / BINS
        return self


class Unsupervised:
    """An estimator that takes no target."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        self.model = model

    def fit(self, features: Floats, _: Floats) -> Any:  # noqa: ANN401
        return self.model.fit(features)


if __name__ == "__main__":
    run(
        {
            name: lambda case, name=name: make(name, case)
            for name in (
                "GaussianNB",
                "CategoricalNB",
                "LogisticRegression",
                "BoostedAdditiveClassifier",
                "DecisionTreeClassifier",
                "RandomForestClassifier",
            )
        }
        | {
            "LinearRegression": lambda case: make("LinearRegression", case, target_bounds=(-1, 1)),
            "KMeans": lambda case: Unsupervised(make("KMeans", case, n_clusters=case.clusters)),
            "PCA": lambda case: Unsupervised(make("PCA", case, n_components=case.components)),
            "HistogramDensity": Density,
        }
    )
