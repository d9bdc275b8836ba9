"""Which bound a number lacks, and how to give it one."""

from sfumato.kernel.expressions import Call, Expression
from sfumato.query.query import Typed


def explain_missing_bound(one: Typed) -> tuple[str, str]:
    """Which bound a number lacks, and how to give it one."""
    which = "no bounds" if one.lower is None and one.upper is None else "no lower bound"
    which = "no upper bound" if one.lower is not None else which
    if _uses(one.expression, "ln"):
        return which, (
            "LN of a number near 0 has no lower bound. Ask about the rows with x >= 1 (WHERE), or for another number: "
            "LN(1 + x), LN(GREATEST(x, 1))."
        )
    side = {"no lower bound": "GREATEST(x, 0)", "no upper bound": "LEAST(x, 100)"}
    other = "Give both: LEAST(GREATEST(x, 0), 100), or WHERE x BETWEEN 0 AND 100."
    hint = f"Give it one: {side[which]}, or a condition in WHERE." if which in side else other
    if _uses(one.expression, "/"):
        hint += " Divide only by numbers that cannot be 0: WHERE a >= 1 makes that certain. (a + 1 is another number.)"
    return which, hint


def _uses(expression: Expression, function: str) -> bool:
    used = isinstance(expression, Call) and expression.function == function
    return used or (
        isinstance(expression, Call) and any(_uses(argument, function) for argument in expression.arguments)
    )
