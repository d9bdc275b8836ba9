"""Run the snippets of a page from top to bottom: Python, sessions of a terminal, catalogs, questions, shell commands.

All Python of a page shares its names, and everything runs in one folder, as a reader would do it. A comment after an
expression that looks like a value (`# True`, `# Decimal('0.5'): ...`) is compared with the value.
"""

import ast
import re
import shlex
import tomllib
from dataclasses import dataclass

import pytest
import typer
from typer.testing import CliRunner

from sfumato.catalog.catalog_file import read_dataset
from sfumato.cli.main import app
from sfumato.query.bound_question import bind_question

FENCE = re.compile(r"^( *)(`{3,})([\w-]*)([^\n]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
VALUE = re.compile(
    r"# (\w+DP\([^)]*\)|Decimal\('[^']*'\)|True|False|None|-?\d[\d_]*(?:\.\d+)?"
    r"|'[^']*'|\[[^\]]*\]|\{[^}]*\})(?:[:;].*)?$"
)
HEAD = b'[dataset]\nname = "page"\n[budget]\nepsilon = "1"\n'
RUNNING = "With the running service"
NOT_RUN = {"text", "", "js", "json"}  # what a page shows, and no reader types


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    line: int
    title: str = ""


def read_blocks(path):
    """The fenced blocks of a page."""
    text = path.read_text()
    found = []
    for match in FENCE.finditer(text):
        body = "\n".join(line.removeprefix(match[1]) for line in match[5].split("\n"))
        title = re.search(r'title="([^"]*)"', match[4])
        found.append(Block(match[3], body, text[: match.start()].count("\n") + 2, title[1] if title else ""))
    return found


def run_page(path):
    """Run every block; the number of values that were compared."""
    names, catalog, compared = {"__name__": "page"}, None, 0
    for block in read_blocks(path):
        where = f"{path.name}, line {block.line}"
        match block.kind:
            case "python" if block.title == RUNNING:
                pass  # tests/service/test_remote.py runs it
            case "python":
                compared += run_python(block.text, names, where)
            case "console":
                run_session(block.text, where)
            case "toml":
                catalog = read_catalog(block.text)
            case "sql":
                assert catalog is not None, f"{where}: no catalog above this question"
                bind_question(block.text.strip().rstrip(";"), catalog)
            case "sh":
                check_commands(block.text, where)
            case kind:
                assert kind in NOT_RUN, f"{where}: nothing runs {kind}"
    return compared


def run_python(text, names, where):
    """Execute statement by statement, and compare values with the comments that state them."""
    lines, compared = text.split("\n"), 0
    for node in ast.parse(text, where).body:
        if not isinstance(node, ast.Expr):
            exec(compile(ast.Module([node], []), where, "exec"), names)
            continue
        value = eval(compile(ast.Expression(node.value), where, "eval"), names)
        stated = VALUE.search(lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode().strip())
        if stated and "..." not in stated[1]:
            compared += 1
            assert matches(value, stated[1]), f"{where}: {ast.unparse(node)} is {value!r}, not {stated[1]}"
    return compared


def matches(value, stated):
    if isinstance(value, float):
        return value == pytest.approx(float(stated), rel=1e-3)
    return repr(value) == stated


def run_session(text, where):
    """Each command prints what the session shows: exactly in 80 columns, or up to numbers in 200."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)[1:]
    assert parts, f"{where}: no command"
    for command, shown in zip(parts[::2], parts[1::2], strict=True):
        if not command.startswith("sfumato "):
            continue
        words = shlex.split(command)[1:]
        narrow = CliRunner().invoke(app, words, env={"COLUMNS": "80"}) if "epsilon" in words[:1] else None
        if narrow is not None and trim(narrow.output) == trim(shown):
            continue
        result = CliRunner().invoke(app, words, env={"COLUMNS": "200", "SFUMATO_DEVICE": "device.db"})
        assert without_numbers(result.output) == without_numbers(shown), f"{where}: {command}"


def trim(text):
    return [line.rstrip() for line in text.strip().splitlines()]


def without_numbers(text):
    """Noise, hashes and times differ from run to run, and with them the width of columns."""
    plain = re.sub(r"[0-9a-f]{32,64}|[-+±]?\d[\d.,e+-]*", "#", text)
    lines = [" ".join(line.split()) for line in plain.splitlines()]
    return [re.sub(r"# #|\[# ", "#", line) for line in lines if line]


def read_catalog(text):
    """The dataset that a catalog declares; parts that every catalog has may be left out. Public tables have no file."""
    declared = tomllib.loads(text)
    head = b"" if "dataset" in declared else HEAD.split(b"[budget]")[0]
    head += b"" if "budget" in declared else b'[budget]\nepsilon = "1"\n'
    kept = re.sub(r"^\[tables\.\w+\][^\[]*?^public = true\n", "", text, flags=re.MULTILINE)
    return read_dataset(head + kept.encode())


def check_commands(text, where):
    """Every `sfumato` command of a shell snippet exists, with its options."""
    for line in text.replace("\\\n", " ").splitlines():
        found = re.match(r"(?:sudo -u \w+ )?(?:\S*/)?sfumato (.*)", line.strip())
        if found:
            check_command(shlex.split(found[1], comments=True), f"{where}: {line.strip()}")


def check_command(words, where):
    command, options, wanted = typer.main.get_command(app), set(), []
    for word in words:
        if word.startswith("-"):
            wanted.append(word.split("=")[0])
        elif word in getattr(command, "commands", {}):
            options |= list_options(command)
            command = command.commands[word]
    options |= list_options(command) | {"--help"}
    assert command is not typer.main.get_command(app), where
    assert not getattr(command, "commands", {}) or command.invoke_without_command, f"{where}: an incomplete command"
    unknown = [word for word in wanted if word not in options]
    assert not unknown, f"{where}: unknown {', '.join(unknown)}"


def list_options(command):
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
