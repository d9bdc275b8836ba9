"""Undeclared keys by weight: a person's keys weigh 1/sqrt(n) each, so that one person moves all sums by 1 in L2."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import isqrt, sqrt

from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.gaussian_dp import bound_delta, bound_root
from sfumato.kernel.mechanisms import GaussianNoise, check_variance
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.normal import enclose_tail
from sfumato.kernel.plan import KEY_WEIGHT_EXPONENT
from sfumato.noise_guesses import find_last, guess_threshold

WHOLE = 1 << -KEY_WEIGHT_EXPONENT
PARTS = 64
_BITS = 256


def find_weight(keys: int) -> int:
    """The weight, in steps, of each of the `keys` keys of one person.

    Claim: K-74. keys * weight**2 <= WHOLE**2.
    Checked by: tests/kernel/test_weighted_keys.py::test_the_weights_of_one_person_are_1_in_l2
    """
    return isqrt(WHOLE**2 // keys)


def check_key_rule(epsilon: Decimal, delta: Decimal, groups: int, most_groups: int) -> None:
    """Refuse a rule of keys by weight whose proof does not hold.

    Claim: K-74. What passes has epsilon > 0, 0 < delta < 1, delta <= epsilon / 4 and 1 <= groups <= most_groups.
    Checked by: tests/kernel/test_weighted_keys.py::test_rules_that_cannot_be
    """
    if epsilon <= 0 or not 0 < delta < 1 or not 1 <= groups <= most_groups:
        raise KernelFault("Keys need an epsilon and a delta above zero, and at least one group.")
    if epsilon < 4 * delta:
        raise InvalidParameter("delta", "must be below a quarter of epsilon", "a larger one", "Lower delta.")


@dataclass(frozen=True, slots=True)
class WeightedKeyRule:
    """How undeclared keys are released by weight. A person holds at most `max_groups_per_unit` keys."""

    epsilon: Decimal
    delta: Decimal
    max_groups_per_unit: int
    neighbours: Neighbours

    def __post_init__(self) -> None:
        check_key_rule(self.epsilon, self.delta, self.max_groups_per_unit, most_groups=1 << 31)
        check_variance(self.deviation**2, "epsilon")

    @property
    def deviation(self) -> Fraction:
        """The standard deviation of the Gaussian that is rounded and added to each key's weight, in steps.

        Claim: K-74. Releasing the keys whose noisy weight reaches `threshold` is (epsilon, delta)-DP.
        Requires: a person's keys weigh find_weight each, and are at most max_groups_per_unit (caller).
        Relies on: K-71, K-72.
        Checked by: tests/kernel/test_weighted_keys.py::test_key_privacy_is_computed_exactly
        """
        return _find_deviation(Fraction(self.epsilon), Fraction(self.delta), self.neighbours.people_moved)

    @property
    def noise(self) -> GaussianNoise:
        """The noise on each key's weight."""
        return GaussianNoise(self.deviation**2, rounded=True)

    @property
    def threshold(self) -> int:
        """The least noisy weight, in steps, with which a key is released.

        Claim: K-74. Keys that one person alone holds reach it with probability at most delta (PARTS - 2)/PARTS.
        Requires: as deviation.
        Relies on: K-70.
        Checked by: tests/kernel/test_weighted_keys.py::test_lonely_keys_stay_within_delta
        """
        return find_threshold(self.deviation, _share_lonely(Fraction(self.delta)), self.max_groups_per_unit)


def _share_lonely(delta: Fraction) -> Fraction:
    """What the keys of one person alone may take of delta."""
    return delta * (PARTS - 2) / PARTS


@lru_cache(maxsize=256)
def _find_deviation(epsilon: Fraction, delta: Fraction, people_moved: int) -> Fraction:
    """A deviation that is guessed, raised until the exact bound holds, by at most 2**-12 too far.

    It has few digits: the ledger writes all of them.
    """
    lonely = _share_lonely(delta)
    mu = find_last(lambda mu: bound_delta(mu, epsilon - 2 * lonely), delta * (PARTS - 1) / PARTS, delta)
    deviation = WHOLE * sqrt(people_moved) / mu if mu > 0 else Fraction(1 << 62)
    small = found = Fraction(deviation)
    step = Fraction(1, 1 << 12)
    while bound_key_delta(found, lonely, epsilon, people_moved) > delta:
        small, found, step = found, _shorten(found * (1 + step)), 2 * step
    while found - small > found / (1 << 12):  # every step keeps the bound of `found`
        middle = _shorten((small + found) / 2)
        holds = bound_key_delta(middle, lonely, epsilon, people_moved) <= delta
        small, found = (small, middle) if holds else (middle, found)
    return found


def _shorten(deviation: Fraction) -> Fraction:
    """A deviation that is not below this one, in units of 2**-32."""
    return Fraction(-(-(deviation.numerator << 32) // deviation.denominator), 1 << 32)


def bound_key_delta(deviation: Fraction, lonely: Fraction, epsilon: Fraction, people_moved: int) -> Fraction:
    """A delta at which keys with this noise are (epsilon, delta)-DP, if lonely keys are shown with `lonely` at most.

    Claim: K-74. For every share f of a person's keys that nobody else holds: the share of `lonely` and the divergence
        of the other keys together are at most this, in both directions.
    Requires: 2 * lonely < epsilon, lonely <= 1/2 (caller).
    Relies on: K-72.
    Checked by: tests/kernel/test_weighted_keys.py::test_key_privacy_is_computed_exactly
    """
    parts = []
    for part in range(PARTS):
        moved = (people_moved - Fraction(part, PARTS)) * (WHOLE / deviation) ** 2
        parts.append(Fraction(part + 1, PARTS) * lonely + bound_delta(bound_root(moved), epsilon - 2 * lonely))
    return max(parts)


@lru_cache(maxsize=256)
def find_threshold(deviation: Fraction, lonely: Fraction, groups: int) -> int:
    """A threshold that is guessed, raised until bound_lonely is at most `lonely`.

    Claim: K-74. Keys that one person alone holds reach it with probability at most `lonely`.
    Relies on: bound_lonely.
    Checked by: tests/kernel/test_weighted_keys.py::test_lonely_keys_stay_within_delta
    """
    ends = [(find_weight(first) + 0.5, lonely / last) for first, last in list_blocks(groups)]
    found = guess_threshold(float(deviation), ends)
    while bound_lonely(deviation, int(found), groups) > lonely:
        found += 1 + deviation / (1 << 14)
    return int(found)


def bound_lonely(deviation: Fraction, threshold: int, groups: int) -> Fraction:
    """A bound of the probability that some key of a person shows who alone holds all their keys, at most `groups`.

    Claim: K-74. t * P(find_weight(t) + Z >= threshold) is at most this for every t from 1 to groups.
    Relies on: K-70, K-71.
    Checked by: tests/kernel/test_weighted_keys.py::test_lonely_keys_stay_within_delta
    """
    return max(
        last
        * Fraction(enclose_tail((threshold - find_weight(first) - Fraction(1, 2)) / deviation, _BITS)[1], 1 << _BITS)
        for first, last in list_blocks(groups)
    )


def list_blocks(groups: int) -> list[tuple[int, int]]:
    """Numbers of keys in blocks: within a block, weights are at most that of its first number."""
    blocks, first = [], 1
    while first <= groups:
        last = min(max(first, first * 65 // 64), groups)
        blocks.append((first, last))
        first = last + 1
    return blocks
