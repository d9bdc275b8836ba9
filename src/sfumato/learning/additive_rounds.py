"""Fit an additive model with noisy statistics: one release of histograms, then a few rounds of residuals.

What is fixed: the bins, the number of rounds and the shares of the budget. What is paid for:

1. FIRST_SHARE of the budget: for each feature, a histogram of the target. Merging bins, leaving out features and the
   first model (a damped naive Bayes model) follow from it and cost nothing.
2. The rest, in equal parts: in each round, for each feature that is left, the residuals of the model, summed by bin.
   Every round takes a Newton step for all features together. Each bin's step is shrunk by its noise.

One row adds at most 1 to one cell of each sum (add-remove), because a residual lies in [-1, 1]. Laplace noise is scaled
to the number of sums of a call, Gaussian noise to its square root: few features and few rounds mean little noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from sfumato.errors import KernelFault
from sfumato.learning.additive_model import AdditiveModel, Term, TermCells, divide_feature, group_cells
from sfumato.learning.bin_merging import NoisyBins, is_informative, merge_neighbours, merge_rare
from sfumato.learning.feature_columns import Classes
from sfumato.learning.newton_steps import MOST_STEP, Curvature, take_step
from sfumato.learning.noisy_statistics import Foreseen, Noisy, Statistic, StatisticSource
from sfumato.learning.row_cells import Bins, Floats, Labels, count_cells
from sfumato.learning.row_functions import TARGET, Powers, Residual

FIRST_SHARE = Fraction(3, 10)
FIRST_STEP, FIRST_FEATURES = 0.4, 3  # the naive Bayes model counts correlated features several times: it is scaled
LEAST_ROW_WEIGHT = 0.03  # p(1 - p) of a cell counts as at least this
LEAST_COUNT = 0.01  # of the rows of a cell: it may have none, and noise that is too small to count
RATE_MARGIN = 0.002  # a mean label lies at least so far from 0 and 1
PRIOR_DEVIATION = {"logistic": 2.0, "identity": 0.5}  # of a cell's value, by link: what shrinks noisy cells

Link = Literal["logistic", "identity"]


@dataclass(frozen=True, slots=True)
class Aim:
    """What the scores predict: the labels at these places of the classes (logistic), or the scaled target."""

    link: Link
    labels: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A feature during the fit. All arrays are cells x scores, except `counts`."""

    cells: TermCells
    counts: Floats
    sums: Floats  # of the target
    widths: Floats  # how many measured bins a cell was merged from
    values: Floats
    variances: Floats  # of the noise in the values


def choose_aim(source: StatisticSource) -> Aim:
    """One score for two classes, one for each of more classes, one for a number."""
    if not isinstance(source.target, Classes):
        return Aim("identity", (None,))
    classes = len(source.target.labels)
    return Aim("logistic", (1,) if classes == 2 else tuple(range(classes)))


def fit_additive(source: StatisticSource, bins: int, rounds: int) -> AdditiveModel:
    """Fit an additive model."""
    aim = choose_aim(source)
    cells = [divide_feature(place, feature, bins) for place, feature in enumerate(source.features)]
    source.foresee(_list_foreseen(source, aim, cells, rounds))
    released = source.release([_ask_target(aim, part) for part in cells], FIRST_SHARE)
    mean, intercepts, columns = _begin(aim, cells, released)
    share = (1 - FIRST_SHARE) / rounds
    curvature = Curvature([part.sums - part.counts[:, None] * mean for part in columns])
    scale = min(FIRST_STEP, FIRST_FEATURES / len(columns)) if len(columns) > 1 else 1.0
    columns = [replace(part, values=part.values * scale, variances=part.variances * scale**2) for part in columns]
    for _ in range(rounds):
        if not columns:
            break
        model = assemble(intercepts, columns)
        asked = [
            Statistic(Residual(model.score(number), aim.link, label), (part.cells,))
            for part in columns
            for number, label in enumerate(aim.labels)
        ]
        noisy = source.release(asked, share)
        intercepts, columns = _step(aim, intercepts, columns, noisy, curvature)
    return assemble(intercepts, columns)


def _list_foreseen(source: StatisticSource, aim: Aim, cells: Sequence[TermCells], rounds: int) -> list[Foreseen]:
    """The feature with the most cells: its histogram of the target, and a residual of the largest model."""
    sizes = [count_cells(part, source.features, source.target) for part in cells]
    scores = len(aim.labels)
    empty = [
        Term(part, np.zeros((size, scores)), np.zeros((size, scores))) for part, size in zip(cells, sizes, strict=True)
    ]
    residual = Residual(AdditiveModel(np.zeros(scores), tuple(empty)).score(0), aim.link, aim.labels[0])
    largest = cells[int(np.argmax(sizes))]
    return [
        (_ask_target(aim, largest), FIRST_SHARE / len(cells)),
        (Statistic(residual, (largest,)), (1 - FIRST_SHARE) / rounds / (len(cells) * scores)),
    ]


def assemble(intercepts: Floats, columns: Sequence[Column]) -> AdditiveModel:
    """The model of the columns as they are now."""
    return AdditiveModel(intercepts, tuple(Term(part.cells, part.values, np.sqrt(part.variances)) for part in columns))


def _ask_target(aim: Aim, cells: TermCells) -> Statistic:
    if aim.link == "logistic":
        return Statistic(None, (cells, Labels()))
    return Statistic(Powers(TARGET), (cells,))


