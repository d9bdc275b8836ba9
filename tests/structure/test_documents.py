"""The snippets of the documents run, and the names in them exist."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.main import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
GUIDE = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "guide.md").read_text(), re.DOTALL))


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[-1][:30])
def test_python_snippets_run(block):
    """Each line runs; a comment that looks like a repr is what the expression gives."""
    names = {}
    exec(compile(block, "README", "exec"), names)
    if "people" in names:
        names["people"].close()
    for line in block.splitlines():
        shown = re.match(r"(\S.*?)\s+# (PureDP\(.*?\)|Decimal\(.*?\)|True|6)(?::.*)?$", line)
        if shown:
            assert repr(eval(shown[1], names)) == shown[2], line


def test_the_page_for_teachers_runs():
    text = (ROOT / "docs" / "lessons.md").read_text()
    names = {}
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), "lessons", "exec"), names)
    shown = re.search(r"^(\[slides.*\])  # (\[.*\])$", text, re.MULTILINE)
    assert eval(shown[1], {"sf": sf, "slides": sf.lab.seeded(1)}) == eval(shown[2])


def test_the_guide_runs_from_top_to_bottom(capsys):
    names = {}
    exec(compile(GUIDE, "guide", "exec"), names)
    assert eval("clinic.ask(sql, epsilon=0.5).cached", names)
    assert ": sensitivity " in capsys.readouterr().out
    names["clinic"].close()


def test_something_is_compared():
    assert sum(len(re.findall(r"# (PureDP|Decimal|True|6)", block)) for block in BLOCKS) >= 5


def test_the_error_shown_is_the_error_given(capsys):
    block = next(block for block in BLOCKS if "print(refused)" in block)
    exec(block, {})
    assert capsys.readouterr().out.strip() == re.search(r"print\(refused\)\s+# (.*)", block)[1]


def test_console_sessions_are_real():
    for session in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        command, _, shown = session.partition("\n")
        result = CliRunner().invoke(app, command.removeprefix("$ sfumato ").split(), env={"COLUMNS": "80"})
        assert [line.rstrip() for line in result.output.strip().splitlines()] == shown.strip().splitlines()


def without_numbers(text):
    """Noise and hashes differ from run to run, and with them the width of columns."""
    lines = [
        re.sub(r"\s+", " ", re.sub(r"[0-9a-f]{64}|[-+\d][\d.,e+-]*", "#", line)).strip() for line in text.splitlines()
    ]
    return [re.sub(r"# #|\[# ", "#", line) for line in lines if line]


def test_the_session_with_a_csv_is_real(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{index // 2},{['north', 'south'][index % 3 % 2]},{20 + index % 200}" for index in range(2000)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient_id,site,cost", *rows]))
    (session,) = re.findall(r"```console session\n(.*?)```", README, re.DOTALL)
    parts = re.split(r"^\$ sfumato (.*)\n", session, flags=re.MULTILINE)[1:]
    assert len(parts) >= 12
    for command, shown in zip(parts[::2], parts[1::2], strict=True):
        result = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "200"})
        assert without_numbers(result.output) == without_numbers(shown), command


def test_the_two_commands_are_at_the_top():
    first = re.search(r"```sh\n(.*?)```", README, re.DOTALL)
    assert "make demo" in first[1]
    assert "make test" in first[1]
    assert README.index("make demo") < 1000


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_names_exist(path):
    text = path.read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (path.parent / target).exists(), target
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
