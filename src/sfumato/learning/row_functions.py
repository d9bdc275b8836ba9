"""Bounded functions of one row. A statistic adds one of them up over the rows of each cell.

A value is a whole number of public steps, clamped to public bounds before it is added, so sums are exact. Columns are
scaled first: the middle of the declared bounds is 0, and the bounds are -1 and 1. A scaled column is rounded to steps
of 2**-14; a product of two is exact, in steps of 2**-28.

What one row adds, in size, is at most the `most` of the function's steps: that is the L1 and L2 sensitivity for
add-remove. The kernel derives both for each neighbouring relation from the bounds below (claim K-25).
"""

from dataclasses import dataclass
from typing import Literal as OneOfTexts
from typing import Protocol, assert_never

import numpy as np

from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Call, Expression, Literal
from sfumato.kernel.plan import Grid
from sfumato.learning.feature_columns import SCALE, SCALE_BITS
from sfumato.learning.row_cells import Floats, RowCells, RowTerms, RowValues, choose_by_cell, number_cells

TARGET = -1  # the place of the target among the columns
MOST_SCORE = 12.0  # scores are clamped before the logistic function: beyond, it is 0 or 1 to five digits


@dataclass(frozen=True, slots=True)
class Moment:
    """The product of one or two scaled columns: from -1 to 1, and a square from 0 to 1."""

    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.columns) not in (1, 2):
            raise KernelFault("A moment is of one or two columns.")


@dataclass(frozen=True, slots=True)
class Powers:
    """1, x and x² of one scaled column x, measured together: three sums, for little more noise than one has.

    With Laplace noise the sums of ((1-x)/2)², (1-x²)/2 and ((1+x)/2)² are measured: what one row adds to the three is 1
    in all. With Gaussian noise, 1, x and x² each take a third of the statistic's budget.
    """

    column: int


@dataclass(frozen=True, slots=True)
class Score:
    """An additive model: an intercept, a number for each cell of some partitions, a weight for each scaled column."""

    intercept: float = 0.0
    tables: tuple[tuple[RowCells, tuple[float, ...]], ...] = ()
    weights: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Residual:
    """link(score) - target, clamped to -1 to 1, and perhaps times a scaled column.

    The target is 1 where the label is the one at place `label` of the classes, and 0 for every other declared label; or
    the scaled target, if it is a number (`label` is None). A row whose label is undeclared or missing has the value 0.
    """

    score: Score
    link: OneOfTexts["identity", "logistic"]
    label: int | None = None
    times: int | None = None


RowFunction = Moment | Powers | Residual


class TargetValues(RowValues, Protocol):
    """Rows as arrays, with a target."""

    def is_label(self, place: int) -> Floats: ...  # 1 where the label is this one, 0 elsewhere
    def is_labelled(self) -> Floats: ...  # 1 where the label is one of the declared classes, 0 elsewhere


class TargetTerms(RowTerms, Protocol):
    """Rows in an engine, with a target."""

    def is_label(self, place: int) -> Expression: ...
    def is_labelled(self) -> Expression: ...


def grid_of(function: Moment | Residual) -> Grid:
    """The bounds of a function's values, in steps."""
    match function:
        case Moment((one, two)):
            return Grid(0 if one == two else -(SCALE**2), SCALE**2, -2 * SCALE_BITS)
        case Moment() | Residual(times=None):
            return Grid(-SCALE, SCALE, -SCALE_BITS)
        case Residual():
            return Grid(-(SCALE**2), SCALE**2, -2 * SCALE_BITS)
        case _:
            assert_never(function)


def compute_steps(function: Moment | Residual, rows: TargetValues) -> Floats:
    """The value for each row, in whole steps within the bounds of `grid_of`. A double holds each of them exactly."""
    match function:
        case Moment(columns):
            steps = rows.scaled(columns[0])
            return steps if len(columns) == 1 else steps * rows.scaled(columns[1])
        case Residual(score, link, label, times):
            total = compute_score(score, rows)
            if link == "logistic":
                total = apply_logistic(total)
            target = rows.scaled(TARGET) * (1 / SCALE) if label is None else rows.is_label(label)
            residual = np.clip(total - target, -1.0, 1.0)
            steps = np.floor(residual * float(SCALE) + 0.5)
            if label is not None:
                steps = steps * rows.is_labelled()
            return steps if times is None else steps * rows.scaled(times)
        case _:
            assert_never(function)


