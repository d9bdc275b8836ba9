"""For the tables of a number: the number that each report stands for, and the best table for an epsilon.

The numbers make the expected number of a report equal the position exactly, for the table as it is built. The scale has
the bounds at 0 and 1.
"""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import assert_never

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import enclose_exp_neg
from sfumato.local.mechanisms.coin_tables import UNITS, bound_rows_loss
from sfumato.local.mechanisms.mean_tables import Ends, Mixture, Rows, Window
from sfumato.local.mechanisms.shifted_noise import ShiftedNoise
from sfumato.local.randomisers.coin_search import find_greatest_coin

FloatArray = npt.NDArray[np.float64]
MeanTable = Ends | Window | Mixture | Rows | ShiftedNoise
STEPS = 1024  # of the grid under a window: rounding to it adds at most a millionth of the squared range
TEACHING_STEPS = 16
LEAST_MIXED_EPSILON = Decimal("0.61")  # below it, the ends alone have the least variance
_DIGITS = 128


def find_best_ends(epsilon: Decimal) -> Ends:
    """The most informative coin for the two ends."""
    return Ends(find_greatest_coin(lambda keep: Fraction(keep, UNITS - keep), epsilon))


def find_best_window(epsilon: Decimal, steps: int = STEPS) -> Window:
    """The window of least variance, and its most informative coin."""
    width = max(1, round(steps * compute_exp_minus(epsilon / 2)))  # the width affects accuracy only, never privacy
    return Window(steps, width, find_greatest_coin(lambda inside: Window(steps, width, inside).ratio, epsilon))


def find_best_mixture(epsilon: Decimal) -> Mixture:
    """The window with probability 1 - e**(-epsilon/2), which makes the variance the same at every position."""
    share = 1 - compute_exp_minus(epsilon / 2) if epsilon > LEAST_MIXED_EPSILON else 0
    return Mixture(round(UNITS * share), find_best_window(epsilon), find_best_ends(epsilon))


def make_laplace_table(epsilon: Decimal, steps: int = TEACHING_STEPS) -> Rows:
    """Laplace noise on the grid; a result outside the bounds is reported as the nearer bound."""
    for shrink in (0, *(1 << power for power in range(24))):
        rows = _make_laplace_rows(Fraction(epsilon) * (1 - Fraction(shrink, 1 << 28)), steps)
        if min(min(row) for row in rows) < 1:
            break
        if bound_rows_loss(rows) <= epsilon:
            return Rows(rows)
    raise InvalidParameter(
        "epsilon",
        "must let every entry of the table be a unit of 2**-32 or more",
        "one that needs a zero entry",
        "Use an epsilon between 0.001 and 16.",
    )


@lru_cache(maxsize=64)
def list_report_numbers(table: MeanTable) -> tuple[Fraction, ...]:
    """The number that each report stands for. A table whose reports say nothing about the position is refused."""
    match table:
        case Ends(keep):
            slope = 2 * keep - UNITS
            if slope <= 0:
                raise InvalidParameter("keep", "must be above one half", "one half, or less")
            return Fraction(keep - UNITS, slope), Fraction(keep, slope)
        case Window(steps, width):
            inside, outside = compute_window_levels(table)
            slope_per_step = (inside - outside) * width  # of the expected report
            if slope_per_step <= 0:
                raise InvalidParameter("inside", "must favour the window", "units that do not")
            middle = Fraction(table.outputs - 1, 2)  # the expected report from the middle of the grid
            return tuple(
                Fraction(1, 2) + (report - middle) / (slope_per_step * steps) for report in range(table.outputs)
            )
        case Mixture(_, window, ends):
            return (*list_report_numbers(window), *list_report_numbers(ends))
        case Rows(rows):
            return solve_numbers(rows)
        case ShiftedNoise(steps):  # the noise is symmetric: the expected report is the step
            return tuple(Fraction(report - table.reach, steps) for report in range(table.outputs))
        case _:
            assert_never(table)


def compute_window_levels(table: Window) -> tuple[Fraction, Fraction]:
    """The probability of one report inside the window, and of one outside."""
    return Fraction(table.inside, UNITS * table.width), Fraction(UNITS - table.inside, UNITS * table.steps)


