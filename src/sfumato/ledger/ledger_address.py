"""The address of a ledger, as the owner declares it: a path relative to the dataset's folder, or a URL."""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from sfumato.errors import LedgerError

HINT = 'Check the path: `ledger = "../shared.db"` under [dataset] in catalog.toml, or ledger= in Python.'
IN_MEMORY = (None, "", ":memory:")


def resolve_address(folder: Path, declared: str) -> str:
    """The absolute path, or the URL on a server. A path is relative to the folder, also in a sqlite URL.

    An address in memory is refused, because the process would take the record of what is spent with it.
    """
    path = _find_file(declared)
    if path is None:
        return declared
    try:
        place = (folder / Path(path).expanduser()).absolute()
    except RuntimeError:  # ~somebody
        raise LedgerError(
            "ledger-unreachable", "The ledger's path begins with ~ and a user that this machine does not have.", HINT
        ) from None
    if place.is_dir():
        raise LedgerError("ledger-unreachable", f"The ledger's path is a folder: {place}.", HINT)
    if not place.parent.is_dir():
        hint = f"Make the folder. {HINT}"
        raise LedgerError("ledger-unreachable", f"The ledger's folder does not exist: {place.parent}.", hint)
    return str(place)


def _find_file(declared: str) -> str | None:
    """The path of a file; None for a server."""
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
        message = "A dataset's ledger cannot be in memory: the record of what is spent would be lost."
        raise LedgerError("ledger-in-memory", message, HINT)
    return path
