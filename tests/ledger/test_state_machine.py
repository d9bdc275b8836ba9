"""Any sequence of calls, crashes and reopenings, against a ledger in plain Python."""

import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from ledger_questions import POPULATION, make_plain_answer, make_question

from sfumato.errors import BudgetExceeded, KernelFault
from sfumato.kernel.losses import PureDP
from sfumato.ledger.ledger import AlreadyAnswered, Ledger, Limit

ANALYSTS = st.sampled_from(["ann", "bob", "cyd"])
TOPICS = st.sampled_from(["a", "b"])
SHARES = st.sampled_from(["0.1", "0.2", "0.35", "0.10000000000000001"])
QUESTIONS = {
    (topic, share): make_question(PureDP(share), topic)
    for topic in ("a", "b")
    for share in ("0.1", "0.2", "0.35", "0.10000000000000001")
}
OWN = {"ann": Fraction("0.4"), "bob": Fraction("0.8")}
SUBLIMITS = {name: PureDP(most) for name, most in OWN.items()}


class Books(RuleBasedStateMachine):
    """The model: who was charged what for which question, which charges have no answer, and who saw which answer."""

    make_address = None  # on a server; None: in a file

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = self.make_address() if self.make_address else str(Path(self.folder.name) / "ledger.db")
        self.limit = Fraction(1)
        self.ledger = Ledger.create(self.path, POPULATION, Limit(PureDP(self.limit)), SUBLIMITS)
        self.charges = {}  # entry number -> (analyst, topic, share)
        self.answers = {}  # entry number -> value
        self.seen = set()  # (analyst, entry number)
        self.waiting = {}  # entry number -> Reservation
        self.entries = 1

    def teardown(self):
        self.ledger.close()
        self.folder.cleanup()

    def spent(self):
        return sum((Fraction(share) for _, _, share in self.charges.values()), Fraction(0))

    def own(self, analyst):
        counted = (n for n, charge in self.charges.items() if charge[0] == analyst or (analyst, n) in self.seen)
        return sum((Fraction(self.charges[n][2]) for n in counted), Fraction(0))

    @rule(analyst=ANALYSTS, topic=TOPICS, share=SHARES)
    def reserve(self, analyst, topic, share):
        same = [n for n, charge in self.charges.items() if charge == (analyst, topic, share) and n not in self.answers]
        answered = any(charge == (analyst, topic, share) and n in self.answers for n, charge in self.charges.items())
        cost = Fraction(share)
        fits = self.spent() + cost <= self.limit and self.own(analyst) + cost <= OWN.get(analyst, 1000)
        try:
            reservation = self.ledger.reserve(analyst, QUESTIONS[topic, share])
        except AlreadyAnswered:
            assert answered
            return
        except BudgetExceeded as refused:
            assert not same
            assert not answered
            assert not fits
            assert refused.requested == PureDP(share)
            return
        assert not answered
        if same:
            assert reservation.entry_number == same[0]
        else:
            assert fits
            self.entries += 1
            assert reservation.entry_number == self.entries
            self.charges[self.entries] = (analyst, topic, share)
        self.waiting[reservation.entry_number] = reservation

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), value=st.integers(-(2**62), 2**62))
    def store(self, data, value):
        number = data.draw(st.sampled_from(sorted(self.waiting)))
        reservation = self.waiting[number]
        if number in self.answers:
            with pytest.raises(KernelFault):
                self.ledger.store(reservation, make_plain_answer(reservation, value))
            return
        head = self.ledger.store(reservation, make_plain_answer(reservation, value))
        self.answers[number] = value
        self.entries += 1
        assert self.ledger.head() == (self.entries, head)

    @rule()
    def crash_without_store(self):
        self.waiting.clear()
        self.reopen(self.limit)

    @rule(limit=st.sampled_from([Fraction(1), Fraction("0.5"), Fraction(2)]))
    def reopen(self, limit):
        head = self.ledger.head()
        self.ledger.close()
        self.ledger = Ledger.open(
            self.path, self.ledger.ledger_id, POPULATION, Limit(PureDP(self.limit)), SUBLIMITS, expected_head=head
        )
        self.ledger.set_limit(Limit(PureDP(limit)))
        self.entries += limit != self.limit
        self.limit = limit

    @rule(analyst=ANALYSTS, topic=TOPICS, share=SHARES)
    def find_stored(self, analyst, topic, share):
        hits = [
            n for n in self.answers if self.charges[n][1] == topic and Fraction(self.charges[n][2]) >= Fraction(share)
        ]
        known = {n for n in hits if self.charges[n][0] == analyst or (analyst, n) in self.seen}
        if analyst in OWN:  # an analyst with a limit does not get an answer with a larger loss than asked for
            hits = [n for n in hits if n in known or Fraction(self.charges[n][2]) <= Fraction(share)]
        hits.sort(key=lambda n: (analyst in OWN and n not in known, -Fraction(self.charges[n][2]), n))
        quote, before = self.ledger.quote(analyst, QUESTIONS[topic, share]), self.own(analyst)
        assert (quote.shares is not None) == bool(hits)
        try:
            stored = self.ledger.find_stored(QUESTIONS[topic, share], analyst)
        except BudgetExceeded:
            assert not quote.fits
            assert hits[0] not in known
            assert self.own(analyst) + Fraction(self.charges[hits[0]][2]) > OWN[analyst]
            return
        if not hits:
            assert stored is None
            return
        assert quote.fits
        assert stored.taken == quote.taken
        assert stored.taken.population == PureDP(0)
        assert stored.entry_number == hits[0]
        assert stored.integers == {"n0": (self.answers[hits[0]],)}
        assert stored.analyst == self.charges[hits[0]][0]
        if hits[0] not in known:
            self.seen.add((analyst, hits[0]))
            self.entries += 1
            assert self.own(analyst) <= OWN.get(analyst, 1000)
        if analyst in OWN:
            assert Fraction(stored.taken.own.epsilon) == self.own(analyst) - before

    @rule(analyst=ANALYSTS, topic=TOPICS)
    def history(self, analyst, topic):
        told = self.ledger.find_earlier(QUESTIONS[topic, "0.1"].answer_key, analyst).rest
        assert [(stored.entry_number, stored.integers["n0"][0]) for stored in told] == [
            (n, self.answers[n])
            for n in sorted(self.answers)
            if self.charges[n][1] == topic and (self.charges[n][0] == analyst or (analyst, n) in self.seen)
        ]

    @invariant()
    def sums_agree(self):
        totals = self.ledger.totals()
        assert Fraction(totals.spent.epsilon) == self.spent()
        assert Fraction(totals.remaining.epsilon) == max(Fraction(0), self.limit - self.spent())
        for analyst in OWN:
            assert Fraction(self.ledger.totals(analyst).spent.epsilon) == self.own(analyst)

    @invariant()
    def chain_holds(self):
        found = self.ledger.verify()
        assert found.ok
        assert found.entries == self.entries == self.ledger.head()[0]


Books.TestCase.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestBooks = Books.TestCase


def test_books_on_a_server(postgres_server):
    class BooksOnAServer(Books):
        make_address = staticmethod(postgres_server.make_address)

    run_state_machine_as_test(BooksOnAServer, settings=settings(Books.TestCase.settings, max_examples=10))
