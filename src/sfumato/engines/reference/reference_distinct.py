"""Different values in plain Python: those that kept pairs of a cell and a value have."""

import hashlib
import math
from collections.abc import Iterable, Sequence

from sfumato.engines.measured_cells import KeyParts, make_key
from sfumato.engines.reference.reference_rows import WeightedRow, key_text, quantise
from sfumato.kernel.expressions import Column, Scalar, may_be_negative_zero
from sfumato.kernel.plan import BoundedPlan, Different, DistinctSum, Key
from sfumato.row_meanings.evaluate import Row, evaluate

Placed = tuple[WeightedRow, int]  # a row, and the number of its cell
FAR, FINE = 2.0**62, 2.0**53
PRIME = 2**31 - 1
FIGURES = str.maketrans("abcdef", "012345")


def count_different(quantity: Different, placed: Sequence[Placed], cells: int, plan: BoundedPlan) -> list[int]:
    """The number of different values in each cell, or their sum. A person keeps at most `reach` pairs."""
    keys = (*plan.keys, *quantity.keys)
    pairs_of_unit: dict[Scalar, dict[tuple[int, KeyParts], list[Scalar]]] = {}
    for number, (row, cell) in enumerate(placed):
        values = read_keys(keys, row.values)
        mine = make_key(values[len(plan.keys) :])
        if all(map(_is_counted, quantity.keys, mine)):
            unit: Scalar = number if plan.unit.per_row else row.unit
            pairs_of_unit.setdefault(unit, {}).setdefault((cell, mine), values)
    present: set[tuple[int, KeyParts]] = set()
    for unit, pairs in pairs_of_unit.items():
        ordered = sorted(pairs, key=lambda pair: _place(keys, pairs[pair], unit))
        present.update(ordered if plan.unit.per_row else ordered[: plan.reach])
    totals = [0] * cells
    for cell, mine in present:
        if isinstance(quantity, DistinctSum):
            totals[cell] += quantise(mine[0][1], quantity.grid) - quantity.offset
        else:
            totals[cell] += 1
    return totals


def read_keys(keys: Iterable[Key], row: Row) -> list[Scalar]:
    """The values of a row's keys: a column as it is stored."""
    return [
        row[key.expression.name] if isinstance(key.expression, Column) else evaluate(key.expression, row)
        for key in keys
    ]


def find_place(texts: Sequence[str], unit: Scalar) -> int:
    """The place of a cell or pair in the order of one unit, which decides which of too many are kept."""
    first, second = _read_numbers("".join(f"{text}:" for text in texts))
    name = str(unit)
    short = name.isascii() and name.isdigit() and len(name) <= 15
    number = int(name) % PRIME if short else _read_numbers(name)[0]
    return (first * number + second) % PRIME


def _read_numbers(text: str) -> tuple[int, int]:
    """Two numbers from a hash of a text: each of 15 digits, modulo a prime."""
    digits = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest().translate(FIGURES)
    return int(digits[:15]) % PRIME, int(digits[15:30]) % PRIME


def _is_counted(key: Key, part: tuple[str, Scalar]) -> bool:
    return part[1] is not None if key.values is None else part in make_key(key.values)


def _place(keys: Sequence[Key], values: Sequence[Scalar], unit: Scalar) -> tuple[int, list[str], list[float]]:
    """The sort key of a unit's pairs. Different pairs have different ones."""
    doubles = [may_be_negative_zero(key.expression) for key in keys]
    texts = [
        _write_real(float(value)) if double else key_text(value)  # type: ignore[arg-type] # a double is a number
        for value, double in zip(values, doubles, strict=True)
    ]
    return find_place(texts, unit), texts, [float(v) for v, double in zip(values, doubles, strict=True) if double]  # type: ignore[arg-type]


def _write_real(value: float) -> str:
    """A double as two whole numbers."""
    if not abs(value) < FAR:
        return "far"
    below = math.floor(value)
    return f"{below}/{math.floor((value - below) * FINE)}"
