"""What names mean in FROM: parts with typed columns, from tables, subqueries and CTEs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.catalog.columns import Boolean, Category, Date, DateTime, Integer, Real
from sfumato.catalog.dataset import Table
from sfumato.catalog.names import find_name, unknown_name
from sfumato.errors import UnknownName
from sfumato.kernel.expressions import Column, ColumnType, Expression
from sfumato.kernel.row_sources import Source
from sfumato.query import functions
from sfumato.query.date_functions import list_keys_between
from sfumato.query.parse import locate, locate_errors, syntax_refusal
from sfumato.query.periods import to_number
from sfumato.query.query import Typed

TYPES = {
    ColumnType.INTEGER: "number", ColumnType.REAL: "number", ColumnType.BOOLEAN: "boolean",
    ColumnType.TEXT: "text", ColumnType.DATE: "date", ColumnType.DATETIME: "datetime", ColumnType.ID: "id",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FromItem:
    """One item of FROM: its name here, its columns, and which of them is the person's id or leads to the person."""

    alias: str
    columns: Mapping[str, Typed]
    table: str  # what it is called in errors
    person: frozenset[str] = frozenset()
    links: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # an id column -> (table, column) that it names
    public: Mapping[str, int] | None = None  # the largest multiplicity of each column's values, of a public table

    @classmethod
    def build_from_table(cls, table: Table, alias: str, prefix: str) -> "FromItem":
        """A declared table, its columns named with a prefix."""
        columns = {name: type_column(table, name, prefix) for name in table.columns}
        person = frozenset([table.unit]) if isinstance(table.unit, str) and not table.public else frozenset[str]()
        links = {name: (table.name, name) for name, each in columns.items() if each.type == "id" and name not in person}
        if table.unit_through:
            column, through = table.unit_through
            links[column] = (through, column)
        return cls(alias, columns, table.name, person, links, dict(table.multiplicities) if table.public else None)

    def rename(self, alias: str) -> "FromItem":
        return replace(self, alias=alias)


class Scope:
    """The parts of one FROM, and how a name finds its column."""

    def __init__(self, parts: Iterable[FromItem], outputs: Iterable[str] = ()) -> None:
        self.items = tuple(parts)
        self._outputs = tuple(outputs)  # the names that SELECT gives: no row has them

    def has_column(self, name: str) -> bool:
        return any(find_name(name, part.columns) is not None for part in self.items)

    def resolve(self, node: exp.Column) -> tuple[FromItem, str]:
        """The part and the declared spelling that a name means."""
        if not isinstance(node.this, exp.Identifier):
            raise syntax_refusal(node, "* is not a value", "Name a column, or use COUNT(*).")
        parts = [part for part in self.items if not node.table or find_name(node.table, (part.alias,)) is not None]
        if not parts:
            where = locate(node.args["table"])
            shown = node.table if len(node.table) <= 40 else node.table[:40] + "..."
            names = " or ".join(part.alias for part in self.items)
            raise UnknownName("unknown-name", f"There is no table '{shown}' here{where}.", f"Write {names}.")
        found = [(part, name) for part in parts if (name := find_name(node.name, part.columns)) is not None]
        if len(found) > 1:
            names = ", ".join(f"{part.alias}.{name}" for part, name in found)
            raise syntax_refusal(node, f"{node.name[:40]} is in more than one table", f"Write one of {names}.")
        if found:
            return found[0]
        if find_name(node.name, self._outputs) is not None:
            hint = "Write the expression out; GROUP BY, HAVING and ORDER BY take the name."
            raise syntax_refusal(node, f"{node.name} is a name that SELECT gives, and is not known here", hint)
        where = f" in table {parts[0].table}" if len(parts) == 1 else ""
        with locate_errors(node):
            raise unknown_name("column", node.name, [name for part in parts for name in part.columns], where)

    def is_person(self, node: exp.Expr) -> bool:
        """Is this the person's id?"""
        if not isinstance(node, exp.Column):
            return False
        part, name = self.resolve(node)
        return name in part.person


@dataclass(frozen=True, slots=True)
class Relation:
    """The rows of a FROM clause: their source, the conditions on them, and the items that names refer to."""

    source: Source
    filters: tuple[Expression, ...]
    items: tuple[FromItem, ...]
    has_person_id: bool = True  # False: each row of the private table is one person

    @property
    def scope(self) -> Scope:
        return Scope(self.items)


def type_column(table: Table, name: str, prefix: str = "") -> Typed:  # noqa: PLR0911 - one return a type
    """A declared column, with what follows of it from its declaration."""
    found = table.column(name)
    column = Column(prefix + found.name, found.type, found.nullable)
    kind = TYPES[column.type]
    match table.columns[name]:
        case Integer(lower=lower, upper=upper):
            values = functions.list_whole_values(lower, upper)
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
            values = list_keys_between("date", "day", first, last)
            return Typed(column, kind, column.nullable, to_number(first), to_number(last), values=values)
        case DateTime(lower=first, upper=last):
            return Typed(column, kind, column.nullable, to_number(first), to_number(last))
    return Typed(column, kind, column.nullable)
