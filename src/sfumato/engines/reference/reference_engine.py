"""Slow, plain Python: what the other engines must equal, bit for bit."""

import hashlib
import math
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from sfumato.catalog.names import is_like
from sfumato.engines.engine import Added, Bins, Cells, addends, bin_numbers, compute_integers
from sfumato.engines.reference.reference_dates import DATE_FUNCTIONS, apply_to_dates, moment_text
from sfumato.engines.sql.source_sql import MOST_ADDED
from sfumato.ingest.hidden_names import HIDDEN, UNIT
from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal, Scalar
from sfumato.kernel.plan import (
    ROW_WEIGHT_EXPONENT,
    BoundedPlan,
    Choice,
    Count,
    Curve,
    Extreme,
    Grid,
    Halves,
    Keys,
    Mode,
    People,
    Quantiles,
    Sum,
    Thirds,
    digest,
    exponent_of,
)
from sfumato.kernel.release import ExactAggregates
from sfumato.kernel.row_sources import Derived, Join, PerUnit, PublicScan, Scan, Source, Union, UnitColumn, extent
from sfumato.kernel.split_sums import parts_of

Row = Mapping[str, Scalar]
NUMERIC = (ColumnType.INTEGER, ColumnType.REAL)


@dataclass(frozen=True, slots=True)
class Held:
    """A row of a source, whose it is, and what its weight divides by."""

    values: Row
    unit: str
    held: int


Placed = tuple[Held, int]  # a row, and the number of its cell


class ReferenceEngine:
    """Rows as mappings from column names to values, as a snapshot holds them."""

    def __init__(self, tables: Mapping[str, Sequence[Row]]) -> None:
        self._tables = tables

    def check(self, plan: BoundedPlan) -> None:
        """Whatever a plan can say can be run."""

    def close(self) -> None:
        """Nothing is open: the rows are the caller's."""

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Add up row by row."""
        inside = [row for row in self._rows(plan.source) if _passes(plan.filters, row.values)]
        cells = Cells(plan)
        if cells.discovered:
            for row in inside:
                cells.name(key_values(plan, row.values))
        placed = [(row, cell) for row in inside if (cell := cells.find(key_values(plan, row.values))) is not None]
        integers: dict[str, list[int]] = {}
        bins: dict[str, list[Bins]] = {}
        for measurement in plan.measurements:
            match measurement.quantity:
                case Count() | Sum() | Halves() | Thirds() | Curve() as added:
                    integers[measurement.name] = _add_up(added, placed, len(cells), plan)
                case People() | Keys():
                    integers[measurement.name] = _count_units(placed, len(cells), plan)
                case Quantiles() | Extreme() | Mode() as choice:
                    bins[measurement.name] = _fill_bins(choice, placed, len(cells), plan)
                case quantity:
                    assert_never(quantity)
        return ExactAggregates(digest(plan), integers, cells.keys, bins)

    def _rows(self, source: Source) -> list[Held]:
        """The rows of a source, each with its unit and what its weight divides by."""
        match source:
            case Scan():
                return self._scanned(source)
            case PublicScan(name, _, prefix):
                return [Held(_prefixed(row, prefix), "", 1) for row in self._tables[name]]
            case Derived(inner, filters, columns):
                return [
                    replace(each, values={name: evaluate(made, each.values) for name, made in columns})
                    for each in self._rows(inner)
                    if _passes(filters, each.values)
                ]
            case Join():
                return self._joined(source)
            case Union(parts):
                whole = extent(source).numerator
                return [
                    replace(each, held=each.held * (whole // extent(part).numerator))
                    for part in parts
                    for each in self._rows(part)
                ]
            case PerUnit(inner, filters, columns):
                units: dict[str, list[Row]] = {}
                for each in self._rows(inner):
                    if _passes(filters, each.values):
                        units.setdefault(each.unit, []).append(each.values)
                return [
                    Held({column.name: _of_unit(column, rows) for column in columns}, unit, 1)
                    for unit, rows in units.items()
                ]

    def _scanned(self, scan: Scan) -> list[Held]:
        rows = self._tables[scan.table]
        if scan.most_met is not None:
            rows = _met(rows, scan.most_met)
        owned = Counter(row.get(UNIT) for row in rows)
        return [
            Held(
                _prefixed(row, scan.prefix),
                str(row.get(UNIT)),
                max(owned[row[UNIT]], scan.max_rows) if UNIT in row else 1,
            )
            for row in rows
        ]

    def _joined(self, join: Join) -> list[Held]:
        found, private = [], join.multiplicity is None
        others = self._rows(join.right)
        nothing = _nothing(join.right)
        for one in self._rows(join.left):
            mine = [evaluate(left, one.values) for left, _ in join.on]
            met = [
                two
                for two in others
                if (not private or one.unit == two.unit)
                and None not in mine
                and mine == [evaluate(right, two.values) for _, right in join.on]
            ]
            for two in met:
                held = one.held * two.held if private else one.held
                found.append(Held(_beside(one.values, two.values), one.unit, held))
            if join.outer and not met:
                held = one.held * extent(join.right).numerator if private else one.held
                found.append(Held(_beside(one.values, nothing), one.unit, held))
        return found


def _met(rows: Sequence[Row], most: int) -> list[Row]:
    """The rows that a join meets: of each unit the `most` whose content is least by a hash."""
    units: dict[Scalar, list[Row]] = {}
    for row in rows:
        units.setdefault(row[UNIT], []).append(row)
    return [row for mine in units.values() for row in (mine if len(mine) <= most else sorted(mine, key=_place)[:most])]


def _place(row: Row) -> tuple[str, bytes, list[float]]:
    """What puts one unit's rows in order; rows that are alike in it are equal in everything."""
    declared = [row[name] for name in sorted(row) if not name.startswith(HIDDEN)]
    content = "".join("-" if each is None else f"{len(_content(each).encode())}:{_content(each)}" for each in declared)
    text = content.encode()
    return hashlib.md5(text, usedforsecurity=False).hexdigest(), text, [x for x in declared if isinstance(x, float)]


