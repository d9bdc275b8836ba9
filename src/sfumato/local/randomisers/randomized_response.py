"""Randomised response with exact coins, for scripts and lessons: `RandomizedResponse` and `KaryResponse`."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.coins import BoolArray
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.exact import Probability, Rational, enclose, write_plain
from sfumato.kernel.losses import PureDP
from sfumato.local.mechanisms.kary import ExactKary
from sfumato.local.mechanisms.table_limits import MOST_CATEGORIES
from sfumato.local.randomisers.share_estimates import estimate_shares
from sfumato.local.randomisers.tally import Tally
from sfumato.number_arguments import Number, read_positive_decimal, read_probability, read_whole_number
from sfumato.number_arrays import plain_array

_BITS = 256
LEAST_EPSILON = Decimal("1e-12")
MOST_EPSILON = Decimal(64)


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """An unbiased estimate of a share of people, from randomised reports. It can fall outside [0, 1].

    `standard_error` is for the people who were asked: only the coins vary. The interval (Wilson's, mapped through the
    estimate) is for the population: it also covers the random draw of those people. It does not cover people who do not
    answer, or fake reports.
    """

    value: float
    standard_error: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse:
    """Yes-or-no randomised response: report the truth with probability `truth`, otherwise the opposite.

    Give `epsilon`, or `truth` itself: truth=Fraction(3, 4) is the two-coin version, whose epsilon is ln 3.
    """

    mechanism: ExactKary

    def __init__(self, epsilon: Number | None = None, *, truth: Number | None = None) -> None:
        if (epsilon is None) == (truth is None):
            raise InvalidParameter("epsilon or truth", "must be given, one of them", "both or neither")
        if truth is None:
            mechanism = ExactKary.for_epsilon(2, _read_epsilon(epsilon))
        else:
            probability = read_probability(truth, "truth")
            if probability <= Fraction(1, 2):
                raise InvalidParameter("truth", "must lie strictly between 1/2 and 1", "1/2 or less")
            mechanism = ExactKary.for_truth(probability)
            _read_epsilon(mechanism.loss.epsilon)
        object.__setattr__(self, "mechanism", mechanism)

    def __repr__(self) -> str:
        if isinstance(self.truth, Rational):
            return f"RandomizedResponse(truth=Fraction({str(self.truth.value)!r}))"
        return f"RandomizedResponse(epsilon={write_plain(self.loss.epsilon)})"

    @property
    def truth(self) -> Probability:
        return self.mechanism.keep

    @property
    def loss(self) -> PureDP:
        return self.mechanism.loss

    @overload
    def randomise(self, answers: bool) -> bool: ...
    @overload
    def randomise(self, answers: Sequence[bool] | BoolArray) -> BoolArray: ...
    @overload
    def randomise(self, answers: object) -> bool | BoolArray: ...
    def randomise(self, answers: object) -> bool | BoolArray:
        """Randomise one answer, or an array with one answer per person. Each person reports once per question."""
        return flip_answers(self, answers, SYSTEM)

    def estimate(self, reports: object, confidence: Number = "0.95") -> ShareEstimate:
        """Estimate the share of people whose answer is yes, from their reports."""
        yes, _ = _read_answers(reports, "reports")
        return _estimate(self.mechanism, np.array([int(yes.sum())]), yes.size, confidence)[0]


@dataclass(frozen=True, slots=True, init=False)
class KaryResponse:
    """Randomised response over categories 0 .. k-1: report the truth, or another category, uniformly."""

    mechanism: ExactKary

    def __init__(self, categories: int, epsilon: Number) -> None:
        exact = _read_epsilon(epsilon)
        count = read_whole_number(categories, "categories", 2)
        if count > MOST_CATEGORIES:
            raise InvalidParameter(
                "categories", f"must be at most {MOST_CATEGORIES}", "more", "Hash them into fewer first."
            )
        object.__setattr__(self, "mechanism", ExactKary.for_epsilon(count, exact))

    def __repr__(self) -> str:
        return f"KaryResponse(categories={self.categories}, epsilon={write_plain(self.loss.epsilon)})"

    @property
    def categories(self) -> int:
        return self.mechanism.k

    @property
    def keep(self) -> Probability:
        return self.mechanism.keep

    @property
    def loss(self) -> PureDP:
        return self.mechanism.loss

    @overload
    def randomise(self, answers: int) -> int: ...
    @overload
    def randomise(self, answers: Sequence[int] | npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]: ...
    @overload
    def randomise(self, answers: object) -> int | npt.NDArray[np.int64]: ...
    def randomise(self, answers: object) -> int | npt.NDArray[np.int64]:
        """Randomise one category, or an array with one category per person. Each person reports once per question."""
        return move_answers(self, answers, SYSTEM)

    def estimate(self, reports: object, confidence: Number = "0.95") -> list[ShareEstimate]:
        """Estimate, for each category, the share of people who are in it, from their reports."""
        flat, _ = _read_categories(reports, "reports", self.categories)
        return _estimate(self.mechanism, np.bincount(flat, minlength=self.categories), flat.size, confidence)


def flip_answers(response: RandomizedResponse, answers: object, entropy: Entropy) -> bool | BoolArray:
    """Randomise yes-or-no answers with these coins."""
    flat, shape = _read_answers(answers, "answers")
    reports = response.mechanism.draw(flat.astype(np.int64), entropy).astype(np.bool_)
    return bool(reports[0]) if shape is None else reports.reshape(shape)


def move_answers(response: KaryResponse, answers: object, entropy: Entropy) -> int | npt.NDArray[np.int64]:
    """Randomise categories with these coins."""
    flat, shape = _read_categories(answers, "answers", response.categories)
    reports = response.mechanism.draw(flat, entropy)
    return int(reports[0]) if shape is None else reports.reshape(shape)


def _read_epsilon(value: object) -> Decimal:
    exact = read_positive_decimal(value, "epsilon")
    if not LEAST_EPSILON <= exact <= MOST_EPSILON:
        raise InvalidParameter(
            "epsilon",
            f"must lie between {LEAST_EPSILON} and {MOST_EPSILON}",
            "one outside",
            "A smaller epsilon gives no information in practice; a larger one gives no privacy.",
        )
    return exact


def _estimate(
    mechanism: ExactKary, counts: npt.NDArray[np.int64], people: int, confidence: Number
) -> list[ShareEstimate]:
    """Estimates from the counts of reports that name each category."""
    least, most = enclose(mechanism.keep, _BITS)
    true = Fraction(least + most, 2 << _BITS)
    found = estimate_shares(Tally(people, counts), (true, (1 - true) / (mechanism.k - 1)), confidence, False)
    columns = (found.frequency.tolist(), found.error_asked.tolist(), found.low.tolist(), found.high.tolist())
    return [
        ShareEstimate(value, error, low, high, found.confidence)
        for value, error, low, high in zip(*columns, strict=True)
    ]


def _read_answers(answers: object, name: str) -> tuple[BoolArray, tuple[int, ...] | None]:
    array = plain_array(answers, name)
    if array.dtype.kind in "iuf" and bool(((array == 0) | (array == 1)).all()):  # 1.0 and 1 are the same answer
        array = array.astype(np.bool_)
    if array.dtype.kind != "b" and array.size:
        raise InvalidParameter(name, "must be True or False, or 1 or 0", describe_kind(answers))
    return array.astype(np.bool_).reshape(-1), array.shape if array.ndim else None


def _read_categories(
    answers: object, name: str, categories: int
) -> tuple[npt.NDArray[np.int64], tuple[int, ...] | None]:
    array = plain_array(answers, name)
    if array.dtype.kind == "f":  # 1.0 and 1 are the same answer
        wide = array.astype(np.float64)
        if bool((wide == np.clip(np.floor(wide), 0, categories - 1)).all()):
            array = wide.astype(np.int64)
    if array.dtype.kind not in "iu" and array.size:
        raise InvalidParameter(name, f"must be whole numbers from 0 to {categories - 1}", describe_kind(answers))
    if array.size and (int(array.min()) < 0 or int(array.max()) >= categories):
        raise InvalidParameter(name, f"must be whole numbers from 0 to {categories - 1}", "a number outside")
    return array.astype(np.int64).reshape(-1), array.shape if array.ndim else None
