"""Unique keys in plain Python: which of a person's rows stays where several share a key (docs/claims/K-78.md)."""

import hashlib
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from datetime import datetime

from sfumato.catalog.columns import ColumnDeclaration, Real
from sfumato.catalog.dataset import Table
from sfumato.ingest.hidden_names import ROWS_OF_UNIT, UNIT
from sfumato.kernel.expressions import Scalar

Row = dict[str, Scalar]

_FAR = 2.0**62
_FINE = 2.0**53


def drop_repeated_keys(table: Table, rows: Sequence[Row]) -> list[Row]:
    """Of the rows of one person that share a key without NULLs, the one that is least by the hash of its content.

    The keys of the table are handled one after the other. Then the rows of each person are counted again.
    """
    left = list(rows)
    for key in table.unique:
        best: dict[Hashable, Row] = {}
        without: list[Row] = []
        for row in left:
            values = tuple(row[name] if name in row else row[UNIT] for name in key)
            if None in values:
                without.append(row)
                continue
            held = (row[UNIT], *values)
            if held not in best or _order(table, row) < _order(table, best[held]):
                best[held] = row
        left = [*without, *best.values()]
    if table.unique:
        counted, most = Counter(row[UNIT] for row in left), table.max_rows_per_unit
        left = [{**row, ROWS_OF_UNIT: counted[row[UNIT]] if counted[row[UNIT]] > most else 1} for row in left]
    return left


def _order(table: Table, row: Row) -> tuple[str, bytes, list[float]]:
    kept = {name: declared for name, declared in sorted(table.columns.items()) if name != table.unit}
    content = b"".join(_write(row[name], declared) for name, declared in kept.items())
    reals = [value for name in kept if isinstance(value := row[name], float)]
    return hashlib.md5(content, usedforsecurity=False).hexdigest(), content, reals


def _write(value: Scalar, declared: ColumnDeclaration) -> bytes:
    """The length of a value's text, and the text."""
    if value is None:
        return b"-"
    text = _write_real(float(value)) if isinstance(declared, Real) and isinstance(value, int | float) else _name(value)
    written = text.encode()
    return f"{len(written)}:".encode() + written


def _write_real(value: float) -> str:
    """A double as two whole numbers."""
    below = math.floor(value) if abs(value) < _FAR else 0
    return f"{below}/{math.floor((value - below) * _FINE)}" if abs(value) < _FAR else "far"


def _name(value: Scalar) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime) and value.microsecond:  # an engine writes no zeros at the end of a fraction
        return str(value).rstrip("0")
    return str(value)
