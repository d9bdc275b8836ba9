"""The chapter's snippets run from top to bottom, and what its comments show is what the lines give."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = (ROOT / "docs" / "local.md").read_text()
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
