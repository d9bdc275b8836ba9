"""Choose a randomiser for the mean of a number; show the alternatives."""

from dataclasses import dataclass
from functools import partial

from sfumato.errors import InvalidParameter
from sfumato.local.randomisers.category_choice import MARGIN_NOTE, PEOPLE, make_if_possible
from sfumato.local.randomisers.mean_randomisers import MEAN_NAMES, MeanRandomiser, mean_randomiser
from sfumato.number_arguments import Number, read_whole_number

PLACES = 32  # the numbers between the bounds at which variances are compared


@dataclass(frozen=True, slots=True)
class MeanAlternative:
    """One randomiser and its expected accuracy, before anything is collected."""

    randomiser: MeanRandomiser
    bits: int  # of one report
    variance: float  # of a report, given the person's number: the greatest over all numbers
    middle: float  # the same in the middle of the bounds
    margin: float  # half-width of the 95 % confidence interval of the mean, for the worst population
    fits: bool  # a report has at most `most_bits` bits


@dataclass(frozen=True, slots=True)
class MeanChoice:
    """The chosen randomiser, and the alternatives from best to worst."""

    randomiser: MeanRandomiser
    alternatives: tuple[MeanAlternative, ...]
    people: int

    def __str__(self) -> str:
        chosen = self.randomiser
        lines = [
            f"A number from {chosen.lower} to {chosen.upper}, epsilon {chosen.epsilon:.6f}, {self.people:,} people. "
            f"Chosen: {chosen.name}",
            f"{'':2}{'mechanism':<10}{'bits':>8}{'greatest variance':>19}{'in the middle':>15}{'margin':>10}",
        ]
        for row in self.alternatives:
            mark = ">" if row.randomiser is chosen else " "
            note = "" if row.fits else "  too long"
            lines.append(
                f"{mark:2}{row.randomiser.name:<10}{row.bits:>8}{row.variance:>19.4g}{row.middle:>15.4g}"
                f"{row.margin:>10.4g}{note}"
            )
        lines.append("Variance: of one report, given the person's number. Margins hold for every population.")
        lines.append(MARGIN_NOTE)
        return "\n".join(lines)

    __repr__ = __str__


def choose_mean(
    lower: Number, upper: Number, epsilon: Number, *, people: int = PEOPLE, most_bits: int | None = None
) -> MeanChoice:
    """Choose the randomiser whose greatest variance is least; of equals, the one with the shorter report."""
    read_whole_number(people, "people", 1)
    if most_bits is not None:
        read_whole_number(most_bits, "most_bits", 1)
    offered = []
    for name in MEAN_NAMES:
        made = make_if_possible(partial(mean_randomiser, name, lower=lower, upper=upper, epsilon=epsilon))
        if made is not None:
            places = (float(made.lower) + made.span * place / PLACES for place in range(PLACES + 1))
            variances = [made.variance_asked(place) for place in places]
            fits = most_bits is None or made.form.bits <= most_bits
            middle = variances[PLACES // 2]
            offered.append(MeanAlternative(made, made.form.bits, max(variances), middle, made.margin(people), fits))
    if not offered:
        mean_randomiser(
            "duchi", lower=lower, upper=upper, epsilon=epsilon
        )  # raises the error that says why no table has this epsilon
    least = min((row.bits for row in offered), default=0)
    if not any(row.fits for row in offered):
        raise InvalidParameter("most_bits", f"must be at least {least} here", "less", "No report is shorter.")
    offered.sort(key=lambda row: (not row.fits, float(f"{row.variance:.4g}"), row.bits))
    return MeanChoice(offered[0].randomiser, tuple(offered), people)
