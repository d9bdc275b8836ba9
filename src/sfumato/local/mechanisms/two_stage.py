"""Two stages: a permanent report that is drawn once and kept, and fresh coins on it for every report that is sent.

Part of the trusted perimeter.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import Entropy
from sfumato.local.mechanisms.coin_tables import UNITS
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.unary import Unary


@dataclass(frozen=True, slots=True)
class TwoStage:
    """A permanent table, and a second table of the same kind for the reports on the permanent report."""

    permanent: Kary | Unary
    instantaneous: Kary | Unary

    def __post_init__(self) -> None:
        if type(self.permanent) is not type(self.instantaneous) or self.permanent.k != self.instantaneous.k:
            raise InvalidParameter("instantaneous", "must be a table for the reports of the permanent one", "another")

    @property
    def name(self) -> str:
        return f"memoised {self.permanent.name}"

    @property
    def k(self) -> int:
        return self.permanent.k

    @property
    def ratio(self) -> Fraction:
        """The greatest ratio of a single report: both stages together are again a table of the same kind.

        Claim: K-47. No single report is more than max(ratio, 1/ratio) times as likely for one category as for another.
            All reports on one permanent report together cost no more than `permanent.ratio`.
        Requires: the two tables are of one kind and size (checked when the table is built).
        Relies on: K-45.
        Checked by: tests/local/test_memoised.py::test_all_reports_together_cost_no_more_than_the_permanent_one
        """
        match self.permanent, self.instantaneous:
            case Kary() as first, Kary() as second:
                true, other = pass_two_responses(first, second)
                return true / other
            case Unary() as first, Unary() as second:
                true, other = pass_two_rows(first, second)
                return true * (1 - other) / (other * (1 - true))
        raise AssertionError("both tables are of one kind: checked when the table is built")

    def draw(self, values: npt.NDArray[np.int64], entropy: Entropy) -> npt.NDArray[Any]:
        """Draw a permanent report for each person, and one report on it.

        Claim: K-47. Reports are independent; each has the distribution of the two tables in sequence.
        Requires: values from 0 to k - 1 (caller).
        Relies on: K-45.
        Checked by: tests/local/test_memoised.py::test_bulk_draws_are_two_draws
        """
        return self.draw_again(self.permanent.draw(values, entropy), entropy)

    def draw_again(self, permanent: npt.NDArray[Any], entropy: Entropy) -> npt.NDArray[Any]:
        """Draw one report on each permanent report, with fresh coins.

        Claim: K-47. Given the permanent report, the report does not depend on the answer.
        Requires: reports of the permanent table (caller).
        Relies on: K-45.
        Checked by: tests/local/test_memoised.py::test_supports_are_those_of_both_stages
        """
        if isinstance(self.instantaneous, Kary):
            return self.instantaneous.draw(permanent, entropy)
        return self.instantaneous.draw_again(permanent, entropy)


def pass_two_responses(first: Kary, second: Kary) -> tuple[Fraction, Fraction]:
    """The probability that k-ary response on a k-ary response reports the true category, and another given one.

    Claim: K-47. The result is exact.
    Requires: tables of the same k (caller).
    Relies on: K-45.
    Checked by: tests/local/test_memoised.py::test_supports_are_those_of_both_stages
    """
    stayed, stays, others = Fraction(first.keep, UNITS), Fraction(second.keep, UNITS), first.k - 1
    true = stayed * stays + (1 - stayed) * (1 - stays) / others
    return true, (1 - true) / others


def pass_two_rows(first: Unary, second: Unary) -> tuple[Fraction, Fraction]:
    """The probability that the bit of the true category is set after both stages, and that of another category.

    Claim: K-47. The result is exact.
    Requires: tables of the same k (caller).
    Relies on: K-45.
    Checked by: tests/local/test_memoised.py::test_supports_are_those_of_both_stages
    """
    own, other = (units * second.one + (UNITS - units) * second.zero for units in (first.one, first.zero))
    return Fraction(own, UNITS * UNITS), Fraction(other, UNITS * UNITS)
