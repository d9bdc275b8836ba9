"""Fit a logistic regression with noisy statistics: class counts, class sums of each feature, then rounds of gradients.

What is fixed: the shares of the budget and the most rounds. What is paid for:

1. A tenth: the number of rows of each class. Whether rounds follow, and how many, is decided by these noisy counts and
   by the noise that a round would have: with few rows or little budget there are none.
2. The class sums: for each numeric feature x, the sum of x by class (and of 1 and x², if rounds follow, or if there are
   two classes and rows enough); for each coded feature, a histogram by class. They take a quarter, or the rest if no
   round follows. A first model follows from them: each weight as if its feature were the only one.
3. The rest, in equal parts: in each round, the residuals of the model: their sum, their sum times each numeric feature,
   and their sum for each group of categories. Every round takes a Newton step for each weight, shrunk by its noise.
   Without rounds, the intercept of two classes is corrected once, with a tenth.

One row adds at most 1 to each of these sums (add-remove): a scaled feature and a residual lie in [-1, 1].

With more than two classes and no rounds, the scores are those of a normal discriminant with one variance for all. With
rounds, each class is told apart from the rest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sfumato.learning.additive_model import AdditiveModel, Slope, Term
from sfumato.learning.bin_merging import NoisyBins, merge_rare
from sfumato.learning.feature_columns import Coded, Numeric
from sfumato.learning.newton_steps import Curvature, take_step
from sfumato.learning.noisy_statistics import Foreseen, Noisy, Statistic, StatisticSource
from sfumato.learning.row_cells import CodeGroups, Codes, Floats, Labels
from sfumato.learning.row_functions import Moment, Powers, Residual

COUNT_SHARE, SUMS_SHARE, CORRECTION_SHARE = Fraction(1, 10), Fraction(1, 4), Fraction(1, 10)
MOST_ROUNDS = 8
CLEAR, CLEAR_OF_REST = (
    4.0,
    40.0,
)  # a usual weight moves the gradient of a round by so many deviations
MORE_COUNT_SHARE = Fraction(1, 2)  # for the class counts, where the features are lost in the noise
USUAL_DIFFERENCE = 0.3  # of the means of a scaled column in two classes
MEASURED_SPREAD = 20.0  # rows, in deviations of a sum: with more, the variance of a column is worth its price
USUAL_SPREAD = 3.0  # of the scores of a model without rounds
USUAL_VARIANCE = 0.1  # of a scaled column
LEAST_VARIANCE = 0.02
PRIOR_DEVIATION = 2.0  # of a weight
FIRST_STEP, FIRST_FEATURES = 0.4, 3
MOST_DAMPING = 1.5
RATE_MARGIN = 0.002
LEAST_COUNT = 0.01  # of the rows of a category: it may have none, and noise that is too small to count
CURVED = 0.7  # the mean of p(1 - p) beside that of a model without features, for the intercept


@dataclass(frozen=True, slots=True)
class Part:
    """A feature during the fit: one weight for each score (numeric), or one for each group and score (coded)."""

    feature: int
    cells: CodeGroups | None
    centre: float  # of a numeric feature
    counts: Floats  # rows of each group
    weights: Floats  # second derivatives
    gradient: Floats  # at zero
    values: Floats
    variances: Floats


@dataclass(frozen=True, slots=True)
class LinearFit:
    """A fitted model, its number of rounds, and whether its scores are compared with each other (softmax)."""

    model: AdditiveModel
    rounds: int
    joint: bool


@dataclass(frozen=True, slots=True)
class ClassRates:
    """The rows of the data and the rate of the label of each score: noisy, and kept away from 0 and 1."""

    rows: float
    rates: Floats
    labels: tuple[int, ...]

    @property
    def row_weights(self) -> Floats:
        weights: Floats = self.rates * (1 - self.rates)
        return weights


def fit_linear(source: StatisticSource, classes: int) -> LinearFit:
    """Fit a logistic regression."""
    labels = (1,) if classes == 2 else tuple(range(classes))
    source.foresee(_list_foreseen(source, labels))
    (counted,) = source.release([Statistic(None, (Labels(),))], COUNT_SHARE)
    known = _read_rates(counted, labels, source.rows)
    rounds = _choose_rounds(counted, known, len(source.features))
    if not rounds:
        return _fit_once(source, counted, known)
    asked = [_ask_sums(source, place, Powers(place)) for place in range(len(source.features))]
    noisy = source.release(asked, SUMS_SHARE)
    parts = [_begin(source, place, sums, known) for place, sums in enumerate(noisy)]
    curvature = Curvature([part.gradient for part in parts], MOST_DAMPING)
    scale = min(FIRST_STEP, FIRST_FEATURES / len(parts)) if len(parts) > 1 else 1.0
    parts = [
        replace(part, values=np.clip(part.values, -3.0, 3.0) * scale, variances=part.variances * scale**2)
        for part in parts
    ]
    intercepts = np.log(known.rates / (1 - known.rates))
    share = (1 - COUNT_SHARE - SUMS_SHARE) / rounds
    for _ in range(rounds):
        released = source.release(_ask_residuals(assemble(intercepts, parts), parts, labels), share)
        intercepts = _step_intercepts(intercepts, released[: len(labels)], known)
        parts = _step(parts, released, len(labels), curvature)
    return LinearFit(assemble(intercepts, parts), rounds, joint=False)


def _list_foreseen(source: StatisticSource, labels: tuple[int, ...]) -> list[Foreseen]:
    """The largest and the smallest share of each kind of statistic. Of coded features, the largest stands for all."""
    features, scores = source.features, len(labels)
    numeric = [place for place, feature in enumerate(features) if isinstance(feature, Numeric)]
    coded = {place: len(feature.categories) for place, feature in enumerate(features) if isinstance(feature, Coded)}
    terms = [
        Term(CodeGroups(place, tuple(range(size))), np.zeros((size, scores)), np.zeros((size, scores)))
        for place, size in coded.items()
    ]
    model = AdditiveModel(np.zeros(scores), tuple(terms), tuple(Slope(place, np.zeros(scores)) for place in numeric))
    residual = Residual(model.score(0), "logistic", labels[0])
    foreseen: list[Foreseen] = [(Statistic(None, (Labels(),)), MORE_COUNT_SHARE)]
    least = (1 - COUNT_SHARE - SUMS_SHARE) / MOST_ROUNDS / (scores * (len(features) + 1))
    for place in [*numeric[:1], *sorted(coded, key=lambda place: -coded[place])[:1]]:
        kinds = (Powers(place), Moment((place,))) if place in numeric else (Moment((place,)),)
        sums = [_ask_sums(source, place, kind) for kind in kinds]
        foreseen += [(noisy_sum, part / len(features)) for noisy_sum in sums for part in (SUMS_SHARE, 1 - COUNT_SHARE)]
        cells = CodeGroups(place, tuple(range(coded[place]))) if place in coded else None
        asked = Statistic(replace(residual, times=place)) if cells is None else Statistic(residual, (cells,))
        foreseen.append((asked, least))
    return foreseen


def _fit_once(source: StatisticSource, counted: Noisy, known: ClassRates) -> LinearFit:
    """A model of class sums alone: the weights of a discriminant, shrunk by their noise."""
    several = len(known.labels) > 1
    share = 1 - COUNT_SHARE - (0 if several else CORRECTION_SHARE)
    if not several and not _is_hopeful(counted, known, len(source.features), share):
        # the weights will be lost in the noise: what can be learnt is the most frequent class
        (again,) = source.release([Statistic(None, (Labels(),))], MORE_COUNT_SHARE)
        known = _read_rates(_average(counted, again), known.labels, source.rows)
        share -= MORE_COUNT_SHARE
    clear = not several and known.rows > MEASURED_SPREAD * _estimate_noise(counted, len(source.features), share)
    asked = [
        _ask_sums(source, place, Powers(place) if clear else Moment((place,))) for place in range(len(source.features))
    ]
    parts = [_begin(source, place, sums, known) for place, sums in enumerate(source.release(asked, share))]
    signal = sum(float((part.gradient**2).sum()) for part in parts)
    noise = sum(float((part.variances * (part.weights**2)).sum()) for part in parts)
    kept = max(1 - noise / signal, 0.0) if signal > 0 else 0.0
    spread = math.sqrt(sum(float((part.values**2).mean()) * USUAL_VARIANCE for part in parts) * math.sqrt(len(parts)))
    scale = kept * (1 - known.rates) if several else kept * min(1.0, USUAL_SPREAD / max(spread, 1e-9))
    parts = [replace(part, values=part.values * scale, variances=part.variances * scale**2) for part in parts]
    if several:  # the middle of two class means lies between them: half of each class's distance from the mean
        means = [(part.values[0] ** 2 * USUAL_VARIANCE / 2) for part in parts if part.cells is None]
        return LinearFit(assemble(np.log(known.rates) - sum(means), parts), 0, joint=True)
    intercepts = np.log(known.rates / (1 - known.rates))
    released = source.release(_ask_residuals(assemble(intercepts, parts), [], known.labels), CORRECTION_SHARE)
    return LinearFit(assemble(_step_intercepts(intercepts, released, known), parts), 0, joint=False)


def assemble(intercepts: Floats, parts: Sequence[Part]) -> AdditiveModel:
    """The model of the parts as they are now."""
    moved = intercepts - sum(part.centre * part.values[0] for part in parts if part.cells is None)
    terms = [Term(part.cells, part.values, np.sqrt(part.variances)) for part in parts if part.cells is not None]
    slopes = [Slope(part.feature, part.values[0]) for part in parts if part.cells is None]
    return AdditiveModel(moved, tuple(terms), tuple(slopes))


def _read_rates(counted: Noisy, labels: tuple[int, ...], rows: int | None) -> ClassRates:
    """Rates are shrunk to equal ones by their noise."""
    counts = np.maximum(counted.sums, 0.0)
    total = max(float(counts.sum()) if rows is None else float(rows), 1.0)
    spare = float(counted.deviation)
    rates = (counts[list(labels)] + spare / len(counts)) / (max(float(counts.sum()), 1.0) + spare)
    return ClassRates(total, np.clip(rates, RATE_MARGIN, 1 - RATE_MARGIN), labels)


def _choose_rounds(counted: Noisy, known: ClassRates, features: int) -> int:
    """As many rounds as leave each of them less noise than signal; none if not even one does."""
    sums = len(known.labels) * (features + 1)
    signal = known.rows * float(known.row_weights.mean()) * USUAL_VARIANCE * PRIOR_DEVIATION
    clear = CLEAR if len(known.labels) == 1 else CLEAR_OF_REST
    for rounds in range(MOST_ROUNDS, 0, -1):
        parts = sums * float(COUNT_SHARE * rounds / (1 - COUNT_SHARE - SUMS_SHARE))
        noise = float(counted.deviation) * (math.sqrt(parts) if counted.gaussian else parts)
        if signal >= clear * noise:
            return rounds
    return 0


def _is_hopeful(counted: Noisy, known: ClassRates, features: int, share: Fraction) -> bool:
    """Whether usual differences of class means, over all features, are larger than the noise of their sums."""
    noise = _estimate_noise(counted, features, share)
    return known.rows * USUAL_DIFFERENCE / 4 * math.sqrt(features) > noise


def _estimate_noise(counted: Noisy, features: int, share: Fraction) -> float:
    """The deviation of a sum by class for each feature, if the features share `share`."""
    parts = features * float(COUNT_SHARE / share)
    return float(counted.deviation) * (math.sqrt(parts) if counted.gaussian else parts)


def _average(one: Noisy, two: Noisy) -> Noisy:
    """The mean of two measurements of the same sums, weighted by their precision."""
    first, second = float(one.deviation) ** -2, float(two.deviation) ** -2
    sums = (one.sums * first + two.sums * second) / (first + second)
    return Noisy(sums, np.array((first + second) ** -0.5), one.gaussian)


def _ask_sums(source: StatisticSource, place: int, value: Powers | Moment) -> Statistic:
    feature = source.features[place]
    if isinstance(feature, Numeric):
        return Statistic(value, (Labels(),))
    return Statistic(None, (Codes(place), Labels()))


def _begin(source: StatisticSource, place: int, noisy: Noisy, known: ClassRates) -> Part:
    """Each weight as if its feature were the only one."""
    numeric = isinstance(source.features[place], Numeric)
    labels, chosen = noisy.sums.shape[0 if numeric else 1], list(known.labels)
    spread = (1 - known.rates) ** 2 + (labels - 1) * known.rates**2
    if numeric:
        rows, variance, noise, sums = known.rows, USUAL_VARIANCE, float(np.max(noisy.deviation)), noisy.sums
        if sums.ndim > 1:  # with the sums of 1 and x²
            rows = max(float(sums[:, 0].sum()), known.rows / 2)
            noise, second, sums = float(noisy.deviation[1]), float(sums[:, 2].sum()), sums[:, 1]
            spare = noise * math.sqrt(labels) / rows  # a variance that is lost in the noise counts as the usual one
            measured = max(second / rows - (sums.sum() / rows) ** 2, LEAST_VARIANCE)
            variance = float(np.clip((measured + spare * USUAL_VARIANCE) / (1 + spare), LEAST_VARIANCE, 1.0))
        centre = float(np.clip(sums.sum() / rows, -1.0, 1.0))
        counts = np.array([rows * variance])
        gradient = (sums[chosen] - known.rates * sums.sum())[None, :]
        cells, widths = None, np.ones(1)
    else:
        deviation, counts = float(noisy.deviation), noisy.sums.sum(axis=1)
        excess = noisy.sums[:, chosen] - counts[:, None] * known.rates
        bins = NoisyBins(counts, excess, deviation * math.sqrt(labels), deviation * np.sqrt(spread), known.row_weights)
        groups = merge_rare(bins)
        merged, widths, noise, centre = bins.merge(groups), np.bincount(groups).astype(np.float64), deviation, 0.0
        counts = np.maximum(merged.counts, max(3 * deviation * math.sqrt(labels), LEAST_COUNT))
        gradient, cells = merged.excess, CodeGroups(place, tuple(groups.tolist()))
    weights = counts[:, None] * known.row_weights
    variances = widths[:, None] * noise**2 * spread
    ridge = variances / (weights * PRIOR_DEVIATION**2)
    values = gradient / (weights + ridge)
    if not numeric:
        values = values - np.average(values, axis=0, weights=counts)
    return Part(place, cells, centre, counts, weights, gradient, values, variances / (weights + ridge) ** 2)


def _ask_residuals(model: AdditiveModel, parts: Sequence[Part], labels: tuple[int, ...]) -> list[Statistic]:
    """The sums of the residuals, then those of each part, for each score."""
    residuals = [Residual(model.score(number), "logistic", label) for number, label in enumerate(labels)]
    return [Statistic(residual) for residual in residuals] + [
        Statistic(replace(residual, times=part.feature)) if part.cells is None else Statistic(residual, (part.cells,))
        for part in parts
        for residual in residuals
    ]


def _step_intercepts(intercepts: Floats, noisy: Sequence[Noisy], known: ClassRates) -> Floats:
    gradient = -np.array([float(noisy_sum.sums) for noisy_sum in noisy])
    variance = np.array([float(noisy_sum.deviation) ** 2 for noisy_sum in noisy])
    weights = known.rows * known.row_weights * CURVED
    return intercepts + np.clip(gradient / (weights + variance / weights), -1.0, 1.0)


def _step(parts: Sequence[Part], noisy: Sequence[Noisy], scores: int, curvature: Curvature) -> list[Part]:
    """A Newton step for every weight."""
    whole = np.array([float(noisy_sum.sums) for noisy_sum in noisy[:scores]])
    gradients, variances = [], []
    for place, part in enumerate(parts, 1):
        measured = noisy[place * scores : (place + 1) * scores]
        sums = np.stack([noisy_sum.sums.reshape(-1) for noisy_sum in measured], axis=1)
        gradients.append(part.centre * whole - sums)
        variances.append(np.array([float(noisy_sum.deviation) ** 2 for noisy_sum in measured]) * (1 + part.centre**2))
    weights = [part.weights for part in parts]
    damping = curvature.choose_damping([part.values for part in parts], gradients, weights)
    moved = []
    for part, gradient, variance in zip(parts, gradients, variances, strict=True):
        held = part.values, part.variances
        values, left = take_step(held, gradient, part.weights, variance, min(damping, 1.9), PRIOR_DEVIATION)
        if part.cells is not None:
            values = values - np.average(values, axis=0, weights=part.counts)
        moved.append(replace(part, values=values, variances=left))
    return moved
