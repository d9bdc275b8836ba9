"""The commands of docs/deploy-a-survey.md run, and its figures are what the tables give."""

import re
import shlex
import socket
from pathlib import Path

import pytest
from clinic import run

import sfumato as sf

PAGE = (Path(__file__).parents[2] / "docs" / "deploy-a-survey.md").read_text()
COMMANDS = [
    line.partition("  #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("sfumato ")
]


def read_public_key(key):
    done = run("survey", "new", f"{key}.json", "Which?", "--labels", "a,b", "--epsilon", "1", "--key", key)
    assert done.exit_code == 0, done.output
    return re.search(r"[0-9a-f]{64}", done.stdout)[0]


def test_the_commands_run_in_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    public = {"NEW_PUBLIC_KEY": read_public_key("new.key"), "OLD_PUBLIC_KEY": read_public_key("team.key")}
    assert len(COMMANDS) >= 9
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        for command in COMMANDS:
            arguments = [public.get(part, part) for part in shlex.split(command)[1:]]
            if arguments[1] in ("serve", "relay"):  # they would not end: a used port shows that all else is right
                done = run(*arguments, "--port", str(used.getsockname()[1]))
                assert (done.exit_code, "cannot be used" in done.output) == (2, True), done.output
            else:
                done = run(*arguments)
                assert done.exit_code == 0, (command, done.output)


def test_the_margins_are_those_of_the_table():
    rows = re.findall(r"^\| ([\d,]+) \| ±([\d.]+) points \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    response = sf.local.randomiser("rr", k=2, epsilon=1)
    for people, margin in rows:
        assert 100 * response.margin(int(people.replace(",", "")), share=0.25) == pytest.approx(float(margin), abs=0.05)


def test_the_other_systems_are_compared():
    head = next(line for line in PAGE.splitlines() if line.startswith("| | Sfumato survey"))
    assert [name in head for name in ("RAPPOR", "Apple", "DAP / Prio")] == [True] * 3
    for row in ("who must be trusted", "what can be asked", "cost"):
        assert re.search(rf"^\| {row}", PAGE, re.MULTILINE), row
