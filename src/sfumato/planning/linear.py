"""Exact sums of released vectors."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of released vectors, each times a number, and a constant. It is exact: terms that cancel are gone."""

    terms: tuple[tuple[str, Fraction], ...]
    constant: Fraction = Fraction(0)

    @classmethod
    def from_vector(cls, name: str) -> "Linear":
        """Make the sum that is one released vector."""
        return cls(((name, Fraction(1)),))

    def plus(self, other: "Linear", times: Fraction | int = 1) -> "Linear":
        """Add another sum, multiplied by a number."""
        factors = dict(self.terms)
        for name, factor in other.terms:
            factors[name] = factors.get(name, Fraction(0)) + times * factor
        terms = tuple((name, factor) for name, factor in factors.items() if factor)
        return Linear(terms, self.constant + times * other.constant)

    def times(self, factor: Fraction) -> "Linear":
        """Multiply by a number."""
        return Linear(()).plus(self, factor)
