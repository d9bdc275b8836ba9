"""Cautions: comparisons that the declarations already decide (city = 'Roma', where only Rome is declared), and divisors
that may be 0. A question with a caution is answered. A caution uses the catalog and the question, never the data.
"""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sqlglot import exp

from sfumato.catalog.names import is_like
from sfumato.kernel.expressions import Literal, Scalar
from sfumato.query.functions import contains_zero
from sfumato.query.parse import locate
from sfumato.query.query import Typed

MOST_CAUTIONS = 20
MOST_LISTED = 6
MOST_WORK = 1 << 20  # characters compared for one pattern


class Cautions(dict[str, None]):
    """The cautions of one question, without repetition, and sets of declared values for quick lookup."""

    def __init__(self) -> None:
        super().__init__()
        self._sets: dict[int, tuple[tuple[Scalar, ...], frozenset[Scalar]]] = {}

    def contains_value(self, value: Scalar, values: tuple[Scalar, ...]) -> bool:
        """Is the value in the list? Each list becomes a set once, however often it is used."""
        if id(values) not in self._sets:
            self._sets[id(values)] = (values, frozenset(values))
        return value in self._sets[id(values)][1]


_FOUND: ContextVar[Cautions | None] = ContextVar("found", default=None)


@contextmanager
def collect_cautions() -> Iterator[Cautions]:
    """Collect the cautions that arise while a question is bound."""
    found = Cautions()
    before = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(before)


def _has_room() -> bool:
    found = _FOUND.get()
    return found is not None and len(found) < MOST_CAUTIONS


def check_comparison(node: exp.Expr, function: str, one: Typed, two: Typed) -> None:
    """Add a caution if a comparison with a literal is always or never true for declared values."""
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    if isinstance(one.expression, Literal) and not isinstance(two.expression, Literal):
        one, two, function = two, one, mirrored.get(function, function)
    if isinstance(one.expression, Literal) or not isinstance(two.expression, Literal):
        return
    value = two.expression.value
    if value is None or not _has_room():
        return
    if function in ("=", "<>") and not _is_possible(one, two, value):
        outcome = "no row has it" if function == "=" else "it differs from every value that is not NULL"
        add_caution(
            f"{_show(value)}{locate(node)} is not among {_show_declared(one)}: {outcome}.{_suggest(one, value)}"
        )
        return
    always = _decide(function, one, two)
    if always is not None:
        outcome = "true for every value that is not NULL" if always else "true for no row"
        add_caution(
            f"The comparison '{function} {_show(value)}'{locate(node)} is {outcome}: values are clamped to "
            f"{_show_declared(one)}."
        )


def check_between(node: exp.Expr, low: Typed, high: Typed) -> None:
    """Add a caution if the bounds of BETWEEN are in the wrong order: no value is between them."""
    if not (isinstance(low.expression, Literal) and isinstance(high.expression, Literal) and _has_room()):
        return
    first, last = low.expression.value, high.expression.value
    if low.lower is not None and high.lower is not None:
        swapped = low.lower > high.lower
    else:
        swapped = isinstance(first, str) and isinstance(last, str) and first > last
    if swapped:
        shown = f"BETWEEN {_show(first)} AND {_show(last)}{locate(node)}"
        add_caution(f"{shown} is true for no row: the first value is the larger one. Write the smaller one first.")


def check_pattern(node: exp.Expr, one: Typed, pattern: str) -> None:
    """Add a caution if LIKE has a pattern that no declared value matches."""
    values = [value for value in one.values or () if isinstance(value, str)]
    if not _has_room() or sum(map(len, values)) * len(pattern) > MOST_WORK:  # too slow for a caution
        return
    if one.values is None or any(is_like(value, pattern) for value in values):
        return
    add_caution(f"The pattern {_show(pattern)}{locate(node)} matches none of {_show_declared(one)}.")


def check_divisor(node: exp.Expr, divisor: Typed) -> None:
    """Add a caution if the declared values or bounds of a divisor include 0: x / 0 is NULL."""
    zero = contains_zero(divisor) if divisor.values is None else 0 in divisor.values
    if zero and _has_room():
        add_caution(
            f"The divisor{locate(node)} may be 0: it is within {_show_declared(divisor)}. A division by 0 gives NULL: "
            "a condition is then not true, and an aggregate leaves the row out. Divide by a number that cannot be 0, "
            "or give a value for this case: CASE WHEN y <> 0 THEN x / y ELSE 0 END."
        )


def warn_of_undeclared(node: exp.Expr) -> None:
    """Add a caution if a key has bounds, but too many possible values to list them."""
    if _has_room():
        add_caution(
            f"The key{locate(node)} has too many possible values to list them. So it is treated as undeclared: only "
            "keys that enough people share are released, which needs delta, and others are left out. Group by coarser "
            "values, such as FLOOR(x / 100) * 100, or name fewer in WHERE."
        )


def _is_possible(one: Typed, two: Typed, value: Scalar) -> bool:
    """Can the first operand equal the literal?"""
    found = _FOUND.get()
    if one.values is not None and found is not None:
        return found.contains_value(value, one.values)
    if one.lower is None or one.upper is None or two.lower is None:
        return True
    whole = not one.whole or float(two.lower).is_integer()
    return one.lower <= two.lower <= one.upper and whole


def _decide(function: str, one: Typed, two: Typed) -> bool | None:
    """Is an order comparison always true or never true? None: the declarations do not decide it."""
    low, high, at = one.lower, one.upper, two.lower
    if low is None or high is None or at is None or low == high:
        return None
    match function:
        case ">":
            return False if at >= high else True if at < low else None
        case ">=":
            return False if at > high else True if at < low else None
        case "<":
            return False if at <= low else True if at > high else None
        case "<=":
            return False if at < low else True if at > high else None
    return None


def _show_declared(one: Typed) -> str:
    if one.values is not None and (len(one.values) <= MOST_LISTED or one.type == "text"):
        listed = ", ".join(_show(value) for value in one.values[:MOST_LISTED])
        more = f" and {len(one.values) - MOST_LISTED:,} more" if len(one.values) > MOST_LISTED else ""
        return f"the declared values {listed}{more}"
    if one.type == "number" and one.bounded and one.whole:
        return f"the declared whole numbers, {one.lower:g} to {one.upper:g}"
    if one.type == "number" and one.bounded:
        return f"the declared bounds, {one.lower:g} to {one.upper:g}"
    return "the declared bounds"


def _suggest(one: Typed, value: Scalar) -> str:
    texts = [text for text in one.values or () if isinstance(text, str)]
    close = difflib.get_close_matches(value, texts, 1) if isinstance(value, str) else []
    return f" Did you mean {_show(close[0])}?" if close else ""


def _show(value: Scalar) -> str:
    text = f"'{value}'" if not isinstance(value, (int, float)) else str(value)
    return text if len(text) <= 40 else text[:40] + "...'"


def add_caution(text: str) -> None:
    found = _FOUND.get()
    if found is not None:
        found[text] = None
