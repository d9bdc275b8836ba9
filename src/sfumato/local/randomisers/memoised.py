"""A report in two stages: a permanent one, drawn once and kept, and fresh coins on top of it for every report.

All reports from one permanent report together tell no more than it does: they are made of it and of coins. One report
by itself tells less: it has passed both tables.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import Entropy
from sfumato.local.mechanisms.coin_tables import UNITS, flip_units, greatest_coin, loss_of_ratio
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.report_forms import CELLS_AT_ONCE, BitRows, Codes, Counts, Reports
from sfumato.local.mechanisms.unary import Unary
from sfumato.local.randomisers.category_randomisers import Randomiser, randomiser

STAGED = ("rr", "krr", "oue", "sue")

Support = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Memoised:
    """The table of one report that passed a permanent table and an instantaneous one of the same kind.

    Categories: k-ary response on a k-ary response. Rows of bits: every bit of the permanent row is reported as set
    with probability one / 2**32 if it is set, and zero / 2**32 if not.
    """

    permanent: Kary | Unary
    instantaneous: Kary | Unary

    def __post_init__(self) -> None:
        if type(self.permanent) is not type(self.instantaneous) or self.permanent.k != self.instantaneous.k:
            raise InvalidParameter("instantaneous", "must be a table for the reports of the permanent one", "another")
        true, other = self.support
        if true <= other:
            raise InvalidParameter("table", "must report the truth more often than anything else", "one that does not")

    @property
    def name(self) -> str:
        return f"memoised {self.permanent.name}"

    @property
    def k(self) -> int:
        return self.permanent.k

    @property
    def longitudinal_epsilon(self) -> Decimal:
        """The loss of all reports from one permanent report together."""
        return loss_of_ratio(self.permanent.ratio)

    @property
    def support(self) -> Support:
        match self.permanent, self.instantaneous:
            case Kary(), Kary():
                return _through_two_responses(self.permanent, self.instantaneous)
            case Unary() as first, Unary() as second:
                return _through_two_rows(first, second.support)
        raise AssertionError("of one kind: checked when made")

    @property
    def ratio(self) -> Fraction:
        """Of one report: both stages of one kind make a table of that kind again."""
        true, other = self.support
        return true / other if isinstance(self.permanent, Kary) else true * (1 - other) / (other * (1 - true))

    @property
    def blanket(self) -> Support:
        if isinstance(self.permanent, Kary):
            return self.permanent.blanket
        _, other = self.support
        return other, other**2

    @property
    def form(self) -> Codes | BitRows:
        return self.permanent.form

    def describe(self) -> dict[str, object]:
        return {
            "mechanism": "memoised",
            "permanent": self.permanent.describe(),
            "instantaneous": self.instantaneous.describe(),
        }

    def draw(self, values: Counts, entropy: Entropy) -> Reports:
        """First reports, in bulk: a permanent one for each person, and one on top of it."""
        return self.again(self.permanent.draw(values, entropy), entropy)

    def again(self, kept: Reports, entropy: Entropy) -> Reports:
        """A report on each of the permanent reports, with fresh coins: a word for each bit, or as k-ary response."""
        if isinstance(self.instantaneous, Kary):
            return self.instantaneous.draw(kept, entropy)
        reports = np.empty_like(kept)
        step = max(1, CELLS_AT_ONCE // self.k)
        for start in range(0, len(kept), step):
            bits = np.unpackbits(kept[start : start + step], axis=1, count=self.k, bitorder="little")
            units = np.where(bits.reshape(-1), self.instantaneous.one, self.instantaneous.zero).astype(np.int64)
            flipped = flip_units(units, units.size, entropy).reshape(bits.shape)
            reports[start : start + step] = np.packbits(flipped, axis=1, bitorder="little")
        return reports

    def supports(self, reports: Reports) -> Counts:
        return self.permanent.supports(reports)


def memoised(name: str, *, k: int, longitudinal_epsilon: Decimal, epsilon: Decimal) -> Randomiser:
    """Two stages: one permanent report costs at most `longitudinal_epsilon`, one report by itself at most `epsilon`."""
    if name not in STAGED:
        raise InvalidParameter("name", f"must be one of {', '.join(STAGED)} for two stages", "another name")
    if epsilon >= longitudinal_epsilon:
        raise InvalidParameter(
            "epsilon", "must be below the longitudinal epsilon", "as much, or more", "Or repeat the permanent report."
        )
    permanent = randomiser(name, k=k, epsilon=longitudinal_epsilon).mechanism
    if not isinstance(permanent, Kary | Unary):
        raise AssertionError("the staged mechanisms are of these two kinds")

    def instantaneous(keep: int) -> Kary | Unary:
        return Kary(k, keep, name) if isinstance(permanent, Kary) else Unary(k, keep, UNITS - keep, "sue")

    def ratio(keep: int) -> Fraction:
        if isinstance(permanent, Kary):
            true, other = _through_two_responses(permanent, Kary(k, keep, name))
            return true / other
        coins = Fraction(keep, UNITS), Fraction(UNITS - keep, UNITS)  # no table where keep is one half or less
        true, other = _through_two_rows(permanent, coins)
        return true * (1 - other) / (other * (1 - true))

    return Randomiser(Memoised(permanent, instantaneous(greatest_coin(ratio, epsilon))))


def _through_two_responses(first: Kary, second: Kary) -> Support:
    kept, again, others = Fraction(first.keep, UNITS), Fraction(second.keep, UNITS), first.k - 1
    true = kept * again + (1 - kept) * (1 - again) / others
    return true, (1 - true) / others


def _through_two_rows(first: Unary, coins: Support) -> Support:
    (own, another), (one, zero) = first.support, coins
    return own * one + (1 - own) * zero, another * one + (1 - another) * zero
