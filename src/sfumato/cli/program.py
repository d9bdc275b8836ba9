"""The program around the commands: -C anywhere, usage mistakes as refusals (JSON with --json), and Ctrl-C."""

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from sfumato.cli.refusals import INTERRUPTED, OTHER, USAGE, Usage, tell

FOLDER = "-C"


class Program(TyperGroup):
    """The group of all commands. It catches what its commands do not."""

    def main(  # type: ignore[override]  # typer's own signature has changed between its versions
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *,
        standalone_mode: bool = True,
        **extra: Any,  # noqa: ANN401 - typer's own
    ) -> Any:  # noqa: ANN401 - typer's own
        """Run a command. Exit with its code, unless the caller wants to have it."""
        given = list(sys.argv[1:] if args is None else args)
        try:
            given = move_folder_to_front(given)
            code = super().main(given, prog_name, standalone_mode=False, **extra)
        except KeyboardInterrupt:
            code = INTERRUPTED
        except typer.Abort:  # the end of the input at a prompt
            code = OTHER
        except Usage as error:
            tell(error, "--json" in given)
            code = USAGE
        except BrokenPipeError:
            code = _leave_closed_pipe()
        except Exception as error:
            code = _refuse_usage(error, "--json" in given)
        if code == INTERRUPTED:
            typer.echo("", err=True)  # the shell's next prompt begins on a line of its own
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)  # a command that returns nothing has done its work
        return code


def move_folder_to_front(arguments: Sequence[str]) -> list[str]:
    """The arguments with `-C DIR` in front, wherever it stands. What follows `--` is no option."""
    front: list[str] = []
    others: list[str] = []
    left = list(arguments)
    while left:
        one = left.pop(0)
        if one == "--":
            others += [one, *left]
            break
        if one == FOLDER and not left:
            raise Usage(f"{FOLDER} needs a folder.", f"For example {FOLDER} clinic.")
        if one == FOLDER:
            front += [one, left.pop(0)]
        elif one.startswith(FOLDER):
            front.append(one)
        else:
            others.append(one)
    return [*front, *others]


def _refuse_usage(error: Exception, as_json: bool) -> int:
    """Report a mistake in the command line. Typer's class of these errors is private, so they are told by their code.

    Any other error is raised again.
    """
    describe = getattr(error, "format_message", None)
    if getattr(error, "exit_code", None) != USAGE or describe is None:
        raise error
    context = getattr(error, "ctx", None)
    message = str(describe()).strip()
    if not message:  # a command without its arguments: typer has shown its help
        return USAGE
    if message.startswith("No such option: --json"):
        tell(Usage("--json stands behind a command.", "For example: sfumato budget --json."), as_json)
        return USAGE
    hint = "" if context is None else f"Help: {context.command_path} --help"
    tell(Usage(message if message.endswith((".", "?", ")")) else f"{message}.", hint), as_json)
    return USAGE


def _leave_closed_pipe() -> int:
    """Whoever read the output has gone. Nothing more is printed, also when Python closes its streams."""
    from os import devnull, dup2  # noqa: PLC0415 - rarely needed

    with open(devnull, "w", encoding="utf-8") as nowhere:
        dup2(nowhere.fileno(), sys.stdout.fileno())
    return OTHER
