"""The chapter's snippets run from top to bottom, and what its comments show is what the lines give."""

import re
from pathlib import Path

CHAPTER = (Path(__file__).resolve().parents[2] / "docs" / "local.md").read_text()
SNIPPETS = "\n".join(re.findall(r"```python\n(.*?)```", CHAPTER, re.DOTALL))


def test_the_chapter_runs_and_shows_the_truth(capsys):
    names = {}
    exec(compile(SNIPPETS, "docs/local.md", "exec"), names)
    printed = capsys.readouterr().out
    for words in ("n x variance", "made up", "yes-or-no questions", "Shuffled among 100,000"):
        assert words in printed
    shown = 0
    for line in SNIPPETS.splitlines():
        match = re.match(r"(?:\w+ = )?(\S.*?)\s+# (Decimal\(.*?\)|True|\d+|'\w+'|\[.*?\]|\{.*\}|\(.*\))(?::.*)?$", line)
        if match and not line.startswith("choice = "):
            shown += 1
            assert repr(eval(match[1], names)) == match[2], line
    assert shown >= 8


def test_every_mechanism_is_in_the_tables():
    from sfumato.local.means import MEAN_NAMES
    from sfumato.local.randomisers import NAMES

    for name in (*NAMES, *MEAN_NAMES, "questions"):
        assert len(re.findall(rf"^\|.*`{name}`", CHAPTER, re.MULTILINE)) >= 2
