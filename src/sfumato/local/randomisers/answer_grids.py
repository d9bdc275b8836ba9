"""Surveys of numbers in bins, and of two questions at once: their labels, and what can be read from their reports."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.randomisers.share_estimates import FloatArray
from sfumato.local.randomisers.tally import Tally
from sfumato.local.randomisers.weighted_estimates import (
    WeightedEstimate,
    estimate_distribution,
    estimate_weighted,
)
from sfumato.number_arguments import Number, read_probability, read_whole_number

MOST_BINS = 1000


@dataclass(frozen=True, slots=True)
class QuantileBounds:
    """The quantile lies between these two edges of bins, with the stated confidence."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class NumberBins:
    """Equal bins between public bounds. Each person reports the bin of a number; numbers outside go to the end bins.

    `new_survey(labels=bins.labels, ...)` asks for a bin, and `bins.place(number)` is the answer.
    """

    lower: float
    upper: float
    count: int

    def __post_init__(self) -> None:
        if not 2 <= read_whole_number(self.count, "count", 2) <= MOST_BINS:
            raise InvalidParameter("count", f"must be from 2 to {MOST_BINS}", "another number")
        if not np.isfinite([self.lower, self.upper]).all() or self.lower >= self.upper:
            raise InvalidParameter("upper", "must be finite and above lower", "something else")

    @property
    def edges(self) -> FloatArray:
        return np.linspace(self.lower, self.upper, self.count + 1)

    @property
    def labels(self) -> list[str]:
        return [f"{low:g} to {high:g}" for low, high in zip(self.edges[:-1], self.edges[1:], strict=True)]

    def place(self, number: float) -> int:
        """The bin of a number. A number on an edge belongs to the upper bin."""
        if not np.isfinite(number):
            raise InvalidParameter("value", "must be a finite number", "something else")
        return int(np.clip(np.searchsorted(self.edges, number, side="right") - 1, 0, self.count - 1))

    def mean(self, table: Randomiser, tally: Tally, confidence: Number = "0.95") -> WeightedEstimate:
        """The mean of the bins' middles. It differs from the mean of the numbers by at most half a bin."""
        return estimate_weighted(table, tally, self._middles, confidence)

    def variance(self, table: Randomiser, tally: Tally, confidence: Number = "0.95") -> WeightedEstimate:
        """The variance of the bins' middles. To first order, the error of the mean does not move it."""
        middle = self.mean(table, tally).value
        found = estimate_weighted(table, tally, (self._middles - middle) ** 2, confidence)
        return WeightedEstimate(found.value, max(found.low, 0.0), found.high)

    def quantile(self, table: Randomiser, tally: Tally, share: Number, confidence: Number = "0.95") -> QuantileBounds:
        """Edges between which this quantile lies: those where the distribution function may have the value `share`."""
        wanted = float(read_probability(share, "share"))
        found = estimate_distribution(table, tally, confidence)
        below = [place for place, step in enumerate(found[:-1]) if step.high < wanted]
        above = [place for place, step in enumerate(found[:-1]) if step.low > wanted]
        low = max(below) + 1 if below else 0
        high = min(above) + 1 if above else self.count
        return QuantileBounds(float(self.edges[min(low, high)]), float(self.edges[max(low, high)]))

    @property
    def _middles(self) -> FloatArray:
        middles: FloatArray = (self.edges[:-1] + self.edges[1:]) / 2
        return middles


@dataclass(frozen=True, slots=True)
class CrossTab:
    """Two questions whose answers are reported together, so that their connection can be estimated.

    `new_survey(labels=tab.labels, ...)` asks for a pair, and `tab.place(row, column)` is the answer.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, labels in (("rows", self.rows), ("columns", self.columns)):
            if len(labels) < 2 or len(set(labels)) != len(labels):
                raise InvalidParameter(name, "must be two or more different labels", "others")

    @property
    def labels(self) -> list[str]:
        return [f"{row} / {column}" for row, column in product(self.rows, self.columns)]

    def place(self, row: str, column: str) -> int:
        if row not in self.rows or column not in self.columns:
            raise InvalidParameter("value", "must be one of the labels of each question", "another")
        return self.rows.index(row) * len(self.columns) + self.columns.index(column)

    def cell(
        self, table: Randomiser, tally: Tally, row: str, column: str, confidence: Number = "0.95"
    ) -> WeightedEstimate:
        """The share of people with this pair of answers."""
        weights = np.zeros(table.k)
        weights[self.place(row, column)] = 1
        return estimate_weighted(table, tally, weights, confidence)

    def row(self, table: Randomiser, tally: Tally, row: str, confidence: Number = "0.95") -> WeightedEstimate:
        """The share of people with this answer to the first question."""
        return self._sum(table, tally, [self.place(row, column) for column in self.columns], confidence)

    def column(self, table: Randomiser, tally: Tally, column: str, confidence: Number = "0.95") -> WeightedEstimate:
        """The share of people with this answer to the second question."""
        return self._sum(table, tally, [self.place(row, column) for row in self.rows], confidence)

    def dependence(
        self, table: Randomiser, tally: Tally, row: str, column: str, confidence: Number = "0.95"
    ) -> WeightedEstimate:
        """The share of the pair minus what independent answers would have. To first order, margins do not widen it."""
        down, across = self.row(table, tally, row).value, self.column(table, tally, column).value
        weights = np.zeros(table.k)
        for place, (first, second) in enumerate(product(self.rows, self.columns)):
            weights[place] = ((first == row) - down) * ((second == column) - across)
        return estimate_weighted(table, tally, weights, confidence)

    def _sum(self, table: Randomiser, tally: Tally, places: list[int], confidence: Number) -> WeightedEstimate:
        weights = np.zeros(table.k)
        weights[places] = 1
        return estimate_weighted(table, tally, weights, confidence)
