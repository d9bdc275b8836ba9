"""Choose the tests of a tree: at random from the declarations alone, or from noisy counts of each feature by class.

All nodes of one depth have the same test. A tree of depth D is therefore D tests, and a leaf is one pattern of their
results. Each row falls in one leaf, so all leaves share one noise scale.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sfumato.errors import KernelFault
from sfumato.learning.feature_columns import Coded, Feature, Numeric
from sfumato.learning.naive_bayes import cut_evenly
from sfumato.learning.noisy_statistics import Noisy
from sfumato.learning.public_choices import PublicChoices
from sfumato.learning.row_cells import Below, Bins, Codes, Floats, Integers, Leaf, Leaves, OneOf, RowCells, Split

Test = Below | OneOf
BINS = 16  # of a number, when tests are chosen from noisy counts
INNER = (
    0.2,
    0.7,
)  # where random thresholds lie between the bounds: more columns have a long upper tail than a lower one


def write_cells(test: Test) -> RowCells:
    """Two cells: 0 for the rows that pass, 1 for all others."""
    if isinstance(test, Below):
        return Bins(test.feature, (test.threshold,))
    return Leaves(Split(test, Leaf(0), Leaf(1)))


def draw_tests(features: tuple[Feature, ...], depth: int, choices: PublicChoices) -> tuple[Test, ...]:
    """Random tests. They follow from the declarations and the public seed: no data is read."""
    order = np.resize(choices.choose_order(len(features)), depth)
    return tuple(_draw_test(int(place), features[place], choices) for place in order)


def _draw_test(place: int, feature: Feature, choices: PublicChoices) -> Test:
    if isinstance(feature, Numeric):
        inner = INNER[0] + (INNER[1] - INNER[0]) * float(choices.choose_fractions(1)[0])
        return Below(place, feature.lower + inner * (feature.upper - feature.lower))
    half = (len(feature.categories) + 1) // 2
    return OneOf(place, tuple(sorted(choices.choose_order(len(feature.categories))[:half].tolist())))


def list_columns(features: tuple[Feature, ...]) -> list[Bins | Codes]:
    """The cells in which each feature is counted by class, before tests are chosen. They follow from declarations."""
    return [
        Codes(place) if isinstance(feature, Coded) else Bins(place, cut_evenly(feature, BINS))
        for place, feature in enumerate(features)
    ]


@dataclass(frozen=True, slots=True)
class CutFeature:
    """Noisy class counts of a feature's cells, in an order in which a cut after any of them is a test."""

    cells: Bins | Codes
    order: Integers
    cumulated: Floats  # row k has the class counts of the first k cells
    variance: float  # of the noise of one count

    @property
    def cuts(self) -> int:
        """The number of cuts."""
        return len(self.order) - 1

    def write_test(self, cut: int) -> Test:
        """The test that the cells up to and including `cut` pass."""
        if isinstance(self.cells, Bins):
            return Below(self.cells.feature, self.cells.edges[cut])
        return OneOf(self.cells.feature, tuple(sorted(self.order[: cut + 1].tolist())))

    def score_cuts(self, taken: Sequence[int]) -> Floats:
        """How much purer one more cut makes the parts: what it adds to the sum of n p² over parts and classes.

        The squares of the noise are subtracted on average. A cut that leaves a part that noise alone may have filled
        scores -inf.
        """
        ends = sorted({-1, *taken, self.cuts})
        gains = np.full(self.cuts, -np.inf)
        for start, end in pairwise(ends):
            cuts = np.arange(start + 1, end)
            whole = self._measure_purity(np.array([start]), np.array([end]))[0]
            if len(cuts) and np.isfinite(whole):
                below = self._measure_purity(np.full(len(cuts), start), cuts)
                gains[cuts] = below + self._measure_purity(cuts, np.full(len(cuts), end)) - whole
        return gains

    def _measure_purity(self, start: Integers, end: Integers) -> Floats:
        """The sum of n p² of the cells after `start`, up to and including `end`."""
        counts = self.cumulated[end + 1] - self.cumulated[start + 1]
        rows, noise = counts.sum(axis=1), counts.shape[1] * (end - start) * self.variance
        least = 2 * np.sqrt(noise) + 1
        purity = np.maximum((counts**2).sum(axis=1) - noise, 0) / np.maximum(rows, least)
        scored: Floats = np.where(rows > least, purity, -np.inf)
        return scored


def cut_feature(cells: RowCells, counted: Noisy) -> CutFeature:
    """Order the cells of a feature: bins as they are, categories by their classes."""
    if not isinstance(cells, Bins | Codes):
        raise KernelFault("A feature is counted in bins or by codes.")
    sums, deviation = counted.sums, float(counted.deviation)
    order = np.arange(len(sums)) if isinstance(cells, Bins) else _order_categories(sums, deviation)
    none = np.zeros((1, sums.shape[1]))
    return CutFeature(cells, order, np.vstack([none, np.cumsum(sums[order], axis=0)]), deviation**2)


def _order_categories(sums: Floats, deviation: float) -> Integers:
    """Categories along the direction in which their class shares differ most. Rare ones lie in the middle."""
    counts = np.maximum(sums, 0)
    rows = counts.sum(axis=1, keepdims=True)
    overall = counts.sum(axis=0) / max(counts.sum(), 1)
    weight = 2 * deviation + 1
    apart = (counts + weight * overall) / (rows + weight) - overall
    direction = np.linalg.svd(apart * np.sqrt(rows), full_matrices=False)[2][0]
    return np.argsort(apart @ direction, kind="stable").astype(np.int64)


def choose_tests(columns: Sequence[CutFeature], depth: int, choices: PublicChoices | None) -> tuple[Test, ...]:
    """At most `depth` tests, from noisy counts only. It stops where no cut adds more than the noise would.

    Each test is the one that adds most; with `choices`, one that is drawn in proportion to what it adds.
    """
    taken: list[list[int]] = [[] for _ in columns]
    gains = [column.score_cuts(()) for column in columns]
    tests: list[Test] = []
    while len(tests) < depth:
        best = np.array(
            [gain.max(initial=0.0) - column.variance**0.5 for gain, column in zip(gains, columns, strict=True)]
        ).clip(min=0)
        if not best.any():
            break
        if choices is None:
            place = int(best.argmax())
            cut = int(gains[place].argmax())
        else:
            place = choices.choose_weighted(np.sqrt(best))
            cut = choices.choose_weighted(np.maximum(gains[place], 0))
        tests.append(columns[place].write_test(cut))
        taken[place].append(cut)
        gains[place] = columns[place].score_cuts(taken[place])
    return tuple(tests)
