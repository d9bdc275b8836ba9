"""Many processes on one ledger: racing for the last of the budget, and killed at any moment."""

import json
import multiprocessing
import os
import random
import time

import pytest
from ledger_questions import POPULATION, make_answer, make_question

from sfumato.errors import BudgetExceeded, KernelFault, LedgerError
from sfumato.kernel.losses import PureDP
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.ledger_tables import GET_ANSWER

# a server that has imported everything and forks clean children: hundreds of processes in seconds
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["ledger_questions", "sfumato.ledger.ledger"])
SHARE = PureDP("0.1")


def start(work, *arguments):
    process = PROCESSES.Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def finish(processes):
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
        process.close()


def note(log, line):
    """Record that an answer was shown, in one write that survives the process."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def spend(url, ledger_id, limit, name, log):
    """Ask fifty different questions, and report how many were charged."""
    paid = 0
    with Ledger.open(url, ledger_id, POPULATION, limit) as ledger:
        for i in range(50):
            try:
                ledger.reserve(name, make_question(SHARE, f"{name} {i}"))
                paid += 1
            except BudgetExceeded:
                pass
    note(log, paid)


def test_racing_processes_spend_exactly_the_budget(place, tmp_path):
    url, log, limit = place, str(tmp_path / "log"), Limit(PureDP(10))
    with Ledger.create(url, POPULATION, limit) as ledger:
        finish([start(spend, url, ledger.ledger_id, limit, f"p{i}", log) for i in range(16)])
        with open(log) as lines:
            assert sum(map(int, lines)) == 100
        assert ledger.totals().spent == PureDP(10)
        assert sum(entry.kind == "charge" for entry in ledger.entries()) == 100
        assert ledger.verify().ok


def ask_the_same(url, ledger_id, limit, log):
    """All processes ask the same ten questions under one name. Whoever comes second gets the stored answer."""
    with Ledger.open(url, ledger_id, POPULATION, limit) as ledger:
        for i in range(10):
            certificate = make_question(SHARE, f"shared {i}")
            stored = ledger.find_stored(certificate, "ann")
            if stored is None:
                try:
                    reservation = ledger.reserve("ann", certificate)
                    released = make_answer(reservation)
                    ledger.store(reservation, released)
                    note(log, f"{i} {reservation.entry_number} {released.integers['n0'][0]}")
                    continue
                except KernelFault:  # another process answered the same charge first: its answer is the answer
                    stored = ledger.find_stored(certificate, "ann")
            note(log, f"{i} {stored.entry_number} {stored.integers['n0'][0]}")


def test_identical_questions_race_to_one_answer_a_charge(place, tmp_path):
    url, log, limit = place, str(tmp_path / "log"), Limit(PureDP(99))
    with Ledger.create(url, POPULATION, limit) as ledger:
        finish([start(ask_the_same, url, ledger.ledger_id, limit, log) for _ in range(6)])
        kept = answers_by_charge(ledger)
        with open(log) as lines:
            given = [tuple(map(int, line.split())) for line in lines]
        assert len(given) == 60
        assert sum(entry.kind == "charge" for entry in ledger.entries()) == 10, "each question is paid for once"
        assert all(kept[number] == value for _, number, value in given), "one charge, one answer, for everybody"
        assert ledger.verify().ok


def answers_by_charge(ledger):
    """Entry number -> the integer of its stored answer."""
    answered = [entry.about for entry in ledger.entries() if entry.kind == "answer"]
    with ledger._database.read() as rows:
        return {
            number: json.loads(rows.find_row(GET_ANSWER, charge=number)["payload"])["integers"]["n0"][0]
            for number in answered
        }


def ask_until_killed(url, ledger_id, limit, log, name):
    """Ask one question after another. An answer is recorded after it is stored, when a curator would show it."""
    note(f"{log} {name}", "begun")
    with Ledger.open(url, ledger_id, POPULATION, limit) as ledger:
        for i in range(10_000):
            certificate = make_question(SHARE, f"{name} {i}")
            try:
                reservation = ledger.reserve("ann", certificate)
            except BudgetExceeded:
                return
            released = make_answer(reservation)
            ledger.store(reservation, released)
            note(log, f"{reservation.entry_number} {released.integers['n0'][0]}")


def killed_at_random(url, tmp_path, kills):
    log, limit = str(tmp_path / "log"), Limit(PureDP(100_000))
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # shown where the test fails
    chance = random.Random(seed)
    with Ledger.create(url, POPULATION, limit) as ledger:
        ledger_id = ledger.ledger_id
    for round_ in range(kills // 2):
        names = [f"{round_} {i}" for i in range(2)]
        pair = [start(ask_until_killed, url, ledger_id, limit, log, name) for name in names]
        while not all(os.path.exists(f"{log} {name}") for name in names):
            time.sleep(0.001)
        for process in pair:
            time.sleep(chance.uniform(0, 0.1))
            process.kill()
            process.join()
            process.close()
    with Ledger.open(url, ledger_id, POPULATION, limit) as ledger:
        assert ledger.verify().ok
        kept = answers_by_charge(ledger)
        charges = [entry.number for entry in ledger.entries() if entry.kind == "charge"]
        with open(log) as lines:
            noted = dict(map(int, line.split()) for line in lines)
        assert len(noted) > kills // 2, "the processes were killed before they did anything"
        assert noted.items() <= kept.items(), "an answer left without being kept"
        assert set(kept) <= set(charges)
        assert ledger.totals().spent == PureDP(SHARE.epsilon * len(charges))
        assert ledger.totals().spent.epsilon <= limit.loss.epsilon


def test_killed_processes_leave_a_whole_ledger(place, tmp_path):
    killed_at_random(place, tmp_path, 30)


@pytest.mark.slow
def test_many_killed_processes_leave_a_whole_ledger(place, tmp_path):
    killed_at_random(place, tmp_path, 200)


def in_a_fork(work):
    """Run this in a forked child. True if it succeeded."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_a_fork_shares_a_database_but_not_a_memory(place):
    limit = Limit(PureDP(1))
    with Ledger.create(place, POPULATION, limit) as ledger:
        ledger.reserve("ann", make_question(SHARE, "parent"))
        assert in_a_fork(lambda: ledger.reserve("ann", make_question(SHARE, "child")))
        ledger.reserve("ann", make_question(SHARE, "parent again"))
        assert ledger.totals().spent == PureDP("0.3")
        assert ledger.verify().ok
    with Ledger.create(None, POPULATION, limit) as ledger:

        def must_be_refused():
            with pytest.raises(LedgerError, match="belongs to the process that made it"):
                ledger.reserve("ann", make_question(SHARE, "child"))

        assert in_a_fork(must_be_refused)
