"""Relation: the rows of a FROM clause, with the person's id carried along, and how names refer to their columns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.catalog.columns import Id
from sfumato.catalog.dataset import Table
from sfumato.catalog.names import build_unknown_name, find_name
from sfumato.errors import UnknownName
from sfumato.kernel.expressions import Expression
from sfumato.kernel.row_sources import Source
from sfumato.query.declared_columns import type_columns
from sfumato.query.narrowed_values import Narrowings, combine_narrowings, narrow_value, read_narrowings
from sfumato.query.parse import build_syntax_refusal, locate, locate_errors
from sfumato.query.query import Typed
from sfumato.query.sql_text import name_expression
from sfumato.query.tokens import shorten

DERIVED = "this subquery"  # in messages, and instead of a table's name
HIDDEN_ALIAS = "__sfumato_subquery"  # of joins that replace subqueries: only their own values name them


def is_hidden(alias: str) -> bool:
    """Is it the alias of a join that replaces a subquery?"""
    return alias.startswith(HIDDEN_ALIAS)


@dataclass(frozen=True, slots=True)
class FromItem:
    """One item of FROM: its alias and its columns, some of which are the person's id or lead to the person."""

    alias: str
    columns: Mapping[str, Typed]
    table: str  # its name in messages
    person: frozenset[str] = frozenset()  # the columns that hold the person's id
    links: Mapping[str, tuple[str, str]] = field(
        default_factory=dict
    )  # an id column -> the (table, column) it refers to
    public: Mapping[str, int] | None = None  # of a public table: how many rows can have the same value, by column
    merged: frozenset[str] = frozenset()  # columns of USING, which another item shows: named only with the alias
    partners: Mapping[str, Typed] = field(
        default_factory=dict
    )  # a person's id that is NULL in rows of an outer join -> a value that is NULL in the same rows
    left_out: frozenset[str] = frozenset()  # names of further columns of SELECT *, which an earlier column has

    @classmethod
    def build_from_table(cls, table: Table, alias: str, prefix: str) -> "FromItem":
        """Build the item of a declared table. The prefix goes before the names of its columns."""
        person = frozenset([table.unit]) if isinstance(table.unit, str) and not table.public else frozenset[str]()
        ids = [name for name, declared in table.columns.items() if isinstance(declared, Id) and name not in person]
        links = {name: (table.name, name) for name in ids}
        if table.unit_through:
            column, through = table.unit_through
            links[column] = (through, column)
        multiplicities = dict(table.multiplicities) if table.public else None
        return cls(alias, type_columns(table, prefix), table.name, person, links, multiplicities)

    def is_link(self, name: str) -> bool:
        """Does a column say to which row of another table a row belongs, and so to which person?"""
        return self.table != DERIVED and self.links.get(name, (self.table, ""))[0] != self.table

    @property
    def hidden(self) -> bool:
        """Is it a join that replaces a subquery? A name of the question never means its columns."""
        return is_hidden(self.alias)

    @property
    def has_link(self) -> bool:
        return any(map(self.is_link, self.links))

    def rename(self, alias: str) -> "FromItem":
        return replace(self, alias=alias)


