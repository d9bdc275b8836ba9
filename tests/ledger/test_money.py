"""Budgets are exact: which charges fit, which do not, and what the refusal says."""

import pickle
import threading

import pytest
from ledger_questions import POPULATION, ask, make_answer, make_question

from sfumato.errors import BudgetExceeded, InvalidParameter, KernelFault, LedgerError
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.ledger.ledger import Ledger, Limit, Totals
from sfumato.ledger.recorded_analysts import MOST_NOTED


@pytest.fixture
def ledger_of(new_place):
    made = []

    def make(loss, **sublimits):
        made.append(Ledger.create(new_place(), POPULATION, Limit(loss), sublimits))
        return made[-1]

    yield make
    for ledger in made:
        ledger.close()


def test_ten_tenths_are_one(ledger_of):
    ledger = ledger_of(PureDP(1))
    for i in range(9):
        ledger.reserve("ann", make_question(PureDP(0.1), f"q{i}"))
    with pytest.raises(BudgetExceeded):
        ledger.reserve("ann", make_question(PureDP("0.10000000000000001"), "too much by 1e-17"))
    ledger.reserve("ann", make_question(PureDP("0.09999999999999999"), "q9"))
    assert ledger.totals().remaining == PureDP("1e-17")
    with pytest.raises(BudgetExceeded):
        ledger.reserve("ann", make_question(PureDP("1e-7"), "one more"))
    ledger_of(PureDP("0.2")).reserve("ann", make_question((PureDP(0.1), PureDP(0.1))))
    assert ledger.verify().ok


def test_a_spent_budget_is_spent(ledger_of):
    ledger = ledger_of(PureDP(1))
    for i in range(10):
        ledger.reserve("ann", make_question(PureDP(0.1), f"q{i}"))
    assert ledger.totals() == Totals(PureDP(1), PureDP(1), PureDP(0))
    with pytest.raises(BudgetExceeded):
        ledger.reserve("ann", make_question(PureDP("1e-9"), "one more"))
    assert ledger.totals().spent == PureDP(1)


def test_what_is_left_is_known_without_looking_again(place):
    with Ledger.create(place, POPULATION, Limit(PureDP(1))) as ours:
        assert ours.read_remaining() == PureDP(1)
        ask(ours, "ann", make_question(PureDP("0.1"), "a"))
        assert ours.read_remaining() == PureDP("0.9")
        with Ledger.open(place, ours.ledger_id, POPULATION, Limit(PureDP(1))) as theirs:
            assert theirs.read_remaining() == PureDP("0.9")
            ask(theirs, "bob", make_question(PureDP("0.2"), "b"))
        assert ours.read_remaining() == PureDP("0.9"), "as it was after the last entry that was seen"
        assert not ask(ours, "ann", make_question(PureDP("0.1"), "a"))
        assert ours.read_remaining() == ours.totals().remaining == PureDP("0.7")


def test_what_a_charge_left_of_an_own_limit_is_known_without_looking_again(ledger_of, monkeypatch):
    ledger = ledger_of(PureDP(1), ann=PureDP("0.5"), bob=PureDP("0.4"))
    first, _ = ledger.charge("ann", make_question(PureDP("0.1"), "a"))
    second, _ = ledger.charge("ann", make_question(PureDP("0.2"), "b"))
    bobs, _ = ledger.charge("bob", make_question(PureDP("0.3"), "c"))
    looked = ledger.read_own_remaining("ann")
    monkeypatch.setattr(Ledger, "totals", lambda *_: pytest.fail("it looked again"))
    assert ledger.read_own_remaining("ann", first.entry_number) == PureDP("0.4")
    assert ledger.read_own_remaining("ann", second.entry_number) == looked == PureDP("0.2")
    assert ledger.read_own_remaining("bob", bobs.entry_number) == PureDP("0.1")
    assert ledger.read_own_remaining("eve", 99) is None, "without a limit of their own"
    monkeypatch.undo()
    assert ledger.read_own_remaining("ann", 99) == PureDP("0.2"), "a charge that was not made here"
    resumed, taken = ledger.charge("ann", make_question(PureDP("0.1"), "a"))
    assert (resumed.entry_number, taken.own) == (first.entry_number, PureDP(0))
    for number in range(MOST_NOTED):
        ledger.charge("bob", make_question(PureDP("0.001"), f"n{number}"))
    assert len(ledger._analysts._own_spent) == MOST_NOTED, "it forgets the oldest"
    assert ledger.read_own_remaining("ann", first.entry_number) == PureDP("0.2")


