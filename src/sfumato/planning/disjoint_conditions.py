"""Conditions that no row can meet together, from what is written: d = 'a' and d = 'b', x < 18 and x >= 18.

If a rule here were wrong, an answer would be wrong. It would not be less private: the kernel counts each row for one
condition only (docs/claims/K-77.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from itertools import product

from sfumato.kernel.expressions import Call, Expression, Literal, Scalar

FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
Number = int | float | date


@dataclass(frozen=True, slots=True)
class _Allowed:
    """The values that an expression may have where a condition is true."""

    values: frozenset[Scalar] | None = None  # None: any
    without: frozenset[Scalar] = frozenset()
    lows: tuple[tuple[Number, bool], ...] = ()  # bounds, and whether they are allowed themselves
    highs: tuple[tuple[Number, bool], ...] = ()

    def admits(self, value: Scalar) -> bool:
        """May the expression have this value? Values that cannot be compared are admitted."""
        if (self.values is not None and value not in self.values) or value in self.without:
            return False
        above = all(_is_below(low, value) for low in self.lows)
        return above and all(_is_below((value, closed), high) for high, closed in self.highs)

    def excludes(self, other: "_Allowed") -> bool:
        """Is there no value that both admit?"""
        for one, two in ((self, other), (other, self)):
            if one.values is not None:
                return not any(one.admits(value) and two.admits(value) for value in one.values)
        ends = product((*self.lows, *other.lows), (*self.highs, *other.highs))
        return any(not _is_below((low, closed and also), high) for (low, closed), (high, also) in ends)

    def meet(self, other: "_Allowed") -> "_Allowed":
        """What both admit."""
        values = other.values if self.values is None else self.values
        if self.values is not None and other.values is not None:
            values = self.values & other.values
        return _Allowed(values, self.without | other.without, self.lows + other.lows, self.highs + other.highs)


def are_disjoint(one: Expression, two: Expression) -> bool:
    """Is it certain, from what is written, that no row meets both conditions?"""
    first, second = _find_facts(one), _find_facts(two)
    return any(first[part].excludes(second[part]) for part in first.keys() & second.keys())


def _is_below(low: tuple[object, bool], high: object) -> bool:
    """Is low < high, or equal to it where that is allowed? True where they cannot be compared."""
    value, closed = low
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (value, high))
    if not numbers and not (isinstance(value, date) and type(value) is type(high)):
        return True
    return bool(value <= high if closed else value < high)  # type: ignore[operator]


def _find_facts(condition: Expression) -> dict[Expression, _Allowed]:
    """What is known of expressions where the condition is true."""
    found = {condition: _Allowed(frozenset([True]))}
    match condition:
        case Call("and", arguments):
            _add_facts(found, (fact for argument in arguments for fact in _find_facts(argument).items()))
        case Call("or", arguments):
            _add_facts(found, _find_common([_find_facts(argument) for argument in arguments]))
        case Call("not", (inner,)):
            found[inner] = _Allowed(frozenset([False]))
        case Call("is null", (inner,)):
            found[inner] = _Allowed(frozenset([None]))
        case Call("=" | "<>" | "<" | "<=" | ">" | ">=" as function, (inner, Literal(value))):
            found[inner] = _compare(function, value)
        case Call("=" | "<>" | "<" | "<=" | ">" | ">=" as function, (Literal(value), inner)):
            found[inner] = _compare(FLIPPED[function], value)
    return found


def _add_facts(found: dict[Expression, _Allowed], facts: Iterable[tuple[Expression, _Allowed]]) -> None:
    for part, allowed in facts:
        found[part] = found[part].meet(allowed) if part in found else allowed


def _find_common(several: list[dict[Expression, _Allowed]]) -> list[tuple[Expression, _Allowed]]:
    """Of one of several conditions: an expression whose values all of them list has one of these values."""
    shared = set(several[0]).intersection(*several[1:])
    return [
        (part, _Allowed(frozenset[Scalar]().union(*(facts[part].values or () for facts in several))))
        for part in shared
        if all(facts[part].values is not None for facts in several)
    ]


def _compare(function: str, value: Scalar) -> _Allowed:
    """A comparison is never true of NULL."""
    known = _Allowed(without=frozenset([None]))
    if function == "=":
        return replace(known, values=frozenset([value]))
    if function == "<>":
        return replace(known, without=known.without | {value})
    if not isinstance(value, int | float | date) or isinstance(value, bool):
        return known
    end = (value, "=" in function)
    return replace(known, lows=(end,)) if ">" in function else replace(known, highs=(end,))
