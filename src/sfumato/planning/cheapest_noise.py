"""Laplace or Gaussian noise for each measurement: whichever is smaller at the same price in the budget's accounting."""

import math
from dataclasses import replace
from fractions import Fraction

from sfumato.kernel.exact import sum_exactly
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PureDP
from sfumato.kernel.plan import BoundedPlan, Count, Different, Loss, Measurement, People, Quantity, Sum, take_part
from sfumato.kernel.sensitivity import derive_sensitivity

MOST_CERTAIN = 1e-3  # the scale of Laplace noise that is practically always 0


def takes_gaussian(quantity: Quantity) -> bool:
    """Whether Gaussian noise can be added to a quantity."""
    return isinstance(take_part(quantity), Count | Sum | People | Different)


def pay_least(plan: BoundedPlan, accounting: str) -> BoundedPlan:
    """The plan with the noise of each measurement chosen for the budget's accounting. The price stays the same."""
    paid = tuple(
        replace(measurement, loss=_choose_loss(plan, measurement, accounting)) for measurement in plan.measurements
    )
    return plan if paid == plan.measurements else replace(plan, measurements=paid)


def _choose_loss(plan: BoundedPlan, measurement: Measurement, accounting: str) -> Loss:
    match measurement.loss:
        case ZCDP(rho, delta) if accounting == "gdp" and not delta:
            return GDP(sum_exactly(rho, rho))  # a Gaussian of the same variance
        case PureDP() as laplace if takes_gaussian(measurement.quantity) and accounting != "basic":
            gaussian = laplace.to_zcdp() if accounting == "zcdp" else laplace.to_gdp()
            return min((laplace, gaussian), key=lambda loss: find_variance(plan, replace(measurement, loss=loss)))
        case loss:
            return loss


def list_other_payments(measurement: Measurement, accounting: str) -> list[Measurement]:
    """The same measurement with Gaussian noise instead of Laplace noise, where the budget's accounting has a price."""
    laplace = measurement.loss
    if not isinstance(laplace, PureDP) or accounting == "basic" or not takes_gaussian(measurement.quantity):
        return []
    return [replace(measurement, loss=laplace.to_zcdp() if accounting == "zcdp" else laplace.to_gdp())]


def find_variance(plan: BoundedPlan, measurement: Measurement) -> float:
    """The variance of the noise that the measurement's loss pays for, in steps."""
    moved = derive_sensitivity(plan, measurement.quantity)
    match measurement.loss:
        case ZCDP(rho):
            return float(moved.l2_squared / (2 * Fraction(rho)))
        case GDP(mu_squared):
            return float(moved.l2_squared / Fraction(mu_squared))
        case PureDP(epsilon) | ApproxDP(epsilon):
            return _compute_variance(float(moved.l1 / Fraction(epsilon)))


def _compute_variance(scale: float) -> float:
    """The variance of discrete Laplace noise, 2 x/(1 - x)**2 with x = exp(-1/scale)."""
    return 0.5 / math.sinh(0.5 / scale) ** 2 if scale > MOST_CERTAIN else 0.0
