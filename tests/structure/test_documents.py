"""The snippets of the documents run, and the names in them exist."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.main import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md")),
]  # fmt: skip
README = (ROOT / "README.md").read_text()
MADE_BY_THE_SITE = {ROOT / "docs" / "reference" / name for name in ("commands.md", "errors.md")}  # see tools/site


def test_the_page_for_teachers_runs():
    text = (ROOT / "docs" / "lessons.md").read_text()
    names = {}
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), "lessons", "exec"), names)
    shown = re.search(r"^(\[slides.*\])  # (\[.*\])$", text, re.MULTILINE)
    assert eval(shown[1], {"sf": sf, "slides": sf.lab.seeded(1)}) == eval(shown[2])


def test_the_two_commands_are_at_the_top():
    first = re.search(r"```sh\n(.*?)```", README, re.DOTALL)
    assert "make demo" in first[1]
    assert "make test" in first[1]
    assert README.index("make demo") < 1000


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_names_exist(path):
    text = path.read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            found = (path.parent / target).resolve()
            assert found.exists() or found in MADE_BY_THE_SITE, target
    for name in re.findall(r"\bsf\.(\w+)", text):
        assert hasattr(sf, name), name
    for target in re.findall(r"`make ([\w-]+)`", text):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


def test_public_names_are_listed_once():
    assert sorted(sf.__all__) == sorted(set(sf.__all__))
    assert all(hasattr(sf, name) for name in sf.__all__)


def test_the_page_about_learning_runs():
    text = (ROOT / "docs" / "learning.md").read_text()
    names = {}
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), "learning", "exec"), names)
    assert names["oracle"].remaining == 7
    for name, shown in re.findall(r"^oracle\.(\w+) +# (0\.\d+)", text, re.MULTILINE):
        assert getattr(names["oracle"], name) == pytest.approx(float(shown), abs=1e-4)
    stated = names["learner"].guarantee(alpha=0.1, beta=0.05, epsilon=1)
    assert f"# {stated}" in text
    (session,) = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    for command, shown in re.findall(r"^\$ sfumato (.*)\n((?:[^$].*\n)+)", session, re.MULTILINE):
        assert CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "200"}).output == shown
