"""The ledger's files: copied, moved, replaced, deleted or cut under a running process; adopted, backed up, restored."""

import json
import os
import shutil
import sqlite3
import stat
from contextlib import closing, suppress

import pytest
from ledger_questions import POPULATION, ask, make_plain_answer, make_question
from test_processes import PROCESSES

from sfumato.errors import BudgetExceeded, LedgerError
from sfumato.kernel.losses import PureDP
from sfumato.ledger import database, replay
from sfumato.ledger.adoption import adopt
from sfumato.ledger.backup import back_up, restore
from sfumato.ledger.entry_queries import find_whole_entry
from sfumato.ledger.export import check_export
from sfumato.ledger.keyring import Keyring, find_home
from sfumato.ledger.ledger import Ledger, Limit

LIMIT = Limit(PureDP(1))
SHARE = PureDP("0.1")
SUFFIXES = ("", "-wal", "-shm")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "here" / "ledger.db")


@pytest.fixture
def ledger_id(path):
    os.mkdir(os.path.dirname(path))
    with Ledger.create(path, POPULATION, LIMIT) as ledger:
        ask(ledger, "ann", make_question(SHARE, "before"))
        return ledger.ledger_id


def code_of(call):
    with pytest.raises(LedgerError) as refused:
        call()
    return refused.value.code


def charge_when_told(path, ledger_id, pipe):
    """Another process: it opens the ledger, charges on request, and reports the outcome."""
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        pipe.send("open")
        for about in iter(pipe.recv, None):
            try:
                reservation = ledger.reserve("eve", make_question(SHARE, about))
                ledger.store(reservation, make_plain_answer(reservation))
                pipe.send("answered")
            except LedgerError as error:
                pipe.send(error.code)


@pytest.fixture
def process(path, ledger_id):
    """A function that makes the running process ask a question."""
    ours, theirs = PROCESSES.Pipe()
    running = PROCESSES.Process(target=charge_when_told, args=(path, ledger_id, theirs), daemon=True)
    running.start()
    assert ours.recv() == "open"

    def tell(about):
        ours.send(about)
        return ours.recv()

    yield tell
    ours.send(None)
    running.join(30)
    assert running.exitcode == 0
    running.close()


def delete(path):
    for suffix in SUFFIXES:
        if os.path.exists(path + suffix):
            os.remove(path + suffix)


def replace_by_an_old_copy(path):
    shutil.copy(path, path + ".old")
    os.replace(path + ".old", path)


def move_away(path):
    os.rename(path, path + ".moved")


def remove_the_journal(path):
    os.remove(path + "-wal")


def remove_the_index(path):
    os.remove(path + "-shm")


def cut_short(path):
    os.truncate(path, 100)


def put_another_in_its_place(path):
    delete(path)
    Ledger.create(path, POPULATION, LIMIT).close()


@pytest.mark.parametrize(
    "harm",
    [
        delete,
        replace_by_an_old_copy,
        move_away,
        remove_the_journal,
        remove_the_index,
        cut_short,
        put_another_in_its_place,
    ],
    ids=lambda harm: harm.__name__,
)
def test_a_running_process_notices_that_its_files_are_gone(path, process, harm):
    assert process("first") == "answered"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint").close()  # so that there is something to cut
    harm(path)
    for about in ("second", "third"):
        assert process(about).startswith("ledger-")


def test_a_replaced_file_never_answers_beyond_the_budget(path, ledger_id):
    """A fault that was found: answers of ε = 1.9 in all, on a budget of 1."""
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        answered = 1
        for i in range(25):
            if i == 5:
                delete(path)
            with suppress(LedgerError, BudgetExceeded):
                answered += ask(ledger, "ann", make_question(SHARE, f"q{i}"))
        assert answered == 6


def test_the_chain_must_extend_what_this_process_saw(path, process, tmp_path):
    shutil.copy(path, tmp_path / "older")
    assert process("first") == "answered"
    with closing(sqlite3.connect(tmp_path / "older")) as old, closing(sqlite3.connect(path)) as new:
        old.backup(new)  # into the same file: only the content goes back
    assert process("second") == "ledger-older"


