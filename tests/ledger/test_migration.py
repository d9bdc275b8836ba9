"""A ledger of an earlier version opens: migrating it is an entry, and its older hashes still hold."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from ledger_questions import POPULATION, ask, plain_answer, question

from sfumato.errors import LedgerError
from sfumato.kernel.losses import ApproxDP, PureDP
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
        assert [each.version for each in entries] == [1] * 7 + [2]
        assert entries[-1].kind == "migrate"
        assert entries[-1].spent == ApproxDP("1.25", 0)
        assert ledger.verify().ok
        assert not ask(ledger, "ann", question(PureDP("0.5"), "q1")), "its answers are there"
        lost = ledger.reserve("bob", question(PureDP("0.25"), "unanswered"))
        assert lost.entry_number == 7, "its open charge is taken up again"
        ledger.store(lost, plain_answer(lost))
        assert ask(ledger, "ann", question(PureDP("0.5"), "new"))
        assert ledger.totals().spent == ApproxDP("1.75", 0)
        assert ledger.verify().ok
    with Ledger.open(path, ledger_id, POPULATION, LIMIT) as ledger:
        assert sum(each.kind == "migrate" for each in ledger.entries()) == 1


def test_a_ledger_of_a_later_version_is_refused(tmp_path):
    path = str(tmp_path / "ledger.db")
    with Ledger.create(path, POPULATION, LIMIT) as ledger:
        ledger_id = ledger.ledger_id
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE sfumato_schema SET version = 99")
    with pytest.raises(LedgerError, match="newer version of sfumato") as refused:
        Ledger.open(path, ledger_id, POPULATION, LIMIT)
    assert refused.value.code == "ledger-newer"
