"""Which randomiser for k categories, an epsilon and a line of so many bits: the alternatives side by side."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from sfumato.errors import InvalidParameter
from sfumato.kernel.parameters import Number, positive_decimal, whole_number
from sfumato.local.mechanisms.report_forms import Reports
from sfumato.local.mechanisms.table_limits import number_of_categories
from sfumato.local.randomisers.category_randomisers import NAMES, Randomiser, randomiser
from sfumato.local.randomisers.share_estimates import Estimate

PEOPLE = 10_000
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Alternative:
    """One randomiser, and what it promises before anything is collected."""

    randomiser: Randomiser
    bits: int  # of one report
    variance: float  # n times the mean squared error over the categories, for the people asked, whatever their answers
    margin: float  # 95 % margin of a share of 1/k, for the population
    worst_margin: float  # the same for the share at which it is widest
    fits: bool  # a report fits the line


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen randomiser, which it stands for, and the alternatives from best to worst."""

    randomiser: Randomiser
    alternatives: tuple[Alternative, ...]
    people: int

    @property
    def name(self) -> str:
        return self.randomiser.name

    @property
    def k(self) -> int:
        return self.randomiser.k

    @property
    def epsilon(self) -> Decimal:
        return self.randomiser.epsilon

    def randomise(self, values: object) -> int | Reports:
        return self.randomiser.randomise(values)

    def estimate(self, reports: object, confidence: Number = "0.95", *, simultaneous: bool = False) -> Estimate:
        return self.randomiser.estimate(reports, confidence, simultaneous=simultaneous)

    def margin(self, people: int, confidence: Number = "0.95", share: float | None = None) -> float:
        return self.randomiser.margin(people, confidence, share)

    def __str__(self) -> str:
        lines = [
            f"{self.k} categories, epsilon {self.epsilon:.6f}, {self.people:,} people: {self.name}",
            f"{'':2}{'mechanism':<10}{'bits':>8}{'n x variance':>14}{'margin at 1/k':>15}{'at worst':>10}",
        ]
        for each in self.alternatives:
            mark = ">" if each.randomiser is self.randomiser else " "
            note = "" if each.fits else "  too long"
            lines.append(
                f"{mark:2}{each.randomiser.name:<10}{each.bits:>8}{each.variance:>14.4g}"
                f"{each.margin:>15.4f}{each.worst_margin:>10.4f}{note}"
            )
        lines.append("Margins are 95 %, for the population; the variance is the mean over categories, for those asked.")
        return "\n".join(lines)

    __repr__ = __str__


def choose(k: int, epsilon: Number, *, people: int = PEOPLE, most_bits: int | None = None) -> Choice:
    """The randomiser of least variance whose reports have at most `most_bits` bits; of equals, the shorter report.

    The mean squared error over all categories does not depend on what people answer: n times it is the variance at a
    share of 1/k. Nothing is collected, and nothing is spent.
    """
    count, exact = number_of_categories(k), positive_decimal(epsilon, "epsilon")
    whole_number(people, "people", 1)
    if most_bits is not None:
        whole_number(most_bits, "most_bits", 1)
    names = ("rr", *NAMES[2:]) if count == 2 else NAMES[1:]
    offered = [each for each in (_offer(name, count, exact, people, most_bits) for name in names) if each]
    if not offered:
        randomiser("krr", k=count, epsilon=exact)  # says why no table carries this epsilon
    offered.sort(key=lambda each: (not each.fits, float(f"{each.variance:.6g}"), each.bits))
    if not offered[0].fits:
        least = min(each.bits for each in offered)
        raise InvalidParameter("most_bits", f"must be at least {least} here", "less", "A report has to name something.")
    return Choice(offered[0].randomiser, tuple(offered), people)


def _offer(name: str, k: int, epsilon: Decimal, people: int, most_bits: int | None) -> Alternative | None:
    """None where no table over 2**32 of this kind carries the epsilon."""
    made = unless_refused(lambda: randomiser(name, k=k, epsilon=epsilon))
    if made is None:
        return None
    true, other = made.mechanism.support
    widest = min(1.0, max(0.0, float((1 - 2 * other) / (2 * (true - other)))))  # the share with supports nearest to 1/2
    return Alternative(
        made,
        made.form.bits,
        made.variance_asked(1 / k),
        made.margin(people),
        made.margin(people, share=widest),
        most_bits is None or made.form.bits <= most_bits,
    )


def unless_refused(make: Callable[[], Made]) -> Made | None:
    """What is made; None where no table over 2**32 carries the epsilon."""
    try:
        return make()
    except InvalidParameter as refused:
        if refused.parameter != "epsilon":
            raise
        return None
