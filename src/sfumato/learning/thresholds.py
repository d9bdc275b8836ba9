"""Learn thresholds and intervals over a declared grid by binary search with statistical queries.

*Threshold*: the label is true where x >= c, for a c on the grid. f(c) = P[x < c and label is true] does not decrease
in c, and is 0 at the true c. The search finds neighbours c < c' on the grid with an answer of at most t at c (or c is
the first) and above t at c' (or c is the last). Then f(c') > 0, so the true threshold is below c', so at most c: the
rule errs only where x < c and the label is true, with probability f(c) <= 2t. The first grid value needs no query,
since f is 0 there. K = ceil(log2 G) for G grid values. The class has the G - 1 functions of the other values.

*Interval*: the label is true where a <= x <= b, with a and b on the grid, or nowhere. The lower end is searched as
above, and the upper end with P[x > b and label is true], from the other side. The rule lies inside the true interval,
and errs with probability at most 2t at each end: 4t. K = 2 ceil(log2 G), and the class has 2(G - 1) functions.

The queries are chosen from earlier answers, and the tolerance holds because they come from the declared class.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sfumato.curator import Curator
from sfumato.learning.column_names import check_grid, check_names
from sfumato.learning.guarantee import Oracle, fit_learner, guarantee_error
from sfumato.learning.hypotheses import RangeRule, StumpRule
from sfumato.learning.row_conditions import Condition, join_conditions, quote, read_threshold, read_truth


@dataclass(frozen=True, slots=True)
class Threshold:
    """Learns the threshold of a column: the label is true where the column is at least a value of the grid."""

    feature: str
    target: str
    grid: tuple[float, ...]

    guarantee = guarantee_error
    fit = fit_learner

    def __post_init__(self) -> None:
        check_names([self.feature], self.target)
        object.__setattr__(self, "grid", check_grid(self.grid))

    @property
    def k(self) -> int:
        """The steps of a binary search over the grid."""
        return (len(self.grid) - 1).bit_length()

    @property
    def class_size(self) -> int:
        """P[x < c and label is true], for each grid value c but the first."""
        return len(self.grid) - 1

    @property
    def error_factor(self) -> int:
        """The error is at most twice the tolerance."""
        return 2

    def read_conditions(self, curator: Curator, table: str) -> tuple[Condition, ...]:
        """The label, then x >= c for each grid value."""
        label = read_truth(curator.dataset, table, self.target)
        return (label, *(read_threshold(curator.dataset, table, self.feature, value) for value in self.grid))

    def learn(self, oracle: Oracle, tolerance: float, conditions: Sequence[Condition]) -> StumpRule:
        """The largest grid value below which the label is almost never true."""
        label, reached = conditions[0], conditions[1:]

        def is_low(place: int) -> bool:
            return oracle.means([join_conditions((reached[place].negate(), label))])[0] <= tolerance

        return StumpRule(reached[search_last(is_low, len(self.grid))])


@dataclass(frozen=True, slots=True)
class Interval:
    """Learns an interval of a column: the label is true between two values of the grid, both included, or nowhere."""

    feature: str
    target: str
    grid: tuple[float, ...]

    guarantee = guarantee_error
    fit = fit_learner

    def __post_init__(self) -> None:
        check_names([self.feature], self.target)
        object.__setattr__(self, "grid", check_grid(self.grid))

    @property
    def k(self) -> int:
        """The steps of two binary searches over the grid."""
        return 2 * (len(self.grid) - 1).bit_length()

    @property
    def class_size(self) -> int:
        """P[x < a and label is true] and P[x > b and label is true], for the grid values that are searched."""
        return 2 * (len(self.grid) - 1)

    @property
    def error_factor(self) -> int:
        """The error is at most four times the tolerance: twice at each end."""
        return 4

    def read_conditions(self, curator: Curator, table: str) -> tuple[Condition, ...]:
        """The label, then x >= c for each grid value."""
        label = read_truth(curator.dataset, table, self.target)
        return (label, *(read_threshold(curator.dataset, table, self.feature, value) for value in self.grid))

    def learn(self, oracle: Oracle, tolerance: float, conditions: Sequence[Condition]) -> RangeRule:
        """The interval outside which the label is almost never true."""
        label, reached = conditions[0], conditions[1:]
        column, last = reached[0].column, len(self.grid) - 1

        def is_low(place: int) -> bool:
            return oracle.means([join_conditions((reached[place].negate(), label))])[0] <= tolerance

        def is_high(place: int) -> bool:
            above = f"{quote(column)} > {self.grid[last - place]!r}"
            return oracle.means([f"{above} AND ({label.sql})"])[0] <= tolerance

        lower = self.grid[search_last(is_low, len(self.grid))]
        upper = self.grid[last - search_last(is_high, len(self.grid))]
        sql = f"COALESCE({quote(column)} >= {lower!r} AND {quote(column)} <= {upper!r}, FALSE)"
        return RangeRule(column, lower, upper, sql)


def search_last(is_low: Callable[[int], bool], places: int) -> int:
    """A place that is low (or the first), where the next place is not low (or there is none). By binary search."""
    low, high = 0, places
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low
