"""The noisy number of rows, means and variances of scaled columns: what clusters and components begin with."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.learning.noisy_statistics import Statistic, StatisticSource
from sfumato.learning.row_cells import Floats
from sfumato.learning.row_functions import Powers

USUAL_SQUARE = 0.1  # of the mean of a scaled column: how far it usually is from the middle of its bounds
USUAL_VARIANCE = 0.08  # of a scaled column, before the data says more
LEAST_VARIANCE = 0.002
LEAST_DEVIATION = 1e-3  # of the noise: below it, noise plays no part


@dataclass(frozen=True, slots=True)
class ColumnSpreads:
    """Of columns that are scaled to -1 to 1. Everything is noisy."""

    rows: float
    means: Floats
    variances: Floats
    signal: float  # the number of rows, in deviations of the noise that one count would have for the whole price
    gaussian: bool


def measure_spreads(source: StatisticSource, share: Fraction) -> ColumnSpreads:
    """Measure 1, x and x² of all columns, together if there are several. The columns share `share`.

    Means and variances are shrunk towards usual ones, by as much as the known scale of the noise says.
    """
    columns = len(source.features)
    released = source.release([Statistic(Powers(place)) for place in range(columns)], share)
    sums, deviation = np.stack([noisy.sums for noisy in released]), released[0].deviation
    gaussian = released[0].gaussian
    rows = max(float(sums[:, 0].mean()) if source.rows is None else float(source.rows), 1.0)
    error = (deviation / rows) ** 2
    means = np.clip(sums[:, 1] / rows, -1, 1) * USUAL_SQUARE / (USUAL_SQUARE + error[1])
    own = sums[:, 2] / rows - means**2
    trust = USUAL_VARIANCE**2 / (USUAL_VARIANCE**2 + error[2])
    variances = np.clip(trust * own + (1 - trust) * USUAL_VARIANCE, LEAST_VARIANCE, 1.0)
    return ColumnSpreads(rows, means, variances, rows / max(source.count_noise, LEAST_DEVIATION), gaussian)
