"""A subquery SELECT person, COUNT(*), SUM(x) ... GROUP BY person -> one row per person."""

from collections.abc import Sequence
from fractions import Fraction
from math import floor

from sqlglot import exp

from sfumato.catalog.public_grid import choose_exponent
from sfumato.errors import MissingBounds
from sfumato.kernel.expressions import Column, ColumnType, Expression
from sfumato.kernel.plan import MOST_STEPS
from sfumato.kernel.row_sources import PerUnit, Source, UnitColumn, derive_extent
from sfumato.query import functions
from sfumato.query.parse import build_syntax_refusal, locate, name_node
from sfumato.query.query import Typed
from sfumato.query.relation import FromItem, Scope, read_column_name
from sfumato.query.row_expressions import RowBinder
from sfumato.query.size_limits import refuse_large_expression
from sfumato.query.tokens import shorten

FUNCTIONS: dict[type[exp.Expr], str] = {exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}


def bind_per_unit(
    node: exp.Select, source: Source, filters: Sequence[Expression], scope: Scope, prefix: str
) -> tuple[PerUnit, tuple[Expression, ...], FromItem]:
    """Bind such a subquery: its source, its conditions (HAVING), and its columns."""
    binder = _UnitBinder(RowBinder(scope), derive_extent(source).reach, prefix)
    group = node.args.get("group")
    keys = group.expressions if group is not None else []
    if len(keys) != 1 or not scope.is_person(_resolve_ordinal(keys[0], node)):
        hint = "Write GROUP BY the person's id alone, and group by other columns in the outer SELECT."
        raise build_syntax_refusal(
            group or node, "A subquery with aggregates must group by the person's id alone", hint
        )
    rows = RowBinder(scope, binder.bind_aggregate)
    columns: dict[str, Typed] = {}
    person: set[str] = set()
    for selected in node.expressions:
        bare = selected.unalias()
        name = read_column_name(selected, columns)
        if scope.is_person(bare):
            person.add(name)
            columns[name] = Typed(Column(f"{prefix}person", ColumnType.ID), "id")
        else:
            columns[name] = _bind_aggregated(rows, bare)
            refuse_large_expression(bare, columns[name].expression)
    having = node.args.get("having")
    conditions = tuple(rows.bind_conditions(having.this)) if having is not None else ()
    made = PerUnit(source, tuple(filters), tuple(binder.columns.values()))
    return made, conditions, FromItem("", columns, "this subquery", frozenset(person))


def _resolve_ordinal(key: exp.Expr, node: exp.Select) -> exp.Expr:
    """GROUP BY 1 refers to the first selected column."""
    if isinstance(key, exp.Literal) and not key.is_string and str(key.this).isdigit():
        number = int(str(key.this))
        if 1 <= number <= len(node.expressions):
            named: exp.Expr = node.expressions[number - 1]
            return named.unalias()
    return key.unnest()


def _bind_aggregated(rows: RowBinder, node: exp.Expr) -> Typed:
    """Bind an expression in which every column is inside an aggregate."""
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
                raise build_syntax_refusal(
                    node,
                    "COUNT(DISTINCT ...) is not supported in a subquery",
                    "COUNT(x) counts rows instead.",
                )
            if isinstance(inner, exp.Null):
                raise build_syntax_refusal(node, "COUNT(NULL) is always 0", "Write COUNT(*) or COUNT(x).")
            all_rows = isinstance(inner, (exp.Star, exp.Literal)) or self.rows.scope.is_person(inner)
            value = None if all_rows else self.rows.bind(inner).expression
            column = self._add("count", value, 0, self.most_rows, 0)
            return self._type_column(column, False, 0.0, float(self.most_rows), True)
        function = FUNCTIONS.get(type(node))
        if function is None:
            raise build_syntax_refusal(
                node, f"{name_node(node)} is not supported in a subquery", "Use COUNT, SUM, AVG, MIN or MAX."
            )
        typed = self.rows.bind(node.this)
        if typed.type == "boolean":
            typed = functions.convert_truth(typed)
        if typed.type != "number" or typed.lower is None or typed.upper is None:
            hint = "Use a number whose bounds are declared in the catalog."
            raise MissingBounds("bounds", f"{function.upper()} needs a number with bounds{locate(node)}.", hint)
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
