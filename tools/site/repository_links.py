"""Where a file of the repository is in the site, and links between pages."""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs/"
NAMED = {
    "README.md": "project/readme.md",
    "clients/js/README.md": "project/javascript-client.md",
    "examples/README.md": "examples/index.md",
    "examples/lessons/README.md": "examples/lessons/index.md",
}
LINK = re.compile(r"(\]\()([^)\s#]*)(#[^)\s]*)?(\))")
FENCE = re.compile(r"^\s*(```|~~~)")
LIST = re.compile(r"^(\s*)([-*]|\d+\.) ")


def find_page(path: str) -> str:
    """The source of the page in the site that shows a file of the repository.

    >>> find_page("docs/sql.md"), find_page("examples/lessons/01_definition.py"), find_page("SECURITY.md")
    ('sql.md', 'examples/lessons/01_definition.md', 'project/security.md')
    >>> find_page("src/sfumato/errors.py")
    'source/src/sfumato/errors.py.md'
    """
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    if path in NAMED:
        return NAMED[path]
    if path.startswith("examples/") and path.endswith(".py"):
        return path.removesuffix(".py") + ".md"
    if path.endswith(".md") and "/" not in path:
        return f"project/{path.lower()}"
    return f"source/{path}/index.md" if (ROOT / path).is_dir() else f"source/{path}.md"


def resolve(target: str, origin: str) -> str | None:
    """The file of the repository that a link in the file `origin` leads to. None: it leads elsewhere."""
    if not target or "://" in target or target.startswith(("mailto:", "/")):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
    page = posixpath.join(path, "README.md")
    path = page if (ROOT / page).exists() else path  # of a folder
    return path if (ROOT / path).exists() else None


def list_targets(text: str, origin: str) -> set[str]:
    """The files outside of docs/ to which a page links."""
    found = {resolve(match[2], origin) for line in _prose(text) for match in LINK.finditer(line)}
    return {path for path in found if path is not None and not f"{path}/".startswith(DOCS)}


def rewrite_links(text: str, origin: str, page: str) -> str:
    """The text with links between pages of the site instead of links between files."""

    def replace(match: re.Match[str]) -> str:
        path = resolve(match[2], origin)
        if path is None or (path.startswith(DOCS) and origin.startswith(DOCS)):
            return match[0]
        target = posixpath.relpath(find_page(path), posixpath.dirname(page) or ".")
        return f"{match[1]}{target}{match[3] or ''}{match[4]}"

    return "\n".join(line if fenced else LINK.sub(replace, line) for line, fenced in _lines(text))


def separate_blocks(text: str) -> str:
    """The text with an empty line before lists and tables, which the site's Markdown needs and others do not.

    >>> separate_blocks("Two things:\\n- one\\n- two")
    'Two things:\\n\\n- one\\n- two'
    """
    done: list[str] = []
    listed = False
    for line, fenced in _lines(text):
        before = done[-1] if done else ""
        row = line.startswith("|")
        starts = not fenced and (row or LIST.match(line) is not None)
        inside = before.startswith("|") if row else listed and not before.startswith("#")
        if starts and before.strip() and not inside and not before.startswith(">"):
            done.append("")
        if not fenced:
            listed = LIST.match(line) is not None or (listed and (not line.strip() or line.startswith(" ")))
        done.append(line)
    return "\n".join(done)


def _lines(text: str) -> list[tuple[str, bool]]:
    """The lines, each with whether it is part of a block of code."""
    found, fenced = [], False
    for line in text.split("\n"):
        fence = FENCE.match(line) is not None
        found.append((line, fenced or fence))
        fenced ^= fence
    return found


def _prose(text: str) -> list[str]:
    return [line for line, fenced in _lines(text) if not fenced]
