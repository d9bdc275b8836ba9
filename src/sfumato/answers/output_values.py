"""The columns of an answer, computed from released values. NULL is NaN in numbers and None in objects.

Conditions have three values, as in SQL: true, false and NULL.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from sfumato.kernel.expressions import Literal
from sfumato.query.query import AggregateRef, KeyRef, Ordering, Post, PostCall, Query

Floats = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]
Values = npt.NDArray[Any]
COMPARED = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
COMPUTED = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "neg": np.negative, "abs": np.abs,
    "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt, "ln": np.log, "exp": np.exp,
}  # fmt: skip
PICKED = {"greatest": np.fmax, "least": np.fmin}  # NULL is ignored
CONDITIONS = (*COMPARED, "and", "or", "not", "is null")
WIDE = Context(prec=800, rounding=ROUND_HALF_UP)  # more digits than any double has


def evaluate(post: Post, aggregates: Sequence[Floats], keys: Sequence[Objects]) -> Values:
    """Evaluate an output column: numbers with NaN for NULL, conditions as 1.0, 0.0 or NaN, keys unchanged."""
    match post:
        case AggregateRef(index):
            return aggregates[index]
        case KeyRef(index):
            return keys[index]
        case Literal(value):
            return np.asarray(value)
        case PostCall("round", (inner, Literal(int(digits)))):
            return round_half_away(evaluate(inner, aggregates, keys).astype(np.float64), digits)
        case PostCall(function, arguments):
            values = [evaluate(argument, aggregates, keys) for argument in arguments]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                return _apply(function, values)


def find_aggregates(post: Post) -> tuple[int, ...]:
    """The indexes of the aggregates that an output column or a condition uses, without repeats."""
    match post:
        case AggregateRef(index):
            return (index,)
        case PostCall(_, arguments):
            return tuple(dict.fromkeys(index for argument in arguments for index in find_aggregates(argument)))
        case KeyRef() | Literal():
            return ()
        case _:
            assert_never(post)


def compute_column(post: Post, aggregates: Sequence[Floats], keys: Sequence[Objects]) -> Values:
    """Compute an output column as it is shown: conditions become True, False or None."""
    values = evaluate(post, aggregates, keys)
    if not isinstance(post, PostCall) or post.function not in CONDITIONS:
        return values
    flat = [None if np.isnan(value) else bool(value) for value in values.ravel().tolist()]
    shown = np.empty(len(flat), object)
    shown[:] = flat
    return shown.reshape(values.shape)


def select_cells(
    query: Query, aggregates: Sequence[Floats], keys: Sequence[Objects], cells: int, least: float | None = None
) -> list[int]:
    """Apply HAVING, ORDER BY and LIMIT to released values; return the shown cells in their order.

    Where only keys are selected, those with at least the number `least` are shown.
    """
    kept = list(range(cells))
    if least is not None:
        kept = np.flatnonzero(np.broadcast_to(aggregates[0], cells) >= least).tolist()
    if query.having is not None:
        kept = np.flatnonzero(np.broadcast_to(passes(query.having, aggregates, keys), cells)).tolist()
    for possible in query.possible_keys:
        columns = [keys[index] for index in possible.indexes]
        kept = [cell for cell in kept if tuple(column[cell] for column in columns) in possible.rows]
    for term in reversed(query.order):
        kept = _sort_cells(kept, term, np.broadcast_to(evaluate(term.by, aggregates, keys), cells))
    return kept[query.offset :][: query.limit]


def passes(condition: Post, aggregates: Sequence[Floats], keys: Sequence[Objects]) -> npt.NDArray[np.bool_]:
    """Where a condition is true. NULL does not pass."""
    return np.asarray(_to_truths(evaluate(condition, aggregates, keys)) == 1)


def _sort_cells(cells: list[int], term: Ordering, values: Values) -> list[int]:
    """Sort cells by their values, with NULL last unless NULLS FIRST is given."""
    null = np.broadcast_to(_is_null(values), values.shape)
    there = sorted((cell for cell in cells if not null[cell]), key=values.__getitem__, reverse=term.descending)
    missing = [cell for cell in cells if null[cell]]
    return missing + there if term.nulls_first else there + missing


def _apply(function: str, values: list[Values]) -> Values:  # noqa: PLR0911 - one return a kind
    if function == "is null":
        return np.asarray(_is_null(values[0]), np.float64)
    if function in COMPARED:
        one, two = values
        made = np.asarray(COMPARED[function](one, two), np.float64)
        return np.where(_is_null(one) | _is_null(two), np.nan, made)
    if function in ("and", "or", "not"):
        return _combine_truths(function, [_to_truths(value) for value in values])
    numbers = [value.astype(np.float64) for value in values]
    if function in PICKED or function == "coalesce":
        chosen = numbers[0]
        for number in numbers[1:]:
            both = PICKED[function](chosen, number) if function in PICKED else None
            chosen = np.where(np.isnan(chosen), number, chosen) if both is None else both
        return chosen
    if function == "integer":
        return np.rint(numbers[0])  # halves to the even number, as in rows
    if function in ("variance of all", "stddev of all"):
        share = 1 - 1 / np.maximum(numbers[1], 2)
        return numbers[0] * (np.sqrt(share) if function == "stddev of all" else share)
    made = COMPUTED[function](*numbers)
    return np.where(np.isfinite(made), made, np.nan)  # an overflow or a division by zero gives NULL


def _combine_truths(function: str, truths: list[Floats]) -> Floats:
    """NULL AND FALSE is false, NULL OR TRUE is true; otherwise NULL gives NULL."""
    if function == "not":
        return np.asarray(1 - truths[0])
    one, two = truths
    decides = 0.0 if function == "and" else 1.0
    unknown = np.isnan(one) | np.isnan(two)
    made = np.where(unknown, np.nan, 1 - decides)
    return np.where((one == decides) | (two == decides), decides, made)


def _to_truths(values: Values) -> Floats:
    return np.asarray(values, np.float64)


def _is_null(values: Values) -> npt.NDArray[np.bool_]:
    if values.dtype == object:
        return np.array([value is None for value in values.ravel()], bool).reshape(values.shape)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)


def round_half_away(values: Floats, digits: int) -> Floats:
    """Round to `digits` decimals, half away from zero, as SQL does: 2.675 gives 2.68.

    A number stands for its shortest decimal. Near a half, double arithmetic is not exact, so decimals decide.
    """
    power = 10.0 ** abs(digits)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.abs(values) * power if digits >= 0 else np.abs(values) / power
        below = np.floor(scaled)
        whole = below + (scaled - below >= 0.5)
        made = np.asarray(np.copysign(whole / power if digits >= 0 else whole * power, values) + 0.0)
        near = np.isfinite(values) & ~(np.abs(scaled - below - 0.5) > 1e-15 * scaled + 1e-300)
    if near.any():
        step = Decimal(1).scaleb(-digits)
        found = [float(Decimal(repr(value)).quantize(step, context=WIDE)) + 0.0 for value in values[near].tolist()]
        made[near] = found
    return made
