"""Learn thresholds and intervals over a declared grid by binary search with statistical queries.

*Threshold*: the label is true where x >= c, for a c on the grid. One search; the error is at most twice the tolerance.
*Interval*: the label is true where a <= x <= b, with a and b on the grid, or nowhere. Two searches, one for each end.

The queries are chosen from earlier answers, and the tolerance holds because they come from the declared class. The
proof of the error is in docs/learning-proofs.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sfumato.curator import Curator
from sfumato.learning.column_names import check_grid, check_names
from sfumato.learning.guarantee import Oracle, fit_learner, guarantee_error
from sfumato.learning.hypotheses import RangeRule, StumpRule
from sfumato.learning.row_conditions import Condition, join_conditions, quote, read_threshold, read_truth


class GridLearner(Protocol):
    """What both learners are made with."""

    @property
    def feature(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def grid(self) -> tuple[float, ...]: ...


def check_settings(learner: GridLearner) -> tuple[float, ...]:
    """The grid as floats. Wrong names and grids are refused."""
    check_names([learner.feature], learner.target)
    return check_grid(learner.grid)


def read_grid_conditions(learner: GridLearner, curator: Curator, table: str) -> tuple[Condition, ...]:
    """The label, then x >= c for each grid value."""
    label = read_truth(curator.dataset, table, learner.target)
    return (label, *(read_threshold(curator.dataset, table, learner.feature, value) for value in learner.grid))


@dataclass(frozen=True, slots=True)
class Threshold:
    """Learns the threshold of a column: the label is true where the column is at least a value of the grid."""

    feature: str
    target: str
    grid: tuple[float, ...]

    guarantee = guarantee_error
    fit = fit_learner
    read_conditions = read_grid_conditions

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", check_settings(self))

    @property
    def k(self) -> int:
        """The steps of a binary search over the grid."""
        return count_steps(self.grid)

    @property
    def class_size(self) -> int:
        """P[x < c and label is true], for each grid value c but the first."""
        return len(self.grid) - 1

    @property
    def error_factor(self) -> int:
        """The error is at most twice the tolerance."""
        return 2

    def learn(self, oracle: Oracle, tolerance: float, conditions: Sequence[Condition]) -> StumpRule:
        """The largest grid value below which the label is almost never true."""
        return StumpRule(conditions[1 + find_lower(oracle, tolerance, conditions)])


@dataclass(frozen=True, slots=True)
class Interval:
    """Learns an interval of a column: the label is true between two values of the grid, both included, or nowhere."""

    feature: str
    target: str
    grid: tuple[float, ...]

    guarantee = guarantee_error
    fit = fit_learner
    read_conditions = read_grid_conditions

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", check_settings(self))

    @property
    def k(self) -> int:
        """The steps of two binary searches over the grid."""
        return 2 * count_steps(self.grid)

    @property
    def class_size(self) -> int:
        """P[x < a and label is true] and P[x > b and label is true], for the grid values that are searched."""
        return 2 * (len(self.grid) - 1)

    @property
    def error_factor(self) -> int:
        """The error is at most four times the tolerance: twice at each end."""
        return 4

    def learn(self, oracle: Oracle, tolerance: float, conditions: Sequence[Condition]) -> RangeRule:
        """The interval outside which the label is almost never true."""
        label, column, last = conditions[0], quote(conditions[1].column), len(self.grid) - 1

        def write_above(place: int) -> str:
            return f"{column} > {self.grid[last - place]!r} AND ({label.sql})"

        lower = self.grid[find_lower(oracle, tolerance, conditions)]
        upper = self.grid[last - search_last(oracle, tolerance, write_above, len(self.grid))]
        sql = f"COALESCE({column} >= {lower!r} AND {column} <= {upper!r}, FALSE)"
        return RangeRule(conditions[1].column, lower, upper, sql)


def count_steps(grid: Sequence[float]) -> int:
    """The queries of one search: log2 of the number of grid values, rounded up."""
    return (len(grid) - 1).bit_length()


def find_lower(oracle: Oracle, tolerance: float, conditions: Sequence[Condition]) -> int:
    """The place of a grid value below which the label is almost never true, and which is not too low."""
    label, reached = conditions[0], conditions[1:]
    return search_last(oracle, tolerance, lambda place: join_conditions((reached[place].negate(), label)), len(reached))


def search_last(oracle: Oracle, tolerance: float, write_query: Callable[[int], str], places: int) -> int:
    """A place whose answer is within the tolerance of 0 (or the first), and the next one's is not (or there is none).

    By binary search. The first place is not asked.
    """
    low, high = 0, places
    while high - low > 1:
        middle = (low + high) // 2
        is_low = oracle.means([write_query(middle)])[0] <= tolerance
        low, high = (middle, high) if is_low else (low, middle)
    return low
