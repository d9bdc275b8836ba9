"""A folder with one page for each attack, and an index page that compares them."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from sfumato.drawing.marks import Axis, Dots, Line, Mark, Panel, Strokes
from sfumato.drawing.pages import make_page, place_panels
from sfumato.kernel.exact import write_plain
from sfumato.lab.attack_result import AttackResult
from sfumato.lab.success_rate import show_share

TITLE = "Attacks on the naive release and on Sfumato"


def save_pages(results: Sequence[AttackResult], folder: Path) -> Path:
    """Write one page for each result, and index.html. Returns the path of the index."""
    folder.mkdir(parents=True, exist_ok=True)
    for result in results:
        result.save(folder / f"{result.name}.html")
    index = folder / "index.html"
    index.write_text(make_page(TITLE, _make_index(results)), encoding="utf-8")
    return index


def _make_index(results: Sequence[AttackResult]) -> str:
    rows = "".join(
        f'<tr><td><a href="{result.name}.html">{result.name}</a><br>{escape(result.title.partition(": ")[2])}</td>'
        + "".join(f'<td class="sf-number">{text}</td>' for text in _list_texts(result))
        + "</tr>"
        for result in results
    )
    head = "".join(f"<th>{name}</th>" for name in ("attack", "naive", "Sfumato (95 % interval)", "limit"))
    epsilon = write_plain(results[0].epsilon)
    return (
        f"<h1>{TITLE}</h1><p>How often each attack succeeds, with ε = {epsilon}. The limit holds for every attacker "
        f"and every release with this ε.</p>{place_panels([compare_attacks(results)])}"
        f'<div class="sf-scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _list_texts(result: AttackResult) -> tuple[str, str, str]:
    low, high = map(show_share, result.protected.interval())
    protected = f"{show_share(result.protected.share)}<br>({low} to {high})"
    return show_share(result.naive.share), protected, show_share(result.limit)


def compare_attacks(results: Sequence[AttackResult]) -> Panel:
    """The success rates of all attacks, one below the other."""
    count = len(results)
    naive, protected = [], []
    strokes: list[Mark] = []
    for place, result in enumerate(results):
        row = float(count - place) - 0.5
        naive.append((100 * result.naive.share, row))
        protected.append((100 * result.protected.share, row))
        low, high = result.protected.interval()
        strokes.append(Line(((100 * low, row), (100 * high, row)), "protected"))
        strokes.append(Strokes((100 * result.limit,), row - 0.3, row + 0.3, "limit", "limit" if not place else "", 2.5))
    ticks = tuple((float(count - place) - 0.5, result.name) for place, result in enumerate(results))
    words = "; ".join(
        f"{result.name}: naive {show_share(result.naive.share)}, Sfumato {show_share(result.protected.share)}, limit "
        f"{show_share(result.limit)}"
        for result in results
    )
    return Panel(
        "How often each attack succeeds",
        words,
        Axis("success in %", -2, 104, tuple((float(percent), str(percent)) for percent in (0, 25, 50, 75, 100))),
        Axis("", 0, count, ticks),
        (
            *strokes,
            Dots(tuple(naive), "naive", "naive", "square", 4.5),
            Dots(tuple(protected), "protected", "Sfumato", size=4.5),
        ),
        height=24 * count,
    )
