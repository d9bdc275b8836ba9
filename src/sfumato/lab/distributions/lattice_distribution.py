"""The distribution of a number plus noise on a grid: infinitely many outputs, each with its probability."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.accuracy.noise_margins import compute_noise_margin
from sfumato.errors import InvalidParameter
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise, Noise
from sfumato.kernel.saturating_sums import LARGEST, saturate
from sfumato.lab.distributions.enclosed import ZERO, Enclosed, enclose_exp, greater
from sfumato.lab.distributions.noise_masses import mass, tail_from
from sfumato.number_arguments import Number, read_positive_fraction, read_probability
from sfumato.number_arrays import EXACT_IN_A_DOUBLE
from sfumato.standalone.mechanisms.additive_noise import Of
from sfumato.standalone.mechanisms.value_grid import to_integers

MOST_LISTED = 20_000


@dataclass(frozen=True, slots=True)
class LatticeDistribution:
    """The distribution of (centre + noise) steps of 2**exponent, as the mechanism gives them out.

    Integers and floats that no longer hold every step stand for several steps; the ends of the 64-bit range stand for
    all steps beyond them. `p` and `cdf` include this.
    """

    centre: int
    noise: Noise
    exponent: int
    of: Of

    @property
    def step(self) -> Fraction:
        return Fraction(2) ** self.exponent

    @property
    def loss_is_bounded(self) -> bool:
        """Whether ratios of probabilities have a bound: for Laplace noise, but not for Gaussian noise."""
        return isinstance(self.noise, LaplaceNoise)

    def output(self, steps: int) -> int | float:
        """What comes out for so many steps."""
        inside = saturate(steps)
        if self.of == "reals":
            return inside * 2.0**self.exponent
        return inside if self.exponent == 0 else int(to_integers(np.array([inside]), self.exponent)[0])

    def p(self, outcome: float) -> Enclosed:
        """The probability of one output: zero for a number that is not on the grid."""
        found = self._find_steps(outcome)
        return ZERO if found is None else self._between(*found)

    def cdf(self, number: float) -> Enclosed:
        """The probability of an output of at most this number."""
        last = _find_last(lambda steps: self.output(steps) <= number)
        return ZERO if last is None else self._between(-LARGEST, last)

    def range(self, mass: Number = "0.999") -> tuple[int | float, int | float]:
        """Two outputs, and the outputs between them have at least this total probability."""
        reach = compute_noise_margin(self.noise, 1 - read_probability(mass, "mass"))
        return self.output(self.centre - reach), self.output(self.centre + reach)

    def total(self, low: float, high: float) -> Enclosed:
        """The probability of all outputs from low to high."""
        last = _find_last(lambda steps: self.output(steps) <= high)
        below = _find_last(lambda steps: self.output(steps) < low)
        if last is None or (below is not None and last <= below):
            return ZERO
        return self._between(-LARGEST if below is None else below + 1, last)

    def items(self, mass: Number = "0.999") -> Iterator[tuple[int | float, Enclosed]]:
        """The outputs of `range` with their probabilities. More than 20,000 of them are refused."""
        low, high = (self._find_steps(end) for end in self.range(mass))
        if low is None or high is None or high[1] - low[0] > MOST_LISTED:
            hint = "Use p, cdf and total, or a mechanism with of='integers'."
            raise InvalidParameter("mass", f"must cover at most {MOST_LISTED} outputs", "more", hint)
        steps = low[0]
        while steps <= high[1]:
            outcome = self.output(steps)
            yield outcome, self.p(outcome)
            same = self._find_steps(outcome)
            steps = (steps if same is None else same[1]) + 1

    def greatest_ratio(self, other: "LatticeDistribution") -> Enclosed:
        """The most that an output is likelier here than in the other distribution. For epsilon-DP: at most e**epsilon.

        Laplace noise has the greatest ratio at the centres and beyond. The ratio of Gaussian noise has no bound.
        """
        self._check_same_noise(other)
        if not self.loss_is_bounded:
            hint = "Use delta(other, epsilon)."
            raise InvalidParameter("other", "must have Laplace noise", "Gaussian noise: its ratios have no bound", hint)
        worst = ZERO
        for steps in (self.centre, other.centre):
            first = self.output(steps)
            worst = greater(worst, self.p(first) / other.p(first))
        return worst

    def delta(self, other: "LatticeDistribution", epsilon: Number) -> Enclosed:
        """The least delta for which no set of steps is likelier here than e**epsilon times there, plus delta."""
        self._check_same_noise(other)
        exact = read_positive_fraction(epsilon, "epsilon")
        moved = abs(other.centre - self.centre)
        if moved == 0:
            return ZERO
        # by symmetry the other centre is above: the event is that the noise here is at most `last`
        match self.noise:
            case LaplaceNoise(scale):
                edge = (moved - exact * scale) / 2
                if edge <= 0:
                    return ZERO
            case GaussianNoise(variance):
                edge = (moved * moved - 2 * variance * exact) / (2 * moved)
        # rounding moves the place where the ratio of the masses crosses e**epsilon by half a step at most
        nearest = math.ceil(edge) - 1
        worst = ZERO
        for last in (nearest - 1, nearest, nearest + 1):
            here, there = (tail_from(self.noise, -steps) for steps in (last, last - moved))
            worst = greater(worst, here - enclose_exp(exact) * there)
        return worst

    def _check_same_noise(self, other: "LatticeDistribution") -> None:
        if (other.noise, other.exponent, other.of) != (self.noise, self.exponent, self.of):
            raise InvalidParameter("other", "must come from the same mechanism", "another")

    def _between(self, first: int, last: int) -> Enclosed:
        """The probability that the steps, saturated, lie from first to last."""
        if first == last and abs(first) < LARGEST:
            return mass(self.noise, first - self.centre)
        from_first = tail_from(self.noise, first - self.centre) if first > -LARGEST else None
        beyond = tail_from(self.noise, last + 1 - self.centre) if last < LARGEST else ZERO
        if from_first is None:
            return (1 - beyond).clamp(0, 1)
        return (from_first - beyond).clamp(0, 1)

    def _find_steps(self, outcome: float) -> tuple[int, int] | None:
        """The first and the last number of steps that come out as this output; None if no number of steps does."""
        if isinstance(outcome, float) and not math.isfinite(outcome):
            return None
        exact = Fraction(outcome) / self.step
        single = self.of == "reals" or self.exponent >= 0
        if single and abs(exact) < EXACT_IN_A_DOUBLE:
            return (int(exact), int(exact)) if exact.denominator == 1 else None
        last = _find_last(lambda steps: self.output(steps) <= outcome)
        below = _find_last(lambda steps: self.output(steps) < outcome)
        if last is None or (below is not None and below >= last):
            return None
        return (-LARGEST if below is None else below + 1), last


def _find_last(holds: Callable[[int], bool]) -> int | None:
    """The last number of steps for which this holds, if it holds for all smaller ones too; None if for none."""
    if not holds(-LARGEST):
        return None
    low, high = -LARGEST, LARGEST + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class VectorDistribution:
    """Several numbers, each with its own independent noise."""

    entries: tuple[LatticeDistribution, ...]

    def p(self, outcomes: tuple[float, ...]) -> Enclosed:
        """The probability of these outputs, one for each entry, in order."""
        if len(outcomes) != len(self.entries):
            raise InvalidParameter("outcomes", f"must be {len(self.entries)} numbers", "another number of them")
        chance = Enclosed(Fraction(1), Fraction(1))
        for entry, outcome in zip(self.entries, outcomes, strict=True):
            chance = chance * entry.p(outcome)
        return chance

    def greatest_ratio(self, other: "VectorDistribution") -> Enclosed:
        """The product of the entries' greatest ratios: the entries are independent."""
        if len(other.entries) != len(self.entries):
            raise InvalidParameter("other", f"must have {len(self.entries)} entries", "another number of them")
        worst = Enclosed(Fraction(1), Fraction(1))
        for mine, theirs in zip(self.entries, other.entries, strict=True):
            worst = worst * mine.greatest_ratio(theirs)
        return worst
