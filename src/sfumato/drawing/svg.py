"""Draw panels as SVG: no script, no font file, no network. Colours follow the reader's light or dark mode."""

import math
import textwrap
from collections.abc import Callable, Iterator
from html import escape
from typing import assert_never

from sfumato.drawing.marks import Axis, Band, Bars, Dots, Label, Line, Mark, Panel, Role, Rule, Strokes

WIDTH = 380  # of a panel: its texts are readable on a phone without zooming
RIGHT, BOTTOM = 20, 44
LETTER = 6.3  # the width of an average letter of the 12 px text
TICK_LETTER = 5.9
GAP = 16
ACROSS = 2  # panels side by side in one SVG file

STYLE = """
.sf-lab{--ink:#1d2733;--page:#ffffff;--faint:#5b6775;--grid:#e4e8ed;--naive:#c2410c;--protected:#1d5fb8;
--limit:#5b6775;--first:#7c3aed;--second:#0f766e;--plain:#1d2733;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
@media (prefers-color-scheme:dark){.sf-lab{--ink:#e6eaef;--page:#14181d;--faint:#a3adb8;--grid:#2b323a;
--naive:#fb923c;--protected:#6ab0ff;--limit:#a3adb8;--first:#b794f6;--second:#3fd0bd;--plain:#e6eaef}}
.sf-lab .sf-page{fill:var(--page)}
.sf-lab text{fill:var(--ink);font-size:12px;font-family:inherit}
.sf-lab .sf-title{font-size:14px;font-weight:600}
.sf-lab .sf-tick{fill:var(--faint);font-size:11px}
.sf-lab .sf-grid{stroke:var(--grid);stroke-width:1}
.sf-lab .sf-axis{stroke:var(--faint);stroke-width:1;fill:none}
.sf-lab .sf-line{fill:none;stroke-width:2;stroke-linejoin:round}
.sf-lab .sf-dash{stroke-dasharray:6 4}
.sf-lab .sf-halo{paint-order:stroke;stroke:var(--page);stroke-width:3px;stroke-linejoin:round}
""" + "".join(
    f".sf-lab .sf-{role}{{stroke:var(--{role})}}.sf-lab .sf-fill-{role}{{fill:var(--{role})}}"
    for role in ("naive", "protected", "limit", "first", "second", "plain")
)


def draw_panels(title: str, panels: tuple[Panel, ...]) -> str:
    """One SVG file with all panels, two in a row."""
    rows = [panels[start : start + ACROSS] for start in range(0, len(panels), ACROSS)]
    width = max(len(row) for row in rows) * (WIDTH + GAP) - GAP
    drawn, top = [], 0.0
    for row in rows:
        heights = [measure_height(panel) for panel in row]
        drawn += [draw_panel(panel, f'x="{index * (WIDTH + GAP)}" y="{top:g}" ') for index, panel in enumerate(row)]
        top += max(heights) + GAP
    height = top - GAP
    description = " ".join(panel.alt for panel in panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sf-lab" viewBox="0 0 {width} {height:g}" width="{width}" '
        f'height="{height:g}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc><style>{STYLE}</style>"
        f'<rect class="sf-page" width="100%" height="100%"/>{"".join(drawn)}</svg>\n'
    )


def draw_panel(panel: Panel, place: str = "") -> str:
    """One panel as an `<svg>` element without a style of its own."""
    titles, legend = _lay_out(panel)
    top = _top(titles, legend)
    height = top + panel.height + BOTTOM
    longest = max((len(text) for _, text in choose_ticks(panel.y)), default=0)
    left = max(54, (30 if panel.y.label else 14) + round(TICK_LETTER * longest))
    inner = (left, top, WIDTH - left - RIGHT, panel.height)
    across, up = _scale(panel.x, 0, inner[2]), _scale(panel.y, panel.height, 0)
    size = f'width="{WIDTH}" height="{height}" ' if place else ""
    parts = [
        f'<svg {place}{size}viewBox="0 0 {WIDTH} {height}" class="sf-lab sf-panel" role="img" '
        f'aria-label="{escape(panel.title + ". " + panel.alt)}">',
        f'<rect class="sf-page" width="{WIDTH}" height="{height}"/>',
        *(
            f'<text class="sf-title" x="10" y="{20 + 18 * line}">{escape(text)}</text>'
            for line, text in enumerate(titles)
        ),
        *_draw_legend(legend, 18 * len(titles) + 22),
        *_draw_axes(panel, inner, across, up),
        f'<svg x="{left}" y="{top}" width="{inner[2]}" height="{panel.height}">',
        *(_draw(mark, across, up, inner[2], panel) for mark in panel.marks),
        "</svg></svg>",
    ]
    return "".join(parts)


