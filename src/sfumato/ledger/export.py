"""A ledger as JSON lines, with everything that others need to check its chain, sums and signatures.

The first line identifies the ledger. Every further line is one entry, with all columns as they are hashed. The hash of
an entry covers the hash before it, a line break, and the canonical JSON of its columns (`entries.CHAINED`). A signature
covers the text "sfumato ledger entry " and the hash. The integers of answers may be left out; their hash is included.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sfumato.canonical_text import write_canonical
from sfumato.errors import LedgerError
from sfumato.ledger.audit import Verification, walk
from sfumato.ledger.entries import Row
from sfumato.ledger.entry_queries import walk_entries
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.replay import Replay

FORMAT, VERSION = "sfumato-ledger-export", 1
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export claims, and what checking it found. Compare the key and the head with ones that you trust."""

    ledger_id: str
    population: str
    head: str
    public_key: str
    verification: Verification


def write_export(rows: LedgerRows, ledger_id: str, population: str, file: IO[str], *, answers: bool) -> int:
    """Write every entry, and return how many there are."""
    head = rows.read_head(lock=False)
    first = {
        "format": FORMAT, "version": VERSION, "ledger_id": ledger_id, "population": population,
        "entries": head.number, "head": head.hash, "answers": answers,
    }  # fmt: skip
    file.write(write_canonical(first) + "\n")
    for row in walk_entries(rows):
        left_out = {"payload"} if row["kind"] == "answer" and not answers else set()
        file.write(write_canonical({name: value for name, value in row.items() if name not in left_out}) + "\n")
    return head.number


def check_export(path: Path, head: str | None = None) -> Exported:
    """Check an export: every hash, signature and sum, and that no entry is missing at its end."""
    try:
        with path.open(encoding="utf-8") as file:
            first = json.loads(next(file, ""))
            if first.get("format") != FORMAT or first.get("version") != VERSION:
                raise ValueError("another format")
            identity = str(first["ledger_id"]), str(first["population"])
            hashes: list[str] = []
            sums = Replay(*identity)
            found = walk(_read_rows(file, hashes), sums, (0, ""))
            newest = str(first["head"])
    except OSError as error:
        raise LedgerError("export-unreadable", f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    except DAMAGED:
        hint = "Export the ledger again with `sfumato ledger export`."
        raise LedgerError("export-damaged", f"{path} is not an export of a ledger, or is damaged.", hint) from None
    if found.ok and (not hashes or found.entries != first["entries"] or newest != hashes[-1]):
        found = Verification(False, found.entries, found.entries + 1, "Entries are missing at the end.")
    if found.ok and head is not None and head not in hashes:
        found = Verification(False, found.entries, None, "No entry has the expected hash.")
    return Exported(*identity, newest, sums.key, found)


def _read_rows(file: IO[str], hashes: list[str]) -> Iterator[Row]:
    for line in file:
        row: dict[str, Any] = json.loads(line)
        hashes.append(str(row["hash"]))
        yield row
