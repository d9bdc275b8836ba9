"""Names and texts as SQL writes them. Everything that enters a query of ours passes here."""

import glob
from collections.abc import Sequence
from pathlib import Path


def quoted(name: str) -> str:
    """A name, in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A literal text."""
    return "'" + value.replace("'", "''") + "'"


def listed(files: Sequence[Path]) -> str:
    """Files as they are: a name that holds a star or a bracket is no pattern."""
    return f"[{', '.join(text(glob.escape(str(each))) for each in files)}]"
