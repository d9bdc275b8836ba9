"""Learn decision lists over {0,1}^d: if x1 then true, else if not x3 then false, ..., else a default.

The learner builds its own list from the first rule on. The rules so far leave the rows C that no rule has decided. For
each literal of a variable that is not used yet, for "always", and for each label b, the query is P[C and literal and
the label is not b]. The learner takes a literal and a label whose answer is at most the tolerance, and stops when it
takes "always". The queries are chosen from earlier answers, and the tolerance holds because they come from the
declared class. The proof of the error is in docs/learning-proofs.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.curator import Curator
from sfumato.errors import InvalidParameter
from sfumato.learning.column_names import check_names
from sfumato.learning.guarantee import Oracle, fit_learner, guarantee_error
from sfumato.learning.hypotheses import RuleList
from sfumato.learning.row_conditions import Condition, join_conditions, read_truth

MOST_LISTED = 150  # the last query has a condition on each feature: a longer one would be refused after the charge


@dataclass(frozen=True, slots=True)
class DecisionList:
    """Learns a list of rules, each with one feature or negated feature."""

    features: tuple[str, ...]
    target: str

    guarantee = guarantee_error
    fit = fit_learner

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", check_names(self.features, self.target))
        if len(self.features) > MOST_LISTED:
            raise InvalidParameter("features", f"must be at most {MOST_LISTED} for a decision list", "more of them")

    @property
    def k(self) -> int:
        """At most so many queries: 2(d + 1)^2."""
        return 2 * (len(self.features) + 1) ** 2

    @property
    def class_size(self) -> int:
        """P[a conjunction of literals, and a label]: 2 * 3^d functions. C and a literal are a conjunction too."""
        return 2 * int(3 ** len(self.features))

    @property
    def error_factor(self) -> int:
        """The error is at most this times the tolerance: 2(d + 1)."""
        return 2 * (len(self.features) + 1)

    def read_conditions(self, curator: Curator, table: str) -> tuple[Condition, ...]:
        """The label, then the features."""
        return tuple(read_truth(curator.dataset, table, name) for name in (self.target, *self.features))

    def learn(self, oracle: Oracle, tolerance: float, conditions: Sequence[Condition]) -> RuleList:
        """Take one rule after another, the one with the smallest answer first."""
        label, unused = conditions[0], list(conditions[1:])
        rules: list[tuple[Condition, bool]] = []
        while True:
            undecided = [condition.negate() for condition, _ in rules]
            literals = [literal for feature in unused for literal in (feature, feature.negate())]
            choices = [(literal, given) for literal in (None, *literals) for given in (False, True)]
            answers = oracle.means([_write_query(undecided, literal, label, given) for literal, given in choices])
            always = min(zip(answers[:2], (False, True), strict=True))
            if always[0] <= tolerance or not unused:
                return RuleList(tuple(rules), always[1])
            best = min(range(2, len(choices)), key=lambda place: answers[place])
            literal, given = choices[best]
            if literal is None or answers[best] > tolerance:  # no list fits the labels: decide by the majority
                return RuleList(tuple(rules), always[1])
            rules.append((literal, given))
            unused = [feature for feature in unused if feature.column != literal.column]


def _write_query(undecided: Sequence[Condition], literal: Condition | None, label: Condition, given: bool) -> str:
    """C and the literal, and the label is not the given one."""
    wrong = label.negate() if given else label
    return join_conditions((*undecided, *(() if literal is None else (literal,)), wrong))
