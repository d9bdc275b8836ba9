"""The noise that pays for a sensitivity: discrete Laplace noise for L1, discrete Gaussian noise for L2."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import KernelFault, build_too_little_noise, build_too_much_noise
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.samplers import GREATEST_SCALE, LEAST_SCALE, IntArray, discrete_gaussian, discrete_laplace


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Discrete Laplace noise, in steps of a grid."""

    scale: Fraction

    def draw(self, size: int, entropy: Entropy) -> IntArray:
        """Draw `size` of them. See discrete_laplace."""
        return discrete_laplace(self.scale, size, entropy)


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Discrete Gaussian noise, in steps of a grid."""

    variance: Fraction

    def draw(self, size: int, entropy: Entropy) -> IntArray:
        """Draw `size` of them. See discrete_gaussian."""
        return discrete_gaussian(self.variance, size, entropy)


Noise = LaplaceNoise | GaussianNoise


def choose_noise(l1: Fraction, l2_squared: Fraction, loss: PureDP | ZCDP) -> Noise:
    """Choose the noise that pays for a sensitivity. One that the samplers cannot draw is refused.

    Claim: K-19. Discrete Laplace noise of scale l1/epsilon is epsilon-DP; discrete Gaussian noise of variance
        l2_squared/(2 rho) is rho-zCDP. No scale and no variance is silently changed.
    Requires: the sensitivities are those of integers, and public (caller).
    Relies on: K-09, K-10.
    Checked by: tests/kernel/test_mechanisms.py::test_gaussian_divergence_is_enumerated
    """
    match loss:
        case PureDP(epsilon) if epsilon:
            return LaplaceNoise(check_scale(l1 / Fraction(epsilon), "epsilon"))
        case ZCDP(rho, delta) if rho and not delta:
            twice_variance = l2_squared / Fraction(rho)
            if twice_variance < LEAST_SCALE:
                raise build_too_little_noise("rho", f"at most {1 / LEAST_SCALE} times the sensitivity squared")
            if twice_variance >= GREATEST_SCALE**2:
                raise build_too_much_noise("rho")
            return GaussianNoise(twice_variance / 2)
        case _:
            raise KernelFault("Noise is paid for by an epsilon or a rho above zero, without a delta.")


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
