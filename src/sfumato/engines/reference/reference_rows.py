"""The rows of a source, with their units and weights, in plain Python."""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sfumato.engines.sql.source_sql import MOST_ADDED
from sfumato.ingest.hidden_names import HIDDEN, UNIT
from sfumato.kernel.expressions import Expression, Scalar
from sfumato.kernel.plan import Grid
from sfumato.kernel.row_sources import (
    Capped,
    Derived,
    Join,
    PerKey,
    PerUnit,
    PublicScan,
    Scan,
    Source,
    Union,
    UnitColumn,
    derive_extent,
)
from sfumato.row_meanings.date_meanings import moment_text
from sfumato.row_meanings.evaluate import Row, evaluate

Tables = Mapping[str, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class WeightedRow:
    """A row of a source, its unit, and the number that its weight divides by."""

    values: Row
    unit: str
    held: int


def read_rows(tables: Tables, source: Source) -> list[WeightedRow]:
    """Read the rows of a source, with their units and weights. The unit is a column too, of a private source."""
    rows = _read_operator(tables, source)
    if not derive_extent(source).private:
        return rows
    return [replace(row, values=_combine(row.values, {UNIT: row.unit})) for row in rows]


def _read_operator(tables: Tables, source: Source) -> list[WeightedRow]:  # noqa: PLR0911 - one return an operator
    match source:
        case Scan():
            return _scan(tables, source)
        case PublicScan(name, _, prefix):
            return [WeightedRow(_add_prefix(row, prefix), "", 1) for row in tables[name]]
        case Derived(inner, filters, columns):
            return [
                replace(row, values={name: evaluate(expression, row.values) for name, expression in columns})
                for row in read_rows(tables, inner)
                if passes(filters, row.values)
            ]
        case Join():
            return _join(tables, source)
        case Union(parts):
            whole = derive_extent(source).numerator
            return [
                replace(row, held=row.held * (whole // derive_extent(part).numerator))
                for part in parts
                for row in read_rows(tables, part)
            ]
        case Capped(inner, most):
            inside = read_rows(tables, inner)
            owned = Counter(row.unit for row in inside)
            return [replace(row, held=max(owned[row.unit], most)) for row in inside]
        case PerUnit(inner, filters, columns):
            units: dict[str, list[Row]] = {}
            for row in read_rows(tables, inner):
                if passes(filters, row.values):
                    units.setdefault(row.unit, []).append(row.values)
            return [
                WeightedRow({column.name: _of_unit(column, rows) for column in columns}, unit, 1)
                for unit, rows in units.items()
            ]
        case PerKey():
            return _group_by_key(tables, source)


def _group_by_key(tables: Tables, source: PerKey) -> list[WeightedRow]:
    """One row for each unit and key, with the weight of its unit's rows."""
    groups: dict[str, dict[tuple[Scalar, ...], list[Row]]] = {}
    for row in read_rows(tables, source.source):
        if passes(source.filters, row.values):
            values = tuple(_match(evaluate(key, row.values)) for _, key in source.keys)
            groups.setdefault(row.unit, {}).setdefault(values, []).append(row.values)
    return [
        WeightedRow(
            {name: value for (name, _), value in zip(source.keys, values, strict=True)}
            | {column.name: _of_unit(column, rows) for column in source.columns},
            unit,
            max(len(mine), source.max_rows),
        )
        for unit, mine in groups.items()
        for values, rows in mine.items()
    ]


def _match(value: Scalar) -> Scalar:
    return value + 0.0 if isinstance(value, float) else value  # -0.0 is 0.0


def _scan(tables: Tables, scan: Scan) -> list[WeightedRow]:
    rows = tables[scan.table]
    if scan.most_met is not None:
        rows = _cap_rows(rows, scan.most_met)
    owned = Counter(row.get(UNIT) for row in rows)
    return [
        WeightedRow(
            _add_prefix(row, scan.prefix),
            str(row.get(UNIT)),
            max(owned[row[UNIT]], scan.max_rows) if UNIT in row else 1,
        )
        for row in rows
    ]


def _join(tables: Tables, join: Join) -> list[WeightedRow]:
    found, private = [], join.multiplicity is None
    others: dict[str, list[WeightedRow]] = {}
    for two in read_rows(tables, join.right):
        others.setdefault(two.unit if private else "", []).append(two)
    nulls = _make_nulls(join.right)
    for row in read_rows(tables, join.left):
        mine = [evaluate(left, row.values) for left, _ in join.on]
        met = [
            partner
            for partner in others.get(row.unit if private else "", ())
            if None not in mine and mine == [evaluate(right, partner.values) for _, right in join.on]
        ]
        for partner in met:
            held = row.held * partner.held if private and not join.meets_one else row.held
            found.append(WeightedRow(_combine(row.values, partner.values), row.unit, held))
        if join.outer and not met:
            weighed = private and not join.meets_one
            held = row.held * derive_extent(join.right).numerator if weighed else row.held
            found.append(WeightedRow(_combine(row.values, nulls), row.unit, held))
    return found


def _cap_rows(rows: Sequence[Row], most: int) -> list[Row]:
    """Keep at most `most` rows of a unit: those whose content is least by a hash."""
    units: dict[Scalar, list[Row]] = {}
    for row in rows:
        units.setdefault(row[UNIT], []).append(row)
    return [row for mine in units.values() for row in (mine if len(mine) <= most else sorted(mine, key=_place)[:most])]


def _place(row: Row) -> tuple[str, bytes, list[float]]:
    """The sort key of a unit's rows. Rows with equal keys are equal in everything."""
    declared = [row[name] for name in sorted(row) if not name.startswith(HIDDEN)]
    contents = [None if value is None else _content(value) for value in declared]
    text = "".join("-" if content is None else f"{len(content.encode())}:{content}" for content in contents).encode()
    reals = [value for value in declared if isinstance(value, float)]
    return hashlib.md5(text, usedforsecurity=False).hexdigest(), text, reals


def _content(value: Scalar) -> str:
    """The text of a value; a double is written as two whole numbers."""
    if not isinstance(value, float):
        return key_text(value)
    whole = math.floor(value)
    return f"{whole}/{math.floor((value - whole) * 2.0**53)}" if abs(value) < 2.0**62 else "far"


class _Unmet(dict[str, Scalar]):
    """A row of an outer join without a partner: every column of the other side is NULL."""

    def __missing__(self, name: str) -> Scalar:
        return None


def _combine(one: Row, two: Row) -> Row:
    made = _Unmet if isinstance(one, _Unmet) or isinstance(two, _Unmet) else dict
    return made({**one, **two})


def _make_nulls(source: Source) -> Row:
    """The right side of an outer join's row without a partner: NULLs, under the names that are known."""
    match source:
        case Derived(columns=columns):
            return {name: None for name, _ in columns}
        case PerUnit(columns=unit_columns):
            return {column.name: None for column in unit_columns}
        case PerKey(columns=unit_columns, keys=keys):
            return {column.name: None for column in unit_columns} | {name: None for name, _ in keys}
        case Union(parts):
            return _make_nulls(parts[0])
        case Join(left, right):
            return _combine(_make_nulls(left), _make_nulls(right))
        case _:
            return _Unmet()


def _add_prefix(row: Row, prefix: str) -> Row:
    return {prefix + name: value for name, value in row.items()} if prefix else row


def passes(filters: Sequence[Expression], row: Row) -> bool:
    """Is every filter true for the row? NULL is not."""
    return all(evaluate(condition, row) is True for condition in filters)


def key_text(value: Scalar) -> str:
    """The text of a key's value, as the SQL engines write it."""
    if isinstance(value, datetime):
        return moment_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value + 0.0 if isinstance(value, float) else value)  # -0.0 is 0.0


def _of_unit(column: UnitColumn, rows: Sequence[Row]) -> Scalar:  # noqa: PLR0911 - one return a function
    """An aggregate over one unit's rows, as a double, or as the day or moment that it is."""
    if column.function == "count":
        there = [row for row in rows if column.value is None or evaluate(column.value, row) is not None]
        return float(min(len(there), column.upper))
    values = [evaluate(column.value, row) for row in rows]  # type: ignore[arg-type]
    known = [value for value in values if value is not None]
    if column.function == "distinct":
        return float(min(len({_match(value) for value in known}), column.upper))
    if column.function in ("earliest", "latest"):
        return _find_end(column.function, known)
    steps = [_nearest(float(value), column.exponent) for value in values if value is not None]  # type: ignore[arg-type]
    if not steps:
        return None
    if column.function in ("min", "max"):
        chosen = min(steps) if column.function == "min" else max(steps)
        return max(column.lower, min(column.upper, chosen)) * 2.0**column.exponent
    wide = [max(-MOST_ADDED, min(MOST_ADDED, step)) for step in steps]
    if column.function == "sum":
        return max(column.lower, min(column.upper, sum(wide))) * 2.0**column.exponent
    return float(max(-MOST_ADDED, min(MOST_ADDED, sum(wide)))) / len(wide) * 2.0**column.exponent


def _find_end(function: str, known: Sequence[Scalar]) -> Scalar:
    """The earliest or the latest of days or moments; NULL of none."""
    ordered = sorted(known)  # type: ignore[type-var]
    return None if not ordered else ordered[0 if function == "earliest" else -1]


def quantise(value: Scalar, grid: Grid) -> int:
    """Round a value to its grid and clamp it (an infinity becomes a bound)."""
    return max(grid.lower, min(grid.upper, _nearest(float(value), grid.exponent)))  # type: ignore[arg-type]


def _nearest(value: float, exponent: int) -> int:
    scaled = value * 2.0**-exponent
    if math.isinf(scaled):
        return (1 << 1100) if scaled > 0 else -(1 << 1100)
    below = math.floor(scaled)
    return below + (scaled - below >= 0.5)
