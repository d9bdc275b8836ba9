"""A full disk or a read-only folder: every command on the ledger says what is wrong and what to do."""

import errno
import shutil
import sqlite3
import subprocess
from contextlib import suppress

import pytest
from clinic import COUNT, made, run

from sfumato.ledger import backup as backups
from sfumato.ledger.file_errors import explain_failure


def mount(folder, *options):
    """A separate file system at the folder. Mounting it needs root."""
    folder.mkdir(exist_ok=True)
    program = shutil.which("mount")
    done = program and subprocess.run(
        [program, "-t", "tmpfs", "-o", ",".join(options), "tmpfs", folder], capture_output=True, check=False
    )
    if not done or done.returncode:
        pytest.skip("this user may not mount a file system")


def unmount(folder):
    subprocess.run([shutil.which("umount"), folder], capture_output=True, check=False)


@pytest.fixture
def small(tmp_path):
    """A clinic on a disk of 12 MiB, with an entry that its backup lacks."""
    disk = tmp_path / "disk"
    mount(disk, "size=12m")
    try:
        folder = made(disk / "clinic")
        for sql, kept in ((COUNT, tmp_path / "backup.db"), (f"{COUNT} WHERE age > 30", None)):
            assert run("-C", folder, "ask", sql, "--epsilon", "0.5").exit_code == 0
            if kept:
                assert run("-C", folder, "ledger", "backup", kept).exit_code == 0
        yield folder
    finally:
        unmount(disk)


def fill(disk):
    with (disk / "fill").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"0" * 4096)
    assert shutil.disk_usage(disk).free == 0


@pytest.mark.parametrize("command", [("budget",), ("ledger",), ("ledger", "verify"), ("ledger", "verify", "--full")])
def test_a_full_disk_does_not_hinder_reading(small, command):
    wanted = run("-C", small, *command)
    fill(small.parent)
    found = run("-C", small, *command)
    assert found.exit_code == wanted.exit_code == 0, found.output
    assert found.stdout.splitlines()[0] == wanted.stdout.splitlines()[0]


@pytest.mark.parametrize(
    "command",
    [
        ("ledger", "restore", "{backup}", "--accept-missing"), ("ledger", "backup", "{disk}/other.db"),
        ("budget", "set", "--epsilon", "9"), ("ledger", "adopt"),
        ("ask", f"{COUNT} WHERE age > 40", "--epsilon", "0.5"),
    ],
    ids=lambda command: " ".join(command[:2]),
)  # fmt: skip
def test_a_full_disk_is_named(small, tmp_path, command):
    """Negative control: with room, the same command succeeds."""
    filled = [part.format(backup=tmp_path / "backup.db", disk=small.parent) for part in command]
    fill(small.parent)
    refused = run("-C", small, *filled)
    assert refused.exit_code != 0
    assert "the disk is full" in refused.stderr
    assert f"Make room on the disk that holds {small.parent}" in refused.stderr
    assert "unexpected" not in refused.stderr
    (small.parent / "fill").unlink()
    again = run("-C", small, *filled)
    assert again.exit_code == 0, again.output


def test_an_export_onto_a_full_disk_names_its_file(small):
    fill(small.parent)
    refused = run("-C", small, "ledger", "export", small.parent / "out.jsonl")
    assert refused.exit_code == 1
    assert "out.jsonl: No space left on device. Make room on its disk." in " ".join(refused.stderr.split())
    assert not (small.parent / "out.jsonl").exists()


def test_a_backup_into_a_read_only_folder_says_so(clinic, tmp_path):
    assert clinic("ask", COUNT, "--epsilon", "0.5").exit_code == 0
    mount(tmp_path / "disk", "ro")
    try:
        refused = clinic("ledger", "backup", tmp_path / "disk" / "b.db")
    finally:
        unmount(tmp_path / "disk")
    assert refused.exit_code == 1
    assert "The backup could not be written: it may not be written." in refused.stderr
    assert "permissions" in refused.stderr


def test_a_backup_into_a_folder_that_is_not_there_says_so(clinic, tmp_path):
    assert clinic("ask", COUNT, "--epsilon", "0.5").exit_code == 0
    refused = clinic("ledger", "backup", tmp_path / "none" / "b.db")
    assert f"there is no folder {tmp_path / 'none'}" in refused.stderr


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["_copy", "make_private", "TemporaryDirectory"])
def test_a_restore_that_finds_no_room_at_any_step_says_so(clinic, tmp_path, monkeypatch, step):
    assert clinic("ask", COUNT, "--epsilon", "0.5").exit_code == 0
    assert clinic("ledger", "backup", tmp_path / "b.db").exit_code == 0
    monkeypatch.setattr(backups, step, lambda *given, **_: full(*given))
    refused = clinic("ledger", "restore", tmp_path / "b.db")
    assert refused.exit_code == 1
    assert "The ledger could not be written: the disk is full." in refused.stderr


def test_a_damaged_backup_is_still_named_as_such(clinic, tmp_path):
    """Negative control: the disk has room."""
    assert clinic("ask", COUNT, "--epsilon", "0.5").exit_code == 0
    (tmp_path / "b.db").write_bytes(b"not a database, but long enough to be taken for one" * 100)
    assert "is not a whole ledger" in clinic("ledger", "restore", tmp_path / "b.db").stderr


def named(name):
    error = sqlite3.OperationalError("made up")
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, ""), "full"), (OSError(errno.EDQUOT, ""), "full"), (named("SQLITE_FULL"), "full"),
        (OSError(errno.EROFS, ""), "may not be written"), (OSError(errno.EACCES, ""), "may not be written"),
        (named("SQLITE_READONLY_DBMOVED"), "may not be written"), (named("SQLITE_BUSY"), None),
        (OSError(errno.EIO, ""), None),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_known_of_a_failure(tmp_path, error, told):
    found = explain_failure(error, str(tmp_path / "ledger.db"))
    assert (found is None) if told is None else (told in found[0])
