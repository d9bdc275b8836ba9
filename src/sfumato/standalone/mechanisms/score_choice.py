"""Private argmax by permute-and-flip over one list of scores.

Part of the trusted perimeter of the stand-alone mechanisms.
"""

import math
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.bin_choice import permute_and_flip
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.mechanisms import check_scale
from sfumato.number_arrays import read_numbers

GREATEST_SCORE = sys.float_info.max  # scores beyond are clamped to it: no score is refused
_GREATEST = Fraction(GREATEST_SCORE)


def choose_spread(sensitivity: Fraction, epsilon: Decimal, monotonic: bool) -> Fraction:
    """A candidate this far below the best survives its flip with probability 1/e.

    Claim: K-20. Permute-and-flip with this spread, or a wider one, is epsilon-DP.
    Requires: `sensitivity` bounds how far one person moves any one score; if `monotonic`, one person moves all scores
        the same way (caller).
    Relies on: exact arithmetic of fractions.
    Checked by: tests/kernel/test_choice.py::test_choice_privacy_is_exact
    """
    if sensitivity <= 0 or epsilon <= 0:
        raise KernelFault("A choice has a sensitivity and an epsilon above zero.")
    return check_scale((1 if monotonic else 2) * sensitivity / Fraction(epsilon), "epsilon")


def choose_index(scores: object, spread: Fraction, entropy: Entropy) -> int:
    """Flip a coin exp(-(best - score)/spread) for every candidate, then pick evenly among the heads.

    Claim: K-20. This is permute-and-flip: the first head in a random order is an even pick among all heads.
    Requires: the number of scores is public (caller). No score is refused: NaN is read as 0, an infinite one as the
        largest float.
    Relies on: K-06, K-07, K-13 (reading).
    Checked by: tests/kernel/test_choice.py::test_choice_mass_is_exact
    """
    values = read_numbers(scores, "scores")
    if values.shape is None or len(values.shape) != 1 or not values.flat.size:
        raise InvalidParameter("scores", "must be one list of at least one score", "another shape")
    flat = values.flat
    if flat.dtype == np.float64:
        flat = np.clip(flat, -GREATEST_SCORE, GREATEST_SCORE)
    elif flat.dtype == object:
        flat = np.array([max(-_GREATEST, min(_GREATEST, Fraction(score))) for score in flat], object)
    best = flat.max()
    with np.errstate(over="ignore"):
        if flat.dtype == np.int64:  # modulo 2**64 a difference of int64 is exact, however far apart they are
            below = (best.astype(np.uint64) - flat.astype(np.uint64)).astype(np.float64)
        elif flat.dtype == object:
            below = np.array([_convert_to_float(best - score) for score in flat])
        else:
            below = best - flat
        approximate = below * float(1 / spread)
    plain = flat.tolist()  # numpy's integers would wrap inside a Fraction
    highest = Fraction(max(plain))
    (chosen,) = permute_and_flip(
        approximate[np.newaxis], lambda index: (highest - Fraction(plain[index])) / spread, entropy
    )
    return chosen


def _convert_to_float(exact: Fraction) -> float:
    return float(exact) if exact <= _GREATEST else math.inf
