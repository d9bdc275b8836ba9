"""Learn decision stumps: the single condition that agrees best with the label.

The error of each condition is a statistical query, P[condition differs from the label]; that of its negation is 1 minus
it; and P[label is true] is the error of "always false". All queries are fixed in advance and take one scan. The rule
with the smallest answer is chosen. The proof of the error is in docs/learning-proofs.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sfumato.curator import Curator
from sfumato.errors import InvalidParameter, describe_kind
from sfumato.learning.column_names import check_grid, check_names
from sfumato.learning.guarantee import Oracle, fit_learner, guarantee_error
from sfumato.learning.hypotheses import StumpRule
from sfumato.learning.row_conditions import Condition, join_conditions, read_threshold, read_truth


@dataclass(frozen=True, slots=True)
class DecisionStump:
    """Learns one condition. `features` maps a number's column to its grid of thresholds, and a truth's to None."""

    features: Mapping[str, Sequence[float] | None]
    target: str

    guarantee = guarantee_error
    fit = fit_learner

    def __post_init__(self) -> None:
        if not isinstance(self.features, Mapping):
            rule = "must map columns to grids of thresholds, or to None for columns of truth values"
            raise InvalidParameter("features", rule, describe_kind(self.features))
        check_names(list(self.features), self.target)
        grids = {name: None if grid is None else check_grid(grid, 1) for name, grid in self.features.items()}
        object.__setattr__(self, "features", MappingProxyType(grids))

    @property
    def k(self) -> int:
        """One query for each condition, and one for the constants."""
        return 1 + sum(1 if grid is None else len(grid) for grid in self.features.values())

    @property
    def class_size(self) -> int:
        """The class is the K queries: P[condition differs from the label]."""
        return self.k

    @property
    def error_factor(self) -> int:
        """The error is at most twice the tolerance above that of the best stump."""
        return 2

    def read_conditions(self, curator: Curator, table: str) -> tuple[Condition, ...]:
        """The label, then every condition."""
        made = [read_truth(curator.dataset, table, self.target)]
        for name, grid in self.features.items():
            if grid is None:
                made.append(read_truth(curator.dataset, table, name))
            else:
                made += [read_threshold(curator.dataset, table, name, value) for value in grid]
        return tuple(made)

    def learn(self, oracle: Oracle, tolerance: float, conditions: Sequence[Condition]) -> StumpRule:
        """The condition, or its negation, or the constant, with the smallest answer."""
        label, others = conditions[0], conditions[1:]
        differ = [
            f"({join_conditions((condition, label.negate()))}) OR ({join_conditions((condition.negate(), label))})"
            for condition in others
        ]
        answers = oracle.means([label.sql, *differ])
        errors: list[tuple[float, Condition | bool]] = [(answers[0], False), (1 - answers[0], True)]
        for condition, answer in zip(others, answers[1:], strict=True):
            errors += [(answer, condition), (1 - answer, condition.negate())]
        return StumpRule(min(errors, key=lambda pair: pair[0])[1])
