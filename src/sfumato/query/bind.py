"""Syntax tree + catalog -> Query. What is not on the list here is refused, with the nearest thing that works."""

from datetime import date

from sqlglot import exp

from sfumato.catalog.model import Boolean, Category, Dataset, Integer, Real, Table
from sfumato.errors import MissingBounds, UnknownName, UnsupportedSyntax
from sfumato.kernel.plan import ColumnType, Expression, Key, Literal
from sfumato.query import functions
from sfumato.query.parse import place_of
from sfumato.query.query import Aggregate, AggregateRef, KeyRef, Ordering, Post, PostCall, Query, Typed

MOST_KEYS = 10_000
TYPES = {
    ColumnType.INTEGER: "number", ColumnType.REAL: "number", ColumnType.BOOLEAN: "boolean",
    ColumnType.TEXT: "text", ColumnType.DATE: "date", ColumnType.ID: "id",
}  # fmt: skip
COMPARE: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
UNARY: dict[type[exp.Expr], str] = {exp.Neg: "neg", exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil"}
AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Sum: "SUM", exp.Avg: "AVG", exp.Variance: "VARIANCE", exp.Stddev: "STDDEV", exp.StddevSamp: "STDDEV",
}  # fmt: skip
CLAUSES = {"expressions", "from_", "where", "group", "having", "order", "limit"}


def bind(tree: exp.Select, dataset: Dataset) -> Query:
    """Resolve every name and type."""
    for name, clause in tree.args.items():
        if clause and name not in CLAUSES:
            known = "Use SELECT, FROM, WHERE, GROUP BY, HAVING, ORDER BY and LIMIT."
            raise _unsupported(tree, f"{name.rstrip('_').upper()} is not supported", known)
    source = tree.args.get("from_")
    named = source.this if source is not None else None
    hint = f"Write FROM {next(iter(dataset.tables))}."
    if not isinstance(named, exp.Table) or not isinstance(named.this, exp.Identifier):
        raise _unsupported(tree, "A question is about one declared table", hint)
    if any(value and name not in ("this", "alias") for name, value in named.args.items()):
        raise _unsupported(tree, "FROM takes the name of a declared table, and nothing else", hint)
    table = dataset.table(named.name)
    return _Binder(table, named.alias or table.name).query(tree)


