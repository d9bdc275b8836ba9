"""k-ary randomised response: report the true category on heads of a coin, otherwise another one, uniformly.

Part of the trusted perimeter.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.coins import BoolArray
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.exact import Logistic, Probability, Rational
from sfumato.kernel.losses import PureDP
from sfumato.kernel.samplers import uniform_below
from sfumato.local.mechanisms.biased_coins import bernoulli
from sfumato.local.mechanisms.coin_tables import UNITS, bound_ratio_loss, flip_units
from sfumato.local.mechanisms.table_limits import check_categories, check_coin


@dataclass(frozen=True, slots=True)
class Kary:
    """The keep coin has `keep` units of 2**-32. `name` is "krr", or "rr" with two categories."""

    k: int
    keep: int
    name: str = "krr"

    def __post_init__(self) -> None:
        if check_categories(self.k) != 2 and self.name == "rr":
            raise InvalidParameter("k", "must be 2 for rr", "another number", "Use krr for more categories.")
        check_coin(self.keep, "keep")

    @property
    def ratio(self) -> Fraction:
        """The greatest ratio between the probabilities of one report under two categories.

        Claim: K-45. No report is more than max(ratio, 1/ratio) times as likely for one category as for another.
        Requires: k >= 2 and 0 < keep < 2**32 (checked when the table is built).
        Relies on: K-40, K-07.
        Checked by: tests/local/test_category_laws.py::test_the_loss_is_what_the_table_says_and_no_more_than_asked
        """
        return Fraction(self.keep * (self.k - 1), UNITS - self.keep)

    def draw(self, values: npt.NDArray[np.int64], entropy: Entropy) -> npt.NDArray[np.int64]:
        """Draw one report for each person's category.

        Claim: K-45. Reports are independent; each has the table's distribution for its category.
        Requires: values from 0 to k - 1 (caller).
        Relies on: K-40, K-22.
        Checked by: tests/local/test_category_laws.py::test_the_loss_is_what_the_table_says_and_no_more_than_asked
        """
        return keep_or_move(values, flip_units(self.keep, values.size, entropy), self.k, entropy)


@dataclass(frozen=True, slots=True)
class ExactKary:
    """The keep coin has an exact real probability, so that the loss is the given epsilon itself."""

    k: int
    keep: Probability
    loss: PureDP

    @classmethod
    def for_epsilon(cls, k: int, epsilon: Decimal) -> "ExactKary":
        """Build the response whose greatest ratio is e**epsilon.

        Claim: K-22. `loss` holds for every draw.
        Requires: k >= 2 and epsilon > 0 (caller).
        Relies on: K-05.
        Checked by: tests/local/test_randomized_response.py::test_kary_reports_are_exact
        """
        return cls(k, Logistic(-Fraction(epsilon), Fraction(k - 1)), PureDP(epsilon))

    @classmethod
    def for_truth(cls, truth: Fraction) -> "ExactKary":
        """Build the yes-or-no response that reports the truth with this probability.

        Claim: K-22. `loss` holds for every draw: it is ln(truth / (1 - truth)), rounded up.
        Requires: 1/2 < truth < 1 (caller).
        Relies on: K-05, K-43.
        Checked by: tests/local/test_randomized_response.py::test_two_coins_are_ln_three_exactly
        """
        return cls(2, Rational(truth), PureDP(bound_ratio_loss(truth / (1 - truth))))

    def draw(self, values: npt.NDArray[np.int64], entropy: Entropy) -> npt.NDArray[np.int64]:
        """Draw one report for each person's category.

        Claim: K-22. Each report equals its category with the keep coin's probability; all others are equally likely.
        Requires: values from 0 to k - 1 (caller); one report per person and question (caller).
        Relies on: K-05, K-07.
        Checked by: tests/local/test_randomized_response.py::test_kary_reports_are_exact
        """
        return keep_or_move(values, bernoulli(self.keep, values.size, entropy), self.k, entropy)


def keep_or_move(values: npt.NDArray[np.int64], kept: BoolArray, k: int, entropy: Entropy) -> npt.NDArray[np.int64]:
    """Return each value where `kept` is True, and otherwise one of the k - 1 other values.

    Claim: K-22. All other values are equally likely. The bytes that are read do not depend on `values` or `kept`.
    Requires: values from 0 to k - 1 (caller).
    Relies on: K-07.
    Checked by: tests/local/test_randomized_response.py::test_kary_reports_are_exact
    """
    if k == 2:
        return values ^ ~kept
    moved = uniform_below(k - 1, values.size, entropy)
    moved += 1
    moved[kept] = 0
    moved += values
    moved[moved >= k] -= k
    return moved
