"""Row-level expressions: syntax + a table's declarations -> Typed, with bounds and public values."""

from collections.abc import Callable

from sqlglot import exp

from sfumato.kernel.expressions import Expression, Literal
from sfumato.query import functions
from sfumato.query.constants import constant
from sfumato.query.date_functions import date_function, read_beside
from sfumato.query.decided_comparisons import look_at_comparison, look_at_pattern
from sfumato.query.parse import placed, unsupported, word_of
from sfumato.query.query import Typed
from sfumato.query.scope import Scope
from sfumato.query.size_limits import MOST_PARTS, Written

COMPARE: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
UNARY: dict[type[exp.Expr], str] = {exp.Neg: "neg", exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil"}
LOGIC: dict[type[exp.Expr], str] = {exp.And: "and", exp.Or: "or"}
CHOICES = (exp.Min, exp.Max, exp.Median, exp.PercentileCont, exp.WithinGroup, exp.Mode, exp.Anonymous)
AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Variance, exp.Stddev, exp.StddevSamp, *CHOICES)


class RowBinder:
    """Binds expressions over the rows of a scope, and counts their parts: BETWEEN and IN repeat what they compare."""

    def __init__(self, scope: Scope, of_unit: Callable[[exp.Expr], Typed] | None = None) -> None:
        self.scope = scope
        self._of_unit = of_unit  # where rows are added up for each person: what an aggregate is there
        self._parts = 0
        self._written = Written()

    def count_part(self, node: exp.Expr) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise unsupported(node, "The question has too many parts", "Ask for less at once.")

    def row(self, node: exp.Expr) -> Typed:  # noqa: PLR0911 - one return a form
        """A row-level expression."""
        self.count_part(node)
        kind = type(node)
        if isinstance(node, exp.Paren):
            return self.row(node.this)
        if isinstance(node, exp.Column):
            return self._column(node)
        value = constant(node)
        if value is not None:
            with placed(node):
                return functions.literal(value.value)
        if kind in COMPARE:
            return self._compared(node, COMPARE[kind], self.row(node.this), self.row(node.expression))
        if kind in ARITHMETIC:
            one, two = self.row(node.this), self.row(node.expression)
            with placed(node):
                return functions.arithmetic(ARITHMETIC[kind], one, two)
        if kind in UNARY:
            one = self.row(node.this)
            with placed(node):
                return functions.unary(UNARY[kind], one)
        if kind in LOGIC or kind is exp.Not:
            arguments = [self.row(each) for each in (chain(node) if kind in LOGIC else [node.this])]
            with placed(node):
                return functions.logic(LOGIC.get(kind, "not"), arguments)
        return self._special(node)

    def conditions(self, node: exp.Expr) -> list[Expression]:
        """The parts of WHERE that must all be true."""
        found = []
        for each in chain(node) if isinstance(node.unnest(), exp.And) else [node]:
            typed = self.row(each)
            if typed.type != "boolean":
                raise unsupported(each, "WHERE takes a condition", "Compare with something, such as age > 65.")
            found.append(typed.expression)
        return found

    def _column(self, node: exp.Column) -> Typed:
        part, name = self.scope.column(node)
        found = part.columns[name]
        self._written.add(node, found.expression)  # before it is compared or hashed, which walks through all of it
        if found.type == "id":
            hint = "Leave it out: ids are never shown or compared, but in JOIN ... ON."
            if name in part.person:
                hint = f"Use COUNT(DISTINCT {name})."
            raise unsupported(node, f"The id {name} cannot be read", hint)
        return found

    def _compared(self, node: exp.Expr, function: str, one: Typed, two: Typed) -> Typed:
        """A comparison: text beside a date is read as one."""
        left, right = read_beside(node, one, two), read_beside(node, two, one)
        with placed(node):
            compared = functions.compare(function, left, right)
        look_at_comparison(node, function, left, right)
        return compared

    def _special(self, node: exp.Expr) -> Typed:  # noqa: PLR0911 - one return a form
        match node:
            case exp.Is() if isinstance(node.expression, exp.Null):
                return functions.is_null(self.row(node.this))
            case exp.Is():
                raise unsupported(node, "IS takes NULL only", "Write x or NOT x of a truth value; IS NULL of NULL.")
            case exp.Between():
                low = self._compared(node, ">=", self.row(node.this), self.row(node.args["low"]))
                high = self._compared(node, "<=", self.row(node.this), self.row(node.args["high"]))
                return functions.logic("and", [low, high])
            case exp.In() if node.expressions:
                equal = [self._compared(node, "=", self.row(node.this), self.row(each)) for each in node.expressions]
                return functions.logic("or", equal) if len(equal) > 1 else equal[0]
            case exp.Like():
                one, two = self.row(node.this), self.row(node.expression)
                with placed(node):
                    found = functions.like(one, two)
                if isinstance(two.expression, Literal) and isinstance(two.expression.value, str):
                    look_at_pattern(node, one, two.expression.value)
                return functions.logic("not", [found]) if node.args.get("negate") else found
            case exp.Case():
                ifs, default = node.args["ifs"], node.args.get("default")
                otherwise = self.row(default) if default is not None else functions.literal(None)
                conditions = [self.row(each.this) for each in ifs]
                outcomes = [self.row(each.args["true"]) for each in ifs]
                with placed(node):
                    return functions.choose(conditions, outcomes, otherwise)
            case exp.Coalesce():
                arguments = [self.row(each) for each in (node.this, *node.expressions)]
                with placed(node):
                    return functions.coalesce(arguments)
        found_date = date_function(node, self.row)
        if found_date is not None:
            return found_date
        if isinstance(node, AGGREGATES):
            if self._of_unit is not None:
                return self._of_unit(node)
            hint = "Aggregates belong after SELECT, in HAVING and in ORDER BY."
            raise unsupported(node, f"{word_of(node)} is an aggregate, and cannot stand inside this", hint)
        raise unsupported(
            node,
            f"{word_of(node)} is not supported inside an aggregate, WHERE or GROUP BY",
            "Comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, + - * /, ABS, FLOOR, CEIL, CASE and COALESCE are.",
        )


def chain(node: exp.Expr) -> list[exp.Expr]:
    """a AND b AND c as a list, without recursion; the same for OR."""
    top = node.unnest()
    found, waiting = [], [top]
    while waiting:
        each = waiting.pop()
        bare = each.unnest()
        if type(bare) is type(top):
            waiting += [bare.expression, bare.this]
        else:
            found.append(each)
    return found
