"""The reference of the command line, generated from the commands themselves."""

import re
from collections.abc import Iterator

import click
import typer

from sfumato.cli.main import app

HEAD = """# Command line

This page is generated from the commands. `sfumato --help` and `sfumato COMMAND --help` show the same.

| Exit code | Meaning |
|---:|---|
| 0 | done |
| 1 | another failure: a file, the ledger, the engine |
| 2 | the command line is wrong; nothing was read |
| 3 | the budget does not suffice; nothing was charged |
| 4 | the question, the catalog or the analyst is refused; nothing was charged |
| 130 | interrupted with Ctrl-C; the message says what was charged |

"""
MARKUP = re.compile(r"\[/?(?:bold|dim|italic|red|green|yellow|cyan|/)[^\]]*\]")


def write_commands() -> str:
    """The page in Markdown."""
    root = typer.main.get_command(app)
    context = click.Context(root, info_name="sfumato") if isinstance(root, click.Group) else None
    lines = [HEAD, "## sfumato\n", "Options before the command:\n", *_list_parameters(root)]
    for words, command in list_commands(root):
        level = "##" if len(words) == 1 else "###"
        lines.append(f"\n{level} {' '.join(['sfumato', *words])}\n")
        lines.append(_clean(command.help or ""))
        if not isinstance(command, click.Group):
            lines += ["", "```text", _write_usage(command, words), "```", "", *_list_parameters(command)]
    del context
    return "\n".join(lines) + "\n"


def list_commands(root: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with its words, groups before their commands."""
    for name, command in sorted(getattr(root, "commands", {}).items()):
        if command.hidden:
            continue
        yield (*words, name), command
        yield from list_commands(command, (*words, name))


def _write_usage(command: click.Command, words: tuple[str, ...]) -> str:
    context = click.Context(command, info_name=" ".join(words))
    return " ".join(["sfumato", *words, *command.collect_usage_pieces(context)])


def _list_parameters(command: click.Command) -> list[str]:
    context = click.Context(command, info_name="")
    rows = []
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name in ("help", "install_completion", "show_completion"):
            continue
        name = " ".join(f"`{option}`" for option in [*parameter.opts, *parameter.secondary_opts])
        if isinstance(parameter, click.Argument):
            name = f"`{(parameter.metavar or parameter.name or '').upper()}`"
        rows.append(
            f"| {name} | {_clean(getattr(parameter, 'help', None) or '')} | {_write_default(parameter, context)} |"
        )
    return ["| Option | Meaning | Default |", "|---|---|---|", *rows] if rows else []


def _write_default(parameter: click.Parameter, context: click.Context) -> str:
    value = parameter.get_default(context, call=False)
    if parameter.required:
        return "required"
    if value is None or callable(value) or value in ((), [], "") or str(value) == "." or "UNSET" in repr(value):
        return ""
    if isinstance(value, bool):
        return "on" if value else ""
    return f"`{value}`"


def _clean(text: str) -> str:
    """Help as Markdown: no markup of the terminal, one line for a paragraph."""
    plain = MARKUP.sub("", text).replace("|", "\\|").replace("<", "&lt;")
    return "\n\n".join(" ".join(part.split()) for part in plain.split("\n\n"))
