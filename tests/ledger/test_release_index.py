"""The index of releases: it hides no answer that an analyst has, shows no other answer, and is verified."""

from dataclasses import replace

import pytest
from ledger_questions import POPULATION, ask, make_question
from raw_ledger import tamper

from sfumato.errors import BudgetExceeded, LedgerError
from sfumato.kernel.losses import PureDP
from sfumato.ledger.adoption import adopt
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.release_index import MOST_CANDIDATES

LIMITS = {"ann": PureDP(50), "eve": PureDP(50), "zoe": PureDP(10**4)}
ANN_ANSWERED, BOB_SAW = 3, 6  # entries of `books`
COPY = "INSERT INTO sfumato_releases SELECT 9000, charge, answer, answer_key, delta, 'bob', variance"


@pytest.fixture
def books(place):
    """(path, ledger_id) of a ledger: ann paid for `one`, bob for `two`, and bob saw ann's `one`."""
    with Ledger.create(place, POPULATION, Limit(PureDP(100))) as ledger:
        for analyst, about in (("ann", "one"), ("bob", "two"), ("bob", "one")):
            ask(ledger, analyst, make_question(PureDP(1), about))
        ask(ledger, "ann", make_question(PureDP(5), "three"))
        assert [entry.kind for entry in ledger.entries()][1:6] == ["charge", "answer", "charge", "answer", "seen"]
        return place, ledger.ledger_id


@pytest.mark.parametrize("limits", [{}, LIMITS])
def test_who_has_the_answer_to_a_certificate_always_gets_it(limits):
    """Also if more candidates than are tried come before it: their first measurement is more precise."""
    mine = make_question((PureDP("0.5"), PureDP(5)))
    with Ledger.create(None, POPULATION, Limit(PureDP(10**4)), limits) as ledger:
        assert ask(ledger, "ann", mine)
        assert not ask(ledger, "eve", mine), "she sees ann's"
        for number in range(MOST_CANDIDATES + 1):
            assert ask(ledger, "zoe", make_question((PureDP(1 + number), PureDP("0.01"))))
        for analyst in ("ann", "eve"):
            quote = ledger.quote(analyst, mine)
            assert (quote.fits, quote.taken.population) == (True, PureDP(0))
            stored = ledger.find_stored(mine, analyst)
            assert (stored.entry_number, stored.taken) == (2, quote.taken)
        assert ledger.quote("cyd", mine).taken.population == PureDP("5.5"), "who lacks it is charged"


def test_two_spellings_of_a_name_at_once_share_one_limit(monkeypatch):
    """The second spelling is recorded after the first has found its answer, and before its view is counted."""
    counting, others = Ledger._count_view, ["BOB"]

    def count_after_the_other(self, *given):
        if others:
            assert self.find_stored(make_question(PureDP("0.5"), "one"), others.pop()) is not None
        return counting(self, *given)

    limits = {"owner": PureDP(5), "default": PureDP("0.5")}
    with Ledger.create(None, POPULATION, Limit(PureDP(9)), limits) as ledger:
        for about in ("one", "two"):
            ask(ledger, "owner", make_question(PureDP("0.5"), about))
        monkeypatch.setattr(Ledger, "_count_view", count_after_the_other)
        with pytest.raises(BudgetExceeded):
            ledger.find_stored(make_question(PureDP("0.5"), "two"), "bob")
        assert [entry.analyst for entry in ledger.entries() if entry.kind == "seen"] == ["BOB"]
        assert ledger.find_stored(make_question(PureDP("0.5"), "one"), "b.o.b").taken.own == PureDP(0)
        assert ledger.verify().ok


def test_the_payer_under_another_spelling_has_not_seen_but_paid(monkeypatch):
    """Such a view would break the ledger's rules: nobody views what they paid for."""
    certificate, counting = make_question(PureDP("0.5")), Ledger._count_view

    def count_after_payment(self, charge, answer, analyst):
        charged = {**charge, "analyst": "Bob"}
        return counting(self, charged, answer, analyst)

    with Ledger.create(None, POPULATION, Limit(PureDP(9))) as ledger:
        ask(ledger, "Bob", make_question(PureDP(1), "else"))
        ask(ledger, "ann", certificate)
        monkeypatch.setattr(Ledger, "_count_view", count_after_payment)
        ledger.find_stored(certificate, "bob")
        assert not [entry for entry in ledger.entries() if entry.kind == "seen"]


