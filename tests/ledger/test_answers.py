"""Stored answers: who gets one, who pays for it, and what a crash leaves behind."""

from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import pytest
from ledger_questions import POPULATION, ask, make_plain_answer, make_question

from sfumato.errors import BudgetExceeded, KernelFault
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.release import Released
from sfumato.kernel.row_sources import Scan
from sfumato.ledger.ledger import AlreadyAnswered, Ledger, Limit


@pytest.fixture
def ledger(memory_or_server):
    with Ledger.create(memory_or_server, POPULATION, Limit(ZCDP(50)), {"ann": ZCDP(2), "eve": ZCDP("0.01")}) as made:
        yield made


def paid(ledger, certificate, value=7, analyst="bob"):
    reservation = ledger.reserve(analyst, certificate)
    return reservation, ledger.store(reservation, make_plain_answer(reservation, value))


def test_a_stored_answer_comes_back_whole(ledger):
    certificate = make_question((PureDP(1), ZCDP("0.5")))
    reservation, head = paid(ledger, certificate)
    stored = ledger.find_stored(certificate, "bob")
    assert stored.entry_number == reservation.entry_number == 2
    assert stored.certificate_measure == (("n0", 2, "laplace"), ("n1", 1, "gaussian"))
    assert stored.integers == {"n0": (7,), "n1": (7,)}
    assert stored.loss == certificate.loss
    assert stored.shares == (PureDP(1), ZCDP("0.5"))
    assert stored.head == head == ledger.head()[1]
    assert stored.analyst == "bob"


@pytest.mark.parametrize(
    ("kept", "wanted", "hit"),
    [
        (PureDP(1), PureDP(1), True),
        (PureDP(1), PureDP("0.999"), True),
        (PureDP(1), PureDP("1.001"), False),
        (ZCDP("0.25"), PureDP(1), True),  # both have variance 2
        (ZCDP("0.2499"), PureDP(1), False),
        ((PureDP(1), PureDP(2)), (PureDP(1), PureDP(1)), True),
        ((PureDP(1), PureDP(2)), (PureDP(2), PureDP(1)), False),  # every measurement counts
        ((PureDP(1), PureDP(2)), (PureDP(1),), False),  # another question
    ],
)
def test_the_rule_for_a_hit(ledger, kept, wanted, hit):
    paid(ledger, make_question(kept))
    assert (ledger.find_stored(make_question(wanted), "bob") is not None) == hit


def test_another_question_or_data_version_is_no_hit(ledger):
    paid(ledger, make_question(PureDP(1)))
    assert ledger.find_stored(make_question(PureDP(1), "somebody"), "bob") is None
    assert ledger.find_stored(make_question(PureDP(1), source=Scan("people", "2")), "bob") is None


def test_a_charge_without_an_answer_is_no_hit(ledger):
    ledger.reserve("bob", make_question(PureDP(1)))
    assert ledger.find_stored(make_question(PureDP(1)), "bob") is None


def test_the_best_wins(ledger):
    for epsilon, value in ((1, 11), (3, 33), (2, 22)):
        paid(ledger, make_question(PureDP(epsilon)), value)
    assert ledger.find_stored(make_question(PureDP("0.5")), "bob").integers == {"n0": (33,)}


def test_a_view_is_counted_once_and_not_on_the_total(ledger):
    paid(ledger, make_question(ZCDP("0.5")))
    spent = ledger.totals().spent
    first = ledger.find_stored(make_question(ZCDP("0.5")), "ann")
    assert first.head == ledger.head()[1]
    assert (first.taken.own, first.taken.population) == (ZCDP("0.5"), ZCDP(0))
    assert ledger.totals("ann").spent == ZCDP("0.5")
    again = ledger.find_stored(make_question(ZCDP("0.1")), "ann")
    assert again.integers == first.integers, "what was seen once is free, also for a smaller question"
    assert (again.taken.own, again.taken.population) == (ZCDP(0), ZCDP(0))
    assert ledger.totals("ann").spent == ZCDP("0.5")
    assert ledger.totals().spent == spent
    assert [(entry.kind, entry.analyst, entry.about) for entry in ledger.entries(2)] == [
        ("answer", "bob", 2),
        ("seen", "ann", 2),
    ]
    assert ledger.verify().ok


def test_a_view_that_does_not_fit_is_refused(ledger):
    paid(ledger, make_question(ZCDP("0.5")))
    before = ledger.head()
    assert not ledger.quote("eve", make_question(ZCDP("0.5"))).fits
    with pytest.raises(BudgetExceeded, match=r"rho = 0\.01, delta = 0 is left of this analyst's own limit"):
        ledger.find_stored(make_question(ZCDP("0.5")), "eve")
    assert ledger.head() == before


def test_a_dearer_answer_of_another_is_not_used_where_a_limit_would_pay_for_it(ledger):
    paid(ledger, make_question(ZCDP(5)), 55, "bob")
    small = make_question(ZCDP("0.01"))
    assert ledger.find_stored(small, "eve") is None
    assert ledger.quote("eve", small).taken.own == ZCDP("0.01")
    assert ledger.quote("eve", small).fits
    paid(ledger, small, 1, "eve")
    assert ledger.totals("eve").remaining == ZCDP(0)
    assert ledger.find_stored(small, "cyd").integers == {"n0": (55,)}, "without a limit, the most precise is free"


def test_what_was_seen_comes_before_what_must_be_paid(ledger):
    paid(ledger, make_question(ZCDP("0.5")), 5, "ann")
    paid(ledger, make_question(ZCDP("1.5")), 15, "bob")
    assert ledger.find_stored(make_question(ZCDP("0.5")), "ann").integers == {"n0": (5,)}
    assert ledger.find_stored(make_question(ZCDP("0.5")), "cyd").integers == {"n0": (15,)}
    assert ledger.totals("ann").spent == ZCDP("0.5")


