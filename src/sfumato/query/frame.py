"""The Python way to say the same Query: where / group_by / agg. Each fragment of SQL is first parsed on its own."""

from dataclasses import dataclass, replace

from sqlglot import exp

from sfumato.catalog.dataset import Dataset
from sfumato.errors import InvalidParameter, UnsupportedSyntax
from sfumato.query.bind import bind
from sfumato.query.parse import parse, parse_expression
from sfumato.query.query import Query


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate function of a SQL fragment; None: of rows, or of people."""

    function: str
    value: str | None = None

    def __post_init__(self) -> None:
        if self.function not in NODES and self.function != PEOPLE:
            raise InvalidParameter("function", f"must be one of {', '.join([*NODES, PEOPLE])}", "something else")
        if self.value is not None:
            parse_expression(self.value)


PEOPLE = "PEOPLE"
NODES: dict[str, type[exp.Func]] = {
    "COUNT": exp.Count, "SUM": exp.Sum, "AVG": exp.Avg, "VARIANCE": exp.Variance, "STDDEV": exp.Stddev,
}  # fmt: skip


def count(value: str | None = None) -> Aggregation:
    """COUNT(*), or COUNT(value): rows where it is not NULL."""
    return Aggregation("COUNT", value)


def mean(value: str) -> Aggregation:
    """AVG(value)."""
    return Aggregation("AVG", value)


def total(value: str) -> Aggregation:
    """SUM(value)."""
    return Aggregation("SUM", value)


def variance(value: str) -> Aggregation:
    """VARIANCE(value)."""
    return Aggregation("VARIANCE", value)


def stddev(value: str) -> Aggregation:
    """STDDEV(value)."""
    return Aggregation("STDDEV", value)


def people() -> Aggregation:
    """COUNT(DISTINCT unit)."""
    return Aggregation(PEOPLE)


sum_ = total


@dataclass(frozen=True, slots=True)
class Frame:
    """A table with conditions and keys: each step gives a new frame."""

    dataset: Dataset
    table: str
    conditions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    def where(self, condition: str) -> "Frame":
        """Keep rows for which this, and every earlier condition, is true."""
        parse_expression(condition)
        return replace(self, conditions=(*self.conditions, condition))

    def group_by(self, *keys: str) -> "Frame":
        """Group by these too: columns, or expressions such as "age > 65 AS old"."""
        if not keys:
            hint = 'For example group_by("city"); leave it out for one total.'
            raise InvalidParameter("keys", "must be at least one", "none", hint)
        for key in keys:
            parse_expression(key, named=True)
        return replace(self, keys=(*self.keys, *keys))

    def agg(self, **aggregates: Aggregation) -> "FrameQuery":
        """The question: a named aggregate for each column of the answer."""
        if not aggregates:
            raise InvalidParameter("aggregates", "must be at least one", "none", "For example agg(n=sf.count()).")
        for name, each in aggregates.items():
            if not isinstance(each, Aggregation):
                raise InvalidParameter(name, "must be count(), mean(...) or another aggregate", type(each).__name__)
        return FrameQuery(self, tuple(aggregates.items()))


@dataclass(frozen=True, slots=True)
class FrameQuery:
    """A question, as SQL and as the Query that this SQL means."""

    frame: Frame
    aggregates: tuple[tuple[str, Aggregation], ...]

    def sql(self) -> str:
        """A SELECT that asks the same."""
        frame = self.frame
        keys = [parse_expression(each, named=True) for each in frame.keys]
        selected = [*keys, *(_named(self._node(each), name) for name, each in self.aggregates)]
        tree = exp.select(*selected).from_(exp.Table(this=_identifier(frame.table)))
        for each in frame.conditions:
            tree = tree.where(exp.Paren(this=parse_expression(each)), copy=False)
        if keys:
            tree = tree.group_by(*(exp.Paren(this=each.unalias().copy()) for each in keys), copy=False)
        return tree.sql(dialect="duckdb")

    def query(self) -> Query:
        """Bound, exactly as its SQL is."""
        return bind(parse(self.sql()), self.frame.dataset)

    def _node(self, each: Aggregation) -> exp.Expr:
        if each.function == PEOPLE:
            unit = self.frame.dataset.table(self.frame.table).unit
            if not isinstance(unit, str):
                raise UnsupportedSyntax("syntax", "Rows of this table have no person's id.", "Use count().")
            column = exp.Column(this=_identifier(unit))
            return exp.Count(this=exp.Distinct(expressions=[column]))
        value = exp.Star() if each.value is None else parse_expression(each.value)
        return NODES[each.function](this=value)


def _named(node: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=node, alias=_identifier(name))


def _identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)