@pytest.mark.parametrize(
    ("about", "statement"),
    [
        ("three", f"{COPY} FROM sfumato_releases WHERE analyst = 'ann' AND charge > 4"),  # ann's, never seen
        ("one", "UPDATE sfumato_releases SET answer_key = (SELECT answer_key FROM sfumato_releases WHERE number = 3)"),
        ("two", "DELETE FROM sfumato_releases"),
    ],
)
def test_an_upgrade_uses_no_release_on_the_word_of_the_index(books, about, statement):
    path, ledger_id = books
    key = make_question(PureDP(1), about).answer_key
    with Ledger.open(path, ledger_id, POPULATION) as ledger:
        assert {stored.analyst for stored in ledger.find_earlier(key, "bob").rest} <= {"ann", "bob"}
        tamper(path, statement)
        with pytest.raises(LedgerError, match="index of releases") as refused:
            ledger.find_earlier(key, "bob")
        assert refused.value.code == "ledger-altered"


def test_without_an_index_the_own_answers_are_found_and_are_free(books):
    path, ledger_id = books
    tamper(path, "DELETE FROM sfumato_releases")
    with Ledger.open(path, ledger_id, POPULATION) as ledger:
        for analyst, about, charge in (("ann", "one", 2), ("bob", "two", 4), ("bob", "one", 2)):
            assert ledger.find_stored(make_question(PureDP(1), about), analyst).entry_number == charge
        assert ledger.find_stored(make_question(PureDP(1), "two"), "ann") is None, "hidden, and charged anew"


DAMAGES = [
    ("DELETE FROM sfumato_releases", ANN_ANSWERED),
    (f"DELETE FROM sfumato_releases WHERE number = {BOB_SAW}", BOB_SAW),
    (f"{COPY} FROM sfumato_releases LIMIT 1", 9000),
    ("UPDATE sfumato_releases SET number = -1 WHERE number = 3", -1),
    ("UPDATE sfumato_releases SET analyst = 'eve' WHERE number = 5", 5),
    ("UPDATE sfumato_releases SET charge = 4 WHERE number = 3", 3),
    ("UPDATE sfumato_releases SET variance = variance / 2 WHERE number = 3", 3),
    ("UPDATE sfumato_releases SET delta = '1' WHERE number = 3", 3),
]


@pytest.mark.parametrize(("statement", "number"), DAMAGES)
def test_verify_compares_the_index_with_the_entries(books, statement, number):
    path, ledger_id = books
    tamper(path, statement)
    with Ledger.open(path, ledger_id, POPULATION) as ledger:
        found = ledger.verify()
        assert (found.ok, found.entries, found.first_broken) == (False, 8, number)
        assert "index of releases" in found.reason
        assert ("newest entries were removed" in found.reason) == (number > found.entries)
        assert ledger.verify(full=False) == found, "nothing was verified yet"
    adopt(path, ledger_id, POPULATION)
    with Ledger.open(path, ledger_id, POPULATION) as ledger:
        assert ledger.verify().ok, "an adoption builds the index again"


def test_an_incremental_verification_compares_the_new_part_of_the_index(books):
    path, ledger_id = books
    with Ledger.open(path, ledger_id, POPULATION) as ledger:
        assert ledger.verify(full=False).ok
        tamper(path, "UPDATE sfumato_releases SET delta = '1' WHERE number = 3")
        ask(ledger, "eve", make_question(PureDP(1), "new"))
        found = ledger.verify(full=False)
        assert (found.ok, found.verified_before) == (True, 8), "the old part is for --full"
        assert ledger.verify().first_broken == ANN_ANSWERED
        ask(ledger, "eve", make_question(PureDP(1), "newer"))
        tamper(path, "UPDATE sfumato_releases SET delta = '1' WHERE number = 12")
        found = ledger.verify(full=False)
        assert replace(found, reason="") == replace(found, ok=False, first_broken=12, verified_before=10, reason="")
