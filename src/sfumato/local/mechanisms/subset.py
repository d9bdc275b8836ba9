"""Subset selection: a report is a set of w categories, in which the true one is more likely than any other."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.exact import exp_neg
from sfumato.kernel.parameters import whole_number
from sfumato.local.mechanisms.coin_tables import UNITS, flip_units, greatest_coin, uniform_subsets
from sfumato.local.mechanisms.report_forms import CELLS_AT_ONCE, BitRows, Counts, Reports
from sfumato.local.mechanisms.table_limits import coin, number_of_categories


@dataclass(frozen=True, slots=True)
class Subset:
    """The true category is among the w with probability include / 2**32; the other places are filled evenly."""

    k: int
    size: int
    include: int
    name: str = "subset"

    def __post_init__(self) -> None:
        number_of_categories(self.k)
        if whole_number(self.size, "size", 1) >= self.k:
            raise InvalidParameter("size", "must be below k", "as much, or more")
        coin(self.include, "include")

    @classmethod
    def for_epsilon(cls, k: int, epsilon: Decimal) -> "Subset":
        number_of_categories(k)
        size = best_size(k, epsilon)
        return cls(k, size, greatest_coin(lambda include: _ratio(k, size, include), epsilon))

    @property
    def ratio(self) -> Fraction:
        return _ratio(self.k, self.size, self.include)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        include, others = Fraction(self.include, UNITS), self.k - 1
        return include, (include * (self.size - 1) + (1 - include) * self.size) / others

    @property
    def blanket(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.size, self.k), Fraction(self.size * (self.size - 1), self.k * (self.k - 1))

    @property
    def form(self) -> BitRows:
        return BitRows(self.k, self.size)

    def describe(self) -> dict[str, object]:
        return {"mechanism": self.name, "k": self.k, "size": self.size, "coins": {"include": self.include}}

    def draw(self, values: Counts, entropy: Entropy) -> Reports:
        """Draw w (or w - 1) of k - 1 places evenly: place c is category c, but the true one's place is the last one."""
        form = self.form
        reports = np.empty((values.size, form.bytes), np.uint8)
        step = max(1, CELLS_AT_ONCE // self.k)
        for start in range(0, values.size, step):
            part = values[start : start + step]
            people = np.arange(part.size)
            included = flip_units(self.include, part.size, entropy)
            bits = np.empty((part.size, self.k), np.bool_)
            bits[:, :-1] = uniform_subsets(self.k - 1, self.size, included, entropy)
            bits[:, -1] = bits[people, part % (self.k - 1)]
            bits[people, part] = included
            reports[start : start + part.size] = np.packbits(bits, axis=1, bitorder="little")
        return reports

    def supports(self, reports: Reports) -> Counts:
        return self.form.count_ones(reports)


def best_size(k: int, epsilon: Decimal) -> int:
    """The w of least mean squared error: one of the two whole numbers around k / (e**epsilon + 1), at least 1."""
    low, high = exp_neg(Fraction(epsilon), 64)
    shrunk = Fraction(low + high, 2 << 64)  # e**-epsilon; a choice of w costs accuracy only, never privacy
    near = int(k * shrunk / (1 + shrunk))
    around = [size for size in (near, near + 1) if 1 <= size < k] or [1]
    return min(around, key=lambda size: _error(k, size, shrunk))


def _error(k: int, size: int, shrunk: Fraction) -> Fraction:
    include = size / (size + (k - size) * shrunk)
    other = (size - include) / (k - 1)
    return (other * (1 - other) * (k - 1) + include * (1 - include)) / (include - other) ** 2


def _ratio(k: int, size: int, include: int) -> Fraction:
    return Fraction(include * (k - size), (UNITS - include) * size)
