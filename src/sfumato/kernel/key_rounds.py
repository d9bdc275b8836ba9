"""Undeclared keys in two rounds: keys that the first finds, or finds hopeless, take no weight in the second."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from sfumato.errors import KernelFault
from sfumato.kernel.gaussian_dp import bound_delta, bound_root
from sfumato.kernel.mechanisms import GaussianNoise, check_variance
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.normal import enclose_tail
from sfumato.kernel.samplers import IntArray
from sfumato.kernel.saturating_sums import add_saturating
from sfumato.kernel.weighted_keys import WHOLE, check_key_rule, find_threshold, find_weight, list_blocks
from sfumato.noise_guesses import find_last, guess_threshold

IntVector = npt.NDArray[np.int64]
FIRST, SECOND = Fraction(5, 3), Fraction(5, 4)  # deviations of the rounds; 1/FIRST**2 + 1/SECOND**2 = 1
HOPE = Fraction(5, 4)  # a key whose first noisy weight is below so many deviations is hopeless
EARLY, LATE = Fraction(2, 64), Fraction(30, 64)  # what lonely keys may take of delta in each round
MOST_PAIRS = 1 << 36  # weights of so many pairs are added up exactly in doubles
_BITS = 256


class Holdings:
    """Who holds which key: the numbers of a person and of a cell for each pair. Its repr shows none."""

    __slots__ = ("cells", "people")

    def __init__(self, people: IntVector, cells: IntVector) -> None:
        self.people = people
        self.cells = cells

    def __repr__(self) -> str:
        return "Holdings(not shown)"

    def __reduce__(self) -> NoReturn:
        raise KernelFault("Exact aggregates cannot be copied or written out.")


def weigh_holdings(holdings: Holdings, cells: int, most: int) -> IntVector:
    """The weight of each cell: each of a person's n pairs adds find_weight(n).

    Claim: K-87. The weights of one person are at most WHOLE in L2, whoever else is there.
    Requires: no pair is there twice; a person's number is theirs alone (engine).
    Relies on: K-74 (find_weight).
    Checked by: tests/kernel/test_key_rounds.py::test_weights_are_added_up_exactly
    """
    held = np.bincount(holdings.people)
    if holdings.people.size > MOST_PAIRS or held.max(initial=0) > most:
        raise KernelFault("A person holds more keys than are counted.")
    weights = np.array([0, *(find_weight(number) for number in range(1, most + 1))], np.float64)
    added = np.bincount(holdings.cells, weights=weights[held[holdings.people]], minlength=cells)
    if len(added) != cells:
        raise KernelFault("A person holds a key that has no cell.")
    return added.astype(np.int64)


@dataclass(frozen=True, slots=True)
class FirstRound:
    """The cells that the first round finds, those that are weighed again, and the first noisy weights of these."""

    early: IntVector
    again: IntVector
    noisy: IntVector
    cells: int


@dataclass(frozen=True, slots=True)
class KeyRounds:
    """How undeclared keys are released in two rounds. A person holds at most `max_groups_per_unit` keys."""

    epsilon: Decimal
    delta: Decimal
    max_groups_per_unit: int
    neighbours: Neighbours

    def __post_init__(self) -> None:
        check_key_rule(self.epsilon, self.delta, self.max_groups_per_unit, most_groups=1 << 16)
        check_variance(self.deviation**2, "epsilon")

    @property
    def deviation(self) -> Fraction:
        """The deviation of one Gaussian that would cost as much as both rounds, in steps of a weight.

        Claim: K-87. Releasing the keys that both rounds find is (epsilon, delta)-DP.
        Requires: as weigh_holdings.
        Relies on: K-71, K-72.
        Checked by: tests/kernel/test_key_rounds.py::test_the_loss_of_both_rounds_is_within_delta
        """
        return _find_deviation(Fraction(self.epsilon), Fraction(self.delta), self.neighbours.people_moved)

    @property
    def early_threshold(self) -> int:
        """The least noisy weight, in steps, with which the first round finds a key.

        Claim: K-87. Keys that one person alone holds reach it with probability at most delta EARLY.
        Relies on: K-74 (bound_lonely).
        Checked by: tests/kernel/test_key_rounds.py::test_lonely_keys_stay_within_their_shares
        """
        return find_threshold(self.deviation * FIRST, Fraction(self.delta) * EARLY, self.max_groups_per_unit)

    @property
    def threshold(self) -> int:
        """The least value of twice the second noisy weight plus the first, in steps, that finds a key.

        Claim: K-87. Keys that one person alone holds reach it with probability at most delta LATE.
        Relies on: K-70, K-71.
        Checked by: tests/kernel/test_key_rounds.py::test_lonely_keys_stay_within_their_shares
        """
        return _find_late_threshold(self.deviation, Fraction(self.delta) * LATE, self.max_groups_per_unit)

    @property
    def hope(self) -> int:
        """The least first noisy weight, in steps, with which a key takes part in the second round."""
        return int(HOPE * FIRST * self.deviation)

    @property
    def rounds(self) -> tuple[GaussianNoise, GaussianNoise]:
        """The noise of both rounds, on each weight."""
        first, second = (GaussianNoise((self.deviation * times) ** 2, rounded=True) for times in (FIRST, SECOND))
        return first, second

    @property
    def noise(self) -> GaussianNoise:
        """What `threshold` is compared with has this noise, but for rounding."""
        return GaussianNoise(self.deviation**2 * (4 * SECOND**2 + FIRST**2), rounded=True)

    def weigh_first(self, holdings: Holdings, cells: int, drawn: IntArray) -> FirstRound:
        """What the first round finds, from the weights and the noise that was drawn for each cell.

        Claim: K-87. A cell that nobody holds is in neither part of the result.
        Requires: as weigh_holdings; `drawn` is new noise of the first of `rounds` (release).
        Relies on: early_threshold.
        Checked by: tests/kernel/test_key_rounds.py::test_both_rounds_are_those_of_plain_python
        """
        weights = weigh_holdings(holdings, cells, self.max_groups_per_unit)
        first = add_saturating(weights, drawn)
        early = (weights > 0) & (first >= self.early_threshold)
        again = np.flatnonzero((weights > 0) & ~early & (first >= self.hope))
        return FirstRound(np.flatnonzero(early), again, first[again], cells)

    def weigh_second(self, holdings: Holdings, found: FirstRound, drawn: IntArray) -> IntVector:
        """The cells of the keys that are released, from the weights of hopeful keys and the noise for each of them.

        Claim: K-87. The result is (epsilon, delta)-DP.
        Requires: as weigh_first; `drawn` is new noise of the second of `rounds` (release).
        Relies on: deviation, early_threshold, threshold.
        Checked by: tests/kernel/test_key_rounds.py::test_both_rounds_are_those_of_plain_python
        """
        places = np.full(found.cells, -1, np.int64)
        places[found.again] = np.arange(len(found.again))
        kept = places[holdings.cells] >= 0
        later = Holdings(holdings.people[kept], places[holdings.cells[kept]])
        second = add_saturating(weigh_holdings(later, len(found.again), self.max_groups_per_unit), drawn)
        both = add_saturating(add_saturating(second, second), found.noisy)
        return np.sort(np.concatenate([found.early, found.again[both >= self.threshold]]))


@lru_cache(maxsize=256)
def _find_deviation(epsilon: Fraction, delta: Fraction, people_moved: int) -> Fraction:
    """A deviation that is guessed, raised until the exact bound holds."""
    lonely = (EARLY + LATE) * delta
    mu = find_last(lambda mu: bound_delta(mu, epsilon - 2 * lonely), delta - lonely, delta - lonely)
    found = Fraction(WHOLE * sqrt(people_moved) / mu) if mu > 0 else Fraction(1 << 62)
    while bound_rounds_delta(found, epsilon, delta, people_moved) > delta:
        found *= 1 + Fraction(1, 1 << 12)
    return found


def bound_rounds_delta(deviation: Fraction, epsilon: Fraction, delta: Fraction, people_moved: int) -> Fraction:
    """A delta at which both rounds are (epsilon, result)-DP, if lonely keys take their shares of `delta` at most.

    Claim: K-87. The shares of lonely keys and the divergence of the other keys together are at most this.
    Requires: 2 * (EARLY + LATE) * delta < epsilon, delta < 1 (caller).
    Relies on: K-72.
    Checked by: tests/kernel/test_key_rounds.py::test_the_loss_of_both_rounds_is_within_delta
    """
    lonely = (EARLY + LATE) * delta
    return lonely + bound_delta(bound_root(people_moved * (WHOLE / deviation) ** 2), epsilon - 2 * lonely)


@lru_cache(maxsize=256)
def _find_late_threshold(deviation: Fraction, lonely: Fraction, groups: int) -> int:
    """A threshold that is guessed, raised until the exact bound holds."""
    ends = [(2 * WHOLE + find_weight(first) + 1.5, lonely / last) for first, last in list_blocks(groups)]
    found = guess_threshold(float(_bound_spread(deviation)), ends)
    while bound_late(deviation, int(found), groups) > lonely:
        found += 1 + deviation / (1 << 14)
    return int(found)


def _bound_spread(deviation: Fraction) -> Fraction:
    """Not below the deviation of twice the second Gaussian plus the first."""
    return bound_root(deviation**2 * (4 * SECOND**2 + FIRST**2))


def bound_late(deviation: Fraction, threshold: int, groups: int) -> Fraction:
    """A bound of the probability that the second round finds some key of a person who alone holds at most `groups`.

    Claim: K-87. t * P(2 * (WHOLE + Z2) + find_weight(t) + Z1 >= threshold) is at most this for 1 <= t <= groups.
    Relies on: K-70, K-71.
    Checked by: tests/kernel/test_key_rounds.py::test_lonely_keys_stay_within_their_shares
    """
    spread = _bound_spread(deviation)
    bounds = []
    for first, last in list_blocks(groups):
        away = threshold - 2 * WHOLE - find_weight(first) - Fraction(3, 2)
        tail = Fraction(enclose_tail(away / spread, _BITS)[1], 1 << _BITS) if away > 0 else Fraction(1)
        bounds.append(last * tail)
    return max(bounds)
