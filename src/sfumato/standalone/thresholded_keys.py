"""Release of the keys that a program's own data holds."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from sfumato.accuracy.key_margins import people_needed
from sfumato.accuracy.noise_margins import compute_laplace_margin
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import write_plain
from sfumato.kernel.keys import KeyRule
from sfumato.kernel.losses import ApproxDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.number_arguments import Number, read_positive_decimal, read_probability, read_whole_number
from sfumato.standalone.mechanisms.key_release import release_keys

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ThresholdedKeys:
    """Release of undeclared keys: a key comes out only when its noisy number of people is high enough.

    Each person counts once for each of at most `max_groups_per_unit` keys.
    """

    rule: KeyRule

    def __init__(
        self,
        epsilon: Number,
        delta: Number,
        max_groups_per_unit: int = 1,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> None:
        groups = read_whole_number(max_groups_per_unit, "max_groups_per_unit", 1)
        read_probability(delta, "delta")
        amounts = read_positive_decimal(epsilon, "epsilon"), read_positive_decimal(delta, "delta")
        object.__setattr__(self, "rule", KeyRule(*amounts, groups, Neighbours.read(neighbours)))

    def __repr__(self) -> str:
        numbers = f"epsilon={write_plain(self.epsilon)}, delta={write_plain(self.delta)}"
        groups = f"max_groups_per_unit={self.rule.max_groups_per_unit}"
        return f"ThresholdedKeys({numbers}, {groups}, neighbours={self.rule.neighbours.value!r})"

    @property
    def epsilon(self) -> Decimal:
        """The epsilon of one release."""
        return self.rule.epsilon

    @property
    def delta(self) -> Decimal:
        """The delta of one release."""
        return self.rule.delta

    @property
    def max_groups_per_unit(self) -> int:
        """The most keys that one person holds."""
        return self.rule.max_groups_per_unit

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on each key's number of people."""
        return self.rule.scale

    @property
    def threshold(self) -> int:
        """The least noisy number of people with which a key is released."""
        return self.rule.threshold

    @property
    def loss(self) -> ApproxDP:
        """What one release costs, however many keys, under either relation."""
        return ApproxDP(self.rule.epsilon, self.rule.delta)

    def release(self, people_per_key: Mapping[Key, int]) -> dict[Key, int]:
        """Keys that pass the threshold, each with its noisy number of people, most people first.

        Keys are None, numbers, text, bytes, dates, naive or zoned datetimes, timedeltas, and tuples of these;
        equal keys come out in one form (True and 1.0 as 1). Keys of another kind, NaN and infinite numbers never come
        out: convert them first. No key and no number is refused. You must know that a person counts at most once per
        key and in at most max_groups_per_unit keys.
        """
        return release_keys(self.rule, people_per_key, SYSTEM)

    def margin(self, confidence: Number = "0.95") -> int:
        """|noisy - true| people of one key is at most this with the stated probability, before thresholding."""
        return compute_laplace_margin(self.scale, 1 - read_probability(confidence, "confidence"))

    def people_needed(self, probability: Number = "0.5") -> int:
        """How many people must hold a key for it to be released with at least this probability."""
        return people_needed(self.rule, probability)
