"""A figure: panels with a title and a caption, as SVG or HTML. It needs no plotting library and no network."""

from dataclasses import dataclass
from pathlib import Path

from sfumato.drawing.marks import Panel
from sfumato.drawing.pages import add_style, make_page, place_panels
from sfumato.drawing.svg import draw_panels


@dataclass(frozen=True, slots=True)
class Figure:
    """One or more panels, with a title and a caption."""

    title: str
    panels: tuple[Panel, ...]
    caption: str = ""

    def svg(self) -> str:
        """The whole figure as one self-contained SVG file."""
        return draw_panels(self.title, self.panels)

    def html(self) -> str:
        """A piece of HTML. The panels stand side by side, or below each other on a narrow screen."""
        return place_panels(self.panels, self.caption)

    def save(self, path: str | Path) -> None:
        """Write the figure to a file: an HTML page if the name ends in .html, otherwise SVG."""
        place = Path(path)
        text = make_page(self.title, self.html()) if place.suffix == ".html" else self.svg()
        place.write_text(text, encoding="utf-8")

    def _repr_html_(self) -> str:
        return add_style(self.html())
