"""Is noise as large as its certificate says? Exact tests that depend on no sampler of the kernel."""

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise

LOG_ALARM = math.log(1e-10)  # some thousand tests of correct noise raise a false alarm with probability below 1e-6
_DIGITS = 60
_SMALL = 2.0  # variances up to this are summed term by term
_TERMS = 60


def bound_small_noise(noise: LaplaceNoise | GaussianNoise, drawn: Sequence[int]) -> float:
    """The logarithm of an upper bound on the probability that independent noise is as small as `drawn`, or smaller.

    The size is the sum of |z| (Laplace) or of z² (Gaussian). Chernoff: for every t >= 0,
    P(S <= s) <= exp(t s) E[exp(-t z)]^n, where z is one term of the sum. The least of these bounds is a bound.
    """
    match noise:
        case LaplaceNoise(scale):
            width, size = float(scale), float(sum(abs(value) for value in drawn))
            rates = [math.expm1(exponent) for exponent in _list_exponents(width)]
            bounds = (rate * size / width + len(drawn) * _transform_laplace(width, rate) for rate in rates)
        case GaussianNoise(variance):
            width, size = float(variance), float(sum(value * value for value in drawn))
            rates = [math.expm1(exponent) for exponent in _list_exponents(width)]
            bounds = (rate * size / (2 * width) + len(drawn) * _transform_gaussian(width, rate) for rate in rates)
    return min(0.0, *bounds)


def is_too_small(noise: LaplaceNoise | GaussianNoise, drawn: Sequence[int]) -> bool:
    """Whether noise of the certified size would almost never be as small as this."""
    return bool(drawn) and bound_small_noise(noise, drawn) < LOG_ALARM


def compute_upper_tail(scale: Fraction, least: int) -> Decimal:
    """P(Z >= least) for discrete Laplace noise Z of this scale, with 50 correct digits.

    With x = exp(-1/scale): x^k / (1 + x) for k >= 1, and 1 - x^(1 - k) / (1 + x) otherwise (symmetry).
    """
    with localcontext() as context:
        context.prec = _DIGITS
        step = -Decimal(scale.denominator) / Decimal(scale.numerator)
        if least >= 1:
            return (least * step).exp() / (1 + step.exp())
        return 1 - ((1 - least) * step).exp() / (1 + step.exp())


def _list_exponents(width: float) -> Iterable[float]:
    """Rates from 0.001 to beyond what makes all terms but z = 0 vanish."""
    last = math.log1p(60 * max(width, 1.0))
    return (0.001 + last * step / 200 for step in range(201))


def _transform_laplace(scale: float, rate: float) -> float:
    """ln E[exp(-rate |Z| / scale)], which is (1 - x)(1 + xs) / ((1 + x)(1 - xs)) with s = exp(-rate / scale)."""
    alone, together = 1 / scale, (1 + rate) / scale
    return (
        math.log(-math.expm1(-alone))
        - math.log1p(math.exp(-alone))
        + math.log1p(math.exp(-together))
        - math.log(-math.expm1(-together))
    )


def _transform_gaussian(variance: float, rate: float) -> float:
    """ln E[exp(-rate Z² / (2 variance))]: a ratio of two sums of Gaussian terms."""
    return _sum_terms(variance / (1 + rate)) - _sum_terms(variance)


def _sum_terms(variance: float) -> float:
    """ln of the sum of exp(-z² / (2 variance)) over all integers z; for large variances by Poisson's summation."""
    if variance > _SMALL:
        return math.log(2 * math.pi * variance) / 2 + math.log1p(2 * math.exp(-2 * math.pi**2 * variance))
    return math.log1p(2 * sum(math.exp(-value * value / (2 * variance)) for value in range(1, _TERMS)))
