"""A subquery SELECT person, COUNT(*), SUM(x) ... GROUP BY person -> one row per person; or one per person and key."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor, prod

from sqlglot import exp

from sfumato.catalog.names import find_name
from sfumato.catalog.public_grid import choose_exponent
from sfumato.errors import MissingBounds
from sfumato.kernel.expressions import Column, ColumnType, Expression
from sfumato.kernel.plan import MOST_STEPS
from sfumato.kernel.row_sources import PerKey, PerUnit, Source, UnitColumn, derive_extent
from sfumato.query import functions
from sfumato.query.capped_scans import cap_scans
from sfumato.query.parse import build_syntax_refusal, locate, name_node
from sfumato.query.query import Typed
from sfumato.query.relation import DERIVED, FromItem, Relation, Scope, read_column_name
from sfumato.query.row_expressions import RowBinder, has_aggregate
from sfumato.query.size_limits import refuse_large_expression
from sfumato.query.source_outline import MOST_HELD, holds_many
from sfumato.query.tokens import shorten

MISSING_ID = "Use the id of the table whose rows are kept, or add WHERE id IS NOT NULL."
FUNCTIONS: dict[type[exp.Expr], str] = {exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}


def bind_per_unit(
    node: exp.Select, inner: Relation, prefix: str, most_groups: int
) -> tuple[PerUnit | PerKey, tuple[Expression, ...], FromItem]:
    """Bind such a subquery: its source, its conditions (HAVING), and its columns.

    With further keys, one person has at most `most_groups` rows, or as many as the keys have values.
    """
    source, filters, scope = inner.source, inner.filters, inner.scope
    binder = _UnitBinder(RowBinder(scope), derive_extent(source).reach, prefix)
    group = node.args.get("group")
    keys = group.expressions if group is not None else []
    nodes = [resolve_key(key, node, scope) for key in keys]
    others = [key for key in nodes if not scope.is_person(key)]
    for key in (*nodes, *(selected.unalias() for selected in node.expressions)):
        refuse_missing_id(key, scope)
    if not any(map(scope.leads_to_person, nodes)):
        hint = "Add the person's id to GROUP BY, or group by other columns in the outer SELECT."
        raise build_syntax_refusal(group or node, "A subquery with aggregates must group by the person's id", hint)
    grouped = _bind_keys(others, scope, prefix)
    rows = RowBinder(scope, binder.bind_aggregate)
    columns: dict[str, Typed] = {}
    links: dict[str, tuple[str, str]] = {}
    person: set[str] = set()
    for selected in node.expressions:
        bare = selected.unalias()
        name = read_column_name(selected, columns)
        if scope.is_person(bare):
            person.add(name)
            columns[name] = Typed(Column(f"{prefix}person", ColumnType.ID), "id")
        elif (key := _find_key(bare, grouped, scope)) is not None:
            columns[name] = key
            if key.type == "id":
                item, original = scope.resolve(bare)
                links[name] = item.links[original]
        else:
            columns[name] = _bind_aggregated(rows, bare)
            refuse_large_expression(bare, columns[name].expression)
    having = node.args.get("having")
    conditions = tuple(rows.bind_conditions(having.this)) if having is not None else ()
    different = any(column.function == "distinct" for column in binder.columns.values())
    if different or grouped:
        source = _cap_held_rows(node, source, _count_values(grouped) if grouped and not different else MOST_STEPS)
    made: PerUnit | PerKey = PerUnit(source, tuple(filters), tuple(binder.columns.values()))
    if grouped:
        most = min(derive_extent(source).reach, most_groups, _count_values(grouped))
        named = tuple((key.name, typed.expression) for typed, key in grouped)
        made = PerKey(source, made.filters, made.columns, named, most)
    return made, conditions, FromItem("", columns, DERIVED, frozenset(person), links)


def refuse_missing_id(node: exp.Expr, scope: Scope) -> None:
    """Refuse the id of a table that an outer join may leave out: all rows without it would be one group."""
    if scope.find_partner(node) is not None:
        what = "This id[at] is NULL in rows of an outer join that have no partner, of all people together"
        raise build_syntax_refusal(node, what, MISSING_ID)


def _cap_held_rows(node: exp.Select, source: Source, values: int) -> Source:
    """The source, with a bound on the rows of one person. The engine holds the different values in memory."""
    capped = cap_scans(source)
    if values > MOST_HELD and holds_many(capped):
        hint = "Declare a smaller max_rows_per_unit, a unique key, or the values of the columns."
        raise build_syntax_refusal(node, "One person could have too many groups in this subquery", hint)
    return capped


def resolve_key(key: exp.Expr, node: exp.Select, scope: Scope) -> exp.Expr:
    """GROUP BY 1 refers to the first selected column. A name refers to a column first, and to an alias second."""
    if isinstance(key, exp.Column) and not key.table and not scope.has_column(key.name):
        return next((inner.unalias() for inner in node.expressions if find_name(key.name, (inner.alias,))), key)
    if isinstance(key, exp.Literal) and not key.is_string and str(key.this).isdigit():
        number = int(str(key.this))
        if 1 <= number <= len(node.expressions):
            named: exp.Expr = node.expressions[number - 1]
            return named.unalias()
    return key.unnest()


Grouped = list[tuple[Typed, Column]]  # what is grouped by, and the column of the subquery that holds it


def _bind_keys(nodes: Sequence[exp.Expr], scope: Scope, prefix: str) -> Grouped:
    """Bind the keys beside the person's id."""
    found: Grouped = []
    for node in nodes:
        typed = _bind_key(node, scope)
        if any(typed.expression == known.expression for known, _ in found):
            continue
        kind = ColumnType.ID if typed.type == "id" else functions.KINDS.get(typed.type)
        if isinstance(typed.expression, Column):  # a whole number stays one
            kind = typed.expression.type
        if kind is None:
            raise build_syntax_refusal(node, "A subquery cannot group by this", "Group by a column or an expression.")
        refuse_large_expression(node, typed.expression)
        found.append((typed, Column(f"{prefix}key{len(found) + 1}", kind, typed.nullable)))
    return found


