"""A ledger's losses are about one neighbouring relation: it is recorded, and another one is refused."""

import pytest
from ledger_questions import POPULATION, ask, make_question

from sfumato.errors import LedgerError
from sfumato.kernel.losses import PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.recorded_neighbours import record_neighbours

LIMIT = Limit(PureDP(3))
ONE, OTHER = Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE


def opened(path, ledger, neighbours):
    return Ledger.open(path, ledger.ledger_id, POPULATION, LIMIT, neighbours=neighbours)


def refuses_the_other(path, ledger):
    with pytest.raises(LedgerError) as refused:
        opened(path, ledger, OTHER)
    return refused.value.code == "ledger-neighbours"


def test_other_neighbours_than_the_first_entry_records_are_refused(place):
    with Ledger.create(place, POPULATION, LIMIT, {}, ONE) as ledger:
        ask(ledger, "ann", make_question(PureDP(1)))
    assert refuses_the_other(place, ledger)
    with opened(place, ledger, ONE) as again:
        assert again.head() == ledger_head(again)
        assert again.verify().ok


def ledger_head(ledger):
    """Opening the ledger added no entry: the last of three is unchanged."""
    entries = ledger.entries()
    assert [entry.kind for entry in entries] == ["open", "charge", "answer"]
    return entries[-1].number, entries[-1].hash


def test_a_ledger_without_neighbours_gets_those_of_its_next_opening(place):
    with Ledger.create(place, POPULATION, LIMIT) as ledger:
        ask(ledger, "ann", make_question(PureDP(1)))
        assert ledger.verify().ok
    for _ in range(2):
        with opened(place, ledger, ONE) as again:
            assert [entry.kind for entry in again.entries()] == ["open", "charge", "answer", "neighbours"]
            assert again.totals().spent == PureDP(1)
            assert again.verify(full=False).ok
            assert again.verify().ok
    assert refuses_the_other(place, ledger)


@pytest.mark.parametrize("first", [ONE, None])
@pytest.mark.parametrize("full", [True, False])
def test_neighbours_that_are_recorded_twice_are_told(place, first, full):
    with Ledger.create(place, POPULATION, LIMIT, {}, first) as ledger:
        ledger.agree_on(ONE)
        assert ledger.verify().ok
        with ledger._guarded.write() as (rows, now):
            record_neighbours(rows, now, OTHER)
        assert not ledger.verify(full=full).ok
    assert refuses_the_other(place, ledger)
