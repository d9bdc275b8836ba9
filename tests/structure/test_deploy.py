"""The files in deploy/ name commands, options and places that exist."""

import configparser
import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from sfumato.cli.main import app

DEPLOY = Path(__file__).parents[2] / "deploy"


def read_unit():
    parser = configparser.ConfigParser(strict=False)
    parser.optionxform = str
    parser.read_string((DEPLOY / "sfumato.service").read_text())
    return parser


def list_commands():
    """The command lines of `sfumato serve` in the unit and in the Dockerfile."""
    unit = shlex.split(read_unit()["Service"]["ExecStart"])
    image = json.loads(re.search(r"^CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)[1])
    return [unit[1:], image[1:]]


@pytest.mark.parametrize("words", list_commands())
def test_the_service_takes_these_options(words, tmp_path):
    assert words[0] == "serve"
    known = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "300", "NO_COLOR": "1"}).stdout
    assert [word for word in words if word.startswith("--") and word not in known] == []


def test_the_compose_file_refers_to_what_it_declares():
    made = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    for service in made["services"].values():
        assert set(service.get("networks", [])) <= made["networks"].keys()
        assert set(service.get("secrets", [])) <= made["secrets"].keys()
        assert set(service.get("depends_on", [])) <= made["services"].keys()
        volumes = {volume.split(":")[0] for volume in service.get("volumes", [])}
        assert volumes <= made["volumes"].keys()
    assert (DEPLOY / made["services"]["service"]["build"]["context"]).resolve() == DEPLOY.parent
    assert (DEPLOY.parent / made["services"]["service"]["build"]["dockerfile"]).is_file()
    assert "ports" not in made["services"]["service"], "only the proxy with TLS is reached from outside"


def test_the_image_copies_what_the_project_has_and_does_not_run_as_root():
    text = (DEPLOY / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    assert all((DEPLOY.parent / name).exists() for names in copied for name in names.split())
    assert re.search(r"^USER sfumato$", text, re.MULTILINE)
    extras = re.search(r"'\.\[(.*)\]'", text)[1].split(",")
    assert all(f"\n{extra} = [" in (DEPLOY.parent / "pyproject.toml").read_text() for extra in extras)


def test_the_unit_runs_as_its_own_user_and_writes_in_one_folder():
    unit = read_unit()["Service"]
    assert unit["User"] == "sfumato"
    assert (unit["ProtectSystem"], unit["ReadWritePaths"]) == ("strict", "/var/lib/sfumato")
    assert unit["ExecStart"].split()[2].startswith(unit["ReadWritePaths"])