class _Binder:
    def __init__(self, table: Table, alias: str) -> None:
        self.table = table
        self.alias = alias
        self.keys: list[Key] = []
        self.key_nodes: list[exp.Expr] = []
        self.aggregates: list[Aggregate] = []
        self.aliases: dict[str, exp.Expr] = {}

    def query(self, tree: exp.Select) -> Query:
        selected = [(self._name(each), each.unalias()) for each in tree.expressions]
        self.aliases = {each.alias.lower(): each.unalias() for each in tree.expressions if each.alias}
        where = tree.args.get("where")
        filters = tuple(self._conditions(where.this)) if where else ()
        group = tree.args.get("group")
        if group is not None:
            if any(value for name, value in group.args.items() if name != "expressions"):
                raise _unsupported(group, "GROUP BY takes a list of keys", "Write GROUP BY city, age > 65.")
            for each in group.expressions:
                self._add_key(self._grouped(each, [node for _, node in selected]))
        columns = tuple((name, self.post(node)) for name, node in selected)
        having, order = tree.args.get("having"), tree.args.get("order")
        kept = self.post(having.this) if having else None
        terms = order.expressions if order else []
        ordered = tuple(Ordering(self.post(each.this), bool(each.args.get("desc"))) for each in terms)
        if not self.aggregates:
            raise _unsupported(tree, "A question asks for at least one aggregate", "Select COUNT(*), SUM(x) or AVG(x).")
        names = [name.lower() for name, _ in columns]
        if len(set(names)) != len(names):
            raise _unsupported(tree, "Two columns have one name", "Name them apart with AS.")
        limit = _limit(tree.args.get("limit"))
        return Query(self.table.name, filters, tuple(self.keys), tuple(self.aggregates), columns, kept, ordered, limit)

    # rows

    def row(self, node: exp.Expr) -> Typed:  # noqa: PLR0911, PLR0912 - one line a form
        """A row-level expression."""
        kind = type(node)
        if isinstance(node, exp.Paren):
            return self.row(node.this)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, (exp.Literal, exp.Boolean, exp.Null)):
            return functions.literal(_literal(node))
        if isinstance(node, exp.Cast) and node.to.is_type("date") and isinstance(node.this, exp.Literal):
            return functions.literal(_date(node))
        if kind in COMPARE:
            return functions.compare(COMPARE[kind], *self._like_dates(node.this, node.expression))
        if kind in ARITHMETIC:
            return functions.arithmetic(ARITHMETIC[kind], self.row(node.this), self.row(node.expression))
        if kind in UNARY and not (node.args.get("decimals") or node.args.get("to")):
            return functions.unary(UNARY[kind], self.row(node.this))
        match node:
            case exp.And() | exp.Or():
                return functions.logic(
                    "and" if kind is exp.And else "or", [self.row(node.this), self.row(node.expression)]
                )
            case exp.Not():
                return functions.logic("not", [self.row(node.this)])
            case exp.Is() if isinstance(node.expression, exp.Null):
                return functions.is_null(self.row(node.this))
            case exp.Between() if not node.args.get("symmetric"):
                parts = [
                    functions.compare(">=", *self._like_dates(node.this, node.args["low"])),
                    functions.compare("<=", *self._like_dates(node.this, node.args["high"])),
                ]
                return functions.logic("and", parts)
            case exp.In() if node.expressions and not node.args.get("query"):
                equal = [functions.compare("=", *self._like_dates(node.this, each)) for each in node.expressions]
                return functions.logic("or", equal) if len(equal) > 1 else equal[0]
            case exp.Like() if not node.args.get("negate"):
                return functions.like(self.row(node.this), self.row(node.expression))
            case exp.Case() if node.this is None:
                ifs, default = node.args["ifs"], node.args.get("default")
                otherwise = self.row(default) if default is not None else functions.literal(None)
                return functions.choose(
                    [self.row(each.this) for each in ifs], [self.row(each.args["true"]) for each in ifs], otherwise
                )
            case exp.Coalesce():
                return functions.coalesce([self.row(each) for each in (node.this, *node.expressions)])
        raise _unsupported(
            node,
            f"{_word(node)} is not supported inside an aggregate, WHERE or GROUP BY",
            "Comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, + - * /, ABS, FLOOR, CEIL, CASE and COALESCE are.",
        )

    def _column(self, node: exp.Column) -> Typed:
        if (node.table and node.table.lower() not in (self.alias.lower(), self.table.name.lower())) or node.args.get(
            "db"
        ):
            raise UnknownName(
                "name", f"There is no table of that name here{place_of(node)}.", f"The table is {self.table.name}."
            )
        if not isinstance(node.this, exp.Identifier):
            raise _unsupported(node, "* is not a value", "Name a column, or use COUNT(*).")
        column = self.table.column(node.name)
        declared = self.table.columns[column.name]
        kind = TYPES[column.type]
        if kind == "id":
            raise _unsupported(node, "A person's id cannot be read", f"Use COUNT(DISTINCT {column.name}).")
        match declared:
            case Integer(lower=lower, upper=upper):
                few = upper - lower < MOST_KEYS
                values = tuple(range(lower, upper + 1)) if few else None
                return Typed(column, kind, column.nullable, float(lower), float(upper), True, values)
            case Real(lower=lower, upper=upper):
                return Typed(column, kind, column.nullable, lower, upper)
            case Category(values=values):
                if kind == "number":
                    low, high = float(min(values)), float(max(values))
                    return Typed(column, kind, column.nullable, low, high, True, tuple(values))
                return Typed(column, kind, column.nullable, values=tuple(values))
            case Boolean():
                return Typed(column, kind, column.nullable, values=functions.TRUTHS)
        return Typed(column, kind, column.nullable)

    def _like_dates(self, one: exp.Expr, two: exp.Expr) -> tuple[Typed, Typed]:
        """Both sides of a comparison: text beside a date is read as a date."""
        left, right = self.row(one), self.row(two)
        if left.type == "date" and right.type == "text" and isinstance(two, exp.Literal):
            right = functions.literal(_date(two))
        elif right.type == "date" and left.type == "text" and isinstance(one, exp.Literal):
            left = functions.literal(_date(one))
        return left, right

    def _conditions(self, node: exp.Expr) -> list[Expression]:
        if isinstance(node, exp.Paren):
            return self._conditions(node.this)
        if isinstance(node, exp.And):
            return [*self._conditions(node.this), *self._conditions(node.expression)]
        typed = self.row(node)
        if typed.type != "boolean":
            raise _unsupported(node, "WHERE takes a condition", "Compare with something, such as age > 65.")
        return [typed.expression]

    # groups

    def _grouped(self, node: exp.Expr, selected: list[exp.Expr]) -> exp.Expr:
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.this) if node.this.isdigit() else 0
            if not 1 <= place <= len(selected):
                raise _unsupported(node, "GROUP BY names a column that is not selected", "Count from 1.")
            return selected[place - 1]
        name = node.name.lower() if isinstance(node, exp.Column) and not node.table else ""
        declared = {each.lower() for each in self.table.columns}
        return self.aliases[name] if name in self.aliases and name not in declared else node

    def _add_key(self, node: exp.Expr) -> None:
        typed = self.row(node)
        if not typed.values or len(typed.values) > MOST_KEYS:
            raise MissingBounds(
                "keys",
                f"The values of this key are not declared{place_of(node)}.",
                "Group by a category, a truth value, a whole number with few values, or a CASE of such.",
            )
        key = Key(typed.expression, typed.values)
        self.keys.append(key)
        self.key_nodes.append(node)

    # outputs

    def post(self, node: exp.Expr) -> Post:  # noqa: PLR0911 - one return a form
        """An output: group keys and aggregates, and arithmetic over them."""
        for index, key in enumerate(self.key_nodes):
            if node == key:
                return KeyRef(index)
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in self.aliases:
            target = self.aliases[node.name.lower()]
            if target is not node and not (isinstance(target, exp.Column) and target.name.lower() == node.name.lower()):
                return self.post(target)
        kind = type(node)
        aggregate = self._aggregate(node)
        if aggregate is not None:
            if aggregate not in self.aggregates:
                self.aggregates.append(aggregate)
            return AggregateRef(self.aggregates.index(aggregate))
        if isinstance(node, exp.Paren):
            return self.post(node.this)
        if isinstance(node, (exp.Literal, exp.Boolean)):
            return Literal(_literal(node))
        if kind in ARITHMETIC or kind in COMPARE or kind in (exp.And, exp.Or):
            name = ARITHMETIC.get(kind) or COMPARE.get(kind) or ("and" if kind is exp.And else "or")
            return PostCall(name, (self.post(node.this), self.post(node.expression)))
        if kind in (exp.Neg, exp.Abs, exp.Not):
            return PostCall({exp.Neg: "neg", exp.Abs: "abs", exp.Not: "not"}[kind], (self.post(node.this),))
        if isinstance(node, exp.Round):
            digits = node.args.get("decimals")
            return PostCall("round", (self.post(node.this), Literal(_literal(digits) if digits is not None else 0)))
        if isinstance(node, exp.Column):
            self._column(node)
            raise _unsupported(
                node, f"{node.name} is neither grouped by nor aggregated", "Add it to GROUP BY, or use AVG."
            )
        raise _unsupported(
            node,
            f"{_word(node)} is not supported in the result",
            "COUNT, SUM, AVG, VARIANCE, STDDEV, COUNT(DISTINCT id), + - * /, ABS and ROUND are.",
        )

    def _aggregate(self, node: exp.Expr) -> Aggregate | None:
        if isinstance(node, exp.Count):
            if isinstance(node.this, exp.Star):
                return Aggregate("COUNT", None)
            if isinstance(node.this, exp.Distinct):
                return self._people(node.this)
            if isinstance(node.this, exp.Literal):
                return Aggregate("COUNT", None)
            value = self.row(node.this)
            return Aggregate("COUNT", value if value.nullable else None)
        function = AGGREGATES.get(type(node))
        if function is None:
            return None
        value = self.row(node.this)
        if value.type == "boolean":
            value = functions.choose([value], [functions.literal(1)], functions.literal(0))
        if value.type != "number":
            raise _unsupported(node, f"{function} takes a number", "Count instead: COUNT(*) with WHERE.")
        if not value.bounded:
            raise MissingBounds(
                "bounds",
                f"{function} needs bounds, and none follow from the catalog{place_of(node)}.",
                "Declare bounds, or write CASE WHEN x > 0 THEN ... to exclude what has none.",
            )
        return Aggregate(function, value)

    def _people(self, node: exp.Distinct) -> Aggregate:
        target = node.expressions[0] if len(node.expressions) == 1 else None
        if isinstance(target, exp.Column) and isinstance(self.table.unit, str):
            column = self.table.column(target.name)
            if column.name == self.table.unit:
                return Aggregate("PEOPLE", None)
        raise _unsupported(node, "COUNT(DISTINCT ...) counts people only", f"Write COUNT(DISTINCT {self.table.unit}).")

    def _name(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            raise _unsupported(
                node, "SELECT * shows rows, and rows never leave", "Select COUNT(*) or another aggregate."
            )
        return node.alias or (node.name if isinstance(node, exp.Column) else node.sql(dialect="duckdb").lower())


def _limit(node: exp.Expr | None) -> int | None:
    if node is None:
        return None
    if not isinstance(node.expression, exp.Literal) or not str(node.expression.this).isdigit():
        raise _unsupported(node, "LIMIT takes a number", "Write LIMIT 10.")
    return int(node.expression.this)


def _literal(node: exp.Expr) -> bool | int | float | str | None:
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Neg):
        inner = _literal(node.this)
        return -inner if isinstance(inner, (int, float)) else None
    if not isinstance(node, exp.Literal):
        raise _unsupported(node, "A plain value is needed here", "Write a number or a text in quotes.")
    if node.is_string:
        return str(node.this)
    text = str(node.this)
    return int(text) if text.isdigit() and len(text) < 16 else float(text)


def _date(node: exp.Expr) -> date:
    text = node.this.this if isinstance(node, exp.Cast) else node.this
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        raise _unsupported(node, "A date is written as year-month-day", "Write DATE '2026-01-31'.") from None


def _word(node: exp.Expr) -> str:
    return node.key.upper() if not isinstance(node, exp.Anonymous) else "This function"


def _unsupported(node: exp.Expr, what: str, hint: str) -> UnsupportedSyntax:
    return UnsupportedSyntax("syntax", f"{what}{place_of(node)}.", hint)
