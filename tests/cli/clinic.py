"""A small clinic on disk, and a way to run commands on it."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from sfumato.cli.main import app

PATIENTS = "patient_id,age,city,smoker\n" + "".join(
    f"p{index},{20 + index % 60},{'Rome' if index % 3 else 'Oslo'},{'true' if index % 4 == 0 else 'false'}\n"
    for index in range(300)
)
COLUMNS = ("age:integer:0:120", "city:category:Rome,Oslo", "smoker:boolean")
COUNT = "SELECT COUNT(*) AS n FROM patients"
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(age) AS age FROM patients GROUP BY city"


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def list_options(columns):
    return [part for column in columns for part in ("--column", column)]


def made(folder, *columns, epsilon="2"):
    """The folder, as `init` and `add` make it."""
    folder.mkdir(exist_ok=True)
    (folder / "patients.csv").write_text(PATIENTS)
    assert run("init", folder, "--epsilon", epsilon, "--delta", "0").exit_code == 0
    added = run(
        "-C", folder, "add", "patients", "patients.csv", "--unit", "patient_id", *list_options(columns or COLUMNS)
    )
    assert added.exit_code == 0, added.output
    return folder


@pytest.fixture(scope="session")
def pristine(tmp_path_factory):
    """A clinic without any question yet. Tests copy it."""
    return made(tmp_path_factory.mktemp("pristine") / "clinic")


@pytest.fixture
def clinic(tmp_path, pristine):
    """A function that runs a command on a fresh clinic."""
    folder = tmp_path / "clinic"
    shutil.copytree(pristine, folder)

    def ask(*arguments, **options):
        return run("-C", folder, *arguments, **options)

    ask.folder = folder
    return ask


def json_of(result):
    """The one JSON text on stdout."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def read_refusal(result, code):
    """The error as JSON on stderr; stdout is empty and there is no traceback."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    told = json.loads(result.stderr)
    assert set(told) == {"error", "message", "hint"}
    return told