def _bind_key(node: exp.Expr, scope: Scope) -> Typed:
    """A key, which may be another id than the person's: an answer never shows it."""
    if isinstance(node, exp.Column):
        item, name = scope.resolve(node)
        if item.columns[name].type == "id":
            return item.columns[name]
    return RowBinder(scope).bind(node)


def _find_key(node: exp.Expr, grouped: Grouped, scope: Scope) -> Typed | None:
    """The key that a selected column shows. None: it is not a key."""
    if not grouped or has_aggregate(node):
        return None
    expression = _bind_key(node, scope).expression
    return next((replace(typed, expression=key) for typed, key in grouped if typed.expression == expression), None)


def _count_values(grouped: Grouped) -> int:
    """How many different keys there are, where all have declared values. NULL is one more."""
    listed = [typed.values for typed, _ in grouped if typed.values is not None]
    if len(listed) < len(grouped):
        return MOST_STEPS
    return prod(len(typed.values or ()) + typed.nullable for typed, _ in grouped)


def _bind_aggregated(rows: RowBinder, node: exp.Expr) -> Typed:
    """Bind an expression in which every column is inside an aggregate. ANY_VALUE(x) is the smallest x."""
    if isinstance(node, exp.AnyValue) and not has_aggregate(node.this):
        if rows.bind(node.this).type == "text":
            hint = "Group by it too, for one row for each person and value, or use COUNT(DISTINCT x) of it."
            raise build_syntax_refusal(node, "A person may have several values of this text", hint)
        return rows.bind(exp.Min(this=node.this.copy()))
    for column in node.find_all(exp.Column):
        above = column.parent
        while above is not None and above is not node.parent and not isinstance(above, (exp.Count, *FUNCTIONS)):
            above = above.parent
        if above is None or above is node.parent:
            hint = "Use MIN, MAX, SUM, AVG or COUNT of it."
            raise build_syntax_refusal(column, f"A person may have several values of {shorten(column.name)}", hint)
    return rows.bind(node)


