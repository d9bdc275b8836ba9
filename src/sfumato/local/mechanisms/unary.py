"""Unary encoding: one bit for each category, each flipped by itself. Optimised (OUE) or symmetric (basic RAPPOR).

Part of the trusted perimeter.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.kernel.entropy import Entropy
from sfumato.local.mechanisms.coin_tables import UNITS, flip_rows, flip_units
from sfumato.local.mechanisms.table_limits import check_categories, check_coin


@dataclass(frozen=True, slots=True)
class Unary:
    """A bit is set with probability one / 2**32 in the true category, and zero / 2**32 in every other."""

    k: int
    one: int
    zero: int
    name: str  # "oue" or "sue"

    def __post_init__(self) -> None:
        check_categories(self.k)
        check_coin(self.one, "one")
        check_coin(self.zero, "zero")

    @property
    def ratio(self) -> Fraction:
        """The greatest ratio between the probabilities of one report under two categories, which differ in two bits.

        Claim: K-45. No report is more than max(ratio, 1/ratio) times as likely for one category as for another.
        Requires: the coins have from 1 to 2**32 - 1 units (checked when the table is built).
        Relies on: K-40.
        Checked by: tests/local/test_category_laws.py::test_the_loss_is_what_the_table_says_and_no_more_than_asked
        """
        return Fraction(self.one * (UNITS - self.zero), self.zero * (UNITS - self.one))

    def draw(self, values: npt.NDArray[np.int64], entropy: Entropy) -> npt.NDArray[np.uint8]:
        """Draw one report for each person's category: its bits, eight to a byte, the first bit lowest.

        Claim: K-45. Reports are independent; each has the table's distribution for its category.
        Requires: values from 0 to k - 1 (caller).
        Relies on: K-40.
        Checked by: tests/local/test_category_laws.py::test_the_loss_is_what_the_table_says_and_no_more_than_asked
        """
        bits = flip_rows(values, self.one, self.zero, self.k, entropy)
        return np.packbits(bits, axis=1, bitorder="little")

    def draw_again(self, rows: npt.NDArray[np.uint8], entropy: Entropy) -> npt.NDArray[np.uint8]:
        """Draw a new row of bits for each given row: `one` units for a bit that is set there, `zero` for another.

        Claim: K-47. Bits are independent; each is set with exactly its probability.
        Requires: rows of k bits (caller).
        Relies on: K-40.
        Checked by: tests/local/test_memoised.py::test_supports_are_those_of_both_stages
        """
        bits = np.unpackbits(rows, axis=1, count=self.k, bitorder="little")
        units = np.where(bits.reshape(-1), self.one, self.zero).astype(np.int64)
        return np.packbits(flip_units(units, units.size, entropy).reshape(bits.shape), axis=1, bitorder="little")