class Scope:
    """The items of one FROM clause. It finds the column that a name refers to."""

    def __init__(
        self, items: Iterable[FromItem], outputs: Iterable[str] = (), narrowed: Narrowings | None = None
    ) -> None:
        self.items = tuple(items)
        self.narrowed = narrowed or {}  # what WHERE says of expressions
        self._outputs = tuple(outputs)  # the aliases that SELECT gives: no row has them

    def has_column(self, name: str) -> bool:
        return any(find_name(name, item.columns) is not None for item in self.items if not item.hidden)

    def resolve(self, node: exp.Column) -> tuple[FromItem, str]:
        """The item that has this column, and the declared spelling of its name."""
        if not isinstance(node.this, exp.Identifier):
            raise build_syntax_refusal(node, "* is not a value", "Name a column, or use COUNT(*).")
        shown = [item for item in self.items if not item.hidden]
        items = (
            [item for item in self.items if find_name(node.table, (item.alias,)) is not None] if node.table else shown
        )
        if not items:
            message = f"There is no table '{shorten(node.table)}' here{locate(node.args['table'])}."
            raise UnknownName("unknown-name", message, f"Write {' or '.join(item.alias for item in shown)}.")
        found = [
            (item, name)
            for item in items
            if (name := find_name(node.name, item.columns)) is not None and (node.table or name not in item.merged)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            names = " or ".join(f"{item.alias}.{name}" for item, name in found)
            raise build_syntax_refusal(
                node, f"More than one table has a column {shorten(node.name)}", f"Write {names}."
            )
        if find_name(node.name, self._outputs) is not None:
            what = f"The alias {shorten(node.name)} cannot be used here"
            hint = "Write the expression itself. Aliases can be used in GROUP BY, HAVING and ORDER BY."
            raise build_syntax_refusal(node, what, hint)
        where = f" in table {items[0].table}" if len(items) == 1 else ""
        declared = any(node.name in (typed.values or ()) for item in items for typed in item.columns.values())
        quoted = not node.table and (bool(node.this.args.get("quoted")) or declared)
        with locate_errors(node):
            error = build_unknown_name("column", node.name, [name for item in items for name in item.columns], where)
            text = f"If it is a text, write it in single quotes: '{shorten(node.name)}'. " if quoted else ""
            raise UnknownName(error.code, error.message, f"{text}{error.hint}")

    def is_person(self, node: exp.Expr) -> bool:
        """Is this the person's id?"""
        if not isinstance(node, exp.Column):
            return False
        item, name = self.resolve(node)
        return name in item.person

    def find_partner(self, node: exp.Expr) -> Typed | None:
        """What is NULL in the rows in which an outer join made this person's id NULL. None: the id is never NULL."""
        if not isinstance(node, exp.Column):
            return None
        item, name = self.resolve(node)
        partner = item.partners.get(name)
        known = None if partner is None else self.narrowed.get(partner.expression)
        return None if known is not None and known.present else partner

    def leads_to_person(self, node: exp.Expr) -> bool:
        """Is this the person's id, or the link of a table whose rows belong to the person of another table's row?"""
        if not isinstance(node, exp.Column):
            return False
        item, name = self.resolve(node)
        return name in item.person or item.is_link(name)


def read_column_name(selected: exp.Expr, names: Iterable[str]) -> str:
    """The name of a column of a subquery, as DuckDB names it. No earlier column may have the same."""
    name = selected.alias_or_name or name_expression(selected)
    refuse_second(selected, name, names)
    return name


def refuse_second(node: exp.Expr, name: str, names: Iterable[str]) -> None:
    """Refuse a column if an earlier one has the same name."""
    if find_name(name, names) is not None:
        hint = "Give them different names with AS."
        raise build_syntax_refusal(node, f"A second column has the name {shorten(name)}", hint)


@dataclass(frozen=True, slots=True)
class Relation:
    """The rows of a FROM clause: their source, the conditions on them, and the items that names refer to."""

    source: Source
    filters: tuple[Expression, ...]
    items: tuple[FromItem, ...]
    has_person_id: bool = True  # False: each row of the private table is one person
    narrowed: Narrowings = field(default_factory=dict)  # what the conditions say of expressions

    @property
    def scope(self) -> Scope:
        return Scope(self.items, narrowed=self.narrowed)

    def filter(self, conditions: Iterable[Expression]) -> "Relation":
        """The rows that pass more conditions: their columns have narrower bounds and fewer values."""
        added = tuple(conditions)
        found = combine_narrowings([self.narrowed, *map(read_narrowings, added)])
        items = [
            replace(
                item,
                columns={
                    name: narrow_value(typed, found[typed.expression]) if typed.expression in found else typed
                    for name, typed in item.columns.items()
                },
            )
            for item in self.items
        ]
        filters = (*self.filters, *added)
        return replace(self, filters=filters, items=tuple(items if found else self.items), narrowed=found)
