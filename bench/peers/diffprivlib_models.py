"""diffprivlib's models, as `bench/learn.py` compares them: the relation in which each one's noise is calibrated.

Its documentation does not name a neighbouring relation. Its source (0.6.6) does these things:

| Model | Calibrated for | Uses without noise |
|---|---|---|
| GaussianNB | add-remove: a class count moves by 1 | the number of rows; labels that occur |
| LogisticRegression | replace-one: noise 2 * data_norm / epsilon | the number of rows; labels that occur |
| LinearRegression | replace-one: means have sensitivity width / n | the number of rows |
| DecisionTreeClassifier | add-remove: a leaf's count moves by 1 | which leaves are empty |
| RandomForestClassifier | add-remove, in each tree | the number of rows; which leaves are empty |
| KMeans | add-remove: a cluster's count moves by 1 | which clusters are empty; the number of rows |
| PCA | replace-one: means have sensitivity width / n, eigenvalues 2 | the number of rows |
| tools.histogram | add-remove: a cell moves by 1 | nothing |

Sfumato is compared in the same relation (see MODELS in `bench/learn.py`), without the exceptions of the last column.
"""

import math

import numpy as np
from diffprivlib import models, tools
from scores import BINS, Case, Floats, run
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer


def encode(features: Floats, codes: dict[int, int]) -> Floats:
    """A column of 0 and 1 for each code."""
    columns = []
    for place in range(features.shape[1]):
        column = features[:, [place]]
        columns.append((column == np.arange(codes[place])).astype(float) if place in codes else column)
    return np.hstack(columns)


def find_bounds(case: Case) -> tuple[Floats, Floats]:
    lower = np.array([0.0 if place in case.codes else -1.0 for place in range(case.columns)])
    upper = np.array([case.codes[place] - 1.0 if place in case.codes else 1.0 for place in range(case.columns)])
    return lower, upper


def make_bayes(case: Case) -> object:
    return models.GaussianNB(epsilon=case.epsilon, bounds=find_bounds(case), random_state=case.seed)


def make_logistic(case: Case) -> object:
    """A row of scaled numbers and of one 1 for each coded column has a norm of at most √columns."""
    model = models.LogisticRegression(
        epsilon=case.epsilon, data_norm=math.sqrt(case.columns), max_iter=200, random_state=case.seed
    )
    return make_pipeline(FunctionTransformer(encode, kw_args={"codes": case.codes}), model) if case.codes else model


def make_linear(case: Case) -> object:
    return models.LinearRegression(
        epsilon=case.epsilon, bounds_X=find_bounds(case), bounds_y=(-1, 1), random_state=case.seed
    )


def make_tree(case: Case) -> object:
    return models.DecisionTreeClassifier(
        epsilon=case.epsilon, bounds=find_bounds(case), classes=np.arange(case.classes), random_state=case.seed
    )


def make_forest(case: Case) -> object:
    return models.RandomForestClassifier(
        epsilon=case.epsilon,
        bounds=find_bounds(case),
        classes=np.arange(case.classes),
        random_state=case.seed,
        shuffle=True,
    )


def make_clusters(case: Case) -> object:
    return models.KMeans(
        case.clusters, epsilon=case.epsilon, bounds=find_bounds(case), random_state=case.seed
    )  # fmt: skip


def make_components(case: Case) -> object:
    """√columns is half the diagonal of the bounds: the norm of a row that is centred at the middle."""
    return models.PCA(
        case.components,
        epsilon=case.epsilon,
        bounds=find_bounds(case),
        data_norm=math.sqrt(case.columns),
        random_state=case.seed,
    )


class Histogram:
    """The noisy histogram of the first column."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def fit(self, features: Floats, _: Floats) -> "Histogram":
        counts, _edges = tools.histogram(
            features[:, 0], epsilon=self.case.epsilon, bins=BINS, range=(-1, 1), random_state=self.case.seed
        )
        self.chances_ = counts / counts.sum() if counts.sum() else np.full(BINS, 1 / BINS)
        return self


if __name__ == "__main__":
    run(
        {
            "GaussianNB": make_bayes,
            "LogisticRegression": make_logistic,
            "LinearRegression": make_linear,
            "DecisionTreeClassifier": make_tree,
            "RandomForestClassifier": make_forest,
            "KMeans": make_clusters,
            "PCA": make_components,
            "HistogramDensity": Histogram,
        }
    )