def _content(value: Scalar) -> str:
    """As a key is written, but a double as two whole numbers."""
    if not isinstance(value, float):
        return _key_text(value)
    whole = math.floor(value)
    return f"{whole}/{math.floor((value - whole) * 2.0**53)}" if abs(value) < 2.0**62 else "far"


class _Unmet(dict[str, Scalar]):
    """A row beside which a table was not met: whatever is asked of that table is NULL."""

    def __missing__(self, name: str) -> Scalar:
        return None


def _beside(one: Row, two: Row) -> Row:
    made = _Unmet if isinstance(one, _Unmet) or isinstance(two, _Unmet) else dict
    return made({**one, **two})


def _nothing(source: Source) -> Row:
    """A row of a right side that was not met: NULLs, under the names that are known."""
    match source:
        case Derived(columns=columns):
            return {name: None for name, _ in columns}
        case PerUnit(columns=unit_columns):
            return {each.name: None for each in unit_columns}
        case Union(parts):
            return _nothing(parts[0])
        case Join(left, right):
            return _beside(_nothing(left), _nothing(right))
        case _:
            return _Unmet()


def _prefixed(row: Row, prefix: str) -> Row:
    return {prefix + name: value for name, value in row.items()} if prefix else row


def _passes(filters: Sequence[Expression], row: Row) -> bool:
    return all(evaluate(condition, row) is True for condition in filters)


def key_values(plan: BoundedPlan, row: Row) -> list[Scalar]:
    """The values of a row's keys: a column as it is stored."""
    return [
        row[key.expression.name] if isinstance(key.expression, Column) else evaluate(key.expression, row)
        for key in plan.keys
    ]


def _key_text(value: Scalar) -> str:
    if isinstance(value, datetime):
        return moment_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value + 0.0 if isinstance(value, float) else value)  # there is one zero