def test_not_even_the_last_digit_fits(ledger_of):
    tiny = make_question(PureDP("0.10000000000000001"), "a")  # 0.1 + 1e-17: a float would not tell
    ledger = ledger_of(PureDP("0.1"))
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve("ann", tiny)
    assert refused.value.requested == PureDP("0.10000000000000001")
    assert refused.value.remaining == PureDP("0.1")
    ledger_of(PureDP("0.10000000000000001")).reserve("ann", tiny)


@pytest.mark.parametrize(
    ("limit", "share", "spent", "text"),
    [
        (
            PureDP(1),
            PureDP("0.7"),
            PureDP("0.7"),
            "This costs epsilon = 0.7, and epsilon = 0.3 is left of the population's budget of epsilon = 1. "
            "A question of at most epsilon = 0.3 still fits.",
        ),
        (
            ApproxDP(1, "1e-6"),
            PureDP("0.7"),
            ApproxDP("0.7", 0),
            "This costs epsilon = 0.7, delta = 0, and epsilon = 0.3, delta = 0.000001 is left of the population's "
            "budget of epsilon = 1, delta = 0.000001. "
            "A question of at most epsilon = 0.3, delta = 0.000001 still fits.",
        ),
        (
            ZCDP("0.5", "1e-6"),
            ZCDP("0.3"),
            ZCDP("0.3", 0),
            "This costs rho = 0.3, delta = 0, and rho = 0.2, delta = 0.000001 is left of the population's budget of "
            "rho = 0.5, delta = 0.000001. A question of at most rho = 0.2, delta = 0.000001 still fits.",
        ),
    ],
)
def test_refusals_say_what_is_left(ledger_of, limit, share, spent, text):
    ledger = ledger_of(limit)
    ledger.reserve("ann", make_question(share, "a"))
    before = ledger.head()
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve("ann", make_question(share, "b"))
    assert str(refused.value) == text
    assert ledger.totals().spent == spent
    assert ledger.head() == before, "a refusal writes nothing"
    assert str(pickle.loads(pickle.dumps(refused.value))) == text


def test_an_empty_budget_says_so(ledger_of):
    ledger = ledger_of(PureDP(1))
    ledger.reserve("ann", make_question(PureDP(1)))
    with pytest.raises(BudgetExceeded, match=r"Nothing more fits. Questions that were answered before"):
        ledger.reserve("ann", make_question(PureDP(1), "b"))


def test_what_the_hint_promises_fits(ledger_of):
    ledger = ledger_of(ZCDP("0.02"))
    with pytest.raises(BudgetExceeded, match=r"With Laplace noise that is epsilon = 0\.2\.") as refused:
        ledger.reserve("ann", make_question(PureDP(1)))
    assert refused.value.requested == PureDP(1).to_zcdp()
    ledger.reserve("ann", make_question((PureDP("0.15"), PureDP("0.05"))))


def test_each_measurement_is_exchanged_alone(ledger_of):
    ledger = ledger_of(ZCDP(1))
    ledger.reserve("ann", make_question((PureDP("0.5"), PureDP("0.5"))))
    alone = PureDP("0.5").to_zcdp()
    assert ledger.totals().spent == alone.compose(alone) != PureDP(1).to_zcdp()
    ledger.reserve("ann", make_question((PureDP("0.5"), ZCDP("0.1")), "mixed"))
    assert ledger.totals().spent == alone.compose(alone).compose(alone).compose(ZCDP("0.1"))
    assert ledger.verify().ok


