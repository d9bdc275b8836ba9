"""Names and texts as SQL writes them. Everything that enters a query of ours passes here.

Part of the trusted perimeter: claim K-50.
"""

import glob
from collections.abc import Sequence
from pathlib import Path


def quote(name: str) -> str:
    """A name, in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(value: str) -> str:
    """A literal text."""
    return "'" + value.replace("'", "''") + "'"


def prefer(value: str, otherwise: str) -> str:
    """The value, or the other expression where the value is NULL.

    DuckDB computes the common parts of all arguments of COALESCE for every row, also where the first argument is
    enough. It computes a branch of CASE only for the rows that need it.
    """
    return f"CASE WHEN {value} IS NOT NULL THEN {value} ELSE {otherwise} END"


def write_file_list(files: Sequence[Path]) -> str:
    """Files as they are: a name that holds a star or a bracket is no pattern."""
    return f"[{', '.join(quote_text(glob.escape(str(file))) for file in files)}]"
