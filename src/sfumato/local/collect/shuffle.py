"""Privacy amplification by shuffling: an upper bound on the epsilon of all reports as an unordered set.

With some probability, a person's report comes from one distribution that does not depend on the answer: the blanket.
One person's report hides among the others' draws from it. The bound is the expected positive part of a sum over the
blanket (Balle, Bell, Gascon and Nissim), rounded up. Yes-or-no reports have a closer bound (binary_shuffle.py).
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.kernel.exact import enclose_exp_neg, round_up, write_plain
from sfumato.local.collect.binary_shuffle import BinaryBound
from sfumato.local.collect.binomials import Excess, Law, bound_binomial
from sfumato.local.mechanisms.mean_tables import Ends
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.randomisers.category_tables import blanket_support_of, support_of
from sfumato.local.randomisers.heavy_hitters import HeavyHitters
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser
from sfumato.local.randomisers.mean_values import list_report_probabilities
from sfumato.local.randomisers.questions import Questions
from sfumato.number_arguments import Number, read_probability, read_whole_number

FloatArray = npt.NDArray[np.float64]

MOST_PEOPLE = 10**7
ROUNDED = 1 + 1e-7  # covers the rounding of all operations on the arrays
_FINE = 50  # blocks of supports are this many times narrower than a standard deviation
_MOST_BLOCKS = 64
_EDGES = (-4.0, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
_DIGITS = Context(prec=4, rounding=ROUND_CEILING)

ASSUMPTIONS = (
    "Each of these people sends one report, drawn from this table, independently of the others.",
    "The shuffler passes on only the reports, without names, addresses or times, in a random order.",
    "The reader colludes neither with the shuffler nor with any of these people. Do not count people who collude.",
    "The bound protects one person's answer in the set of all reports: (epsilon, delta), replace-one.",
)


LOCAL_DELTA = "for a mechanism with a delta, no smaller loss than the local one of each report is computed."


@dataclass(frozen=True, slots=True)
class Blanket:
    """P(report | answer) = common(report) * (high where it supports the answer, else low).

    `alone` and `both` are the probabilities under the common law of supporting one answer and two given ones; `share`
    is the probability that a report comes from the common law whatever the answer.
    """

    high: Fraction
    low: Fraction
    alone: Fraction
    both: Fraction
    share: Fraction


@dataclass(frozen=True, slots=True)
class ShuffleBound:
    """The bound after shuffling, and the local epsilon, which holds without these assumptions."""

    local_epsilon: Decimal
    epsilon: Decimal
    delta: Decimal
    people: int
    specific: bool  # computed for this table; otherwise for any table of this epsilon
    assumptions: tuple[str, ...] = ASSUMPTIONS

    def __str__(self) -> str:
        kind = "for this table" if self.specific else "for any table of this epsilon"
        lines = [
            f"Local epsilon {write_plain(self.local_epsilon)}: for one report, whoever reads it.",
            f"With a shuffler and {self.people:,} reports: at most epsilon {write_plain(self.epsilon)} with delta "
            f"{write_plain(self.delta)} (an upper bound {kind}), if all of this holds:",
        ]
        return "\n".join(
            [*lines, *(f"  - {text}" for text in self.assumptions), "Otherwise, the local epsilon applies."]
        )


def bound_shuffling(
    randomiser: Randomiser | MeanRandomiser | Questions | HeavyHitters, people: int, delta: Number = "1e-6"
) -> ShuffleBound:
    """Bound the epsilon, at this delta, of the reports of this many people after an anonymous shuffler.

    The bound decreases with the number of people. For more than MOST_PEOPLE, the bound for MOST_PEOPLE is returned.
    """
    read_whole_number(people, "people", 1)
    chance = read_probability(delta, "delta")
    if isinstance(randomiser, MeanRandomiser) and randomiser.delta:  # no amplification is claimed: the local loss holds
        return ShuffleBound(randomiser.epsilon, randomiser.epsilon, randomiser.delta, people, False, (LOCAL_DELTA,))
    blanket, specific = find_blanket(randomiser)
    local = randomiser.epsilon
    allowed = max(float(chance), 1e-300)
    counted = min(people, MOST_PEOPLE)
    bound: _Bound | BinaryBound
    if specific and blanket.alone == Fraction(1, 2) and not blanket.both:  # every report is a yes or a no
        bound = BinaryBound.prepare(blanket.low / 2, counted, allowed)
    else:
        bound = _Bound.prepare(blanket, counted, allowed)
    low, high = 0.0, float(local)
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (low, middle) if bound.delta(middle) <= allowed else (middle, high)
    rounded = _DIGITS.create_decimal_from_float(high)
    certified = rounded < local and bound.delta(float(rounded)) <= allowed
    return ShuffleBound(local, rounded if certified else local, round_up(chance), people, specific)


def find_blanket(randomiser: Randomiser | MeanRandomiser | Questions | HeavyHitters) -> tuple[Blanket, bool]:
    """The blanket of a table with two levels of probability; otherwise the one that every table of this epsilon has."""
    match randomiser:
        case Randomiser(mechanism):
            true, _ = support_of(mechanism)
            alone, both = blanket_support_of(mechanism)
            low = (1 - true) / (1 - alone)
            return Blanket(true / alone, low, alone, both, low), True
        case MeanRandomiser(table=Ends() as ends):
            kept, turned = list_report_probabilities(ends, 0)
            return Blanket(2 * kept, 2 * turned, Fraction(1, 2), Fraction(0), 2 * turned), True
        case _:
            return find_common_blanket(randomiser.epsilon), False


def find_common_blanket(epsilon: Decimal) -> Blanket:
    """The blanket of Feldman, McMillan and Talwar: every table of this epsilon hides an answer at least as well.

    The reports of two answers can both be drawn from a yes-or-no response of the same epsilon. Any other person's
    report is, with probability e**-epsilon, a uniform draw of those two.
    """
    shrunk = Fraction(enclose_exp_neg(Fraction(epsilon), 256)[0], 1 << 256)
    turned = shrunk / (1 + shrunk)
    return Blanket(2 * (1 - turned), 2 * turned, Fraction(1, 2), Fraction(0), shrunk)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The number of reports that support the other answer, in a block, and the distribution of support of the own.

    `own` is None where every report supports one of the two: then the own answer has the rest of the reports.
    """

    others: Law
    own: Excess | None
    outside: float


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """A number of reports to hide among, the own one included, and the probability of this number or a little more."""

    reports: int
    weight: float
    parts: tuple[_Part, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Bound:
    """The part of the bound that does not depend on epsilon."""

    blanket: Blanket
    views: tuple[_View, ...]
    rest: float  # the probability of fewer reports than in the first view

    @classmethod
    def prepare(cls, blanket: Blanket, people: int, delta: float) -> "_Bound":
        """Group the numbers of reports from the blanket. Fewer hide less, so the least number stands for its group."""
        hidden = bound_binomial(people - 1, float(blanket.share))
        mean, spread = (
            (people - 1) * float(blanket.share),
            math.sqrt(people * float(blanket.share * (1 - blanket.share))),
        )
        first = -math.sqrt(2 * math.log(1000 / delta))
        edges = sorted({max(0, math.floor(mean + edge * spread)) for edge in (first, *_EDGES) if edge >= first})
        values = hidden.values
        rest = float(hidden.mass[values < edges[0]].sum()) + hidden.outside
        views = []
        for edge, after in zip(edges, [*edges[1:], people], strict=True):
            weight = float(hidden.mass[(values >= edge) & (values < after)].sum())
            if weight > 0:
                views.append(_View(edge + 1, weight, _split_blocks(blanket, edge + 1)))
        return cls(blanket, tuple(views), rest)

    def delta(self, epsilon: float) -> float:
        """An upper bound on the delta for this epsilon."""
        growth = math.exp(epsilon) * (1 - 1e-15)  # a smaller factor can only raise the result
        return min(
            1.0, (self.rest + sum(view.weight * self._bound_view(view, growth) for view in self.views)) * ROUNDED
        )

    def _bound_view(self, view: _View, growth: float) -> float:
        high, low = float(self.blanket.high), float(self.blanket.low)
        ground = low / (high - low) * view.reports * (growth - 1)
        total = 0.0
        for part in view.parts:
            others = part.others.values.astype(np.float64)
            levels: FloatArray = (growth * others + ground) * (1 - 1e-13)
            excess = part.own.expect_above(levels) if part.own else np.maximum(view.reports - others - levels, 0)
            total += float(np.dot(part.others.mass, excess)) * (high - low) / view.reports + high * part.outside
        return min(1.0, total)


def _split_blocks(blanket: Blanket, reports: int) -> tuple[_Part, ...]:
    """The supports of two answers among draws of the common distribution: the other's in blocks, the own given a block.

    Given b supports of the other answer, the own answer has Bin(b, both/alone) + Bin(reports - b, rest) supports. A
    smaller b makes a large number more likely, so the least b stands for its block. Of all sums of independent
    yes-or-no variables with one mean, the binomial has the greatest expected excess over any level (Hoeffding).
    """
    alone, both = float(blanket.alone), float(blanket.both)
    others = bound_binomial(reports, alone)
    shared, apart = both / alone, (alone - both) / (1 - alone)
    if blanket.both == blanket.alone**2:  # independent: one block
        own = bound_binomial(reports, alone)
        return (_Part(others, own.find_excess(), others.outside + own.outside),)
    if 2 * blanket.alone - blanket.both == 1:
        return (_Part(others, None, others.outside),)
    spread = math.sqrt(reports * (1 - alone) * apart * (1 - apart))
    width = max(1, int(spread / ((apart - shared) * _FINE)), -(-others.mass.size // _MOST_BLOCKS))
    parts = []
    for start in range(0, others.mass.size, width):
        block = Law(others.first + start, others.mass[start : start + width], 0.0)
        mean = block.first * shared + (reports - block.first) * apart
        own = bound_binomial(reports, mean / reports) if blanket.both else bound_binomial(reports - block.first, apart)
        outside = float(block.mass.sum()) * own.outside + (others.outside if not start else 0.0)
        parts.append(_Part(block, own.find_excess(), outside))
    return tuple(parts)
