"""Intervals of columns that combine released rows: shares of a total, running totals, differences to the row before.

The columns are simulated (simulated_columns.py). Only sums, averages and shifts over keys are combined here: a rank, or
a window that is ordered by noisy values, has no interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlglot
from sqlglot import exp

from sfumato.query.finish import ReleasedPath, find_path
from sfumato.query.query import Finish

SURE = 3.0  # standard deviations: a divisor must be at least this far from zero
Floats = npt.NDArray[np.float64]
COMPUTED: dict[type[exp.Expr], np.ufunc] = {exp.Add: np.add, exp.Sub: np.subtract, exp.Mul: np.multiply}


class NoInterval(Exception):
    """The column is not a smooth function of released numbers."""


def find_window_ends(
    finish: Finish, rows: Sequence[Mapping[str, Any]], simulated: Mapping[str, Floats], keys: Sequence[str], miss: float
) -> dict[str, tuple[Floats, Floats]]:
    """The two ends of each computed column, for each released row. `simulated` has rows by draws."""
    tree = sqlglot.parse_one(finish.sql, dialect="duckdb")
    path = find_path(tree) if isinstance(tree, exp.Select) else None
    if path is None or any(select.args.get("where") for select in path.selects):
        return {}
    table = _Columns(path, rows, simulated, tuple(keys))
    found = {}
    for place, name in enumerate(finish.columns):
        node = path.selects[0].expressions[place].unalias()
        if finish.unchanged[place] or not node.find(exp.Column):
            continue
        try:
            values = table.compute(node, 0)
        except NoInterval:
            continue
        ordered = np.sort(np.broadcast_to(values, (len(rows), table.draws)), axis=1)
        edge = min(int(miss / 2 * table.draws), table.draws // 2 - 1)
        if np.isfinite(ordered).all():
            found[name] = (ordered[:, edge], ordered[:, -1 - edge])
    return found


@dataclass(frozen=True, slots=True)
class _Columns:
    """Computes expressions over simulated columns."""

    path: ReleasedPath
    rows: Sequence[Mapping[str, Any]]
    simulated: Mapping[str, Floats]
    keys: tuple[str, ...]

    @property
    def draws(self) -> int:
        return int(next(iter(self.simulated.values())).shape[1])

    def compute(self, node: exp.Expr, level: int) -> Floats:  # noqa: PLR0911 - one return a form
        """An expression of the SELECT at this level, as rows by draws."""
        match node:
            case exp.Paren() | exp.Alias():
                return self.compute(node.this, level)
            case exp.Cast() if node.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT):
                return self.compute(node.this, level)
            case exp.Literal() if not node.is_string:
                return np.asarray(float(str(node.this)))
            case exp.Column():
                return self._read(node, level)
            case exp.Neg():
                return np.asarray(-self.compute(node.this, level))
            case exp.Round():
                digits = node.args.get("decimals")
                return np.round(self.compute(node.this, level), 0 if digits is None else int(str(digits.this)))
            case exp.Add() | exp.Sub() | exp.Mul():
                one, two = self.compute(node.this, level), self.compute(node.expression, level)
                return np.asarray(
                    one + two if isinstance(node, exp.Add) else one - two if isinstance(node, exp.Sub) else one * two
                )
            case exp.Div():
                return self._divide(self.compute(node.this, level), self.compute(node.expression, level))
            case exp.Window():
                return self._combine(node, level)
        raise NoInterval

    def _read(self, node: exp.Column, level: int) -> Floats:
        name = self.path.trace(node, level)
        if name is None:  # computed by an inner SELECT
            inner = self.path.selects[level + 1].expressions if level + 1 < len(self.path.selects) else []
            for column in inner:
                if column.alias_or_name.lower() == node.name.lower():
                    return self.compute(column.unalias(), level + 1)
            raise NoInterval
        if name not in self.simulated:
            raise NoInterval
        return self.simulated[name]

    @staticmethod
    def _divide(over: Floats, under: Floats) -> Floats:
        if not under.ndim:
            if not under:
                raise NoInterval
            return np.asarray(over / under)
        centre, spread = under.mean(axis=-1, keepdims=True), under.std(axis=-1, keepdims=True)
        if np.any(np.abs(centre) <= SURE * spread) or np.any(under == 0):
            raise NoInterval  # simulation around released values is not valid where a divisor may be near zero
        return np.asarray(over / under)

    def _combine(self, node: exp.Window, level: int) -> Floats:
        function, spec = node.this, node.args.get("spec")
        groups = self._list_keys(node.args.get("partition_by") or [], level)
        order = node.args.get("order")
        terms = order.expressions if order is not None else []
        if any(term.args.get("desc") for term in terms) or (spec is not None and not _is_running(spec)):
            raise NoInterval
        places = self._list_keys([term.this for term in terms], level)
        if node.args.get("alias") is not None or (
            terms and len(set(zip(groups, places, strict=True))) < len(self.rows)
        ):
            raise NoInterval  # a named window, or rows that share a place
        values = np.broadcast_to(self.compute(_read_argument(function), level), (len(self.rows), self.draws))
        made = np.empty_like(values)
        for group in dict.fromkeys(groups):
            members = sorted((row for row, found in enumerate(groups) if found == group), key=lambda row: places[row])
            made[members] = _apply(function, values[members], running=bool(terms))
        return made

    def _list_keys(self, nodes: Sequence[exp.Expr], level: int) -> list[tuple[Any, ...]]:
        """The values of keys in each row. Anything but a key is noisy."""
        names = []
        for node in nodes:
            name = self.path.trace(node, level) if isinstance(node, exp.Column) else None
            if name is None or name not in self.keys:
                raise NoInterval
            names.append(name)
        return [tuple(row[name] for name in names) for row in self.rows]


def _is_running(spec: exp.Expr) -> bool:
    from_start = spec.args.get("start") == "UNBOUNDED" and spec.args.get("start_side") == "PRECEDING"
    return bool(from_start and spec.args.get("end") in (None, "CURRENT ROW"))


def _read_argument(function: exp.Expr) -> exp.Expr:
    if isinstance(function, (exp.Sum, exp.Avg)):
        argument: exp.Expr = function.this
        return argument
    raise NoInterval


def _apply(function: exp.Expr, values: Floats, *, running: bool) -> Floats:
    total = np.cumsum(values, axis=0) if running else np.broadcast_to(values.sum(axis=0), values.shape)
    if isinstance(function, exp.Sum):
        return np.asarray(total)
    counts = np.arange(1, len(values) + 1)[:, None] if running else len(values)
    return np.asarray(total / counts)
