"""Private learning: sample sizes of statistical queries, and learners that state what they guarantee."""

from sfumato.answering.statistical_oracle import ClampWarning, StatisticalOracle
from sfumato.learning.conjunctions import Conjunction
from sfumato.learning.decision_lists import DecisionList
from sfumato.learning.guarantee import Fitted, Guarantee
from sfumato.learning.parities import Parity
from sfumato.learning.sample_sizes import find_beta, find_epsilon, find_queries, find_tolerance, sample_size
from sfumato.learning.stumps import DecisionStump
from sfumato.learning.thresholds import Interval, Threshold

__all__ = [
    "ClampWarning",
    "Conjunction",
    "DecisionList",
    "DecisionStump",
    "Fitted",
    "Guarantee",
    "Interval",
    "Parity",
    "StatisticalOracle",
    "Threshold",
    "find_beta",
    "find_epsilon",
    "find_queries",
    "find_tolerance",
    "sample_size",
]
