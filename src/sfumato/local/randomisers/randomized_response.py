"""Randomised response with exact coins: each person randomises their own answer. Part of the trusted perimeter."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.coins import BoolArray
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.exact import Logistic, Probability, Rational, decimal_up, enclose, log, plain
from sfumato.kernel.grid import plain_array
from sfumato.kernel.losses import PureDP
from sfumato.kernel.parameters import Number, kind_of, positive_decimal, probability_inside, whole_number
from sfumato.kernel.samplers import bernoulli, uniform_below

_BITS = 256
LEAST_EPSILON = Decimal("1e-12")
MOST_EPSILON = Decimal(64)
MOST_CATEGORIES = 1 << 20


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """An unbiased estimate of a share of people, from randomised reports; it may fall outside [0, 1].

    `standard_error` is about the people who were asked: their answers are fixed, only the coins vary. The interval
    (Wilson's, carried through the estimate) also covers the draw of those people from a population.
    """

    value: float
    standard_error: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse:
    """Yes-or-no randomised response: the truth with probability `truth`, else the opposite.

    Give `epsilon`, or `truth` itself: truth=Fraction(3, 4) is the two-coin version, whose epsilon is ln 3 exactly.
    """

    truth: Probability
    loss: PureDP

    def __init__(self, epsilon: Number | None = None, *, truth: Number | None = None) -> None:
        if (epsilon is None) == (truth is None):
            raise InvalidParameter("epsilon or truth", "must be given, one of them", "both or neither")
        if truth is None:
            exact = _epsilon(epsilon)
            object.__setattr__(self, "truth", Logistic(-Fraction(exact)))
            object.__setattr__(self, "loss", PureDP(exact))
        else:
            probability = probability_inside(truth, "truth")
            if probability <= Fraction(1, 2):
                raise InvalidParameter("truth", "must lie strictly between 1/2 and 1", "1/2 or less")
            object.__setattr__(self, "truth", Rational(probability))
            object.__setattr__(self, "loss", PureDP(_epsilon(_log_up(probability / (1 - probability)))))

    def __repr__(self) -> str:
        if isinstance(self.truth, Rational):
            return f"RandomizedResponse(truth=Fraction({str(self.truth.value)!r}))"
        return f"RandomizedResponse(epsilon={plain(self.loss.epsilon)})"

    @overload
    def randomise(self, answers: bool) -> bool: ...
    @overload
    def randomise(self, answers: Sequence[bool] | BoolArray) -> BoolArray: ...
    @overload
    def randomise(self, answers: object) -> bool | BoolArray: ...
    def randomise(self, answers: object) -> bool | BoolArray:
        """Randomise one answer, or an array of answers of as many people.

        Claim: K-22. Each report is epsilon-locally private: its law's ratio between two answers is e^epsilon exactly.
        Requires: one report per person and question (caller).
        Relies on: K-05.
        Checked by: tests/local/test_randomized_response.py::test_binary_reports_are_exact
        """
        return flip_answers(self, answers, SYSTEM)

    def estimate(self, reports: object, confidence: Number = "0.95") -> ShareEstimate:
        """The share of people whose answer is yes, from their reports.

        Claim: K-23. Unbiased; its standard error for the people asked is sqrt(p (1 - p) / n) / (2 p - 1) exactly.
        Requires: reports made by `randomise` with the same parameters (caller).
        Relies on: K-22.
        Checked by: tests/local/test_randomized_response.py::test_binary_estimate_is_unbiased
        """
        yes, _ = _read_answers(reports, "reports")
        if not yes.size:
            raise InvalidParameter("reports", "must hold at least one report", "none")
        return _shares(np.array([int(yes.sum())]), yes.size, self.truth, 2, confidence)[0]


@dataclass(frozen=True, slots=True, init=False)
class KaryResponse:
    """Randomised response over categories 0 .. k-1: the truth, or, once in a while, any other evenly."""

    categories: int
    keep: Probability
    loss: PureDP

    def __init__(self, categories: int, epsilon: Number) -> None:
        exact = _epsilon(epsilon)
        count = whole_number(categories, "categories", 2)
        if count > MOST_CATEGORIES:
            raise InvalidParameter(
                "categories", f"must be at most {MOST_CATEGORIES}", "more", "Hash them into fewer first."
            )
        object.__setattr__(self, "categories", count)
        object.__setattr__(self, "keep", Logistic(-Fraction(exact), Fraction(count - 1)))
        object.__setattr__(self, "loss", PureDP(exact))

    def __repr__(self) -> str:
        return f"KaryResponse(categories={self.categories}, epsilon={plain(self.loss.epsilon)})"

    @overload
    def randomise(self, answers: int) -> int: ...
    @overload
    def randomise(self, answers: Sequence[int] | npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]: ...
    @overload
    def randomise(self, answers: object) -> int | npt.NDArray[np.int64]: ...
    def randomise(self, answers: object) -> int | npt.NDArray[np.int64]:
        """Randomise one category, or an array of categories of as many people.

        Claim: K-22. Each report is epsilon-locally private: its law's ratio between two answers is at most e^epsilon.
        Requires: one report per person and question (caller).
        Relies on: K-05, K-07.
        Checked by: tests/local/test_randomized_response.py::test_kary_reports_are_exact
        """
        return move_answers(self, answers, SYSTEM)

    def estimate(self, reports: object, confidence: Number = "0.95") -> list[ShareEstimate]:
        """For each category, the share of people who are in it, from their reports.

        Claim: K-23. Unbiased, for each category.
        Requires: reports made by `randomise` with the same parameters (caller).
        Relies on: K-22.
        Checked by: tests/local/test_randomized_response.py::test_kary_estimate_is_unbiased
        """
        flat, _ = _read_categories(reports, "reports", self.categories)
        if not flat.size:
            raise InvalidParameter("reports", "must hold at least one report", "none")
        counts = np.bincount(flat, minlength=self.categories)
        return _shares(counts, flat.size, self.keep, self.categories, confidence)


def flip_answers(response: RandomizedResponse, answers: object, entropy: Entropy) -> bool | BoolArray:
    """Keep each answer on heads of the truth coin, else negate it.

    Claim: K-22. P(report = answer) is the truth coin's probability, independently for each person.
    Requires: as RandomizedResponse.randomise.
    Relies on: K-05.
    Checked by: tests/local/test_randomized_response.py::test_binary_reports_are_exact
    """
    flat, shape = _read_answers(answers, "answers")
    reports = flat == bernoulli(response.truth, flat.size, entropy)
    return bool(reports[0]) if shape is None else reports.reshape(shape)


def move_answers(response: KaryResponse, answers: object, entropy: Entropy) -> int | npt.NDArray[np.int64]:
    """Keep each category on heads, else move on by 1 .. k-1 places around the circle of categories, evenly.

    Claim: K-22. P(report = answer) is the keep coin's probability, and all other categories are equally likely.
    Requires: as KaryResponse.randomise.
    Relies on: K-05, K-07.
    Checked by: tests/local/test_randomized_response.py::test_kary_reports_are_exact
    """
    flat, shape = _read_categories(answers, "answers", response.categories)
    kept = bernoulli(response.keep, flat.size, entropy)
    moves = 1 + uniform_below(response.categories - 1, flat.size, entropy)
    reports = np.where(kept, flat, (flat + moves) % response.categories)
    return int(reports[0]) if shape is None else reports.reshape(shape)


def _epsilon(value: object) -> Decimal:
    exact = positive_decimal(value, "epsilon")
    if not LEAST_EPSILON <= exact <= MOST_EPSILON:
        raise InvalidParameter(
            "epsilon",
            f"must lie between {LEAST_EPSILON} and {MOST_EPSILON}",
            "one outside",
            "Less tells nothing about any crowd; more is the bare answer.",
        )
    return exact


def _log_up(ratio: Fraction) -> Decimal:
    return decimal_up(Fraction(log(ratio, _BITS)[1], 1 << _BITS))


def _shares(
    counts: npt.NDArray[np.int64], size: int, keep: Probability, categories: int, confidence: Number
) -> list[ShareEstimate]:
    """Undo the randomisation of each category's count: p of those inside report it, q = (1 - p)/(k - 1) of the rest.

    p - q and q are taken from p's exact digits: as differences of doubles they would vanish at either end.
    """
    low, high = enclose(keep, _BITS)
    exact = Fraction(low + high, 2 << _BITS)
    other = float((1 - exact) / (categories - 1))
    slope = float((categories * exact - 1) / (categories - 1))
    miss = 1 - probability_inside(confidence, "confidence")
    quantile = -NormalDist().inv_cdf(max(float(miss / 2), 1e-300))
    even = 1 / categories
    observed = counts / size
    values = (observed - even) / slope + even  # (observed - q)/slope, without cancelling when slope is tiny
    own = np.clip(values, 0, 1)
    inside, outside = float(exact) * (categories - 1) * other, other * (1 - other)  # p (1 - p) and q (1 - q)
    errors = np.sqrt((own * inside + (1 - own) * outside) / size) / slope
    weight = 1 + quantile**2 / size
    centre = (observed + quantile**2 / (2 * size)) / weight
    reach = quantile / weight * np.sqrt(observed * (1 - observed) / size + quantile**2 / (4 * size**2))
    lows, highs = ((centre + side * reach - even) / slope + even for side in (-1, 1))
    level = float(1 - miss)
    rows = zip(values.tolist(), errors.tolist(), lows.tolist(), highs.tolist(), strict=True)
    return [ShareEstimate(value, error, low, high, level) for value, error, low, high in rows]


def _read_answers(answers: object, name: str) -> tuple[BoolArray, tuple[int, ...] | None]:
    array = plain_array(answers, name)
    if array.dtype.kind in "iuf" and bool(((array == 0) | (array == 1)).all()):  # 1.0 is 1: types do not matter
        array = array.astype(np.bool_)
    if array.dtype.kind != "b" and array.size:
        raise InvalidParameter(name, "must be True or False, or 1 or 0", kind_of(answers))
    return array.astype(np.bool_).reshape(-1), array.shape if array.ndim else None


def _read_categories(
    answers: object, name: str, categories: int
) -> tuple[npt.NDArray[np.int64], tuple[int, ...] | None]:
    array = plain_array(answers, name)
    if array.dtype.kind == "f":  # 1.0 is 1: types do not matter
        wide = array.astype(np.float64)
        if bool((wide == np.clip(np.floor(wide), 0, categories - 1)).all()):
            array = wide.astype(np.int64)
    if array.dtype.kind not in "iu" and array.size:
        raise InvalidParameter(name, f"must be whole numbers from 0 to {categories - 1}", kind_of(answers))
    if array.size and (int(array.min()) < 0 or int(array.max()) >= categories):
        raise InvalidParameter(name, f"must be whole numbers from 0 to {categories - 1}", "a number outside")
    return array.astype(np.int64).reshape(-1), array.shape if array.ndim else None