def test_a_crash_is_resumed_at_no_cost(ledger):
    certificate = make_question(PureDP(1))
    lost = ledger.reserve("bob", certificate)
    spent = ledger.totals().spent
    assert ledger.reserve("bob", certificate).entry_number == lost.entry_number
    assert ledger.totals().spent == spent
    other = ledger.reserve("ann", certificate)
    assert other.entry_number != lost.entry_number, "another analyst's charge is their own"
    ledger.store(lost, make_plain_answer(lost))
    with pytest.raises(AlreadyAnswered):  # two processes of one analyst: the later one takes the stored answer
        ledger.reserve("bob", certificate)
    assert ledger.find_stored(certificate, "bob").entry_number == lost.entry_number
    assert ledger.verify().ok


def test_one_answer_for_one_charge(ledger):
    reservation, head = paid(ledger, make_question(PureDP(1)))
    with pytest.raises(KernelFault, match="has its answer already"):
        ledger.store(reservation, make_plain_answer(reservation, 8))
    assert ledger.head()[1] == head
    assert ledger.find_stored(reservation.certificate, "bob").integers == {"n0": (7,)}


def test_only_what_was_charged_is_stored(ledger):
    one = ledger.reserve("bob", make_question(PureDP(1)))
    two = ledger.reserve("bob", make_question(PureDP(2)))
    never = type(one)(one.entry_number, two.certificate)
    with pytest.raises(KernelFault, match="belongs to another charge"):
        ledger.store(one, make_plain_answer(two))
    with pytest.raises(KernelFault, match="never charged"):
        ledger.store(never, make_plain_answer(never))
    unknown = type(one)(99, one.certificate)
    with pytest.raises(KernelFault, match="never charged"):
        ledger.store(unknown, make_plain_answer(unknown))
    longer = make_plain_answer(one)
    longer.integers["n0"] = (1, 2)
    with pytest.raises(KernelFault, match="another shape"):
        ledger.store(one, longer)


def test_asking_again_is_free(ledger):
    assert ask(ledger, "bob", make_question(PureDP(1)))
    assert not ask(ledger, "bob", make_question(PureDP(1)))
    assert not ask(ledger, "cyd", make_question(PureDP("0.5")))
    assert ledger.totals().spent == PureDP(1).to_zcdp()


def test_a_history_is_what_the_analyst_has(ledger):
    key = make_question(PureDP(1)).answer_key
    assert ledger.find_earlier(key, "bob").rest == ()
    paid(ledger, make_question(PureDP(1)), 11, "bob")
    paid(ledger, make_question(PureDP(3)), 33, "cyd")
    paid(ledger, make_question(PureDP(2)), 22, "bob")
    paid(ledger, make_question(PureDP(2), "somebody"), 99, "bob")
    ledger.reserve("bob", make_question(PureDP(4)))  # not answered
    before = ledger.head()
    assert [(stored.entry_number, stored.integers) for stored in ledger.find_earlier(key, "bob").rest] == [
        (2, {"n0": (11,)}),
        (6, {"n0": (22,)}),
    ]
    assert ledger.find_earlier(key, "eve").rest == (), "what one has not seen is not told"
    assert ledger.head() == before, "looking back costs nothing"
    assert ledger.find_stored(make_question(PureDP("0.5")), "bob").entry_number == 4  # a better one, counted as seen
    told = ledger.find_earlier(key, "bob").rest
    assert [stored.entry_number for stored in told] == [2, 4, 6]
    assert [stored.loss for stored in told] == [PureDP(1), PureDP(3), PureDP(2)]
    assert [stored.certificate_measure[0][1] for stored in told] == [2, Fraction(2, 9), Fraction(1, 2)]
    assert [stored.shares for stored in told] == [(PureDP(1),), (PureDP(3),), (PureDP(2),)]
    assert {stored.head for stored in told} == {ledger.head()[1]}
    assert [stored.analyst for stored in told] == ["bob", "cyd", "bob"]


def test_keys_that_the_data_named_come_back_as_they_were(ledger):
    certificate = replace(make_question(PureDP(1)), cells=None)
    keys = (
        ("Oslo", 1),
        ("1", 1.0),
        ("é\x00'\"", -0.0),
        (True, 2**70),
        (date(2026, 1, 31), datetime(2026, 1, 31, 23, 59)),
    )
    reservation = ledger.reserve("bob", certificate)
    with pytest.raises(KernelFault, match="another shape"):
        ledger.store(reservation, Released(reservation.entry_number, certificate, {"n0": (1, 2)}, keys))
    ledger.store(reservation, Released(reservation.entry_number, certificate, {"n0": (1, 2, 3, 4, 5)}, keys))
    kept = ledger.find_stored(certificate, "bob")
    assert kept.integers == {"n0": (1, 2, 3, 4, 5)}
    assert repr(kept.keys) == repr(keys), "1, 1.0, True and '1' are four keys"
    assert ledger.verify().ok


def test_a_key_that_cannot_be_kept_is_refused(ledger):
    certificate = replace(make_question(PureDP(1)), cells=None)
    reservation = ledger.reserve("bob", certificate)
    with pytest.raises(KernelFault, match="cannot be stored"):
        ledger.store(reservation, Released(reservation.entry_number, certificate, {"n0": (1,)}, ((Fraction(1),),)))
    assert ledger.find_stored(certificate, "bob") is None
