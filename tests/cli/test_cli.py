import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from clinic import run

import sfumato as sf
from sfumato.cli.demo import PATIENTS, WARDS, make_up_patients

CLI = Path(__file__).parents[2] / "src" / "sfumato" / "cli"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_demo_leaves_nothing_in_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("SFUMATO_HOME", str(tmp_path / "home"))
    assert run("demo", env={"COLUMNS": "100"}).exit_code == 0
    assert not (tmp_path / "home").exists()
    assert os.environ["SFUMATO_HOME"] == str(tmp_path / "home")


def test_demo_is_a_tour_of_the_commands(tmp_path):
    result = run("demo", env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    parts = (
        "$ sfumato -C clinic init", "$ sfumato -C clinic add patients", "$ sfumato -C clinic check", "0 to 120",
        "$ sfumato -C clinic preview", "Nothing was spent", "$ sfumato -C clinic ask", "Cost: ε = 0.5.",
        "The truth is 270", "Free: answered before", "GROUP BY ward", "Left: ε = 0.5.", "Saved sfumato-demo.svg",
        "All entries are correct", "Refused: This costs epsilon = 1", "A question of at most epsilon = 0.5 still fits.",
        "the plot is in sfumato-demo.svg", "What to do next", "sfumato init clinic", "sfumato -C clinic shell",
    )  # fmt: skip
    places = [result.stdout.find(part) for part in parts]
    assert all(place >= 0 for place in places), dict(zip(parts, places, strict=True))
    assert places == sorted(places)
    assert (tmp_path / "sfumato-demo.svg").read_text().startswith("<svg")


def test_a_demo_whose_command_fails_says_so(monkeypatch):
    def fail(*_):
        raise RuntimeError

    monkeypatch.setattr("sfumato.opening.open_folder", fail)
    result = run("demo", "--no-plot")
    assert result.exit_code == 1
    assert "The demo ends here: this command failed." in result.stdout
    assert "What to do next" not in result.stdout


def test_demo_without_a_plot_leaves_nothing(tmp_path):
    result = run("demo", "--no-plot")
    assert result.exit_code == 0
    assert "svg" not in result.output
    assert list(tmp_path.iterdir()) == []
    assert run("demo", "--no-plot").output != result.output  # noise, from run to run


def test_made_up_patients_keep_to_the_declared_bounds():
    people = list(make_up_patients())
    assert len({person["patient_id"] for person in people}) == PATIENTS
    assert all(0 <= person["age"] <= 120 and 1 <= person["pain"] <= 10 for person in people)
    assert {person["ward"] for person in people} == set(WARDS)
    assert {person["smoker"] for person in people} == {"true", "false"}


WORDS = [CLI.with_name("answering") / name for name in ("entry_words.py", "table_words.py")]
WORDS.append(CLI.with_name("shown_amounts.py"))


@pytest.mark.parametrize("path", [*sorted(CLI.glob("*.py")), *WORDS], ids=lambda path: path.name)
def test_what_is_heavy_is_imported_late(path):
    heavy = {"numpy", "duckdb", "altair", "pyarrow", "sqlglot", "sqlalchemy"}
    light = {"sfumato.errors", "sfumato.json_values", "sfumato.lab.attack_names"}
    light |= {".".join(words.relative_to(CLI.parents[1]).with_suffix("").parts) for words in WORDS}
    for node in ast.parse(path.read_text()).body:
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            assert name.split(".")[0] not in heavy
            assert not name.startswith("sfumato") or name.startswith("sfumato.cli") or name in light


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
        [sys.executable, "-m", "sfumato", "demo", "--no-plot"],
        capture_output=True, check=True, timeout=60, env={"PYTHONIOENCODING": "ascii", "LANG": "C", "PATH": ""},
    )  # fmt: skip
    assert b"How many patients smoke?" in done.stdout
    assert b"Cost: e = 0.5" in done.stdout
    assert b"\x1b[" not in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["epsilon", "1"],
        ["lab", "mechanism"],
        ["lab", "neighbours"],
        ["lab", "error", "--repeats", "10"],
        ["lab", "randomized-response", "--repeats", "10"],
    ],
    ids=" ".join,
)
def test_drawings_are_legible_on_a_plain_terminal(command):
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", *command],
        capture_output=True, check=True, timeout=60, env={"PYTHONIOENCODING": "ascii", "LANG": "C", "PATH": ""},
    )  # fmt: skip
    assert b"?" not in done.stdout.replace(b"most?", b"").replace(b"count?", b"")  # every letter has a replacement


def test_help_names_every_command():
    shown = run("--help").output
    for name in ("demo", "init", "add", "check", "preview", "ask", "explain", "budget", "ledger", "epsilon"):
        assert f" {name} " in shown


def test_epsilon_refuses_in_json_too():
    told = json.loads(run("epsilon", "x", "--json").stderr)
    assert told["error"] == "invalid-parameter"
