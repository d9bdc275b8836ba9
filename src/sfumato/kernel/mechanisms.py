"""The additive mechanisms: a number or a vector, on a grid, plus exact noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.exact import plain, sqrt_up
from sfumato.kernel.grid import (
    add_saturating,
    check_one,
    from_grid,
    one_to_grid,
    read_values,
    saturate,
    step_for,
    to_grid,
)
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.parameters import (
    Number,
    kind_of,
    positive_decimal,
    positive_fraction,
    probability_inside,
    whole_number,
)
from sfumato.kernel.samplers import (
    GREATEST_SCALE,
    LEAST_SCALE,
    ROWS_AT_ONCE,
    IntArray,
    discrete_gaussian,
    discrete_laplace,
)
from sfumato.kernel.tails import gaussian_margin, laplace_margin, per_coordinate

FINENESS = 1 << 16  # grid steps in one deviation of the noise, at least
ROUNDING_SHARE = 1 << 10  # rounding to the grid adds at most this part to the sensitivity

Numbers = npt.NDArray[Any]
Released = int | float | Numbers


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Discrete Laplace noise, in steps of a grid."""

    scale: Fraction

    def draw(self, size: int, entropy: Entropy) -> IntArray:
        """Draw `size` of them. See discrete_laplace."""
        return discrete_laplace(self.scale, size, entropy)

    def margin(self, miss: Fraction) -> int:
        """The least k with P(|Z| > k) <= miss. See laplace_margin."""
        return laplace_margin(self.scale, miss)


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Discrete Gaussian noise, in steps of a grid."""

    variance: Fraction

    def draw(self, size: int, entropy: Entropy) -> IntArray:
        """Draw `size` of them. See discrete_gaussian."""
        return discrete_gaussian(self.variance, size, entropy)

    def margin(self, miss: Fraction) -> int:
        """A k with P(|Z| > k) <= miss. See gaussian_margin."""
        return gaussian_margin(self.variance, miss)


Noise = LaplaceNoise | GaussianNoise


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Laplace:
    """The Laplace mechanism: epsilon-DP for a number or vector whose L1 sensitivity is `sensitivity`."""

    sensitivity: Fraction
    epsilon: Decimal

    def __init__(self, sensitivity: Number, epsilon: Number) -> None:
        object.__setattr__(self, "sensitivity", positive_fraction(sensitivity, "sensitivity"))
        object.__setattr__(self, "epsilon", positive_decimal(epsilon, "epsilon"))

    def __repr__(self) -> str:
        return f"Laplace(sensitivity={plain(self.sensitivity)}, epsilon={plain(self.epsilon)})"

    @property
    def loss(self) -> PureDP:
        """What one release costs, however long the vector."""
        return PureDP(self.epsilon)

    @overload
    def release(self, value: int) -> int: ...
    @overload
    def release(self, value: float) -> float: ...
    @overload
    def release(self, value: Sequence[float] | Numbers) -> Numbers: ...
    @overload
    def release(self, value: object) -> Released: ...
    def release(self, value: object) -> Released:
        """The value plus exact noise: integers stay integers, floats become multiples of a public grid.

        Claim: K-18. The output is epsilon-DP if `sensitivity` bounds the L1 distance between the values of neighbours.
        Requires: that bound, of the whole vector, and values that are never refused, whatever the data (caller, who
            clamps to public bounds); the length of a vector is public (caller).
        Relies on: K-09, K-13.
        Proof: docs/claims/K-18.md
        Checked by: tests/kernel/test_mechanisms.py::test_laplace_privacy_is_exact
        """
        return release_on_grid(self, value, SYSTEM)

    def margin(self, confidence: Number = "0.95", *, size: int = 1, of: type | None = None) -> int | float:
        """|error| is at most this with the stated probability, for all `size` entries of a vector at once.

        `of` says what is released, int or float; by default int if the sensitivity is whole.

        Claim: K-11. Exact for the discrete noise; half a grid step is added for the rounding of floats.
        Requires: 0 < confidence < 1 (checked here).
        Relies on: laplace_margin, per_coordinate.
        Proof: docs/claims/K-11.md
        Checked by: tests/kernel/test_mechanisms.py::test_margin_is_within_the_textbook_bound
        """
        return margin_on_grid(self, confidence, size, of)

    def on_integers(self) -> LaplaceNoise:
        """The noise for integers.

        Claim: K-18. Scale sensitivity/epsilon, refused outside what the samplers carry.
        Requires: nothing.
        Relies on: nothing.
        Proof: docs/claims/K-18.md
        Checked by: tests/kernel/test_mechanisms.py::test_extreme_parameters_are_refused
        """
        return _laplace_on_integers(self.sensitivity, self.epsilon)

    def on_grid(self, size: int) -> tuple[int, LaplaceNoise]:
        """The grid's exponent, and the noise in its steps, for a vector of `size` floats.

        Claim: K-18. With step g = 2**exponent, the scale is (sensitivity/g + size)/epsilon steps: rounding is paid for.
        Requires: size >= 1.
        Relies on: K-13 (rounding moves each coordinate by less than one step).
        Proof: docs/claims/K-18.md
        Checked by: tests/neighbours/test_rounding_is_paid.py::test_l1_distance_on_the_grid
        """
        return _laplace_on_grid(self.sensitivity, self.epsilon, size)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Gaussian:
    """The Gaussian mechanism: rho-zCDP for a number or vector whose L2 sensitivity is `sensitivity`."""

    sensitivity: Fraction
    rho: Decimal

    def __init__(self, sensitivity: Number, rho: Number) -> None:
        object.__setattr__(self, "sensitivity", positive_fraction(sensitivity, "sensitivity"))
        object.__setattr__(self, "rho", positive_decimal(rho, "rho"))

    def __repr__(self) -> str:
        return f"Gaussian(sensitivity={plain(self.sensitivity)}, rho={plain(self.rho)})"

    @property
    def loss(self) -> ZCDP:
        """What one release costs, however long the vector."""
        return ZCDP(self.rho)

    @overload
    def release(self, value: int) -> int: ...
    @overload
    def release(self, value: float) -> float: ...
    @overload
    def release(self, value: Sequence[float] | Numbers) -> Numbers: ...
    @overload
    def release(self, value: object) -> Released: ...
    def release(self, value: object) -> Released:
        """The value plus exact noise: integers stay integers, floats become multiples of a public grid.

        Claim: K-19. The output is rho-zCDP if `sensitivity` bounds the L2 distance between the values of neighbours.
        Requires: that bound, of the whole vector, and values that are never refused, whatever the data (caller, who
            clamps to public bounds); the length of a vector is public (caller).
        Relies on: K-10, K-13.
        Proof: docs/claims/K-19.md
        Checked by: tests/kernel/test_mechanisms.py::test_gaussian_divergence_is_enumerated
        """
        return release_on_grid(self, value, SYSTEM)

    def margin(self, confidence: Number = "0.95", *, size: int = 1, of: type | None = None) -> int | float:
        """|error| is at most this with the stated probability, for all `size` entries of a vector at once.

        `of` says what is released, int or float; by default int if the sensitivity is whole.

        Claim: K-12. It suffices for the discrete noise; half a grid step is added for the rounding of floats.
        Requires: 0 < confidence < 1 (checked here).
        Relies on: gaussian_margin, per_coordinate.
        Proof: docs/claims/K-12.md
        Checked by: tests/kernel/test_mechanisms.py::test_gaussian_margin_is_near_the_normal_one
        """
        return margin_on_grid(self, confidence, size, of)

    def on_integers(self) -> GaussianNoise:
        """The noise for integers.

        Claim: K-19. Variance sensitivity**2/(2 rho), refused outside what the samplers carry.
        Requires: nothing.
        Relies on: nothing.
        Proof: docs/claims/K-19.md
        Checked by: tests/kernel/test_mechanisms.py::test_extreme_parameters_are_refused
        """
        return _gaussian_on_integers(self.sensitivity, self.rho)

    def on_grid(self, size: int) -> tuple[int, GaussianNoise]:
        """The grid's exponent, and the noise in its steps, for a vector of `size` floats.

        Claim: K-19. With step g = 2**exponent, the variance is (sensitivity/g + sqrt(size))**2/(2 rho) steps.
        Requires: size >= 1.
        Relies on: K-01 (sqrt_up), K-13.
        Proof: docs/claims/K-19.md
        Checked by: tests/neighbours/test_rounding_is_paid.py::test_l2_distance_on_the_grid
        """
        return _gaussian_on_grid(self.sensitivity, self.rho, size)


# What follows from the parameters is worked out once, so that a release pays only for its noise.


@lru_cache(maxsize=256)
def _laplace_on_integers(sensitivity: Fraction, epsilon: Decimal) -> LaplaceNoise:
    return LaplaceNoise(carried_scale(sensitivity / Fraction(epsilon), "epsilon"))


@lru_cache(maxsize=256)
def _laplace_on_grid(sensitivity: Fraction, epsilon: Decimal, size: int) -> tuple[int, LaplaceNoise]:
    scale = sensitivity / Fraction(epsilon)
    exponent = step_for(min(scale / FINENESS, sensitivity / (ROUNDING_SHARE * size)))
    steps = sensitivity / Fraction(2) ** exponent + size
    return exponent, LaplaceNoise(carried_scale(steps / Fraction(epsilon), "epsilon"))


@lru_cache(maxsize=256)
def _gaussian_on_integers(sensitivity: Fraction, rho: Decimal) -> GaussianNoise:
    return GaussianNoise(carried_variance(sensitivity**2 / (2 * Fraction(rho)), "rho"))


@lru_cache(maxsize=256)
def _gaussian_on_grid(sensitivity: Fraction, rho: Decimal, size: int) -> tuple[int, GaussianNoise]:
    root = sqrt_up(Fraction(size))
    deviation = sensitivity / sqrt_up(2 * Fraction(rho))
    exponent = step_for(min(deviation / FINENESS, sensitivity / (ROUNDING_SHARE * root)))
    steps = sensitivity / Fraction(2) ** exponent + root
    return exponent, GaussianNoise(carried_variance(steps**2 / (2 * Fraction(rho)), "rho"))


def release_on_grid(mechanism: Laplace | Gaussian, value: object, entropy: Entropy) -> Released:
    """Round to the grid, add noise, saturate; nothing else touches the value.

    Claim: K-18. The output is a function of (value on the grid + noise) alone, and a multiple of the grid.
    Requires: as Laplace.release and Gaussian.release.
    Relies on: K-09, K-10, K-13.
    Proof: docs/claims/K-18.md
    Checked by: tests/kernel/test_mechanisms.py::test_release_adds_exactly_the_scripted_noise
    """
    if type(value) is int or type(value) is float:
        return _release_one(mechanism, value, entropy)
    values = read_values(value)
    size = values.flat.size
    if values.whole:
        noise: Noise = mechanism.on_integers()
    else:
        exponent, noise = mechanism.on_grid(max(size, 1))

    def released(part: Numbers) -> Numbers:
        if values.whole:
            return add_saturating(part, noise.draw(part.size, entropy))
        return from_grid(add_saturating(to_grid(part, exponent), noise.draw(part.size, entropy)), exponent)

    if values.shape is None:
        return released(values.flat).item()  # type: ignore[no-any-return]
    everything = np.empty_like(values.flat)
    for start in range(0, size, ROWS_AT_ONCE):
        everything[start : start + ROWS_AT_ONCE] = released(values.flat[start : start + ROWS_AT_ONCE])
    return everything.reshape(values.shape)


def _release_one(mechanism: Laplace | Gaussian, value: int | float, entropy: Entropy) -> int | float:
    """The same for a single number, in Python's own arithmetic: at this size numpy's steps cost more than the noise."""
    check_one(value)
    if isinstance(value, int):
        return saturate(value + int(mechanism.on_integers().draw(1, entropy)[0]))
    exponent, noise = mechanism.on_grid(1)
    return saturate(one_to_grid(value, exponent) + int(noise.draw(1, entropy)[0])) * 2.0**exponent


def margin_on_grid(mechanism: Laplace | Gaussian, confidence: Number, size: int, of: type | None) -> int | float:
    """The margin of the noise, plus half a grid step where values are rounded; see the mechanisms' own `margin`.

    Claim: K-11. The result is never below the true margin, for releases of up to 2**53 grid steps.
    Requires: 0 < confidence < 1, size >= 1, of int or float (checked here).
    Relies on: laplace_margin, gaussian_margin, per_coordinate.
    Proof: docs/claims/K-11.md
    Checked by: tests/kernel/test_mechanisms.py::test_margin_is_within_the_textbook_bound
    """
    size = whole_number(size, "size", 1)
    miss = per_coordinate(1 - probability_inside(confidence, "confidence"), size)
    if not (of is None or of is int or of is float):
        raise InvalidParameter("of", "must be int or float, the kind of value released", kind_of(of))
    if of is int or (of is None and mechanism.sensitivity.denominator == 1):
        return mechanism.on_integers().margin(miss)
    exponent, noise = mechanism.on_grid(size)
    exact = (noise.margin(miss) + Fraction(1, 2)) * Fraction(2) ** exponent
    margin = float(exact)
    return margin if Fraction(margin) >= exact else math.nextafter(margin, math.inf)


def carried_scale(scale: Fraction, name: str) -> Fraction:
    """The scale itself, refused outside what the samplers carry: `name` is the parameter to blame.

    Claim: K-18. LEAST_SCALE <= result <= GREATEST_SCALE: no scale is silently changed.
    Requires: nothing.
    Relies on: nothing.
    Proof: docs/claims/K-18.md
    Checked by: tests/kernel/test_mechanisms.py::test_extreme_parameters_are_refused
    """
    if not LEAST_SCALE <= scale <= GREATEST_SCALE:
        raise _not_carried(name, scale < LEAST_SCALE)
    return scale


def carried_variance(variance: Fraction, name: str) -> Fraction:
    """The variance itself, refused outside what the samplers carry: `name` is the parameter to blame.

    Claim: K-19. No variance is silently changed.
    Requires: nothing.
    Relies on: nothing.
    Proof: docs/claims/K-19.md
    Checked by: tests/kernel/test_mechanisms.py::test_extreme_parameters_are_refused
    """
    if not LEAST_SCALE <= 2 * variance < GREATEST_SCALE**2:
        raise _not_carried(name, 2 * variance < LEAST_SCALE)
    return variance


def _not_carried(name: str, too_little_noise: bool) -> InvalidParameter:
    if too_little_noise:
        return InvalidParameter(
            name,
            f"must leave noise: at most {1 / LEAST_SCALE} times the sensitivity{' squared' if name == 'rho' else ''}",
            "a larger one",
            "A guarantee this weak protects nobody; lower it.",
        )
    return InvalidParameter(
        name,
        "must, with this sensitivity, give noise that 64-bit numbers can carry",
        "one so small that the answer would be noise alone",
        "Raise it, lower the sensitivity, or use larger units.",
    )
