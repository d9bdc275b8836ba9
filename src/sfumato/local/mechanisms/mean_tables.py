"""Finite tables for a number: round it at random to a public grid, then randomise the grid point.

A position is a whole number of 0 .. 2**32 between the public bounds. Part of the trusted perimeter.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.samplers import uniform_below
from sfumato.local.mechanisms.coin_tables import UNITS, bound_ratio_loss, bound_rows_loss, draw_rows, flip_units
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.table_limits import check_coin
from sfumato.number_arguments import read_whole_number

MOST_STEPS = 1 << 16
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ends:
    """Duchi's one bit: round the position to one of the two ends, and report that end with the keep coin."""

    keep: int
    steps: int = 1
    outputs: int = 2

    def __post_init__(self) -> None:
        check_coin(self.keep, "keep")

    @property
    def epsilon(self) -> Decimal:
        """The privacy loss of one report, rounded up.

        Claim: K-46. No report is more than e**epsilon times as likely for one position as for another.
        Requires: coins of 1 to 2**32 - 1 units (checked when the table is built).
        Relies on: K-43, K-46.
        Checked by: tests/local/test_means.py::test_the_loss_is_what_the_laws_say
        """
        return bound_ratio_loss(Kary(2, self.keep).ratio)

    def draw(self, positions: Positions, entropy: Entropy) -> Positions:
        """Draw one report for each position.

        Claim: K-46. Reports are independent; each has the table's distribution for its position.
        Requires: positions from 0 to 2**32 (caller).
        Relies on: K-40.
        Checked by: tests/local/test_means.py::test_reports_are_unbiased_for_the_table_itself
        """
        return Kary(2, self.keep).draw(round_to_steps(positions, 1, entropy), entropy)


@dataclass(frozen=True, slots=True)
class Window:
    """The piecewise mechanism on a grid: step j reports uniformly in j .. j + width - 1, or uniformly elsewhere.

    There are steps + width reports. The inside coin decides between the window and the rest.
    """

    steps: int
    width: int
    inside: int

    def __post_init__(self) -> None:
        steps, width = read_whole_number(self.steps, "steps", 1), read_whole_number(self.width, "width", 1)
        if steps & (steps - 1) or steps > MOST_STEPS or width > steps:
            raise InvalidParameter("steps", "must be a power of two up to 2**16, and width at most as much", "others")
        check_coin(self.inside, "inside")

    @property
    def outputs(self) -> int:
        return self.steps + self.width

    @property
    def ratio(self) -> Fraction:
        """How many times as likely a report inside the window is as one outside.

        Claim: K-46. No report is more than max(ratio, 1/ratio) times as likely for one position as for another.
        Requires: a coin of 1 to 2**32 - 1 units (checked when the table is built).
        Relies on: K-40, K-07.
        Checked by: tests/local/test_means.py::test_the_loss_is_what_the_laws_say
        """
        return Fraction(self.inside * self.steps, (UNITS - self.inside) * self.width)

    @property
    def epsilon(self) -> Decimal:
        """The privacy loss of one report, rounded up.

        Claim: K-46. No report is more than e**epsilon times as likely for one position as for another.
        Requires: coins of 1 to 2**32 - 1 units (checked when the table is built).
        Relies on: K-43, K-46.
        Checked by: tests/local/test_means.py::test_the_loss_is_what_the_laws_say
        """
        return bound_ratio_loss(self.ratio)

    def draw(self, positions: Positions, entropy: Entropy) -> Positions:
        """Draw one report for each position.

        Claim: K-46. Reports are independent; each has the table's distribution for its position.
        Requires: positions from 0 to 2**32 (caller).
        Relies on: K-40, K-07.
        Checked by: tests/local/test_means.py::test_reports_are_unbiased_for_the_table_itself
        """
        steps = round_to_steps(positions, self.steps, entropy)
        inside = flip_units(self.inside, positions.size, entropy)
        within = uniform_below(self.width, positions.size, entropy)
        beyond = uniform_below(self.steps, positions.size, entropy) + self.width
        return (steps + np.where(inside, within, beyond)) % self.outputs


