import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.demo import PATIENTS, made_up_patients
from sfumato.cli.main import app


def run(*arguments, **options):
    return CliRunner().invoke(app, arguments, **options)


def test_demo_shows_answers_margins_and_the_price():
    result = run("demo", env={"COLUMNS": "100"})
    assert result.exit_code == 0
    for part in ("How many smoke?", "±", "ε = 2", "family of 4", "two coins"):
        assert part in result.output


def test_demo_answers_differ_from_run_to_run():
    assert len({run("demo").output for _ in range(4)}) == 4


def test_made_up_patients_keep_to_the_declared_bounds():
    people = made_up_patients()
    assert all(len(column) == PATIENTS for column in people.values())
    assert people["age"].min() >= 0
    assert people["age"].max() < 120
    assert set(people["pain"]) <= set(range(1, 11))
    assert set(people["smoker"]) == {0, 1}


def test_epsilon_in_odds():
    result = run("epsilon", "1", "--json")
    assert result.exit_code == 0
    shown = json.loads(result.output)
    assert shown["epsilon"] == "1"
    half = next(row for row in shown["guesses"] if row["prior"] == 0.5)
    assert half["one_person"] == pytest.approx(0.7310585786)
    assert half["group"] == pytest.approx(0.9820137900)


@pytest.mark.parametrize("value", ["0", "1000", "1e300"])
def test_any_loss_has_its_odds(value):
    assert run("epsilon", value).exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["epsilon", "x"],
        ["epsilon", "-1"],
        ["epsilon", "nan"],
        ["epsilon", "1", "--people", "0"],
        ["nonsense"],
        ["epsilon"],
    ],
)
def test_usage_errors_leave_with_two(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_version():
    assert run("--version").output.strip() == f"sfumato {sf.__version__}"


def test_a_plain_terminal_gets_plain_text():
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", "demo"],
        capture_output=True, check=True, timeout=60, env={"PYTHONIOENCODING": "ascii", "LANG": "C", "PATH": ""},
    )  # fmt: skip
    assert b"How many smoke?" in done.stdout
    assert b"\x1b[" not in done.stdout
