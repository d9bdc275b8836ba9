"""contribution_bounds_per_row and contribution_bounds_per_group: what one row, or one person in a group, may add.

BigQuery clamps each row, or what all rows of one person add to a group. The second is the same as the first where each
person has one row, and it changes nothing where the bounds cannot be reached. Otherwise per_group_bounds.py adds up the
rows of each person first. Beside aggregates that cannot be added up, it is refused: clamping each row would be another
question.
"""

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from sfumato.query import functions
from sfumato.query.constants import read_exact_number
from sfumato.query.named_arguments import PER_GROUP, PER_ROW
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.query import Typed

IN_SUBQUERY = (
    "Aggregate the rows of each person first, and clamp that: SELECT SUM(LEAST(total, 100)) FROM (SELECT id, SUM(x) AS "
    "total FROM t GROUP BY id). Or clamp each row with contribution_bounds_per_row, which is another question."
)


def is_clamped(node: exp.Expr | None) -> bool:
    """Is it the first argument of an aggregate that has contribution bounds?"""
    return isinstance(node, exp.Anonymous) and str(node.this).upper() in (PER_GROUP, PER_ROW)


def read_bounds(node: exp.Anonymous) -> tuple[exp.Expr, float, float]:
    """The value and its two bounds."""
    given = node.expressions
    ends = [read_exact_number(argument) for argument in given[1:]]
    if len(ends) != 2 or ends[0] is None or ends[1] is None or ends[0] > ends[1]:
        hint = "Write contribution_bounds_per_group => (0, 100)."
        raise build_syntax_refusal(node, "Contribution bounds must be two numbers, the smaller first", hint)
    value: exp.Expr = given[0]
    return value, float(ends[0]), float(ends[1])


def bind_clamped(node: exp.Anonymous, function: str, bind: Callable[[exp.Expr], Typed], most_rows: int) -> Typed:
    """The value that an aggregate with contribution bounds adds up."""
    inner, low, high = read_bounds(node)
    value = bind(inner)
    if value.type == "boolean":
        value = functions.convert_truth(value)
    if value.type != "number" or value.lower is None or value.upper is None:
        return value  # the aggregate itself says what it needs
    times = most_rows if function == "SUM" else 1
    reached = min(value.lower, times * value.lower), max(value.upper, times * value.upper)
    if low <= reached[0] and reached[1] <= high:
        return value
    if str(node.this).upper() == PER_GROUP and most_rows > 1:
        what = "contribution_bounds_per_group[at] clamps what all rows of one person add to a group"
        raise build_syntax_refusal(node, what, IN_SUBQUERY)
    return clamp_value(value, low, high)


def clamp_value(value: Typed, low: float, high: float) -> Typed:
    """The value, with values outside the bounds moved to them. NULL stays NULL."""
    below, above = (functions.type_literal(int(end) if end.is_integer() else end) for end in (low, high))
    conditions = [functions.compare("<", value, below), functions.compare(">", value, above)]
    made = functions.choose(conditions, [below, above], value)
    lower, upper = value.lower or 0.0, value.upper or 0.0
    return replace(made, lower=min(max(lower, low), high), upper=max(min(upper, high), low), nullable=value.nullable)


def refuse_count_bounds(node: exp.Anonymous, most_rows: int) -> None:
    """COUNT(*, contribution_bounds_per_group => (0, 3)): refuse bounds that a person's rows can exceed."""
    _, low, high = read_bounds(node)
    if low > 0 or high < most_rows:
        what = f"A person can have {most_rows} rows, and these bounds[at] clamp their number in each group"
        hint = "Leave them out, or count the rows of each person in a subquery first, and clamp that count."
        raise build_syntax_refusal(node, what, hint)