@pytest.mark.parametrize("limit", [PureDP(3), ApproxDP(3, 1e-6)])
def test_rho_cannot_be_paid_in_epsilon(ledger_of, limit):
    ledger = ledger_of(limit)
    with pytest.raises(LedgerError, match="accounting='zcdp'"):
        ledger.reserve("ann", make_question(ZCDP("0.1")))
    assert ledger.head()[0] == 1


def test_sublimits(ledger_of):
    ledger = ledger_of(ApproxDP(3, "1e-6"), ann=PureDP(1))
    ledger.reserve("ann", make_question(PureDP("0.6"), "a"))
    with pytest.raises(
        BudgetExceeded, match=r"epsilon = 0\.4, delta = 0 is left of this analyst's own limit"
    ) as refused:
        ledger.reserve("ann", make_question(PureDP("0.6"), "b"))
    assert refused.value.remaining == ApproxDP("0.4", 0)
    ledger.reserve("bob", make_question(PureDP("0.6"), "b"))
    assert ledger.totals("ann") == Totals(ApproxDP(1, 0), ApproxDP("0.6", 0), ApproxDP("0.4", 0))
    assert (
        ledger.totals("bob")
        == ledger.totals()
        == Totals(ApproxDP(3, "1e-6"), ApproxDP("1.2", 0), ApproxDP("1.8", "1e-6"))
    )
    assert ledger.verify().ok


@pytest.mark.parametrize("limit", [PureDP(1), ApproxDP(1, 1e-6), ZCDP("0.2")])
def test_what_is_said_to_fit_is_granted(ledger_of, limit):
    own = ZCDP("0.1") if isinstance(limit, ZCDP) else PureDP("0.5")
    ledger = ledger_of(limit, ann=own)
    asked = [("ann", "0.3"), ("ann", "0.3"), ("bob", "0.3"), ("bob", "0.4"), ("ann", "0.2"), ("bob", "0.1"), ("bob", 1)]
    said, granted = [], []
    for i, (analyst, share) in enumerate(asked):
        certificate = make_question((PureDP(share), PureDP("0.01")), f"q{i}")
        before = ledger.head()
        said.append(ledger.fits(analyst, certificate))
        assert ledger.head() == before
        try:
            ledger.reserve(analyst, certificate)
            granted.append(True)
            assert ledger.fits(analyst, certificate), "what is paid for can be resumed"
        except BudgetExceeded:
            granted.append(False)
    assert said == granted
    assert True in said
    assert False in said
    assert ledger.fits("ann", make_question(ZCDP("1e-6"), "rho")) == isinstance(limit, ZCDP)


def test_sublimits_count_what_the_budget_counts():
    for limit, own in ((PureDP(1), ZCDP(1)), (ZCDP(1), PureDP(1)), (PureDP(1), ApproxDP(1, 1e-6))):
        with pytest.raises(LedgerError):
            Ledger.create(None, POPULATION, Limit(limit), {"ann": own})


def test_only_the_owner_changes_a_limit(place):
    with Ledger.create(place, POPULATION, Limit(PureDP(3))) as first:
        for other in (PureDP(30), PureDP(1), ApproxDP(3, 1e-6), ZCDP(3)):
            with pytest.raises(LedgerError, match="The ledger's budget is epsilon = 3") as refused:
                Ledger.open(place, first.ledger_id, POPULATION, Limit(other))
            assert refused.value.code == "ledger-limit"
            assert "sfumato budget set" in refused.value.hint
        assert first.totals().limit == PureDP(3)
        assert first.head()[0] == 1, "a refusal writes nothing"


def test_a_lowered_limit_holds_for_everybody_at_once(place):
    with Ledger.create(place, POPULATION, Limit(PureDP(3))) as first:
        first.reserve("ann", make_question(PureDP(2), "a"))
        with Ledger.open(place, first.ledger_id, POPULATION, Limit(PureDP(3))) as second:
            second.set_limit(Limit(PureDP(1)))
            assert second.totals() == first.totals() == Totals(PureDP(1), PureDP(2), PureDP(0))
            assert [entry.kind for entry in second.entries()] == ["open", "charge", "limit"]
        with pytest.raises(BudgetExceeded):
            first.reserve("ann", make_question(PureDP("0.1"), "b"))
        with Ledger.open(place, first.ledger_id, POPULATION, Limit(PureDP(1))) as third:
            third.set_limit(Limit(PureDP(1)))
            assert third.head()[0] == 3, "an unchanged limit is not declared again"
            assert third.verify().ok


