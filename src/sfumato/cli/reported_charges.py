# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""Commands that spend: whatever stops one of them, its user learns what was charged."""

import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sfumato.answering.entry_words import write_loss_as_json
from sfumato.cli.refusals import INTERRUPTED, OTHER, Usage, tell
from sfumato.errors import SfumatoError
from sfumato.shown_amounts import write_amounts

if TYPE_CHECKING:
    from sfumato.curator import Curator
    from sfumato.ledger.ledger import Ledger

NOTHING = "Nothing was spent."
FREE_AGAIN = "Ask the same question again to get its answer at no further cost."
CLOSED = "Noise was drawn for it and no answer was given, so it is spent: asking again is another charge."


@contextmanager
def charging(folder: Path, as_json: bool) -> "Iterator[Curator]":
    """Open a dataset for a command that may spend, and hold it open while the command prints its result.

    Ctrl-C, a closed pipe or a full disk end the command. A message on stderr then lists what it charged.
    """
    refuse_closed_output()
    from sfumato.opening import open_folder

    with open_folder(folder) as curator, reporting(curator, as_json):
        yield curator


@contextmanager
def reporting(curator: "Curator", as_json: bool) -> Iterator[None]:
    """Report what is charged inside, if Ctrl-C, a closed pipe or a full disk ends it before the result is printed."""
    ledger = curator.ledger()
    first = ledger.head()[0]
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        tell(SfumatoError("interrupted", "Interrupted.", describe_charges(ledger, first)), as_json)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        _report_unread("The reader of the output has closed it.", ledger, first, as_json)
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else "The output could not be written: "
        _report_unread(f"{where}{error.strerror}.", ledger, first, as_json)
        raise typer.Exit(OTHER) from None


def refuse_closed_output() -> None:
    """Refuse a command that would spend, if nobody can read its result."""
    try:
        output = sys.stdout.fileno()
        if not stat.S_ISFIFO(os.fstat(output).st_mode) or not hasattr(select, "poll"):
            return
    except (OSError, ValueError, AttributeError):  # not a file of the system, as in tests and notebooks
        return
    pipe = select.poll()
    pipe.register(output, 0)  # a closed pipe is reported without asking for it
    if any(event & select.POLLERR for _, event in pipe.poll(0)):
        raise Usage("The reader of the output has closed it.", NOTHING)


def _report_unread(message: str, ledger: "Ledger", first: int, as_json: bool) -> None:
    tell(SfumatoError("file", message, describe_charges(ledger, first)), as_json)


def describe_charges(ledger: "Ledger", first: int) -> str:
    """What was charged since this entry, and how its answer can still be had."""
    newer = [entry for entry in ledger.entries() if entry.number > first]
    charges = [entry for entry in newer if entry.kind in ("charge", "seen")]
    if not charges:
        return NOTHING
    from sfumato.ledger.stored_answers import VOID_HASH

    closed = {entry.about for entry in newer if entry.kind == "answer" and entry.payload_hash == VOID_HASH}
    lines = []
    for entry in charges:
        what = f"Entry {entry.number} charged {write_amounts(write_loss_as_json(entry.loss))}."
        lines.append(f"{what} {CLOSED if entry.number in closed else FREE_AGAIN}")
    return " ".join(lines)
