"""The additive mechanisms: a number or a vector, on a grid, plus exact noise."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.exact import plain, sqrt_up
from sfumato.kernel.grid import (
    add_saturating,
    from_grid,
    one_to_grid,
    read_numbers,
    saturate,
    step_for,
    to_grid,
    to_integers,
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
FINEST = 1 << 48  # grid steps in the sensitivity, at most: the grid holds 2**15 sensitivities on each side of zero
ROUNDING_SHARE = 1 << 10  # rounding to the grid adds at most this part to the sensitivity

Numbers = npt.NDArray[Any]
Released = int | float | Numbers
Of = Literal["integers", "reals"]  # what comes out


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
    """The Laplace mechanism: epsilon-DP for a number or vector whose L1 sensitivity is `sensitivity`.

    Integers come out if the sensitivity is whole, floats otherwise; `of` says it explicitly. The type of a value never
    matters. With of="integers" you declare that every value is whole, whatever the data: a vector then gets noise on
    the integers themselves; without it, a vector's rounding is paid for, by less than 1 part in 1,000 of the noise.
    """

    sensitivity: Fraction
    epsilon: Decimal
    of: Of
    declared_whole: bool

    def __init__(self, sensitivity: Number, epsilon: Number, *, of: Of | None = None) -> None:
        object.__setattr__(self, "sensitivity", positive_fraction(sensitivity, "sensitivity"))
        object.__setattr__(self, "epsilon", positive_decimal(epsilon, "epsilon"))
        object.__setattr__(self, "of", _what_comes_out(of, self.sensitivity))
        object.__setattr__(self, "declared_whole", of == "integers")

    def __repr__(self) -> str:
        numbers = f"sensitivity={plain(self.sensitivity)}, epsilon={plain(self.epsilon)}"
        return f"Laplace({numbers}{_of_in_words(self)})"

    @property
    def loss(self) -> PureDP:
        """What one release costs, however long the vector."""
        return PureDP(self.epsilon)

    def release(self, value: object) -> Any:  # noqa: ANN401 - int or float, or an array of them, as `of` and shape say
        """The value plus exact noise, on the integers or on a public grid: `of` decides, never the value or its type.

        Claim: K-18. The output is epsilon-DP if `sensitivity` bounds the L1 distance between the values of neighbours.
        Requires: that bound, of the whole vector as read_numbers reads it; whole entries, if of="integers" is declared
            for a vector; the shape of a vector is public (caller).
        Relies on: K-09, K-13.
        Proof: docs/claims/K-18.md
        Checked by: tests/kernel/test_mechanisms.py::test_laplace_privacy_is_exact
        """
        return release_on_grid(self, value, SYSTEM)

    def margin(self, confidence: Number = "0.95", *, size: int = 1) -> int | float:
        """|error| is at most this with the stated probability, for all `size` entries of a vector at once.

        Where integers come out, it is for values that are whole; another value is half a step further away at most.

        Claim: K-11. Exact for the discrete noise; half a grid step is added for the rounding of floats.
        Requires: 0 < confidence < 1 (checked here).
        Relies on: laplace_margin, per_coordinate.
        Proof: docs/claims/K-11.md
        Checked by: tests/kernel/test_mechanisms.py::test_margin_is_within_the_textbook_bound
        """
        return margin_on_grid(self, confidence, size)

    def on_integers(self) -> LaplaceNoise:
        """The noise for integers.

        Claim: K-18. Scale ceil(sensitivity)/epsilon, refused outside what the samplers carry.
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
    """The Gaussian mechanism: rho-zCDP for a number or vector whose L2 sensitivity is `sensitivity`.

    Integers come out if the sensitivity is whole, floats otherwise; `of` says it explicitly. The type of a value never
    matters. With of="integers" you declare that every value is whole, whatever the data: a vector then gets noise on
    the integers themselves; without it, a vector's rounding is paid for, by less than 1 part in 1,000 of the noise.
    """

    sensitivity: Fraction
    rho: Decimal
    of: Of
    declared_whole: bool

    def __init__(self, sensitivity: Number, rho: Number, *, of: Of | None = None) -> None:
        object.__setattr__(self, "sensitivity", positive_fraction(sensitivity, "sensitivity"))
        object.__setattr__(self, "rho", positive_decimal(rho, "rho"))
        object.__setattr__(self, "of", _what_comes_out(of, self.sensitivity))
        object.__setattr__(self, "declared_whole", of == "integers")

    def __repr__(self) -> str:
        numbers = f"sensitivity={plain(self.sensitivity)}, rho={plain(self.rho)}"
        return f"Gaussian({numbers}{_of_in_words(self)})"

    @property
    def loss(self) -> ZCDP:
        """What one release costs, however long the vector."""
        return ZCDP(self.rho)

    def release(self, value: object) -> Any:  # noqa: ANN401 - int or float, or an array of them, as `of` and shape say
        """The value plus exact noise, on the integers or on a public grid: `of` decides, never the value or its type.

        Claim: K-19. The output is rho-zCDP if `sensitivity` bounds the L2 distance between the values of neighbours.
        Requires: that bound, of the whole vector as read_numbers reads it; whole entries, if of="integers" is declared
            for a vector; the shape of a vector is public (caller).
        Relies on: K-10, K-13.
        Proof: docs/claims/K-19.md
        Checked by: tests/kernel/test_mechanisms.py::test_gaussian_divergence_is_enumerated
        """
        return release_on_grid(self, value, SYSTEM)

    def margin(self, confidence: Number = "0.95", *, size: int = 1) -> int | float:
        """|error| is at most this with the stated probability, for all `size` entries of a vector at once.

        Where integers come out, it is for values that are whole; another value is half a step further away at most.

        Claim: K-12. It suffices for the discrete noise; half a grid step is added for the rounding of floats.
        Requires: 0 < confidence < 1 (checked here).
        Relies on: gaussian_margin, per_coordinate.
        Proof: docs/claims/K-12.md
        Checked by: tests/kernel/test_mechanisms.py::test_gaussian_margin_is_near_the_normal_one
        """
        return margin_on_grid(self, confidence, size)

    def on_integers(self) -> GaussianNoise:
        """The noise for integers.

        Claim: K-19. Variance ceil(sensitivity)**2/(2 rho), refused outside what the samplers carry.
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
    return LaplaceNoise(carried_scale(math.ceil(sensitivity) / Fraction(epsilon), "epsilon"))


@lru_cache(maxsize=256)
def _laplace_on_grid(sensitivity: Fraction, epsilon: Decimal, size: int) -> tuple[int, LaplaceNoise]:
    scale = sensitivity / Fraction(epsilon)
    exponent = _step(sensitivity, min(scale / FINENESS, sensitivity / (ROUNDING_SHARE * size)), "epsilon")
    steps = sensitivity / Fraction(2) ** exponent + size
    return exponent, LaplaceNoise(carried_scale(steps / Fraction(epsilon), "epsilon"))


@lru_cache(maxsize=256)
def _gaussian_on_integers(sensitivity: Fraction, rho: Decimal) -> GaussianNoise:
    return GaussianNoise(carried_variance(math.ceil(sensitivity) ** 2 / (2 * Fraction(rho)), "rho"))


@lru_cache(maxsize=256)
def _gaussian_on_grid(sensitivity: Fraction, rho: Decimal, size: int) -> tuple[int, GaussianNoise]:
    root = sqrt_up(Fraction(size))
    deviation = sensitivity / sqrt_up(2 * Fraction(rho))
    exponent = _step(sensitivity, min(deviation / FINENESS, sensitivity / (ROUNDING_SHARE * root)), "rho")
    steps = sensitivity / Fraction(2) ** exponent + root
    return exponent, GaussianNoise(carried_variance(steps**2 / (2 * Fraction(rho)), "rho"))


def _step(sensitivity: Fraction, coarsest: Fraction, name: str) -> int:
    exponent = step_for(coarsest)
    if sensitivity / Fraction(2) ** exponent > FINEST:  # else values that are not large would lie beyond the grid
        most = f"must leave noise: a deviation of at least 1/{FINEST // FINENESS} of the sensitivity"
        raise InvalidParameter(name, most, "a larger one", "A guarantee this weak protects nobody; lower it.")
    return exponent


def _what_comes_out(of: object, sensitivity: Fraction) -> Of:
    if of is None:
        return "integers" if sensitivity.denominator == 1 else "reals"
    for each in get_args(Of):
        if isinstance(of, str) and of == each:
            return each  # type: ignore[no-any-return]
    raise InvalidParameter("of", "must be 'integers' or 'reals'", kind_of(of))


def _of_in_words(mechanism: Laplace | Gaussian) -> str:
    """`of`, where it was given and matters."""
    if mechanism.declared_whole or _what_comes_out(None, mechanism.sensitivity) != mechanism.of:
        return f", of={mechanism.of!r}"
    return ""


def _integer_noise(mechanism: Laplace | Gaussian, size: int) -> bool:
    """Is the noise on the integers? Rounding one number to them moves no two further apart; of several, it might."""
    return mechanism.of == "integers" and (size <= 1 or mechanism.declared_whole)


def release_on_grid(mechanism: Laplace | Gaussian, value: object, entropy: Entropy) -> Released:
    """Round to the grid, add noise, saturate; nothing else touches the value.

    Claim: K-18. The output is a function of (value on the grid + noise) alone, and a multiple of the grid; grid, noise
        and the type of the output follow from the mechanism and the value's shape.
    Requires: as Laplace.release and Gaussian.release.
    Relies on: K-09, K-10, K-13.
    Proof: docs/claims/K-18.md
    Checked by: tests/kernel/test_mechanisms.py::test_the_type_of_a_value_never_matters
    """
    if type(value) is int or type(value) is float:
        return _release_one(mechanism, value, entropy)
    values = read_numbers(value)
    size = values.flat.size
    exponent, noise = _grid_and_noise(mechanism, size)

    def released(part: Numbers) -> Numbers:
        noisy = add_saturating(to_grid(part, exponent), noise.draw(part.size, entropy))
        return to_integers(noisy, exponent) if mechanism.of == "integers" else from_grid(noisy, exponent)

    if values.shape is None:
        return released(values.flat).item()  # type: ignore[no-any-return]
    everything = np.empty(size, np.int64 if mechanism.of == "integers" else np.float64)
    for start in range(0, size, ROWS_AT_ONCE):
        everything[start : start + ROWS_AT_ONCE] = released(values.flat[start : start + ROWS_AT_ONCE])
    return everything.reshape(values.shape)


def _grid_and_noise(mechanism: Laplace | Gaussian, size: int) -> tuple[int, Noise]:
    if _integer_noise(mechanism, size):
        return 0, mechanism.on_integers()
    return mechanism.on_grid(max(size, 1))


def _release_one(mechanism: Laplace | Gaussian, value: int | float, entropy: Entropy) -> int | float:
    """The same for a single number, in Python's own arithmetic: at this size numpy's steps cost more than the noise."""
    exponent, noise = _grid_and_noise(mechanism, 1)
    noisy = saturate(one_to_grid(value, exponent) + int(noise.draw(1, entropy)[0]))
    return noisy if mechanism.of == "integers" else noisy * 2.0**exponent


def margin_on_grid(mechanism: Laplace | Gaussian, confidence: Number, size: int) -> int | float:
    """The margin of the noise, plus half a grid step where values are rounded; see the mechanisms' own `margin`.

    Claim: K-11. The result is never below the true margin, for releases of up to 2**53 grid steps.
    Requires: 0 < confidence < 1, size >= 1 (checked here).
    Relies on: laplace_margin, gaussian_margin, per_coordinate.
    Proof: docs/claims/K-11.md
    Checked by: tests/kernel/test_mechanisms.py::test_margin_is_within_the_textbook_bound
    """
    size = whole_number(size, "size", 1)
    miss = per_coordinate(1 - probability_inside(confidence, "confidence"), size)
    exponent, noise = _grid_and_noise(mechanism, size)
    if _integer_noise(mechanism, size):
        return noise.margin(miss)
    exact = (noise.margin(miss) + Fraction(1, 2)) * Fraction(2) ** exponent
    if mechanism.of == "integers":  # rounded again: a whole error of at most `exact` and a half
        return math.floor(exact + Fraction(1, 2))
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
