"""What a learner returns: a rule that maps a row to true or false, as SQL and in Python. It is safe to publish."""

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.learning.row_conditions import Condition, join_conditions, read_number


@dataclass(frozen=True, slots=True)
class ConjunctionRule:
    """True if all its literals are. Without literals it is always true."""

    literals: tuple[Condition, ...]

    @property
    def sql(self) -> str:
        """The rule as an SQL condition."""
        return join_conditions(self.literals) or "TRUE"

    def predict(self, row: Mapping[str, object]) -> bool:
        """The label of one row, a mapping from columns to values."""
        return all(literal.check(row) for literal in self.literals)

    def __str__(self) -> str:
        return " AND ".join(map(str, self.literals)) or "TRUE"


@dataclass(frozen=True, slots=True)
class StumpRule:
    """One condition, or a constant."""

    condition: Condition | bool

    @property
    def sql(self) -> str:
        """The rule as an SQL condition."""
        return write_truth(self.condition) if isinstance(self.condition, bool) else self.condition.sql

    def predict(self, row: Mapping[str, object]) -> bool:
        """The label of one row, a mapping from columns to values."""
        return self.condition if isinstance(self.condition, bool) else self.condition.check(row)

    def __str__(self) -> str:
        return write_truth(self.condition) if isinstance(self.condition, bool) else str(self.condition)


@dataclass(frozen=True, slots=True)
class RangeRule:
    """True from `lower` to `upper`, both included. It is empty if upper is below lower."""

    column: str
    lower: float
    upper: float
    sql: str

    def predict(self, row: Mapping[str, object]) -> bool:
        """The label of one row, a mapping from columns to values."""
        value = read_number(row.get(self.column))
        return value is not None and self.lower <= value <= self.upper

    def __str__(self) -> str:
        return f"{self.lower:g} <= {self.column} <= {self.upper:g}" if self.lower <= self.upper else "FALSE"


@dataclass(frozen=True, slots=True)
class RuleList:
    """The first rule whose condition is true decides; otherwise the default does."""

    rules: tuple[tuple[Condition, bool], ...]
    default: bool

    @property
    def sql(self) -> str:
        """The rule list as an SQL condition."""
        if not self.rules:
            return write_truth(self.default)
        cases = " ".join(f"WHEN {condition.sql} THEN {write_truth(label)}" for condition, label in self.rules)
        return f"CASE {cases} ELSE {write_truth(self.default)} END"

    def predict(self, row: Mapping[str, object]) -> bool:
        """The label of one row, a mapping from columns to values."""
        return next((label for condition, label in self.rules if condition.check(row)), self.default)

    def __str__(self) -> str:
        rules = [f"if {condition} then {label}" for condition, label in self.rules]
        return " else ".join([*rules, str(self.default)])


def write_truth(value: bool) -> str:
    """TRUE or FALSE in SQL."""
    return "TRUE" if value else "FALSE"


Hypothesis = ConjunctionRule | StumpRule | RangeRule | RuleList
