"""One draw of noise is seen for each charge, whatever fails in between; and no amount is too small to count."""

import json

import pytest
from ledger_questions import POPULATION, ask, plain_answer, question

from sfumato.errors import KernelFault
from sfumato.kernel.losses import PureDP
from sfumato.ledger.keyring import find_home
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.loss_sums import fits

LIMIT, SHARE = Limit(PureDP(1)), PureDP("0.1")


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(str(tmp_path / "ledger.db"), POPULATION, LIMIT) as made:
        yield made


def test_a_charge_whose_draw_failed_is_never_drawn_for_again(ledger):
    """What failed may have depended on the noise: to resume would be to choose among answers. It is paid anew."""
    failed = ledger.reserve("ann", question(SHARE, "x"))
    ledger.void(failed)
    with pytest.raises(KernelFault):
        ledger.store(failed, plain_answer(failed))
    again = ledger.reserve("ann", question(SHARE, "x"))
    assert again.entry_number != failed.entry_number
    assert ledger.totals().spent == PureDP("0.2")


def test_a_charge_that_was_not_drawn_for_is_resumed_in_another_reservation(ledger):
    first = ledger.reserve("ann", question(SHARE, "x"))
    second = ledger.reserve("ann", question(SHARE, "x"))
    assert first is not second
    assert first.entry_number == second.entry_number
    assert ledger.totals().spent == SHARE
    ledger.store(second, plain_answer(second))
    with pytest.raises(KernelFault):
        ledger.store(first, plain_answer(first))


def test_the_sixtieth_digit_does_not_fit():
    least = "0." + "0" * 58 + "1"
    assert fits(PureDP("0.5"), PureDP("0.5"), PureDP(1))
    assert not fits(PureDP(least), PureDP(1), PureDP(1))


def test_a_note_of_what_was_verified_needs_the_ledgers_signature(ledger):
    """Of an entry that is there, with its hash: without a signature it saves no check."""
    ask(ledger, "ann", question(SHARE, "x"))
    assert ledger.verify(full=False).ok
    ask(ledger, "ann", question(SHARE, "y"))
    number, hash_ = ledger.head()
    note = find_home() / "ledgers" / ledger.ledger_id / "verified"
    note.write_text(json.dumps({**json.loads(note.read_text()), "number": number, "hash": hash_}))
    assert ledger.verify(full=False).verified_before == 0
