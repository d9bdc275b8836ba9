"""The threshold of undeclared keys, as text."""

from fractions import Fraction

from sfumato.accuracy.key_margins import people_needed
from sfumato.accuracy.noise_margins import compute_noise_margin
from sfumato.kernel.certify import Certificate, Certified
from sfumato.kernel.exact import write_plain
from sfumato.kernel.keys import KeyRule
from sfumato.kernel.losses import ApproxDP
from sfumato.kernel.mechanisms import GaussianNoise
from sfumato.kernel.weighted_keys import find_weight
from sfumato.planning.planner import Planned


def describe_key_threshold(planned: Planned, certificate: Certificate) -> str | None:
    """State when an undeclared key is shown, and how many people it needs; None if all keys are declared."""
    plan = planned.plan
    for certified in certificate.measurements:
        if certified.threshold is not None and isinstance(certified.loss, ApproxDP):
            loss = certified.loss
            if isinstance(certified.noise, GaussianNoise):
                return _describe_weights(certified, certified.noise, loss, plan.max_groups_per_unit)
            rule = KeyRule(loss.epsilon, loss.delta, plan.max_groups_per_unit, plan.unit.neighbours)
            half, most = people_needed(rule, "0.5"), people_needed(rule, "0.95")
            return (
                f"An undeclared key is shown if its noisy number of people is at least {certified.threshold} "
                f"(δ = {write_plain(loss.delta)}). A key with {half} people is shown with a probability of 50 %, "
                f"a key with {most} people with 95 %."
            )
    return None


def _describe_weights(certified: Certified, noise: GaussianNoise, loss: ApproxDP, groups: int) -> str:
    """State how many people a key needs: those who hold few keys count more."""
    threshold = certified.threshold or 0
    likely = threshold + compute_noise_margin(noise, Fraction(1, 10))  # one side of 90 % is 95 %
    step, times = 2.0**certified.exponent, 1 if certified.key_rounds is None else 3  # twice the second, and the first
    people = {
        held: tuple(-(-needed // (times * find_weight(held))) for needed in (threshold, likely)) for held in (1, groups)
    }
    shown = f"An undeclared key is shown if its noisy weight is at least {threshold * step:.4g}"
    if certified.key_rounds is not None:
        shown = (
            f"Keys are weighed twice: those that the first noisy weight finds (at least "
            f"{certified.key_rounds.early_threshold * step:.4g}), or finds hopeless (below "
            f"{certified.key_rounds.hope * step:.4g}), are left out of the second. Any other key is shown if twice its "
            f"second noisy weight plus the first is at least {threshold * step:.4g}"
        )
    return (
        f"The keys of a person who holds n of them weigh 1/√n each. {shown} "
        f"(δ = {write_plain(loss.delta)}). A key of people who hold no other key is "
        f"shown with a probability of 50 % if it has {people[1][0]:,} people, and with 95 % if it has "
        f"{people[1][1]:,}; a key of people who hold {groups:,} keys each needs {people[groups][0]:,} and "
        f"{people[groups][1]:,} people."
    )
