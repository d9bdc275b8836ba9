"""`sfumato shell`: a preview before each question, completion of declared names, and no silent charge."""

import os
import pty
import select
import signal
import sys
import time
from contextlib import suppress

import pytest
from clinic import COUNT, json_of

from sfumato.cli.shell_command import COMMANDS
from sfumato.cli.shell_completion import complete_word
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine

TABLES = {"patients": ["patient_id", "age", "city"], "visits": ["patient_id", "day", "cost"]}


def spent(clinic):
    return json_of(clinic("budget", "--json"))["spent"]["epsilon"]


def type_in(clinic, *lines, options=()):
    return clinic("shell", *options, input="".join(f"{line}\n" for line in lines))


def test_a_question_is_previewed_and_asked_after_a_yes(clinic):
    shown = type_in(clinic, f"{COUNT};", "y", options=("--epsilon", "0.5"))
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.index("Cost: ε = 0.5, which fits the budget.") < shown.stdout.index("Cost: ε = 0.5. Left:")
    assert spent(clinic) == "0.5"


def test_the_first_line_says_how_a_question_ends(clinic):
    assert "End a question with ; and Enter." in type_in(clinic).stdout.splitlines()[0]


@pytest.mark.parametrize("said", ["n", "", "yess", "SELECT 1;"])
def test_nothing_is_spent_without_a_yes(clinic, said):
    shown = type_in(clinic, f"{COUNT};", said)
    assert "Nothing was spent.\n" in shown.stdout
    assert spent(clinic) == "0"


def test_the_end_of_the_input_is_no_yes(clinic):
    assert type_in(clinic, f"{COUNT};").exit_code == 0
    assert spent(clinic) == "0"


def test_a_stored_answer_needs_no_yes(clinic):
    assert clinic("ask", COUNT, "--epsilon", "0.1").exit_code == 0
    assert "Free: answered before" in type_in(clinic, f"{COUNT};").stdout
    assert spent(clinic) == "0.1"


def test_a_question_that_does_not_fit_is_not_asked(clinic):
    shown = type_in(clinic, "\\epsilon 5", f"{COUNT};", "y")
    assert "It is not asked." in shown.stdout
    assert spent(clinic) == "0"


def test_a_question_may_take_several_lines(clinic):
    assert "does not fit" not in type_in(clinic, "SELECT COUNT(*) AS n", "FROM patients", ";", "y").stdout
    assert spent(clinic) == "0.1"


def test_a_refusal_leaves_the_prompt(clinic):
    shown = type_in(clinic, "SELECT COUNT(*) FROM nothing;", "\\nonsense", "\\epsilon x", f"{COUNT};", "y")
    assert shown.stderr.count("Refused:") == 3
    assert spent(clinic) == "0.1"


def test_a_margin_decides_what_is_spent(clinic):
    shown = type_in(
        clinic, "\\margin n=20", f"{COUNT};", "y", "\\epsilon 0.3", "SELECT SUM(age) AS s FROM patients;", "y"
    )
    assert "spend the least that gives ±20 of n" in shown.stdout
    assert 0.4 < float(spent(clinic)) < 0.5
    assert "\\margin takes" in type_in(clinic, "\\margin rows=20").stderr
    averages = type_in(clinic, "\\margin a=10 rows=200", "SELECT AVG(age) AS a FROM patients;", "y")
    assert "Refused" not in averages.stderr


def test_a_prompt_has_an_analyst_and_a_confidence(clinic):
    shown = type_in(clinic, f"{COUNT};", "y", options=("--analyst", "bob", "--confidence", "0.5"))
    assert "margin (50 %)" in shown.stdout
    assert "Intervals: 50 % confidence" in shown.stdout
    entries = json_of(clinic("ledger", "--json"))["entries"]
    assert {entry["analyst"] for entry in entries if entry["kind"] == "charge"} == {"bob"}


def test_the_commands_show_what_is_declared(clinic):
    shown = type_in(
        clinic, "\\tables", "\\columns patients", "\\budget", f"\\explain {COUNT};", "\\help", "\\quit", COUNT
    )
    assert "Privacy unit: patient_id." in shown.stdout
    assert "0 to 120" in shown.stdout
    assert "ε = 0 of 2 is spent, 2 is left." in shown.stdout
    assert "sensitivity" in shown.stdout
    assert all(command in shown.stdout for command in COMMANDS)
    assert shown.stderr == ""


def test_an_interrupt_while_asking_says_what_was_charged(clinic, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(DuckDBEngine, "aggregate", interrupt)
    shown = type_in(clinic, f"{COUNT};", "y", "\\budget")
    assert "charged ε = 0.1. Ask the same question again" in shown.stderr
    assert "ε = 0.1 of 2 is spent" in shown.stdout  # the prompt went on
    assert shown.exit_code == 0


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("SELECT ag", ["age"]), ("SELECT COUNT(*) FROM p", ["patients"]),
        ("SELECT COUNT(*) FROM ", ["patients", "visits"]), ("SELECT AG", ["age", "AGE("]),
        ("SELECT SUM(v.c", ["v.cost"]), ("SELECT patients.AG", ["patients.age"]), ("SELECT x.", []),
        ("\\col", ["\\columns"]), ("\\columns v", ["visits"]), ("SELECT COUNT(*) FROM patients gro", ["GROUP BY"]),
        ("SELECT MED", ["MEDIAN("]),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)  # fmt: skip
def test_completion_knows_declared_names(line, found):
    word = line.replace("(", " ").split(" ")[-1]
    whole = f"{line} FROM visits v" if "v.c" in line else line
    assert complete_word(word, whole, TABLES, COMMANDS) == found


def read_until(terminal, part, seconds=30):
    shown, end = b"", time.monotonic() + seconds
    while part not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 65536)
    assert part in shown, shown
    return shown


def wait_for(child, seconds=30):
    """The exit code of a process; None if it does not end in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    return None


def test_a_terminal_has_completion_and_history(clinic, tmp_path):
    """At a real terminal: Tab completes a table, Ctrl-C drops a line, Ctrl-D leaves, and the history is private."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "dumb", "SFUMATO_HOME": str(tmp_path / "home")}
        os.execv(sys.executable, [sys.executable, "-m", "sfumato", "-C", str(clinic.folder), "shell"])
    try:
        read_until(terminal, b"clinic (\xce\xb5 0.1)> ")
        os.write(terminal, b"nonsense")
        read_until(terminal, b"nonsense")
        time.sleep(1)  # Python's readline misses a signal that comes while it still works on a letter
        os.write(terminal, b"\x03")
        read_until(terminal, b"clinic (\xce\xb5 0.1)> ")
        os.write(terminal, b"SELECT COUNT(*) AS n FROM pati\t;\n")
        assert b"FROM patients" in read_until(terminal, b"[y/N] ")
        os.write(terminal, b"n\n")
        read_until(terminal, b"clinic (\xce\xb5 0.1)> ")  # only now does it read again
        os.write(terminal, b"\x04")
        assert wait_for(child) == 0
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.close(terminal)
    history = tmp_path / "home" / "shell_history"
    assert "FROM patients;" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
