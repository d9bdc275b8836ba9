"""The function of each feature in an additive model, with a band for its noise, and its plot."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Band, Line, Mark, Panel, Role, Rule, Strokes
from sfumato.kernel.expressions import Scalar
from sfumato.learning.additive_model import AdditiveModel, Term
from sfumato.learning.feature_columns import Coded, Feature, Numeric
from sfumato.learning.row_cells import Bins, CodeGroups, Floats

DEVIATIONS = 1.96  # of the noise: a band holds the function without noise in about 95 of 100 fits
MOST_TICKS = 8
ROLES: tuple[Role, ...] = ("protected", "naive", "first", "second")


@dataclass(frozen=True, slots=True)
class ShapeFunction:
    """What a feature adds to a score, by bin or by category.

    A numeric feature has `edges`: bin i lies between edges i and i + 1. A coded feature has `categories`. `values` has
    one row for each bin or category, and one column for each score. `low` and `high` are a band of ±1.96 deviations of
    the noise that was added for privacy. The band does not contain sampling error or the error of merged bins.
    """

    name: str
    edges: tuple[float, ...] | None
    categories: tuple[Scalar, ...] | None
    values: Floats = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)


def list_shape_functions(model: AdditiveModel, features: Sequence[Feature]) -> tuple[ShapeFunction, ...]:
    """One for each feature, in their order. A feature that the model leaves out has the function 0."""
    terms = {term.cells.feature: term for term in model.terms}
    scores = len(model.intercepts)
    return tuple(_describe(feature, terms.get(place), scores) for place, feature in enumerate(features))


def _describe(feature: Feature, term: Term | None, scores: int) -> ShapeFunction:
    edges: tuple[float, ...] | None = None
    categories: tuple[Scalar, ...] | None = None
    match feature:
        case Numeric(lower=lower, upper=upper):
            inner = term.cells.edges if term is not None and isinstance(term.cells, Bins) else ()
            edges = (lower, *inner, upper)
            places = np.arange(len(inner) + 1)
        case Coded(categories=values):
            categories = values
            groups = term.cells.groups if term is not None and isinstance(term.cells, CodeGroups) else ()
            places = np.array(groups or [0] * len(categories))
        case _:
            assert_never(feature)
    if term is None:
        zero = np.zeros((len(places), scores))
        return ShapeFunction(feature.name, edges, categories, zero, zero, zero)
    middle, margin = term.values[places], DEVIATIONS * term.deviations[places]
    return ShapeFunction(feature.name, edges, categories, middle, middle - margin, middle + margin)


def plot_shape_functions(
    shapes: Sequence[ShapeFunction], scores: Sequence[str], unit: str, title: str = "Shape functions"
) -> Figure:
    """A panel for each feature: its function as a line, and the band of its noise. All have the same vertical axis."""
    limit = 1.4 * max((float(np.abs(shape.values).max()) for shape in shapes), default=0.0) or 1.0
    panels = tuple(_draw_panel(shape, scores, unit, limit) for shape in shapes)
    caption = "Bands: ±1.96 standard deviations of the noise that was added for privacy, without sampling error. "
    caption += "A wide band may reach beyond its panel."
    return Figure(title, panels, caption)


def _draw_panel(shape: ShapeFunction, scores: Sequence[str], unit: str, limit: float) -> Panel:
    marks: list[Mark] = [Rule("limit", y=0.0)]
    several = len(scores) > 1
    for number, score in enumerate(scores):
        role = ROLES[number % len(ROLES)]
        columns = (shape.values[:, number], shape.low[:, number], shape.high[:, number])
        marks += _draw_function(shape, columns, role, score if several else "")
    return Panel(shape.name, _say(shape), _find_axis(shape), Axis(unit, -limit, limit), tuple(marks), height=200)


def _draw_function(
    shape: ShapeFunction, columns: tuple[Floats, Floats, Floats], role: Role, name: str
) -> tuple[Mark, ...]:
    """Steps with a band for a number; a short line with a whisker for each category."""
    values, low, high = ([float(value) for value in column] for column in columns)
    if shape.edges is not None:
        ends = list(zip(shape.edges, shape.edges[1:], strict=False))
        line = tuple((x, value) for pair, value in zip(ends, values, strict=True) for x in pair)
        band = tuple((x, *both) for pair, both in zip(ends, zip(low, high, strict=True), strict=True) for x in pair)
        return Band(band, role), Line(line, role, name)
    flat = [
        Line(((place - 0.35, value), (place + 0.35, value)), role, name if place == 0 else "")
        for place, value in enumerate(values)
    ]
    whiskers = [
        Strokes((float(place),), *both, role, width=1.5) for place, both in enumerate(zip(low, high, strict=True))
    ]
    return (*whiskers, *flat)


def _find_axis(shape: ShapeFunction) -> Axis:
    if shape.edges is not None:
        lower, upper = shape.edges[0], shape.edges[-1]
        return Axis("", lower, upper if upper > lower else lower + 1)
    categories = shape.categories or ()
    apart = -(-len(categories) // MOST_TICKS)
    ticks = tuple((float(place), _shorten(str(categories[place]))) for place in range(0, len(categories), apart))
    return Axis("", -0.5, len(categories) - 0.5, ticks)


def _shorten(text: str) -> str:
    return text if len(text) <= 8 else text[:7] + "…"


def _say(shape: ShapeFunction) -> str:
    kind = "bins" if shape.edges is not None else "categories"
    low, high = float(shape.values.min(initial=0.0)), float(shape.values.max(initial=0.0))
    return f"{shape.name}: {len(shape.values)} {kind}, from {low:.2f} to {high:.2f}."