class _UnitBinder:
    """Collects the aggregates over the rows of one person. Equal aggregates become one column."""

    def __init__(self, rows: RowBinder, most_rows: int, prefix: str) -> None:
        self.rows = rows
        self.most_rows = most_rows
        self.prefix = prefix
        self.columns: dict[tuple[object, ...], UnitColumn] = {}

    def bind_aggregate(self, node: exp.Expr) -> Typed:
        """Bind COUNT, SUM, AVG, MIN or MAX over a person's rows. Its bounds follow from the catalog."""
        if isinstance(node, exp.Count):
            inner = node.this.unnest() if node.this is not None else exp.Star()
            if isinstance(inner, exp.Distinct):
                return self._count_different(node, inner)
            if isinstance(inner, exp.Null):
                raise build_syntax_refusal(node, "COUNT(NULL) is always 0", "Write COUNT(*) or COUNT(x).")
            all_rows = isinstance(inner, (exp.Star, exp.Literal)) or self.rows.scope.is_person(inner)
            partner = self.rows.scope.find_partner(inner) if all_rows else self._bind_counted(inner)
            value = None if partner is None else partner.expression
            column = self._add("count", value, 0, self.most_rows, 0)
            return self._type_column(column, False, 0.0, float(self.most_rows), True)
        function = FUNCTIONS.get(type(node))
        if function is None:
            raise build_syntax_refusal(
                node, f"{name_node(node)} is not supported in a subquery", "Use COUNT, SUM, AVG, MIN or MAX."
            )
        typed = self.rows.bind(node.this)
        if typed.type in ("date", "datetime") and function in ("min", "max"):
            column = self._add("earliest" if function == "min" else "latest", typed.expression, 0, 0, 0)
            made = Column(column.name, functions.KINDS[typed.type], typed.nullable)
            return Typed(made, typed.type, typed.nullable, typed.lower, typed.upper, values=typed.values)
        if typed.type == "boolean":
            typed = functions.convert_truth(typed)
        if typed.type != "number" or typed.lower is None or typed.upper is None:
            hint = "Use a number whose bounds are declared in the catalog."
            raise MissingBounds("bounds", f"{function.upper()} needs a number with bounds{locate(node)}.", hint)
        if function in ("min", "max") and not typed.whole and self.prefix:  # joined: cost = MAX(cost) is exact
            column = self._add("earliest" if function == "min" else "latest", typed.expression, 0, 0, 0)
            return self._type_column(column, typed.nullable, typed.lower, typed.upper, False)
        exponent = choose_exponent(typed.lower, typed.upper, whole=typed.whole, per_row=True)
        step = Fraction(2) ** exponent
        low, high = (floor(Fraction(end) / step + Fraction(1, 2)) for end in (typed.lower, typed.upper))
        if function == "sum":
            low, high = min(low, self.most_rows * low), max(high, self.most_rows * high)
            if max(abs(low), abs(high)) > MOST_STEPS:
                raise MissingBounds(
                    "bounds",
                    f"The bounds of the sum per person are too large{locate(node)}.",
                    "Declare narrower bounds.",
                )
        column = self._add(function, typed.expression, low, high, exponent)
        return self._type_column(
            column, typed.nullable, low * 2.0**exponent, high * 2.0**exponent, typed.whole and function != "avg"
        )

    def _count_different(self, node: exp.Expr, distinct: exp.Distinct) -> Typed:
        """COUNT(DISTINCT x) of one person's rows: no more than the rows, or than the values that x can have."""
        if len(distinct.expressions) != 1 or self.rows.scope.is_person(distinct.expressions[0]):
            hint = "Count one expression, other than the person's id: COUNT(DISTINCT x)."
            raise build_syntax_refusal(node, "COUNT(DISTINCT ...)[at] in a subquery counts values of one person", hint)
        typed = self._bind_counted(distinct.expressions[0])
        most = min(self.most_rows, len(typed.values)) if typed.values is not None else self.most_rows
        column = self._add("distinct", typed.expression, 0, most, 0)
        return self._type_column(column, False, 0.0, float(most), True)

    def _bind_counted(self, node: exp.Expr) -> Typed:
        """The value that is counted where it is not NULL. An id may be counted too."""
        if isinstance(node, exp.Column):
            item, name = self.rows.scope.resolve(node)
            if item.columns[name].type == "id":
                return item.columns[name]
        return self.rows.bind(node)

    def _type_column(self, column: UnitColumn, nullable: bool, lower: float, upper: float, whole: bool) -> Typed:
        values = functions.list_whole_values(int(lower), int(upper)) if whole else None
        made = Column(column.name, ColumnType.REAL, nullable)
        return Typed(made, "number", nullable, lower, upper, whole, values)

    def _add(self, function: str, value: Expression | None, lower: int, upper: int, exponent: int) -> UnitColumn:
        key = (function, value, lower, upper, exponent)
        if key not in self.columns:
            name = f"{self.prefix}of_unit{len(self.columns) + 1}"
            self.columns[key] = UnitColumn(name, function, value, lower, upper, exponent)
        return self.columns[key]