def _begin(aim: Aim, cells: Sequence[TermCells], released: Sequence[Noisy]) -> tuple[Floats, Floats, list[Column]]:
    """The mean target; merge bins, leave out features that say nothing, and start from naive Bayes."""
    read = [_read_target(aim, noisy) for noisy in released]
    weights = np.array([1 / len(counts) for counts, _, _ in read])
    rows = max(float(weights @ [counts.sum() for counts, _, _ in read] / weights.sum()), 1.0)
    total = np.stack([sums.sum(axis=0) for _, sums, _ in read], axis=1) @ weights / weights.sum()
    if aim.link == "logistic":
        mean = np.clip(total / rows, RATE_MARGIN, 1 - RATE_MARGIN)
        row_variance, intercepts = mean * (1 - mean), np.log(mean / (1 - mean))
    else:
        mean = np.clip(total / rows, -1.0, 1.0)
        squares = float(weights @ [noisy.sums[:, 2].sum() for noisy in released] / weights.sum())
        row_variance, intercepts = np.clip(squares / rows - mean**2, 1e-4, 1.0), mean
    columns = []
    for part, (counts, sums, deviation) in zip(cells, read, strict=True):
        noise = np.sqrt(_excess_variance(aim, mean, deviation))
        known = NoisyBins(counts, sums - counts[:, None] * mean, float(deviation[0]), noise, row_variance)
        groups = merge_neighbours(known) if isinstance(part, Bins) else merge_rare(known)
        if not is_informative(known, groups):
            continue
        merged, widths = known.merge(groups), np.bincount(groups).astype(np.float64)
        held = np.maximum(merged.counts, max(3 * deviation[0], LEAST_COUNT))
        weight = held[:, None] * (row_variance if aim.link == "logistic" else 1.0)
        variance = widths[:, None] * noise**2
        ridge = variance / (weight * PRIOR_DEVIATION[aim.link] ** 2)
        start = np.clip(merged.excess / (weight + ridge), -3.0, 3.0)
        centred = start - np.average(start, axis=0, weights=held)
        target = merged.excess + held[:, None] * mean
        columns.append(
            Column(group_cells(part, groups), held, target, widths, centred, variance / (weight + ridge) ** 2)
        )
    return mean, intercepts, columns


def _read_target(aim: Aim, noisy: Noisy) -> tuple[Floats, Floats, Floats]:
    """Counts of the cells, sums of the target by cell and score, and their deviations (of counts first)."""
    if aim.link == "identity":
        return noisy.sums[:, 0], noisy.sums[:, 1:2], noisy.deviation[:2]
    labels = noisy.sums.shape[1]
    chosen = [label for label in aim.labels if label is not None]
    deviation = float(noisy.deviation)
    return noisy.sums.sum(axis=1), noisy.sums[:, chosen], np.array([deviation * np.sqrt(labels), deviation, labels])


def _excess_variance(aim: Aim, mean: Floats, deviation: Floats) -> Floats:
    """The variance of the noise of sum - mean * count, for each score."""
    if aim.link == "identity":
        variance: Floats = deviation[1] ** 2 + mean**2 * deviation[0] ** 2
        return variance
    _, one, labels = deviation
    variance = one**2 * ((1 - mean) ** 2 + (labels - 1) * mean**2)
    return variance


def _step(
    aim: Aim, intercepts: Floats, columns: Sequence[Column], noisy: Sequence[Noisy], curvature: Curvature
) -> tuple[Floats, list[Column]]:
    """A Newton step for every cell, and for the intercepts."""
    scores = len(aim.labels)
    if len(noisy) != scores * len(columns):
        raise KernelFault("A round has one statistic for each feature and score.")
    gradients, weights, variances = [], [], []
    for place, part in enumerate(columns):
        measured = noisy[place * scores : (place + 1) * scores]
        gradient = -np.stack([noisy_sum.sums for noisy_sum in measured], axis=1)
        gradients.append(gradient)
        variances.append(np.array([float(noisy_sum.deviation) ** 2 for noisy_sum in measured]))
        weights.append(_weigh(aim, part, gradient))
    damping = curvature.choose_damping([part.values for part in columns], gradients, weights)
    moved = []
    for part, gradient, weight, variance in zip(columns, gradients, weights, variances, strict=True):
        prior = PRIOR_DEVIATION[aim.link]
        values, left = take_step((part.values, part.variances), gradient, weight, variance, damping, prior)
        values = values - np.average(values, axis=0, weights=part.counts)
        moved.append(replace(part, values=values, variances=left))
    widths = np.array([len(part.counts) for part in columns], np.float64)
    total = sum(gradient.sum(axis=0) / width for gradient, width in zip(gradients, widths, strict=True))
    whole = sum(weight.sum(axis=0) / width for weight, width in zip(weights, widths, strict=True))
    return intercepts + np.clip(total / whole, -MOST_STEP, MOST_STEP), moved


def _weigh(aim: Aim, part: Column, gradient: Floats) -> Floats:
    """The second derivative of the loss for each cell: counts times p(1 - p), or counts."""
    counts = np.broadcast_to(part.counts[:, None], gradient.shape)
    if aim.link == "identity":
        return counts
    rate = np.clip((part.sums - gradient) / counts, 0.0, 1.0)
    return counts * np.maximum(rate * (1 - rate), LEAST_ROW_WEIGHT)
