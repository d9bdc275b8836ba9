"""The cells behind the released queries of a strategy, and the noise of the cells. Post-processing.

The queries are an invertible matrix times the cells (kernel/strategies.py), so the cells are its inverse times the
queries. The noise of different cells is then not independent: `mixing` says how it depends on independent noises.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.answers.simulated_noise import WIDE, WeightedNoise
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise, Noise
from sfumato.kernel.plan import Strategy
from sfumato.kernel.strategies import Matrix

Floats = npt.NDArray[np.float64]
SMALL = 1e-12  # of a variance: what rounding left
MOST_MIXED = 1 << 10  # cells: windows over more rows have no simulated intervals anyway


@dataclass(frozen=True, slots=True, eq=False)
class Unmixing:
    """The inverses of a strategy's matrices, and of the noisiest cell: the sums of squares and fourth powers."""

    inverses: tuple[Floats, ...]
    square: float
    fourth: float

    def find_cells(self, queries: Floats) -> Floats:
        """The cells, in the order of the plan."""
        cells = queries.reshape([len(inverse) for inverse in self.inverses])
        for axis, inverse in enumerate(self.inverses):
            cells = np.moveaxis(np.tensordot(inverse, cells, (1, axis)), 0, axis)
        return np.asarray(cells.ravel(), np.float64)

    def find_noise(self, noise: Noise) -> WeightedNoise:
        """The noise of the noisiest cell, in steps. Every other cell has no more."""
        return combine_weights(noise, self.square, self.fourth)

    def find_mixing(self) -> Floats | None:
        """The noise of all cells, as weights of independent noises like that of the noisiest cell."""
        if math.prod(map(len, self.inverses)) > MOST_MIXED:
            return None
        whole: Floats = np.ones((1, 1))
        for inverse in self.inverses:
            whole = np.asarray(np.kron(whole, inverse), np.float64)
        return np.asarray(whole / math.sqrt(self.square))


def combine_weights(noise: Noise, square: float, fourth: float) -> WeightedNoise:
    """The noise of a weighted sum of independent noises, from the sums of squares and fourth powers of the weights.

    For Gaussian noise it is exact. For Laplace noise it has the same variance and fourth cumulant.
    """
    if isinstance(noise, GaussianNoise):
        return WeightedNoise(((math.sqrt(square), noise),))
    rest = square - math.sqrt(fourth)
    parts: list[tuple[float, Noise]] = [(fourth**0.25, noise)]
    if rest > 1e-9 * square:
        parts.append((math.sqrt(2 * rest), GaussianNoise(noise.scale**2)))
    return WeightedNoise(tuple(parts))


def combine_cumulants(variance: float, scale: float, wider: float = 1.0) -> WeightedNoise:
    """A noise of this variance whose fourth cumulant is 12 scale^4: a Laplace variable and a Gaussian one."""
    rest = max(variance - 2 * scale**2, 0.0)
    parts: list[tuple[float, Noise]] = []
    if scale:
        parts.append((wider * scale / WIDE, LaplaceNoise(Fraction(WIDE))))
    if rest > SMALL * variance:
        parts.append((wider * math.sqrt(rest) / WIDE, GaussianNoise(Fraction(WIDE) ** 2)))
    return WeightedNoise(tuple(parts))


@lru_cache(maxsize=64)
def find_unmixing(matrices: tuple[Matrix, ...]) -> Unmixing:
    """Invert the matrices of a strategy."""
    inverses = tuple(np.linalg.inv(np.array(matrix, np.float64)) for matrix in matrices)
    square = fourth = 1.0
    for inverse in inverses:
        squares = (inverse**2).sum(axis=1)
        noisiest = int(squares.argmax())
        square *= float(squares[noisiest])
        fourth *= float((inverse[noisiest] ** 4).sum())
    return Unmixing(inverses, square, fourth)


def round_running(values: Floats, keys: Sequence[Sequence[Any]], strategy: Strategy) -> Floats:
    """Whole numbers, so that their running totals are the rounded running totals: errors of rounding do not add up.

    Each number is less than 1 away from its value. `keys` are the values of all keys, in the order of the cells.
    """
    cells = values.reshape([len(key) for key in keys])
    for axis, (key, matrix) in enumerate(zip(keys, strategy.matrices, strict=True)):
        if any(cell for row, line in enumerate(matrix) for place, cell in enumerate(line) if row != place):
            order = sorted(range(len(key)), key=key.__getitem__)
            totals = np.rint(np.cumsum(np.take(cells, order, axis), axis))
            cells = np.take(np.diff(totals, axis=axis, prepend=0.0), np.argsort(order), axis)
    return np.asarray(cells.ravel(), np.float64)


def measure_spread(noise: Noise) -> float:
    """The fourth root of a twelfth of the fourth cumulant: the scale of Laplace noise, and 0 for a Gaussian."""
    return float(noise.scale) if isinstance(noise, LaplaceNoise) else 0.0
