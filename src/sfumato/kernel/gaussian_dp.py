"""Conversions of Gaussian differential privacy, rounded up. Floats only guess; each guess is checked exactly."""

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from sfumato.kernel.exact import enclose_exp_neg
from sfumato.kernel.normal import enclose_tail
from sfumato.noise_guesses import guess_mu

_BITS = 192
_ROOT_BITS = 160
_FAR = 30  # deviations: what lies beyond is left out where that is sound
_NEAR = 8  # deviations: a delta that is nearly 1 is not computed
_MOST_EXACT = 400  # an epsilon beyond is converted by a bound


def bound_root(square: Fraction) -> Fraction:
    """A rational number that is not below the square root, and above it by at most 2**-160.

    Claim: K-72. result**2 >= square.
    Requires: square >= 0 (caller).
    Checked by: tests/kernel/test_gaussian_dp.py::test_roots_are_rounded_up
    """
    whole = (square.numerator << 2 * _ROOT_BITS) // square.denominator + 1
    return Fraction(isqrt(whole) + 1, 1 << _ROOT_BITS)


def bound_delta(mu: Fraction, epsilon: Fraction) -> Fraction:
    """An upper bound of the delta at which mu-GDP implies (epsilon, delta)-DP.

    Claim: K-72. The result is at least Phi(mu/2 - epsilon/mu) - e^epsilon * Phi(-mu/2 - epsilon/mu).
    Requires: mu > 0, epsilon >= 0 (caller).
    Relies on: K-01, K-70.
    Checked by: tests/kernel/test_gaussian_dp.py::test_delta_is_that_of_the_oracle
    """
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if near < -_NEAR:
        return Fraction(1)
    bits = _BITS + (int(far**2) if far <= _FAR else 0)
    most = Fraction(enclose_tail(near, bits)[1], 1 << bits)
    if far > _FAR or epsilon > _MOST_EXACT:
        return most
    least = Fraction(enclose_tail(far, bits)[0], enclose_exp_neg(epsilon, bits + 2 * _MOST_EXACT)[1])
    return min(most, most - least * (1 << 2 * _MOST_EXACT))


@lru_cache(maxsize=1024)
def bound_epsilon(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """An epsilon for which mu-GDP implies (epsilon, delta)-DP, close to the least one.

    Claim: K-72. bound_delta(mu, result) <= delta.
    Requires: mu_squared >= 0, 0 < delta < 1 (caller).
    Relies on: bound_delta, bound_root.
    Checked by: tests/kernel/test_gaussian_dp.py::test_epsilon_is_that_of_the_oracle
    """
    if mu_squared == 0:
        return Fraction(0)
    mu = bound_root(mu_squared)
    if bound_delta(mu, Fraction(0)) <= delta:
        return Fraction(0)
    high = Fraction(1)
    while bound_delta(mu, high) > delta:
        high *= 2
    low = high / 2 if high > 1 else Fraction(0)
    while high - low > high / (1 << 48):  # every step keeps bound_delta(mu, high) <= delta
        middle = (low + high) / 2
        low, high = (low, middle) if bound_delta(mu, middle) <= delta else (middle, high)
    return high


@lru_cache(maxsize=1024)
def bound_mu_squared(epsilon: Fraction) -> Fraction:
    """A mu**2 for which every epsilon-DP mechanism is mu-GDP, close to the least one.

    Claim: K-72. P(N >= mu/2) <= 1/(1 + e^epsilon) for the result mu**2, N standard normal.
    Requires: epsilon > 0 (caller).
    Relies on: K-01, K-70.
    Checked by: tests/kernel/test_gaussian_dp.py::test_pure_losses_become_the_least_mu
    """
    if epsilon > _MOST_EXACT:
        return 8 * epsilon
    half, bits = Fraction(guess_mu(float(epsilon))) / 2, _BITS + 2 * _MOST_EXACT
    slack = Fraction(1, 1 << 50)
    while True:
        smallest = Fraction(enclose_exp_neg(epsilon, bits)[0], 1 << bits)
        tail = Fraction(enclose_tail(half * (1 + slack), bits)[1], 1 << bits)
        if tail * (1 + smallest) <= smallest:  # tail <= e^-epsilon/(1 + e^-epsilon)
            return 4 * (half * (1 + slack)) ** 2
        slack *= 2
