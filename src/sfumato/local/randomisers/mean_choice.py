"""Which randomiser for the mean of a number: the alternatives side by side."""

from dataclasses import dataclass
from functools import partial

from sfumato.errors import InvalidParameter
from sfumato.kernel.parameters import Number, whole_number
from sfumato.local.randomisers.category_choice import PEOPLE, unless_refused
from sfumato.local.randomisers.mean_randomisers import MEAN_NAMES, MeanRandomiser, mean_randomiser

PLACES = 32  # numbers between the bounds, to find where a variance is greatest


@dataclass(frozen=True, slots=True)
class MeanAlternative:
    """One randomiser, and what it promises before anything is collected."""

    randomiser: MeanRandomiser
    bits: int  # of one report
    variance: float  # of a report, given the person's number: at the number where it is greatest
    middle: float  # the same in the middle of the bounds
    margin: float  # 95 % margin of the mean, whatever the population
    fits: bool  # a report fits the line


@dataclass(frozen=True, slots=True)
class MeanChoice:
    """The chosen randomiser, and the alternatives from best to worst."""

    randomiser: MeanRandomiser
    alternatives: tuple[MeanAlternative, ...]
    people: int

    def __str__(self) -> str:
        chosen = self.randomiser
        lines = [
            f"A number from {chosen.lower} to {chosen.upper}, epsilon {chosen.epsilon:.6f}, {self.people:,} people: "
            f"{chosen.name}",
            f"{'':2}{'mechanism':<10}{'bits':>8}{'variance at worst':>19}{'in the middle':>15}{'margin':>10}",
        ]
        for each in self.alternatives:
            mark = ">" if each.randomiser is chosen else " "
            note = "" if each.fits else "  too long"
            lines.append(
                f"{mark:2}{each.randomiser.name:<10}{each.bits:>8}{each.variance:>19.4g}{each.middle:>15.4g}"
                f"{each.margin:>10.4g}{note}"
            )
        lines.append("Variances are of one report, given the number; margins are 95 %, for any population.")
        return "\n".join(lines)

    __repr__ = __str__


def choose_mean(
    lower: Number, upper: Number, epsilon: Number, *, people: int = PEOPLE, most_bits: int | None = None
) -> MeanChoice:
    """The randomiser of least variance, at the number where that is greatest; of equals, the shorter report."""
    whole_number(people, "people", 1)
    if most_bits is not None:
        whole_number(most_bits, "most_bits", 1)
    offered = []
    for name in MEAN_NAMES:
        made = unless_refused(partial(mean_randomiser, name, lower=lower, upper=upper, epsilon=epsilon))
        if made is not None:
            places = (float(made.lower) + made.span * place / PLACES for place in range(PLACES + 1))
            variances = [made.variance_asked(place) for place in places]
            fits = most_bits is None or made.form.bits <= most_bits
            middle = variances[PLACES // 2]
            offered.append(MeanAlternative(made, made.form.bits, max(variances), middle, made.margin(people), fits))
    if not offered:
        mean_randomiser("duchi", lower=lower, upper=upper, epsilon=epsilon)  # says why no table carries this epsilon
    least = min((each.bits for each in offered), default=0)
    if not any(each.fits for each in offered):
        raise InvalidParameter("most_bits", f"must be at least {least} here", "less", "A report has to name something.")
    offered.sort(key=lambda each: (not each.fits, float(f"{each.variance:.4g}"), each.bits))
    return MeanChoice(offered[0].randomiser, tuple(offered), people)
