"""Threads share a transaction: each goes on after its commit, and nobody is refused for what somebody else did."""

import threading
from contextlib import contextmanager

import pytest
from ledger_questions import POPULATION, make_plain_answer, make_question

from sfumato.errors import BudgetExceeded
from sfumato.kernel.losses import PureDP
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.shared_transactions import SharedTransactions

SHARE = PureDP("0.1")
THREADS = 5


@pytest.fixture
def ledger(place):
    with Ledger.create(place, POPULATION, Limit(PureDP(1))) as made:
        made.entries()
        yield made


class Together:
    """Makes threads wait for each other: what they write comes into one transaction. Counts the transactions."""

    def __init__(self, ledger, monkeypatch):
        self.shared, self.transactions = ledger._shared, 0
        begin = self.shared._begin

        def count_and_begin():
            self.transactions += 1
            return begin()

        monkeypatch.setattr(self.shared, "_begin", count_and_begin)

    def run(self, works):
        """What each returned or raised."""
        found, threads = run_together(self.shared, works)
        for thread in threads:
            thread.join(60)
        return [found[place] for place in range(len(works))]


@pytest.fixture
def together(ledger, monkeypatch):
    return Together(ledger, monkeypatch)


def charge(ledger, about, share=SHARE, analyst="ann"):
    return lambda: ledger.reserve(analyst, make_question(share, about))


def test_charges_and_answers_of_threads_share_a_commit(ledger, together):
    reserved = together.run([charge(ledger, f"{i}") for i in range(THREADS)])
    assert together.transactions == 1
    assert len({one.entry_number for one in reserved}) == THREADS
    assert ledger.totals().spent == PureDP("0.5")
    stores = [lambda one=one: ledger.store(one, make_plain_answer(one)) for one in reserved]
    heads = together.run([*stores, charge(ledger, "more")])
    assert together.transactions == 2
    assert {entry.hash for entry in ledger.entries() if entry.kind == "answer"} == set(heads[:-1])
    assert ledger.totals().spent == PureDP("0.6")
    assert ledger.verify().ok


def test_a_charge_that_does_not_fit_is_refused_and_the_others_are_made(ledger, together):
    works = [charge(ledger, f"{i}", PureDP("0.3")) for i in range(THREADS)]
    found = together.run(works)
    refused = [one for one in found if isinstance(one, BudgetExceeded)]
    assert len(refused) == THREADS - 3
    assert sum(entry.kind == "charge" for entry in ledger.entries()) == 3, "three of 0.3 fit"
    assert together.transactions == 1 + THREADS, "what was shared is undone, and each works by itself"
    assert ledger.totals().spent == PureDP("0.9")
    assert ledger.verify().ok


def test_the_same_question_at_once_is_charged_once(ledger, together):
    found = together.run([charge(ledger, "same") for _ in range(THREADS)])
    assert len({one.entry_number for one in found}) == 1
    assert ledger.totals().spent == SHARE
    answers = together.run([lambda one=one: ledger.store(one, make_plain_answer(one)) for one in found])
    assert sum(isinstance(one, str) for one in answers) == 1, "one answer; the others are told that there is one"
    assert ledger.verify().ok


class FakeTransactions:
    """Transactions that a test holds or breaks. What they write is a list of numbers, and so is their head."""

    def __init__(self):
        self.written, self.remembered, self.events = [], [], []
        self.committing, self.go_on = threading.Event(), threading.Event()
        self.failures = []  # raised at the next commits
        self.shared = SharedTransactions(self.begin, self.remember)

    @contextmanager
    def begin(self):
        kept = list(self.written)
        try:
            yield None, len(self.written)
            self.committing.set()
            assert self.go_on.wait(60)
            if self.failures:
                raise self.failures.pop()
            self.events.append("committed")
        except BaseException:
            self.written = kept
            raise

    def remember(self, head):
        self.events.append("remembered")
        self.remembered.append(head)

    def add(self, number):
        def write(_, head):
            if number is None:
                raise ValueError("refused")
            self.written.append(number)
            return head + 1, number

        def run():
            result = self.shared.run(write)
            self.events.append("went on")
            return result

        return run


def run_together(shared, works):
    """Run each in a thread, all in one transaction. What each returned or raised, by its place, when it has."""
    found = {}

    def run(place):
        try:
            found[place] = works[place]()
        except Exception as error:
            found[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(works))]
    with shared._turn:  # as if another transaction were on its way to the disk
        for thread in threads:
            thread.start()
        while len(shared._waiting) < len(works):
            assert all(thread.is_alive() for thread in threads)
    return found, threads


def test_nobody_goes_on_before_the_commit():
    fake = FakeTransactions()
    found, threads = run_together(fake.shared, [fake.add(number) for number in range(THREADS)])
    assert fake.committing.wait(60)
    assert len(fake.written) == THREADS, "all of it is in one transaction"
    assert not found, "and nobody has gone on"
    fake.go_on.set()
    for thread in threads:
        thread.join(60)
    assert found == {number: number for number in range(THREADS)}
    assert fake.events == ["committed", "remembered", *["went on"] * THREADS]
    assert fake.remembered == [THREADS]


def test_after_a_failed_commit_each_writes_by_itself():
    fake = FakeTransactions()
    fake.go_on.set()
    fake.failures = [OSError("the second, of the first thread alone"), OSError("the first, of all")]
    found, threads = run_together(fake.shared, [fake.add(number) for number in range(3)])
    for thread in threads:
        thread.join(60)
    failed = [place for place, result in found.items() if isinstance(result, OSError)]
    assert len(failed) == 1
    assert sorted(fake.written) == sorted({0, 1, 2} - set(failed)), "nothing is written twice or lost"
    assert all(found[place] == place for place in {0, 1, 2} - set(failed))


def test_who_is_refused_does_not_stop_the_others():
    fake = FakeTransactions()
    fake.go_on.set()
    found, threads = run_together(fake.shared, [fake.add(1), fake.add(None), fake.add(2)])
    for thread in threads:
        thread.join(60)
    assert (found[0], found[2]) == (1, 2)
    assert isinstance(found[1], ValueError)
    assert sorted(fake.written) == [1, 2]
    assert not fake.shared._waiting


def test_an_interrupt_ends_who_commits_and_the_others_go_on():
    class Interrupt(BaseException):
        pass

    fake, interrupted = FakeTransactions(), []
    fake.go_on.set()
    fake.failures = [Interrupt()]

    def make(number):
        def run():
            try:
                return fake.add(number)()
            except Interrupt:
                interrupted.append(number)

        return run

    found, threads = run_together(fake.shared, [make(number) for number in range(3)])
    for thread in threads:
        thread.join(60)
    assert len(interrupted) == 1
    assert sorted(fake.written) == sorted({0, 1, 2} - set(interrupted))
    assert all(found[number] == number for number in fake.written)
