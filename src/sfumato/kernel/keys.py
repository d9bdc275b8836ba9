"""Keys that the data itself names: released only when enough people hold them."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar, cast

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.canonical_keys import NoKey, Ordered, canonical
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.exact import plain
from sfumato.kernel.grid import add_saturating, read_numbers, to_grid
from sfumato.kernel.losses import ApproxDP
from sfumato.kernel.mechanisms import carried_scale
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.parameters import Number, kind_of, positive_decimal, probability_inside, whole_number
from sfumato.kernel.samplers import discrete_laplace
from sfumato.kernel.tails import laplace_margin, least_tail

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ThresholdedKeys:
    """Release of keys that the data itself names: a key comes out only when its noisy number of people is high enough.

    Each person counts once for each of at most `max_groups_per_unit` keys.
    """

    epsilon: Decimal
    delta: Decimal
    max_groups_per_unit: int
    neighbours: Neighbours

    def __init__(
        self,
        epsilon: Number,
        delta: Number,
        max_groups_per_unit: int = 1,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> None:
        groups = whole_number(max_groups_per_unit, "max_groups_per_unit", 1)
        probability_inside(delta, "delta")
        object.__setattr__(self, "epsilon", positive_decimal(epsilon, "epsilon"))
        object.__setattr__(self, "delta", positive_decimal(delta, "delta"))
        object.__setattr__(self, "max_groups_per_unit", groups)
        object.__setattr__(self, "neighbours", Neighbours.read(neighbours))
        carried_scale(self.scale, "epsilon")

    def __repr__(self) -> str:
        numbers = f"epsilon={plain(self.epsilon)}, delta={plain(self.delta)}"
        return (
            f"ThresholdedKeys({numbers}, max_groups_per_unit={self.max_groups_per_unit}, "
            f"neighbours={self.neighbours.value!r})"
        )

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on each key's number of people."""
        return self.neighbours.people_moved * self.max_groups_per_unit / Fraction(self.epsilon)

    @property
    def threshold(self) -> int:
        """The least noisy number of people with which a key is released."""
        return 1 + least_tail(self.scale, Fraction(self.delta) / self.max_groups_per_unit)

    @property
    def loss(self) -> ApproxDP:
        """What one release costs, however many keys, under either relation."""
        return ApproxDP(self.epsilon, self.delta)

    def release(self, people_per_key: Mapping[Key, int]) -> dict[Key, int]:
        """Keys that pass the threshold, each with its noisy number of people, most people first.

        Keys are None, numbers, text, bytes, dates, naive or zoned datetimes, timedeltas, and tuples of these;
        equal keys come out in one form (True and 1.0 as 1). Keys of another kind, NaN and infinite numbers never come
        out: convert them first. No key and no number is refused.

        Claim: K-21. The output satisfies `loss`; keys that one person alone holds come out with probability <= delta.
        Requires: a person is counted at most once per key and in at most max_groups_per_unit keys (caller).
        Relies on: K-09, K-11 (least_tail).
        Proof: docs/claims/K-21.md
        Checked by: tests/kernel/test_keys.py::test_lonely_keys_stay_within_delta
        """
        return release_keys(self, people_per_key, SYSTEM)

    def margin(self, confidence: Number = "0.95") -> int:
        """|noisy - true| people of one key is at most this with the stated probability, before thresholding.

        Claim: K-11. Exact for the discrete noise.
        Requires: 0 < confidence < 1 (checked here).
        Relies on: laplace_margin.
        Proof: docs/claims/K-11.md
        Checked by: tests/kernel/test_keys.py::test_people_needed_to_be_seen
        """
        return laplace_margin(self.scale, 1 - probability_inside(confidence, "confidence"))

    def people_needed(self, probability: Number = "0.5") -> int:
        """How many people must hold a key for it to be released with at least this probability.

        Claim: K-11. The least such number: n people pass iff Z >= threshold - n.
        Requires: 0 < probability < 1 (checked here).
        Relies on: least_tail.
        Proof: docs/claims/K-11.md
        Checked by: tests/kernel/test_keys.py::test_people_needed_to_be_seen
        """
        wanted = probability_inside(probability, "probability")
        threshold = self.threshold
        if wanted > Fraction(1, 2):  # P(Z >= -k + 1) = 1 - P(Z >= k) >= wanted
            return threshold + least_tail(self.scale, 1 - wanted) - 1
        # the greatest k with P(Z >= k) >= wanted; equality is impossible, so it is one below the least with <= wanted
        return max(1, threshold - least_tail(self.scale, wanted) + 1)


def release_keys(keys: ThresholdedKeys, people_per_key: Mapping[Key, int], entropy: Entropy) -> dict[Key, int]:
    """Noise on every key that somebody holds; keys below the threshold are forgotten; the order is the noisy one.

    Claim: K-21. The output depends on the data only through the noisy counts that reach the threshold.
    Requires: as ThresholdedKeys.release.
    Relies on: K-09.
    Proof: docs/claims/K-21.md
    Checked by: tests/kernel/test_keys.py::test_release_is_noise_and_threshold
    """
    if not isinstance(people_per_key, Mapping):
        raise InvalidParameter("people_per_key", "must map keys to numbers of people", kind_of(people_per_key))
    values = read_numbers(list(people_per_key.values()), "people_per_key")
    if values.shape != (len(people_per_key),):
        raise InvalidParameter("people_per_key", "must map each key to one number of people", "several")
    held: list[tuple[object, Ordered]] = []
    counted: list[int] = []
    for key, people in zip(people_per_key, to_grid(values.flat, 0).tolist(), strict=True):
        form = canonical(key)
        if people > 0 and not isinstance(form, NoKey):  # a number below zero counts as nobody
            held.append(form)
            counted.append(people)
    noisy = add_saturating(np.array(counted, np.int64), discrete_laplace(keys.scale, len(held), entropy))
    threshold = keys.threshold
    passed = [(form, count) for form, count in zip(held, noisy.tolist(), strict=True) if count >= threshold]
    in_order = sorted(passed, key=lambda pair: (-pair[1], pair[0][1]))
    return {cast(Key, key): count for (key, _), count in in_order}
