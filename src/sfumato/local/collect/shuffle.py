"""What an anonymous shuffler would add: an upper bound on the epsilon of all reports together, as a set.

Every other person's report comes, with some probability, from one law that does not depend on the answer: the blanket.
Whoever sees the shuffled reports has to find one person's report among those. The bound is the expected positive part
of a sum over the blanket (the privacy blanket of Balle, Bell, Gascon and Nissim), worked out and rounded up.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.kernel.exact import decimal_up, exp_neg, plain
from sfumato.kernel.parameters import Number
from sfumato.local.collect.binomials import Excess, Law, binomial
from sfumato.local.mechanisms.mean_tables import Ends
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.randomisers.category_tables import blanket_support_of, support_of
from sfumato.local.randomisers.heavy_hitters import HeavyHitters
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser
from sfumato.local.randomisers.mean_values import report_probabilities
from sfumato.local.randomisers.questions import Questions
from sfumato.number_arguments import probability_inside, whole_number

FloatArray = npt.NDArray[np.float64]

MOST_PEOPLE = 10**7
ROUNDED = 1 + 1e-7  # covers the roundings of what is done with the arrays
_FINE = 50  # blocks of supports are this many times narrower than a standard deviation
_MOST_BLOCKS = 64
_EDGES = (-4.0, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
_DIGITS = Context(prec=4, rounding=ROUND_CEILING)

ASSUMPTIONS = (
    "each of these people sends one report, made by this table, independently of the others;",
    "the shuffler passes on the reports alone, without names, addresses or times, in an order that tells nothing;",
    "whoever reads them is in league neither with the shuffler nor with any of these people (else count the rest);",
    "what is protected is one person's answer in the whole set of reports: (epsilon, delta), replace-one.",
)


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
class Shuffled:
    """The bound, beside the local epsilon, which needs nobody's promise and stays the headline."""

    local_epsilon: Decimal
    epsilon: Decimal
    delta: Decimal
    people: int
    specific: bool  # worked out for this table; else for any table of this epsilon
    assumptions: tuple[str, ...] = ASSUMPTIONS

    def __str__(self) -> str:
        kind = "for this table" if self.specific else "for any table of this epsilon"
        lines = [
            f"Local epsilon {plain(self.local_epsilon)}: each report by itself, whoever sees it.",
            f"Shuffled among {self.people:,}: at most epsilon {plain(self.epsilon)} with delta {plain(self.delta)}, "
            f"an upper bound {kind}, if",
        ]
        return "\n".join(
            [*lines, *(f"  - {each}" for each in self.assumptions), "Without the shuffler: the local one."]
        )


def shuffled(
    randomiser: Randomiser | MeanRandomiser | Questions | HeavyHitters, people: int, delta: Number = "1e-6"
) -> Shuffled:
    """The epsilon, at this delta, that an anonymous shuffler of so many people's reports would give: an upper bound.

    More people hide better: for more than MOST_PEOPLE the bound for MOST_PEOPLE is given.
    """
    whole_number(people, "people", 1)
    chance = probability_inside(delta, "delta")
    blanket, specific = blanket_of(randomiser)
    local = randomiser.epsilon
    allowed = max(float(chance), 1e-300)
    bound = _Bound.of(blanket, min(people, MOST_PEOPLE), allowed)
    low, high = 0.0, float(local)
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (low, middle) if bound.delta(middle) <= allowed else (middle, high)
    rounded = _DIGITS.create_decimal_from_float(high)
    certified = rounded < local and bound.delta(float(rounded)) <= allowed
    return Shuffled(local, rounded if certified else local, decimal_up(chance), people, specific)


def blanket_of(randomiser: Randomiser | MeanRandomiser | Questions | HeavyHitters) -> tuple[Blanket, bool]:
    """The blanket of a table, where reports are of two levels; else the one that every table of this epsilon has."""
    match randomiser:
        case Randomiser(mechanism):
            true, _ = support_of(mechanism)
            alone, both = blanket_support_of(mechanism)
            low = (1 - true) / (1 - alone)
            return Blanket(true / alone, low, alone, both, low), True
        case MeanRandomiser(table=Ends() as ends):
            kept, turned = report_probabilities(ends, 0)
            return Blanket(2 * kept, 2 * turned, Fraction(1, 2), Fraction(0), 2 * turned), True
        case _:
            return any_table(randomiser.epsilon), False


