"""For each charge, at most one draw of noise is shown, whatever fails. No amount is too small to be counted."""

import json
import sqlite3

import pyarrow
import pytest
from ledger_questions import POPULATION, ask, make_plain_answer, make_question

import sfumato as sf
from sfumato.errors import KernelFault, LedgerError
from sfumato.kernel.losses import PureDP
from sfumato.ledger.keyring import find_home
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.loss_sums import fits

LIMIT, SHARE = Limit(PureDP(1)), PureDP("0.1")


@pytest.fixture
def ledger(place):
    with Ledger.create(place, POPULATION, LIMIT) as made:
        yield made


def test_a_charge_whose_draw_failed_is_never_drawn_for_again(ledger):
    """The failure may depend on the noise. Resuming would let the analyst choose, so a new charge is needed."""
    failed = ledger.reserve("ann", make_question(SHARE, "x"))
    ledger.void(failed)
    with pytest.raises(LedgerError) as refused:
        ledger.store(failed, make_plain_answer(failed))
    assert refused.value.code == "charge-closed"
    again = ledger.reserve("ann", make_question(SHARE, "x"))
    assert again.entry_number != failed.entry_number
    assert ledger.totals().spent == PureDP("0.2")


def test_a_charge_that_was_not_drawn_for_is_resumed_in_another_reservation(ledger):
    first = ledger.reserve("ann", make_question(SHARE, "x"))
    second = ledger.reserve("ann", make_question(SHARE, "x"))
    assert first is not second
    assert first.entry_number == second.entry_number
    assert ledger.totals().spent == SHARE
    ledger.store(second, make_plain_answer(second))
    with pytest.raises(KernelFault):
        ledger.store(first, make_plain_answer(first))


@pytest.mark.parametrize("asking", ["ask", "upgrade"])
def test_a_charge_that_another_request_closed_gives_no_answer_and_is_not_paid_again(monkeypatch, asking):
    """Two requests share a charge. The second fails and closes it, after the first has drawn its noise."""
    sql, store, held = "SELECT COUNT(*) AS n FROM people", Ledger.store, []

    def fail(*_):
        raise RuntimeError

    def store_after_a_failure(self, *given):
        if not held:
            held.append(1)
            monkeypatch.setattr(Ledger, "store", fail)
            with pytest.raises(KernelFault):
                getattr(people, asking)(sql, epsilon=1)
            monkeypatch.setattr(Ledger, "store", store)
        return store(self, *given)

    made = {"columns": {"age": sf.Integer(0, 120)}, "budget": sf.Budget(epsilon=9)}
    with sf.protect(pyarrow.table({"age": [20, 30]}), name="people", unit=sf.ROW, **made) as people:
        monkeypatch.setattr(Ledger, "store", store_after_a_failure)
        with pytest.raises(LedgerError, match="asking again is another charge") as refused:
            getattr(people, asking)(sql, epsilon=1)
        assert refused.value.code == "charge-closed"
        assert people.budget.spent.epsilon == 1, "the first request does not charge again by itself"
        assert [entry.kind for entry in people.ledger().entries()] == ["open", "charge", "answer"]
        assert getattr(people, asking)(sql, epsilon=1).cost.epsilon == 1
        assert people.budget.spent.epsilon == 2


def test_an_answer_makes_two_durable_commits(tmp_path, monkeypatch):
    """An answer makes two commits: the charge and the answer. A stored answer and a preview make none."""
    commits = []

    class Counted(sqlite3.Connection):
        def commit(self):
            if self.in_transaction and self.total_changes > changes.get(id(self), 0):
                commits.append(self.total_changes)
                changes[id(self)] = self.total_changes
            super().commit()

    changes = {}
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **named, factory=Counted))
    data = pyarrow.table({"age": [20, 30, 40]})
    made = {"columns": {"age": sf.Integer(0, 120)}, "budget": sf.Budget(epsilon=9), "ledger": tmp_path / "books.db"}
    with sf.protect(data, name="people", unit=sf.ROW, **made) as people:
        sql = "SELECT COUNT(*) AS n FROM people"
        for work, expected in (
            (lambda: people.preview(sql, epsilon=1), 0),
            (lambda: people.ask(sql, epsilon=1), 2),
            (lambda: people.ask(sql, epsilon=1), 0),
            (lambda: people.upgrade(sql, epsilon=2), 2),
            (lambda: people.ask_all([(sql, 20), ("SELECT SUM(age) AS s FROM people", 2000)]), 2),
        ):
            commits.clear()
            work()
            assert len(commits) == expected


def test_the_sixtieth_digit_does_not_fit():
    least = "0." + "0" * 58 + "1"
    assert fits(PureDP("0.5"), PureDP("0.5"), PureDP(1))
    assert not fits(PureDP(least), PureDP(1), PureDP(1))


def test_a_note_of_what_was_verified_needs_the_ledgers_signature(ledger):
    """A note about an existing entry, with its hash but without a signature, does not shorten the verification."""
    ask(ledger, "ann", make_question(SHARE, "x"))
    assert ledger.verify(full=False).ok
    ask(ledger, "ann", make_question(SHARE, "y"))
    number, hash_ = ledger.head()
    note = find_home() / "ledgers" / ledger.ledger_id / "verified"
    note.write_text(json.dumps({**json.loads(note.read_text()), "number": number, "hash": hash_}))
    assert ledger.verify(full=False).verified_before == 0
