"""Subset selection: a report is a set of w categories, which holds the true one with a coin's probability.

Part of the trusted perimeter.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import Entropy
from sfumato.local.mechanisms.coin_tables import UNITS, draw_uniform_subsets, flip_units
from sfumato.local.mechanisms.table_limits import check_categories, check_coin
from sfumato.number_arguments import read_whole_number


@dataclass(frozen=True, slots=True)
class Subset:
    """The true category is in the set with probability include / 2**32; the rest of the set is uniform."""

    k: int
    size: int
    include: int
    name: ClassVar[str] = "subset"

    def __post_init__(self) -> None:
        check_categories(self.k)
        if read_whole_number(self.size, "size", 1) >= self.k:
            raise InvalidParameter("size", "must be below k", "k or more")
        check_coin(self.include, "include")

    @property
    def ratio(self) -> Fraction:
        """The greatest ratio between the probabilities of one report under two categories.

        Claim: K-45. No report is more than max(ratio, 1/ratio) times as likely for one category as for another.
        Requires: the coins have from 1 to 2**32 - 1 units (checked when the table is built).
        Relies on: K-40, K-42.
        Checked by: tests/local/test_category_laws.py::test_the_loss_is_what_the_table_says_and_no_more_than_asked
        """
        return Fraction(self.include * (self.k - self.size), (UNITS - self.include) * self.size)

    def draw(self, values: npt.NDArray[np.int64], entropy: Entropy) -> npt.NDArray[np.uint8]:
        """Draw one report for each person's category: the set's bits, eight to a byte.

        The k - 1 other categories take the places 0 .. k - 2: category c has place c, and category k - 1 has the place
        of the true one.

        Claim: K-45. Reports are independent; each has the table's distribution for its category.
        Requires: values from 0 to k - 1 (caller).
        Relies on: K-40, K-42.
        Checked by: tests/local/test_category_laws.py::test_the_loss_is_what_the_table_says_and_no_more_than_asked
        """
        people = np.arange(values.size)
        included = flip_units(self.include, values.size, entropy)
        bits = np.empty((values.size, self.k), np.bool_)
        bits[:, :-1] = draw_uniform_subsets(self.k - 1, self.size, included, entropy)
        bits[:, -1] = bits[people, values % (self.k - 1)]
        bits[people, values] = included
        return np.packbits(bits, axis=1, bitorder="little")
