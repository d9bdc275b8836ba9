"""Output columns: group keys, aggregates and arithmetic over them. Types are checked here, before any release."""

from datetime import datetime
from typing import NamedTuple

from sqlglot import exp

from sfumato.catalog.names import find_name
from sfumato.errors import MissingBounds, QueryError
from sfumato.kernel.expressions import Call, Expression, Literal
from sfumato.kernel.plan import Key
from sfumato.query import functions
from sfumato.query.bounded_contributions import bind_clamped, is_clamped, refuse_count_bounds
from sfumato.query.choice_aggregates import bind_choice
from sfumato.query.constants import read_constant
from sfumato.query.date_functions import AS_NUMBER, read_literal_beside
from sfumato.query.decided_comparisons import add_caution, check_comparison, check_divisor
from sfumato.query.different_values import (
    SPREADS,
    bind_added_values,
    bind_counted_values,
    spread_different_values,
)
from sfumato.query.hints import BINS, COUNT_INSTEAD, ONE_VALUE
from sfumato.query.missing_bounds import explain_missing_bound
from sfumato.query.pair_aggregates import bind_pair
from sfumato.query.parse import build_syntax_refusal, locate, name_node
from sfumato.query.query import Aggregate, AggregateRef, KeyRef, Post, PostCall, Typed
from sfumato.query.row_expressions import (
    ARITHMETIC,
    CHOICES,
    COMPARE,
    LOGIC,
    PAIRS,
    RowBinder,
    flatten,
    is_aggregate,
)

MOST_AGGREGATES = 100
MOST_DIGITS = 15
LEAST_REACH = 1e-100  # of a sum: the steps of its grid, and of its squares, are doubles
NAMES: dict[type[exp.Expr], str] = {
    exp.Sum: "SUM", exp.Avg: "AVG", exp.Variance: "VARIANCE", exp.Stddev: "STDDEV", exp.StddevSamp: "STDDEV",
}  # fmt: skip


WHOLE = ("COUNT", "PEOPLE", "COUNT DISTINCT")
FLOATS = (exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL)
INTEGERS = (exp.DType.INT, exp.DType.BIGINT, exp.DType.SMALLINT, exp.DType.INT128)
OF_RESULTS: dict[type[exp.Expr], str] = {
    exp.Neg: "neg", exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil", exp.Sqrt: "sqrt", exp.Ln: "ln",
    exp.Exp: "exp",
}  # fmt: skip
SEVERAL: dict[type[exp.Expr], str] = {exp.Greatest: "greatest", exp.Least: "least", exp.Coalesce: "coalesce"}
IN_OUTPUTS = "Select keys, aggregates, and expressions of these. docs/sql.md lists the functions."
OUTPUT_HINTS = {
    "HISTOGRAM": f"Name the number of bins: {BINS}",
    "TO_CHAR": "Of a number, write FORMAT('{:.2f}', x): it is free. Of a date, use YYYY, MM, DD, HH24, MI and SS.",
}
OVER_GROUPS = (
    "Windows are computed over the groups of an answer: SELECT city, SUM(COUNT(*)) OVER () ... GROUP BY city. A window "
    "over rows would show rows of people."
)
PART_OF_PEOPLE = "COUNT(DISTINCT id) of some people[at] stands beside aggregates of other rows"


def _suggest_aggregate(name: str, column: Typed) -> str:
    """What can be done with a column that is neither a key nor inside an aggregate."""
    if column.type == "id":
        return f"No answer shows an id. COUNT(DISTINCT {name}) counts the different ones. That is another question."
    aggregate = f"aggregate it, as in AVG({name}), which is another question."
    if column.type == "number" and not column.whole and column.values is None:
        return f"A number that is not whole cannot be a key. Group by FLOOR({name} / 10), or {aggregate}"
    grouped = "Add it to GROUP BY, which gives one row for each value,"
    return f"{grouped} or {aggregate}" if column.type == "number" else f"{grouped} or leave it out."


class Output(NamedTuple):
    """A bound output column and its type: "number", "text", "boolean", "date", "datetime" or "list"."""

    post: Post
    type: str


