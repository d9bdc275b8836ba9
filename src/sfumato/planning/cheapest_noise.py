"""Laplace or Gaussian noise for each measurement: whichever is smaller at the same price in the budget's accounting."""

import math
from dataclasses import replace
from fractions import Fraction

from sfumato.kernel.exact import sum_exactly
from sfumato.kernel.losses import GDP, ZCDP, PureDP
from sfumato.kernel.plan import BoundedPlan, Count, Different, Loss, Measurement, People, Quantity, Sum, take_part
from sfumato.kernel.sensitivity import derive_sensitivity

MOST_CERTAIN = 1e-3  # the scale of Laplace noise that is practically always 0


def takes_gaussian(quantity: Quantity) -> bool:
    """Whether Gaussian noise can be added to a quantity."""
    return isinstance(take_part(quantity), Count | Sum | People | Different)


def pay_least(plan: BoundedPlan, accounting: str) -> BoundedPlan:
    """The plan with the noise of each measurement chosen for the budget's accounting. The price stays the same."""
    paid = tuple(replace(one, loss=_choose_loss(plan, one, accounting)) for one in plan.measurements)
    return plan if paid == plan.measurements else replace(plan, measurements=paid)


def _choose_loss(plan: BoundedPlan, measurement: Measurement, accounting: str) -> Loss:
    match measurement.loss:
        case ZCDP(rho, delta) if accounting == "gdp" and not delta:
            return GDP(sum_exactly(rho, rho))  # a Gaussian of the same variance
        case PureDP(epsilon) as laplace if takes_gaussian(measurement.quantity) and accounting != "basic":
            moved = derive_sensitivity(plan, measurement.quantity)
            gaussian = laplace.to_zcdp() if accounting == "zcdp" else laplace.to_gdp()
            precision = 2 * Fraction(gaussian.rho) if isinstance(gaussian, ZCDP) else Fraction(gaussian.mu_squared)
            smaller = float(moved.l2_squared / precision) < _compute_variance(float(moved.l1 / Fraction(epsilon)))
            return gaussian if smaller else laplace
        case loss:
            return loss


def _compute_variance(scale: float) -> float:
    """The variance of discrete Laplace noise, 2 x/(1 - x)**2 with x = exp(-1/scale)."""
    return 0.5 / math.sinh(0.5 / scale) ** 2 if scale > MOST_CERTAIN else 0.0
