"""Intervals that follow from the noise alone: margins of noisy sums, and bounds of a ratio of two of them."""

import numpy as np

from sfumato.accuracy.box_margins import bound_box_deviation, compute_box_margin
from sfumato.extras import imported
from sfumato.learning.noisy_statistics import Noisy
from sfumato.learning.row_cells import Floats
from sfumato.number_arguments import Number, read_probability


def find_margin(noisy: Noisy, confidence: Number, parts: int = 1) -> Floats:
    """|noise| of a sum is at most this, with so much confidence for `parts` sums together.

    A sum that was computed from several Laplace draws (Powers) gets the margin of the sum of their sizes, which is
    larger than its own.
    """
    miss = float(1 - read_probability(confidence, "confidence")) / parts
    stats = imported("scipy.stats", "learn")
    deviation = np.asarray(noisy.deviation, np.float64)
    if noisy.gaussian:
        margin: Floats = stats.norm.isf(miss / 2) * deviation
        return margin
    if noisy.box is not None:
        box = compute_box_margin(noisy.box, 1, miss) / bound_box_deviation(noisy.box, 1)
        return deviation * box
    draws = np.array([3, 2, 3]) if deviation.shape == (3,) else np.array(1)
    scale = deviation / np.sqrt(2 * draws)
    margin = stats.gamma.isf(miss, draws) * scale
    return margin


def bound_ratio(total: Floats, margin: float, count: Floats, count_margin: float) -> tuple[Floats, Floats]:
    """Bounds of total/count, where each is within its margin, the count at least 1, and |total| at most the count."""
    least, most = np.maximum(count - count_margin, 1.0), np.maximum(count + count_margin, 1.0)
    corners = [(total + sign * margin) / end for sign in (-1, 1) for end in (least, most)]
    low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    return np.clip(low, -1, 1), np.clip(high, -1, 1)


def bound_shares(counts: Noisy, classes: Noisy, confidence: Number) -> tuple[Floats, Floats]:
    """Bounds of counts/classes, for counts by cell and class: each with this confidence. Classes come first in both."""
    parts, wholes = counts.sums.T, classes.sums[:, None]
    margin, whole_margin = (float(find_margin(noisy, confidence, parts=2)) for noisy in (counts, classes))
    low, high = bound_ratio(parts, margin, wholes, whole_margin)
    return np.maximum(low, 0.0), np.maximum(high, 0.0)
