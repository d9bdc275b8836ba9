"""A ledger of an earlier version can be opened. The migration is an entry, and the older hashes stay valid."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from ledger_questions import POPULATION, ask, make_plain_answer, make_question

from sfumato.errors import LedgerError
from sfumato.kernel.losses import ApproxDP, PureDP
from sfumato.ledger.adoption import adopt
from sfumato.ledger.ledger import Ledger, Limit

EARLIER = Path(__file__).parent / "version_1"
LIMIT = Limit(ApproxDP(3, "1e-6"))


def read_dump(tmp_path, name):
    """(path, ledger_id) of a ledger as the first version wrote it."""
    path = str(tmp_path / "ledger.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((EARLIER / f"{name}.sql").read_text())
        (payload,) = connection.execute("SELECT payload FROM sfumato_entries WHERE number = 1").fetchone()
    return path, payload.split('"ledger_id":"')[1][:32]


def test_a_ledger_of_the_first_version_opens_and_says_so(tmp_path):
    path, ledger_id = read_dump(tmp_path, "basic")
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        entries = ledger.entries()
        assert [entry.version for entry in entries] == [1] * 7 + [3]
        assert entries[-1].kind == "migrate"
        assert entries[-1].spent == ApproxDP("1.25", 0)
        assert ledger.verify().ok
        assert not ask(ledger, "ann", make_question(PureDP("0.5"), "q1")), "its answers are there"
        lost = ledger.reserve("bob", make_question(PureDP("0.25"), "unanswered"))
        assert lost.entry_number == 7, "its open charge is taken up again"
        ledger.store(lost, make_plain_answer(lost))
        assert ask(ledger, "ann", make_question(PureDP("0.5"), "new"))
        assert ledger.totals().spent == ApproxDP("1.75", 0)
        assert ledger.verify().ok
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert sum(entry.kind == "migrate" for entry in ledger.entries()) == 1


def make_version_2(path, monkeypatch):
    """A ledger as the second version wrote it: the same entries, and no index of releases. Returns its id."""
    with monkeypatch.context() as older:
        older.setattr("sfumato.ledger.ledger_rows.SCHEMA_VERSION", 2)
        with Ledger.create(path, POPULATION, LIMIT) as ledger:
            ledger.set_limit(Limit(ApproxDP(9, "1e-6")))
            for epsilon in ("0.25", "0.5", "1"):
                ask(ledger, "ann", make_question(PureDP(epsilon), "q"))
            assert not ask(ledger, "bob", make_question(PureDP("0.25"), "q")), "he sees ann's"
            ledger.void(ledger.reserve("ann", make_question(PureDP("0.5"), "failed")))
            ledger.reserve("bob", make_question(PureDP("0.5"), "open"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE sfumato_releases")
        connection.execute("DROP INDEX sfumato_own_answers")
        connection.execute("UPDATE sfumato_schema SET version = 2")
    return ledger.ledger_id


def test_a_ledger_of_the_second_version_gets_its_index_of_releases(tmp_path, monkeypatch):
    path = str(tmp_path / "ledger.db")
    ledger_id = make_version_2(path, monkeypatch)
    with Ledger.read(path, ledger_id, POPULATION) as ledger:
        assert ledger.verify().ok, "it is read and verified as it is"
        before = ledger.totals().spent
    with Ledger.open(path, ledger_id, POPULATION) as ledger:
        newest = ledger.entries()[-1]
        assert (newest.kind, newest.version) == ("migrate", 3)
        assert ledger.find_stored(make_question(PureDP("0.25"), "q"), "ann").loss == PureDP(1)
        assert len(ledger.find_earlier(make_question(PureDP("0.25"), "q").answer_key, "ann").rest) == 3
        assert len(ledger.find_earlier(make_question(PureDP("0.25"), "q").answer_key, "bob").rest) == 1
        assert ledger.find_stored(make_question(PureDP("0.25"), "failed"), "ann") is None, "it has no answer"
        assert ledger.totals().spent == before
        assert ledger.verify().ok
    with Ledger.open(path, ledger_id, POPULATION) as ledger:
        assert sum(entry.kind == "migrate" for entry in ledger.entries()) == 1


def test_a_copy_of_the_second_version_is_not_migrated(tmp_path, monkeypatch):
    path, copy = str(tmp_path / "ledger.db"), str(tmp_path / "copy.db")
    ledger_id = make_version_2(path, monkeypatch)
    shutil.copyfile(path, copy)
    with pytest.raises(LedgerError) as refused:
        Ledger.open(copy, ledger_id, POPULATION)
    assert refused.value.code == "ledger-copied"
    assert adopt(copy, ledger_id, POPULATION).missing == 0
    with Ledger.open(copy, ledger_id, POPULATION) as ledger:
        assert ledger.find_stored(make_question(PureDP("0.25"), "q"), "ann") is not None
        assert ledger.verify().ok
    with pytest.raises(LedgerError):
        Ledger.open(path, ledger_id, POPULATION)


def test_an_older_state_of_the_second_version_is_not_migrated(tmp_path, monkeypatch):
    path, aside = str(tmp_path / "ledger.db"), str(tmp_path / "aside.db")
    ledger_id = make_version_2(path, monkeypatch)
    shutil.copyfile(path, aside)
    with Ledger.open(path, ledger_id, POPULATION) as ledger:
        ask(ledger, "ann", make_question(PureDP("0.5"), "later"))
    for suffix in ("-wal", "-shm"):
        Path(path + suffix).unlink(missing_ok=True)
    Path(path).write_bytes(Path(aside).read_bytes())  # the same file, as it was
    with pytest.raises(LedgerError) as refused:
        Ledger.open(path, ledger_id, POPULATION)
    assert refused.value.code == "ledger-older"


def test_a_process_of_the_second_version_stops_after_the_migration(tmp_path, monkeypatch):
    path = str(tmp_path / "ledger.db")
    ledger_id = make_version_2(path, monkeypatch)
    with monkeypatch.context() as older:
        older.setattr("sfumato.ledger.ledger_opening.SCHEMA_VERSION", 2)
        running = Ledger.open(path, ledger_id, POPULATION)
    with running, Ledger.open(path, ledger_id, POPULATION):
        with pytest.raises(LedgerError) as refused:
            running.reserve("ann", make_question(PureDP("0.5"), "late"))
        assert refused.value.code == "ledger-fenced"


def test_a_ledger_of_a_later_version_is_refused(tmp_path):
    path = str(tmp_path / "ledger.db")
    with Ledger.create(path, POPULATION, LIMIT) as ledger:
        ledger_id = ledger.ledger_id
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE sfumato_schema SET version = 99")
    with pytest.raises(LedgerError, match="newer version of sfumato") as refused:
        Ledger.open(path, ledger_id, POPULATION, LIMIT)
    assert refused.value.code == "ledger-newer"
