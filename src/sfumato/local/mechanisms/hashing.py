"""Optimised local hashing: each person hashes the answer with a seed of their own, and randomises the short hash.

The hash of v under seed a is the low bits of the product a * v in a field of 2**m >= k elements. Over even seeds, two
categories collide with probability 1/g exactly; and the supports of all categories come from one fast transform.
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
from sfumato.local.mechanisms.binary_fields import (
    Elements,
    check_polynomial,
    combinations,
    field_polynomial,
    inverse,
    low_bit_form,
    powers,
    products,
    sum_of,
)
from sfumato.local.mechanisms.coin_tables import UNITS, flip_units, greatest_coin
from sfumato.local.mechanisms.hadamard import walsh_hadamard
from sfumato.local.mechanisms.kary import move_on
from sfumato.local.mechanisms.report_forms import CELLS_AT_ONCE, Codes, Counts, Reports
from sfumato.local.mechanisms.table_limits import coin, number_of_categories

MOST_HASH_BITS = 20
_AT_ONCE = 1 << 22  # reports that are put in order together, so that memory stays flat


@dataclass(frozen=True, slots=True)
class Hashing:
    """A seed a of m bits, and its hash among g = 2**t, true with probability keep / 2**32; reported as a * g + hash."""

    k: int
    hash_bits: int
    polynomial: int
    keep: int
    name: str = "olh"

    def __post_init__(self) -> None:
        number_of_categories(self.k)
        if whole_number(self.hash_bits, "hash_bits", 1) > MOST_HASH_BITS:
            raise InvalidParameter("hash_bits", f"must be at most {MOST_HASH_BITS}", "more")
        check_polynomial(self.polynomial, seed_bits(self.k, self.hash_bits))
        coin(self.keep, "keep")

    @classmethod
    def for_epsilon(cls, k: int, epsilon: Decimal) -> "Hashing":
        number_of_categories(k)
        hash_bits = best_hash_bits(epsilon)
        keep = greatest_coin(lambda keep: _ratio(1 << hash_bits, keep), epsilon)
        return cls(k, hash_bits, field_polynomial(seed_bits(k, hash_bits)), keep)

    @property
    def buckets(self) -> int:
        return 1 << self.hash_bits

    @property
    def seeds(self) -> int:
        return 1 << seed_bits(self.k, self.hash_bits)

    @property
    def ratio(self) -> Fraction:
        return _ratio(self.buckets, self.keep)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.keep, UNITS), Fraction(1, self.buckets)

    @property
    def blanket(self) -> tuple[Fraction, Fraction]:
        return Fraction(1, self.buckets), Fraction(1, self.buckets**2)

    @property
    def form(self) -> Codes:
        return Codes(self.seeds * self.buckets)

    def describe(self) -> dict[str, object]:
        return {
            "mechanism": self.name,
            "k": self.k,
            "hash_bits": self.hash_bits,
            "polynomial": self.polynomial,
            "coins": {"keep": self.keep},
        }

    def draw(self, values: Counts, entropy: Entropy) -> Reports:
        """An even seed; then k-ary response over the g hashes."""
        reports = np.empty(values.size, np.int64)
        step = CELLS_AT_ONCE // 8
        for start in range(0, values.size, step):
            part = values[start : start + step].astype(np.uint64)
            kept = flip_units(self.keep, part.size, entropy)
            seeds = entropy.take(4 * part.size).view("<u4").astype(np.uint64) & np.uint64(self.seeds - 1)
            hashes = products(seeds, part, self.polynomial) & np.uint64(self.buckets - 1)
            into = reports[start : start + part.size]
            move_on(hashes.astype(np.int64), kept, self.buckets, entropy, into)
            into += seeds.astype(np.int64) << self.hash_bits
        return reports

    def supports(self, reports: Reports) -> Counts:
        """How many reports (a, y) have hash(a, v) = y, for every v.

        That is 1/g times the sum, over masks u of t bits and over reports, of (-1)**(u . (hash(a, v) + y)). The bits
        that u picks of a product are the lowest bit of c_u times the product, for an element c_u of the field: so all
        masks fold into one array over the field, and one transform of it gives every v.
        """
        folded = np.zeros(self.seeds, np.int64)
        if self.form.count <= CELLS_AT_ONCE:
            self._fold(reports, 0, self.seeds, folded)
        else:
            for start in range(0, reports.size, _AT_ONCE):
                ordered = np.sort(reports[start : start + _AT_ONCE])
                block = max(1, CELLS_AT_ONCE >> self.hash_bits)
                firsts = np.arange(0, self.seeds, block)
                edges = [*np.searchsorted(ordered, firsts << self.hash_bits).tolist(), ordered.size]
                for first, low, high in zip(firsts.tolist(), edges, edges[1:], strict=False):
                    if low < high:
                        self._fold(ordered[low:high] - (first << self.hash_bits), first, block, folded)
        return walsh_hadamard(folded)[_form(self.polynomial)[: self.k]] >> self.hash_bits

    def _fold(self, reports: Reports, first: int, block: int, folded: Counts) -> None:
        """Add reports of the seeds first .. first + block - 1, counted from the first."""
        histogram = np.bincount(reports, minlength=block << self.hash_bits).reshape(block, self.buckets)
        places = _places(_pickers(self.polynomial, self.hash_bits), first, block, self.polynomial)
        signed = walsh_hadamard(histogram).reshape(-1)
        folded += np.bincount(places, signed, self.seeds).astype(np.int64)  # exact below 2**53


def _places(pickers: list[int], first: int, block: int, polynomial: int) -> Counts:
    """c_u * a for the seeds a = first .. first + block - 1, and for each all masks u: linear in the bits of both."""
    places = np.zeros((block, 1), np.uint64)
    for picker in pickers:
        basis = powers(picker, polynomial.bit_length() - 1, polynomial)
        own = combinations(basis[: (block - 1).bit_length()]) ^ np.uint64(sum_of(basis, first))
        places = np.concatenate((places, places ^ own[:, None]), axis=1)
    return places.reshape(-1).astype(np.int64)


@lru_cache(maxsize=16)
def _form(polynomial: int) -> Elements:
    """Where the transform leaves the sum for each v."""
    return combinations(low_bit_form(polynomial))


@lru_cache(maxsize=16)
def _pickers(polynomial: int, hash_bits: int) -> list[int]:
    """c_u for the masks u of a single bit; c_u is linear in u."""
    return inverse(low_bit_form(polynomial))[:hash_bits]


def seed_bits(k: int, hash_bits: int) -> int:
    return max((k - 1).bit_length(), hash_bits)


def best_hash_bits(epsilon: Decimal) -> int:
    """The t for which g = 2**t has the least variance, (e**eps - 1 + g)**2 / (g - 1): g near e**eps + 1."""
    low, high = exp_neg(Fraction(epsilon), 64)
    growth = Fraction(2 << 64, max(low + high, 1))  # a choice of g costs accuracy only, never privacy
    return min(range(1, MOST_HASH_BITS + 1), key=lambda bits: (growth - 1 + (1 << bits)) ** 2 / ((1 << bits) - 1))


def _ratio(buckets: int, keep: int) -> Fraction:
    return Fraction(keep * (buckets - 1), UNITS - keep)
