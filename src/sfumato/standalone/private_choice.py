"""Private argmax over a program's own scores."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sfumato.accuracy.choice_margins import compute_score_margin
from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import write_plain
from sfumato.kernel.losses import PureDP
from sfumato.number_arguments import (
    Number,
    read_positive_decimal,
    read_positive_fraction,
    read_probability,
    read_whole_number,
)
from sfumato.standalone.mechanisms.score_choice import choose_index, choose_spread


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PrivateChoice:
    """Permute-and-flip: epsilon-DP choice of the candidate with nearly the best score.

    `sensitivity` bounds how far one person moves any one score; `monotonic` says that one person moves all scores
    the same way (counts under add-remove), which halves the noise.
    """

    sensitivity: Fraction
    epsilon: Decimal
    monotonic: bool

    def __init__(self, sensitivity: Number, epsilon: Number, monotonic: bool = False) -> None:
        object.__setattr__(self, "sensitivity", read_positive_fraction(sensitivity, "sensitivity"))
        object.__setattr__(self, "epsilon", read_positive_decimal(epsilon, "epsilon"))
        if not isinstance(monotonic, bool):
            raise InvalidParameter("monotonic", "must be True or False", describe_kind(monotonic))
        object.__setattr__(self, "monotonic", monotonic)
        choose_spread(self.sensitivity, self.epsilon, self.monotonic)  # refuses what cannot be drawn

    def __repr__(self) -> str:
        numbers = f"sensitivity={write_plain(self.sensitivity)}, epsilon={write_plain(self.epsilon)}"
        return f"PrivateChoice({numbers}, monotonic={self.monotonic})"

    @property
    def loss(self) -> PureDP:
        """What one choice costs, however many candidates."""
        return PureDP(self.epsilon)

    @property
    def spread(self) -> Fraction:
        """A candidate this far below the best survives its flip with probability 1/e."""
        return choose_spread(self.sensitivity, self.epsilon, self.monotonic)

    def release(self, scores: object) -> int:
        """The index of the chosen candidate.

        You must know that `sensitivity` bounds how far each score differs between neighbours, that `monotonic` is true
        of them, and that the number of scores is public. NaN is read as 0, an infinite score as the largest float.
        """
        return choose_index(scores, self.spread, SYSTEM)

    def margin(self, confidence: Number = "0.95", *, size: int) -> float:
        """The chosen score is at most this far below the best, with the stated probability, among `size` candidates."""
        miss = 1 - read_probability(confidence, "confidence")
        return compute_score_margin(self.spread, miss, read_whole_number(size, "size", 1))


def choose(scores: object, *, sensitivity: Number, epsilon: Number, monotonic: bool = False) -> int:
    """Private argmax: the index of a candidate whose score is nearly the best. See PrivateChoice."""
    return PrivateChoice(sensitivity, epsilon, monotonic).release(scores)
