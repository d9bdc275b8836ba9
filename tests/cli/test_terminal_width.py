"""Printed tables fit terminals of 40 and of 200 columns, and no word is broken."""

import re

import pytest
from clinic import BY_CITY, COUNT
from rich.cells import cell_len
from rich.console import Console

from sfumato.cli import show

SQL = "SELECT city, smoker, COUNT(*) AS number_of_patients, AVG(age) AS average_age FROM patients GROUP BY city, smoker"


def at_terminal(clinic, width, *command):
    """What a terminal of this width shows, without colours."""
    shown = clinic(*command, env={"COLUMNS": str(width), "FORCE_COLOR": "1", "TERM": "xterm"})
    assert shown.exit_code == 0, shown.output
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.stdout).splitlines()


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize(
    "command",
    [
        ("check",), ("budget",), ("ledger",), ("ask", SQL, "--epsilon", "1"), ("ask", BY_CITY, "--epsilon", "0.5"),
        ("epsilon", "1"), ("lab", "neighbours"), ("lab", "mechanism"), ("lab",),
        ("preview", SQL, "--epsilon", "1"), ("plan", COUNT, SQL, "--epsilon", "1"), ("ledger", "show", "2"),
    ],
    ids=lambda command: " ".join(command[:1]),
)  # fmt: skip
def test_every_line_fits(clinic, width, command):
    assert clinic("ask", COUNT, "--epsilon", "0.5").exit_code == 0
    lines = at_terminal(clinic, width, *command)
    assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize("width", range(30, 70))
def test_a_table_is_never_cut(capsys, monkeypatch, width):
    """Rich crops a table whose columns it cannot make narrow enough; the last cell of each row must be there."""
    monkeypatch.setattr(show, "to_stdout", lambda: Console(force_terminal=True, width=width, highlight=False))
    rows = [["1", "0.3679", "0", "2.718", "2 [1, 3]"], ["0.01", "0.99", "0.99", "1.01", "1.01"]]
    show.print_table(["ε", "e^-ε", "1 - ε", "e^ε", "1 + ε"], rows, right=range(5))
    printed = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(cell_len, printed.splitlines())) <= width
    assert printed.count("1.01") == 2
    assert "[1, 3]" in printed
    if "┏" in printed:
        assert all(line[-1] in "┓┃┩│┘┏" for line in printed.splitlines() if line.strip())


@pytest.mark.parametrize("width", [40, 200])
def test_words_are_whole(clinic, width):
    shown = " ".join(at_terminal(clinic, width, "check"))
    assert all(word in shown for word in ("patient_id", "nullable", "category", "boolean", "integer"))
    asked = " ".join(at_terminal(clinic, width, "ask", SQL, "--epsilon", "1"))
    assert "number_of_patients" in asked
    assert "average_age" in asked


@pytest.mark.parametrize("width", range(24, 90, 3))
def test_an_interval_is_in_one_line(clinic, width):
    """At every width: a table that is wrapped, or lines of `heading: value`."""
    found = re.findall(r"\[[^\]]*\]", clinic("ask", BY_CITY, "--epsilon", "0.5").stdout)
    assert len(found) == 4
    lines = at_terminal(clinic, width, "ask", BY_CITY, "--epsilon", "0.5")
    assert all(any(interval in line for line in lines) for interval in found)
    assert max(map(cell_len, lines)) <= width


def test_a_wide_terminal_has_a_table_and_bars(clinic):
    wide, narrow = (at_terminal(clinic, width, "ask", BY_CITY, "--epsilon", "1") for width in (200, 40))
    assert any("●" in line for line in wide)
    assert not any("●" in line for line in narrow)
