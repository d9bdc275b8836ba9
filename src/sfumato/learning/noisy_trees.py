"""Grow trees from noisy counts: one release chooses how large they are, one their tests, one counts their leaves.

Fixed: bounds, categories, classes, the shares of the budget, the seed, the bins of the candidates. Paid for:

- 1/16 of the price counts the rows, unless their number is public. The depth and the number of trees follow from this
  noisy count, so that a leaf is not lost in the noise.
- If there are rows enough, 3/8 of the price counts every feature by class: what one row adds to each of these counts
  is 1. The tests are chosen from them. Otherwise the tests are random: they follow from the declarations and the seed.
- The rest counts the leaves of each tree by class. The leaves of one tree are disjoint; the trees share the price.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.learning.feature_columns import Classes
from sfumato.learning.noisy_statistics import Foreseen, Noisy, Statistic, StatisticSource
from sfumato.learning.public_choices import PublicChoices
from sfumato.learning.row_cells import Floats, Labels, RowValues, number_cells
from sfumato.learning.tree_tests import Test, choose_tests, cut_feature, draw_tests, list_columns, write_cells

COUNT_SHARE, TEST_SHARE = Fraction(1, 16), Fraction(6, 16)
ROWS_PER_TREE = 8  # rows of each class, in noise deviations of the whole price, for each tree of a forest
MOST_LEAF_COUNTS = 1 << 15
LEAST_DEVIATION = 1e-3  # of the noise: below it, noise plays no part
USUAL_STEP = 0.15  # from the class shares of a node to those of the nodes below it, where one tree has chosen tests


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """The largest trees that are wanted. All of it is public."""

    depth: int
    trees: int
    least_rows: int  # rows for each feature and class, in noise deviations, from which tests are chosen from counts
    random_tests: bool  # draw the tests among the good ones; else take the best


@dataclass(frozen=True, slots=True)
class NoisyTree:
    """The tests of a tree, the first at its root, and the class shares of its leaves.

    The number of a leaf has a binary digit for each test, the first test's in front: 0 if it is passed.
    """

    tests: tuple[Test, ...]
    shares: Floats

    def find_leaves(self, rows: RowValues) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The number of each row's leaf."""
        number = np.zeros(len(rows), np.int64)
        for test in self.tests:
            number = 2 * number + number_cells(write_cells(test), rows)
        return number


def grow_trees(source: StatisticSource, settings: TreeSettings, choices: PublicChoices) -> list[NoisyTree]:
    """Spend the price on trees. Nothing but noisy counts is read."""
    classes = len(source.target.labels) if isinstance(source.target, Classes) else 1
    source.foresee(_list_foreseen(source, settings))
    signal, spent = _measure_signal(source)
    draw, usual_step = _draw_at_random(source, choices), np.inf
    if signal >= settings.least_rows * len(source.features) * classes:
        draw = _choose_from_counts(source, draw, choices if settings.random_tests else None)
        spent += TEST_SHARE
        usual_step = np.inf if settings.random_tests else USUAL_STEP  # a forest averages the noise of its trees
    rows_of_class = max(signal, 1.0) / classes
    depth = min(settings.depth, max(round(np.log2(max(signal, 4.0))), 2), int(np.log2(MOST_LEAF_COUNTS / classes)))
    trees = [draw(depth) for _ in range(int(np.clip(rows_of_class / ROWS_PER_TREE, 1, settings.trees)))]
    leaves = [Statistic(None, (*map(write_cells, tests), Labels())) for tests in trees]
    counted = source.release(leaves, 1 - spent)
    return [NoisyTree(tests, smooth_leaves(noisy, usual_step)) for tests, noisy in zip(trees, counted, strict=True)]


def _list_foreseen(source: StatisticSource, settings: TreeSettings) -> list[Foreseen]:
    """Counts of every feature, and the leaves of one tree (the largest share) and of all trees (the smallest)."""
    counts = [Statistic(None, (column, Labels())) for column in list_columns(source.features)]
    whole = Fraction(1) if source.rows is not None else 1 - COUNT_SHARE
    leaves = (whole, (whole - TEST_SHARE) / settings.trees)
    return [*((count, TEST_SHARE / len(counts)) for count in counts), *((counts[0], share) for share in leaves)]


def _measure_signal(source: StatisticSource) -> tuple[float, Fraction]:
    """The number of rows, in deviations of the noise that one count would have for the whole price; and what it cost.

    A public number of rows costs nothing. A private one is measured, so it is noisy.
    """
    if source.rows is not None:
        return source.rows / max(source.count_noise, LEAST_DEVIATION), Fraction(0)
    (counted,) = source.release([Statistic(None)], COUNT_SHARE)
    whole = float(counted.deviation) * (math.sqrt(COUNT_SHARE) if counted.gaussian else float(COUNT_SHARE))
    return float(counted.sums) / max(whole, LEAST_DEVIATION), COUNT_SHARE


def _draw_at_random(source: StatisticSource, choices: PublicChoices) -> Callable[[int], tuple[Test, ...]]:
    return lambda depth: draw_tests(source.features, depth, choices)


def _choose_from_counts(
    source: StatisticSource,
    draw: Callable[[int], tuple[Test, ...]],
    choices: PublicChoices | None,
) -> Callable[[int], tuple[Test, ...]]:
    """Count every feature by class. Where the counts favour fewer tests than wanted, the others are random."""
    cells = list_columns(source.features)
    counted = source.release([Statistic(None, (column, Labels())) for column in cells], TEST_SHARE)
    columns = [cut_feature(column, noisy) for column, noisy in zip(cells, counted, strict=True)]

    def choose(depth: int) -> tuple[Test, ...]:
        tests = choose_tests(columns, depth, choices)
        return tests + draw(depth - len(tests))

    return choose


def smooth_leaves(counted: Noisy, usual_step: float = np.inf) -> Floats:
    """The class shares of each leaf. The less a count stands out of the noise, the more the node above it counts.

    The node above counts at least as many rows as the noise of this node would have; more, if the noise of its class
    shares is larger than `usual_step`, by which they usually differ from those above. The axes of the counts are the
    tests, in their order, and the classes.
    """
    classes, depth = counted.sums.shape[-1], counted.sums.ndim - 1
    shares = np.full((1, classes), 1 / classes)
    for level in range(depth + 1):
        counts = np.maximum(counted.sums.reshape(2**level, -1, classes).sum(axis=1), 0)
        noise = float(counted.deviation) * np.sqrt(classes * 2 ** (depth - level))
        rows = counts.sum(axis=1, keepdims=True)
        above = np.repeat(shares, 2, axis=0) if level else shares
        unusual = (noise / usual_step) ** 2 / np.maximum(rows, 1) if level else 0.0
        weight = np.maximum(noise + 1, unusual)
        shares = (counts + weight * above) / (rows + weight)
    return shares


def predict_shares(trees: Sequence[NoisyTree], rows: RowValues) -> Floats:
    """P(class | row): the geometric mean over the trees."""
    scores = sum(np.log(tree.shares)[tree.find_leaves(rows)] for tree in trees) / len(trees)
    chances = np.exp(scores - np.max(scores, axis=1, keepdims=True, initial=-np.inf))
    shares: Floats = chances / chances.sum(axis=1, keepdims=True)
    return shares
