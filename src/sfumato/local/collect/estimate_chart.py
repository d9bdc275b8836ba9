# ruff: noqa: PLC0415 - altair is imported when something is drawn
"""The chart of a survey's results: unbiased estimates with their intervals, and dots for the consistent ones."""

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sfumato.drawing.plot import BAR, DOT, INK, LETTER, Plot, wrap_caption

WIDTH = 480  # pixels of the drawing itself
TITLE_LETTER = 1.4 * LETTER  # pixels of a letter of the title
MOST_HEIGHT = 900


@dataclass(frozen=True, slots=True)
class Estimate:
    """One line of the chart: a share, or the mean."""

    label: str
    unbiased: float
    low: float
    high: float
    consistent: float


def draw_estimates(estimates: Sequence[Estimate], question: str, caption: str, *, mean: bool) -> Plot:
    """Bars for shares, a tick for a mean. Each line has its interval."""
    import altair

    base = altair.Chart(altair.InlineData(values=[asdict(estimate) for estimate in estimates]))
    down = altair.Y("label:N", sort=None, title=None, axis=altair.Axis(labelLimit=240, labelOverlap=False))
    name, axis = ("mean", altair.Axis()) if mean else ("share", altair.Axis(format="%"))

    def across(column: str) -> altair.X:
        return altair.X(f"{column}:Q", title=name, scale=altair.Scale(zero=not mean, nice=True), axis=axis)

    shape = base.mark_tick(color=BAR, thickness=3) if mean else base.mark_bar(color=BAR)
    middles = shape.encode(y=down, x=across("unbiased"))
    rules = base.mark_rule(color=INK, strokeWidth=2).encode(y=down, x=across("low"), x2="high:Q")
    dots = base.mark_point(color=DOT, filled=True, size=40, opacity=1).encode(y=down, x=across("consistent"))
    lines = textwrap.wrap(question, int(WIDTH / TITLE_LETTER))
    title = altair.Title(lines if len(lines) > 1 else question, subtitle=wrap_caption(caption, WIDTH), anchor="start")
    step = max(10, min(26, MOST_HEIGHT // max(1, len(estimates))))
    size = {"width": WIDTH, "height": max(60, step * len(estimates))}
    return Plot(altair.layer(middles, rules, dots).properties(title=title, **size))
