"""What the catalog says about different values: how many there can be, and what they add up to."""

from collections.abc import Sequence
from math import prod

from sfumato.query.query import Typed


def count_values(values: Sequence[Typed]) -> float | None:
    """The most different combinations of values; None: the declarations do not bound them."""
    counts = [_count_values(value) for value in values]
    known = [count for count in counts if count is not None]
    return float(prod(known)) if len(known) == len(counts) else None


def _count_values(value: Typed) -> float | None:
    if value.values is not None:
        return float(len(value.values))
    if value.lower is not None and value.upper is not None and (value.whole or value.type == "date"):
        return value.upper - value.lower + 1
    return None


def bound_different_sum(value: Typed) -> tuple[float | None, float | None]:
    """The smallest and the largest sum of different values, where their number is bounded."""
    most, lower, upper = _count_values(value), value.lower or 0.0, value.upper or 0.0
    if value.values is not None:
        numbers = [float(listed_value) for listed_value in value.values if isinstance(listed_value, (int, float))]
        return sum(number for number in numbers if number < 0), sum(number for number in numbers if number > 0)
    if most is None:
        return (0.0 if lower >= 0 else None), (0.0 if upper <= 0 else None)
    return min(most * lower, 0.0), max(most * upper, 0.0)