def test_a_copy_is_refused_until_the_owner_adopts_it(path, ledger_id, tmp_path):
    copied = str(tmp_path / "there" / "ledger.db")
    shutil.copytree(os.path.dirname(path), os.path.dirname(copied))
    assert code_of(lambda: Ledger.open(copied, ledger_id, POPULATION, LIMIT)) == "ledger-copied"
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as original:
        ask(original, "ann", make_question(SHARE, "the original goes on"))
    assert code_of(lambda: adopt(copied, ledger_id, POPULATION)) == "ledger-older"
    done = adopt(copied, ledger_id, POPULATION, accept_missing=True)
    assert (done.missing, done.carried) == (2, SHARE)
    with Ledger.open(copied, ledger_id, POPULATION, LIMIT) as copy:
        assert copy.entries()[-1].kind == "adopt"
        assert copy.totals().spent == PureDP("0.2"), "what the missing entries cost stays charged"
        assert copy.verify().ok
        ask(copy, "ann", make_question(SHARE, "the copy goes on"))
    assert code_of(lambda: Ledger.open(path, ledger_id, POPULATION, LIMIT)) == "ledger-older"


def test_a_running_process_on_the_original_is_stopped_by_the_adoption(path, ledger_id, process, tmp_path):
    copied = str(tmp_path / "ledger.db")
    back_up(path, tmp_path / "ledger.db")
    assert process("first") == "answered"
    adopt(copied, ledger_id, POPULATION, accept_missing=True)
    assert process("second") == "ledger-older"


def test_two_copies_that_were_both_charged_both_count(path, ledger_id, tmp_path, monkeypatch):
    """On two machines, neither of which sees the other's mark."""
    copied, elsewhere = str(tmp_path / "copy.db"), tmp_path / "elsewhere"
    back_up(path, tmp_path / "copy.db")
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as original:
        for i in range(3):
            ask(original, "ann", make_question(SHARE, f"original {i}"))
    with monkeypatch.context() as other_machine:
        other_machine.setenv("SFUMATO_HOME", str(elsewhere))
        assert adopt(copied, ledger_id, POPULATION).new_key
        with Ledger.open(copied, ledger_id, POPULATION, LIMIT) as copy:
            for i in range(4):
                ask(copy, "bob", make_question(SHARE, f"copy {i}"))
    done = adopt(copied, ledger_id, POPULATION, accept_missing=True, accept_key=True)
    with Ledger.open(copied, ledger_id, POPULATION, LIMIT) as copy:
        assert copy.totals().spent == PureDP("0.8"), "one before, three there, four here"
        assert copy.verify().ok
    assert done.carried == PureDP("0.3")


def test_a_moved_folder_is_the_same_ledger(path, ledger_id, tmp_path):
    os.rename(os.path.dirname(path), tmp_path / "moved")
    with Ledger.open(str(tmp_path / "moved" / "ledger.db"), ledger_id, POPULATION, LIMIT) as ledger:
        assert ask(ledger, "ann", make_question(SHARE, "after"))


def test_a_second_name_of_the_file_is_refused(path, ledger_id, tmp_path):
    os.link(path, tmp_path / "ledger.db")
    assert code_of(lambda: Ledger.open(path, ledger_id, POPULATION, LIMIT)) == "ledger-copied"


def test_a_lost_key_is_replaced_by_adoption(path, ledger_id):
    shutil.rmtree(find_home() / "ledgers" / ledger_id)
    assert code_of(lambda: Ledger.open(path, ledger_id, POPULATION, LIMIT)) == "ledger-key"
    assert adopt(path, ledger_id, POPULATION).new_key
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert ask(ledger, "ann", make_question(SHARE, "after"))
        assert ledger.verify().ok


def test_an_altered_ledger_is_not_adopted(path, ledger_id):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE sfumato_entries SET analyst = 'eve' WHERE number = 2")
    assert code_of(lambda: adopt(path, ledger_id, POPULATION)) == "ledger-altered"


@pytest.mark.parametrize("damage", [b"", b"damaged"], ids=["lost", "damaged"])
def test_a_damaged_mark_locks_nobody_out(path, ledger_id, damage):
    (find_home() / "ledgers" / ledger_id / "mark").write_bytes(damage)
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert ask(ledger, "ann", make_question(SHARE, "after"))
    assert Keyring.find(ledger_id).read_mark().number == 5