def _order(texts: Sequence[str], unit: Scalar) -> str:
    text = "".join(f"{each}:" for each in texts) + str(unit)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _count_units(placed: Sequence[Placed], cells: int, plan: BoundedPlan) -> list[int]:
    """The number of units in each cell. A unit is counted in a bounded number of cells: those least by a hash."""
    cells_of_unit: dict[Scalar, dict[int, tuple[str, ...]]] = {}
    for number, (row, cell) in enumerate(placed):
        unit: Scalar = number if plan.unit.per_row else row.unit
        cells_of_unit.setdefault(unit, {})[cell] = tuple(map(_key_text, key_values(plan, row.values)))
    counted = [0] * cells
    for unit, reached in cells_of_unit.items():
        ordered = sorted((_order(texts, unit), texts, cell) for cell, texts in reached.items())
        for _, _, cell in ordered[: plan.max_groups_per_unit]:
            counted[cell] += 1
    return counted


def _fill_bins(choice: Choice, placed: Sequence[Placed], cells: int, plan: BoundedPlan) -> list[Bins]:
    """The weight in each bin of each cell."""
    most, number_of = extent(plan.source).numerator, bin_numbers(choice)
    filled = [Bins() for _ in range(cells)]
    for row, cell in placed:
        number = number_of(_chosen_value(choice, row))
        if number is not None:
            weight = 1 if plan.unit.per_row else (1 << -ROW_WEIGHT_EXPONENT) * most // max(row.held, most)
            filled[cell][number] = filled[cell].get(number, 0) + weight
    return filled


def _chosen_value(choice: Choice, row: Held) -> Scalar:
    """The value that decides the bin: in steps, or from a public list, where a column is taken as it is stored."""
    if isinstance(choice, Mode) and isinstance(choice.value, Column):
        return row.values[choice.value.name]
    value = evaluate(choice.value, row.values)
    return value if isinstance(choice, Mode) or value is None else quantise(value, choice.grid)


def _of_unit(column: UnitColumn, rows: Sequence[Row]) -> Scalar:
    """An aggregate over one unit's rows, as a double."""
    if column.function == "count":
        there = [row for row in rows if column.value is None or evaluate(column.value, row) is not None]
        return float(min(len(there), column.upper))
    values = [evaluate(column.value, row) for row in rows]  # type: ignore[arg-type]
    steps = [_nearest(float(value), column.exponent) for value in values if value is not None]  # type: ignore[arg-type]
    if not steps:
        return None
    if column.function in ("min", "max"):
        chosen = min(steps) if column.function == "min" else max(steps)
        return max(column.lower, min(column.upper, chosen)) * 2.0**column.exponent
    wide = [max(-MOST_ADDED, min(MOST_ADDED, each)) for each in steps]
    if column.function == "sum":
        return max(column.lower, min(column.upper, sum(wide))) * 2.0**column.exponent
    return float(max(-MOST_ADDED, min(MOST_ADDED, sum(wide)))) / len(wide) * 2.0**column.exponent


def _add_up(quantity: Added, placed: Sequence[Placed], cells: int, plan: BoundedPlan) -> list[int]:
    """The integers of a quantity that adds up rows, cell by cell."""
    most, per_row = extent(plan.source).numerator, plan.unit.per_row
    totals = [[0] * quantity.width for _ in range(cells)]
    for row, cell in placed:
        for place, added in enumerate(_contributions(quantity, row, most, per_row=per_row)):
            totals[cell][place] += added
    return [integer for total in totals for integer in compute_integers(quantity, total, plan)]


def _contributions(quantity: Added, row: Held, most: int, *, per_row: bool) -> tuple[int, ...]:
    """What one row adds to each of the sums that a quantity is computed from."""
    match quantity:
        case Thirds(value, grid) | Curve(value, grid):
            found = evaluate(value, row.values)
            if found is None:
                return (0,) * quantity.width
            return tuple(_weighed(part, row, most) for part in parts_of(quantity, quantise(found, grid)))
        case Count() | Sum() | Halves():
            return tuple(_contribution(addend, row, most, per_row=per_row) for addend in addends(quantity))
        case _:
            assert_never(quantity)


