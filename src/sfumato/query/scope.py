"""What names mean in FROM: parts with typed columns, from tables, subqueries and CTEs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.catalog.columns import Boolean, Category, Date, DateTime, Integer, Real
from sfumato.catalog.model import Table
from sfumato.catalog.names import find, unknown
from sfumato.errors import UnknownName
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.query import functions
from sfumato.query.date_functions import keys_between
from sfumato.query.parse import place_of, placed, unsupported
from sfumato.query.periods import number_of
from sfumato.query.query import Typed

TYPES = {
    ColumnType.INTEGER: "number", ColumnType.REAL: "number", ColumnType.BOOLEAN: "boolean",
    ColumnType.TEXT: "text", ColumnType.DATE: "date", ColumnType.DATETIME: "datetime", ColumnType.ID: "id",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """One item of FROM: its name here, its columns, and which of them is the person's id or leads to the person."""

    alias: str
    columns: Mapping[str, Typed]
    table: str  # what it is called in errors
    person: frozenset[str] = frozenset()
    links: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # an id column -> (table, column) that it names
    public: Mapping[str, int] | None = None  # the largest multiplicity of each column's values, of a public table

    @classmethod
    def of_table(cls, table: Table, alias: str, prefix: str) -> "Part":
        """A declared table, its columns named with a prefix."""
        columns = {name: typed_column(table, name, prefix) for name in table.columns}
        person = frozenset([table.unit]) if isinstance(table.unit, str) and not table.public else frozenset[str]()
        links = {name: (table.name, name) for name, each in columns.items() if each.type == "id" and name not in person}
        if table.unit_through:
            column, through = table.unit_through
            links[column] = (through, column)
        return cls(alias, columns, table.name, person, links, dict(table.multiplicities) if table.public else None)

    def renamed(self, alias: str) -> "Part":
        return replace(self, alias=alias)


class Scope:
    """The parts of one FROM, and how a name finds its column."""

    def __init__(self, parts: Iterable[Part], outputs: Iterable[str] = ()) -> None:
        self.parts = tuple(parts)
        self._outputs = tuple(outputs)  # the names that SELECT gives: no row has them

    def has(self, name: str) -> bool:
        return any(find(name, part.columns) is not None for part in self.parts)

    def column(self, node: exp.Column) -> tuple[Part, str]:
        """The part and the declared spelling that a name means."""
        if not isinstance(node.this, exp.Identifier):
            raise unsupported(node, "* is not a value", "Name a column, or use COUNT(*).")
        parts = [part for part in self.parts if not node.table or find(node.table, (part.alias,)) is not None]
        if not parts:
            where = place_of(node.args["table"])
            shown = node.table if len(node.table) <= 40 else node.table[:40] + "..."
            names = " or ".join(part.alias for part in self.parts)
            raise UnknownName("unknown-name", f"There is no table '{shown}' here{where}.", f"Write {names}.")
        found = [(part, name) for part in parts if (name := find(node.name, part.columns)) is not None]
        if len(found) > 1:
            names = ", ".join(f"{part.alias}.{name}" for part, name in found)
            raise unsupported(node, f"{node.name[:40]} is in more than one table", f"Write one of {names}.")
        if found:
            return found[0]
        if find(node.name, self._outputs) is not None:
            hint = "Write the expression out; GROUP BY, HAVING and ORDER BY take the name."
            raise unsupported(node, f"{node.name} is a name that SELECT gives, and is not known here", hint)
        where = f" in table {parts[0].table}" if len(parts) == 1 else ""
        with placed(node):
            raise unknown("column", node.name, [name for part in parts for name in part.columns], where)

    def is_person(self, node: exp.Expr) -> bool:
        """Is this the person's id?"""
        if not isinstance(node, exp.Column):
            return False
        part, name = self.column(node)
        return name in part.person


def typed_column(table: Table, name: str, prefix: str = "") -> Typed:  # noqa: PLR0911 - one return a type
    """A declared column, with what follows of it from its declaration."""
    found = table.column(name)
    column = Column(prefix + found.name, found.type, found.nullable)
    kind = TYPES[column.type]
    match table.columns[name]:
        case Integer(lower=lower, upper=upper):
            values = functions.whole_values(lower, upper)
            return Typed(column, kind, column.nullable, float(lower), float(upper), True, values)
        case Real(lower=lower, upper=upper):
            return Typed(column, kind, column.nullable, lower, upper)
        case Category(values=values) if kind == "number":
            low, high = float(min(values)), float(max(values))
            return Typed(column, kind, column.nullable, low, high, True, tuple(values))
        case Category(values=values):
            return Typed(column, kind, column.nullable, values=tuple(values))
        case Boolean():
            return Typed(column, kind, column.nullable, values=functions.TRUTHS)
        case Date(lower=first, upper=last):
            values = keys_between("date", "day", first, last)
            return Typed(column, kind, column.nullable, number_of(first), number_of(last), values=values)
        case DateTime(lower=first, upper=last):
            return Typed(column, kind, column.nullable, number_of(first), number_of(last))
    return Typed(column, kind, column.nullable)
