"""The owner's commands on budget and ledger: set, adopt, export, backup, restore; and folders that are only read."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from clinic import COUNT, json_of, made, read_refusal, run

import sfumato as sf
from sfumato.errors import LedgerError
from sfumato.ledger.ledger import Ledger


def modes(folder):
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_a_budget_is_changed_by_its_own_command(clinic):
    clinic("ask", COUNT, "--epsilon", "0.5")
    catalog = clinic.folder / "catalog.toml"
    catalog.write_text(catalog.read_text().replace('epsilon = "2"', 'epsilon = "20"  # more'))
    told = read_refusal(clinic("ask", COUNT, "--epsilon", "1", "--json"), 1)
    assert told["error"] == "ledger-limit"
    assert "sfumato budget set" in told["hint"]
    assert json_of(clinic("budget", "--json"))["limit"]["epsilon"] == "2"
    assert json_of(clinic("budget", "set", "--json"))["limit"]["epsilon"] == "20"
    assert clinic("ask", COUNT, "--epsilon", "1").exit_code == 0
    assert "The budget is now ε = 5." in clinic("budget", "set", "--epsilon", "5").stdout
    assert 'epsilon = "5"' in catalog.read_text()
    assert json_of(clinic("budget", "--json"))["limit"]["epsilon"] == "5"
    kinds = [entry["kind"] for entry in json_of(clinic("ledger", "--json"))["entries"]]
    assert kinds.count("limit") == 2
    assert json_of(clinic("ledger", "verify", "--json"))["ok"]
    assert clinic("budget", "set", "--epsilon", "0.1").exit_code == 0, "below what is spent: nothing is left"
    assert json_of(clinic("budget", "--json"))["remaining"]["epsilon"] == "0"
    assert clinic("budget", "set", "--rho", "3").exit_code == 0
    assert json_of(clinic("budget", "--json"))["limit"]["rho"] == "3"


@pytest.mark.parametrize("more", ["1" * 61, "0." + "3" * 3990, "1e-31", "1e31"])
def test_long_amounts_are_refused_everywhere(clinic, more):
    for arguments in (["ask", COUNT, "--epsilon", more], ["budget", "set", "--epsilon", more]):
        result = clinic(*arguments)
        assert result.exit_code != 0
        assert "at most 60 digits" in result.output.replace("\n", " ")
    assert json_of(clinic("budget", "--json"))["spent"]["epsilon"] == "0"


def test_a_copied_folder_is_refused_until_it_is_adopted(clinic, tmp_path):
    clinic("ask", COUNT, "--epsilon", "0.5")
    copy = tmp_path / "copy"
    shutil.copytree(clinic.folder, copy)
    told = read_refusal(run("-C", copy, "ask", COUNT, "--epsilon", "1", "--json"), 1)
    assert told["error"] == "ledger-copied"
    assert "sfumato ledger adopt" in told["hint"]
    assert json_of(run("-C", copy, "budget", "--json"))["spent"]["epsilon"] == "0.5", "reading is allowed"
    done = json_of(run("-C", copy, "ledger", "adopt", "--json"))
    assert (done["missing"], done["carried"]) == (0, None)
    assert run("-C", copy, "ask", COUNT, "--epsilon", "1").exit_code == 0
    assert read_refusal(clinic("ask", COUNT, "--epsilon", "1", "--json"), 1)["error"] == "ledger-older"
    assert read_refusal(clinic("ledger", "adopt", "--json"), 1)["error"] == "ledger-older"
    done = json_of(clinic("ledger", "adopt", "--accept-missing", "--json"))
    assert done["carried"]["epsilon"] == "1", "the owner turns back: what the copy spent stays charged"
    assert json_of(clinic("budget", "--json"))["spent"]["epsilon"] == "1.5"
    assert json_of(clinic("ledger", "verify", "--full", "--json"))["ok"]


def test_a_moved_folder_needs_no_command(clinic, tmp_path):
    clinic("ask", COUNT, "--epsilon", "0.5")
    os.rename(clinic.folder, tmp_path / "moved")
    assert run("-C", tmp_path / "moved", "ask", COUNT, "--epsilon", "1").exit_code == 0


def test_init_names_a_shared_ledger(tmp_path):
    for name in ("one", "two"):
        made(tmp_path / name)
        (tmp_path / name / "catalog.toml").unlink()
        shared = ("--population", "class", "--ledger", "../class.db")
        assert run("init", tmp_path / name, "--epsilon", "2", "--delta", "0", *shared).exit_code == 0
        shutil.rmtree(tmp_path / name / ".sfumato")
        column = ("--column", "age:integer:0:120")
        assert (
            run("-C", tmp_path / name, "add", "patients", "patients.csv", "--unit", "patient_id", *column).exit_code
            == 0
        )
        assert run("-C", tmp_path / name, "ask", COUNT, "--epsilon", "0.5", "--analyst", name).exit_code == 0
    assert json_of(run("-C", tmp_path / "one", "budget", "--json"))["spent"]["epsilon"] == "1"
    assert json_of(run("-C", tmp_path / "two", "ledger", "verify", "--json"))["entries"] == 5
    assert (tmp_path / "class.db").exists()
    assert not (tmp_path / "one" / "ledger.db").exists()


def test_backup_and_restore(clinic, tmp_path):
    clinic("ask", COUNT, "--epsilon", "0.5")
    assert clinic("ledger", "backup", tmp_path / "backup").exit_code == 0
    clinic("ask", COUNT, "--epsilon", "1")
    assert read_refusal(clinic("ledger", "restore", tmp_path / "backup", "--json"), 1)["error"] == "ledger-older"
    done = json_of(clinic("ledger", "restore", tmp_path / "backup", "--accept-missing", "--json"))
    assert (done["missing"], done["carried"]["epsilon"]) == (2, "1")
    assert json_of(clinic("budget", "--json"))["spent"]["epsilon"] == "1.5"
    assert clinic("ledger", "restore", tmp_path / "backup").exit_code == 1
    assert json_of(clinic("ledger", "verify", "--json"))["ok"]


def test_export_is_checked_without_the_ledger(clinic, tmp_path):
    clinic("ask", COUNT, "--epsilon", "0.5")
    out = tmp_path / "export"
    assert clinic("ledger", "export", out).exit_code == 0
    shown = json_of(run("-C", tmp_path, "ledger", "verify", "--export", out, "--json"))
    assert (shown["ok"], shown["entries"]) == (True, 3)
    assert shown["head"] == json_of(clinic("ledger", "verify", "--json"))["head"]
    out.write_text(out.read_text().replace('"analyst":"analyst"', '"analyst":"nobody"', 1))
    assert run("-C", tmp_path, "ledger", "verify", "--export", out).exit_code == 1


def test_an_export_is_for_the_owner_alone_and_whole_or_not_there(clinic, tmp_path, monkeypatch):
    clinic("ask", COUNT, "--epsilon", "0.5")
    before = os.umask(0)
    try:
        assert clinic("ledger", "export", tmp_path / "out").exit_code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600
    assert "File exists" in clinic("ledger", "export", tmp_path / "out").output

    def fails(*_, **__):
        raise LedgerError("ledger-altered", "Damaged.", "")

    with monkeypatch.context() as damage:
        damage.setattr(Ledger, "export", fails)
        assert clinic("ledger", "export", tmp_path / "again").exit_code != 0
    assert clinic("ledger", "export", tmp_path / "again").exit_code == 0


def test_another_key_is_told_and_needs_a_flag(clinic, tmp_path, monkeypatch):
    clinic("ask", COUNT, "--epsilon", "0.5")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("SFUMATO_HOME", str(tmp_path / "elsewhere"))
        told = clinic("ledger", "adopt").output.replace("\n", " ")
        assert "The key that signed until now is not here" in told
    assert "--accept-key" in read_refusal(clinic("ledger", "adopt", "--json"), 1)["hint"]
    assert json_of(clinic("ledger", "adopt", "--accept-key", "--json"))["key_before"]
    assert clinic("ask", COUNT, "--epsilon", "0.5").exit_code == 0


def test_verify_takes_a_readers_head(clinic):
    clinic("ask", COUNT, "--epsilon", "0.5")
    head = json_of(clinic("ledger", "verify", "--json"))["head"]
    clinic("ask", COUNT, "--epsilon", "1")
    shown = json_of(clinic("ledger", "verify", "--head", head, "--json"))
    assert (shown["ok"], shown["verified_before"], shown["entries"]) == (True, 3, 5)
    assert json_of(clinic("ledger", "verify", "--full", "--json"))["verified_before"] == 0
    assert clinic("ledger", "verify", "--head", "0" * 64).exit_code == 1


def test_truncation_and_one_update_do_not_pass_verify(clinic):
    clinic("ask", COUNT, "--epsilon", "0.5")
    clinic("ask", COUNT, "--epsilon", "1")
    with closing(sqlite3.connect(clinic.folder / "ledger.db")) as database, database:
        database.execute("DELETE FROM sfumato_entries WHERE number > 3")
        database.execute(
            "UPDATE sfumato_head SET (number, hash, budget, spent) ="
            " (SELECT number, hash, budget, spent FROM sfumato_entries WHERE number = 3)"
        )
    result = clinic("ledger", "verify")
    assert result.exit_code == 1
    assert "entry 4 is missing" in result.output.replace("\n", " ")
    assert clinic("ask", COUNT, "--epsilon", "1").exit_code == 1


def test_open_charges(clinic):
    assert json_of(clinic("ledger", "open-charges", "--json")) == {"open_charges": []}
    with sf.open(clinic.folder) as opened:
        opened.engine.aggregate = lambda plan: 1 / 0
        with pytest.raises(ZeroDivisionError):
            opened.ask(COUNT, epsilon="0.5", analyst="ann")
    (charge,) = json_of(clinic("ledger", "open-charges", "--json"))["open_charges"]
    assert (charge["analyst"], charge["loss"]["epsilon"]) == ("ann", "0.5")
    assert "ann" in clinic("ledger", "open-charges").stdout


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_snapshot_ledger_and_keys_are_for_the_owner_alone(tmp_path, umask):
    before = os.umask(umask)
    try:
        folder = made(tmp_path / "clinic")
        assert run("-C", folder, "ask", COUNT, "--epsilon", "1").exit_code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / ".sfumato").stat().st_mode) == 0o700
    private = modes(folder / ".sfumato")
    assert {"snapshot.duckdb", "signing.key"} <= set(private)
    assert set(private.values()) == {0o600}
    assert modes(folder)["ledger.db"] == 0o600


def test_a_folder_that_init_makes_is_for_the_owner_alone(tmp_path):
    assert run("init", tmp_path / "new").exit_code == 0
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


READ = """
import os, sys
from typer.testing import CliRunner
from sfumato.cli.main import app
ours, theirs, *arguments = sys.argv[1:]
CliRunner().invoke(app, ["-C", ours, *arguments])  # imports everything, while it can be read
os.setgid(65534); os.setuid(65534)
os.environ["SFUMATO_HOME"] = "/nonexistent"
done = CliRunner().invoke(app, ["-C", theirs, *arguments])
print(done.stdout, end="")
print(done.stderr, end="", file=sys.stderr)
sys.exit(done.exit_code)
"""


@pytest.fixture
def tmp_path_for_all():
    """A folder that every user may read. The folders of pytest are for one user only."""
    with tempfile.TemporaryDirectory(prefix="sfumato-read-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is played by giving up root's rights")
@pytest.mark.parametrize("journal", [False, True], ids=["folded in", "with a journal"])
def test_budget_and_verify_read_a_folder_of_another_user(clinic, tmp_path_for_all, journal):
    clinic("ask", COUNT, "--epsilon", "0.5")
    holder = sf.open(clinic.folder) if journal else None
    if holder:
        holder.ask(COUNT, epsilon=1)
        assert (clinic.folder / "ledger.db-wal").stat().st_size
    shared = tmp_path_for_all / "shared"
    shutil.copytree(clinic.folder, shared)  # as a mount that can only be read
    if holder:
        holder.close()
    for path in [shared, *shared.rglob("*")]:
        os.chmod(path, 0o555 if path.is_dir() else 0o444)
    before = sorted(path.name for path in shared.iterdir())

    def read(*arguments):
        command = [sys.executable, "-c", READ, str(clinic.folder), str(shared), *arguments, "--json"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert read("budget")["spent"]["epsilon"] == ("1.5" if journal else "0.5")
    shown = read("ledger", "verify")
    assert (shown["ok"], shown["entries"]) == (True, 5 if journal else 3)
    assert sorted(path.name for path in shared.iterdir()) == before, "nothing is written"


@pytest.mark.parametrize("arguments", [["ledger", "show", "9" * 20], ["ledger", "--last", "9" * 20]])
def test_a_number_that_no_ledger_has_is_refused_as_such(clinic, arguments):
    clinic("ask", COUNT, "--epsilon", "0.5")
    told = clinic(*arguments)
    assert told.exit_code != 0
    assert "never wrote" not in told.output


def test_lists_say_what_was_asked_and_are_not_too_wide(clinic):
    assert clinic("ledger", "open-charges").stdout.strip() == "Every charge has its answer."
    with sf.open(clinic.folder) as books:
        books.watch(COUNT, above=3, epsilon="0.5")
    shown = clinic("ledger", "open-charges").stdout
    assert "watch: SELECT COUNT(*)" in shown
    assert "+00:00" not in shown + clinic("ledger").stdout
    assert "another one is a new charge" in " ".join(clinic("ledger", "open-charges", "--help").stdout.split())


def test_verify_names_the_key_of_a_ledger_that_is_here(clinic):
    clinic("ask", COUNT, "--epsilon", "0.5")
    clinic("ledger", "export", str(clinic.folder / "out.jsonl"))
    exported = json_of(clinic("ledger", "verify", "--export", str(clinic.folder / "out.jsonl"), "--json"))
    assert json_of(clinic("ledger", "verify", "--json"))["public_key"] == exported["public_key"]
