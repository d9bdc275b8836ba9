"""Killed and racing processes: every answer that was ever printed has its charge; the budget holds."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from protected import protect

import sfumato as sf

HERE = Path(__file__).parents[1]  # protected.py is there
ASK_ON = """
import json, sys
sys.path.insert(0, {here!r})
from protected import protect
import sfumato as sf
people = protect(sf.Budget(epsilon=1000), ledger={ledger!r}, unit=sf.ROW)
for index in range({first}, {first} + 100_000):
    answer = people.ask(f"SELECT COUNT(*) AS n FROM people WHERE income > {{index}}", epsilon="0.01")
    print(json.dumps([answer.entry, answer.rows[0]["n"], index]), flush=True)
"""
RACE = """
import sys
sys.path.insert(0, {here!r})
from protected import protect
import sfumato as sf
people = protect(sf.Budget(epsilon=1), ledger={ledger!r}, unit=sf.ROW)
answered = refused = 0
for index in range({first}, {first} + {count}):
    try:
        people.ask(f"SELECT COUNT(*) AS n FROM people WHERE income > {{index}}", epsilon="0.01")
        answered += 1
    except sf.errors.BudgetExceeded:
        refused += 1
print(answered, refused)
people.close()
"""
SAME = """
import sys
sys.path.insert(0, {here!r})
from protected import protect
import sfumato as sf
people = protect(sf.Budget(epsilon=1), ledger={ledger!r}, unit=sf.ROW)
sql = "SELECT COUNT(*) AS n FROM people WHERE age > "
print([people.ask(sql + str(age), epsilon="0.01").rows[0]["n"] for age in range(20)])
people.close()
"""


def run(script, **names):
    text = script.format(here=str(HERE), **names)
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_again_and_again(tmp_path, times):
    ledger = tmp_path / "ledger.db"
    protect(sf.Budget(epsilon=1000), ledger=ledger, unit=sf.ROW).close()
    printed = []
    for attempt in range(times):
        asking = run(ASK_ON, ledger=str(ledger), first=100_000 * attempt)
        first = asking.stdout.readline()
        assert first, asking.stderr.read()
        time.sleep(int.from_bytes(os.urandom(2), "big") / 65536 * 0.15)
        asking.send_signal(signal.SIGKILL)
        rest, _ = asking.communicate()
        printed += [json.loads(line) for line in (first + rest).splitlines() if line.endswith("]")]
    with protect(sf.Budget(epsilon=1000), ledger=ledger, unit=sf.ROW) as people:
        assert people.ledger().verify().ok
        entries = {entry.number: entry for entry in people.ledger().entries()}
        charges = [entry for entry in entries.values() if entry.kind == "charge"]
        assert all(entries[number].kind == "charge" for number, _, _ in printed)
        assert len({number for number, _, _ in printed}) == len(printed)
        assert float(people.budget.spent.epsilon) == pytest.approx(0.01 * len(charges))
        assert len(charges) >= len(printed)
        for number, noisy, index in printed[-5:]:  # what was printed is what is stored
            again = people.ask(f"SELECT COUNT(*) AS n FROM people WHERE income > {index}", epsilon="0.01")
            assert (again.entry, again.rows[0]["n"], again.cached) == (number, noisy, True)


def test_killed_processes_lose_no_charge(tmp_path):
    kill_again_and_again(tmp_path, 6)


@pytest.mark.slow
def test_two_hundred_kills(tmp_path):
    kill_again_and_again(tmp_path, 200)


def race(tmp_path, processes, questions):
    ledger = tmp_path / "ledger.db"
    protect(sf.Budget(epsilon=1), ledger=ledger, unit=sf.ROW).close()
    racing = [run(RACE, ledger=str(ledger), first=1000 * number, count=questions) for number in range(processes)]
    outcomes = []
    for process in racing:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        outcomes.append([int(part) for part in out.split()])
    assert sum(answered for answered, _ in outcomes) == 100
    assert sum(refused for _, refused in outcomes) == processes * questions - 100
    with protect(sf.Budget(epsilon=1), ledger=ledger, unit=sf.ROW) as people:
        assert float(people.budget.remaining.epsilon) == 0
        assert people.ledger().verify().ok


def test_racing_processes_share_one_budget(tmp_path):
    race(tmp_path, 4, 40)


@pytest.mark.slow
def test_sixteen_processes_race_for_a_hundred_answers(tmp_path):
    race(tmp_path, 16, 50)


def test_identical_questions_race_safely(tmp_path):
    ledger = tmp_path / "ledger.db"
    protect(sf.Budget(epsilon=1), ledger=ledger, unit=sf.ROW).close()
    racing = [run(SAME, ledger=str(ledger)) for _ in range(3)]
    answers = set()
    for process in racing:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        answers.add(out)
    assert len(answers) == 1  # one charge and one answer for each question, whoever asked first
    with protect(sf.Budget(epsilon=1), ledger=ledger, unit=sf.ROW) as people:
        assert float(people.budget.spent.epsilon) == pytest.approx(0.2)
