"""An additive model: an intercept and one function of each feature, which is constant on bins or on groups of codes."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sfumato.learning.feature_columns import Coded, Feature, Numeric
from sfumato.learning.row_cells import Bins, CodeGroups, Floats, Integers
from sfumato.learning.row_functions import Score

TermCells: TypeAlias = Bins | CodeGroups


@dataclass(frozen=True, slots=True)
class Term:
    """The function of one feature: a value for each cell and each score, and the deviation of its noise."""

    cells: TermCells
    values: Floats  # cells x scores
    deviations: Floats


@dataclass(frozen=True, slots=True)
class Slope:
    """A weight of a scaled numeric feature for each score."""

    feature: int
    values: Floats


@dataclass(frozen=True, slots=True)
class AdditiveModel:
    """One or more scores of a row. Features without a term or a slope add nothing."""

    intercepts: Floats
    terms: tuple[Term, ...]
    slopes: tuple[Slope, ...] = ()

    def score(self, number: int) -> Score:
        """The score of this number, as a row function reads it."""
        tables = tuple((term.cells, tuple(map(float, term.values[:, number]))) for term in self.terms)
        weights = tuple((slope.feature, float(slope.values[number])) for slope in self.slopes)
        return Score(float(self.intercepts[number]), tables, weights)

    def rescale(self, factor: float, offset: float) -> "AdditiveModel":
        """The model whose scores are those of this one, times a factor, plus an offset."""
        terms = tuple(Term(term.cells, term.values * factor, term.deviations * factor) for term in self.terms)
        slopes = tuple(Slope(slope.feature, slope.values * factor) for slope in self.slopes)
        return AdditiveModel(self.intercepts * factor + offset, terms, slopes)


def divide_feature(place: int, feature: Feature, bins: int) -> TermCells:
    """The cells that a feature is first measured on: bins of equal width between the bounds, or its categories."""
    match feature:
        case Numeric(_, lower, upper):
            edges = np.linspace(lower, upper, bins + 1)[1:-1]
            return Bins(place, tuple(sorted({float(edge) for edge in edges if lower < edge <= upper})))
        case Coded(_, categories):
            return CodeGroups(place, tuple(range(len(categories))))


def group_cells(cells: TermCells, groups: Integers) -> TermCells:
    """The cells after merging: cells with the same group become one."""
    match cells:
        case Bins(place, edges):
            ends = np.flatnonzero(np.diff(groups))
            return Bins(place, tuple(edges[end] for end in ends))
        case CodeGroups(place, before):
            return CodeGroups(place, tuple(int(groups[number]) for number in before))
