"""k-means: centres of a noisy coarse histogram, and a few noisy rounds of Lloyd's algorithm.

Fixed: bounds, the number of clusters, the shares of the budget, the seed. Paid for:

- 2/5 of the price measures 1, x and x² of every column (column_spreads.py): the number of rows, means and variances.
- 3/20 of it counts rows in a coarse histogram: each of the columns with the largest noisy variances is cut at its noisy
  mean. What one row adds to it is 1. Weighted k-means of its cells gives the first centres; that is post-processing.
- The rest pays for 1, 3, 8 or 20 rounds: the number of rows and the sum of each column around each centre. What one row
  adds to each of these is at most 1. If there are too few rows for that, there is no round, and the histogram takes it.

A centre with few rows moves little: it is a mean of the old centre and the new one, by the known scale of the noise.
Which centre a row belongs to is never stored.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import KMeans as PlainKMeans

from sfumato.answering.desk import DEFAULT_ANALYST
from sfumato.errors import InvalidParameter
from sfumato.learning.column_spreads import ColumnSpreads, measure_spreads
from sfumato.learning.estimator_arguments import (
    DatasetColumns,
    Declared,
    count_columns,
    open_source,
    read_rows,
    record_fit,
    require_numeric,
    require_rows,
)
from sfumato.learning.estimator_cards import bundle_estimator, write_estimator_html
from sfumato.learning.feature_columns import Numeric
from sfumato.learning.noisy_statistics import Foreseen, Statistic, StatisticSource, choose_delta
from sfumato.learning.public_choices import PublicChoices, read_choices
from sfumato.learning.row_cells import Bins, Floats, Integers, Nearest
from sfumato.learning.row_functions import Moment
from sfumato.number_arguments import Number, read_whole_number

SPREAD_SHARE, COARSE_SHARE = Fraction(8, 20), Fraction(3, 20)
ROUNDS = (
    (4, 0),
    (60, 1),
    (300, 3),
    (3000, 8),
    (math.inf, 20),
)  # rows of a centre and sum, in noise deviations: rounds
MOST_CUTS = 10  # columns of the coarse histogram
MOST_CLUSTERS = 1_000
SIDE = 0.8  # where the rows on one side of the mean are on average, in standard deviations: 0.798 for a normal column
SUM_WEIGHT = 10  # of the sum of a column in a round, beside that of the count (`_weigh_count`)
USUAL_MOVE = 0.25  # of a centre in one round, in scaled columns


class KMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """k-means. Columns are not scaled: their declared bounds say how large they are.

    The price is `epsilon`, or (`epsilon`, `delta`) if `delta` is above 0. `random_state` is a public
    seed of the choices that are random; without one, each fit draws its own. It does not repeat the noise.
    """

    _repr_html_ = write_estimator_html
    _repr_mimebundle_ = bundle_estimator

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Number = 1.0,
        delta: Number = 0,
        bounds: object = None,
        neighbours: str = "add-remove",
        random_state: object = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.neighbours = neighbours
        self.random_state = random_state

    def fit(
        self,
        X: object = None,  # noqa: N803 - scikit-learn's name
        y: object = None,
        *,
        dataset: object = None,
        features: Sequence[str] | None = None,
        table: str | None = None,
        analyst: str = DEFAULT_ANALYST,
    ) -> "KMeans":
        """Spend the budget on an array, or on columns of a protected dataset."""
        clusters = read_whole_number(self.n_clusters, "n_clusters", 1)
        if clusters > MOST_CLUSTERS:
            raise InvalidParameter("n_clusters", f"must be at most {MOST_CLUSTERS:,}", "a larger number")
        choices = read_choices(self.random_state)
        columns = DatasetColumns(dataset, features, None, table, analyst)
        statistics = count_columns(X, columns)
        delta = choose_delta(self.epsilon, self.delta, statistics, columns.budget, powers=True, together=True)
        declared = Declared(self.epsilon, delta, self.bounds, neighbours=self.neighbours)
        opened = open_source(X, None, columns, declared, "nothing")
        numeric = require_numeric(opened.source.features, "k-means")
        centres, self.n_iter_ = find_centres(opened.source, numeric, clusters, choices)
        record_fit(self, opened)
        self.cluster_centers_ = _find_middles(numeric) + _find_halves(numeric) * centres
        return self

    def fit_predict(self, X: object, y: object = None, **fit: Any) -> Integers:  # noqa: N803, ANN401
        """Fit, and then the nearest centre of each row of X. That is a property of the rows, and not private."""
        require_rows(X, "fit_predict")
        return self.fit(X, y, **fit).predict(X)

    def fit_transform(self, X: object, y: object = None, **fit: Any) -> Floats:  # noqa: N803, ANN401
        """Fit, and then the distance of each row of X from each centre. That is not private."""
        require_rows(X, "fit_transform")
        return self.fit(X, y, **fit).transform(X)

    def predict(self, X: object) -> Integers:  # noqa: N803
        """The number of the nearest centre of each row."""
        nearest: Integers = np.argmin(self.transform(X), axis=1).astype(np.int64)
        return nearest

    def transform(self, X: object) -> Floats:  # noqa: N803
        """The distance of each row (clamped to the bounds) from each centre."""
        rows = read_rows(self, X)
        numbers = np.column_stack([rows.numbers(place) for place in range(len(self._features))])
        distances = [np.sqrt(((numbers - centre) ** 2).sum(axis=1)) for centre in self.cluster_centers_]
        return np.column_stack(distances)

    def score(self, X: object, y: object = None) -> float:  # noqa: N803
        """The negative sum of squared distances from the nearest centres."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


