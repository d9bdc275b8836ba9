"""Private choice: the best of several candidates, nearly, by permute-and-flip."""

import math
import sys
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.coins import flip_exp_neg
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.exact import plain
from sfumato.kernel.grid import read_numbers
from sfumato.kernel.losses import PureDP
from sfumato.kernel.mechanisms import carried_scale
from sfumato.kernel.parameters import (
    Number,
    kind_of,
    positive_decimal,
    positive_fraction,
    probability_inside,
    whole_number,
)
from sfumato.kernel.samplers import uniform_below

GREATEST_SCORE = sys.float_info.max  # scores beyond are held here: no score is refused
_GREATEST = Fraction(GREATEST_SCORE)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PrivateChoice:
    """Permute-and-flip: epsilon-DP choice of the candidate with nearly the best score.

    `sensitivity` bounds how far one person moves any one score; `monotonic` says that one person moves all scores
    the same way (counts under add-remove), which halves the noise.
    """

    sensitivity: Fraction
    epsilon: Decimal
    monotonic: bool

    def __init__(self, sensitivity: Number, epsilon: Number, monotonic: bool = False) -> None:
        object.__setattr__(self, "sensitivity", positive_fraction(sensitivity, "sensitivity"))
        object.__setattr__(self, "epsilon", positive_decimal(epsilon, "epsilon"))
        if not isinstance(monotonic, bool):
            raise InvalidParameter("monotonic", "must be True or False", kind_of(monotonic))
        object.__setattr__(self, "monotonic", monotonic)
        carried_scale(self.spread, "epsilon")

    def __repr__(self) -> str:
        numbers = f"sensitivity={plain(self.sensitivity)}, epsilon={plain(self.epsilon)}"
        return f"PrivateChoice({numbers}, monotonic={self.monotonic})"

    @property
    def loss(self) -> PureDP:
        """What one choice costs, however many candidates."""
        return PureDP(self.epsilon)

    @property
    def spread(self) -> Fraction:
        """A candidate this far below the best survives its flip with probability 1/e."""
        return (1 if self.monotonic else 2) * self.sensitivity / Fraction(self.epsilon)

    def release(self, scores: object) -> int:
        """The index of the chosen candidate.

        Claim: K-20. The choice is epsilon-DP, with exact probabilities.
        Requires: `sensitivity` bounds each score's change between neighbours, and `monotonic` is true of them; the
            number of scores is public (caller). No score is refused: NaN is read as 0, an infinite one as the largest
            float.
        Relies on: K-06, K-07, K-13 (reading).
        Proof: docs/claims/K-20.md
        Checked by: tests/kernel/test_choice.py::test_choice_privacy_is_exact
        """
        return choose_with(self, scores, SYSTEM)

    def margin(self, confidence: Number = "0.95", *, size: int) -> float:
        """The chosen score is at most this far below the best, with the stated probability, among `size` candidates.

        Claim: K-20. It holds for every list of scores; it is nearly tight for one best and the rest just beyond it.
        Requires: 0 < confidence < 1 and size >= 1 (checked here).
        Relies on: floats, with the result rounded up by one part in 10**9.
        Proof: docs/claims/K-20.md
        Checked by: tests/kernel/test_choice.py::test_choice_margin_holds_in_the_worst_case
        """
        miss = 1 - probability_inside(confidence, "confidence")
        size = whole_number(size, "size", 1)
        if size == 1:
            return 0.0
        return float(self.spread) * -math.log(survival(miss, size)) * (1 + 1e-9)


def survival(miss: Fraction, size: int) -> float:
    """The greatest chance to survive of all but the best of `size` candidates, so that one is picked rarely enough.

    Claim: K-20. With it, or less, one of them is picked with a probability of `miss` at most.
    Requires: 0 < miss < 1 and size >= 2 (caller).
    Relies on: floats, with `miss` lowered by one part in 10**9.
    Proof: docs/claims/K-20.md
    Checked by: tests/kernel/test_choice.py::test_choice_margin_holds_in_the_worst_case
    """
    if miss >= Fraction(1, 10**6):
        return _survival(float(miss) * (1 - 1e-9), size)
    return float(2 * miss / (size - 1))  # P(bad) <= (size - 1) p / 2, which is nearly P(bad) for a p this small


def _survival(miss: float, size: int) -> float:
    """The largest p at which P(bad) = 1 - (1 - (1 - p)**size)/(size * p) is at most `miss`; 1 if none exceeds it."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        bad = 1 + math.expm1(size * math.log1p(-middle)) / (size * middle) if middle < 1 else 1 - 1 / size
        low, high = (middle, high) if bad <= miss else (low, middle)
    return low


def choose(scores: object, *, sensitivity: Number, epsilon: Number, monotonic: bool = False) -> int:
    """Private argmax: the index of a candidate whose score is nearly the best. See PrivateChoice.

    Claim: K-20. The choice is epsilon-DP, with exact probabilities.
    Requires: as PrivateChoice.release.
    Relies on: PrivateChoice.
    Proof: docs/claims/K-20.md
    Checked by: tests/kernel/test_choice.py::test_choice_privacy_is_exact
    """
    return PrivateChoice(sensitivity, epsilon, monotonic).release(scores)


def choose_with(choice: PrivateChoice, scores: object, entropy: Entropy) -> int:
    """Flip a coin exp(-(best - score)/spread) for every candidate, then pick evenly among the heads.

    Claim: K-20. This is permute-and-flip: the first head in a random order is an even pick among all heads.
    Requires: as PrivateChoice.release.
    Relies on: K-06, K-07.
    Proof: docs/claims/K-20.md
    Checked by: tests/kernel/test_choice.py::test_choice_mass_is_exact
    """
    values = read_numbers(scores, "scores")
    if values.shape is None or len(values.shape) != 1 or not values.flat.size:
        raise InvalidParameter("scores", "must be one list of at least one score", "another shape")
    flat = values.flat if values.flat.dtype != object else np.array([_held(each) for each in values.flat], object)
    if flat.dtype == np.float64:
        flat = np.clip(flat, -GREATEST_SCORE, GREATEST_SCORE)
    best = flat.max()
    with np.errstate(over="ignore"):
        if flat.dtype == np.int64:  # modulo 2**64 a difference of int64 is exact, however far apart they are
            below = (best.astype(np.uint64) - flat.astype(np.uint64)).astype(np.float64)
        elif flat.dtype == object:
            below = np.array([_as_float(best - each) for each in flat])
        else:
            below = best - flat
        approximate = below * float(1 / choice.spread)
    plain = flat.tolist()  # numpy's integers would wrap inside a Fraction
    heads = flip_exp_neg(
        approximate, lambda index: (Fraction(max(plain)) - Fraction(plain[index])) / choice.spread, entropy
    ).nonzero()[0]
    return int(heads[uniform_below(heads.size, 1, entropy)[0]])


def _held(score: int | Fraction) -> Fraction:
    return max(-_GREATEST, min(_GREATEST, Fraction(score)))


def _as_float(exact: Fraction) -> float:
    return float(exact) if exact <= _GREATEST else math.inf