class OutputBinder:
    """Binds output columns, and collects their aggregates. An aggregate that occurs twice is charged once."""

    def __init__(self, rows: RowBinder, keys: list[tuple[Typed, Key]], most_rows: int = 1) -> None:
        self.rows = rows
        self.most_rows = most_rows  # that one person has
        self.keys = keys
        self.aggregates: list[Aggregate] = []
        self.aliases: dict[str, Output] = {}
        self.filters: list[Expression] = []  # a condition on the people that COUNT(DISTINCT id) counts

    def bind(self, node: exp.Expr) -> Output:
        """Bind one output column, or a part of one."""
        self.rows.count_part(node)
        found = self._find_key(node.this if isinstance(node, exp.AnyValue) else node) or self._find_alias(node)
        if found is not None:
            return found
        if isinstance(node, exp.Paren):
            return self.bind(node.this)
        if isinstance(node, SPREADS) and isinstance(node.this, exp.Distinct):
            return self.bind(spread_different_values(node, self.rows))
        aggregate = self._bind_aggregate(node)
        if aggregate is not None:
            if aggregate not in self.aggregates:
                self.aggregates.append(aggregate)
            if len(self.aggregates) > MOST_AGGREGATES:
                raise build_syntax_refusal(
                    node, f"The question has more than {MOST_AGGREGATES} aggregates", "Ask several questions."
                )
            return Output(AggregateRef(self.aggregates.index(aggregate)), _infer_type(aggregate))
        if isinstance(node, exp.Column):
            item, name = self.rows.scope.resolve(node)
            if node.find_ancestor(exp.AnyValue) is not None:
                raise build_syntax_refusal(node, f"ANY_VALUE({name})[at] is the value of one row", ONE_VALUE)
            hint = _suggest_aggregate(name, item.columns[name])
            if node.find_ancestor(exp.Window) is not None:
                hint = OVER_GROUPS
            elif node.find_ancestor(exp.Having) is not None:
                hint = f"A condition on rows belongs in WHERE. {hint}"
            raise build_syntax_refusal(node, f"{name}[at] is neither in GROUP BY nor inside an aggregate", hint)
        value = read_constant(node)
        if value is not None and value.value is not None:
            typed = self.rows.bind(node)
            return Output(value, typed.type)
        return self._bind_call(node)

    def is_whole(self, post: Post) -> bool:
        """Is it a whole number in every answer: a count, or a key that is whole?"""
        match post:
            case KeyRef(index):
                return self.keys[index][0].whole
            case AggregateRef(index):
                return self.aggregates[index].function in WHOLE
            case PostCall("integer"):
                return True
            case Literal(int()):
                return True
        return False

    def _find_key(self, node: exp.Expr) -> Output | None:
        """The group key that this node means, however it is written. None: it is not a key."""
        if not self.keys or any(map(is_aggregate, node.walk())):
            return None
        try:
            expression = self.rows.bind(node).expression
        except QueryError:
            return None  # an alias, or an error that `bind` raises below
        for index, (typed, key) in enumerate(self.keys):
            if key.expression == expression:
                return Output(KeyRef(index), typed.type)
        return None

    def _find_alias(self, node: exp.Expr) -> Output | None:
        if not isinstance(node, exp.Column) or node.table or not isinstance(node.this, exp.Identifier):
            return None
        name = find_name(node.name, self.aliases)
        return None if name is None else self.aliases[name]

    def _bind_call(self, node: exp.Expr) -> Output:  # noqa: PLR0911, PLR0912 - one return for each form
        kind = type(node)
        if kind in COMPARE:
            return self._bind_comparison(node, COMPARE[kind], self.bind(node.this), self.bind(node.expression))
        if kind in ARITHMETIC:
            made = PostCall(ARITHMETIC[kind], (self._bind_typed(node.this), self._bind_typed(node.expression)))
            if kind is exp.Div and isinstance(made.arguments[1], KeyRef):
                check_divisor(node.expression, self.keys[made.arguments[1].index][0])
            return Output(made, "number")
        if kind in LOGIC:
            parts = [self._bind_typed(part, "boolean") for part in flatten(node)]
            return self._chain_calls(LOGIC[kind], parts)
        match node:
            case exp.Not():
                return Output(PostCall("not", (self._bind_typed(node.this, "boolean"),)), "boolean")
            case _ if kind in OF_RESULTS:
                return Output(PostCall(OF_RESULTS[kind], (self._bind_typed(node.this),)), "number")
            case _ if kind in SEVERAL:
                given = tuple(self._bind_typed(part) for part in (node.this, *node.expressions))
                there = kind is exp.Coalesce and _is_never_null(given[0])
                return Output(given[0] if there else PostCall(SEVERAL[kind], given), "number")
            case exp.Cast() if node.to.this in FLOATS and not node.to.expressions:
                return Output(self._bind_typed(node.this), "number")
            case exp.Cast() if node.to.this in INTEGERS:
                return Output(PostCall("integer", (self._bind_typed(node.this),)), "number")
            case exp.VariancePop() | exp.StddevPop():
                return self._bind_population(node)
            case exp.Round():
                return Output(PostCall("round", (self._bind_typed(node.this), Literal(read_digits(node)))), "number")
            case exp.Is() if isinstance(node.expression, exp.Null):
                return Output(PostCall("is null", (self.bind(node.this).post,)), "boolean")
            case exp.Between():
                value, low, high = (self.bind(part) for part in (node.this, node.args["low"], node.args["high"]))
                parts = [
                    self._bind_comparison(node, ">=", value, low).post,
                    self._bind_comparison(node, "<=", value, high).post,
                ]
                return self._chain_calls("and", parts)
            case exp.In() if node.expressions:
                value = self.bind(node.this)
                options = [self.bind(option) for option in node.expressions]
                return self._chain_calls(
                    "or", [self._bind_comparison(node, "=", value, option).post for option in options]
                )
        raise build_syntax_refusal(
            node,
            f"{name_node(node)} is not supported in an output column",
            OUTPUT_HINTS.get(name_node(node), IN_OUTPUTS),
        )

    def _bind_population(self, node: exp.VariancePop | exp.StddevPop) -> Output:
        """VAR_POP(x) = VARIANCE(x) * (n - 1) / n, and STDDEV_POP is its root. Both are measured together."""
        root = isinstance(node, exp.StddevPop)
        sample = self.bind((exp.Stddev if root else exp.Variance)(this=node.this.copy()))
        rows = self.bind(exp.Count(this=node.this.copy(), big_int=True))
        return Output(PostCall("stddev of all" if root else "variance of all", (sample.post, rows.post)), "number")

    def _chain_calls(self, function: str, parts: list[Post]) -> Output:
        chained = parts[0]
        for part in parts[1:]:
            chained = PostCall(function, (chained, part))
        return Output(chained, "boolean")

    def _bind_typed(self, node: exp.Expr, wanted: str = "number") -> Post:
        found = self.bind(node)
        if found.type != wanted:
            raise build_syntax_refusal(
                node, f"This is a {found.type}[at], but a {wanted} is needed", f"Use a {wanted}."
            )
        return found.post

    def _bind_comparison(self, node: exp.Expr, function: str, one: Output, two: Output) -> Output:
        left, right = _read_date(node, one, two), _read_date(node, two, one)
        if left.type != right.type:
            what = f"'{function}' compares a {left.type} with a {right.type}"
            raise build_syntax_refusal(node, what, "Compare values of the same type.")
        first, second = self._type_operand(left), self._type_operand(right)
        if first is not None and second is not None:
            check_comparison(node, function, first, second)
        return Output(PostCall(function, (left.post, right.post)), "boolean")

    def _type_operand(self, one: Output) -> Typed | None:
        """The declared values or bounds of a group key or a literal. None for anything else."""
        if isinstance(one.post, KeyRef):
            return self.keys[one.post.index][0]
        return functions.type_literal(one.post.value) if isinstance(one.post, Literal) else None

    def _bind_aggregate(self, node: exp.Expr) -> Aggregate | None:  # noqa: PLR0911, PLR0912 - one a form
        if isinstance(node, exp.Count):
            return self._bind_count(node)
        if isinstance(node, exp.ApproxDistinct):
            return self._keep_filters(node, bind_counted_values(node, [node.this], self.rows))
        if is_aggregate(node) and not isinstance(node, (exp.VariancePop, exp.StddevPop)):
            self._keep_filters(node, Aggregate("COUNT", None))
        if isinstance(node, PAIRS):
            return bind_pair(node, self.rows)
        if isinstance(node, CHOICES) and is_aggregate(node):
            return bind_choice(node, self.rows, self._bind_value)
        function = NAMES.get(type(node))
        if function is None:
            return None
        if node.meta.get("caution"):
            add_caution(node.meta["caution"])
        if isinstance(node.this, exp.Distinct):
            return bind_added_values(node, function, self.rows)
        value = self._bind_value(node.this, function)
        if value.type == "boolean":
            value = functions.convert_truth(value)
        if value.type != "number":
            hint = AS_NUMBER if value.type in ("date", "datetime") else COUNT_INSTEAD
            raise build_syntax_refusal(node, f"{function} needs a number, but this is a {value.type}[at]", hint)
        if not value.bounded:
            which, hint = explain_missing_bound(value)
            what = f"{function} needs a number with bounds, and this has {which}{locate(node)}."
            raise MissingBounds("bounds", what, hint)
        if value.lower == value.upper and (function != "SUM" or value.lower == 0):
            hint = "Write the constant itself, or COUNT(*)."
            raise build_syntax_refusal(node, f"{function} of a constant does not need the data", hint)
        if 0 < max(abs(value.lower or 0), abs(value.upper or 0)) < LEAST_REACH:
            what = f"The bounds of this {function} are too close to 0{locate(node)}."
            raise MissingBounds("bounds", what, "Use a smaller unit of measure, so that the numbers are larger.")
        return Aggregate(function, value)

    def _bind_value(self, node: exp.Expr, function: str) -> Typed:
        """The value of an aggregate, with its contribution bounds if it has any."""
        if isinstance(node, exp.Anonymous) and is_clamped(node):
            return bind_clamped(node, function, self.rows.bind, self.most_rows)
        return self.rows.bind(node)

    def _bind_count(self, node: exp.Count) -> Aggregate:
        inner = node.this.unnest() if node.this is not None else None
        if isinstance(inner, exp.Anonymous) and is_clamped(inner):
            refuse_count_bounds(inner, self.most_rows)
            inner = inner.expressions[0].unnest()
        if isinstance(inner, (exp.Star, exp.Literal, exp.Boolean)):
            return self._keep_filters(node, Aggregate("COUNT", None))
        if inner is None or isinstance(inner, exp.Null):
            raise build_syntax_refusal(node, "COUNT needs a value that is not NULL", "Write COUNT(*) or COUNT(x).")
        if isinstance(inner, exp.Distinct):
            return self._bind_people(inner)
        if isinstance(inner, exp.Column):
            item, name = self.rows.scope.resolve(inner)
            if item.columns[name].type == "id":
                counted = item.partners.get(name) if name in item.person else item.columns[name]
                return self._keep_filters(node, Aggregate("COUNT", counted))
        value = self.rows.bind(inner)
        return self._keep_filters(node, Aggregate("COUNT", value if value.nullable else None))

    def _keep_filters(self, node: exp.Expr, aggregate: Aggregate) -> Aggregate:
        """Refuse an aggregate of all rows beside a COUNT(DISTINCT id) of some people: they need two queries."""
        if self.filters:
            raise build_syntax_refusal(node, PART_OF_PEOPLE, "Ask for them in two questions.")
        return aggregate

    def find_people(self, node: exp.Expr) -> list[Expression] | None:
        """The condition under which COUNT(DISTINCT ...) counts a person. None: it does not count people."""
        match node:
            case exp.Column():
                item, name = self.rows.scope.resolve(node)
                if name not in item.person:
                    return None
                return [_is_there(item.partners[name])] if name in item.partners else []
            case exp.Case() if len(node.args["ifs"]) == 1 and _is_null(node.args.get("default")):
                branch = node.args["ifs"][0]
                found = self.find_people(branch.args["true"].unnest())
                return None if found is None else [*self.rows.bind_conditions(branch.this), *found]
        return None

    def _bind_people(self, node: exp.Distinct) -> Aggregate:
        target = node.expressions[0].unnest() if len(node.expressions) == 1 else None
        conditions = None if target is None else self.find_people(target)
        if conditions is not None:
            if conditions != self.filters and (self.aggregates or self.filters):
                raise build_syntax_refusal(node, PART_OF_PEOPLE, "Ask for them in two questions.")
            self.filters = conditions
            return Aggregate("PEOPLE", None)
        return self._keep_filters(node, bind_counted_values(node, node.expressions, self.rows))


