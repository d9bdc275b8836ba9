"""No sequence of backups, restores, adoptions and kills loses a charge of any copy, even if others charge meanwhile."""

import os
import random
import shutil
import threading
from contextlib import closing, suppress
from fractions import Fraction

import pytest
from ledger_questions import POPULATION, ask, make_question

from sfumato.errors import LedgerError
from sfumato.kernel.losses import PureDP
from sfumato.ledger import adoption
from sfumato.ledger.adoption import Adoption, adopt
from sfumato.ledger.backup import back_up, restore
from sfumato.ledger.database import Database
from sfumato.ledger.keyring import Keyring, find_home
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.ledger_opening import append_anchor

LIMIT = Limit(PureDP(1000))
SHARE = PureDP("0.1")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "here").mkdir()
    return str(tmp_path / "here" / "ledger.db")


@pytest.fixture
def ledger_id(path):
    with Ledger.create(path, POPULATION, LIMIT) as ledger:
        ask(ledger, "ann", make_question(SHARE, "first"))
        return ledger.ledger_id


def asked(path, ledger_id, about, loss=SHARE):
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        ask(ledger, "ann", make_question(loss, about))


def spent(path, ledger_id):
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert ledger.verify(full=True).ok
        return ledger.totals().spent


def test_a_charge_while_a_restore_runs_is_not_lost(path, ledger_id, tmp_path, monkeypatch):
    back_up(path, tmp_path / "backup")
    answered, counted = [], adoption.append_anchor

    def meanwhile():
        with suppress(LedgerError):
            asked(path, ledger_id, "meanwhile", PureDP(1))
            answered.append(1)

    other = threading.Thread(target=meanwhile)

    def written_late(*arguments):
        other.start()
        other.join(1)  # it is done by then, unless it has to wait for the restore
        return counted(*arguments)

    monkeypatch.setattr(adoption, "append_anchor", written_late)  # after the missing entries were counted
    restore(path, ledger_id, POPULATION, tmp_path / "backup")
    other.join(60)
    with closing(Ledger.read(path, ledger_id, POPULATION)) as ledger:
        assert ledger.totals().spent == PureDP(Fraction(1, 10) + sum(answered))


def test_a_restore_counts_every_history_that_was_seen(path, ledger_id, tmp_path):
    """The copy with more entries has spent less: both count."""
    copy = str(tmp_path / "copy.db")
    back_up(path, tmp_path / "backup")
    shutil.copy(tmp_path / "backup", copy)
    for i in range(9):
        asked(path, ledger_id, f"here {i}")
    adopt(copy, ledger_id, POPULATION, accept_missing=True)
    for i in range(3):
        asked(copy, ledger_id, f"there {i}", PureDP(1))
    done = restore(path, ledger_id, POPULATION, tmp_path / "backup", accept_missing=True)
    assert done.carried == PureDP("3.9")
    assert spent(path, ledger_id) == PureDP(4)


def test_a_backup_that_returns_again_costs_nothing_more(path, ledger_id, tmp_path):
    adopt(path, ledger_id, POPULATION)
    asked(path, ledger_id, "after an adoption")
    back_up(path, tmp_path / "backup")
    for _ in range(3):
        done = restore(path, ledger_id, POPULATION, tmp_path / "backup", accept_missing=True)
        assert done.carried is None
        assert spent(path, ledger_id) == PureDP("0.2")


@pytest.mark.parametrize("kind", ["restore", "adopt"])
def test_a_kill_before_the_mark_counts_once(path, ledger_id, tmp_path, monkeypatch, kind):
    back_up(path, tmp_path / "backup")
    asked(path, ledger_id, "after the backup")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as kill, suppress(KeyboardInterrupt):
        kill.setattr(Adoption, "keep_mark", killed)
        if kind == "restore":
            restore(path, ledger_id, POPULATION, tmp_path / "backup", accept_missing=True)
        adopt(str(tmp_path / "backup"), ledger_id, POPULATION, accept_missing=True)
    here = path if kind == "restore" else str(tmp_path / "backup")
    assert adopt(here, ledger_id, POPULATION, accept_missing=True).carried is None
    assert spent(here, ledger_id) == PureDP("0.2")


def test_a_charge_in_another_copy_while_one_is_adopted_is_told(path, ledger_id, tmp_path, monkeypatch):
    copy, checked = str(tmp_path / "copy.db"), adoption.audit
    back_up(path, tmp_path / "copy.db")

    def checked_slowly(*arguments):
        asked(path, ledger_id, "meanwhile")
        return checked(*arguments)

    with monkeypatch.context() as slow:
        slow.setattr(adoption, "audit", checked_slowly)
        with pytest.raises(LedgerError, match="Another copy of the ledger was charged meanwhile"):
            adopt(copy, ledger_id, POPULATION)
    assert adopt(copy, ledger_id, POPULATION, accept_missing=True).carried == SHARE
    assert spent(copy, ledger_id) == PureDP("0.2")


def test_a_charge_between_a_restore_and_its_mark_stays(path, ledger_id, tmp_path, monkeypatch):
    back_up(path, tmp_path / "backup")
    keep_mark = Adoption.keep_mark

    def kept_late(done, where):
        asked(path, ledger_id, "meanwhile")
        keep_mark(done, where)

    with monkeypatch.context() as late:
        late.setattr(Adoption, "keep_mark", kept_late)
        restore(path, ledger_id, POPULATION, tmp_path / "backup")
    assert Keyring.find(ledger_id).read_mark().number == 6
    assert spent(path, ledger_id) == PureDP("0.2")


