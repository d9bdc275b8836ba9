"""What MkDocs calls while it builds the site: generated pages, links to files outside of docs/, formulas as MathML."""

import html
import re
import sys
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

from command_page import write_commands
from error_page import write_errors
from notebook_pages import render_notebook
from repository_links import ROOT, find_page, list_targets, rewrite_links, separate_blocks

LANGUAGES = {".py": "python", ".sql": "sql", ".js": "javascript", ".yaml": "yaml", ".toml": "toml", ".service": "ini"}
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
GENERATED = {"reference/commands.md": write_commands, "reference/errors.md": write_errors}

_origins: dict[str, str] = {}  # page of the site -> file of the repository


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and a page for each file outside of docs/ to which a page links."""
    _origins.clear()
    for file in files.documentation_pages():
        _origins[file.src_uri] = f"docs/{file.src_uri}"
    for uri, write in GENERATED.items():
        files.append(File.generated(config, uri, content=write()))
    wanted = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "examples").rglob("*.py"))]
    wanted += [str(path.relative_to(ROOT)) for path in sorted((ROOT / "examples").rglob("README.md"))]
    for uri, origin in list(_origins.items()):
        wanted += sorted(list_targets((ROOT / "docs" / uri).read_text(), origin))
    while wanted:
        path = wanted.pop()
        uri = find_page(path)
        if uri in _origins:
            continue
        _origins[uri] = path
        text = _write_page(path)
        files.append(File.generated(config, uri, content=text))
        origin = f"{path}/index.md" if (ROOT / path).is_dir() else path
        _origins[uri] = origin
        wanted += sorted(list_targets(text, origin))
    return files


def _write_page(path: str) -> str:
    """The Markdown of a file outside of docs/."""
    if path.endswith(".md"):
        return (ROOT / path).read_text()
    if path.startswith("examples/"):
        return render_notebook(ROOT / path)
    if (ROOT / path).is_dir():
        files = sorted(file for file in (ROOT / path).iterdir() if file.suffix in LANGUAGES)
        return "\n".join([f"# {path}", "", *(f"- [{file.name}]({file.name})" for file in files)])
    language = LANGUAGES.get(Path(path).suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n````{language}\n{(ROOT / path).read_text()}\n````\n"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links to files as links to pages. Search shows proofs and decisions after pages for users."""
    if page.file.src_uri.startswith(("claims/", "decisions/", "project/")):
        page.meta.setdefault("search", {"boost": 0.1})
    origin = _origins.get(page.file.src_uri)
    if origin is None:
        return markdown
    return separate_blocks(rewrite_links(markdown, origin, page.file.src_uri))


def on_page_content(html_text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write formulas as MathML, which browsers show without a script."""
    return FORMULA.sub(_write_formula, html_text)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name the search for screen readers: the theme does not."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )


def _write_formula(match: re.Match[str]) -> str:
    display = "block" if match[2] == "[" else "inline"
    return f'<{match[1]} class="arithmatex">{convert(html.unescape(match[3]), display=display)}</{match[1]}>'
