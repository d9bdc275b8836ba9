"""Where a ledger is, as an owner declares it: a path or a URL, seen from a folder."""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from sfumato.errors import LedgerError

HINT = 'Check the path: `ledger = "../shared.db"` under [dataset] in catalog.toml, or ledger= in Python.'
IN_MEMORY = (None, "", ":memory:")


def resolve_address(folder: Path, declared: str) -> str:
    """The absolute path, or the URL on a server. A relative path is seen from the folder, also in a sqlite URL.

    What is in memory would be forgotten with the process, and its budget with it: it is refused.
    """
    path = _find_file(declared)
    if path is None:
        return declared
    try:
        place = (folder / Path(path).expanduser()).absolute()
    except RuntimeError:  # ~somebody
        raise LedgerError(
            "ledger-unreachable", "The ledger's path begins with no user of this machine.", HINT
        ) from None
    if place.is_dir():
        raise LedgerError("ledger-unreachable", f"The ledger's path is a folder: {place}.", HINT)
    if not place.parent.is_dir():
        hint = f"Make the folder. {HINT}"
        raise LedgerError("ledger-unreachable", f"The ledger's folder is not there: {place.parent}.", hint)
    return str(place)


def _find_file(declared: str) -> str | None:
    """The path of a file, or None for a server."""
    path: str | None = declared
    if "://" in declared:
        try:
            address = sa.make_url(declared)
        except ArgumentError:
            return None  # refused where it is opened
        if address.get_backend_name() != "sqlite":
            return None
        path = address.database
    if path is None or path in IN_MEMORY:
        message = "A dataset's ledger cannot be in memory: what was spent would be forgotten."
        raise LedgerError("ledger-in-memory", message, HINT)
    return path
