"""Finite tables for a number: it is rounded at random to a public grid of positions, and the grid point is randomised.

A position is a whole number of 0 .. 2**32 between the bounds. Each table knows the number that each report stands for,
such that the expected number is the position exactly: for the table as it is, not for the formula that it came from.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.exact import exp_neg
from sfumato.kernel.parameters import whole_number
from sfumato.kernel.samplers import uniform_below
from sfumato.local.mechanisms.coin_tables import (
    UNITS,
    draw_rows,
    flip_units,
    greatest_coin,
    loss_of_ratio,
    loss_of_rows,
)
from sfumato.local.mechanisms.report_forms import Counts
from sfumato.local.mechanisms.table_limits import coin

STEPS = 1024  # of the grid under a window: rounding to it adds at most a millionth of the squared range
TEACHING_STEPS = 16
MOST_STEPS = 1 << 16
_DIGITS = 128

Table = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Ends:
    """Duchi's one bit: the position becomes one of the two ends, and the end is reported with the keep coin."""

    keep: int
    steps: int = 1

    def __post_init__(self) -> None:
        coin(self.keep, "keep")
        if 2 * self.keep <= UNITS:
            raise InvalidParameter("keep", "must be above one half", "one half, or less")

    @classmethod
    def for_epsilon(cls, epsilon: Decimal) -> "Ends":
        return cls(greatest_coin(lambda keep: Fraction(keep, UNITS - keep), epsilon))

    @property
    def outputs(self) -> int:
        return 2

    @property
    def epsilon(self) -> Decimal:
        return loss_of_ratio(Fraction(self.keep, UNITS - self.keep))

    def row(self, step: int) -> tuple[Fraction, ...]:
        kept, turned = Fraction(self.keep, UNITS), Fraction(UNITS - self.keep, UNITS)
        return (turned, kept) if step else (kept, turned)

    @property
    def numbers(self) -> tuple[Fraction, ...]:
        slope = 2 * self.keep - UNITS
        return Fraction(self.keep - UNITS, slope), Fraction(self.keep, slope)

    def draw(self, positions: Counts, entropy: Entropy) -> Counts:
        ends = round_to_steps(positions, 1, entropy)
        return ends ^ ~flip_units(self.keep, positions.size, entropy)


@dataclass(frozen=True, slots=True)
class Window:
    """The piecewise mechanism on a grid: step j reports evenly within j .. j+width-1, or evenly elsewhere.

    There are steps + width reports; the inside coin says which. The expected report grows by the same amount with
    every step, so that a straight line makes it unbiased.
    """

    steps: int
    width: int
    inside: int

    def __post_init__(self) -> None:
        steps, _ = whole_number(self.steps, "steps", 1), whole_number(self.width, "width", 1)
        if steps & (steps - 1) or steps > MOST_STEPS or self.width > steps:
            raise InvalidParameter("steps", "must be a power of two up to 2**16, and width at most as much", "others")
        coin(self.inside, "inside")
        if self.slope <= 0:
            raise InvalidParameter("inside", "must favour the window", "units that do not")

    @classmethod
    def for_epsilon(cls, epsilon: Decimal, steps: int = STEPS) -> "Window":
        width = max(1, round(steps * _shrunk(epsilon / 2)))  # a choice of width costs accuracy only, never privacy
        return cls(steps, width, greatest_coin(lambda inside: _window_ratio(steps, width, inside), epsilon))

    @property
    def outputs(self) -> int:
        return self.steps + self.width

    @property
    def epsilon(self) -> Decimal:
        return loss_of_ratio(_window_ratio(self.steps, self.width, self.inside))

    @property
    def levels(self) -> tuple[Fraction, Fraction]:
        """The probability of a report inside the window, and of one outside."""
        return Fraction(self.inside, UNITS * self.width), Fraction(UNITS - self.inside, UNITS * self.steps)

    @property
    def slope(self) -> Fraction:
        """By how much the expected report grows with a step."""
        high, low = self.levels
        return (high - low) * self.width

    def row(self, step: int) -> tuple[Fraction, ...]:
        high, low = self.levels
        return tuple(high if step <= each < step + self.width else low for each in range(self.outputs))

    @property
    def numbers(self) -> tuple[Fraction, ...]:
        middle = Fraction(self.outputs - 1, 2)  # what the middle of the grid reports on average
        return tuple(Fraction(1, 2) + (each - middle) / (self.slope * self.steps) for each in range(self.outputs))

    def draw(self, positions: Counts, entropy: Entropy) -> Counts:
        steps = round_to_steps(positions, self.steps, entropy)
        inside = flip_units(self.inside, positions.size, entropy)
        within = uniform_below(self.width, positions.size, entropy)
        beyond = uniform_below(self.steps, positions.size, entropy) + self.width
        return (steps + np.where(inside, within, beyond)) % self.outputs


