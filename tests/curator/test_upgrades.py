"""Upgrades: many of one question, and many at once."""

import json
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from protected import protect

import sfumato as sf
from sfumato.answering.upgrade import Releases
from sfumato.answers.combined_releases import MOST_PARTS, RunningMeans
from sfumato.answers.released_values import Reading, ReleasedVector
from sfumato.answers.simulated_noise import WeightedNoise, imitate_noises
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.ledger.entry_queries import walk_entries
from sfumato.ledger.prepared_statement import PreparedStatement

HERE = Path(__file__).parents[1]  # protected.py is there
SQL = "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY city"
FALSE_ALARM = 1e-6
UPGRADE = """
import json, sys
sys.path.insert(0, {here!r})
from protected import protect
import sfumato as sf
people = protect(sf.Budget(epsilon=10), ledger={ledger!r})
print("ready", flush=True)
sys.stdin.readline()
answer = people.upgrade({sql!r}, epsilon=2)
print(json.dumps([answer.rows, answer.intervals, str(answer.cost.epsilon)]))
people.close()
"""


def rows_read(people, work, monkeypatch):
    """How many rows and characters the ledger reads for an operation."""
    read = [0, 0]
    rows = PreparedStatement.run

    def counted(self, connection, **values):
        found = rows(self, connection, **values)
        read[0] += len(found)
        read[1] += sum(len(str(value)) for row in found for value in row.values())
        return found

    with monkeypatch.context() as patch:
        patch.setattr(PreparedStatement, "run", counted)
        work()
    return read


def test_the_two_hundredth_upgrade_reads_no_more_than_the_second(monkeypatch):
    with protect(sf.Budget(epsilon=1000)) as people:
        people.ask(SQL, epsilon="0.1")
        read = [
            rows_read(
                people, lambda number=number: people.upgrade(SQL, epsilon=f"{number / 10 + 0.1:.1f}"), monkeypatch
            )
            for number in range(1, 41)
        ]
        assert people.budget.spent.epsilon == Fraction("4.1")
        rows, letters = zip(*read, strict=True)
        assert set(rows[1:]) == {rows[1]}, "as many rows each time"
        assert max(letters[1:]) < 1.6 * letters[1], "and what is kept of eight releases, at most"


def test_a_summary_is_the_same_as_adding_up_every_release():
    count = "SELECT COUNT(*) AS n FROM people"
    with protect(sf.Budget(epsilon=1000)) as people:
        for number in range(1, 13):
            summed_up = people.upgrade(count, epsilon=number)
        with people.ledger()._database.read() as rows:
            kept = [json.loads(row["payload"]) for row in walk_entries(rows) if row["kind"] == "answer"]
        (first,) = kept[0]["summary"]["combined"]
        noise = LaplaceNoise(Fraction(first["noises"][0][1]))  # every release spends the same
        made = None
        for answer in kept:
            (released,) = answer["integers"].values()
            reading = Reading((ReleasedVector("n", np.array(released, float) * first["step"], noise, first["step"]),))
            made = RunningMeans.start(reading) if made is None else made.add(reading)
        (found,) = RunningMeans.from_json(kept[-1]["summary"]["combined"]).means
        assert np.array_equal(found.values, made.means[0].values), "bit for bit"
        assert (found.precision, found.fourth) == (made.means[0].precision, made.means[0].fourth)
        assert people.upgrade(count, epsilon=12).rows == summed_up.rows
        assert people.upgrade(count, epsilon=12).intervals == summed_up.intervals


def test_views_and_asks_between_upgrades_are_combined_too():
    with protect(
        sf.Budget(epsilon=100), analysts={"ann": sf.Budget(epsilon=50), "bob": sf.Budget(epsilon=50)}
    ) as people:
        people.upgrade(SQL, epsilon=1, analyst="ann")
        people.ask(SQL, epsilon=2, analyst="bob")
        assert people.ask(SQL, epsilon=2, analyst="ann").cached, "bob's, counted on ann's limit"
        people.ask(SQL, epsilon=3, analyst="ann")
        better = people.upgrade(SQL, epsilon=7, analyst="ann")
        assert better.cost.epsilon == 1, "1 + 2 + 3 were paid"
        assert people.upgrade(SQL, epsilon=7, analyst="ann").rows == better.rows
        assert better.loss.epsilon == 7


