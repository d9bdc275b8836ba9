"""Ask in Python: where / group_by / agg. A frame builds the syntax tree itself, so no SQL text is printed and parsed.

Each fragment of SQL that the user writes, such as "age > 65", is parsed once, when it is given.
"""

from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.catalog.dataset import Dataset
from sfumato.errors import InvalidParameter, UnsupportedSyntax
from sfumato.query.parse import parse_expression
from sfumato.query.sql_text import print_sql
from sfumato.query.tokens import MOST_LETTERS, SHORTEN, refuse_name

PEOPLE = "PEOPLE"
DIFFERENT = "COUNT DISTINCT"
NODES: dict[str, type[exp.Func]] = {
    "COUNT": exp.Count, "SUM": exp.Sum, "AVG": exp.Avg, "VARIANCE": exp.Variance, "STDDEV": exp.Stddev,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment of SQL and its syntax tree. The tree is never changed: a question takes a copy."""

    text: str
    tree: exp.Expr = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str, *, named: bool = False) -> "Fragment":
        return cls(text, parse_expression(text, named=named))


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate function of a fragment. Without a fragment it counts rows or people."""

    function: str
    value: Fragment | None = None

    def __post_init__(self) -> None:
        known = [*NODES, PEOPLE, DIFFERENT]
        if self.function not in known:
            raise InvalidParameter("function", f"must be one of {', '.join(known)}", "something else")


def count(value: str | None = None) -> Aggregation:
    """COUNT(*). With a value, COUNT(value): the rows in which it is not NULL."""
    return Aggregation("COUNT", None if value is None else Fragment.parse(value))


def count_distinct(value: str) -> Aggregation:
    """COUNT(DISTINCT value): the number of different values. Of the person's id: the number of people."""
    return Aggregation(DIFFERENT, Fragment.parse(value))


def mean(value: str) -> Aggregation:
    """AVG(value)."""
    return Aggregation("AVG", Fragment.parse(value))


def total(value: str) -> Aggregation:
    """SUM(value)."""
    return Aggregation("SUM", Fragment.parse(value))


def variance(value: str) -> Aggregation:
    """VARIANCE(value)."""
    return Aggregation("VARIANCE", Fragment.parse(value))


def stddev(value: str) -> Aggregation:
    """STDDEV(value)."""
    return Aggregation("STDDEV", Fragment.parse(value))


def people() -> Aggregation:
    """COUNT(DISTINCT id): the number of people."""
    return Aggregation(PEOPLE)


@dataclass(frozen=True, slots=True)
class Frame:
    """A table, conditions on its rows, and group keys. Each step returns a new frame."""

    dataset: Dataset
    table: str
    conditions: tuple[Fragment, ...] = ()
    keys: tuple[Fragment, ...] = ()

    def where(self, condition: str) -> "Frame":
        """Keep the rows for which this condition and all earlier ones are true."""
        return replace(self, conditions=(*self.conditions, Fragment.parse(condition)))

    def group_by(self, *keys: str) -> "Frame":
        """Add group keys: columns, or expressions such as "age > 65 AS old"."""
        if not keys:
            hint = 'For example group_by("city"); leave it out for one total.'
            raise InvalidParameter("keys", "must be at least one", "none", hint)
        return replace(self, keys=(*self.keys, *(Fragment.parse(key, named=True) for key in keys)))

    def agg(self, **aggregates: Aggregation) -> "FrameQuery":
        """Complete the question with one named aggregate for each column of the answer."""
        if not aggregates:
            raise InvalidParameter("aggregates", "must be at least one", "none", "For example agg(n=sf.count()).")
        for name, aggregation in aggregates.items():
            refuse_name(name)
            if not isinstance(aggregation, Aggregation):
                rule = "must be count(), mean(...) or another aggregate"
                raise InvalidParameter(name, rule, type(aggregation).__name__)
        return FrameQuery(self, tuple(aggregates.items()))


@dataclass(frozen=True, slots=True)
class FrameQuery:
    """A complete question: a frame and its named aggregates."""

    frame: Frame
    aggregates: tuple[tuple[str, Aggregation], ...]

    def build_tree(self) -> exp.Select:
        """Build the syntax tree that `parse` gives for `sql()`."""
        frame = self.frame
        values = (aggregation.value for _, aggregation in self.aggregates)
        fragments = [*frame.conditions, *frame.keys, *(value for value in values if value is not None)]
        if sum(len(fragment.text) for fragment in fragments) > MOST_LETTERS:
            raise UnsupportedSyntax("syntax", f"The question is longer than {MOST_LETTERS:,} characters.", SHORTEN)
        keys = [fragment.tree.copy() for fragment in frame.keys]
        aggregates = [exp.Alias(this=self._build_node(value), alias=_quote(name)) for name, value in self.aggregates]
        tree = exp.Select(expressions=[*keys, *aggregates], from_=exp.From(this=exp.Table(this=_quote(frame.table))))
        if frame.conditions:
            # without brackets, "a OR b" would take in the condition that follows it
            conditions = [exp.Paren(this=fragment.tree.copy()) for fragment in frame.conditions]
            tree.set("where", exp.Where(this=exp.and_(*conditions, copy=False, wrap=False)))
        if keys:
            # in brackets, a key is an expression over the table's columns: never an alias, and 1 is not "column 1"
            grouped = [exp.Paren(this=fragment.tree.unalias().copy()) for fragment in frame.keys]
            tree.set("group", exp.Group(expressions=grouped))
        return tree

    def sql(self) -> str:
        """Print a SELECT that asks the same question."""
        return print_sql(self.build_tree())

    def _build_node(self, aggregation: Aggregation) -> exp.Expr:
        if aggregation.function == PEOPLE:
            unit = self.frame.dataset.table(self.frame.table).unit
            if not isinstance(unit, str):
                message = "people() needs a person's id, and this table has none: each row is one person."
                raise UnsupportedSyntax("syntax", message, "Use count().")
            return exp.Count(this=exp.Distinct(expressions=[exp.Column(this=_quote(unit))]))
        value = exp.Star() if aggregation.value is None else aggregation.value.tree.copy()
        if aggregation.function == DIFFERENT:
            return exp.Count(this=exp.Distinct(expressions=[value]), big_int=True)
        return NODES[aggregation.function](this=value)


def _quote(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)
