"""Aggregates of values that are linear in one another: SUM(x), SUM(x + 1) and AVG(2 * x) need one set of measurements.

SUM(a * x + b) = a * SUM(x) + b * COUNT(x), where COUNT(x) is the number of rows in which x is not NULL. All but the
measured value are computed from released numbers, which is post-processing. A wrong rule here makes an answer wrong.
It cannot make it less private: the kernel derives the loss from what is measured.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.kernel.expressions import Call, Expression, Literal
from sfumato.query.query import Aggregate, Typed

FOLDED = ("COUNT", "SUM", "AVG", "VARIANCE", "STDDEV")


@dataclass(frozen=True, slots=True)
class Repeat:
    """An aggregate of factor * value + shift. `aggregate` is the same function of `value`, which is measured."""

    aggregate: Aggregate
    factor: Fraction = Fraction(1)
    shift: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class _Line:
    """factor * core + shift, as it is written."""

    core: Expression
    factor: Fraction = Fraction(1)
    shift: Fraction = Fraction(0)


def fold_repeats(aggregates: Sequence[Aggregate]) -> dict[Aggregate, Repeat]:
    """Find, for each aggregate, the value that is measured for it. Values that are no repeats are their own."""
    found = {aggregate: Repeat(aggregate) for aggregate in aggregates}
    cores: dict[Expression, dict[Typed, _Line]] = {}
    for aggregate in aggregates:
        if aggregate.function in FOLDED and aggregate.value is not None:
            line = _read_line(aggregate.value.expression)
            cores.setdefault(line.core, {})[aggregate.value] = line
    for lines in cores.values():
        if len(lines) == 1:
            continue  # a value that no other repeats
        base = min(lines, key=lambda value: lines[value].factor != 1 or lines[value].shift != 0)  # the plain one
        for aggregate in aggregates:
            value = aggregate.value
            if value is not None and value in lines and aggregate.function in FOLDED:
                factor = lines[value].factor / lines[base].factor
                shift = lines[value].shift - factor * lines[base].shift
                if _is_same_line(value, base, factor, shift):
                    found[aggregate] = Repeat(replace(aggregate, value=base), factor, shift)
    return found


def list_measured(repeats: dict[Aggregate, Repeat]) -> list[Aggregate]:
    """List the aggregates of measured values. A sum that is shifted also needs the count of its value."""
    measured = [repeat.aggregate for repeat in repeats.values()]
    for repeat in repeats.values():
        value = repeat.aggregate.value
        if repeat.shift and repeat.aggregate.function == "SUM" and value is not None:
            measured.append(Aggregate("COUNT", value if value.nullable else None))
    return list(dict.fromkeys(measured))


def _is_same_line(value: Typed, base: Typed, factor: Fraction, shift: Fraction) -> bool:
    """Is the value clamped where the base is, and NULL where it is? Then it is the base on another scale."""
    if not (value.bounded and base.bounded) or value.nullable != base.nullable:
        return False
    ends = sorted(float(factor * Fraction(end) + shift) for end in (base.lower or 0, base.upper or 0))
    size = max(map(abs, ends))
    wanted = (value.lower or 0, value.upper or 0)
    return all(
        math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-12 * size) for one, two in zip(ends, wanted, strict=True)
    )


def _read_line(expression: Expression) -> _Line:  # noqa: PLR0911 - one return a form
    """Read an expression as a multiple of another one, plus a constant. What is not linear is its own core."""
    match expression:
        case Call("neg", (inner,)):
            return _stretch(_read_line(inner), Fraction(-1))
        case Call("+" | "-" as sign, (inner, Literal(int() | float() as value))):
            return _move(_read_line(inner), Fraction(value) * (1 if sign == "+" else -1))
        case Call("+", (Literal(int() | float() as value), inner)):
            return _move(_read_line(inner), Fraction(value))
        case Call("-", (Literal(int() | float() as value), inner)):
            return _move(_stretch(_read_line(inner), Fraction(-1)), Fraction(value))
        case Call("*", (inner, Literal(int() | float() as value)) | (Literal(int() | float() as value), inner)) if (
            value
        ):
            return _stretch(_read_line(inner), Fraction(value))
        case Call("/", (inner, Literal(int() | float() as value))) if value:
            return _stretch(_read_line(inner), 1 / Fraction(value))
        case _:
            return _Line(expression)


def _stretch(line: _Line, factor: Fraction) -> _Line:
    return _Line(line.core, line.factor * factor, line.shift * factor)


def _move(line: _Line, shift: Fraction) -> _Line:
    return replace(line, shift=line.shift + shift)
