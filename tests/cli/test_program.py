"""The program around the commands: -C anywhere, usage mistakes in JSON, and exit codes."""

import json

import pytest
import typer
from clinic import COUNT, json_of, read_refusal, run

from sfumato.cli import lab_explanations
from sfumato.cli.lab import COMMANDS
from sfumato.cli.program import move_folder_to_front


@pytest.mark.parametrize(
    "place", [lambda rest, folder: [*folder, *rest], lambda rest, folder: [rest[0], *folder, *rest[1:]],
              lambda rest, folder: [*rest, *folder]], ids=["first", "between", "last"],
)  # fmt: skip
@pytest.mark.parametrize("attached", [False, True])
def test_the_folder_may_stand_anywhere(clinic, place, attached):
    folder = [f"-C{clinic.folder}"] if attached else ["-C", clinic.folder]
    assert json_of(run(*place(["preview", COUNT, "--epsilon", "0.5", "--json"], folder)))["cost"]["epsilon"] == "0.5"
    assert "limit" in json_of(run(*place(["budget", "--json"], folder)))


def test_what_follows_two_dashes_is_no_option():
    assert move_folder_to_front(["ask", "--", "-C", "x"]) == ["ask", "--", "-C", "x"]
    assert move_folder_to_front(["ask", "-C", "x", "--", "-Cy"]) == ["-C", "x", "ask", "--", "-Cy"]


def test_a_folder_that_is_not_given_is_named():
    result = run("check", "-C")
    assert result.exit_code == 2
    assert "-C needs a folder." in result.stderr


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("ask", COUNT, "--epsilonn", "1"), "--epsilonn"), (("askk", COUNT), "'askk'"), (("ask",), "SQL"),
        (("ask", COUNT, "--max-rows", "0", "--epsilon", "1"), "--max-rows"), (("epsilon", "1", "2"), "2"),
        (("ledger", "showw"), "showw"), (("lab", "nothing"), "nothing"), (("ask", COUNT), "--epsilon"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)  # fmt: skip
def test_a_usage_mistake_is_json_too(clinic, arguments, part):
    told = read_refusal(clinic(*arguments, "--json"), 2)
    assert told["error"] == "usage"
    assert part in told["message"]
    plain = clinic(*arguments)
    assert plain.exit_code == 2
    assert plain.stdout == ""
    assert plain.stderr.startswith("Refused: ")
    assert part in plain.stderr
    with pytest.raises(json.JSONDecodeError):
        json.loads(plain.stderr)


def test_two_prices_are_named(clinic):
    told = read_refusal(clinic("ask", COUNT, "--epsilon", "1", "--margin", "n=3", "--json"), 2)
    assert told["message"] == "Give one price of the question, not --epsilon and --margin."


def test_json_in_front_is_told_its_place():
    assert read_refusal(run("--json", "budget"), 2)["message"] == "--json stands behind a command."


def test_a_budget_that_protects_hardly_anybody_says_so(tmp_path):
    assert "protects hardly anybody" in run("init", str(tmp_path / "a"), "--epsilon", "50").stdout
    assert "hardly" not in run("init", str(tmp_path / "b"), "--epsilon", "3").stdout


def test_a_usage_mistake_says_where_help_is(clinic):
    assert clinic("ask", COUNT, "--epsilonn", "1").stderr.splitlines()[-1].endswith(" ask --help")


def test_an_unknown_name_of_the_lab_is_refused_with_all_names():
    told = read_refusal(run("lab", "nosuch", "--json"), 2)
    assert all(command.name in told["message"] for command in COMMANDS)


@pytest.mark.parametrize("interrupted", [KeyboardInterrupt, typer.Abort])
def test_ctrl_c_leaves_with_130_and_the_end_of_the_input_with_one(monkeypatch, interrupted):
    def stop(*_, **__):
        raise interrupted

    monkeypatch.setattr(lab_explanations, "show_result", stop)
    assert run("lab", "neighbours").exit_code == (130 if interrupted is KeyboardInterrupt else 1)


def test_a_program_without_a_command_shows_its_help():
    result = run()
    assert "Usage:" in result.output
    assert "Refused" not in result.output
