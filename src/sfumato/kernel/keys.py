"""Undeclared keys: a key is released only when the noisy number of people who hold it is high enough."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar, cast

import numpy as np

from sfumato.errors import InvalidParameter, KernelFault, kind_of
from sfumato.kernel.canonical_keys import NoKey, Ordered, canonical
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.grid import add_saturating, read_numbers, to_grid
from sfumato.kernel.mechanisms import check_scale
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.samplers import discrete_laplace
from sfumato.kernel.tails import least_tail

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class KeyRule:
    """How undeclared keys are released. Each person counts once for each of at most `max_groups_per_unit` keys."""

    epsilon: Decimal
    delta: Decimal
    max_groups_per_unit: int
    neighbours: Neighbours

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or not 0 < self.delta < 1 or self.max_groups_per_unit < 1:
            raise KernelFault("Keys need an epsilon and a delta above zero, and at least one group.")
        check_scale(self.scale, "epsilon")

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on each key's number of people.

        Claim: K-21. Releasing the keys whose noisy number reaches `threshold` is (epsilon, delta)-DP.
        Requires: a person counts at most once per key and in at most max_groups_per_unit keys (caller).
        Relies on: K-09.
        Checked by: tests/kernel/test_keys.py::test_key_privacy_is_enumerated
        """
        return self.neighbours.people_moved * self.max_groups_per_unit / Fraction(self.epsilon)

    @property
    def threshold(self) -> int:
        """The least noisy number of people with which a key is released.

        Claim: K-21. A key that one person alone holds reaches it with probability at most delta/max_groups_per_unit.
        Requires: as scale.
        Relies on: K-11 (least_tail).
        Checked by: tests/kernel/test_keys.py::test_lonely_keys_stay_within_delta
        """
        return 1 + least_tail(self.scale, Fraction(self.delta) / self.max_groups_per_unit)


def release_keys(rule: KeyRule, people_per_key: Mapping[Key, int], entropy: Entropy) -> dict[Key, int]:
    """Add noise to every key that somebody holds, and drop keys below the threshold. Most people come first.

    Claim: K-21. The output is (epsilon, delta)-DP: it depends on the data only through the noisy counts that reach the
        threshold. No key and no number is refused.
    Requires: a person counts at most once per key and in at most max_groups_per_unit keys (caller).
    Relies on: K-09, K-13 (reading).
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
    noisy = add_saturating(np.array(counted, np.int64), discrete_laplace(rule.scale, len(held), entropy))
    threshold = rule.threshold
    passed = [(form, count) for form, count in zip(held, noisy.tolist(), strict=True) if count >= threshold]
    in_order = sorted(passed, key=lambda pair: (-pair[1], pair[0][1]))
    return {cast(Key, key): count for (key, _), count in in_order}
