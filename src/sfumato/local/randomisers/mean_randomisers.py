"""Randomisers of a number between public bounds, and the mean that a crowd of reports tells."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import plain
from sfumato.kernel.grid import read_values
from sfumato.kernel.parameters import Number, kind_of, positive_decimal, probability_inside, whole_number
from sfumato.local.mechanisms.coin_tables import UNITS
from sfumato.local.mechanisms.mean_tables import Ends, MeanTable, Mixture, Rows, Window
from sfumato.local.mechanisms.report_forms import CELLS_AT_ONCE, Codes, Counts, Reports, well_formed
from sfumato.local.randomisers.share_estimates import normal_quantile
from sfumato.local.randomisers.tally import Tally

FloatArray = npt.NDArray[np.float64]
MEAN_NAMES = ("duchi", "piecewise", "hybrid", "laplace")


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """The mean of the population, unbiased, with an interval; `consistent` is the nearest mean within the bounds.

    `error` is the standard error for the population: coins, rounding and the draw of the people. For the people who
    were asked it is smaller, by what their answers differ among themselves.
    """

    mean: float
    low: float
    high: float
    consistent: float
    error: float
    people: int
    confidence: float
    extremes: tuple[float, float]  # the least and the greatest number that one report stands for

    def without_fakes(self, share: Number) -> tuple[float, float]:
        """If up to this share of the reports were made up, where the mean of the honest ones lies."""
        fakes = math.ceil(probability_inside(share, "share") * self.people)
        if fakes >= self.people:
            raise InvalidParameter("share", "must leave at least one honest report", "more")
        least, greatest = self.extremes
        total, honest = self.mean * self.people, self.people - fakes
        return (total - fakes * greatest) / honest, (total - fakes * least) / honest

    def moved_by(self, share: Number) -> float:
        """How far this share of made-up reports, the worst ones, could have moved the mean."""
        low, high = self.without_fakes(share)
        return max(self.mean - low, high - self.mean)

    def __str__(self) -> str:
        level = f"{100 * self.confidence:g} %"
        lines = [
            f"{self.people:,} reports: unbiased mean {self.mean:.6g}, {level} interval for the population "
            f"{self.low:.6g} to {self.high:.6g}; consistent with the bounds {self.consistent:.6g}"
        ]
        if self.people > 1:
            lines.append(
                f"If 1 % of the reports were made up, it could have moved by up to {self.moved_by('0.01'):.4g}."
            )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class MeanRandomiser:
    """A table for numbers from `lower` to `upper`; what lies outside is taken as the nearer bound."""

    name: str
    lower: Decimal
    upper: Decimal
    table: MeanTable

    def __post_init__(self) -> None:
        if not 0 < self.span < math.inf:
            raise InvalidParameter("upper", "must be above lower", "less, as much, or too far away")

    def __repr__(self) -> str:
        return f"<{self.name} from {plain(self.lower)} to {plain(self.upper)}, epsilon {plain(self.epsilon)}>"

    @property
    def epsilon(self) -> Decimal:
        """The loss of one report: a fact of the table, rounded up at the thirtieth digit."""
        return self.table.epsilon

    @property
    def span(self) -> float:
        return float(self.upper) - float(self.lower)

    @property
    def form(self) -> Codes:
        return Codes(self.table.outputs)

    def describe(self) -> dict[str, object]:
        """The published table: plain numbers and text, from which `rebuild` makes the same again."""
        about: dict[str, object] = {"mechanism": self.name, "lower": plain(self.lower), "upper": plain(self.upper)}
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

    def positions(self, values: object) -> tuple[Counts, bool]:
        """Where numbers lie between the bounds, in 2**32 steps: off by at most half a step. And whether it was one."""
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
        """Reports on the number of one person, or of an array of people. Each person reports once."""
        flat, single = self.positions(values)
        reports = np.empty(flat.size, np.int64)
        for start in range(0, flat.size, CELLS_AT_ONCE):
            part = flat[start : start + CELLS_AT_ONCE]
            reports[start : start + part.size] = self.table.draw(part, SYSTEM)
        return self.form.one(reports) if single else reports

    def tally(self, reports: object) -> Tally:
        """What a collector keeps of well-formed reports: how many there were of each kind."""
        kept: Reports = well_formed(self.form, reports)
        return Tally(len(kept), np.bincount(kept, minlength=self.table.outputs))

    def estimate(self, reports: object, confidence: Number = "0.95") -> MeanEstimate:
        """The mean of the population, from reports or from a tally of them."""
        tally = reports if isinstance(reports, Tally) else self.tally(reports)
        if tally.counts.size != self.table.outputs:
            raise InvalidParameter("tally", f"must have {self.table.outputs} counts", "another number of them")
        if not tally.people:
            raise InvalidParameter("reports", "must hold at least one report", "none")
        level = probability_inside(confidence, "confidence")
        numbers = self.numbers()
        shares = tally.counts / tally.people
        mean = float(shares @ numbers)
        spread = float(shares @ (numbers - mean) ** 2) * tally.people / max(tally.people - 1, 1)
        if tally.people == 1:
            spread = self._widest()
        error = math.sqrt(spread / tally.people)
        reach = normal_quantile(1 - level) * error
        low, unbiased, high = (float(self.lower) + self.span * each for each in (mean - reach, mean, mean + reach))
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

    def numbers(self) -> FloatArray:
        """What each report stands for, on a scale on which the bounds are 0 and 1."""
        return _numbers(self.table)

    def variance_asked(self, value: float) -> float:
        """The variance of what one person's report stands for, given the person's number."""
        place = int(self.positions(value)[0][0]) / UNITS
        seconds = _second_moments(self.table)
        return self.span**2 * (float(np.interp(place, np.linspace(0, 1, seconds.size), seconds)) - place**2)

    def margin(self, people: int, confidence: Number = "0.95") -> float:
        """Before collecting: how far the mean will be off at most, whatever the population."""
        quantile = normal_quantile(1 - probability_inside(confidence, "confidence"))
        return quantile * self.span * math.sqrt(self._widest() / whole_number(people, "people", 1))

    def _widest(self) -> float:
        """The greatest variance of a report, over all populations, on the scale from 0 to 1.

        A population with mean m has at most the upper hull of the second moments at m, less m squared.
        """
        seconds = _second_moments(self.table)
        places = np.linspace(0, 1, seconds.size)
        hull: list[int] = []
        for index in range(seconds.size):
            while len(hull) > 1 and _below(places, seconds, hull[-2], hull[-1], index):
                hull.pop()
            hull.append(index)
        widest = 0.0
        for first, last in pairwise(hull):
            slope = (seconds[last] - seconds[first]) / (places[last] - places[first])
            mean = min(max(slope / 2, places[first]), places[last])
            widest = max(widest, float(seconds[first] + slope * (mean - places[first]) - mean**2))
        return widest


def mean_randomiser(name: str, *, lower: Number, upper: Number, epsilon: Number) -> MeanRandomiser:
    """The randomiser of this name with the most telling table over 2**32 that costs at most epsilon.

    "duchi" (one bit), "piecewise", "hybrid" (the least variance for most epsilons), "laplace" (for teaching).
    """
    exact, low, high = positive_decimal(epsilon, "epsilon"), _bound(lower, "lower"), _bound(upper, "upper")
    match name:
        case "duchi":
            return MeanRandomiser(name, low, high, Ends.for_epsilon(exact))
        case "piecewise":
            return MeanRandomiser(name, low, high, Window.for_epsilon(exact))
        case "hybrid":
            return MeanRandomiser(name, low, high, Mixture.for_epsilon(exact))
        case "laplace":
            return MeanRandomiser(name, low, high, Rows.laplace(exact))
        case _:
            raise InvalidParameter("name", f"must be one of {', '.join(MEAN_NAMES)}", "another name")


def rebuild_mean(description: object) -> MeanRandomiser:
    """The randomiser of a published table; whatever is not exactly such a table is refused."""
    if not isinstance(description, Mapping):
        raise InvalidParameter("description", "must be the published table of a mean", kind_of(description))
    rest = {key: value for key, value in description.items() if key not in ("mechanism", "lower", "upper")}
    name = description.get("mechanism")
    low, high = _bound(description.get("lower"), "lower"), _bound(description.get("upper"), "upper")
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
    raise InvalidParameter("description", "must be the published table of a mean", "a document that is none")


@lru_cache(maxsize=64)
def _numbers(table: MeanTable) -> FloatArray:
    return np.array([float(each) for each in table.numbers])


@lru_cache(maxsize=64)
def _second_moments(table: MeanTable) -> FloatArray:
    """The expected square of what a report stands for, from each step of the grid."""
    squares = _numbers(table) ** 2
    match table:
        case Window():
            high, low = (float(each) for each in table.levels)
            sums = np.concatenate(([0.0], np.cumsum(squares)))
            inside: FloatArray = sums[table.width :] - sums[: -table.width]
            return float(low * sums[-1]) + (high - low) * inside
        case Mixture():
            share = table.windowed / UNITS
            low_end, high_end = _second_moments(table.ends).tolist()
            ends = np.linspace(low_end, high_end, table.steps + 1)
            return share * _second_moments(table.window) + (1 - share) * ends
        case _:
            return np.array([np.array(table.row(step), np.float64) @ squares for step in range(table.steps + 1)])


def _below(places: FloatArray, heights: FloatArray, first: int, middle: int, last: int) -> bool:
    """Does the middle point lie on or below the line from the first to the last?"""
    rise = (heights[last] - heights[first]) * (places[middle] - places[first])
    return bool((heights[middle] - heights[first]) * (places[last] - places[first]) <= rise)


def _bound(value: object, name: str) -> Decimal:
    rule = "must be a finite number"
    match value:
        case bool() | np.bool_():
            raise InvalidParameter(name, rule, kind_of(value))
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
                raise InvalidParameter(name, rule, "text that is none") from None
        case _:
            raise InvalidParameter(name, rule, kind_of(value))
    if not bound.is_finite() or not math.isfinite(float(bound)):
        raise InvalidParameter(name, rule, "another")
    return bound
