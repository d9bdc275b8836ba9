"""k-ary randomised response: a keep coin, else any other category evenly. With two categories: yes or no."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.samplers import uniform_below
from sfumato.local.mechanisms.coin_tables import UNITS, flip_units, greatest_coin
from sfumato.local.mechanisms.report_forms import CELLS_AT_ONCE, Codes, Counts, Reports
from sfumato.local.mechanisms.table_limits import coin, number_of_categories


@dataclass(frozen=True, slots=True)
class Kary:
    """The truth with probability keep / 2**32, else each of the other k - 1 categories alike."""

    k: int
    keep: int
    name: str = "krr"

    def __post_init__(self) -> None:
        if number_of_categories(self.k) != 2 and self.name == "rr":
            raise InvalidParameter("k", "must be 2 for rr", "another number", "Use krr for more categories.")
        coin(self.keep, "keep")

    @classmethod
    def for_epsilon(cls, k: int, epsilon: Decimal, name: str = "krr") -> "Kary":
        number_of_categories(k)
        return cls(k, greatest_coin(lambda keep: _ratio(k, keep), epsilon), name)

    @property
    def ratio(self) -> Fraction:
        return _ratio(self.k, self.keep)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.keep, UNITS), Fraction(UNITS - self.keep, UNITS * (self.k - 1))

    @property
    def blanket(self) -> tuple[Fraction, Fraction]:
        return Fraction(1, self.k), Fraction(0)

    @property
    def form(self) -> Codes:
        return Codes(self.k)

    def describe(self) -> dict[str, object]:
        return {"mechanism": self.name, "k": self.k, "coins": {"keep": self.keep}}

    def draw(self, values: Counts, entropy: Entropy) -> Reports:
        """A keep coin for each, then a step of 1 .. k-1 around the circle of categories, used or not."""
        reports = np.empty(values.size, np.int64)
        for start in range(0, values.size, CELLS_AT_ONCE):
            part = values[start : start + CELLS_AT_ONCE]
            move_on(
                part, flip_units(self.keep, part.size, entropy), self.k, entropy, reports[start : start + part.size]
            )
        return reports

    def supports(self, reports: Reports) -> Counts:
        return np.bincount(reports, minlength=self.k)


def move_on(values: Counts, kept: Reports, k: int, entropy: Entropy, into: Counts) -> None:
    """Write each value where `kept`, else the value an even 1 .. k-1 steps further around the circle of k."""
    if k == 2:
        np.bitwise_xor(values, ~kept, out=into)
        return
    steps = uniform_below(k - 1, values.size, entropy)
    steps += 1
    steps[kept] = 0
    np.add(values, steps, out=into)
    into[into >= k] -= k


def _ratio(k: int, keep: int) -> Fraction:
    return Fraction(keep * (k - 1), UNITS - keep)
