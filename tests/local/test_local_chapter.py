"""The chapter's snippets run from top to bottom, and what its comments show is what the lines give."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from sfumato.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = (ROOT / "docs" / "local.md").read_text()
README = (ROOT / "README.md").read_text()
SNIPPETS = "\n".join(re.findall(r"```python\n(.*?)```", CHAPTER, re.DOTALL))


def test_the_chapter_runs_and_shows_the_truth(capsys):
    names = {}
    exec(compile(SNIPPETS, "docs/local.md", "exec"), names)
    printed = capsys.readouterr().out
    for words in ("n x variance", "are fake", "yes-or-no questions", "With a shuffler and 100,000 reports"):
        assert words in printed
    shown = 0
    for line in SNIPPETS.splitlines():
        match = re.match(r"(?:\w+ = )?(\S.*?)\s+# (Decimal\(.*?\)|True|\d+|'\w+'|\[.*?\]|\{.*\}|\(.*\))(?::.*)?$", line)
        if match and not line.startswith("choice = "):
            shown += 1
            assert repr(eval(match[1], names)) == match[2], line
    assert shown >= 8


def test_every_mechanism_is_in_the_tables():
    from sfumato.local.randomisers.category_tables import NAMES
    from sfumato.local.randomisers.mean_randomisers import MEAN_NAMES

    for name in (*NAMES, *MEAN_NAMES, "questions"):
        assert len(re.findall(rf"^\|.*`{name}`", CHAPTER, re.MULTILINE)) >= 2


def without_numbers(text):
    """Noise, keys, ids and times differ from run to run, and with them the width of columns."""
    plain = re.sub(r"[0-9a-f]{32,64}|[-±]?\d[\d.,-]*", "#", text)
    return [" ".join(line.split()) for line in plain.splitlines() if line.strip()]


def test_the_session_with_a_survey_is_real(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (session,) = re.findall(r"```console survey\n(.*?)```", README, re.DOTALL)
    parts = re.split(r"^\$ sfumato (.*)\n", session, flags=re.MULTILINE)[1:]
    assert len(parts) >= 12
    for command, shown in zip(parts[::2], parts[1::2], strict=True):
        result = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "200", "SFUMATO_DEVICE": "device.db"})
        assert without_numbers(result.output) == without_numbers(shown), command
