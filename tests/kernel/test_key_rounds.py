"""Undeclared keys in two rounds: weights, thresholds, the bound on the loss, and the draws themselves."""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.key_rounds import (
    EARLY,
    FIRST,
    LATE,
    SECOND,
    Holdings,
    KeyRounds,
    bound_late,
    bound_rounds_delta,
    weigh_holdings,
)
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.release import find_keys
from sfumato.kernel.weighted_keys import WHOLE, bound_lonely, find_weight
from sfumato.lab.auditing.recomputed_release import find_keys_again
from sfumato.lab.auditing.recorded_release import RecordedEntropy

RULES = [
    KeyRounds(Decimal(epsilon), Decimal(delta), groups, neighbours)
    for epsilon, delta in (("1", "1e-5"), ("0.2", "1e-3"), ("4", "0.01"))
    for groups in (1, 3, 200)
    for neighbours in Neighbours
]
pairs = st.sets(st.tuples(st.integers(0, 9), st.integers(0, 7)), max_size=40)


def tail(at):
    return math.erfc(at / math.sqrt(2)) / 2


def hold(held):
    people, cells = (np.array([pair[place] for pair in held], np.int64) for place in (0, 1))
    return Holdings(people, cells)


@given(pairs)
def test_weights_are_added_up_exactly(held):
    expected, mine = [0] * 8, Counter(person for person, _ in held)
    for person, cell in held:
        expected[cell] += find_weight(mine[person])
    assert weigh_holdings(hold(held), 8, 8).tolist() == expected


@given(pairs, st.sets(st.integers(0, 7), min_size=1), st.sets(st.integers(0, 7)))
def test_one_person_moves_both_rounds_by_their_certified_distance(others, mine, hopeful):
    """In either round: what one person adds is 1 in L2, and what another adds instead is at most sqrt(2) away."""
    for cells in (set(range(8)), hopeful):
        sides = [
            weigh_holdings(hold({pair for pair in held if pair[1] in cells}), 8, 8)
            for held in (others, others | {(99, cell) for cell in mine}, others | {(77, cell) for cell in {0, 5}})
        ]
        assert ((sides[1] - sides[0]) ** 2).sum() <= WHOLE**2
        assert ((sides[1] - sides[2]) ** 2).sum() <= 2 * WHOLE**2


def test_the_kernel_refuses_holdings_beyond_the_bound():
    with pytest.raises(KernelFault):
        weigh_holdings(hold([(0, 0), (0, 1), (0, 2)]), 3, 2)
    with pytest.raises(KernelFault):
        weigh_holdings(hold([(0, 3)]), 3, 2)
    assert "1" not in repr(hold([(1, 1)]))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_lonely_keys_stay_within_their_shares(rule):
    """For every number of keys that a person can hold alone; the first round has its share, the second its own."""
    deviation, delta, groups = float(rule.deviation), float(rule.delta), rule.max_groups_per_unit
    spread = deviation * math.sqrt(4 * float(SECOND) ** 2 + float(FIRST) ** 2)
    early, late = (
        max(held * tail((threshold - find_weight(held) - more) / wide) for held in range(1, groups + 1))
        for threshold, more, wide in (
            (rule.early_threshold, 0.5, deviation * float(FIRST)),
            (rule.threshold, 2 * WHOLE + 1.5, spread),
        )
    )
    assert 0.9 * float(EARLY) * delta < early <= float(EARLY) * delta * (1 + 1e-9)
    assert 0.9 * float(LATE) * delta < late <= float(LATE) * delta * (1 + 1e-9)
    assert bound_lonely(rule.deviation * FIRST, rule.early_threshold, groups) <= EARLY * Fraction(rule.delta)
    assert bound_late(rule.deviation, rule.threshold, groups) <= LATE * Fraction(rule.delta)
    assert bound_late(rule.deviation, rule.threshold - int(rule.deviation / 5), groups) > LATE * Fraction(rule.delta)
    assert bound_late(rule.deviation, 0, groups) >= 1


def gaussian_delta(mu, epsilon):
    return tail(epsilon / mu - mu / 2) - math.exp(epsilon) * tail(epsilon / mu + mu / 2)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_loss_of_both_rounds_is_within_delta(rule):
    """Both rounds together: the common keys' Gaussian shifts add up in squares, and lonely keys have their shares."""
    first, second = (float(noise.variance) for noise in rule.rounds)
    moved = rule.neighbours.people_moved * WHOLE**2
    mu, lonely = math.sqrt(moved / first + moved / second), float((EARLY + LATE) * Fraction(rule.delta))
    total = lonely + gaussian_delta(mu, float(rule.epsilon) + math.log1p(-lonely))
    assert 0.9 * float(rule.delta) < total <= float(rule.delta)
    exact = Fraction(rule.epsilon), Fraction(rule.delta), rule.neighbours.people_moved
    assert bound_rounds_delta(rule.deviation, *exact) <= Fraction(rule.delta)
    assert bound_rounds_delta(rule.deviation * 49 / 50, *exact) > Fraction(rule.delta)


@given(pairs, st.sampled_from(RULES[-2:]))
def test_both_rounds_are_those_of_plain_python(held, rule):
    """With the same bytes: the keys that are found, person by person and key by key."""
    crowd = [(100 + person, cell) for cell in range(4) for person in range(5 * cell)]  # some keys are near a threshold
    tape = RecordedEntropy()
    found = find_keys(rule, hold([*held, *crowd]), 8, tape).tolist()
    tape.rewind()
    assert found == find_keys_again(rule, [*held, *crowd], 8, tape)


def test_a_key_of_nobody_is_never_found():
    rule = KeyRounds(Decimal("0.2"), Decimal("0.04"), 1, Neighbours.ADD_REMOVE)
    crowd = hold([(person, 0) for person in range(500)])
    assert all(find_keys(rule, crowd, 50, SYSTEM).tolist() == [0] for _ in range(20))
    assert find_keys(rule, hold([]), 0, SYSTEM).size == 0


def test_rare_keys_gain_from_keys_that_are_found_first():
    """Everybody holds 63 frequent keys and one rare one. The second round weighs the rare ones alone."""
    rule = KeyRounds(Decimal(1), Decimal("1e-5"), 64, Neighbours.ADD_REMOVE)
    held = [(person, cell) for person in range(4_000) for cell in range(63)]
    held += [(person, 63 + person // 100) for person in range(4_000)]
    found = find_keys(rule, hold(held), 103, SYSTEM)
    assert set(range(63)) <= set(found.tolist())
    assert len(found) > 63 + 5  # in one round, 100 people who hold 64 keys each find none of 40


def test_rules_that_cannot_be():
    for epsilon, delta, groups in (("0", "1e-5", 1), ("1", "0", 1), ("1", "1e-5", 0)):
        with pytest.raises(KernelFault):
            KeyRounds(Decimal(epsilon), Decimal(delta), groups, Neighbours.ADD_REMOVE)
    with pytest.raises(InvalidParameter, match="delta"):
        KeyRounds(Decimal("0.01"), Decimal("0.1"), 1, Neighbours.ADD_REMOVE)
