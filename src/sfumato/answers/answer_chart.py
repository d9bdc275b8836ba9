# ruff: noqa: PLC0415 - altair is imported when something is drawn
"""Charts of an answer: bars, time series, histograms and groups, each value with its interval.

A chart shows released values and intervals only. It needs no network: a notebook gets a finished SVG.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from math import isclose, isfinite
from typing import Any, Literal

from sfumato.answers.shown_values import Ends, Row
from sfumato.drawing.plot import BAR, INK, Plot, wrap_caption

COLOURS = ("#4c78a8", "#e07b39", "#54a24b", "#b279a2", "#9d755d", "#72b7b2", "#d67195", "#6b7280")
LEAST_WIDTH, MOST_WIDTH, MOST_HEIGHT = 320, 900, 900  # pixels of the drawing itself
MOST_UPRIGHT, LONG_LABEL = 12, 12  # more bars, or longer labels, lie on their side
MANY_MOMENTS = 40  # more points of a time series have a band instead of error bars

Kind = Literal["series", "histogram", "bars", "lying"]


@dataclass(frozen=True)
class ChartData:
    """What is drawn: the rows of an answer, its keys, and the words below the title."""

    rows: Sequence[Row]
    intervals: Sequence[Ends]
    keys: tuple[str, ...]
    caption: str


def draw_answer(data: ChartData, measures: Sequence[str]) -> Plot:
    """One chart for each measure, below each other. An answer of one row has dots in place of bars."""
    import altair

    if not data.keys:
        return Plot(_draw_one_row(data, measures))
    if len(measures) == 1:
        return Plot(_draw_measure(data, measures[0]))
    alone = replace(data, caption="")  # the caption is the same for all of them
    charts = [_draw_measure(alone, name) for name in measures]
    width = _measure_size(choose_kind(data), data)["width"]
    caption = wrap_caption(data.caption, width)
    title = altair.Title(_write_title(measures, data.keys), subtitle=caption, anchor="start")
    return Plot(altair.vconcat(*charts).properties(title=title))


def choose_kind(data: ChartData) -> Kind:
    """How the first key is drawn: dates as a time series, bins as a histogram, many or long labels on their side."""
    found = [row[data.keys[0]] for row in data.rows if row[data.keys[0]] is not None] if data.keys else []
    different = list(dict.fromkeys(found))
    if len(data.keys) <= 2 and len(different) > 2 and all(isinstance(value, date) for value in different):
        return "series"
    if len(data.keys) == 1 and len(found) == len(data.rows) and find_step(different) is not None:
        return "histogram"
    labels = _list_labels(data)
    bars = len(labels)
    if bars > MOST_UPRIGHT or any(len(label) > LONG_LABEL for label in labels):
        return "lying"
    return "bars"


def find_step(values: Sequence[object]) -> float | None:
    """The width of bins, if numbers are at equal distances. Whole numbers one by one are no bins."""
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if len(numbers) < 3 or len(numbers) < len(values):
        return None
    ordered = sorted(numbers)
    steps = [high - low for low, high in pairwise(ordered)]
    same = all(isclose(step, steps[0], rel_tol=1e-6) for step in steps)
    return float(steps[0]) if same and steps[0] != 1 else None


def _list_labels(data: ChartData) -> list[str]:
    """The labels of the bars: of the first key, if the second has its own colours; else of all keys."""
    shown = data.keys[:1] if _has_colours(data) else data.keys
    return list(dict.fromkeys(", ".join(_write_key(row[key]) for key in shown) for row in data.rows))


def _has_colours(data: ChartData) -> bool:
    return len(data.keys) == 2 and len({row[data.keys[1]] for row in data.rows}) <= len(COLOURS)


def _write_key(value: object) -> str:
    return "NULL" if value is None else str(value)


def _write_title(measures: Sequence[str], keys: Sequence[str]) -> str:
    return ", ".join(measures) + (f" by {', '.join(keys)}" if keys else "")


def _collect(data: ChartData, name: str) -> list[dict[str, Any]]:
    """The values to draw. An end without limit is cut at the furthest finite value."""
    step = find_step([row[data.keys[0]] for row in data.rows]) if data.keys else None
    known = [row[name] for row in data.rows if _is_number(row[name])]
    known += [end for ends in data.intervals for end in ends.get(name, ()) if isfinite(end)]
    if not known:
        return []
    least, most = min(known), max(known)
    values = []
    shown = data.keys[:1] if _has_colours(data) else data.keys
    for row, ends in zip(data.rows, data.intervals, strict=True):
        if not _is_number(row[name]):
            continue
        first = row[data.keys[0]] if data.keys else None
        value: dict[str, Any] = {
            "label": ", ".join(_write_key(row[key]) for key in shown) or name,
            "value": row[name],
            "group": _write_key(row[data.keys[1]]) if _has_colours(data) else "",
        }
        if isinstance(first, date):
            value["moment"] = first.isoformat()
        if step is not None and isinstance(first, (int, float)):
            value |= {"start": first, "end": first + step}
        if name in ends:
            low, high = ends[name]
            value |= {"low": low if isfinite(low) else least, "high": high if isfinite(high) else most}
        values.append(value)
    return values


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _draw_measure(data: ChartData, name: str) -> Any:  # noqa: ANN401 - altair's
    import altair

    values, kind = _collect(data, name), choose_kind(data)
    base = altair.Chart(altair.InlineData(values=values))
    axis = data.keys[0] if _has_colours(data) or len(data.keys) == 1 else ", ".join(data.keys) or None
    size = _measure_size(kind, data)
    apart = altair.Axis(titlePadding=14)  # fonts of a reader may be wider than those of the drawing
    up = altair.Y("value:Q", title=name, axis=apart)
    ends = {"y": altair.Y("low:Q", title=name, axis=apart), "y2": "high:Q"}
    more: dict[str, Any] = {}
    offset: dict[str, Any] = {}
    if _has_colours(data):
        found = list(dict.fromkeys(value["group"] for value in values))
        scale = altair.Scale(domain=found, range=list(COLOURS[: len(found)]))
        more["color"] = altair.Color("group:N", title=data.keys[1], scale=scale)
    bounded = any("low" in value for value in values)
    match kind:
        case "series":
            across = altair.X("moment:T", title=axis)
            line = base.mark_line(point=len(values) <= MANY_MOMENTS, color=COLOURS[0]).encode(x=across, y=up, **more)
            if len(values) > MANY_MOMENTS:
                spread = base.mark_area(opacity=0.25, color=COLOURS[0]).encode(x=across, **ends, **more)
            else:
                spread = base.mark_rule(color=INK, strokeWidth=1.5).encode(x=across, **ends, **more)
            layers = [spread, line] if bounded else [line]
        case "histogram":
            bins = altair.X("start:Q", title=axis, scale=altair.Scale(zero=False, nice=False))
            bars = base.mark_bar(color=BAR, stroke="white", strokeWidth=0.5).encode(
                x=bins, x2="end:Q", y=up, y2=altair.datum(0)
            )
            middle = base.transform_calculate(middle="(datum.start + datum.end) / 2")
            rules = middle.mark_rule(color=INK, strokeWidth=1.5).encode(x=altair.X("middle:Q", title=axis), **ends)
            layers = [bars, rules] if bounded else [bars]
        case "lying":
            beside = altair.Axis(labelLimit=240, labelOverlap=False, titlePadding=14)
            down = altair.Y("label:N", sort=None, title=axis, axis=beside)
            offset |= {"yOffset": altair.YOffset("group:N", sort=None)} if more else {}
            bars = base.mark_bar(color=BAR).encode(y=down, x=altair.X("value:Q", title=name), **offset, **more)
            rules = base.mark_rule(color=INK, strokeWidth=1.5).encode(
                y=down, x=altair.X("low:Q", title=name), x2="high:Q", **offset
            )
            layers = [bars, rules] if bounded else [bars]
        case "bars":
            flat = altair.X("label:N", sort=None, title=axis, axis=altair.Axis(labelAngle=0))
            offset |= {"xOffset": altair.XOffset("group:N", sort=None)} if more else {}
            bars = base.mark_bar(color=BAR).encode(x=flat, y=up, **offset, **more)
            rules = base.mark_rule(color=INK, strokeWidth=2).encode(x=flat, **ends, **offset)
            layers = [bars, rules] if bounded else [bars]
    title = altair.Title(
        _write_title([name], data.keys), subtitle=wrap_caption(data.caption, size["width"]), anchor="start"
    )
    return altair.layer(*layers).properties(title=title, **size)


def _measure_size(kind: Kind, data: ChartData) -> dict[str, int]:
    """Pixels. A hundred bars lie on their side, and are thinner."""
    labels = len(_list_labels(data))
    groups = len({row[data.keys[1]] for row in data.rows}) if _has_colours(data) else 1
    if kind in ("series", "histogram"):
        return {"width": 560, "height": 260}
    if kind == "lying":
        step = max(10, min(24, MOST_HEIGHT // max(1, labels * groups)))
        return {"width": 480, "height": max(60, step * labels * groups)}
    return {"width": min(MOST_WIDTH, max(LEAST_WIDTH, 44 * labels * max(1, groups // 2))), "height": 260}


def _draw_one_row(data: ChartData, measures: Sequence[str]) -> Any:  # noqa: ANN401 - altair's
    """All numbers of one row, such as quantiles: a dot and its interval for each. Each has its own axis."""
    import altair

    charts = []
    for name in measures:
        values = _collect(data, name)
        base = altair.Chart(altair.InlineData(values=values)).properties(width=480, height=36)
        down = altair.Y("label:N", title=None)
        scale = altair.Scale(domain=_find_domain([_collect(data, other) for other in measures], values))
        dot = base.mark_point(filled=True, size=70, color=COLOURS[0], opacity=1).encode(
            y=down, x=altair.X("value:Q", title=None, scale=scale)
        )
        rule = base.mark_rule(color=INK, strokeWidth=2).encode(
            y=down, x=altair.X("low:Q", title=None, scale=scale), x2="high:Q"
        )
        charts.append(altair.layer(rule, dot) if any("low" in value for value in values) else dot)
    title = altair.Title(_write_title(measures, ()), subtitle=wrap_caption(data.caption, 480), anchor="start")
    return altair.vconcat(*charts).properties(title=title)


def _find_domain(everything: Sequence[Sequence[Mapping[str, Any]]], own: Sequence[Mapping[str, Any]]) -> list[float]:
    """One axis for all numbers of similar sizes, such as the quantiles of one column; else the number's own."""

    def list_places(values: Sequence[Mapping[str, Any]]) -> list[float]:
        return [value[part] for value in values for part in ("value", "low", "high") if part in value]

    sizes = [max(map(abs, list_places(values)), default=0) for values in everything]
    alike = min(sizes) > 0 and max(sizes) <= 20 * min(sizes)
    places = [place for values in (everything if alike else [own]) for place in list_places(values)] or [0.0]
    low, high = min(0.0, *places), max(0.0, *places)
    space = 0.05 * (high - low) or 1.0  # so that no dot is cut at the edge
    return [low - space if low < 0 else low, high + space if high > 0 else high + (low == high)]