def any_table(epsilon: Decimal) -> Blanket:
    """Feldman, McMillan and Talwar: a table of this epsilon hides an answer at least as well as this.

    Two answers' reports are both made from a yes-or-no response of the same epsilon; and any other report is, with
    probability e**-epsilon, an even draw of those two.
    """
    shrunk = Fraction(exp_neg(Fraction(epsilon), 256)[0], 1 << 256)
    turned = shrunk / (1 + shrunk)
    return Blanket(2 * (1 - turned), 2 * turned, Fraction(1, 2), Fraction(0), shrunk)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Supports of the other answer in a block, with their probabilities, and the law of the own answer's supports.

    `own` is None where every report supports one of the two: then the own answer has the rest of the reports.
    """

    others: Law
    own: Excess | None
    outside: float


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """So many reports to hide among, the own one included, and how likely it is that there are no fewer than that."""

    reports: int
    weight: float
    parts: tuple[_Part, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Bound:
    """All that does not depend on epsilon."""

    blanket: Blanket
    views: tuple[_View, ...]
    rest: float  # the probability that there are fewer reports than in the first view

    @classmethod
    def of(cls, blanket: Blanket, people: int, delta: float) -> "_Bound":
        """Group the number of reports from the blanket; fewer hide less, so a group is as bad as its least."""
        hidden = binomial(people - 1, float(blanket.share))
        mean, spread = (
            (people - 1) * float(blanket.share),
            math.sqrt(people * float(blanket.share * (1 - blanket.share))),
        )
        first = -math.sqrt(2 * math.log(1000 / delta))
        edges = sorted({max(0, math.floor(mean + each * spread)) for each in (first, *_EDGES) if each >= first})
        values = hidden.values
        rest = float(hidden.mass[values < edges[0]].sum()) + hidden.outside
        views = []
        for edge, after in zip(edges, [*edges[1:], people], strict=True):
            weight = float(hidden.mass[(values >= edge) & (values < after)].sum())
            if weight > 0:
                views.append(_View(edge + 1, weight, _parts(blanket, edge + 1)))
        return cls(blanket, tuple(views), rest)

    def delta(self, epsilon: float) -> float:
        """An upper bound on the delta that goes with this epsilon."""
        growth = math.exp(epsilon) * (1 - 1e-15)  # a smaller one can only raise the result
        return min(1.0, (self.rest + sum(each.weight * self._seen(each, growth) for each in self.views)) * ROUNDED)

    def _seen(self, view: _View, growth: float) -> float:
        high, low = float(self.blanket.high), float(self.blanket.low)
        ground = low / (high - low) * view.reports * (growth - 1)
        total = 0.0
        for part in view.parts:
            others = part.others.values.astype(np.float64)
            levels: FloatArray = (growth * others + ground) * (1 - 1e-13)
            excess = part.own.over(levels) if part.own else np.maximum(view.reports - others - levels, 0)
            total += float(np.dot(part.others.mass, excess)) * (high - low) / view.reports + high * part.outside
        return min(1.0, total)


def _parts(blanket: Blanket, reports: int) -> tuple[_Part, ...]:
    """The supports of two answers among draws of the common law: of the one in blocks, of the other given the block.

    Given b supports of the other answer, the own answer has Bin(b, both/alone) + Bin(reports - b, rest) of them. Fewer
    b make that likelier to be large, so that a block is as bad as its least b. Of all sums of so many independent
    yes-or-no variables with one mean, the binomial has the greatest expected excess over any level (Hoeffding).
    """
    alone, both = float(blanket.alone), float(blanket.both)
    others = binomial(reports, alone)
    shared, apart = both / alone, (alone - both) / (1 - alone)
    if blanket.both == blanket.alone**2:  # independent: one block
        own = binomial(reports, alone)
        return (_Part(others, own.excess(), others.outside + own.outside),)
    if 2 * blanket.alone - blanket.both == 1:
        return (_Part(others, None, others.outside),)
    spread = math.sqrt(reports * (1 - alone) * apart * (1 - apart))
    width = max(1, int(spread / ((apart - shared) * _FINE)), -(-others.mass.size // _MOST_BLOCKS))
    parts = []
    for start in range(0, others.mass.size, width):
        block = Law(others.first + start, others.mass[start : start + width], 0.0)
        mean = block.first * shared + (reports - block.first) * apart
        own = binomial(reports, mean / reports) if blanket.both else binomial(reports - block.first, apart)
        outside = float(block.mass.sum()) * own.outside + (others.outside if not start else 0.0)
        parts.append(_Part(block, own.excess(), outside))
    return tuple(parts)
