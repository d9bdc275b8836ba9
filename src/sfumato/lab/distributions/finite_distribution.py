"""A distribution over finitely many outputs, each with its probability."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.lab.distributions.enclosed import ZERO, Enclosed, enclose_exp, greater
from sfumato.number_arguments import Number, read_positive_fraction

Outcome = Hashable


@dataclass(frozen=True, slots=True)
class FiniteDistribution:
    """The outputs of a mechanism for one value, and the probability of each."""

    outcomes: tuple[Outcome, ...]
    masses: tuple[Enclosed, ...]

    def __post_init__(self) -> None:
        if len(self.outcomes) != len(self.masses) or len(set(self.outcomes)) != len(self.outcomes):
            raise InvalidParameter("outcomes", "must be different, with one probability each", "others")

    def __repr__(self) -> str:
        shown = ", ".join(f"{outcome!r}: {mass}" for outcome, mass in list(self.items())[:6])
        return f"<{len(self.outcomes)} outcomes: {shown}{', ...' if len(self.outcomes) > 6 else ''}>"

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def exact(self) -> bool:
        """Whether every probability is a known fraction. Otherwise it is enclosed between two fractions."""
        return all(mass.exact for mass in self.masses)

    @property
    def total(self) -> Enclosed:
        """The sum of all probabilities: it encloses 1."""
        return sum(self.masses, ZERO)

    def items(self) -> Iterator[tuple[Outcome, Enclosed]]:
        return zip(self.outcomes, self.masses, strict=True)

    def p(self, outcome: Outcome) -> Enclosed:
        """The probability of one outcome: zero for one that the mechanism never gives."""
        return dict(self.items()).get(outcome, ZERO)

    def greatest_ratio(self, other: "FiniteDistribution") -> Enclosed:
        """The most that an outcome is likelier here than in the other distribution. For epsilon-DP: at most e**epsilon.

        An outcome that only this distribution has is refused: the ratio is infinite.
        """
        worst = ZERO
        theirs = dict(other.items())
        for outcome, mine in self.items():
            if mine == ZERO:
                continue
            if theirs.get(outcome, ZERO) == ZERO:
                raise InvalidParameter("other", "must have every outcome of this one", "one that lacks an outcome")
            worst = greater(worst, mine / theirs[outcome])
        return worst

    def delta(self, other: "FiniteDistribution", epsilon: Number) -> Enclosed:
        """The least delta for which no event is likelier here than e**epsilon times there, plus delta."""
        growth = enclose_exp(read_positive_fraction(epsilon, "epsilon"))
        theirs = dict(other.items())
        parts = (greater(mine - growth * theirs.get(outcome, ZERO), ZERO) for outcome, mine in self.items())
        return sum(parts, ZERO)


def make_exact(chances: dict[Outcome, Fraction]) -> FiniteDistribution:
    """A distribution whose probabilities are known fractions."""
    return FiniteDistribution(tuple(chances), tuple(Enclosed(chance, chance) for chance in chances.values()))
