"""The parts of a figure: axes, marks and panels.

A colour is named by its role, so that the naive release looks the same in every figure, in light and in dark mode.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["naive", "protected", "limit", "first", "second", "plain"]
Points: TypeAlias = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high`. `ticks` are (place, text); None chooses round numbers."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] | None = None
    log: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points. A mark with a name has an entry in the legend."""

    points: Points
    role: Role
    name: str = ""
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Dots:
    """A mark at each point."""

    points: Points
    role: Role
    name: str = ""
    shape: Literal["circle", "square", "cross"] = "circle"
    size: float = 3.0


@dataclass(frozen=True, slots=True)
class Bars:
    """Upright bars: (left, right, height) each."""

    bars: tuple[tuple[float, float, float], ...]
    role: Role
    name: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """The area between two lines: (x, low, high) each."""

    edges: tuple[tuple[float, float, float], ...]
    role: Role
    name: str = ""


@dataclass(frozen=True, slots=True)
class Strokes:
    """Upright strokes at many x, from `low` to `high`. Also whiskers, with one x."""

    places: tuple[float, ...]
    low: float
    high: float
    role: Role
    name: str = ""
    width: float = 1.0


@dataclass(frozen=True, slots=True)
class Rule:
    """A dashed line across the whole panel, at one x or at one y, with a text."""

    role: Role
    x: float | None = None
    y: float | None = None
    text: str = ""
    below: bool = False  # the text of a level line


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a point."""

    x: float
    y: float
    text: str
    role: Role = "plain"
    anchor: Literal["start", "middle", "end"] = "middle"


Mark: TypeAlias = Line | Dots | Bars | Band | Strokes | Rule | Label


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing with two axes. `alt` says in words what a reader sees."""

    title: str
    alt: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    height: int = 260