@dataclass(frozen=True, slots=True)
class Mixture:
    """The hybrid mechanism: a coin with `windowed` units chooses the window or the ends, and the report shows which.

    Reports of the window come first, then the two of the ends.
    """

    windowed: int
    window: Window
    ends: Ends

    def __post_init__(self) -> None:
        if type(self.windowed) is not int or not 0 <= self.windowed <= UNITS:
            raise InvalidParameter("piecewise", "must be a whole number of units, from 0 to 2**32", "something else")

    @property
    def steps(self) -> int:
        return self.window.steps

    @property
    def outputs(self) -> int:
        return self.window.outputs + self.ends.outputs

    @property
    def epsilon(self) -> Decimal:
        """The privacy loss of one report, rounded up.

        Claim: K-46. No report is more than e**epsilon times as likely for one position as for another.
        Requires: coins of 1 to 2**32 - 1 units (checked when the table is built).
        Relies on: K-43, K-46.
        Checked by: tests/local/test_means.py::test_the_loss_is_what_the_laws_say
        """
        return max(self.window.epsilon, self.ends.epsilon)

    def draw(self, positions: Positions, entropy: Entropy) -> Positions:
        """Draw one report for each position.

        Claim: K-46. Reports are independent; each has the table's distribution for its position.
        Requires: positions from 0 to 2**32 (caller).
        Relies on: K-40.
        Checked by: tests/local/test_means.py::test_reports_are_unbiased_for_the_table_itself
        """
        windowed = flip_units(self.windowed, positions.size, entropy)
        window = self.window.draw(positions, entropy)
        return np.where(windowed, window, self.ends.draw(positions, entropy) + self.window.outputs)


@dataclass(frozen=True, slots=True)
class Rows:
    """A table in full: row j is the distribution of the report from step j, in units of 2**-32."""

    rows: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        rows = self.rows
        if not isinstance(rows, tuple) or not 2 <= len(rows) <= 257 or self.steps & (self.steps - 1):
            raise InvalidParameter("table", "must have 2**s + 1 rows, from 2 to 257", "something else")
        if any(not isinstance(row, tuple) or len(row) != len(rows) for row in rows):
            raise InvalidParameter("table", "must be square", "another shape")
        if any(type(units) is not int for row in rows for units in row):
            raise InvalidParameter("table", "must hold whole numbers", "something else")
        bound_rows_loss(rows)

    @property
    def steps(self) -> int:
        return len(self.rows) - 1

    @property
    def outputs(self) -> int:
        return len(self.rows[0])

    @property
    def epsilon(self) -> Decimal:
        """The privacy loss of one report, rounded up.

        Claim: K-46. No report is more than e**epsilon times as likely for one position as for another.
        Requires: coins of 1 to 2**32 - 1 units (checked when the table is built).
        Relies on: K-43, K-46.
        Checked by: tests/local/test_means.py::test_the_loss_is_what_the_laws_say
        """
        return bound_rows_loss(self.rows)

    def draw(self, positions: Positions, entropy: Entropy) -> Positions:
        """Draw one report for each position.

        Claim: K-46. Reports are independent; each has the table's distribution for its position.
        Requires: positions from 0 to 2**32 (caller).
        Relies on: K-40, K-41.
        Checked by: tests/local/test_means.py::test_reports_are_unbiased_for_the_table_itself
        """
        return draw_rows(np.array(self.rows, np.int64), round_to_steps(positions, self.steps, entropy), entropy)


def round_to_steps(positions: Positions, steps: int, entropy: Entropy) -> Positions:
    """Round each position up or down to a step at random.

    Claim: K-46. The expected step is positions * steps / 2**32 exactly; the coins are independent of all later ones.
    Requires: positions from 0 to 2**32 and steps up to 2**16 (caller).
    Relies on: K-40.
    Checked by: tests/local/test_means.py::test_reports_are_unbiased_for_the_table_itself
    """
    scaled = positions * steps
    return (scaled >> 32) + flip_units(scaled & (UNITS - 1), positions.size, entropy)
