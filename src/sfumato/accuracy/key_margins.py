"""How many people an undeclared key needs."""

from fractions import Fraction

from sfumato.kernel.keys import KeyRule
from sfumato.kernel.tails import find_least_tail
from sfumato.number_arguments import Number, read_probability


def people_needed(rule: KeyRule, probability: Number = "0.5") -> int:
    """How many people must hold a key for it to be released with at least this probability.

    Claim: K-11. The least such number: n people pass iff Z >= threshold - n.
    Requires: 0 < probability < 1 (checked here).
    Relies on: K-21, find_least_tail.
    Checked by: tests/kernel/test_keys.py::test_people_needed_to_be_seen
    """
    wanted = read_probability(probability, "probability")
    if wanted > Fraction(1, 2):  # P(Z >= -k + 1) = 1 - P(Z >= k) >= wanted
        return rule.threshold + find_least_tail(rule.scale, 1 - wanted) - 1
    # the greatest k with P(Z >= k) >= wanted; equality is impossible, so it is one below the least with <= wanted
    return max(1, rule.threshold - find_least_tail(rule.scale, wanted) + 1)
