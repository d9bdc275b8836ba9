"""Private learning: sample sizes of statistical queries, learners that state what they guarantee, and estimators.

The estimators need scikit-learn (the extra `learn`), and are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sfumato.answering.statistical_oracle import ClampWarning, StatisticalOracle
from sfumato.extras import imported
from sfumato.learning.conjunctions import Conjunction
from sfumato.learning.decision_lists import DecisionList
from sfumato.learning.guarantee import Fitted, Guarantee
from sfumato.learning.parities import Parity
from sfumato.learning.sample_sizes import find_beta, find_epsilon, find_queries, find_tolerance, sample_size
from sfumato.learning.stumps import DecisionStump
from sfumato.learning.thresholds import Interval, Threshold

if TYPE_CHECKING:
    from sfumato.learning.boosted_additive import BoostedAdditiveClassifier as BoostedAdditiveClassifier
    from sfumato.learning.boosted_additive import BoostedAdditiveRegressor as BoostedAdditiveRegressor
    from sfumato.learning.decision_trees import DecisionTreeClassifier as DecisionTreeClassifier
    from sfumato.learning.decision_trees import RandomForestClassifier as RandomForestClassifier
    from sfumato.learning.estimator_arguments import LabelWarning as LabelWarning
    from sfumato.learning.histogram_density import HistogramDensity as HistogramDensity
    from sfumato.learning.k_means import KMeans as KMeans
    from sfumato.learning.learning_curve import LearningCurve as LearningCurve
    from sfumato.learning.learning_curve import measure_learning_curve as measure_learning_curve
    from sfumato.learning.linear_regression import LinearRegression as LinearRegression
    from sfumato.learning.logistic_regression import LogisticRegression as LogisticRegression
    from sfumato.learning.naive_bayes import CategoricalNB as CategoricalNB
    from sfumato.learning.naive_bayes import GaussianNB as GaussianNB
    from sfumato.learning.principal_components import PCA as PCA

_ESTIMATORS = {  # public name -> module
    "BoostedAdditiveClassifier": "sfumato.learning.boosted_additive",
    "BoostedAdditiveRegressor": "sfumato.learning.boosted_additive",
    "CategoricalNB": "sfumato.learning.naive_bayes",
    "DecisionTreeClassifier": "sfumato.learning.decision_trees",
    "GaussianNB": "sfumato.learning.naive_bayes",
    "HistogramDensity": "sfumato.learning.histogram_density",
    "KMeans": "sfumato.learning.k_means",
    "LabelWarning": "sfumato.learning.estimator_arguments",
    "LearningCurve": "sfumato.learning.learning_curve",
    "LinearRegression": "sfumato.learning.linear_regression",
    "measure_learning_curve": "sfumato.learning.learning_curve",
    "PCA": "sfumato.learning.principal_components",
    "RandomForestClassifier": "sfumato.learning.decision_trees",
    "LogisticRegression": "sfumato.learning.logistic_regression",
}
__all__ = [
    "PCA",
    "BoostedAdditiveClassifier",
    "BoostedAdditiveRegressor",
    "CategoricalNB",
    "ClampWarning",
    "Conjunction",
    "DecisionList",
    "DecisionStump",
    "DecisionTreeClassifier",
    "Fitted",
    "GaussianNB",
    "Guarantee",
    "HistogramDensity",
    "Interval",
    "KMeans",
    "LabelWarning",
    "LearningCurve",
    "LinearRegression",
    "LogisticRegression",
    "Parity",
    "RandomForestClassifier",
    "StatisticalOracle",
    "Threshold",
    "find_beta",
    "find_epsilon",
    "find_queries",
    "find_tolerance",
    "measure_learning_curve",
    "sample_size",
]


def __getattr__(name: str) -> object:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    imported("sklearn", "learn")
    return getattr(import_module(_ESTIMATORS[name]), name)


def __dir__() -> list[str]:
    return __all__
