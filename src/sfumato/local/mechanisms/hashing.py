"""Local hashing (OLH): each person hashes the answer with a seed of their own, and randomises the short hash.

The hash of v under seed a is the low bits of the product a * v in a field of 2**m >= k elements. The privacy proof
(K-45) needs only that the hash is a function of the seed and the answer. Part of the trusted perimeter.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import Entropy
from sfumato.local.mechanisms.binary_fields import check_polynomial, multiply
from sfumato.local.mechanisms.coin_tables import flip_units
from sfumato.local.mechanisms.kary import Kary, keep_or_move
from sfumato.local.mechanisms.table_limits import check_categories, check_coin
from sfumato.number_arguments import read_whole_number

MOST_HASH_BITS = 20


@dataclass(frozen=True, slots=True)
class Hashing:
    """A uniform seed, and the hash of t bits, true with probability keep / 2**32; reported as seed * 2**t + hash."""

    k: int
    hash_bits: int
    polynomial: int
    keep: int
    name: ClassVar[str] = "olh"

    def __post_init__(self) -> None:
        check_categories(self.k)
        if read_whole_number(self.hash_bits, "hash_bits", 1) > MOST_HASH_BITS:
            raise InvalidParameter("hash_bits", f"must be at most {MOST_HASH_BITS}", "more")
        check_polynomial(self.polynomial, self.seed_bits)
        check_coin(self.keep, "keep")

    @property
    def buckets(self) -> int:
        return 1 << self.hash_bits

    @property
    def seed_bits(self) -> int:
        return max((self.k - 1).bit_length(), self.hash_bits)

    @property
    def ratio(self) -> Fraction:
        """The greatest ratio between the probabilities of one report under two categories.

        Claim: K-45. No report is more than max(ratio, 1/ratio) times as likely for one category as for another.
        Requires: the coins have from 1 to 2**32 - 1 units (checked when the table is built).
        Relies on: K-40, K-22.
        Checked by: tests/local/test_category_laws.py::test_the_loss_is_what_the_table_says_and_no_more_than_asked
        """
        return Kary(self.buckets, self.keep).ratio

    def draw(self, values: npt.NDArray[np.int64], entropy: Entropy) -> npt.NDArray[np.int64]:
        """Draw one report for each person's category: a uniform seed, then k-ary response on the hash.

        Claim: K-45. Reports are independent; each has the table's distribution for its category.
        Requires: values from 0 to k - 1 (caller).
        Relies on: K-40, K-04, K-22.
        Checked by: tests/local/test_category_laws.py::test_the_loss_is_what_the_table_says_and_no_more_than_asked
        """
        kept = flip_units(self.keep, values.size, entropy)
        seeds = entropy.take(4 * values.size).view("<u4") & np.uint32((1 << self.seed_bits) - 1)
        hashes = multiply(seeds.astype(np.uint64), values.astype(np.uint64), self.polynomial)
        hashes &= np.uint64(self.buckets - 1)
        reports = keep_or_move(hashes.astype(np.int64), kept, self.buckets, entropy)
        reports += seeds.astype(np.int64) << self.hash_bits
        return reports
