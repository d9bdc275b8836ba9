"""Density by a noisy histogram over a public grid.

Fixed: bounds, bins and categories. Paid for: one count of the rows in every cell of the grid. One row is in one cell,
so the noise of a cell is that of the whole price. Post-processing: the noisy counts are smoothed along numeric columns
if that lowers Stein's estimate of their squared error, which follows from the known scale of the noise. Then they are
projected to the nearest counts that are not negative and have the same total, so that empty cells are mostly 0 again.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin

from sfumato.answering.desk import DEFAULT_ANALYST
from sfumato.errors import InvalidParameter
from sfumato.learning.estimator_arguments import (
    DatasetColumns,
    Declared,
    open_source,
    read_rows,
    record_fit,
)
from sfumato.learning.estimator_cards import bundle_estimator, write_estimator_html
from sfumato.learning.feature_columns import Feature, Numeric
from sfumato.learning.noisy_statistics import Statistic
from sfumato.learning.row_cells import NO_CELL, Bins, Codes, Floats, RowCells, number_cells
from sfumato.number_arguments import Number, read_whole_number
from sfumato.query.size_limits import MOST_CELLS

WIDTHS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0, 1e6)  # of the smoothing, in bins; the last: all bins alike
CAUTION = 0.5  # the margin, in deviations of the estimate under pure noise
MOST_SMOOTHED = 512  # bins of one column


class HistogramDensity(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """The joint density of all columns: constant in each cell. `bins` equal bins for each numeric column."""

    _repr_html_ = write_estimator_html
    _repr_mimebundle_ = bundle_estimator

    def __init__(
        self,
        epsilon: Number = 1.0,
        *,
        delta: Number = 0,
        bounds: object = None,
        categories: object = None,
        bins: int = 20,
        neighbours: str = "add-remove",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.bins = bins
        self.neighbours = neighbours

    def fit(
        self,
        X: object = None,  # noqa: N803 - scikit-learn's name
        y: object = None,
        *,
        dataset: object = None,
        features: Sequence[str] | None = None,
        table: str | None = None,
        analyst: str = DEFAULT_ANALYST,
    ) -> "HistogramDensity":
        """Spend the budget on an array, or on columns of a protected dataset."""
        bins = read_whole_number(self.bins, "bins", 1)
        declared = Declared(self.epsilon, self.delta, self.bounds, self.categories, neighbours=self.neighbours)
        opened = open_source(X, None, DatasetColumns(dataset, features, None, table, analyst), declared, "nothing")
        source = opened.source
        partitions, widths = _cut(source.features, bins)
        size = prod(len(width) for width in widths)
        if size > MOST_CELLS:
            raise InvalidParameter("bins", f"must give at most {MOST_CELLS:,} cells", "more", "Use fewer bins.")
        (noisy,) = source.release([Statistic(None, partitions)], Fraction(1))
        record_fit(self, opened)
        total = float(source.rows) if source.rows is not None else float(np.sum(noisy.sums))
        ordered = tuple(isinstance(feature, Numeric) for feature in source.features)
        counts = project_counts(smooth_counts(noisy.sums, float(noisy.deviation), ordered), max(total, 1.0))
        self._partitions = partitions
        self.edges_ = [_list_edges(feature, bins) for feature in source.features if isinstance(feature, Numeric)]
        self.probabilities_ = counts / counts.sum()
        volume = np.ones(())
        for width in widths:
            volume = np.multiply.outer(volume, width)
        self.densities_ = self.probabilities_ / volume
        self.deviation_ = float(noisy.deviation)
        return self

    def score_samples(self, X: object) -> Floats:  # noqa: N803
        """The logarithm of the density at each row; that of a row with an undeclared code is minus infinity."""
        rows = read_rows(self, X)
        places = [number_cells(cells, rows) for cells in self._partitions]
        outside = np.any([place == NO_CELL for place in places], axis=0)
        with np.errstate(divide="ignore"):
            scores: Floats = np.log(np.where(outside, 0.0, self.densities_[tuple(places)]))
        return scores

    def score(self, X: object, y: object = None) -> float:  # noqa: N803
        """The total logarithm of the density at the rows."""
        return float(np.sum(self.score_samples(X)))


def smooth_counts(noisy: Floats, deviation: float, ordered: tuple[bool, ...]) -> Floats:
    """Noisy counts, averaged with their neighbours along the ordered axes.

    For a linear map K of counts z whose noise has variance s², |z - Kz|² + s² (2 trace K - cells) is an unbiased
    estimate of the squared error of Kz (Stein). The width with the least estimate is used; a width above 0 must win by
    some margin, because estimates vary.
    """
    if not any(ordered) or max(noisy.shape) > MOST_SMOOTHED:
        return noisy
    margin = CAUTION * deviation**2 * (2 * noisy.size) ** 0.5
    best, least = noisy, deviation**2 * noisy.size
    for width in WIDTHS:
        smooth, trace = noisy, 1.0
        for axis, is_ordered in enumerate(ordered):
            kernel = make_kernel(noisy.shape[axis], width) if is_ordered else np.eye(noisy.shape[axis])
            smooth = np.moveaxis(np.tensordot(kernel, smooth, axes=(1, axis)), 0, axis)
            trace *= float(np.trace(kernel))
        error = float(np.sum((noisy - smooth) ** 2)) + deviation**2 * (2 * trace - noisy.size) + margin
        if error < least:
            best, least = smooth, error
    return best


def make_kernel(bins: int, width: float) -> Floats:
    """Weights of a Gaussian curve around each bin, reflected at both ends; each row adds up to 1."""
    away = np.arange(bins)[:, None] - np.arange(-bins, 2 * bins)[None, :]
    weights = np.exp(-0.5 * (away / width) ** 2)
    folded = weights[:, bins : 2 * bins] + weights[:, bins - 1 :: -1] + weights[:, : 2 * bins - 1 : -1]
    kernel: Floats = folded / folded.sum(axis=1, keepdims=True)
    return kernel


def project_counts(noisy: Floats, total: float) -> Floats:
    """The nearest counts (in squares) that are not negative and add up to `total`: each less one number, or 0.

    The largest count is taken off all of them first, which changes nothing: a total far below the noise is not rounded
    away, and at least one count stays.
    """
    below = noisy - noisy.max()
    ordered = np.sort(below, axis=None)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    kept = int(np.flatnonzero(ordered > excess)[-1])
    projected: Floats = np.maximum(below - excess[kept], 0.0)
    return projected


def _list_edges(feature: Numeric, bins: int) -> Floats:
    return np.unique(np.linspace(feature.lower, feature.upper, bins + 1))


def _cut(features: tuple[Feature, ...], bins: int) -> tuple[tuple[RowCells, ...], list[Floats]]:
    """The partition of each column, and the width of its cells: a code has width 1."""
    cells: list[RowCells] = []
    widths: list[Floats] = []
    for place, feature in enumerate(features):
        if isinstance(feature, Numeric):
            edges = _list_edges(feature, bins)
            cells.append(Bins(place, tuple(edges[1:-1].tolist())))
            widths.append(np.diff(edges) if len(edges) > 1 else np.ones(1))
        else:
            cells.append(Codes(place))
            widths.append(np.ones(len(feature.categories)))
    return tuple(cells), widths
