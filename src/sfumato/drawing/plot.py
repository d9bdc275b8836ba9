# ruff: noqa: PLC0415 - what draws is imported when something is drawn
"""A chart that needs no network: a notebook gets a finished SVG."""

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BAR, INK, DOT = "#8aa0b8", "#22303c", "#b5533c"
LETTER = 5.2  # pixels of a letter of the caption


@dataclass(frozen=True)
class Plot:
    """A drawing. A notebook shows it without a network; `chart` is the Altair chart, to change it."""

    chart: Any

    def to_dict(self) -> dict[str, Any]:
        """The specification, for Vega-Lite."""
        made: dict[str, Any] = self.chart.to_dict()
        return made

    def svg(self) -> str:
        """The drawing as SVG."""
        import vl_convert

        return str(vl_convert.vegalite_to_svg(self.to_dict()))

    def save(self, path: str | Path, format: str | None = None) -> None:
        """Save as .svg, .png, .html (it needs no network) or .json."""
        page = (format or str(path).rpartition(".")[2]).lower() == "html"
        self.chart.save(str(path), format=format, **({"inline": True} if page else {}))  # inline: with what draws it

    def __repr__(self) -> str:
        return "<Plot: .svg() draws it, .save('plot.svg') saves it, .chart is the Altair chart>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": repr(self)}


def wrap_caption(text: str, width: int) -> list[str]:
    """The lines of a caption that is as wide as its chart."""
    return [line for part in text.split("\n") for line in textwrap.wrap(part, int(width / LETTER))]
