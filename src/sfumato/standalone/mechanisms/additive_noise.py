"""The additive mechanisms: a number or a vector, rounded to a grid, plus exact noise.

Part of the trusted perimeter of the stand-alone mechanisms.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, assert_never

import numpy as np
import numpy.typing as npt

from sfumato.errors import KernelFault, build_too_little_noise
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.mechanisms import Noise, choose_noise
from sfumato.kernel.samplers import ROWS_AT_ONCE
from sfumato.kernel.saturating_sums import add_saturating, saturate
from sfumato.number_arrays import read_numbers
from sfumato.standalone.mechanisms.value_grid import choose_step, from_grid, one_to_grid, sqrt_up, to_grid, to_integers

FINENESS = 1 << 16  # grid steps in one deviation of the noise, at least
FINEST = 1 << 48  # grid steps in the sensitivity, at most: the grid holds 2**15 sensitivities on each side of zero
ROUNDING_SHARE = 1 << 10  # rounding to the grid adds at most this part to the sensitivity

Numbers = npt.NDArray[Any]
Released = int | float | Numbers
Of = Literal["integers", "reals"]  # what comes out


@dataclass(frozen=True, slots=True)
class Additive:
    """Laplace noise for a PureDP loss (`sensitivity` is L1), Gaussian noise for a ZCDP loss (`sensitivity` is L2).

    With `declared_whole` the caller declares that every entry is whole, whatever the data.
    """

    sensitivity: Fraction
    loss: PureDP | ZCDP
    of: Of
    declared_whole: bool

    def __post_init__(self) -> None:
        if self.sensitivity <= 0 or self.of not in ("integers", "reals"):
            raise KernelFault("An additive mechanism has a sensitivity above zero, and releases integers or reals.")

    def noise_is_whole(self, size: int) -> bool:
        """Whether the noise for `size` entries is on the integers.

        Claim: K-18. Rounding one number to the integers moves no two further apart than ceil(their distance). Of
            several numbers it may, so several must be declared whole.
        Requires: entries are whole if declared_whole (caller).
        Relies on: K-13.
        Checked by: tests/neighbours/test_rounding_is_paid.py::test_rounding_a_vector_to_the_integers_is_not_free
        """
        return self.of == "integers" and (size <= 1 or self.declared_whole)


@lru_cache(maxsize=256)
def choose_grid_and_noise(mechanism: Additive, size: int) -> tuple[int, Noise]:
    """The grid's exponent, and the noise in its steps, for a vector of `size` entries.

    Claim: K-18. On integers, the noise pays for ceil(sensitivity). On a grid of step g = 2**exponent it pays for
        sensitivity/g + size (L1) or sensitivity/g + sqrt(size) (L2): rounding is paid for.
    Requires: size >= 1 (release_on_grid).
    Relies on: K-01 (sqrt_up), K-13 (rounding moves each entry by less than one step).
    Checked by: tests/neighbours/test_rounding_is_paid.py::test_l1_distance_on_the_grid
    """
    sensitivity, loss = mechanism.sensitivity, mechanism.loss
    if mechanism.noise_is_whole(size):
        whole = Fraction(math.ceil(sensitivity))
        return 0, choose_noise(whole, whole**2, loss)
    match loss:
        case PureDP(epsilon):
            rounding, deviation = Fraction(size), sensitivity / Fraction(epsilon)
        case ZCDP(rho):
            rounding, deviation = sqrt_up(Fraction(size)), sensitivity / sqrt_up(2 * Fraction(rho))
        case _:
            assert_never(loss)
    exponent = choose_step(min(deviation / FINENESS, sensitivity / (ROUNDING_SHARE * rounding)))
    steps = sensitivity / Fraction(2) ** exponent
    if steps > FINEST:  # else values that are not large would lie beyond the grid
        rule = f"a deviation of at least 1/{FINEST // FINENESS} of the sensitivity"
        raise build_too_little_noise("rho" if isinstance(loss, ZCDP) else "epsilon", rule)
    paid = steps + rounding
    return exponent, choose_noise(paid, paid**2, loss)


def release_on_grid(mechanism: Additive, value: object, entropy: Entropy) -> Released:
    """Round to the grid, add noise, saturate; nothing else touches the value.

    Claim: K-18. The output is a function of (value on the grid + noise) alone, and a multiple of the grid; grid, noise
        and the type of the output follow from the mechanism and the value's shape.
    Requires: `sensitivity` bounds the L1 (L2) distance between the values of neighbours, of the whole vector as
        read_numbers reads it; its shape is public; declared_whole is true (caller).
    Relies on: K-09, K-10, K-13.
    Checked by: tests/kernel/test_mechanisms.py::test_the_type_of_a_value_never_matters
    """
    if type(value) is int or type(value) is float:
        return _release_one(mechanism, value, entropy)
    values = read_numbers(value)
    size = values.flat.size
    exponent, noise = choose_grid_and_noise(mechanism, max(size, 1))

    def release_part(part: Numbers) -> Numbers:
        noisy = add_saturating(to_grid(part, exponent), noise.draw(part.size, entropy))
        return to_integers(noisy, exponent) if mechanism.of == "integers" else from_grid(noisy, exponent)

    if values.shape is None:
        return release_part(values.flat).item()  # type: ignore[no-any-return]  # numpy types item() as Any
    released = np.empty(size, np.int64 if mechanism.of == "integers" else np.float64)
    for start in range(0, size, ROWS_AT_ONCE):
        released[start : start + ROWS_AT_ONCE] = release_part(values.flat[start : start + ROWS_AT_ONCE])
    return released.reshape(values.shape)


def _release_one(mechanism: Additive, value: int | float, entropy: Entropy) -> int | float:
    """The same for a single number, in Python's own arithmetic: at this size numpy's steps cost more than the noise."""
    exponent, noise = choose_grid_and_noise(mechanism, 1)
    noisy = saturate(one_to_grid(value, exponent) + int(noise.draw(1, entropy)[0]))
    return noisy if mechanism.of == "integers" else noisy * 2.0**exponent
