"""Learn conjunctions over {0,1}^d from statistical queries: which literals are never false where the label is true.

The query of a literal is P[literal is false and label is true]. The rule is the conjunction of all literals whose
answer is at most the tolerance. The queries are fixed in advance: the class is the K functions themselves, and one scan
answers all of them. The proof of the error is in docs/learning-proofs.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.curator import Curator
from sfumato.learning.column_names import check_names
from sfumato.learning.guarantee import Oracle, fit_learner, guarantee_error
from sfumato.learning.hypotheses import ConjunctionRule
from sfumato.learning.row_conditions import Condition, join_conditions, read_truth


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Learns a conjunction of features and negated features, such as smoker AND NOT retired.

    With `monotone` it has features only, such as smoker AND retired.
    """

    features: tuple[str, ...]
    target: str
    monotone: bool = False

    guarantee = guarantee_error
    fit = fit_learner

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", check_names(self.features, self.target))

    @property
    def k(self) -> int:
        """One query for each feature and, unless monotone, one for each negated feature."""
        return len(self.features) if self.monotone else 2 * len(self.features)

    @property
    def class_size(self) -> int:
        """The class is the K queries: P[literal is false and label is true]."""
        return self.k

    @property
    def error_factor(self) -> int:
        """The error is at most this times the tolerance: 2d; with negations, at least 4."""
        return 2 * len(self.features) if self.monotone else 2 * max(len(self.features), 2)

    def read_conditions(self, curator: Curator, table: str) -> tuple[Condition, ...]:
        """The label, then the features."""
        return tuple(read_truth(curator.dataset, table, name) for name in (self.target, *self.features))

    def learn(self, oracle: Oracle, tolerance: float, conditions: Sequence[Condition]) -> ConjunctionRule:
        """Keep the literals that are never false where the label is true."""
        label, features = conditions[0], conditions[1:]
        literals = [
            literal
            for feature in features
            for literal in ((feature,) if self.monotone else (feature, feature.negate()))
        ]
        answers = oracle.means([join_conditions((literal.negate(), label)) for literal in literals])
        kept = (literal for literal, answer in zip(literals, answers, strict=True) if answer <= tolerance)
        return ConjunctionRule(tuple(kept))
