"""Query: a question with every name and type resolved. SQL and Python frames build the same Query."""

from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.kernel.expressions import Expression, Literal, Scalar
from sfumato.kernel.plan import Key
from sfumato.kernel.row_sources import Source
from sfumato.query.dp_options import DpOptions


@dataclass(frozen=True, slots=True)
class Typed:
    """A row-level expression, and what the catalog says about its values. Nothing here comes from the data."""

    expression: Expression
    type: str  # "number", "text", "boolean", "date", "datetime" or "null"
    nullable: bool = True
    lower: float | None = None  # bounds of a number, or of a date as a number (periods.py); None: unknown
    upper: float | None = None
    whole: bool = False
    values: tuple[Scalar, ...] | None = None  # all possible values, if they are declared and few
    # of CASE WHEN one THEN two ELSE three END, with one condition: what these are
    restricted: "tuple[Typed, Typed, Typed] | None" = field(default=None, compare=False, repr=False)

    @property
    def bounded(self) -> bool:
        return self.lower is not None and self.upper is not None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """COUNT of rows or values, PEOPLE, SUM, AVG, VARIANCE, STDDEV, QUANTILE, MIN, MAX, MODE or TOP_K.

    COUNT DISTINCT, SUM DISTINCT and AVG DISTINCT use each different value once. CORR, COVAR_... and REGR_... are of two
    values: y is `value`, and x is in `also`.
    """

    function: str
    value: Typed | None
    fraction: Fraction | None = None  # for QUANTILE
    most: int = 1  # for TOP_K: how many values
    since: Scalar = None  # for MIN, MAX and quantiles of dates and datetimes: `value` counts days or minutes since this
    also: tuple[Typed, ...] = ()  # for COUNT DISTINCT of several expressions, and for x beside y: the others


@dataclass(frozen=True, slots=True)
class KeyRef:
    """A group key in an output column."""

    index: int


@dataclass(frozen=True, slots=True)
class AggregateRef:
    """A released aggregate in an output column."""

    index: int


@dataclass(frozen=True, slots=True)
class PostCall:
    """A function of released values. It is post-processing, so it costs nothing."""

    function: str
    arguments: "tuple[Post, ...]"


Post = KeyRef | AggregateRef | Literal | PostCall


@dataclass(frozen=True, slots=True)
class Ordering:
    """One ORDER BY term."""

    by: Post
    descending: bool
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    """SQL over released rows: it makes the rows of the answer from them. It is post-processing, so it costs nothing.

    The released rows of the question's queries are the tables released0, released1, ... of this SQL.
    """

    sql: str
    tables: tuple[tuple[tuple[str, str], ...], ...]  # of each: the names and types of its columns
    columns: tuple[str, ...]  # the names of the answer's columns
    unchanged: tuple[tuple[tuple[int, str], ...], ...]  # for each: the released columns (table, name) that it shows
    keeps_rows: bool  # each row is made from one released row; a last column has its number


@dataclass(frozen=True, slots=True)
class QuantileIntervals:
    """The share of a quantile's loss that pays for its interval, and the chance that the interval misses."""

    share: Fraction
    miss: Fraction


@dataclass(frozen=True, slots=True)
class IntervalColumn:
    """A column of an answer that shows an end of the interval of another column."""

    name: str
    place: int  # among all selected columns
    of: str  # the name of the other column
    upper: bool


@dataclass(frozen=True, slots=True)
class PossibleKeys:
    """Keys that are columns of one public table, and the combinations of their values that its rows have."""

    indexes: tuple[int, ...]
    rows: frozenset[tuple[Scalar, ...]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Query:
    """A question about the rows of a private source, as `bind` resolved it."""

    source: Source
    filters: tuple[Expression, ...]
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    columns: tuple[tuple[str, Post], ...]
    having: Post | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    dp_options: DpOptions | None = None
    offset: int = 0
    finish: Finish | None = None
    together: bool = False  # the finish selects rows by their noise, so intervals hold for all released rows at once
    beside: "tuple[Query, ...]" = ()  # other queries that the finish needs: released1, released2, ...
    keys_alone: bool = False  # only keys are selected: those that occur are shown (answers/present_keys.py)
    cautions: tuple[str, ...] = field(default=(), compare=False)  # see decided_comparisons.py
    unit_notes: tuple[str, ...] = field(default=(), compare=False)  # what one person is, for explain()
    null_keys: bool = field(default=False, compare=False)  # a key may be NULL: such rows are in no group
    max_groups: int | None = None  # in which one person counts, at most; the catalog's bound holds too
    quantile_intervals: "QuantileIntervals | None" = None  # None: quantiles have no interval in value
    possible_keys: tuple[PossibleKeys, ...] = ()  # other combinations are not shown
    interval_columns: tuple[IntervalColumn, ...] = field(default=(), compare=False)  # ends of intervals that are shown

    @property
    def shown_names(self) -> tuple[str, ...]:
        """The names of the answer's columns."""
        return tuple(name for name, _ in self.columns) if self.finish is None else self.finish.columns
