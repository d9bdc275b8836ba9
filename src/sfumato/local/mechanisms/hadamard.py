"""Hadamard response: a report is a column of a Hadamard matrix, more likely one where the category's row is +1."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.kernel.entropy import Entropy
from sfumato.local.mechanisms.coin_tables import UNITS, flip_units, greatest_coin
from sfumato.local.mechanisms.report_forms import CELLS_AT_ONCE, Codes, Counts, Reports
from sfumato.local.mechanisms.table_limits import coin, number_of_categories


@dataclass(frozen=True, slots=True)
class Hadamard:
    """Category v has row v + 1 of the matrix of 2**m > k columns; a column of +1 with probability keep / 2**32."""

    k: int
    keep: int
    name: str = "hadamard"

    def __post_init__(self) -> None:
        number_of_categories(self.k)
        coin(self.keep, "keep")

    @classmethod
    def for_epsilon(cls, k: int, epsilon: Decimal) -> "Hadamard":
        number_of_categories(k)
        return cls(k, greatest_coin(_ratio, epsilon))

    @property
    def columns(self) -> int:
        return 1 << self.k.bit_length()

    @property
    def ratio(self) -> Fraction:
        return _ratio(self.keep)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.keep, UNITS), Fraction(1, 2)

    @property
    def blanket(self) -> tuple[Fraction, Fraction]:
        return Fraction(1, 2), Fraction(1, 4)

    @property
    def form(self) -> Codes:
        return Codes(self.columns)

    def describe(self) -> dict[str, object]:
        return {"mechanism": self.name, "k": self.k, "coins": {"keep": self.keep}}

    def draw(self, values: Counts, entropy: Entropy) -> Reports:
        """An even column; where its sign is not the one the coin wants, one bit of it is turned."""
        reports = np.empty(values.size, np.int64)
        for start in range(0, values.size, CELLS_AT_ONCE):
            rows = values[start : start + CELLS_AT_ONCE] + 1
            minus = ~flip_units(self.keep, rows.size, entropy)
            columns = (entropy.take(4 * rows.size).view("<u4") & np.uint32(self.columns - 1)).astype(np.int64)
            odd = (np.bitwise_count(columns & rows) & 1).astype(np.bool_)
            columns ^= (rows & -rows) * (odd ^ minus)  # turning a bit of the row turns the sign
            reports[start : start + rows.size] = columns
        return reports

    def supports(self, reports: Reports) -> Counts:
        """The transform of the histogram of columns: (number of +1) - (number of -1), for every row at once."""
        histogram = np.bincount(reports, minlength=self.columns)
        return (reports.size + walsh_hadamard(histogram)[1 : self.k + 1]) >> 1


def walsh_hadamard(values: Counts) -> Counts:
    """Along the last axis, the sums over y of values[y] * (-1)**(bits set in x & y), for every x, in whole numbers."""
    size, half = values.shape[-1], 1
    result = values.astype(np.int64)
    while half < size:
        pairs = result.reshape(-1, 2, half)
        result = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1)
        half *= 2
    return result.reshape(values.shape)


def _ratio(keep: int) -> Fraction:
    return Fraction(keep, UNITS - keep)
