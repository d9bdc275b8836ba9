"""Randomisers of a number between public bounds, and the estimate of its mean from many reports."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, assert_never, overload

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import round_up, write_plain
from sfumato.local.mechanisms.coin_tables import UNITS
from sfumato.local.mechanisms.mean_tables import Ends, Mixture, Rows, Window
from sfumato.local.mechanisms.shifted_noise import ShiftedNoise
from sfumato.local.mechanisms.table_limits import PUBLISHED_DECIMAL
from sfumato.local.randomisers.gaussian_noise import find_least_gaussian
from sfumato.local.randomisers.given_values import read_values
from sfumato.local.randomisers.mean_values import (
    FloatArray,
    MeanTable,
    compute_second_moments,
    find_best_ends,
    find_best_mixture,
    find_best_window,
    list_report_floats,
    list_report_numbers,
    make_laplace_table,
)
from sfumato.local.randomisers.report_forms import Codes, Counts, check_reports, draw_in_blocks
from sfumato.local.randomisers.share_estimates import compute_normal_quantile, count_fakes
from sfumato.local.randomisers.tally import Tally
from sfumato.number_arguments import Number, read_positive_decimal, read_probability, read_whole_number

MEAN_NAMES = ("duchi", "piecewise", "hybrid", "laplace")
DELTA_NAMES = ("gaussian",)  # with a delta


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """An unbiased estimate of the population's mean; `consistent` is the nearest mean within the bounds.

    `low` and `high` are a confidence interval, and `error` is the standard error, for the population: they cover the
    coins, the rounding and the random draw of the people. Bias from clamping to the bounds, from people who do not
    answer and from untruthful reports is not covered.
    """

    mean: float
    low: float
    high: float
    consistent: float
    error: float
    people: int
    confidence: float
    extremes: tuple[float, float]  # the least and the greatest number that a report stands for

    def honest_range(self, share: Number) -> tuple[float, float]:
        """If up to this share of the reports are fake: the least and the greatest estimate from the honest reports."""
        fakes = count_fakes(share, self.people)
        least, greatest = self.extremes
        total, honest = self.mean * self.people, self.people - fakes
        return (total - fakes * greatest) / honest, (total - fakes * least) / honest

    def worst_shift(self, share: Number) -> float:
        """By how much this share of fake reports can have moved the estimate, at worst."""
        low, high = self.honest_range(share)
        return max(self.mean - low, high - self.mean)

    def __str__(self) -> str:
        level = f"{100 * self.confidence:g} %"
        lines = [
            f"{self.people:,} reports. Mean: {self.mean:.6g} (unbiased), {level} confidence interval {self.low:.6g} to "
            f"{self.high:.6g} for the population. Within the bounds: {self.consistent:.6g}.",
            "The interval covers the randomisation and the sampling of the people. It does not cover fake reports, or "
            "the bias of numbers that were clamped to the bounds.",
        ]
        if self.people > 1:
            moved = self.worst_shift("0.01")
            lines.append(f"If 1 % of the reports are fake, they can have moved the estimate by up to {moved:.4g}.")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class MeanRandomiser:
    """A table for numbers from `lower` to `upper`. A number outside is clamped to the nearer bound."""

    name: str
    lower: Decimal
    upper: Decimal
    table: MeanTable

    def __post_init__(self) -> None:
        if not 0 < self.span < math.inf:
            raise InvalidParameter("upper", "must be above lower", "less, as much, or too far away")
        list_report_numbers(self.table)  # refuses a table whose reports say nothing about the number

    def __repr__(self) -> str:
        bounds = f"from {write_plain(self.lower)} to {write_plain(self.upper)}"
        delta = f", delta {write_plain(self.delta)}" if self.delta else ""
        return f"<{self.name} {bounds}, epsilon {write_plain(self.epsilon)}{delta}>"

    @property
    def epsilon(self) -> Decimal:
        """The privacy loss of one report, computed from the table and rounded up at the thirtieth digit."""
        return self.table.epsilon

    @property
    def delta(self) -> Decimal:
        """The delta of one report at this epsilon, computed from the table and rounded up; 0 for a pure table."""
        return self.table.delta if isinstance(self.table, ShiftedNoise) else Decimal(0)

    @property
    def span(self) -> float:
        return float(self.upper) - float(self.lower)

    @property
    def form(self) -> Codes:
        return Codes(self.table.outputs)

    def describe(self) -> dict[str, object]:
        """The published table: plain numbers and text, from which `rebuild` makes the same randomiser."""
        about: dict[str, object] = {
            "mechanism": self.name,
            "lower": write_plain(self.lower),
            "upper": write_plain(self.upper),
        }
        match self.table:
            case Ends(keep=keep):
                return {**about, "coins": {"keep": keep}}
            case Window(steps, width, inside):
                return {**about, "steps": steps, "width": width, "coins": {"inside": inside}}
            case Mixture(windowed, Window(steps, width, inside), Ends(keep=keep)):
                coins = {"piecewise": windowed, "inside": inside, "keep": keep}
                return {**about, "steps": steps, "width": width, "coins": coins}
            case Rows(rows):
                return {**about, "table": [list(row) for row in rows]}
            case ShiftedNoise(steps, noise, epsilon):
                return {**about, "steps": steps, "noise": list(noise), "epsilon": write_plain(epsilon)}
            case _:
                assert_never(self.table)

    def positions(self, values: object) -> tuple[Counts, bool]:
        """The positions of numbers between the bounds, in 2**32 steps, and whether the input was a single number."""
        read = read_values(values, "values")
        inside = np.clip(read.flat.astype(np.float64), float(self.lower), float(self.upper))
        places = np.floor((inside - float(self.lower)) / self.span * UNITS + 0.5).astype(np.int64)
        return np.clip(places, 0, UNITS), read.shape is None

    @overload
    def randomise(self, values: float) -> int: ...
    @overload
    def randomise(self, values: Sequence[float] | npt.NDArray[Any]) -> Counts: ...
    @overload
    def randomise(self, values: object) -> int | Counts: ...
    def randomise(self, values: object) -> int | Counts:
        """Randomise the number of one person, or of an array of people. Each person reports once."""
        flat, single = self.positions(values)
        reports = draw_in_blocks(self.table.draw, flat, self.form, SYSTEM)
        return self.form.take_single(reports) if single else reports

    def tally(self, reports: object) -> Tally:
        """Count well-formed reports, by value."""
        checked = check_reports(self.form, reports)
        return Tally(len(checked), np.bincount(checked, minlength=self.table.outputs))

    def estimate(self, reports: object, confidence: Number = "0.95") -> MeanEstimate:
        """Estimate the mean of the population, from reports or from a tally of them."""
        tally = reports if isinstance(reports, Tally) else self.tally(reports)
        if tally.counts.size != self.table.outputs:
            raise InvalidParameter("tally", f"must have {self.table.outputs} counts", "another number of them")
        if not tally.people:
            raise InvalidParameter("reports", "must hold at least one report", "none")
        level = read_probability(confidence, "confidence")
        numbers = list_report_floats(self.table)
        shares = tally.counts / tally.people
        mean = float(shares @ numbers)
        spread = float(shares @ (numbers - mean) ** 2) * tally.people / max(tally.people - 1, 1)
        if tally.people == 1:
            spread = self._find_greatest_variance()
        error = math.sqrt(spread / tally.people)
        reach = compute_normal_quantile(1 - level) * error
        low, unbiased, high = (float(self.lower) + self.span * place for place in (mean - reach, mean, mean + reach))
        return MeanEstimate(
            mean=unbiased,
            low=low,
            high=high,
            consistent=min(max(unbiased, float(self.lower)), float(self.upper)),
            error=self.span * error,
            people=tally.people,
            confidence=float(level),
            extremes=(
                float(self.lower) + self.span * float(numbers.min()),
                float(self.lower) + self.span * float(numbers.max()),
            ),
        )

    def variance_asked(self, value: float) -> float:
        """The variance of what one person's report stands for, given the person's number."""
        place = int(self.positions(value)[0][0]) / UNITS
        seconds = compute_second_moments(self.table)
        return self.span**2 * (float(np.interp(place, np.linspace(0, 1, seconds.size), seconds)) - place**2)

    def margin(self, people: int, confidence: Number = "0.95") -> float:
        """The half-width of the confidence interval of the mean, before collecting, for the worst population.

        The interval covers the randomisation and the sampling of the people, by the normal approximation.
        """
        quantile = compute_normal_quantile(1 - read_probability(confidence, "confidence"))
        return quantile * self.span * math.sqrt(self._find_greatest_variance() / read_whole_number(people, "people", 1))

    def _find_greatest_variance(self) -> float:
        """The greatest variance of a report, over all populations, on the scale from 0 to 1.

        For a population with mean m, the variance is at most the upper hull of the second moments at m, minus m**2.
        """
        seconds = compute_second_moments(self.table)
        places = np.linspace(0, 1, seconds.size)
        hull: list[int] = []
        for index in range(seconds.size):
            while len(hull) > 1 and _is_below(places, seconds, hull[-2], hull[-1], index):
                hull.pop()
            hull.append(index)
        widest = 0.0
        for first, last in pairwise(hull):
            slope = (seconds[last] - seconds[first]) / (places[last] - places[first])
            mean = min(max(slope / 2, places[first]), places[last])
            widest = max(widest, float(seconds[first] + slope * (mean - places[first]) - mean**2))
        return widest


def mean_randomiser(
    name: str, *, lower: Number, upper: Number, epsilon: Number, delta: Number | None = None
) -> MeanRandomiser:
    """The randomiser of this name with the most informative table over 2**32 that costs at most epsilon (and delta).

    "duchi" (one bit), "piecewise", "hybrid" (the least variance for most epsilons), "laplace" (for teaching), and
    "gaussian", which has a delta and a greater variance than "hybrid" at the same epsilon.
    """
    if (delta is not None) != (name in DELTA_NAMES):
        raise InvalidParameter("delta", "is needed for gaussian, and only for it", "none" if delta is None else "one")
    exact, low, high = (
        read_positive_decimal(epsilon, "epsilon"),
        _read_bound(lower, "lower"),
        _read_bound(upper, "upper"),
    )
    match name:
        case "duchi":
            return MeanRandomiser(name, low, high, find_best_ends(exact))
        case "piecewise":
            return MeanRandomiser(name, low, high, find_best_window(exact))
        case "hybrid":
            return MeanRandomiser(name, low, high, find_best_mixture(exact))
        case "laplace":
            return MeanRandomiser(name, low, high, make_laplace_table(exact))
        case "gaussian":
            share = round_up(read_probability(delta, "delta"))
            return MeanRandomiser(name, low, high, find_least_gaussian(exact, share))
        case _:
            raise InvalidParameter("name", f"must be one of {', '.join((*MEAN_NAMES, *DELTA_NAMES))}", "another name")


def rebuild_mean(description: object) -> MeanRandomiser:
    """The randomiser of a published table. A document that is not exactly such a table is refused."""
    if not isinstance(description, Mapping):
        raise InvalidParameter("description", "must be the published table of a mean", describe_kind(description))
    rest = {key: value for key, value in description.items() if key not in ("mechanism", "lower", "upper")}
    name = description.get("mechanism")
    low, high = _read_bound(description.get("lower"), "lower"), _read_bound(description.get("upper"), "upper")
    match name, rest:
        case "duchi", {"coins": {"keep": keep, **more}, **others} if not more and not others:
            return MeanRandomiser("duchi", low, high, Ends(keep))
        case "piecewise", {"steps": steps, "width": width, "coins": {"inside": inside, **more}, **others} if (
            not more and not others
        ):
            return MeanRandomiser("piecewise", low, high, Window(steps, width, inside))
        case "hybrid", {
            "steps": steps,
            "width": width,
            "coins": {"piecewise": windowed, "inside": inside, "keep": keep, **more},
            **others,
        } if not more and not others:
            table = Mixture(windowed, Window(steps, width, inside), Ends(keep))
            return MeanRandomiser("hybrid", low, high, table)
        case "laplace", {"table": list(rows), **others} if not others and all(isinstance(row, list) for row in rows):
            return MeanRandomiser("laplace", low, high, Rows(tuple(tuple(row) for row in rows)))
        case "gaussian", {"steps": steps, "noise": list(noise), "epsilon": str(epsilon), **others} if (
            not others and PUBLISHED_DECIMAL.fullmatch(epsilon)
        ):
            point = read_positive_decimal(epsilon, "epsilon")
            return MeanRandomiser("gaussian", low, high, ShiftedNoise(steps, tuple(noise), point))
    raise InvalidParameter("description", "must be the published table of a mean", "another document")


def _is_below(places: FloatArray, heights: FloatArray, first: int, middle: int, last: int) -> bool:
    """Does the middle point lie on or below the line from the first to the last?"""
    rise = (heights[last] - heights[first]) * (places[middle] - places[first])
    return bool((heights[middle] - heights[first]) * (places[last] - places[first]) <= rise)


def _read_bound(value: object, name: str) -> Decimal:
    rule = "must be a finite number"
    match value:
        case bool() | np.bool_():
            raise InvalidParameter(name, rule, describe_kind(value))
        case int() | np.integer():
            bound = Decimal(int(value))
        case float() | np.floating():
            bound = Decimal(repr(float(value)))
        case Decimal():
            bound = value
        case str():
            try:
                bound = Decimal(value)
            except InvalidOperation:
                raise InvalidParameter(name, rule, "text that is no number") from None
        case _:
            raise InvalidParameter(name, rule, describe_kind(value))
    if not bound.is_finite() or not math.isfinite(float(bound)):
        raise InvalidParameter(name, rule, "another")
    return bound
