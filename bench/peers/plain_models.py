"""Models that are not private, for the ceiling: scikit-learn's, with the settings that the private ones have."""

import numpy as np
from scores import BINS, Case, Floats, run
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder
from sklearn.tree import DecisionTreeClassifier


def make_logistic(case: Case) -> object:
    model = LogisticRegression(max_iter=1000)
    if not case.codes:
        return model
    places = list(case.codes)
    one_hot = OneHotEncoder(categories=[np.arange(size) for size in case.codes.values()])
    return make_pipeline(ColumnTransformer([("codes", one_hot, places)], remainder="passthrough"), model)


def make_categorical(case: Case) -> object:
    """Numbers are cut into 16 equal bins."""
    numbers = [place for place in range(case.columns) if place not in case.codes]
    cut = KBinsDiscretizer(16, encode="ordinal", strategy="uniform")
    return make_pipeline(ColumnTransformer([("numbers", cut, numbers)], remainder="passthrough"), CategoricalNB())


def make_boosted(case: Case) -> object:
    """An additive model: boosted trees, each of one feature."""
    return HistGradientBoostingClassifier(
        categorical_features=list(case.codes), interaction_cst="no_interactions", max_iter=300, random_state=case.seed
    )


class Histogram:
    """The histogram of the first column."""

    def fit(self, features: Floats, _: Floats) -> "Histogram":
        self.chances_ = np.histogram(features[:, 0], BINS, (-1, 1))[0] / len(features)
        return self


if __name__ == "__main__":
    run(
        {
            "GaussianNB": lambda _: GaussianNB(),
            "CategoricalNB": make_categorical,
            "LogisticRegression": make_logistic,
            "LinearRegression": lambda _: LinearRegression(),
            "BoostedAdditiveClassifier": make_boosted,
            "DecisionTreeClassifier": lambda case: DecisionTreeClassifier(max_depth=5, random_state=case.seed),
            "RandomForestClassifier": lambda case: RandomForestClassifier(10, max_depth=8, random_state=case.seed),
            "KMeans": lambda case: KMeans(case.clusters, n_init=3, random_state=case.seed),
            "PCA": lambda case: PCA(case.components),
            "HistogramDensity": lambda _: Histogram(),
        },
        private=False,
    )
