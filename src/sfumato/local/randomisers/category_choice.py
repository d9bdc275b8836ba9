"""Choose a randomiser for k categories, an epsilon and a limit on the size of a report; show the alternatives."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from sfumato.errors import InvalidParameter
from sfumato.local.mechanisms.table_limits import check_categories
from sfumato.local.randomisers.category_randomisers import Randomiser, randomiser
from sfumato.local.randomisers.category_tables import NAMES
from sfumato.local.randomisers.report_forms import Reports
from sfumato.local.randomisers.share_estimates import Estimate
from sfumato.number_arguments import Number, read_positive_decimal, read_whole_number

PEOPLE = 10_000
MARGIN_NOTE = (
    "Margin: half-width of the 95 % confidence interval for the population. It covers the randomisation and the "
    "sampling of the people."
)
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Alternative:
    """One randomiser and its expected accuracy, before anything is collected."""

    randomiser: Randomiser
    bits: int  # of one report
    variance: float  # n times the mean squared error over the categories, for the people asked; no answer changes it
    margin: float  # half-width of the 95 % confidence interval of a share of 1/k, for the population
    worst_margin: float  # the same for the share at which the interval is widest
    fits: bool  # a report has at most `most_bits` bits


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen randomiser and the alternatives, from best to worst. It can be used like the randomiser itself."""

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
            f"{self.k} categories, epsilon {self.epsilon:.6f}, {self.people:,} people. Chosen: {self.name}",
            f"{'':2}{'mechanism':<10}{'bits':>8}{'n x variance':>14}{'margin at 1/k':>15}{'at worst':>10}",
        ]
        for row in self.alternatives:
            mark = ">" if row.randomiser is self.randomiser else " "
            note = "" if row.fits else "  too long"
            lines.append(
                f"{mark:2}{row.randomiser.name:<10}{row.bits:>8}{row.variance:>14.4g}"
                f"{row.margin:>15.4f}{row.worst_margin:>10.4f}{note}"
            )
        lines.append("n x variance: for the people asked, averaged over the categories.")
        lines.append(MARGIN_NOTE)
        return "\n".join(lines)

    __repr__ = __str__


def choose(k: int, epsilon: Number, *, people: int = PEOPLE, most_bits: int | None = None) -> Choice:
    """Choose the randomiser of least variance whose reports have at most `most_bits` bits; of equals, the shorter.

    The mean squared error over all categories does not depend on the answers: n times it is the variance at a share of
    1/k. Nothing is collected, and no budget is spent.
    """
    count, exact = check_categories(k), read_positive_decimal(epsilon, "epsilon")
    read_whole_number(people, "people", 1)
    if most_bits is not None:
        read_whole_number(most_bits, "most_bits", 1)
    names = ("rr", *NAMES[2:]) if count == 2 else NAMES[1:]
    found = (_evaluate(name, count, exact, people, most_bits) for name in names)
    offered = [alternative for alternative in found if alternative]
    if not offered:
        randomiser("krr", k=count, epsilon=exact)  # raises the error that says why no table has this epsilon
    offered.sort(key=lambda row: (not row.fits, float(f"{row.variance:.6g}"), row.bits))
    if not offered[0].fits:
        least = min(row.bits for row in offered)
        raise InvalidParameter("most_bits", f"must be at least {least} here", "less", "No report is shorter.")
    return Choice(offered[0].randomiser, tuple(offered), people)


def _evaluate(name: str, k: int, epsilon: Decimal, people: int, most_bits: int | None) -> Alternative | None:
    """The expected accuracy of one mechanism; None if it has no table over 2**32 for this epsilon."""
    made = make_if_possible(lambda: randomiser(name, k=k, epsilon=epsilon))
    if made is None:
        return None
    true, other = made.support
    widest = min(
        1.0, max(0.0, float((1 - 2 * other) / (2 * (true - other))))
    )  # the share whose rate of support is nearest to 1/2
    return Alternative(
        made,
        made.form.bits,
        made.variance_asked(1 / k),
        made.margin(people),
        made.margin(people, share=widest),
        most_bits is None or made.form.bits <= most_bits,
    )


def make_if_possible(make: Callable[[], Made]) -> Made | None:
    """Call `make`; return None if there is no table over 2**32 for the epsilon."""
    try:
        return make()
    except InvalidParameter as refused:
        if refused.parameter != "epsilon":
            raise
        return None