def test_a_process_on_another_copy_does_not_take_the_mark_back(path, ledger_id, tmp_path, monkeypatch):
    """A process checks the ledger before the adoption and commits after it: it gets no answer."""
    copy = str(tmp_path / "copy.db")
    back_up(path, tmp_path / "copy.db")
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as late:
        known = late._guarded.list_known()
        adopt(copy, ledger_id, POPULATION)
        monkeypatch.setattr(late._guarded, "list_known", lambda: known)
        with pytest.raises(LedgerError) as refused:
            late.reserve("ann", make_question(SHARE, "late"))
    assert refused.value.code == "ledger-older"
    assert spent(copy, ledger_id) == SHARE


def forged(path, ledger_id, monkeypatch, tmp_path):
    """Somebody who can write the file, and has a key of their own, raises the limit."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("SFUMATO_HOME", str(tmp_path / "elsewhere"))
        with closing(Database(path, must_exist=True)) as store, store.write() as books:
            keyring = Keyring.make(ledger_id)
            head = append_anchor(books, store, keyring, "adopt", {"missing": 0})
            books.append(head, "limit", PureDP(100_000), head.spent)
            return keyring.public_key


def test_entries_of_another_key_are_not_adopted_by_default(path, ledger_id, tmp_path, monkeypatch):
    back_up(path, tmp_path / "backup")
    key = forged(path, ledger_id, monkeypatch, tmp_path)
    with pytest.raises(LedgerError, match=f"Entries 4 to 5 were signed with a key that is not yours: {key}") as refused:
        adopt(path, ledger_id, POPULATION, accept_missing=True)
    assert "--accept-key" in refused.value.hint
    restore(path, ledger_id, POPULATION, tmp_path / "backup", accept_missing=True)
    assert spent(path, ledger_id) == SHARE
    forged(path, ledger_id, monkeypatch, tmp_path)
    assert adopt(path, ledger_id, POPULATION, accept_key=True).key_before == key


def test_nothing_continues_where_the_mark_cannot_be_kept(path, ledger_id, tmp_path):
    mark = find_home() / "ledgers" / ledger_id / "mark"
    back_up(path, tmp_path / "backup")
    with closing(Ledger.read(path, ledger_id, POPULATION)) as ledger:
        before = ledger.head()
    mark.unlink()
    mark.mkdir()
    for change in (adopt, lambda *known: restore(*known, tmp_path / "backup")):
        with pytest.raises(LedgerError, match="mark cannot be written"):
            change(path, ledger_id, POPULATION)
    mark.rmdir()
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert ledger.head() == before


@pytest.mark.parametrize("damage", ["bytes", "folder"])
def test_a_mark_that_cannot_be_used_is_told(path, ledger_id, caplog, damage):
    mark = find_home() / "ledgers" / ledger_id / "mark"
    mark.unlink()
    if damage == "folder":
        mark.mkdir()
    else:
        mark.write_bytes(os.urandom(8192))
    asked(path, ledger_id, "without a mark")
    assert "may not notice" in caplog.text


def test_what_killed_restores_left_is_removed(path, ledger_id, tmp_path):
    back_up(path, tmp_path / "backup")
    left = tmp_path / "here" / ".restore-killed"
    left.mkdir()
    (left / "lock").touch()
    (left / "ledger.db").touch()
    restore(path, ledger_id, POPULATION, tmp_path / "backup")
    assert not list((tmp_path / "here").glob(".restore-*"))


@pytest.mark.parametrize("seed", range(8))
def test_no_sequence_of_the_owners_commands_forgets_a_charge(path, ledger_id, tmp_path, monkeypatch, seed):
    """Random sequences on two copies. The ledger that continues has spent the sum of what all copies answered."""
    chance = random.Random(seed)
    copies = [path, str(tmp_path / "copy.db")]
    back_up(path, tmp_path / "backup-0")
    shutil.copy(tmp_path / "backup-0", copies[1])
    backups, answered, newest = [tmp_path / "backup-0"], Fraction(1, 10), path

    def killed(*_):
        raise KeyboardInterrupt

    for step in range(25):
        where, what = chance.choice(copies), chance.choice(("ask", "ask", "ask", "backup", "restore", "adopt"))
        kill = chance.random() < 0.2
        with monkeypatch.context() as patched, suppress(LedgerError, KeyboardInterrupt):
            if kill:
                patched.setattr(Adoption, "keep_mark", killed)
            match what:
                case "ask":
                    cost = Fraction(chance.randrange(1, 9), 10)
                    asked(where, ledger_id, f"question {step}", PureDP(cost))
                    answered += cost
                    newest = where
                case "backup":
                    back_up(where, tmp_path / f"backup-{step}")
                    backups.append(tmp_path / f"backup-{step}")
                case "restore":
                    restore(where, ledger_id, POPULATION, chance.choice(backups), accept_missing=True)
                    newest = where
                case _:
                    adopt(where, ledger_id, POPULATION, accept_missing=True)
                    newest = where
    adopt(newest, ledger_id, POPULATION, accept_missing=True)
    assert spent(newest, ledger_id) == PureDP(answered)
