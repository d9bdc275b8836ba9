"""Count the trusted core that docs/trusted.md lists: `python tests/structure/count_trusted.py [--write]`.

The document is the one list of trusted files. A row is `| path | lines | at first | claims | what a proof needs |`.
"At first" is what the file had at FIRST, when the structure was finished. Sections of other proofs have no such column.
With --write the line counts and totals are brought up to date; what a file had at first stays.
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
FIRST = "b9973df"  # the commit with which the restructuring ended
ROW = re.compile(r"^\| `(src/[^`]+\.py)` \| ([0-9,]+|\?) \|(?: ([0-9,]+) \|)? ([^|]*) \| (.*) \|$")
SEPARATE = "Counted separately"  # a section of another proof; not part of the total
TOTAL = re.compile(r"^\*\*[0-9,?]+ lines of code\.\*\*", re.MULTILINE)
WHOLE_TOTAL = re.compile(
    r"^\*\*In all [0-9,?]+ lines of code: [0-9,?]+ at first, and [0-9,?]+ of later features\.\*\*", re.MULTILINE
)
NOT_CODE = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
)  # fmt: skip
HAVE_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Trusted:
    """One row of the document."""

    section: str
    file: str
    at_first: int | None  # lines when the structure was finished, 0 for a later file; None: of another proof
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
            at_first = None if row[3] is None else int(row[3].replace(",", ""))
            yield Trusted(section, row[1], at_first, row[4])


def count_sections(document: str) -> dict[str, int]:
    """The lines of code of each section."""
    counts: dict[str, int] = {}
    for one in list_trusted(document):
        counts[one.section] = counts.get(one.section, 0) + count_code(one.path.read_text())
    return counts


def count_total(document: str) -> int:
    """All sections but those of another proof."""
    return sum(lines for section, lines in count_sections(document).items() if not section.startswith(SEPARATE))


def count_at_first(document: str) -> int:
    """The lines that the core had when its structure was finished."""
    return sum(one.at_first or 0 for one in list_trusted(document))


def update(document: str) -> str:
    """The document with its counts as they are now."""
    counts, total, first = count_sections(document), count_total(document), count_at_first(document)
    whole = f"**In all {total:,} lines of code: {first:,} at first, and {total - first:,} of later features.**"
    section, updated = "", []
    for line in document.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if row := ROW.match(line):
            code = count_code((ROOT / row[1]).read_text())
            at_first = "" if row[3] is None else f" {row[3]} |"
            updated.append(f"| `{row[1]}` | {code:,} |{at_first} {row[4]} | {row[5]} |")
        elif TOTAL.match(line):
            updated.append(TOTAL.sub(f"**{counts[section]:,} lines of code.**", line))
        else:
            updated.append(WHOLE_TOTAL.sub(whole, line))
    return "\n".join(updated) + "\n"


if __name__ == "__main__":
    current = DOCUMENT.read_text()
    if "--write" in sys.argv[1:]:
        DOCUMENT.write_text(update(current))
    for name, lines in count_sections(current).items():
        print(f"{lines:6,}  {name}")
    total, first = count_total(current), count_at_first(current)
    print(f"{total:6,}  in all: {first:,} when the structure was finished, {total - first:,} of later features")
