"""How undeclared keys are released: by numbers of people or by weights. The choice reads no data."""

from dataclasses import replace

from sfumato.errors import InvalidParameter
from sfumato.kernel.key_rounds import KeyRounds
from sfumato.kernel.keys import KeyRule
from sfumato.kernel.losses import ApproxDP
from sfumato.kernel.plan import BoundedPlan, Keys, Measurement, WeightedKeys
from sfumato.kernel.weighted_keys import WeightedKeyRule, find_weight

MOST_KEYS = 128  # of a person who holds more, a hash selects so many: the threshold would grow with each


def choose_key_rule(plan: BoundedPlan, *, counts_people: bool, most_keys: int = MOST_KEYS) -> BoundedPlan:
    """The plan with weighted keys, where no key is expected to need more people than by numbers of people.

    Two rounds are tried first, then one.

    The worst case for weights is a key of people who all hold as many keys as they may. If a question counts the people
    of each key, their noisy numbers serve both.
    """
    groups = min(plan.max_groups_per_unit, most_keys)
    if plan.unit.per_row or counts_people or groups == 1:
        return plan
    measurements = tuple(_choose(plan, measurement, groups) for measurement in plan.measurements)
    if measurements == plan.measurements:
        return plan
    return replace(plan, measurements=measurements, max_groups_per_unit=groups)


def _choose(plan: BoundedPlan, measurement: Measurement, groups: int) -> Measurement:
    loss, held = measurement.loss, plan.max_groups_per_unit
    if not isinstance(measurement.quantity, Keys) or not isinstance(loss, ApproxDP):
        return measurement
    try:
        by_people = KeyRule(loss.epsilon, loss.delta, held, plan.unit.neighbours)
        rules = [rule(loss.epsilon, loss.delta, groups, plan.unit.neighbours) for rule in (KeyRounds, WeightedKeyRule)]
    except InvalidParameter:
        return measurement
    for rule, rounds, times in zip(rules, (2, 1), (3, 1), strict=True):  # two rounds add up three times a weight
        needed = -(-rule.threshold * held // (times * find_weight(groups) * groups))
        if needed <= by_people.threshold:
            return replace(measurement, quantity=WeightedKeys(rounds))
    return measurement