@dataclass(frozen=True, slots=True)
class Mixture:
    """The hybrid mechanism: a public coin chooses the window or the ends, and the report says which.

    Reports of the window come first, then the two of the ends.
    """

    windowed: int
    window: Window
    ends: Ends

    def __post_init__(self) -> None:
        if type(self.windowed) is not int or not 0 <= self.windowed <= UNITS:
            raise InvalidParameter("piecewise", "must be a whole number of units, from 0 to 2**32", "something else")

    @classmethod
    def for_epsilon(cls, epsilon: Decimal) -> "Mixture":
        """The window with 1 - e**(-epsilon/2), which makes the variance the same everywhere; never below 0.61."""
        share = 1 - _shrunk(epsilon / 2) if epsilon > Decimal("0.61") else 0
        return cls(round(UNITS * share), Window.for_epsilon(epsilon), Ends.for_epsilon(epsilon))

    @property
    def steps(self) -> int:
        return self.window.steps

    @property
    def outputs(self) -> int:
        return self.window.outputs + 2

    @property
    def epsilon(self) -> Decimal:
        return max(self.window.epsilon, self.ends.epsilon)

    def row(self, step: int) -> tuple[Fraction, ...]:
        share, (low, high) = Fraction(self.windowed, UNITS), (self.ends.row(0), self.ends.row(1))
        place = Fraction(step, self.steps)
        ends = ((1 - place) * first + place * second for first, second in zip(low, high, strict=True))
        return (*(share * each for each in self.window.row(step)), *((1 - share) * each for each in ends))

    @property
    def numbers(self) -> tuple[Fraction, ...]:
        return (*self.window.numbers, *self.ends.numbers)

    def draw(self, positions: Counts, entropy: Entropy) -> Counts:
        windowed = flip_units(self.windowed, positions.size, entropy)
        window = self.window.draw(positions, entropy)
        ends = self.ends.draw(positions, entropy) + self.window.outputs
        return np.where(windowed, window, ends)


@dataclass(frozen=True, slots=True)
class Rows:
    """A table in full: row j is the law of the report from step j, in units of 2**-32."""

    rows: Table

    def __post_init__(self) -> None:
        if not isinstance(self.rows, tuple) or not 2 <= len(self.rows) <= 257:
            raise InvalidParameter("table", "must have from 2 to 257 rows", "something else")
        if any(not isinstance(row, tuple) or any(type(each) is not int for each in row) for row in self.rows):
            raise InvalidParameter("table", "must be rows of whole numbers", "something else")
        if self.steps & (self.steps - 1) or any(len(row) != len(self.rows) for row in self.rows):
            raise InvalidParameter("table", "must be square, of 2**s + 1 rows", "another shape")
        loss_of_rows(self.rows)
        solve(self.rows)

    @classmethod
    def laplace(cls, epsilon: Decimal, steps: int = TEACHING_STEPS) -> "Rows":
        """Laplace noise on the grid: what would fall outside is reported as the nearest end."""
        asked = Fraction(epsilon)
        for shrink in (0, *(1 << power for power in range(24))):
            rows = _laplace_rows(asked * (1 - Fraction(shrink, 1 << 28)), steps)
            if min(min(row) for row in rows) < 1:
                break
            if loss_of_rows(rows) <= epsilon:
                return cls(rows)
        raise InvalidParameter(
            "epsilon",
            "must let every entry of the table be a unit of 2**-32 or more",
            "one that needs a zero entry",
            "Between 0.001 and 16 there is a table.",
        )

    @property
    def steps(self) -> int:
        return len(self.rows) - 1

    @property
    def outputs(self) -> int:
        return len(self.rows[0])

    @property
    def epsilon(self) -> Decimal:
        return loss_of_rows(self.rows)

    def row(self, step: int) -> tuple[Fraction, ...]:
        return tuple(Fraction(each, UNITS) for each in self.rows[step])

    @property
    def numbers(self) -> tuple[Fraction, ...]:
        return solve(self.rows)

    def draw(self, positions: Counts, entropy: Entropy) -> Counts:
        return draw_rows(np.array(self.rows, np.int64), round_to_steps(positions, self.steps, entropy), entropy)


MeanTable = Ends | Window | Mixture | Rows


def round_to_steps(positions: Counts, steps: int, entropy: Entropy) -> Counts:
    """Up or down to a step at random, so that the expected step is positions * steps / 2**32 exactly."""
    scaled = positions * steps
    return (scaled >> 32) + flip_units(scaled & (UNITS - 1), positions.size, entropy)


@lru_cache(maxsize=64)
def solve(rows: Table) -> tuple[Fraction, ...]:
    """Numbers for the reports such that every row's expected number is its place on the grid, from 0 to 1."""
    size = len(rows)
    system = [[*(Fraction(each, UNITS) for each in row), Fraction(index, size - 1)] for index, row in enumerate(rows)]
    for column in range(size):
        pivot = next((index for index in range(column, size) if system[index][column]), None)
        if pivot is None:
            raise InvalidParameter("table", "must tell every two inputs apart", "one that does not")
        system[column], system[pivot] = system[pivot], system[column]
        lead = system[column] = [each / system[column][column] for each in system[column]]
        for index, row in enumerate(system):
            if index != column and row[column]:
                system[index] = [each - row[column] * own for each, own in zip(row, lead, strict=True)]
    return tuple(row[-1] for row in system)


def _laplace_rows(epsilon: Fraction, steps: int) -> Table:
    decay = [_shrunk(epsilon * distance / steps) for distance in range(steps + 1)]
    end, inner = 1 / (1 + decay[1]), (1 - decay[1]) / (1 + decay[1])
    rows = []
    for step in range(steps + 1):
        row = [int(UNITS * decay[abs(step - each)] * (inner if 0 < each < steps else end)) for each in range(steps + 1)]
        row[step] += UNITS - sum(row)
        rows.append(tuple(row))
    return tuple(rows)


def _shrunk(exponent: Fraction | Decimal) -> Fraction:
    """e**-exponent to 128 binary digits."""
    low, high = exp_neg(Fraction(exponent), _DIGITS)
    return Fraction(low + high, 2 << _DIGITS)


def _window_ratio(steps: int, width: int, inside: int) -> Fraction:
    return Fraction(inside * steps, (UNITS - inside) * width)
