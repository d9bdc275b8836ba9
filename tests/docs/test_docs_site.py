"""What the documentation site is made of: generated pages, notebooks, and the checks of the built site."""

import re
import sys
from pathlib import Path

import pandas as pd
import pytest
import typer
from check_site import find_troubles
from command_page import list_commands, write_commands
from error_causes import BY_HAND, CAUSES
from error_page import find_errors, write_errors
from notebook_cells import read_cells, run_cell
from notebook_pages import render_notebook, show
from repository_links import find_page, list_targets, rewrite_links, separate_blocks

import sfumato as sf
from sfumato.catalog.catalog_keys import ABOUT, KINDS, LIMITS, TABLE_KEYS
from sfumato.catalog.text_format import KEYS
from sfumato.cli.main import app

ROOT = Path(__file__).parents[2]
LECTURES = sorted((ROOT / "examples" / "lectures").glob("*.py"))
ANALYSES = sorted((ROOT / "examples" / "analyses").glob("*.py"))
REFERENCE = ROOT / "docs" / "reference" / "python"
NO_EXAMPLE = {"connect", "engines"}  # they need a service or a cluster; their own pages have examples
GIVEN = {"Answer": "people.ask(", "Curator": "sf.protect(", "Preview": "people.preview("}  # and what gives them


def test_every_command_and_option_is_in_the_reference():
    page = write_commands()
    commands = list(list_commands(typer.main.get_command(app)))
    assert len(commands) > 40
    for words, command in commands:
        assert f" sfumato {' '.join(words)}\n" in page
        for parameter in command.params:
            assert all(f"`{option}`" in page for option in parameter.opts if option.startswith("--"))


def test_every_error_has_a_cause_and_a_fix(capsys):
    found = find_errors()
    assert set(found) == set(CAUSES), "tools/site/error_causes.py has one line for each code"
    page = write_errors()
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(snippet, {})
    assert capsys.readouterr().out.startswith("invalid-parameter | epsilon must be")
    for code in found:
        assert f"\n## {code}\n" in page
    for cause, fix in BY_HAND.values():
        assert cause.endswith(".")
        assert fix.endswith(".")


def test_every_key_of_a_catalog_is_in_the_reference():
    page = (ROOT / "docs" / "reference" / "catalog.md").read_text()
    for key in (*ABOUT, *LIMITS, *TABLE_KEYS, *KEYS):
        assert f"| `{key}` |" in page, key
    for kind in KINDS:
        assert f'| `"{kind}"` |' in page, kind


def test_every_public_name_has_an_example():
    """Each name of the interface is used in a snippet of the reference, and documented there."""
    pages = "\n".join(path.read_text() for path in REFERENCE.glob("*.md"))
    code = "\n".join(re.findall(r"```python\n(.*?)```", pages, re.DOTALL))
    for name in sf.__all__:
        assert name in NO_EXAMPLE or GIVEN.get(name, f"sf.{name}") in code, name
    hidden = {"follow", "read_from", "keep_report", "at_desk", "dataset", "versions", "engine"}  # of our own code
    for name in [name for name in vars(sf.Curator) if not name.startswith("_") and name not in hidden]:
        assert f".{name}" in code, name
        assert f"::: sfumato.curator.Curator.{name}\n" in pages, name
    for name in sf.learning.__all__:
        if not name.endswith("Warning") and name not in ("Fitted", "LearningCurve"):
            assert f'heading: "sf.learning.{name}"' in pages, name


def test_objects_of_the_reference_exist():
    for path in REFERENCE.glob("*.md"):
        for target in re.findall(r"^::: ([\w.]+)$", path.read_text(), re.MULTILINE):
            module, names = target, []
            while module not in sys.modules:
                try:
                    __import__(module)
                except ModuleNotFoundError:
                    module, _, last = module.rpartition(".")
                    names.insert(0, last)
            found = sys.modules[module]
            for name in names:
                found = getattr(found, name)


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_the_lectures_examples_run(path):
    page = render_notebook(path)
    assert "````text" in page or '<div class="output">' in page
    assert page.count('<div class="chart"><svg') == len(
        re.findall(r"^\w+\.plot\(.*\)$", path.read_text(), re.MULTILINE)
    )


def test_an_analysis_runs():
    assert "Spent: ε = 2.5" in render_notebook(ROOT / "examples" / "analyses" / "private_models.py")


@pytest.mark.slow
@pytest.mark.parametrize("path", ANALYSES, ids=lambda path: path.stem)
def test_whole_analyses_run(path):
    render_notebook(path)