def list_report_probabilities(table: MeanTable, step: int) -> tuple[Fraction, ...]:
    """The probability of each report from a step of the grid."""
    match table:
        case Ends(keep):
            true, other = Fraction(keep, UNITS), Fraction(UNITS - keep, UNITS)
            return (other, true) if step else (true, other)
        case Window(width=width):
            inside, outside = compute_window_levels(table)
            return tuple(inside if step <= report < step + width else outside for report in range(table.outputs))
        case Mixture(windowed, window, ends):
            share, place = Fraction(windowed, UNITS), Fraction(step, table.steps)
            low, high = list_report_probabilities(ends, 0), list_report_probabilities(ends, 1)
            mixed = ((1 - place) * first + place * second for first, second in zip(low, high, strict=True))
            in_window = list_report_probabilities(window, step)
            return (
                *(share * probability for probability in in_window),
                *((1 - share) * probability for probability in mixed),
            )
        case Rows(rows):
            return tuple(Fraction(units, UNITS) for units in rows[step])
        case ShiftedNoise(steps, noise):
            row = [0] * step + [*reversed(noise[1:]), *noise] + [0] * (steps - step)
            return tuple(Fraction(units, UNITS) for units in row)
        case _:
            assert_never(table)


@lru_cache(maxsize=64)
def list_report_floats(table: MeanTable) -> FloatArray:
    """`list_report_numbers` as floats."""
    return np.array([float(number) for number in list_report_numbers(table)])


@lru_cache(maxsize=64)
def compute_second_moments(table: MeanTable) -> FloatArray:
    """The expected square of the number that a report stands for, from each step of the grid."""
    squares = list_report_floats(table) ** 2
    match table:
        case Window(width=width):
            high, low = (float(level) for level in compute_window_levels(table))
            sums = np.concatenate(([0.0], np.cumsum(squares)))
            inside: FloatArray = sums[width:] - sums[:-width]
            return float(low * sums[-1]) + (high - low) * inside
        case Mixture(windowed, window, ends):
            share = windowed / UNITS
            low_end, high_end = compute_second_moments(ends).tolist()
            return share * compute_second_moments(window) + (1 - share) * np.linspace(
                low_end, high_end, table.steps + 1
            )
        case ShiftedNoise(noise=noise):
            spread = 2 * sum(units * place**2 for place, units in enumerate(noise)) / (UNITS * table.steps**2)
            return np.linspace(0, 1, table.steps + 1) ** 2 + spread
        case Ends() | Rows():
            steps = range(table.steps + 1)
            return np.array([np.array(list_report_probabilities(table, step), np.float64) @ squares for step in steps])
        case _:
            assert_never(table)


@lru_cache(maxsize=64)
def solve_numbers(rows: tuple[tuple[int, ...], ...]) -> tuple[Fraction, ...]:
    """Numbers for the reports such that every row's expected number is its place on the grid, from 0 to 1."""
    size = len(rows)
    system = [[*(Fraction(units, UNITS) for units in row), Fraction(index, size - 1)] for index, row in enumerate(rows)]
    for column in range(size):
        pivot = next((index for index in range(column, size) if system[index][column]), None)
        if pivot is None:
            raise InvalidParameter("table", "must distinguish every two inputs", "one that does not")
        system[column], system[pivot] = system[pivot], system[column]
        lead = system[column] = [entry / system[column][column] for entry in system[column]]
        for index, row in enumerate(system):
            if index != column and row[column]:
                system[index] = [entry - row[column] * own for entry, own in zip(row, lead, strict=True)]
    return tuple(row[-1] for row in system)


def compute_exp_minus(exponent: Fraction | Decimal) -> Fraction:
    """e**-exponent to 128 binary digits."""
    low, high = enclose_exp_neg(Fraction(exponent), _DIGITS)
    return Fraction(low + high, 2 << _DIGITS)


def _make_laplace_rows(epsilon: Fraction, steps: int) -> tuple[tuple[int, ...], ...]:
    decay = [compute_exp_minus(epsilon * distance / steps) for distance in range(steps + 1)]
    end, inner = 1 / (1 + decay[1]), (1 - decay[1]) / (1 + decay[1])
    rows = []
    for step in range(steps + 1):
        row = [
            int(UNITS * decay[abs(step - report)] * (inner if 0 < report < steps else end))
            for report in range(steps + 1)
        ]
        row[step] += UNITS - sum(row)
        rows.append(tuple(row))
    return tuple(rows)
