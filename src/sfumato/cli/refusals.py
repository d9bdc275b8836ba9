"""Report errors: a sentence and a hint on stderr (JSON with --json), and an exit code."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from functools import partial

import typer
from rich.text import Text

from sfumato.cli.show import printable, to_stderr
from sfumato.errors import (
    BudgetExceeded,
    CatalogError,
    InvalidParameter,
    LoadWarning,
    PermissionDenied,
    QueryError,
    SfumatoError,
)

OTHER, USAGE, BUDGET, REFUSED = 1, 2, 3, 4
INTERRUPTED = 130  # as shells count it: 128 and the number of the signal


class Usage(SfumatoError):
    """The command line is wrong; nothing was read."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__("usage", message, hint)


def exit_code(error: SfumatoError) -> int:
    """2 usage, 3 budget refused, 4 query, catalog or analyst refused, 1 other."""
    match error:
        case Usage():
            return USAGE
        case BudgetExceeded():
            return BUDGET
        case QueryError() | CatalogError() | InvalidParameter() | PermissionDenied():
            return REFUSED
        case _:
            return OTHER


@contextmanager
def refusals(as_json: bool) -> Iterator[None]:
    """Report an error raised inside and exit with its code, without a traceback.

    The first command on a folder may load its data; warnings about that load are printed too.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", LoadWarning)
            warnings.showwarning = partial(_tell_warning, as_json=as_json)
            yield
    except SfumatoError as error:
        tell(error, as_json)
        raise typer.Exit(exit_code(error)) from None
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except OSError as error:
        where = error.filename or "The output could not be written"  # to the terminal, pipe or file behind stdout
        hint = "Make room on its disk." if error.errno == ENOSPC else "Check the path and its permissions."
        tell(SfumatoError("file", f"{where}: {error.strerror}.", hint), as_json)
        raise typer.Exit(OTHER) from None
    except Exception as error:
        # its own text is left out: it may hold a value from the data
        kind = type(error).__name__
        tell(SfumatoError("unexpected", f"Something unexpected happened ({kind}).", "Please report this."), as_json)
        raise typer.Exit(OTHER) from None


def _tell_warning(message: Warning | str, *_: object, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"warning": str(message)}), err=True)
        return
    to_stderr().print(Text.assemble(("Warning:", "bold yellow"), " ", printable(str(message))), soft_wrap=True)


def tell(error: SfumatoError, as_json: bool) -> None:
    """Print one error on stderr."""
    if as_json:
        told = {"error": error.code, "message": error.message, "hint": error.hint}
        typer.echo(json.dumps(told), err=True)
        return
    console = to_stderr()
    console.print(Text.assemble(("Refused:", "bold red"), " ", printable(error.message)), soft_wrap=True)
    if error.hint:
        console.print(Text(printable(error.hint), "dim"), soft_wrap=True)
