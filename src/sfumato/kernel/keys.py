"""Undeclared keys: a key is released only when the noisy number of people who hold it is high enough."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sfumato.errors import KernelFault
from sfumato.kernel.mechanisms import check_scale
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.tails import find_least_tail


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
        Relies on: K-11 (find_least_tail).
        Checked by: tests/kernel/test_keys.py::test_lonely_keys_stay_within_delta
        """
        return 1 + find_least_tail(self.scale, Fraction(self.delta) / self.max_groups_per_unit)