def test_a_limit_of_another_kind_carries_what_is_spent(place):
    with Ledger.create(place, POPULATION, Limit(PureDP(3))) as ledger:
        ask(ledger, "ann", make_question(PureDP("0.5"), "a"))
        ledger.set_limit(Limit(ApproxDP(3, 1e-6)))
        assert ledger.totals().spent == ApproxDP("0.5", 0)
        ledger.set_limit(Limit(ZCDP(1)))
    with Ledger.open(place, ledger.ledger_id, POPULATION, Limit(ZCDP(1)), {"ann": ZCDP("0.2")}) as ledger:
        half = PureDP("0.5").to_zcdp()
        assert ledger.totals().spent == half == ledger.totals("ann").spent
        ask(ledger, "ann", make_question(ZCDP("0.01"), "b"))
        assert ledger.totals("ann").spent == half.compose(ZCDP("0.01"))
        ledger.find_stored(make_question(PureDP("0.5"), "a"), "bob")
        assert ledger.verify().ok
        with pytest.raises(LedgerError, match="An analyst's limit must count what the budget counts"):
            ledger.set_limit(Limit(PureDP(3)))
    with (
        Ledger.open(place, ledger.ledger_id, POPULATION) as ledger,
        pytest.raises(LedgerError, match="a zCDP loss has none"),
    ):
        ledger.set_limit(Limit(PureDP(3)))


def test_threads_share_a_ledger(ledger_of):
    ledger = ledger_of(PureDP(1))
    refused = []

    def work(name):
        for i in range(10):
            try:
                reservation = ledger.reserve(name, make_question(PureDP("0.05"), f"{name}{i}"))
                ledger.store(reservation, make_answer(reservation))
            except BudgetExceeded:
                refused.append(name)

    threads = [threading.Thread(target=work, args=(f"t{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 20
    assert ledger.totals().spent == PureDP(1)
    assert ledger.verify().ok


def test_what_is_not_a_request_is_refused(ledger_of):
    ledger = ledger_of(PureDP(1))
    with pytest.raises(KernelFault, match="another population"):
        ledger.reserve("ann", make_question(PureDP("0.1"), population="others"))
    for name in ("", "a\x00b", None):
        with pytest.raises(InvalidParameter, match="analyst"):
            ledger.reserve(name, make_question(PureDP("0.1")))
    with pytest.raises(InvalidParameter, match="limit must be a privacy loss"):
        Limit(3)
    assert ledger.head()[0] == 1


@pytest.mark.parametrize(
    ("kind", "budget", "spent", "loss"),
    [
        ("charge", PureDP(1), PureDP("1.1"), PureDP("0.6")),  # over the limit
        ("charge", PureDP(1), PureDP("0.6"), PureDP("0.2")),  # a wrong sum
        ("charge", PureDP(1), PureDP("0.5"), None),  # a charge without a loss
        ("charge", PureDP(2), PureDP("0.6"), PureDP("0.1")),  # another budget
        ("answer", PureDP(1), PureDP("0.4"), None),  # less is spent than before
        ("adopt", PureDP(2), PureDP("0.5"), None),
    ],
)
def test_the_rows_refuse_an_entry_that_breaks_the_sums(kind, budget, spent, loss):
    with Ledger.create(None, POPULATION, Limit(PureDP(1))) as ledger:
        ledger.reserve("ann", make_question(PureDP("0.5")))
        with pytest.raises(KernelFault), ledger._guarded.write() as (rows, now):
            rows.append(now, kind, budget, spent, loss=loss)
        assert ledger.head()[0] == 2
        with ledger._guarded.write() as (rows, now):
            rows.append(now, "charge", PureDP(1), PureDP("0.6"), loss=PureDP("0.1"))
        assert ledger.totals().spent == PureDP("0.6")
