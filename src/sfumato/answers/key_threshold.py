"""The threshold of undeclared keys, as text."""

from sfumato.accuracy.key_margins import people_needed
from sfumato.kernel.certify import Certificate
from sfumato.kernel.exact import write_plain
from sfumato.kernel.keys import KeyRule
from sfumato.kernel.losses import ApproxDP
from sfumato.planning.planner import Planned


def describe_key_threshold(planned: Planned, certificate: Certificate) -> str | None:
    """State when an undeclared key is shown, and how many people it needs; None if all keys are declared."""
    plan = planned.plan
    for certified in certificate.measurements:
        if certified.threshold is not None and isinstance(certified.loss, ApproxDP):
            loss = certified.loss
            rule = KeyRule(loss.epsilon, loss.delta, plan.max_groups_per_unit, plan.unit.neighbours)
            half, most = people_needed(rule, "0.5"), people_needed(rule, "0.95")
            return (
                f"An undeclared key is shown if its noisy number of people is at least {certified.threshold} "
                f"(δ = {write_plain(loss.delta)}). A key with {half} people is shown with a probability of 50 %, "
                f"a key with {most} people with 95 %."
            )
    return None
