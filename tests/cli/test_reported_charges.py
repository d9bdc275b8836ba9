"""Commands that spend: Ctrl-C, a closed pipe or a full disk never hide a charge."""

import json
import os
import subprocess
import sys

import pytest
from clinic import COUNT, json_of

from sfumato.cli import ask_commands, reported_charges
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.kernel import release

ASK = ("ask", COUNT, "--epsilon", "0.5")


def spent(clinic):
    return json_of(clinic("budget", "--json"))["spent"]["epsilon"]


def interrupt(*_, **__):
    raise KeyboardInterrupt


def close_pipe(*_, **__):
    raise BrokenPipeError


def test_an_interrupt_before_the_charge_says_that_nothing_was_spent(clinic, monkeypatch):
    monkeypatch.setattr(DuckDBEngine, "check", interrupt)
    stopped = clinic(*ASK)
    assert stopped.exit_code == 130
    assert "Interrupted." in stopped.stderr
    assert "Nothing was spent." in stopped.stderr
    assert spent(clinic) == "0"


def test_an_interrupt_while_the_data_is_read_says_what_was_charged(clinic, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(DuckDBEngine, "aggregate", interrupt)
        stopped = clinic(*ASK, "--json")
    assert stopped.exit_code == 130
    told = json.loads(stopped.stderr)
    assert told["error"] == "interrupted"
    assert "charged ε = 0.5. Ask the same question again to get its answer at no further cost." in told["hint"]
    assert json_of(clinic(*ASK, "--json"))["rows"]
    assert spent(clinic) == "0.5"


def test_an_interrupt_after_the_draw_says_that_the_charge_is_closed(clinic, monkeypatch):
    def release_then_interrupt(*given):
        release.release(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sfumato.answering.certified_plans.release", release_then_interrupt)
        stopped = clinic(*ASK)
    assert stopped.exit_code == 130
    assert "asking again is another charge" in stopped.stderr


@pytest.mark.parametrize(
    "command",
    [
        ASK, ("upgrade", COUNT, "--epsilon", "0.5"), ("diagnose", COUNT, "--epsilon", "0.5"),
        ("cap", "--epsilon", "0.5"), ("bounds", "age", "--epsilon", "0.5"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
@pytest.mark.parametrize("failure", [close_pipe, OSError(28, "No space left on device")], ids=["pipe", "disk"])
def test_an_answer_that_cannot_be_printed_says_what_was_charged(clinic, monkeypatch, command, failure):
    def fail(*_, **__):
        raise BrokenPipeError if failure is close_pipe else failure

    with monkeypatch.context() as patch:
        for name in ("print_answer", "say"):
            for module in ("ask_commands", "improve"):
                patch.setattr(f"sfumato.cli.{module}.{name}", fail)
        lost = clinic(*command)
    assert lost.exit_code == 1
    assert "charged ε = 0.5. Ask the same question again" in lost.stderr, lost.stderr
    assert spent(clinic) == "0.5"


def test_a_free_answer_that_cannot_be_printed_cost_nothing(clinic, monkeypatch):
    """Negative control: the message is about this command's own charges."""
    assert clinic(*ASK).exit_code == 0
    monkeypatch.setattr(ask_commands, "print_answer", close_pipe)
    assert "Nothing was spent." in clinic(*ASK).stderr


def start(clinic, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "sfumato", "-C", clinic.folder, *arguments], check=False, timeout=60,
        stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def test_a_pipe_that_is_closed_before_the_question_costs_nothing(clinic):
    reading, writing = os.pipe()
    os.close(reading)
    done = start(clinic, *ASK, stdout=writing)
    os.close(writing)
    assert done.returncode == 2
    assert "Nothing was spent." in done.stderr
    assert spent(clinic) == "0"


def test_a_pipe_that_is_open_gets_its_answer(clinic):
    """Negative control of the test above."""
    done = start(clinic, *ASK, stdout=subprocess.PIPE)
    assert done.returncode == 0
    assert "Cost: ε = 0.5" in done.stdout


def test_a_pipe_that_closes_in_a_free_command_is_quiet(clinic):
    reading, writing = os.pipe()
    os.close(reading)
    done = start(clinic, "preview", COUNT, "--epsilon", "1", stdout=writing)
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr == ""


def test_charges_of_others_before_the_command_are_not_listed(clinic):
    assert clinic(*ASK).exit_code == 0
    with reported_charges.charging(clinic.folder, False) as curator:
        ledger = curator.ledger()
        assert reported_charges.describe_charges(ledger, ledger.head()[0]) == "Nothing was spent."
        assert "Entry" in reported_charges.describe_charges(ledger, 0)
