"""The noise that pays for a sensitivity: Laplace noise for L1, Gaussian noise for L2, box noise for a box."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.errors import KernelFault, build_too_little_noise, build_too_much_noise
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.losses import GDP, ZCDP, PureDP
from sfumato.kernel.rounded_gaussian import rounded_gaussian
from sfumato.kernel.samplers import (
    GREATEST_SCALE,
    LEAST_SCALE,
    IntArray,
    discrete_gaussian,
    discrete_laplace,
    draw_in_box,
)

LEAST_BOX_SCALE = 16  # of box noise, and no less than its number of terms: the sampler rarely tries again


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Discrete Laplace noise, in steps of a grid."""

    scale: Fraction

    def draw(self, size: int, entropy: Entropy) -> IntArray:
        """Draw `size` of them. See discrete_laplace."""
        return discrete_laplace(self.scale, size, entropy)


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Discrete Gaussian noise, in steps of a grid; or a Gaussian of this variance, `rounded` to whole steps."""

    variance: Fraction
    rounded: bool = False

    def draw(self, size: int, entropy: Entropy) -> IntArray:
        """Draw `size` of them. See discrete_gaussian and rounded_gaussian."""
        return (rounded_gaussian if self.rounded else discrete_gaussian)(self.variance, size, entropy)


@dataclass(frozen=True, slots=True)
class BoxNoise:
    """Noise for all terms of a cell together: independent given the size of the box, whose sides are `units`."""

    units: tuple[int, ...]
    scale: Fraction

    def draw(self, size: int, entropy: Entropy) -> IntArray:
        """Draw it for `size` integers: a whole number of cells. See draw_in_box."""
        boxes = [draw_in_box(self.units, self.scale, entropy) for _ in range(size // len(self.units))]
        return np.array([integer for box in boxes for integer in box], object)


Noise = LaplaceNoise | GaussianNoise


def choose_noise(l1: Fraction, l2_squared: Fraction, loss: PureDP | ZCDP | GDP) -> Noise:
    """Choose the noise that pays for a sensitivity. One that the samplers cannot draw is refused.

    Claim: K-19. Discrete Laplace noise of scale l1/epsilon is epsilon-DP; discrete Gaussian noise of variance
        l2_squared/(2 rho) is rho-zCDP; a rounded Gaussian of variance l2_squared/mu**2 is mu-GDP (K-71). No scale and
        no variance is silently changed.
    Requires: the sensitivities are those of integers, and public (caller).
    Relies on: K-09, K-10, K-71.
    Checked by: tests/kernel/test_mechanisms.py::test_gaussian_divergence_is_enumerated
    """
    match loss:
        case PureDP(epsilon) if epsilon:
            return LaplaceNoise(check_scale(l1 / Fraction(epsilon), "epsilon"))
        case ZCDP(rho, delta) if rho and not delta:
            return GaussianNoise(check_variance(l2_squared / (2 * Fraction(rho)), "rho"))
        case GDP(mu_squared, delta) if mu_squared and not delta:
            return GaussianNoise(check_variance(l2_squared / Fraction(mu_squared), "mu_squared"), rounded=True)
        case _:
            raise KernelFault("Noise is paid for by an epsilon, a rho or a mu above zero, without a delta.")


def check_variance(variance: Fraction, name: str) -> Fraction:
    """The variance itself, refused where the samplers cannot draw it. `name` is the parameter to blame.

    Claim: K-19. LEAST_SCALE <= 2 * result < GREATEST_SCALE**2: no variance is silently changed.
    Requires: a variance from public parameters (caller).
    Checked by: tests/kernel/test_mechanisms.py::test_extreme_parameters_are_refused
    """
    if 2 * variance < LEAST_SCALE:
        raise build_too_little_noise(name, f"at most {1 / LEAST_SCALE} times the sensitivity squared")
    if 2 * variance >= GREATEST_SCALE**2:
        raise build_too_much_noise(name)
    return variance


def choose_box_noise(moved: Sequence[Fraction], cells: int, loss: PureDP) -> BoxNoise:
    """Choose the box noise that pays for changes within the box of `moved`, in one cell or spread over `cells` cells.

    Claim: K-57. Independent draws for all cells satisfy `loss`, if one unit moves the terms as bound_terms says.
    Requires: the box bounds changes of integers, and is public (caller).
    Relies on: K-56.
    Checked by: tests/kernel/test_products.py::test_the_loss_of_box_noise_is_enumerated
    """
    if min(moved) <= 0 or cells < 1 or not loss.epsilon:
        raise KernelFault("Box noise needs terms that depend on the data, and an epsilon above zero.")
    units = tuple(math.ceil(side / min(moved)) for side in moved)
    shells = math.ceil(min(moved)) + cells - 1  # a change that is spread over cells is rounded up in each of them
    scale = check_scale(shells / Fraction(loss.epsilon), "epsilon")
    if scale < (least := max(LEAST_BOX_SCALE, len(units))):
        raise build_too_little_noise("epsilon", f"with the grid of these terms, at most {shells / least:g}")
    return BoxNoise(units, scale)


def check_scale(scale: Fraction, name: str) -> Fraction:
    """The scale itself, refused where the samplers cannot draw it. `name` is the parameter to blame.

    Claim: K-18. LEAST_SCALE <= result <= GREATEST_SCALE: no scale is silently changed.
    Requires: a scale from public parameters (caller).
    Relies on: exact comparison of fractions.
    Checked by: tests/kernel/test_mechanisms.py::test_extreme_parameters_are_refused
    """
    if scale < LEAST_SCALE:
        raise build_too_little_noise(name, f"at most {1 / LEAST_SCALE} times the sensitivity")
    if scale > GREATEST_SCALE:
        raise build_too_much_noise(name)
    return scale
