"""Unary encoding: one bit for each category, each flipped by itself. Optimised (OUE) and symmetric (basic RAPPOR)."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import Entropy
from sfumato.local.mechanisms.coin_tables import UNITS, flip_rows, greatest_coin
from sfumato.local.mechanisms.report_forms import CELLS_AT_ONCE, BitRows, Counts, Reports
from sfumato.local.mechanisms.table_limits import coin, number_of_categories


@dataclass(frozen=True, slots=True)
class Unary:
    """A bit is set with probability one / 2**32 in the true category, and zero / 2**32 in every other."""

    k: int
    one: int
    zero: int
    name: str

    def __post_init__(self) -> None:
        number_of_categories(self.k)
        if coin(self.zero, "zero") >= coin(self.one, "one"):
            raise InvalidParameter("one", "must be above zero's units", "less, or as much")

    @classmethod
    def optimised(cls, k: int, epsilon: Decimal) -> "Unary":
        """A fair coin for the true bit; the others as rarely set as epsilon allows."""
        number_of_categories(k)
        half = UNITS // 2
        return cls(k, half, UNITS - greatest_coin(lambda unset: _ratio(half, UNITS - unset), epsilon), "oue")

    @classmethod
    def symmetric(cls, k: int, epsilon: Decimal) -> "Unary":
        """Every bit kept with the same probability."""
        number_of_categories(k)
        keep = greatest_coin(lambda one: _ratio(one, UNITS - one), epsilon)
        return cls(k, keep, UNITS - keep, "sue")

    @property
    def ratio(self) -> Fraction:
        return _ratio(self.one, self.zero)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.one, UNITS), Fraction(self.zero, UNITS)

    @property
    def blanket(self) -> tuple[Fraction, Fraction]:
        _, other = self.support
        return other, other**2

    @property
    def form(self) -> BitRows:
        return BitRows(self.k)

    def describe(self) -> dict[str, object]:
        return {"mechanism": self.name, "k": self.k, "coins": {"one": self.one, "zero": self.zero}}

    def draw(self, values: Counts, entropy: Entropy) -> Reports:
        """One word for each bit, against the units of its category."""
        form = self.form
        reports = np.empty((values.size, form.bytes), np.uint8)
        step = max(1, CELLS_AT_ONCE // self.k)
        for start in range(0, values.size, step):
            part = values[start : start + step]
            bits = flip_rows(part, self.one, self.zero, self.k, entropy)
            reports[start : start + part.size] = np.packbits(bits, axis=1, bitorder="little")
        return reports

    def supports(self, reports: Reports) -> Counts:
        return self.form.count_ones(reports)


def _ratio(one: int, zero: int) -> Fraction:
    """Another answer moves two bits: one that was set less likely, and one that was set more likely."""
    return Fraction(one * (UNITS - zero), zero * (UNITS - one))
