"""Replay of undeclared keys: what is compared where a key is on one side only."""

from fractions import Fraction

from sfumato.kernel.certify import Certified
from sfumato.kernel.losses import PureDP
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.sensitivity import Sensitivity
from sfumato.lab.auditing.recorded_release import ExactIntegers
from sfumato.lab.auditing.replay_comparison import find_moves


def certify_one(name, threshold=None):
    return Certified(
        name, 0, Sensitivity(Fraction(5), Fraction(25)), LaplaceNoise(Fraction(5)), PureDP(1), threshold=threshold
    )


BEFORE = ExactIntegers({"people": (2,), "rows": (3,)}, (("a",),), {})
AFTER = ExactIntegers({"people": (2, 1), "rows": (4, 60)}, (("a",), ("b",)), {})


def test_rows_of_a_key_that_one_person_brings_are_not_compared():
    """The key comes with the rows of others, who have it beyond their contribution bound. Delta pays for the key."""
    assert find_moves(certify_one("rows"), BEFORE, AFTER) == [1]
    assert find_moves(certify_one("rows"), AFTER, BEFORE) == [1]


def test_people_of_a_key_that_one_person_brings_are_compared():
    assert sorted(find_moves(certify_one("people", threshold=9), BEFORE, AFTER)) == [0, 1]


def test_declared_cells_are_all_compared():
    one, two = ExactIntegers({"rows": (3, 0)}, None, {}), ExactIntegers({"rows": (4, 60)}, None, {})
    assert find_moves(certify_one("rows"), one, two) == [1, 60]