def measure_height(panel: Panel) -> int:
    """The height of a drawn panel, with its title and legend."""
    return _top(*_lay_out(panel)) + panel.height + BOTTOM


Scale = Callable[[float], float]


def _lay_out(panel: Panel) -> tuple[list[str], list[list[Mark]]]:
    """The lines of the title, and the lines of the legend."""
    titles = textwrap.wrap(panel.title, 44)
    lines: list[list[Mark]] = [[]]
    used = 0.0
    for mark in panel.marks:
        if _name_of(mark):
            needed = 30 + LETTER * len(_name_of(mark))
            if lines[-1] and used + needed > WIDTH - 20:
                lines.append([])
                used = 0
            lines[-1].append(mark)
            used += needed
    return titles, [line for line in lines if line]


def _top(titles: list[str], legend: list[list[Mark]]) -> int:
    return 14 + 18 * len(titles) + 18 * len(legend) + 8


def _name_of(mark: Mark) -> str:
    return "" if isinstance(mark, Rule | Label) else mark.name


def _draw_legend(lines: list[list[Mark]], top: float) -> Iterator[str]:
    for row, line in enumerate(lines):
        left = 10.0
        for mark in line:
            name, middle = _name_of(mark), top + 18 * row - 4
            yield _draw_key(mark, left, middle)
            yield f'<text x="{left + 22:.1f}" y="{middle + 4:.1f}">{escape(name)}</text>'
            left += 34 + LETTER * len(name)


def _draw_key(mark: Mark, left: float, middle: float) -> str:
    """The sign of a mark in the legend."""
    match mark:
        case Line(role=role, dashed=dashed):
            kind = f"sf-line sf-{role}{' sf-dash' if dashed else ''}"
            return f'<path class="{kind}" d="M{left:.1f} {middle:.1f}h18"/>'
        case Dots(role=role, shape=shape, size=size):
            return _draw_dot(left + 9, middle, max(size, 3.0), role, shape)
        case Strokes(role=role, width=width):
            return f'<path class="sf-{role}" stroke-width="{max(width, 1.5)}" d="M{left + 9:.1f} {middle - 6:.1f}v12"/>'
        case Bars(role=role):
            return f'<rect class="sf-fill-{role}" x="{left + 3:.1f}" y="{middle - 6:.1f}" width="12" height="12"/>'
        case Band(role=role):
            place = f'x="{left + 3:.1f}" y="{middle - 6:.1f}"'
            return f'<rect class="sf-fill-{role}" opacity="0.25" {place} width="12" height="12"/>'
        case Rule() | Label():
            return ""
        case _:
            assert_never(mark)


def _scale(axis: Axis, start: float, end: float) -> Scale:
    """A function from values to pixels."""
    low, high = (math.log10(axis.low), math.log10(axis.high)) if axis.log else (axis.low, axis.high)

    def place(value: float) -> float:
        read = math.log10(max(value, 1e-300)) if axis.log else value
        return start + (end - start) * (read - low) / (high - low)

    return place


