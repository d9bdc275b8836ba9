"""Check the built site: every link and anchor leads somewhere, and no page loads anything from another address."""

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "object": "data",
}
IN_STYLE = re.compile(r"(?:url\(|@import\s)\s*['\"]?(https?:)?//", re.IGNORECASE)
IN_SCRIPT = re.compile(r"(?:fetch|import|importScripts)\(\s*[\"'`]https?://")


@dataclass
class Seen(HTMLParser):
    """What one page names, links to and loads."""

    names: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    loads: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.names |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and values.get("href"):
            self.links.add(values["href"])
        if tag in LOADED and values.get(LOADED[tag]) and values.get("rel") != "canonical":
            self.loads.add(values[LOADED[tag]])


def find_troubles(site: Path) -> list[str]:
    """Everything that is wrong with a built site."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html")) if "overrides" not in path.parts}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        for loaded in sorted(page.loads):
            if "//" in loaded.split("?")[0] and not loaded.startswith("data:"):
                found.append(f"{where} loads {loaded}")
            elif not loaded.startswith("data:") and not _find(loaded, path, site).exists():
                found.append(f"{where} loads {loaded}, which is not there")
        for link in sorted(page.links):
            found += [f"{where}: {trouble}" for trouble in _check_link(link, path, site, pages)]
    for path in sorted(site.rglob("*.css")):
        if IN_STYLE.search(path.read_text()):
            found.append(f"{path.relative_to(site)} loads a style or a font from another address")
    for path in sorted(site.rglob("*.js")):
        if path.name != "search_index.js" and IN_SCRIPT.search(path.read_text()):
            found.append(f"{path.relative_to(site)} loads something from another address")
    return found


def _read(path: Path) -> Seen:
    page = Seen()
    page.feed(path.read_text())
    return page


def _find(link: str, path: Path, site: Path) -> Path:
    target = unquote(urlsplit(link).path)
    return (site / target.lstrip("/")) if target.startswith("/") else (path.parent / target).resolve()


def _check_link(link: str, path: Path, site: Path, pages: dict[Path, Seen]) -> list[str]:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return []  # a reader may follow it; nothing is loaded
    target = path if not parts.path else _find(link, path, site)
    if path.name == "404.html":
        return []
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return [f"the link {link} leads nowhere"]
    name = unquote(parts.fragment)
    if name and name not in ("__top",) and target in pages and name not in pages[target].names:
        return [f"the anchor of {link} is not there"]
    return []


def main() -> None:
    site = Path(sys.argv[1]).resolve()
    troubles = find_troubles(site)
    for trouble in troubles:
        print(trouble)
    count = sum(1 for _ in site.rglob("*.html"))
    print(f"{count} pages, {len(troubles)} troubles")
    sys.exit(1 if troubles or not count else 0)


if __name__ == "__main__":
    main()
