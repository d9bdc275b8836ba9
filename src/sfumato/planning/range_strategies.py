"""Ranges of one column: the pieces between all their ends, and the best way to measure sums of pieces.

WHERE age >= 18 AND age < 65, WHERE age < 30, ... cut the column at their ends. A row is in one piece, or in none that a
question asks for, and every question is a sum of pieces. So the pieces are the cells of one more key, and the best
strategy for these sums is that of planning/optimal_strategies.py. No data is read here.
"""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal
from sfumato.kernel.plan import Key
from sfumato.kernel.strategies import Matrix
from sfumato.planning.marginal_strategies import Block, Keys, NoiseWeights
from sfumato.planning.optimal_strategies import (
    find_gaussian_strategy,
    find_laplace_strategy,
    measure_share,
    round_strategy,
)

Floats = npt.NDArray[np.float64]
MOST_PIECES = 256
RIDGE = 1e-6  # of the mean weight of a piece: ranges may leave sums of pieces unasked
ROUNDS = 12  # of the search for the weights of margins
LEAST_WEIGHT = 0.1  # of the weight before: one round does not forget a question
MOST_CONDITION = 1e7  # of a matrix: a larger one loses digits when it is inverted
COMPARED: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip
FLIPPED = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<"}


@dataclass(frozen=True, slots=True)
class Ranges:
    """Questions as sums of pieces. `key` numbers the pieces; `sums` has a row of zeros and ones for each question."""

    key: Key
    sums: tuple[tuple[int, ...], ...]


