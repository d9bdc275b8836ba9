"""Noise of a published law on a public grid, for a number: (epsilon, delta)-local privacy, with delta by enumeration.

A position is a whole number of 0 .. 2**32 between the public bounds. Part of the trusted perimeter.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.exact import round_up
from sfumato.local.mechanisms.coin_tables import UNITS, draw_rows
from sfumato.local.mechanisms.mean_tables import Positions, round_to_steps
from sfumato.local.mechanisms.table_limits import check_coin

MOST_NOISE_STEPS = 32
MOST_REACH = 1 << 13
MOST_EPSILON = 64
MOST_DECIMALS = 60  # of epsilon: every client can store the charge
_BITS = 192


@dataclass(frozen=True, slots=True)
class ShiftedNoise:
    """Round to a step, and add symmetric noise: z and -z have noise[|z|] units of 2**-32. Reports begin at -reach.

    `epsilon` is the point at which delta is computed: the same table has a smaller delta at a greater epsilon.
    """

    steps: int
    noise: tuple[int, ...]
    epsilon: Decimal

    def __post_init__(self) -> None:
        if type(self.steps) is not int or not 1 <= self.steps <= MOST_NOISE_STEPS or self.steps & (self.steps - 1):
            raise InvalidParameter("steps", f"must be a power of two up to {MOST_NOISE_STEPS}", "another number")
        if not isinstance(self.noise, tuple) or not 2 <= len(self.noise) <= MOST_REACH + 1:
            raise InvalidParameter("noise", f"must have 2 to {MOST_REACH + 1} entries", "something else")
        for units in self.noise:
            check_coin(units, "noise")
        if self.noise[0] + 2 * sum(self.noise[1:]) != UNITS:
            raise InvalidParameter("noise", "must have units that sum to 2**32 over both signs", "others")
        if not isinstance(self.epsilon, Decimal) or not 0 < self.epsilon <= MOST_EPSILON:
            raise InvalidParameter("epsilon", f"must be above 0 and at most {MOST_EPSILON}", "another number")
        if Fraction(self.epsilon) * 10**MOST_DECIMALS % 1:
            raise InvalidParameter("epsilon", f"must have at most {MOST_DECIMALS} decimals", "more", "Round it.")

    @property
    def reach(self) -> int:
        return len(self.noise) - 1

    @property
    def outputs(self) -> int:
        return self.steps + 2 * self.reach + 1

    @property
    def delta(self) -> Decimal:
        """The delta of one report at this epsilon, rounded up.

        Claim: K-84. P(report in S | x) <= e**epsilon * P(report in S | x') + delta for all positions and sets S.
        Requires: a table as checked when it is built.
        Relies on: K-84, K-46.
        Checked by: tests/local/test_shifted_noise.py::test_delta_is_what_the_enumerated_laws_have
        """
        return bound_shift_delta(self.noise, self.steps, self.epsilon)

    def draw(self, positions: Positions, entropy: Entropy) -> Positions:
        """Draw one report for each position.

        Claim: K-84. Reports are independent; each has the table's distribution for its position.
        Requires: positions from 0 to 2**32 (caller).
        Relies on: K-41, K-46.
        Checked by: tests/local/test_shifted_noise.py::test_delta_is_what_the_enumerated_laws_have
        """
        row = np.array([[*reversed(self.noise[1:]), *self.noise]], np.int64)
        steps = round_to_steps(positions, self.steps, entropy)
        return steps + draw_rows(row, np.zeros(positions.size, np.int64), entropy)


@lru_cache(maxsize=64)
def bound_shift_delta(noise: tuple[int, ...], steps: int, epsilon: Decimal) -> Decimal:
    """The greatest sum of max(0, P(r | j) - e**epsilon * P(r | j')) over two steps j and j', rounded up.

    Claim: K-84. The result is not below that sum for any two steps; two steps differ by 1 .. steps.
    Requires: symmetric noise in units of 2**-32 (caller).
    Relies on: K-01, K-84.
    Checked by: tests/local/test_shifted_noise.py::test_delta_is_what_the_enumerated_laws_have
    """
    growth = bound_growth(Fraction(epsilon))
    units = [*reversed(noise[1:]), *noise]
    worst = 0
    for distance in range(1, steps + 1):
        moved = [0] * distance + units
        worst = max(
            worst, sum(max((own << _BITS) - growth * other, 0) for own, other in zip(units, moved, strict=False))
        )
    return round_up(Fraction(worst, UNITS << _BITS))


def bound_growth(epsilon: Fraction) -> int:
    """e**epsilon in units of 2**-192, rounded down: each term of the series is, and the last ones are left out.

    Claim: K-84. The result is at most 2**192 * e**epsilon.
    Requires: epsilon >= 0 (caller).
    Relies on: Python's integers.
    Checked by: tests/local/test_shifted_noise.py::test_growth_is_rounded_down
    """
    term, total, count = 1 << _BITS, 0, 0
    while term:
        total, count = total + term, count + 1
        term = term * epsilon.numerator // (epsilon.denominator * count)
    return total