def choose_ticks(axis: Axis, wanted: int = 5) -> tuple[tuple[float, str], ...]:
    """Round numbers along an axis, with their texts."""
    if axis.ticks is not None:
        return axis.ticks
    if axis.log:
        powers = range(math.ceil(math.log10(axis.low) - 1e-9), math.floor(math.log10(axis.high) + 1e-9) + 1)
        step = max(1, math.ceil(len(powers) / (wanted + 1)))
        return tuple((10.0**power, f"{10.0**power:,g}") for power in powers[::step])
    rough = (axis.high - axis.low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    apart = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.ceil(axis.low / apart - 1e-9), math.floor(axis.high / apart + 1e-9)
    digits = max(0, -math.floor(math.log10(apart) + 1e-9))
    return tuple((number * apart, f"{number * apart:,.{digits}f}") for number in range(first, last + 1))


def _draw_axes(panel: Panel, inner: tuple[int, int, int, int], across: Scale, up: Scale) -> Iterator[str]:
    left, top, width, height = inner
    for value, text in choose_ticks(panel.y):
        y = top + up(value)
        yield f'<path class="sf-grid" d="M{left} {y:.1f}h{width}"/>'
        yield f'<text class="sf-tick" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>'
    for value, text in choose_ticks(panel.x):
        x = left + across(value)
        yield f'<text class="sf-tick" x="{x:.1f}" y="{top + height + 16}" text-anchor="middle">{escape(text)}</text>'
    yield f'<path class="sf-axis" d="M{left} {top + height}h{width}"/>'
    yield f'<text x="{left + width / 2:g}" y="{top + height + 35}" text-anchor="middle">{escape(panel.x.label)}</text>'
    middle = top + height / 2
    yield (
        f'<text transform="translate(14 {middle:g}) rotate(-90)" text-anchor="middle">{escape(panel.y.label)}</text>'
    )


def _draw(mark: Mark, across: Scale, up: Scale, width: int, panel: Panel) -> str:  # noqa: PLR0911 - one per kind
    match mark:
        case Line(points, role, _, dashed):
            path = " ".join(f"{across(x):.2f},{up(y):.2f}" for x, y in points)
            return f'<polyline class="sf-line sf-{role}{" sf-dash" if dashed else ""}" points="{path}"/>'
        case Dots(points, role, _, shape, size):
            return "".join(_draw_dot(across(x), up(y), size, role, shape) for x, y in points)
        case Bars(bars, role, _):
            floor = panel.y.low if panel.y.log else max(panel.y.low, 0.0)
            return "".join(_draw_bar(across(a), across(b), up(floor), up(height), role) for a, b, height in bars)
        case Band(edges, role, _):
            there = " ".join(f"{across(x):.2f},{up(high):.2f}" for x, _, high in edges)
            back = " ".join(f"{across(x):.2f},{up(low):.2f}" for x, low, _ in reversed(edges))
            return f'<polygon class="sf-fill-{role}" opacity="0.25" points="{there} {back}"/>'
        case Strokes(places, low, high, role, _, thick):
            path = "".join(f"M{across(x):.2f} {up(low):.2f}V{up(high):.2f}" for x in places)
            return f'<path class="sf-{role}" stroke-width="{thick:g}" fill="none" d="{path}"/>'
        case Rule(x=x) if x is not None:
            return _draw_upright_rule(mark, across(x), width, panel.height)
        case Rule(y=y):
            return _draw_level_rule(mark, up(y or 0.0), width)
        case Label(x, y, text, role, anchor):
            place = f'x="{across(x):.1f}" y="{up(y):.1f}" text-anchor="{anchor}"'
            return f'<text class="sf-halo" style="fill:var(--{role})" {place}>{escape(text)}</text>'
        case _:
            assert_never(mark)


def _draw_bar(left: float, right: float, floor: float, top: float, role: Role) -> str:
    size = f'width="{abs(right - left):.2f}" height="{abs(floor - top):.2f}"'
    return f'<rect class="sf-fill-{role}" x="{min(left, right):.2f}" y="{min(floor, top):.2f}" {size}/>'


def _draw_upright_rule(rule: Rule, x: float, width: int, height: int) -> str:
    near_end = x > width * 0.6
    place = f'x="{x + (-5 if near_end else 5):.1f}" y="13" text-anchor="{"end" if near_end else "start"}"'
    return _draw_rule(rule, f"M{x:.1f} 0V{height}", place)


def _draw_level_rule(rule: Rule, y: float, width: int) -> str:
    under = rule.below or y < 20
    place = f'x="{width - 4}" y="{y + 14 if under else y - 5:.1f}" text-anchor="end"'
    return _draw_rule(rule, f"M0 {y:.1f}H{width}", place)


def _draw_rule(rule: Rule, path: str, place: str) -> str:
    words = f'<text class="sf-halo" style="fill:var(--{rule.role})" {place}>{escape(rule.text)}</text>'
    line = f'<path class="sf-line sf-dash sf-{rule.role}" stroke-width="1.5" d="{path}"/>'
    return line + words if rule.text else line


def _draw_dot(x: float, y: float, size: float, role: Role, shape: str) -> str:
    match shape:
        case "square":
            place = f'x="{x - size:.2f}" y="{y - size:.2f}" width="{2 * size:g}" height="{2 * size:g}"'
            return f'<rect class="sf-fill-{role}" {place}/>'
        case "cross":
            arms = (
                f"M{x - size:.2f} {y - size:.2f}l{2 * size:g} {2 * size:g}m0 {-2 * size:g}l{-2 * size:g} {2 * size:g}"
            )
            return f'<path class="sf-{role}" stroke-width="1.6" fill="none" d="{arms}"/>'
        case _:
            return f'<circle class="sf-fill-{role}" cx="{x:.2f}" cy="{y:.2f}" r="{size:g}"/>'
