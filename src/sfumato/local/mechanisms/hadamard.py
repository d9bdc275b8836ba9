"""Hadamard response: a report is a column of a Hadamard matrix, with the sign +1 in the category's row more often.

Part of the trusted perimeter.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.kernel.entropy import Entropy
from sfumato.local.mechanisms.coin_tables import flip_units
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.table_limits import check_categories, check_coin


@dataclass(frozen=True, slots=True)
class Hadamard:
    """Category v has row v + 1 of the matrix of 2**m > k columns; the sign is +1 with probability keep / 2**32."""

    k: int
    keep: int
    name: ClassVar[str] = "hadamard"

    def __post_init__(self) -> None:
        check_categories(self.k)
        check_coin(self.keep, "keep")

    @property
    def columns(self) -> int:
        return 1 << self.k.bit_length()

    @property
    def ratio(self) -> Fraction:
        """The greatest ratio between the probabilities of one report under two categories.

        Claim: K-45. No report is more than max(ratio, 1/ratio) times as likely for one category as for another.
        Requires: the coins have from 1 to 2**32 - 1 units (checked when the table is built).
        Relies on: K-40, K-04.
        Checked by: tests/local/test_category_laws.py::test_the_loss_is_what_the_table_says_and_no_more_than_asked
        """
        return Kary(2, self.keep).ratio

    def draw(self, values: npt.NDArray[np.int64], entropy: Entropy) -> npt.NDArray[np.int64]:
        """Draw one report for each person's category: a uniform column of the sign that the coin asks for.

        A uniform column of any sign is drawn first. Where the sign is wrong, the lowest bit of the row's number is
        flipped in it, which maps the columns of one sign one-to-one to those of the other.

        Claim: K-45. Reports are independent; each has the table's distribution for its category.
        Requires: values from 0 to k - 1 (caller).
        Relies on: K-40, K-04.
        Checked by: tests/local/test_category_laws.py::test_the_loss_is_what_the_table_says_and_no_more_than_asked
        """
        rows = values + 1
        minus = ~flip_units(self.keep, rows.size, entropy)
        columns = (entropy.take(4 * rows.size).view("<u4") & np.uint32(self.columns - 1)).astype(np.int64)
        odd = (np.bitwise_count(columns & rows) & 1).astype(np.bool_)
        columns ^= (rows & -rows) * (odd ^ minus)
        return columns