def test_a_mark_that_lags_is_caught_up(path, ledger_id):
    """A process that was killed between its commit and the mark."""
    mark = find_home() / "ledgers" / ledger_id / "mark"
    before = mark.read_bytes()
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        ask(ledger, "ann", make_question(SHARE, "after"))
    mark.write_bytes(before)
    with Ledger.open(path, ledger_id, POPULATION, LIMIT):
        assert Keyring.find(ledger_id).read_mark().number == 5


def test_a_backup_returns(path, ledger_id, tmp_path):
    back_up(path, tmp_path / "backup")
    assert stat.S_IMODE(os.stat(tmp_path / "backup").st_mode) == 0o600
    assert code_of(lambda: back_up(path, tmp_path / "backup")) == "backup-exists"
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        ask(ledger, "ann", make_question(SHARE, "after the backup"))
    assert code_of(lambda: restore(path, ledger_id, POPULATION, tmp_path / "backup")) == "ledger-older"
    done = restore(path, ledger_id, POPULATION, tmp_path / "backup", accept_missing=True)
    assert (done.missing, done.carried) == (2, SHARE)
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        newest = ledger.entries()[-1]
        assert newest.kind == "restore"
        with ledger._database.read() as rows:
            assert json.loads(find_whole_entry(rows, newest.number)["payload"])["missing"] == 2
        assert ledger.totals().spent == PureDP("0.2")
        assert ledger.verify().ok


@pytest.mark.parametrize("loss", [delete, cut_short], ids=["deleted", "damaged"])
def test_a_backup_returns_where_the_ledger_is_lost(path, ledger_id, tmp_path, loss):
    back_up(path, tmp_path / "backup")
    loss(path)
    assert restore(path, ledger_id, POPULATION, tmp_path / "backup").missing == 0
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert ledger.totals().spent == SHARE
        assert ask(ledger, "ann", make_question(SHARE, "after"))
        assert ledger.verify().ok


@pytest.mark.parametrize("loss", [None, delete], ids=["there", "deleted"])
def test_a_restore_fences_running_processes(path, ledger_id, process, tmp_path, loss):
    back_up(path, tmp_path / "backup")
    if loss:
        assert process("first") == "answered"
        loss(path)
    restore(path, ledger_id, POPULATION, tmp_path / "backup", accept_missing=True)
    assert process("second") in ("ledger-fenced", "ledger-replaced", "ledger-older")
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert not any(entry.analyst == "eve" for entry in ledger.entries())
        assert ledger.verify().ok


def test_a_backup_of_another_ledger_is_refused(path, ledger_id, tmp_path):
    with Ledger.create(str(tmp_path / "other.db"), POPULATION, LIMIT):
        pass
    assert code_of(lambda: restore(path, ledger_id, POPULATION, tmp_path / "other.db")) == "ledger-foreign"
    (tmp_path / "nonsense").write_text("not a ledger" * 1000)
    assert code_of(lambda: restore(path, ledger_id, POPULATION, tmp_path / "nonsense")) == "backup-damaged"
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert ledger.verify().ok


def test_an_export_is_checked_by_itself(path, ledger_id, tmp_path):
    out = tmp_path / "export"
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        ask(ledger, "ann", make_question(SHARE, "more"))
        with out.open("w") as file:
            assert ledger.export(file) == 5
        head = ledger.head()[1]
    found = check_export(out, head)
    assert found.verification.ok
    assert (found.ledger_id, found.head, found.public_key) == (ledger_id, head, Keyring.find(ledger_id).public_key)
    assert '"integers"' not in out.read_text(), "answers are left out"
    assert not check_export(out, "0" * 64).verification.ok
    lines = out.read_text().splitlines()
    for index in range(1, len(lines)):
        for forged in (
            lines[:index] + lines[index + 1 :],
            [*lines[:index], lines[index].replace('"epsilon', '"delta'), *lines[index + 1 :]],
            [*lines[:index], lines[index].replace('"signature":"', '"signature":"00'), *lines[index + 1 :]],
        ):
            out.write_text("\n".join(forged) + "\n")
            assert not check_export(out).verification.ok
    out.write_text("nonsense")
    assert code_of(lambda: check_export(out)) == "export-damaged"


