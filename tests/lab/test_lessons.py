"""Every lesson runs from its first to its last cell, fast, and reads as a lesson."""

import re
import time
from pathlib import Path

import pytest
from lesson_figures import FIGURES
from notebook_cells import read_cells, run_cell

import sfumato as sf

FOLDER = Path(__file__).parents[2] / "examples" / "lessons"
LESSONS = sorted(FOLDER.glob("*.py"))
MOST_SECONDS = 30  # of processor time: a lesson takes up to 4, and more beside other work


def test_all_lessons_are_here():
    assert [path.stem for path in LESSONS] == [
        "01_definition", "02_laplace", "03_sensitivity", "04_randomised_response", "05_composition",
        "06_group_privacy", "07_attacks", "08_private_learning",
    ]  # fmt: skip


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs(path, capsys):
    """All cells in one namespace, in order, as a notebook runs them. What a cell shows has a page."""
    names, shown = {}, 0
    start = time.process_time()
    for cell in read_cells(path):
        if cell.kind == "code":
            value = run_cell(cell, names, path.stem)
            if hasattr(value, "_repr_html_"):
                assert "<svg" in value._repr_html_()
                shown += 1
    assert shown >= 1
    took = time.process_time() - start
    assert took < MOST_SECONDS, f"{took:.1f} seconds"
    assert capsys.readouterr().out


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_goals_questions_and_answers(path):
    """A question comes first, then a cell to think about, then the answer."""
    cells = read_cells(path)
    first = cells[0].text
    assert first.startswith("# ")
    assert "**After this lesson**" in first
    assert re.search(r"\*\*Time:\*\* \d+ minutes", first)
    questions = [index for index, cell in enumerate(cells) if re.search(r"^## (Question|Exercises)", cell.text, re.M)]
    answers = [index for index, cell in enumerate(cells) if re.search(r"^\*\*Answer\.\*\*|^## Answer", cell.text, re.M)]
    assert questions
    for question in questions:
        assert any(answer > question + 1 for answer in answers), f"line {cells[question].line} has no answer"
        assert cells[question + 1].kind == "code"
    assert sum(cell.kind == "code" for cell in cells) >= 5
    assert all(len(cell.text.split()) < 170 for cell in cells if cell.kind == "markdown"), "short texts only"


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_is_a_notebook(path):
    """The header names the format, and what the lesson uses of the program exists."""
    text = path.read_text()
    assert text.startswith("# ---\n# jupyter:\n#   jupytext:\n")
    assert "format_name: percent" in text
    for name in re.findall(r"\bsf\.lab\.(\w+)", text):
        assert hasattr(sf.lab, name), name
    readme = (FOLDER / "README.md").read_text()
    title = re.search(r"^# # \d+\. (.+)$", text, re.M)[1]
    assert f"[{title}]({path.name})" in readme
    minutes = re.search(r"\*\*Time:\*\* (\d+) minutes", text)[1]
    assert f"| {minutes} |" in next(line for line in readme.splitlines() if path.name in line)


def test_a_wrong_lesson_is_noticed(tmp_path):
    """Negative control: a failing cell, and a text line without its sign."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text("# %% [markdown]\n# Text\n# %%\nx = 1\n# %%\nassert x == 2\n")
    cells = read_cells(wrong)
    names = {}
    run_cell(cells[1], names, "wrong")
    with pytest.raises(AssertionError):
        run_cell(cells[2], names, "wrong")
    wrong.write_text("# %% [markdown]\nno sign\n")
    with pytest.raises(ValueError, match="no text"):
        read_cells(wrong)


def outline(svg):
    """The texts and the number of marks of a figure. Margins may change without writing it again."""
    marks = {tag: len(re.findall(f"<{tag} ", svg)) for tag in ("polyline", "polygon", "rect", "circle", "path")}
    return re.findall(r"<text[^>]*>([^<]*)", svg), marks


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_the_page_are_those_of_the_code(name):
    """To write them again: python tests/lab/lesson_figures.py"""
    stored = (FOLDER.parents[1] / "docs" / "figures" / name).read_text()
    assert outline(stored) == outline(FIGURES[name]().svg())
    assert f"(figures/{name})" in (FOLDER.parents[1] / "docs" / "lessons.md").read_text()


def test_the_comparison_of_figures_can_fail():
    changed = sf.lab.mechanism(2, 1).figure.svg()
    assert outline(changed) != outline(FIGURES["lesson-mechanism.svg"]().svg())
