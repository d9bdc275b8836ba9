"""A charge without an answer is resumed for what it paid, whatever the names and texts of certificates say."""

from dataclasses import replace

import pytest
from ledger_questions import POPULATION, make_answer, make_question

import sfumato as sf
from sfumato.kernel.losses import PureDP
from sfumato.ledger import charging
from sfumato.ledger.ledger import AlreadyAnswered, Ledger, Limit


@pytest.fixture
def ledger(memory_or_server):
    with Ledger.create(memory_or_server, POPULATION, Limit(PureDP(1))) as made:
        yield made


def test_a_charge_is_resumed_only_for_what_it_paid(ledger, monkeypatch):
    """Digests and texts of certificates are no part of the proof: here, all of them are alike."""
    monkeypatch.setattr(charging, "describe_certificate", lambda _: "alike")
    cheap, dear = (replace(make_question(PureDP(epsilon)), plan_digest="alike") for epsilon in ("0.1", "0.3"))
    first = ledger.reserve("ann", cheap)
    second = ledger.reserve("ann", dear)
    assert second.entry_number != first.entry_number
    assert ledger.totals().spent == PureDP("0.4")
    assert ledger.reserve("ann", cheap).entry_number == second.entry_number, "it has paid for more"
    assert ledger.totals().spent == PureDP("0.4")


def test_two_plans_of_one_digest_get_one_release_for_one_charge(ledger):
    """If two plans had one digest, one of them would be released on the charge of the other, and no more than one."""
    one, two = (replace(make_question(PureDP("0.1"), about), plan_digest="alike") for about in ("one", "two"))
    reservations = [ledger.reserve("ann", certificate) for certificate in (one, two)]
    assert len({reservation.entry_number for reservation in reservations}) == 1
    ledger.store(reservations[1], make_answer(reservations[1]))
    with pytest.raises(AlreadyAnswered):
        ledger.store(reservations[0], make_answer(reservations[0]))
    assert ledger.totals().spent == PureDP("0.1")


def test_a_charge_is_resumed_after_the_budget_has_become_zcdp():
    """What was paid is compared in the kind of the budget that is in force."""
    question = make_question((PureDP("0.1"), PureDP("0.2")))
    with Ledger.create(None, POPULATION, Limit(PureDP(1))) as ledger:
        reserved = ledger.reserve("ann", question)
        ledger.set_limit(Limit(sf.ZCDP(1, "1e-6")))
        assert ledger.reserve("ann", question).entry_number == reserved.entry_number