@pytest.mark.parametrize("path", [*LECTURES, *ANALYSES], ids=lambda path: path.stem)
def test_a_notebook_is_listed_and_reads_well(path):
    text, cells = path.read_text(), read_cells(path)
    assert text.startswith("# ---\n# jupyter:\n#   jupytext:\n")
    title = re.match(r"# (.+)", cells[0].text)[1]
    folder = path.parent.name
    assert f"[{title}]({folder}/{path.name})" in (ROOT / "examples" / "README.md").read_text()
    assert f"examples/{folder}/{path.stem}.md" in (ROOT / "mkdocs.yml").read_text()
    for cell in cells:
        if cell.kind == "code":
            compile(cell.text, path.name, "exec")


def test_what_a_cell_shows():
    assert show(3) == "````text\n3\n````"
    figure = sf.lab.mechanism(1, 1)
    assert show(figure).startswith('<div class="output">')
    assert "\n\n" not in show(figure)
    with pytest.raises(ZeroDivisionError):
        run_cell(read_cells_of("# %%\n1 / 0\n")[0], {}, "wrong")


def read_cells_of(text):
    class Text:
        name = "here"

        @staticmethod
        def read_text():
            return text

    return read_cells(Text)


def test_links_between_files_become_links_between_pages():
    text = (
        "See [tests](../tests/conftest.py), [map](../ARCHITECTURE.md#the-map), [sql](sql.md), [web](https://x.org).\n"
    )
    assert list_targets(text, "docs/local.md") == {"tests/conftest.py", "ARCHITECTURE.md"}
    written = rewrite_links(text, "docs/local.md", "local.md")
    assert "(source/tests/conftest.py.md)" in written
    assert "(project/architecture.md#the-map)" in written
    assert "(sql.md)" in written
    assert "(https://x.org)" in written
    assert find_page("examples/lectures/pets.py") == "examples/lectures/pets.md"
    assert separate_blocks("Two:\n- a\n- b\n") == "Two:\n\n- a\n- b\n"
    assert separate_blocks("```\nx\n- a\n```\n") == "```\nx\n- a\n```\n"


def test_the_nav_has_every_page():
    nav = (ROOT / "mkdocs.yml").read_text()
    for path in sorted((ROOT / "docs").rglob("*.md")):
        page = str(path.relative_to(ROOT / "docs"))
        if not page.startswith(("claims/K-", "decisions/0")):
            assert re.search(rf"\s{re.escape(page)}$", nav, re.MULTILINE), page


def test_the_check_of_the_site_can_fail(tmp_path):
    """Negative controls: a font from elsewhere, a dead link, a dead anchor, a missing picture."""
    page = tmp_path / "index.html"
    page.write_text('<a href="#here">x</a><h1 id="here">y</h1><a href="https://elsewhere.org">z</a>')
    assert find_troubles(tmp_path) == []
    for broken in (
        '<link rel="stylesheet" href="https://fonts.example.org/css">', '<a href="gone.html">x</a>',
        '<a href="#gone">x</a>', '<img src="gone.svg">', '<script src="//cdn.example.org/x.js"></script>',
    ):  # fmt: skip
        page.write_text(broken)
        assert len(find_troubles(tmp_path)) == 1, broken
    page.write_text("")
    (tmp_path / "x.css").write_text("@font-face { src: url(https://fonts.example.org/x.woff2) }")
    assert len(find_troubles(tmp_path)) == 1


@pytest.mark.parametrize(
    ("aggregate", "scale"),
    [
        ("COUNT(*)", 3), ("COUNT(x)", 3), ("COUNT(DISTINCT id)", 1), ("COUNT(DISTINCT t)", 3), ("SUM(x)", 3 * 10),
        ("AVG(x)", 3 * 12), ("VARIANCE(x)", 3 * 12**2), ("MEDIAN(x)", 3), ("MAX(x)", 3),
    ],
)  # fmt: skip
def test_costs_of_aggregates_are_those_of_the_sql_page(aggregate, scale):
    """r = 3 rows, [a, b] = [-2, 10], the whole epsilon of 1 for one measurement."""
    rows = {"id": ["1", "2"], "x": [1.0, 2.0], "t": ["u", "v"]}
    columns = {"id": sf.Id(), "x": sf.Real(-2, 10), "t": sf.Text()}
    with sf.protect(
        pd.DataFrame(rows), name="t", unit="id", max_rows_per_unit=3, columns=columns, budget=sf.Budget(epsilon=1)
    ) as table:
        told = table.preview(f"SELECT {aggregate} AS a FROM t", epsilon=1, assume={"n": 4000})
    (measured,) = re.findall(r"mechanism, scale ([\d,.]+);", told.explain())
    assert float(measured.replace(",", "")) == scale
    if aggregate == "AVG(x)":
        assert told.margins["a"] == pytest.approx(2 * scale / 4000, rel=0.1)
