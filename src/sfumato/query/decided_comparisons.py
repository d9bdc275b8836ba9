"""Cautions from declarations: comparisons that they decide (city = 'Roma', which is not declared), divisors of 0.

Only what the owner declared and what the analyst wrote is looked at: a caution says nothing of the data.
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
MOST_WORK = 1 << 20  # letters compared for one pattern


class Cautions(dict[str, None]):
    """What was cautioned of, each once; and the declared values that were looked at, as sets."""

    def __init__(self) -> None:
        super().__init__()
        self._sets: dict[int, tuple[tuple[Scalar, ...], frozenset[Scalar]]] = {}

    def among(self, value: Scalar, values: tuple[Scalar, ...]) -> bool:
        """Is it one of them? A list of values is looked through once, however often it is compared."""
        if id(values) not in self._sets:
            self._sets[id(values)] = (values, frozenset(values))
        return value in self._sets[id(values)][1]


_FOUND: ContextVar[Cautions | None] = ContextVar("found", default=None)


@contextmanager
def collected() -> Iterator[Cautions]:
    """What is cautioned of while a question is bound."""
    found = Cautions()
    before = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(before)


def _more() -> bool:
    found = _FOUND.get()
    return found is not None and len(found) < MOST_CAUTIONS


def look_at_comparison(node: exp.Expr, function: str, one: Typed, two: Typed) -> None:
    """Caution of a comparison with a literal that is always, or never, true of declared values."""
    turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    if isinstance(one.expression, Literal) and not isinstance(two.expression, Literal):
        one, two, function = two, one, turned.get(function, function)
    if isinstance(one.expression, Literal) or not isinstance(two.expression, Literal):
        return
    value = two.expression.value
    if value is None or not _more():
        return
    if function in ("=", "<>") and not _may_be(one, two, value):
        outcome = "no row has it" if function == "=" else "every row that is not NULL differs from it"
        _caution(f"{_shown(value)}{locate(node)} is not among {_declared(one)}: {outcome}.{_close(one, value)}")
        return
    always = _decided(function, one, two)
    if always is not None:
        outcome = "true of every row that is not NULL" if always else "true of no row"
        _caution(
            f"The comparison '{function} {_shown(value)}'{locate(node)} is {outcome}: values lie within "
            f"{_declared(one)}, and what was beyond is clamped."
        )


def look_at_pattern(node: exp.Expr, one: Typed, pattern: str) -> None:
    """Caution of LIKE with a pattern that no declared value matches."""
    values = [each for each in one.values or () if isinstance(each, str)]
    if not _more() or sum(map(len, values)) * len(pattern) > MOST_WORK:  # too long a look for a caution
        return
    if one.values is None or any(is_like(each, pattern) for each in values):
        return
    _caution(f"The pattern {_shown(pattern)}{locate(node)} matches none of {_declared(one)}.")


def look_at_divisor(node: exp.Expr, divisor: Typed) -> None:
    """Caution of a division by what may be 0, by its declared values or bounds: x / 0 is NULL."""
    zero = contains_zero(divisor) if divisor.values is None else 0 in divisor.values
    if zero and _more():
        _caution(
            f"The divisor{locate(node)} may be 0: it lies within {_declared(divisor)}. Where it is 0, the result is "
            "NULL. A condition on it is then not true, and an aggregate leaves the row out. Divide by what cannot be "
            "0, or say what to do with 0 (CASE WHEN y <> 0 THEN x / y ELSE 0 END)."
        )


def _may_be(one: Typed, two: Typed, value: Scalar) -> bool:
    """Can the first be the literal?"""
    found = _FOUND.get()
    if one.values is not None and found is not None:
        return found.among(value, one.values)
    if one.lower is None or one.upper is None or two.lower is None:
        return True
    whole = not one.whole or float(two.lower).is_integer()
    return one.lower <= two.lower <= one.upper and whole


def _decided(function: str, one: Typed, two: Typed) -> bool | None:
    """Is an order always true, or never? None: the declarations leave it open, or hold it by the bound itself."""
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


def _declared(one: Typed) -> str:
    if one.values is not None and (len(one.values) <= MOST_LISTED or one.type == "text"):
        listed = ", ".join(_shown(each) for each in one.values[:MOST_LISTED])
        more = f" and {len(one.values) - MOST_LISTED:,} more" if len(one.values) > MOST_LISTED else ""
        return f"the declared values {listed}{more}"
    if one.type == "number" and one.bounded and one.whole:
        return f"the declared whole numbers, {one.lower:g} to {one.upper:g}"
    if one.type == "number" and one.bounded:
        return f"the declared bounds, {one.lower:g} to {one.upper:g}"
    return "the declared bounds"


def _close(one: Typed, value: Scalar) -> str:
    texts = [each for each in one.values or () if isinstance(each, str)]
    close = difflib.get_close_matches(value, texts, 1) if isinstance(value, str) else []
    return f" Did you mean {_shown(close[0])}?" if close else ""


def _shown(value: Scalar) -> str:
    text = f"'{value}'" if not isinstance(value, (int, float)) else str(value)
    return text if len(text) <= 40 else text[:40] + "...'"


def _caution(text: str) -> None:
    found = _FOUND.get()
    if found is not None:
        found[text] = None
