"""Count the trusted core that docs/trusted.md lists: `python tests/structure/count_trusted.py [--write]`.

The document is the one list of trusted files. A row is `| path | lines | claims | what a proof needs |`. With --write
the line counts and totals in it are brought up to date.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "trusted.md"
ROW = re.compile(r"^\| `(src/[^`]+\.py)` \| ([0-9,]+|\?) \| ([^|]*) \| (.*) \|$")
SEPARATE = "Counted separately"  # a section of another proof; not part of the total
TOTAL = re.compile(r"^\*\*[0-9,?]+ lines of code\.\*\*", re.MULTILINE)
WHOLE_TOTAL = re.compile(r"^\*\*In all [0-9,?]+ lines of code\.\*\*", re.MULTILINE)
NOT_CODE = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
)  # fmt: skip
HAVE_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Trusted:
    """One row of the document."""

    section: str
    file: str
    claims: str  # "by function", or the numbers of the claims that the whole file is part of

    @property
    def path(self) -> Path:
        return ROOT / self.file


def count_code(text: str) -> int:
    """Lines of code: without docstrings, comments, blank lines and imports."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            skipped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, HAVE_DOCSTRINGS) and ast.get_docstring(node) is not None:
            skipped |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - skipped)


def list_trusted(document: str) -> Iterator[Trusted]:
    """The rows of the document."""
    section = ""
    for line in document.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif row := ROW.match(line):
            yield Trusted(section, row[1], row[3])


def count_sections(document: str) -> dict[str, int]:
    """The lines of code of each section."""
    counts: dict[str, int] = {}
    for one in list_trusted(document):
        counts[one.section] = counts.get(one.section, 0) + count_code(one.path.read_text())
    return counts


def count_total(document: str) -> int:
    """All sections but those of another proof."""
    return sum(lines for section, lines in count_sections(document).items() if not section.startswith(SEPARATE))


def update(document: str) -> str:
    """The document with its counts as they are now."""
    counts, total = count_sections(document), count_total(document)
    section, updated = "", []
    for line in document.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if row := ROW.match(line):
            code = count_code((ROOT / row[1]).read_text())
            updated.append(f"| `{row[1]}` | {code:,} | {row[3]} | {row[4]} |")
        elif TOTAL.match(line):
            updated.append(TOTAL.sub(f"**{counts[section]:,} lines of code.**", line))
        else:
            updated.append(WHOLE_TOTAL.sub(f"**In all {total:,} lines of code.**", line))
    return "\n".join(updated) + "\n"


if __name__ == "__main__":
    current = DOCUMENT.read_text()
    if "--write" in sys.argv[1:]:
        DOCUMENT.write_text(update(current))
    for name, lines in count_sections(current).items():
        print(f"{lines:6,}  {name}")
    print(f"{count_total(current):6,}  in all")