def cut_ranges(questions: Sequence[Sequence[Expression]]) -> Ranges | None:
    """The pieces of conditions that all compare one column with constants; None if they are something else."""
    conditions = [condition for question in questions for condition in question]
    columns = {leaf for condition in conditions for leaf in _list_leaves(condition) if isinstance(leaf, Column)}
    values = [leaf.value for condition in conditions for leaf in _list_leaves(condition) if isinstance(leaf, Literal)]
    numbers = all(isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) for value in values)
    dates = len({type(value) for value in values}) == 1 and all(isinstance(value, date) for value in values)
    if len(columns) != 1 or not values or not (numbers or dates) or not all(map(_is_range, conditions)):
        return None
    if numbers and not all(math.isfinite(float(value)) for value in values):  # type: ignore[arg-type]
        return None
    (column,), ends = columns, sorted(set(values))  # type: ignore[type-var]
    if column.nullable and not all(questions):  # rows without a value are in no piece, but in a question about all rows
        return None
    pieces: dict[tuple[int, ...], int] = {}
    cases: list[Expression] = []
    for place in range(2 * len(ends) + 1):  # odd: at an end; even: before, between or beyond ends
        if _is_empty(column, place, ends):
            continue
        inside = tuple(int(all(_holds(condition, place, ends) for condition in question)) for question in questions)
        end = ends[min(place // 2, len(ends) - 1)]
        reached = ("<=" if place % 2 else "<") if place < 2 * len(ends) else ">"
        number = pieces.setdefault(inside, len(pieces)) if any(inside) else None
        cases += [Call(reached, (column, Literal(end))), Literal(number)]
    if not 1 < len(pieces) <= MOST_PIECES:
        return None
    key = Key(Call("case", (*cases, Literal(None))), tuple(range(len(pieces))))
    return Ranges(key, tuple(zip(*pieces, strict=True)))


def _is_empty(column: Column, place: int, ends: Sequence[Any]) -> bool:
    """Is no whole number, or no day, at this place among the ends? Pieces without values would cost accuracy."""
    after, before = place // 2, (place - 1) // 2
    if column.type is ColumnType.INTEGER and place % 2:
        return bool(ends[after] != int(ends[after]))
    if place % 2 or not 0 < place < 2 * len(ends):
        return False
    if column.type is ColumnType.INTEGER:
        return bool(math.floor(ends[before]) + 1 >= ends[after])
    return column.type is ColumnType.DATE and bool((ends[after] - ends[before]).days <= 1)


def _list_leaves(node: Expression) -> list[Expression]:
    return (
        [leaf for argument in node.arguments for leaf in _list_leaves(argument)] if isinstance(node, Call) else [node]
    )


def _is_range(node: Expression) -> bool:
    match node:
        case Call("and" | "or" | "not", arguments):
            return all(map(_is_range, arguments))
        case Call(function, (Column(), Literal()) | (Literal(), Column())):
            return function in COMPARED
        case _:
            return False


def _holds(node: Expression, place: int, ends: Sequence[object]) -> bool:
    """Is a condition true for values at this place among the ends?"""
    match node:
        case Call("and", arguments):
            return all(_holds(argument, place, ends) for argument in arguments)
        case Call("or", arguments):
            return any(_holds(argument, place, ends) for argument in arguments)
        case Call("not", (inner,)):
            return not _holds(inner, place, ends)
        case Call(function, (Column(), Literal(value))):
            return COMPARED[function](place, 2 * ends.index(value) + 1)
        case Call(function, (Literal(value), Column())):
            return COMPARED[FLIPPED[function]](place, 2 * ends.index(value) + 1)
        case _:
            raise AssertionError("a range compares a column with constants")


@dataclass(frozen=True, slots=True)
class RangeStrategy:
    """One measurement of weighted sums of pieces, and the weights with which each question is read from it."""

    matrix: Matrix
    readings: tuple[tuple[float, ...], ...]
    gaussian: bool

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The one block, with the whole loss."""
        return (Block((), centred=False, share=1.0),)

    @property
    def sizes(self) -> tuple[int, ...]:
        """No key of a marginal."""
        return ()

    def weigh(self, question: Keys) -> list[NoiseWeights]:
        """The noises in the answer to a question, by its number."""
        weights = self.readings[question[0]]
        return [NoiseWeights(0, sum(weight**2 for weight in weights), sum(weight**4 for weight in weights))]


def choose_range_strategy(sums: Sequence[Sequence[int]], weights: Sequence[float], *, gaussian: bool) -> RangeStrategy:
    """The strategy with the least sum of weight times squared error over the questions."""
    questions = np.array(sums, np.float64)
    wanted = questions.T @ (np.asarray(weights)[:, None] * questions)
    size = len(wanted)
    wanted += RIDGE * np.trace(wanted) / size * np.eye(size)
    plain = np.eye(size)
    tried = [find_gaussian_strategy(wanted)[0]] if gaussian else [find_laplace_strategy(wanted), plain]
    matrices = [round_strategy(strategy) for strategy in tried]
    usable = [candidate for candidate in matrices if np.linalg.cond(np.array(candidate, np.float64)) < MOST_CONDITION]
    matrix = min(
        usable or [round_strategy(plain)],
        key=lambda candidate: measure_share(np.array(candidate, np.float64), wanted, gaussian=gaussian),
    )
    readings = questions @ np.linalg.inv(np.array(matrix, np.float64))
    return RangeStrategy(matrix, tuple(map(tuple, readings.tolist())), gaussian)


def meet_range_variances(sums: Sequence[Sequence[int]], targets: Sequence[float], *, gaussian: bool) -> RangeStrategy:
    """The strategy with which all variances reach multiples of their targets that are as small as possible."""
    weights = 1 / np.asarray(targets)
    best: tuple[float, RangeStrategy] | None = None
    for _ in range(ROUNDS):
        strategy = choose_range_strategy(sums, weights.tolist(), gaussian=gaussian)
        matrix = np.array(strategy.matrix, np.float64)
        paid = (matrix**2).sum(axis=0).max() if gaussian else np.abs(matrix).sum(axis=0).max() ** 2
        ratios = paid * (np.array(strategy.readings) ** 2).sum(axis=1) / np.asarray(targets)
        if best is None or ratios.max() < best[0]:
            best = (float(ratios.max()), strategy)
        weights = weights * np.maximum(ratios / ratios.max(), LEAST_WEIGHT)
    if best is None:
        raise AssertionError("a workload has questions")
    return best[1]
