"""Merge bins of a feature by their noisy sums: post-processing, which costs nothing.

A bin that holds few rows has more noise than signal. Neighbouring bins of a number are merged where their noisy sums do
not differ, and rare categories are merged into one group. What is merged is measured with the noise of one bin in the
rounds that follow.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.learning.row_cells import Floats, Integers

PENALTY = 10.0  # the gain in fit, in squared deviations, that one more bin of a number must give for each score
SURE_COUNT = 10.0  # a category has a group of its own if its noisy count is so many deviations of noise


@dataclass(frozen=True, slots=True)
class NoisyBins:
    """What is known of each bin of a feature: its noisy count, and its noisy excess for each score.

    The excess is the sum of target - mean(target) over the rows of the bin. `row_variance` is the variance of one
    row's target, for each score.
    """

    counts: Floats
    excess: Floats  # bins x scores
    count_deviation: float
    excess_deviation: Floats  # of one bin, for each score
    row_variance: Floats  # for each score

    def merge(self, groups: Integers) -> "NoisyBins":
        """The bins of a grouping. Deviations stay those of one bin before merging."""
        size = int(groups.max()) + 1
        counts, excess = np.zeros(size), np.zeros((size, self.excess.shape[1]))
        np.add.at(counts, groups, self.counts)
        np.add.at(excess, groups, self.excess)
        return NoisyBins(counts, excess, self.count_deviation, self.excess_deviation, self.row_variance)


def merge_neighbours(bins: NoisyBins) -> Integers:
    """The group of each bin of a number: the grouping of neighbours that fits best, less a penalty for each group.

    In a group, the excess of a bin is its count times one rate. The gain of a group is what the best rate takes from
    the sum of squares, weighted by the variance of noise and sampling; an empty bin therefore says nothing about the
    rate. The best grouping is found by dynamic programming over the end of the last group.
    """
    size, scores = bins.excess.shape
    rows = np.maximum(bins.counts, 0.0)[:, None]
    variance = bins.excess_deviation**2 + rows * bins.row_variance + 1e-12
    products = np.concatenate([np.zeros((1, scores)), np.cumsum(rows * bins.excess / variance, axis=0)])
    squares = np.concatenate([np.zeros((1, scores)), np.cumsum(rows**2 / variance, axis=0)])
    best, start = np.zeros(size + 1), np.zeros(size + 1, np.int64)
    for end in range(1, size + 1):
        gain = ((products[end] - products[:end]) ** 2 / (squares[end] - squares[:end] + 1e-12)).sum(axis=1)
        cost = best[:end] - gain + PENALTY * scores
        start[end] = int(np.argmin(cost))
        best[end] = cost[start[end]]
    cuts, end = [], size
    while end > 0:
        end = int(start[end])
        cuts.append(end)
    groups = np.zeros(size, np.int64)
    for cut in cuts:
        groups[cut:] += cut > 0
    return groups


def merge_rare(bins: NoisyBins) -> Integers:
    """The group of each category: its own if it is frequent, and one group for all rare ones."""
    frequent = bins.counts >= SURE_COUNT * bins.count_deviation
    groups = np.cumsum(frequent) - 1
    groups[~frequent] = frequent.sum()
    return groups.astype(np.int64)


def is_informative(bins: NoisyBins, groups: Integers) -> bool:
    """Whether the groups differ by more than noise and sampling explain."""
    merged = bins.merge(groups)
    widths = np.bincount(groups)
    if len(widths) < 2:
        return False
    rows = np.maximum(merged.counts, 0.0)[:, None]
    variance = widths[:, None] * bins.excess_deviation**2 + rows * bins.row_variance + 1e-12
    return bool((merged.excess**2 / variance).sum() > merged.excess.size)