def test_open_charges_are_listed(path, ledger_id):
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert ledger.open_charges() == []
        lost = ledger.reserve("bob", make_question(SHARE, "lost"))
        assert [(charge.number, charge.analyst) for charge in ledger.open_charges()] == [(lost.entry_number, "bob")]
        ledger.store(lost, make_plain_answer(lost))
        assert ledger.open_charges() == []


def walked(ledger, monkeypatch):
    """The number of entries that a verification checks."""

    seen = []
    find_fault = replay.Replay.find_fault
    with monkeypatch.context() as patched:
        patched.setattr(
            replay.Replay, "find_fault", lambda self, row: seen.append(row["number"]) or find_fault(self, row)
        )
        assert ledger.verify(full=False).ok
    return seen


def test_only_new_entries_are_verified_again(path, ledger_id, monkeypatch):
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert walked(ledger, monkeypatch) == [1, 2, 3]
        ask(ledger, "ann", make_question(SHARE, "more"))
        ledger.find_stored(make_question(SHARE, "before"), "bob")
        lost = ledger.reserve("bob", make_question(SHARE, "lost"))
        assert walked(ledger, monkeypatch) == [4, 5, 6, 7]
        ledger.store(lost, make_plain_answer(lost))
        ask(ledger, "ann", make_question(SHARE, "even more"))
        assert walked(ledger, monkeypatch) == [8, 9, 10]
        assert walked(ledger, monkeypatch) == []
        found = ledger.verify()
        assert (found.ok, found.entries, found.verified_before) == (True, 10, 0)


def test_a_note_of_what_was_verified_cannot_be_forged(path, ledger_id):
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert ledger.verify(full=False).ok
        note = find_home() / "ledgers" / ledger_id / "verified"
        assert stat.S_IMODE(note.stat().st_mode) == 0o600
        number, _ = ledger.head()
        note.write_text(json.dumps({**json.loads(note.read_text()), "number": number, "hash": "0" * 64}))
        assert ledger.verify(full=False).verified_before == 0


def test_wrong_sums_after_what_was_verified_are_told(path, ledger_id):
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert ledger.verify(full=False).ok
        ask(ledger, "ann", make_question(SHARE, "more"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('UPDATE sfumato_entries SET spent = \'{"epsilon":"0"}\' WHERE number = 4')
    with Ledger.read(path, ledger_id, POPULATION) as ledger:
        found = ledger.verify(full=False)
        assert (found.ok, found.first_broken, found.verified_before) == (False, 4, 3)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_everything_is_for_the_owner_alone(tmp_path, umask, monkeypatch):
    monkeypatch.setenv("SFUMATO_HOME", str(tmp_path / "home"))
    before = os.umask(umask)
    try:
        with Ledger.create(str(tmp_path / "ledger.db"), POPULATION, LIMIT) as ledger:
            ask(ledger, "ann", make_question(SHARE))
            ledger.verify(full=False)
            files = [tmp_path / f"ledger.db{suffix}" for suffix in SUFFIXES]
            folders = [tmp_path / "home", tmp_path / "home" / "ledgers"]
            folders += list(folders[1].iterdir())
            files += list(folders[2].iterdir())
            assert {file.name for file in files[3:]} == {"key", "mark", "verified"}
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
            assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    finally:
        os.umask(before)


def test_files_that_others_could_read_are_closed_to_them(path, ledger_id, caplog):
    os.chmod(path, 0o644)
    with Ledger.open(path, ledger_id, POPULATION, LIMIT):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert "could be read by other users" in caplog.text


def test_a_file_that_grows_in_another_thread_is_not_taken_for_a_cut_one(path, ledger_id, monkeypatch):
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        identify = database._identify_files

        def identify_before_another_thread(path):
            files, size = identify(path)
            ledger._database._size = size + 4096  # which that thread saw after a checkpoint
            return files, size

        ledger._database._size = 0
        monkeypatch.setattr(database, "_identify_files", identify_before_another_thread)
        with ledger._database._connection() as connection:
            ledger._database._refuse_other_files(connection)


def test_an_export_without_entries_is_told(path, ledger_id, tmp_path):
    empty = tmp_path / "empty.jsonl"
    header = {"format": "sfumato-ledger-export", "version": 1, "ledger_id": ledger_id, "population": POPULATION}
    empty.write_text(json.dumps({**header, "entries": 0, "head": "", "answers": False}) + "\n")
    assert not check_export(empty).verification.ok