def _find_halves(numeric: Sequence[Numeric]) -> Floats:
    return np.array([(feature.upper - feature.lower) / 2 for feature in numeric])


def _find_middles(numeric: Sequence[Numeric]) -> Floats:
    return np.array([feature.middle for feature in numeric])


def find_centres(
    source: StatisticSource, numeric: tuple[Numeric, ...], clusters: int, choices: PublicChoices
) -> tuple[Floats, int]:
    """The centres, in scaled columns, and the number of rounds."""
    half = _find_halves(numeric)
    lengths = half / half.max() if half.max() > 0 else np.ones(len(half))
    source.foresee(_list_foreseen(len(numeric), clusters))
    spreads = measure_spreads(source, SPREAD_SHARE)
    sums = len(numeric) + 1
    signal = spreads.signal / (clusters * (math.sqrt(sums) if spreads.gaussian else sums))
    rounds = next(rounds for most, rounds in ROUNDS if signal < most)
    share = COARSE_SHARE if rounds else 1 - SPREAD_SHARE
    cells, counts = _count_coarsely(source, numeric, spreads, lengths, share)
    centres = _choose_centres(cells, counts, spreads, lengths, clusters, choices)
    for _ in range(rounds):
        centres = _move_centres(source, centres, lengths, (1 - SPREAD_SHARE - COARSE_SHARE) / rounds)
    return centres, rounds


def _list_foreseen(columns: int, clusters: int) -> list[Foreseen]:
    """The largest and the smallest share of a count, and the smallest of a sum."""
    cells = Nearest(tuple(range(columns)), ((0.0,) * columns,) * clusters)
    count, total = Statistic(None, (cells,)), Statistic(Moment((0,)), (cells,))
    rest, most = 1 - SPREAD_SHARE - COARSE_SHARE, max(rounds for _, rounds in ROUNDS)
    heavy = _weigh_count(columns)
    parts = heavy + SUM_WEIGHT * columns
    return [
        (Statistic(None, (Bins(0, (0.0,)),)), 1 - SPREAD_SHARE),
        (count, rest * heavy / parts),
        (count, rest / most * heavy / parts),
        (total, rest / most * SUM_WEIGHT / parts),
    ]


def _weigh_count(columns: int) -> int:
    return max(round(6 * math.sqrt(columns)), 1)


def _count_coarsely(
    source: StatisticSource, numeric: tuple[Numeric, ...], spreads: ColumnSpreads, lengths: Floats, share: Fraction
) -> tuple[Floats, Floats]:
    """The cells of a coarse histogram, as points in scaled columns, and their noisy counts without those of noise."""
    room = max(spreads.signal, 1.0) * (math.sqrt(share) if spreads.gaussian else float(share)) / 2
    cuts = int(np.clip(math.log2(room) if room > 1 else 1, 1, min(MOST_CUTS, len(numeric))))
    widest = np.argsort(-spreads.variances * lengths**2, kind="stable")[:cuts]
    thresholds = _find_middles(numeric) + _find_halves(numeric) * spreads.means
    cells = tuple(Bins(int(place), (float(thresholds[place]),)) for place in widest)
    (counted,) = source.release([Statistic(None, cells)], share)
    counts = counted.sums.ravel()
    sides = np.indices(counted.sums.shape).reshape(cuts, -1).T * 2 - 1
    points = np.tile(spreads.means, (len(counts), 1))
    points[:, widest] += SIDE * sides * np.sqrt(spreads.variances[widest])
    return np.clip(points, -1, 1), np.where(counts > 1.5 * float(counted.deviation), counts, 0.0)


def _choose_centres(  # noqa: PLR0917 - one caller
    points: Floats, counts: Floats, spreads: ColumnSpreads, lengths: Floats, clusters: int, choices: PublicChoices
) -> Floats:
    """Weighted k-means of the cells. Points of little weight near the mean make sure that there are enough of them."""
    size = clusters, len(lengths)
    away = choices.choose_fractions(clusters * len(lengths)).reshape(size) - 0.5
    spare = spreads.means + away * np.sqrt(spreads.variances / len(lengths))
    weights = np.concatenate([counts, np.full(clusters, max(counts.sum(), 1.0) * 1e-6)])
    plain = PlainKMeans(clusters, n_init=10, random_state=int(choices.choose_fractions(1)[0] * (1 << 31)))
    plain.fit(np.vstack([points, np.clip(spare, -1, 1)]) * lengths, sample_weight=weights)
    known = np.where(lengths > 0, lengths, 1.0)
    return np.where(lengths > 0, plain.cluster_centers_ / known, spreads.means)


def _move_centres(source: StatisticSource, centres: Floats, lengths: Floats, share: Fraction) -> Floats:
    """One round: the mean of the rows that are nearest to each centre."""
    columns = range(len(lengths))
    cells = Nearest(tuple(columns), tuple(map(tuple, centres.tolist())), tuple((lengths**2).tolist()))
    heavy = _weigh_count(len(lengths))
    counted, *summed = source.release(
        [Statistic(None, (cells,), heavy), *(Statistic(Moment((place,)), (cells,), SUM_WEIGHT) for place in columns)],
        share,
    )
    rows = np.maximum(counted.sums, 1.0)[:, None]
    means = np.clip(np.column_stack([noisy.sums for noisy in summed]) / rows, -1, 1)
    noise = np.array([float(noisy.deviation) for noisy in summed]) / rows
    trust = USUAL_MOVE**2 / (USUAL_MOVE**2 + noise**2)
    moved: Floats = centres + trust * (means - centres)
    return moved