def _contribution(addend: Count | Sum, row: Held, most: int, *, per_row: bool) -> int:
    found = None if addend.value is None else evaluate(addend.value, row.values)
    if addend.value is not None and found is None:
        return 0
    if isinstance(addend, Sum):
        return _weighed(quantise(found, addend.grid) - addend.offset, row, most)
    return _weighed(1 << -exponent_of(addend, per_row=per_row), row, most)


def _weighed(steps: int, row: Held, most: int) -> int:
    return steps if row.held <= most else (abs(steps) * most // row.held) * (1 if steps >= 0 else -1)  # toward zero


def quantise(value: Scalar, grid: Grid) -> int:
    """Round a value to its grid and clamp it (an infinity becomes a bound)."""
    return max(grid.lower, min(grid.upper, _nearest(float(value), grid.exponent)))  # type: ignore[arg-type]


def _nearest(value: float, exponent: int) -> int:
    scaled = value * 2.0**-exponent
    if math.isinf(scaled):
        return (1 << 1100) if scaled > 0 else -(1 << 1100)
    below = math.floor(scaled)
    return below + (scaled - below >= 0.5)


def evaluate(expression: Expression, row: Row) -> Scalar:  # noqa: PLR0911 - one return a form
    """The value of an expression for one row. Numbers are doubles; NULL is None; every function is total."""
    match expression:
        case Literal(value):
            return float(value) if type(value) is int else value
        case Column(name, kind):
            value = row[name]
            return float(value) if kind in NUMERIC and value is not None else value  # type: ignore[arg-type]
        case Call("and" | "or" as function, arguments):
            decisive = function == "or"
            outcomes = [evaluate(each, row) for each in arguments]
            return decisive if decisive in outcomes else None if None in outcomes else not decisive
        case Call("case", arguments):
            pairs = zip(arguments[:-1:2], arguments[1::2], strict=False)
            for condition, outcome in pairs:
                if evaluate(condition, row) is True:
                    return evaluate(outcome, row)
            return evaluate(arguments[-1], row)
        case Call("is null", (argument,)):
            return evaluate(argument, row) is None
        case Call("coalesce", arguments):
            return next((found for each in arguments if (found := evaluate(each, row)) is not None), None)
        case Call(function, arguments, unit):
            values = [evaluate(argument, row) for argument in arguments]
            if None in values:
                return None
            return (
                apply_to_dates(function, unit or "", values) if function in DATE_FUNCTIONS else _apply(function, values)
            )


def _apply(function: str, values: Sequence[Scalar]) -> Scalar:  # noqa: PLR0911, PLR0912 - one line a function
    one: object = values[0]
    two: object = values[1] if len(values) > 1 else None
    match function, one, two:
        case "not", bool(), _:
            return not one
        case "=", _, _:
            return one == two
        case "<>", _, _:
            return one != two
        case (("<" | "<=" | ">" | ">="), _, _):
            return _compare(function, one, two)
        case "neg", float(), _:
            return -one
        case "abs", float(), _:
            return abs(one)
        case "floor", float(), _:
            return float(math.floor(one)) if math.isfinite(one) else one
        case "ceil", float(), _:
            return float(math.ceil(one)) if math.isfinite(one) else one
        case "+", float(), float():
            return one + two
        case "-", float(), float():
            return one - two
        case "*", float(), float():
            return one * two
        case "/", float(), float():
            return None if two == 0 else _divide(one, two)
        case "like", str(), str():
            return is_like(one, two)
    raise AssertionError(f"no such function: {function}")


def _divide(one: float, two: float) -> float:
    try:
        return one / two
    except OverflowError:
        return math.copysign(math.inf, one) * math.copysign(1, two)


def _compare(function: str, one: object, two: object) -> bool:
    if isinstance(one, str) and isinstance(two, str):
        one, two = one.encode(), two.encode()  # by bytes, as engines compare without a locale
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[function]
    return bool(compare(one, two))  # type: ignore[arg-type]