def _is_never_null(post: Post) -> bool:
    """Is it a number in every row? A released aggregate is never NULL."""
    match post:
        case AggregateRef():
            return True
        case PostCall("+" | "-" | "*" | "neg" | "abs" | "round" | "floor" | "ceil" | "integer", arguments):
            return all(_is_never_null(argument) or isinstance(argument, Literal) for argument in arguments)
    return False


def _is_there(partner: Typed) -> Expression:
    return Call("not", (Call("is null", (partner.expression,)),))


def _is_null(node: exp.Expr | None) -> bool:
    return node is None or isinstance(node, exp.Null)


def _infer_type(aggregate: Aggregate) -> str:
    if aggregate.function == "TOP_K":
        return "list"
    if aggregate.since is not None:
        return "datetime" if isinstance(aggregate.since, datetime) else "date"
    return aggregate.value.type if aggregate.function == "MODE" and aggregate.value is not None else "number"


def _read_date(node: exp.Expr, one: Output, other: Output) -> Output:
    """Read a literal that is compared with a date or datetime as a date or datetime."""
    if other.type not in ("date", "datetime") or not isinstance(one.post, Literal):
        return one
    value = read_literal_beside(node, one.post.value, other.type)
    return one if value is one.post.value else Output(Literal(value), other.type)


def read_digits(node: exp.Round) -> int:
    given = node.args.get("decimals")
    value = read_constant(given) if given is not None else Literal(0)
    digits = None if value is None else value.value
    if not isinstance(digits, int) or isinstance(digits, bool) or abs(digits) > MOST_DIGITS:
        raise build_syntax_refusal(
            node,
            "The number of digits of ROUND must be a whole number",
            f"Write ROUND(x, 2), with at most {MOST_DIGITS} digits.",
        )
    return digits