def test_the_disclosure_of_an_upgrade_is_of_all_its_releases():
    with protect(sf.Budget(epsilon=100)) as people:
        first = people.ask(SQL, epsilon="0.1")
        second = people.upgrade(SQL, epsilon="0.5")
        third = people.upgrade(SQL, epsilon="0.7")
        again = people.upgrade(SQL, epsilon="0.7")
        single = people.ask(SQL, epsilon="0.3")
        entries = [first.entry, second.entry, third.entry]
        for answer, combined, epsilon in (
            (first, entries[:1], "0.1"),
            (second, entries[:2], "0.5"),
            (third, entries, "0.7"),
            (again, entries, "0.7"),
            (single, [second.entry], "0.4"),
        ):
            said = answer.disclosure["statement"]
            assert said["entries"] == combined
            assert said["loss"] == {"epsilon": epsilon} == {"epsilon": str(answer.loss.epsilon)}
            assert Fraction(said["family_of_four"]["epsilon"]) == 4 * Fraction(epsilon)
            assert sum(Fraction(part["loss"]["epsilon"]) for part in said["measurements"]) == Fraction(epsilon)
            assert said["entry"] == answer.entry
            assert said["plan"] == people.ledger().entry(answer.entry).plan_digest
            charged = [people.ledger().entry(number).loss for number in combined]
            assert sum(Fraction(loss.epsilon) for loss in charged) == Fraction(epsilon)
        assert again.disclosure["statement"]["plan"] == third.disclosure["statement"]["plan"]


def test_a_summary_that_lists_no_entries_is_not_used(monkeypatch):
    """Earlier builds wrote such summaries. The releases are then read one by one, with the same result."""
    summarise = Releases.summarise

    def summarise_as_before(self, through):
        made = summarise(self, through)
        number = len(made.pop("entries"))
        return {**made, "number": number}

    with protect(sf.Budget(epsilon=100)) as people:
        with monkeypatch.context() as earlier:
            earlier.setattr(Releases, "summarise", summarise_as_before)
            for epsilon in (1, 2, 3):
                before = people.upgrade(SQL, epsilon=epsilon)
        after = people.upgrade(SQL, epsilon=3)
        assert after.cached
        assert (after.rows, after.intervals) == (before.rows, before.intervals)
        assert after.disclosure["statement"]["entries"] == before.disclosure["statement"]["entries"]
        assert people.upgrade(SQL, epsilon=4).cost.epsilon == 1


@pytest.mark.parametrize(
    "noises",
    [
        [LaplaceNoise(Fraction(200))] * (MOST_PARTS + 1),
        [LaplaceNoise(Fraction(3))] * 40,
        [LaplaceNoise(Fraction(2000, k)) for k in range(1, 31)],
        [LaplaceNoise(Fraction(100))] + [LaplaceNoise(Fraction(400))] * 30,
        [GaussianNoise(Fraction(10_000))] * 20,
        [LaplaceNoise(Fraction(100)), GaussianNoise(Fraction(10_000))] * 10,
    ],
)
@pytest.mark.parametrize("miss", [Fraction(1, 20), Fraction(1, 100)])
def test_the_margin_of_many_releases_holds_and_is_not_too_wide(noises, miss):
    made = None
    for noise in noises:
        reading = Reading((ReleasedVector("n", np.zeros(1), noise, 1.0),))
        made = RunningMeans.start(reading) if made is None else made.add(reading)
    (mean,) = made.means
    assert mean.noises is None
    margin = mean.noise().margin(miss)
    weights = [1 / (2 * float(n.scale) ** 2 if isinstance(n, LaplaceNoise) else float(n.variance)) for n in noises]
    whole = WeightedNoise(tuple((w / sum(weights), n) for w, n in zip(weights, noises, strict=True)))
    times = 1 << 17
    drawn = np.abs(imitate_noises((whole,), times)[0])
    slack = 5 * (float(miss) / times) ** 0.5  # one in FALSE_ALARM
    assert FALSE_ALARM == 1e-6
    assert (drawn > margin).mean() <= float(miss) + slack
    assert (drawn > margin / 1.05).mean() > float(miss) - slack, "a margin 5 % narrower would miss more often"


def test_processes_that_run_the_same_upgrade_pay_once_and_get_one_answer(tmp_path):
    ledger = str(tmp_path / "ledger.db")
    with protect(sf.Budget(epsilon=10), ledger=ledger) as people:
        people.ask(SQL, epsilon="0.5")
    text = UPGRADE.format(here=str(HERE), ledger=ledger, sql=SQL)
    running = [
        subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = [json.loads(process.communicate(timeout=120)[0]) for process in running]
    assert all(process.returncode == 0 for process in running)
    assert len({json.dumps(answer[:2]) for answer in printed}) == 1, "one answer, with one interval"
    with protect(sf.Budget(epsilon=10), ledger=ledger) as people:
        assert people.budget.spent.epsilon == 2
        assert people.ledger().verify().ok
        assert sum(entry.kind == "charge" for entry in people.ledger().entries()) == 2
    assert sum(Fraction(cost) for *_, cost in printed) <= Fraction("1.5")


def test_threads_that_run_the_same_upgrade_pay_once_and_get_one_answer():
    with protect(sf.Budget(epsilon=10)) as people:
        found, begin = [], threading.Barrier(8)

        def work():
            begin.wait()
            found.append(json.dumps(people.upgrade(SQL, epsilon=1).rows))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert len(set(found)) == 1
        assert people.budget.spent.epsilon == 1
