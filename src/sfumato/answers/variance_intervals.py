"""Intervals of sample variances, from the noisy count, sum and sum of squares of a value.

Let N, S and Q be the true sums, w = S/N the true mean and v = (Q - S*S/N)/(N - 1) the true variance. Then
Q - 2wS + (w*w - v)N + v = 0, so the same expression of the noisy sums is noise with a known distribution. The mean w is
not known. Fieller's interval for it misses with a tenth of the wanted probability. A variance is accepted if the test
accepts it for one of the means in that interval, with the other nine tenths. So the interval of the variance holds for
any number of rows above one. The mean also limits the variance: v(N - 1)/N <= (w - a)(b - w) for values from a to b.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.answers.interval_inversion import Acceptance, find_last_accepted
from sfumato.answers.noise_laws import Floats, compute_margins
from sfumato.answers.possible_ranges import Ends
from sfumato.answers.ratio_intervals import find_ratio_ends
from sfumato.answers.simulated_noise import WeightedNoise
from sfumato.kernel.mechanisms import Noise

FOR_THE_MEAN = Fraction(1, 10)
MEANS = 9  # means that are tried per cell
TABLE = 25


@dataclass(frozen=True, slots=True)
class Sums:
    """The weights of each noise in the count, sum and squares, and the bounds of the value minus its centre."""

    count: tuple[float, ...]
    total: tuple[float, ...]
    squares: tuple[float, ...]
    lower: float
    upper: float
    rows: float | None  # the number of rows, if it is public


def find_variance_ends(  # noqa: PLR0917 - its caller names what it passes
    count: Floats, total: Floats, squares: Floats, sums: Sums, noises: tuple[Noise | WeightedNoise, ...], miss: Fraction
) -> Ends:
    """Find the interval of the variance in each cell."""
    first, last = find_ratio_ends(
        total, count, (sums.total, sums.count), noises, miss * FOR_THE_MEAN, (sums.lower, sums.upper)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.nan_to_num(np.where(count == 0, 0.0, total / count))
    means = np.concatenate(
        (first[:, None] + (last - first)[:, None] * np.linspace(0, 1, MEANS), np.clip(estimate, first, last)[:, None]),
        axis=1,
    )
    least_rows = 2.0 if sums.rows is None else max(sums.rows, 2.0)
    most = np.maximum((means - sums.lower) * (sums.upper - means), 0) * (least_rows / (least_rows - 1))
    around = squares[:, None] - 2 * means * total[:, None] + means**2 * count[:, None]
    slope = (count - 1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.clip(np.nan_to_num(np.where(slope == 0, 0.0, around / slope)), 0, most)

    def margin(at: Floats) -> Floats:
        return _interpolate_margin(sums, noises, miss, means, at)

    missed = np.abs(around - best * slope)
    allowed = margin(best)
    spare = (
        np.maximum(missed - allowed, 0).min(axis=1, keepdims=True) - missed
    )  # so that every cell accepts at least one variance
    test = Acceptance(best, np.abs(slope), spare, margin, 0.0)
    possible = allowed + spare >= 0
    low = np.where(possible, find_last_accepted(test, np.zeros_like(best), -1.0), np.inf).min(axis=1)
    high = np.where(possible, find_last_accepted(test, most, 1.0), -np.inf).max(axis=1)
    return low, high


def _interpolate_margin(
    sums: Sums, noises: tuple[Noise | WeightedNoise, ...], miss: Fraction, means: Floats, variances: Floats
) -> Floats:
    """Interpolate the margin of the noise in a table. The margin is convex, so the result is never too small."""
    table = _tabulate_margins(sums, noises, miss * (1 - FOR_THE_MEAN))
    across = (means - sums.lower) / (sums.upper - sums.lower) * (TABLE - 1)
    along = variances / ((sums.upper - sums.lower) ** 2 / 2) * (TABLE - 1)
    row, column = (np.clip(position.astype(np.int64), 0, TABLE - 2) for position in (across, along))
    right, down = across - row, along - column
    upper = table[row, column] * (1 - down) + table[row, column + 1] * down
    lower = table[row + 1, column] * (1 - down) + table[row + 1, column + 1] * down
    return np.asarray(upper * (1 - right) + lower * right)


@lru_cache(maxsize=64)
def _tabulate_margins(sums: Sums, noises: tuple[Noise | WeightedNoise, ...], miss: Fraction) -> Floats:
    means = np.linspace(sums.lower, sums.upper, TABLE)[:, None, None]
    variances = np.linspace(0, (sums.upper - sums.lower) ** 2 / 2, TABLE)[None, :, None]
    count, total, squares = (np.array(part) for part in (sums.count, sums.total, sums.squares))
    weights = squares - 2 * means * total + (means**2 - variances) * count
    return compute_margins(weights.reshape(TABLE * TABLE, -1), noises, miss).reshape(TABLE, TABLE)
