"""Syntax of a row-level expression + declared columns -> Typed, with its bounds and possible values."""

from collections.abc import Callable

from sqlglot import exp

from sfumato.kernel.expressions import Expression, Literal
from sfumato.query import functions
from sfumato.query.constants import read_constant
from sfumato.query.date_arithmetic import compute_dates
from sfumato.query.date_functions import bind_date_function, read_beside
from sfumato.query.decided_comparisons import check_between, check_comparison, check_divisor, check_pattern
from sfumato.query.function_calls import bind_function
from sfumato.query.hints import FORMAT_KEYS, LAST_DIGIT, NOT_A_NUMBER
from sfumato.query.id_comparisons import compare_id, find_id
from sfumato.query.narrowed_values import combine_narrowings, narrow_value, read_narrowings
from sfumato.query.parse import EXPRESSIONS, build_syntax_refusal, locate_errors, name_node
from sfumato.query.query import Typed
from sfumato.query.relation import Scope
from sfumato.query.result_functions import TRIGONOMETRY
from sfumato.query.size_limits import MOST_PARTS, PartCounter
from sfumato.query.tokens import SHORTEN

COMPARE: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
UNARY: dict[type[exp.Expr], str] = {exp.Neg: "neg", exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil"}
LOGIC: dict[type[exp.Expr], str] = {exp.And: "and", exp.Or: "or"}
CHOICES = (exp.Min, exp.Max, exp.Median, exp.PercentileCont, exp.WithinGroup, exp.Mode, exp.Anonymous)
PAIRS = (
    exp.Corr, exp.CovarSamp, exp.CovarPop, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2, exp.RegrSxx, exp.RegrSyy,
    exp.RegrSxy, exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy,
)  # fmt: skip
ADDED = (exp.Count, exp.ApproxDistinct, exp.Sum, exp.Avg, exp.Variance, exp.Stddev, exp.StddevSamp)
AGGREGATES = (*ADDED, *PAIRS, *CHOICES)


ROW_HINTS: dict[type[exp.Expr], str] = {
    exp.Window: "Windows are computed from results: use them after SELECT, over aggregates. The rows of each person's "
    "first day: WHERE v.day = (SELECT MIN(w.day) FROM visits w WHERE w.id = v.id). RANK() OVER (PARTITION BY id ORDER "
    "BY day) = 3 is (SELECT COUNT(*) FROM visits w WHERE w.id = v.id AND w.day < v.day) = 2, if no day is NULL; "
    "ROW_NUMBER() is the same if no two rows of one person have the same day. COUNT(*) OVER (PARTITION BY id) is "
    "(SELECT COUNT(*) FROM visits w WHERE w.id = v.id). Nothing here means the same as LAG and LEAD of rows.",
    exp.TimeToStr: FORMAT_KEYS,
    **dict.fromkeys(TRIGONOMETRY, f"{LAST_DIGIT} Of aggregates, as in COS(AVG(x)), it is computed for free."),
    exp.Subquery: "A subquery can be used in WHERE and after SELECT, about the same person or a public table.",
    exp.In: "List the values: IN ('a', 'b').",
    exp.Exists: "EXISTS can be used in WHERE, about the same person or a public table.",
    exp.Anonymous: "It is computed from results: use it after SELECT, over keys and aggregates.",
}
SEVERAL_IDS = (
    "SELECT COUNT(*) FROM (SELECT {name}, x FROM t GROUP BY {name}, x) counts the different pairs of {name} and x. A "
    "pair with a NULL counts there too."
)
COMPARED_ID = (
    "An id is compared with numbers and texts that the question contains, and with ids of another table. To compare it "
    "with another column, the owner adds a copy of the id's column, and declares the copy as a number or a text."
)
ONE_PERSON = (
    "No answer shows rows of one person. Other questions that can be answered: COUNT(DISTINCT {name}) counts people, "
    "and SELECT n, COUNT(*) FROM (SELECT {name}, COUNT(*) AS n ... GROUP BY {name}) GROUP BY n counts people by the "
    "number of their rows."
)


class RowBinder:
    """Binds expressions over the rows of a scope, and limits their number of parts.

    The limit counts expanded parts, because BETWEEN and IN repeat the value that they compare.
    """

    def __init__(self, scope: Scope, bind_unit_aggregate: Callable[[exp.Expr], Typed] | None = None) -> None:
        self.scope = scope
        self._bind_unit_aggregate = bind_unit_aggregate  # for a subquery with one row per person
        self._parts = 0
        self._counter = PartCounter()
        self._narrowed = scope.narrowed  # what is known of expressions here

    def count_part(self, node: exp.Expr) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise build_syntax_refusal(node, "The question has too many parts", SHORTEN)

    def bind(self, node: exp.Expr) -> Typed:
        """Bind a row-level expression, with what WHERE and CASE say of it."""
        self.count_part(node)
        typed = self._bind_form(node)
        if not self._narrowed or isinstance(typed.expression, Literal) or typed.expression not in self._narrowed:
            return typed
        return narrow_value(typed, self._narrowed[typed.expression])

    def _bind_form(self, node: exp.Expr) -> Typed:  # noqa: PLR0911 - one return for each form
        kind = type(node)
        if isinstance(node, exp.Paren):
            return self.bind(node.this)
        if isinstance(node, exp.Column):
            return self._bind_column(node)
        value = read_constant(node)
        if value is not None:
            with locate_errors(node):
                return functions.type_literal(value.value)
        if kind in COMPARE:
            return self._bind_sides(node, COMPARE[kind], node.this, node.expression)
        if kind in ARITHMETIC:
            if isinstance(node.expression, exp.Interval):
                return self._bind_special(node)
            one, two = self.bind(node.this), self.bind(node.expression)
            with locate_errors(node):
                made = compute_dates(kind, one, two) or functions.compute(ARITHMETIC[kind], one, two)
            if kind is exp.Div:
                check_divisor(node.expression, two)
            return made
        if kind in UNARY:
            one = self.bind(node.this)
            with locate_errors(node):
                return functions.apply_unary(UNARY[kind], one)
        if kind in LOGIC or kind is exp.Not:
            arguments = [self.bind(part) for part in (flatten(node) if kind in LOGIC else [node.this])]
            with locate_errors(node):
                return functions.combine_logic(LOGIC.get(kind, "not"), arguments)
        return self._bind_special(node)

    def bind_conditions(self, node: exp.Expr) -> list[Expression]:
        """Bind the conditions of WHERE. All of them must be true."""
        found = []
        for condition in flatten(node) if isinstance(node.unnest(), exp.And) else [node]:
            typed = self.bind(condition)
            if typed.type != "boolean":
                raise build_syntax_refusal(
                    condition, "WHERE needs a condition", "Write a comparison, such as age > 65."
                )
            found.append(typed.expression)
        return found

    def _bind_column(self, node: exp.Column) -> Typed:
        item, name = self.scope.resolve(node)
        found = item.columns[name]
        self._counter.add(node, found.expression)  # first, because comparing or hashing an expression visits all of it
        if found.type == "id":
            hint = ONE_PERSON.format(name=name) if name in item.person else "It cannot be compared otherwise."
            if isinstance(node.parent, (exp.Binary, exp.Between, exp.In)):
                hint = f"{COMPARED_ID} {hint}" if name in item.person else COMPARED_ID
            if node.find_ancestor(exp.Distinct) is not None:
                hint = SEVERAL_IDS.format(name=name)
            raise build_syntax_refusal(
                node,
                f"{name}[at] is an id, which can be used only in COUNT(DISTINCT {name}), in JOIN and beside constants",
                hint,
            )
        return found

    def _find_id(self, node: exp.Expr) -> Typed | None:
        """An id in IS NULL. A person's id is NULL only in rows of an outer join that have no partner."""
        if not isinstance(node, exp.Column):
            return None
        item, name = self.scope.resolve(node)
        if item.columns[name].type != "id":
            return None
        never = functions.type_literal(True)
        return item.partners.get(name, never) if name in item.person else item.columns[name]

    def _bind_sides(self, node: exp.Expr, function: str, left: exp.Expr, right: exp.Expr) -> Typed:
        """Bind a comparison of two expressions. One of them may be an id, if the other one is a value."""
        for mine, other in ((left, right), (right, left)):
            found = find_id(mine, self.scope) if read_constant(other.unnest()) is not None else None
            if found is not None:
                self.count_part(node)
                return compare_id(*found, function, other.unnest(), mirrored=mine is right)
        return self._bind_comparison(node, function, self.bind(left), self.bind(right))

    def _bind_comparison(self, node: exp.Expr, function: str, one: Typed, two: Typed) -> Typed:
        """Bind a comparison. A text that is compared with a date is read as a date."""
        left, right = read_beside(node, one, two), read_beside(node, two, one)
        with locate_errors(node):
            compared = functions.compare(function, left, right)
        check_comparison(node, function, left, right)
        return compared

    def _bind_special(self, node: exp.Expr) -> Typed:  # noqa: PLR0911 - one return a form
        match node:
            case exp.Is() if isinstance(node.expression, exp.Null):
                found_id = self._find_id(node.this.unnest())
                return functions.check_null(self.bind(node.this) if found_id is None else found_id)
            case exp.Is():
                truth = "Write x instead of x IS TRUE, and NOT x instead of x IS FALSE."
                hint = NOT_A_NUMBER if node.expression.name.upper() == "NAN" else truth
                raise build_syntax_refusal(node, "IS is supported only with NULL", hint)
            case exp.Between():
                low = self._bind_sides(node, ">=", node.this, node.args["low"])
                high = self._bind_sides(node, "<=", node.this, node.args["high"])
                check_between(node, self.bind(node.args["low"]), self.bind(node.args["high"]))
                return functions.combine_logic("and", [low, high])
            case exp.In() if node.expressions:
                equal = [self._bind_sides(node, "=", node.this, value) for value in node.expressions]
                return functions.combine_logic("or", equal) if len(equal) > 1 else equal[0]
            case exp.Like():
                one, two = self.bind(node.this), self.bind(node.expression)
                with locate_errors(node):
                    found = functions.match_pattern(one, two)
                if isinstance(two.expression, Literal) and isinstance(two.expression.value, str):
                    check_pattern(node, one, two.expression.value)
                return functions.combine_logic("not", [found]) if node.args.get("negate") else found
            case exp.Case():
                return self._bind_case(node)
            case exp.Coalesce():
                arguments = [self.bind(argument) for argument in (node.this, *node.expressions)]
                with locate_errors(node):
                    return functions.coalesce(arguments)
            case exp.If():
                branch = exp.If(this=node.this, true=node.args["true"])
                return self._bind_case(exp.Case(ifs=[branch], default=node.args.get("false")))
        made = bind_date_function(node, self.bind) or bind_function(node, self.bind)
        if made is not None:
            return made
        if is_aggregate(node):
            if self._bind_unit_aggregate is not None:
                return self._bind_unit_aggregate(node)
            hint = "Use aggregates after SELECT, in HAVING and in ORDER BY."
            raise build_syntax_refusal(node, f"The aggregate {name_node(node)} cannot be used here", hint)
        raise build_syntax_refusal(
            node,
            f"{name_node(node)} is not supported inside an aggregate, WHERE or GROUP BY",
            ROW_HINTS.get(type(node), f"{EXPRESSIONS} docs/sql.md lists the functions of rows."),
        )

    def _bind_case(self, node: exp.Case) -> Typed:
        """Bind CASE. An outcome is bound with what its condition says, and with what fails before it."""
        default, before = node.args.get("default"), self._narrowed
        conditions, outcomes = [], []
        try:
            for branch in node.args["ifs"]:
                conditions.append(self.bind(branch.this))
                condition, failed = conditions[-1].expression, self._narrowed
                self._narrowed = combine_narrowings([failed, read_narrowings(condition)])
                outcomes.append(self.bind(branch.args["true"]))
                no = read_narrowings(condition, holds=False, certain=False)
                self._narrowed = combine_narrowings([failed, no])
            otherwise = self.bind(default) if default is not None else functions.type_literal(None)
        finally:
            self._narrowed = before
        with locate_errors(node):
            return functions.choose(conditions, outcomes, otherwise)


def is_aggregate(node: exp.Expr) -> bool:
    """Is this an aggregate? Of the functions without a node of their own, only TOP_K is one."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper() == "TOP_K"
    return isinstance(node, (*AGGREGATES, exp.VariancePop, exp.StddevPop))


def has_aggregate(node: exp.Expr) -> bool:
    """Does an expression contain an aggregate, outside of subqueries?"""
    found = node.walk(prune=lambda inner: isinstance(inner, exp.Query))
    return any(is_aggregate(inner) for inner in found if not isinstance(inner.parent, exp.Window))


def flatten(node: exp.Expr) -> list[exp.Expr]:
    """Turn a AND b AND c into a list, without recursion. The same for OR."""
    top = node.unnest()
    found, waiting = [], [top]
    while waiting:
        part = waiting.pop()
        bare = part.unnest()
        if type(bare) is type(top):
            waiting += [bare.expression, bare.this]
        else:
            found.append(part)
    return found