def write_value(function: Moment | Residual, rows: TargetTerms) -> Expression:
    """The expression of `compute_steps`, times the step: an engine multiplies by steps and rounds, exactly."""
    exponent = Literal(2.0 ** grid_of(function).exponent)
    return Call("*", (_write_steps(function, rows), exponent))


def _write_steps(function: Moment | Residual, rows: TargetTerms) -> Expression:
    match function:
        case Moment(columns):
            first = rows.scaled(columns[0])
            return first if len(columns) == 1 else Call("*", (first, rows.scaled(columns[1])))
        case Residual(score, link, label, times):
            total = rows.compute(write_score(score, rows))
            if link == "logistic":
                total = _write_logistic(total, rows)
            target = Call("*", (rows.scaled(TARGET), Literal(1 / SCALE))) if label is None else rows.is_label(label)
            residual = rows.compute(Call("-", (total, target)))
            clamped = rows.compute(clamp_expression(residual, -1.0, 1.0))
            steps = Call("floor", (Call("+", (Call("*", (clamped, Literal(float(SCALE)))), Literal(0.5))),))
            if label is not None:
                steps = Call("*", (steps, rows.is_labelled()))
            return steps if times is None else Call("*", (steps, rows.scaled(times)))
        case _:
            assert_never(function)


def compute_score(score: Score, rows: RowValues) -> Floats:
    """The score of each row. A row in no cell of a partition gets 0 from its table."""
    total = np.full(len(rows), score.intercept)
    for cells, table in score.tables:
        total = total + np.append(np.array(table, np.float64), 0.0)[number_cells(cells, rows)]
    for column, weight in score.weights:
        total = total + rows.scaled(column) * (weight / SCALE)
    return total


def write_score(score: Score, rows: RowTerms) -> Expression:
    """The expression of `compute_score`, added in the same order."""
    total: Expression = Literal(score.intercept)
    for cells, table in score.tables:
        total = Call("+", (total, choose_by_cell(cells, table, rows)))
    for column, weight in score.weights:
        total = Call("+", (total, Call("*", (rows.scaled(column), Literal(weight / SCALE)))))
    return total


# The logistic function is 1/2 + tanh(s/2)/2. tanh is Lambert's continued fraction, cut off after ten terms: a ratio of
# polynomials, within 2e-7 for |s| <= 12, which is far below a step. Additions, multiplications and one division give
# the same bits on every engine; a function EXP does not (docs/decisions/027-logistic-without-exp.md).
_NUMERATOR = (55.0, 25740.0, 2837835.0, 91891800.0, 654729075.0)
_DENOMINATOR = (1.0, 1485.0, 315315.0, 18918900.0, 310134825.0, 654729075.0)


def apply_logistic(scores: Floats) -> Floats:
    """1/(1 + exp(-s)), within 2e-7, of scores that are clamped to -12 to 12."""
    half = np.clip(scores, -MOST_SCORE, MOST_SCORE) * 0.5
    square = half * half
    above, below = np.full(half.shape, _NUMERATOR[0]), np.full(half.shape, _DENOMINATOR[0])
    for coefficient in _NUMERATOR[1:]:
        above = above * square + coefficient
    for coefficient in _DENOMINATOR[1:]:
        below = below * square + coefficient
    shares: Floats = half * above / below * 0.5 + 0.5
    return shares


def _write_logistic(score: Expression, rows: RowTerms) -> Expression:
    half = rows.compute(Call("*", (clamp_expression(score, -MOST_SCORE, MOST_SCORE), Literal(0.5))))
    square = Call("*", (half, half))
    above, below = (_write_polynomial(square, coefficients) for coefficients in (_NUMERATOR, _DENOMINATOR))
    ratio = Call("/", (Call("*", (half, above)), below))
    return Call("+", (Call("*", (ratio, Literal(0.5))), Literal(0.5)))


def _write_polynomial(variable: Expression, coefficients: tuple[float, ...]) -> Expression:
    total: Expression = Literal(coefficients[0])
    for coefficient in coefficients[1:]:
        total = Call("+", (Call("*", (total, variable)), Literal(coefficient)))
    return total


def clamp_expression(value: Expression, lower: float, upper: float) -> Expression:
    """A value between two bounds; NULL stays NULL."""
    below, above = Call("<", (value, Literal(lower))), Call(">", (value, Literal(upper)))
    return Call("case", (below, Literal(lower), above, Literal(upper), value))
