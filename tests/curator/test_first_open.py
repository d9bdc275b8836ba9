"""A folder's first opening: killed at every step, by many processes at once, and with a ledger that others share."""

import multiprocessing
import os
import shutil
import signal
import sqlite3
import sys

import pytest

import sfumato as sf
from sfumato.catalog.catalog_file import load_catalog
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["sfumato.opening", "sfumato.curator", "test_first_open"])
COUNT = "SELECT COUNT(*) AS n FROM people"
CATALOG = """
[dataset]
name = "clinic"
population = "patients"
{more}
[budget]
epsilon = "2"

[tables.people]
source = "people.csv"
unit_column = "person_id"
columns.age = {{ type = "integer", lower = 0, upper = 120 }}
"""
STEPS = ("open", "os.", "sqlite3.connect")  # what changes files, as Python's own auditing names it


def folder_at(place, more="", *, pinned=True):
    place.mkdir(parents=True)
    (place / "people.csv").write_text("person_id,age\n" + "".join(f"p{i},{i % 100}\n" for i in range(200)))
    (place / "catalog.toml").write_text(CATALOG.format(more=more))
    if pinned:
        DuckDBEngine.prepare(place / ".sfumato" / "snapshot.duckdb", load_catalog(place).tables, place)
    return place


def open_and_ask(folder, log=None):
    with sf.open(folder) as clinic:
        answer = clinic.ask(COUNT, epsilon="0.5")
        assert clinic.ledger().verify().ok
        assert float(clinic.budget.spent.epsilon) == 0.5
    if log:
        with open(log, "a") as file:
            file.write(f"{answer.rows[0]['n']} {clinic.ledger().ledger_id}\n")


def open_until(folder, step):
    """Open the folder, and be killed before step number `step`: of Python's own steps, and of SQLite's statements."""
    left = [step]

    def count(*_):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event, arguments):
        if event.startswith(STEPS) and not (event == "open" and arguments[1] in ("r", "rb")):
            count()

    def connect(*arguments, **options):
        connection = connect_untraced(*arguments, **options)
        connection.set_trace_callback(count)
        return connection

    connect_untraced, sqlite3.connect = sqlite3.connect, connect
    sys.addaudithook(watch)
    sf.open(folder).close()
    os._exit(0)


def run(work, *arguments):
    process = PROCESSES.Process(target=work, args=arguments)
    process.start()
    process.join(120)
    return process.exitcode


def killed_at(steps, tmp_path, more=""):
    """Kill the first opening at each of these steps, until it is past the end. Then it must open. Returns kills."""
    fresh = folder_at(tmp_path / "fresh", more)
    killed = 0
    for step in steps:
        folder = tmp_path / f"at {step}"
        shutil.copytree(fresh, folder)
        code = run(open_until, folder, step)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1
        assert run(open_and_ask, folder) == 0, f"stuck after a kill at step {step}"
        shutil.rmtree(folder)
    return killed


def test_a_first_opening_that_is_killed_is_taken_up_again(tmp_path):
    assert killed_at(range(1, 1000, 7), tmp_path) > 5


@pytest.mark.slow
def test_a_first_opening_may_be_killed_at_every_step(tmp_path):
    assert killed_at(range(1, 1000), tmp_path) > 40


def all_at_once(folder, processes, tmp_path):
    log = tmp_path / "log"
    started = [PROCESSES.Process(target=open_and_ask, args=(folder, str(log))) for _ in range(processes)]
    for process in started:
        process.start()
    for process in started:
        process.join(300)
    assert [process.exitcode for process in started] == [0] * processes
    assert len(set(log.read_text().splitlines())) == 1, "one ledger, and one answer for everybody"


def test_eight_processes_open_a_fresh_folder(tmp_path):
    all_at_once(folder_at(tmp_path / "clinic", pinned=False), 8, tmp_path)


@pytest.mark.slow
def test_32_processes_open_a_fresh_folder(tmp_path):
    all_at_once(folder_at(tmp_path / "clinic", pinned=False), 32, tmp_path)


def test_datasets_of_one_population_share_a_ledger(tmp_path):
    first = folder_at(tmp_path / "first", 'ledger = "../shared.db"')
    second = folder_at(tmp_path / "second", 'ledger = "../shared.db"')
    with sf.open(first) as one, sf.open(second) as two:
        assert one.ledger().ledger_id == two.ledger().ledger_id
        one.ask(COUNT, epsilon=1)
        two.ask(COUNT + " WHERE age > 50", epsilon=1)
        with pytest.raises(sf.errors.BudgetExceeded):
            two.ask(COUNT + " WHERE age > 60", epsilon=1)
    assert load_catalog(first).ledger_id == load_catalog(second).ledger_id
    assert not (first / "ledger.db").exists()


def test_another_population_is_not_joined(tmp_path):
    first = folder_at(tmp_path / "first", 'ledger = "../shared.db"')
    sf.open(first).close()
    second = folder_at(tmp_path / "second", 'ledger = "../shared.db"')
    catalog = second / "catalog.toml"
    catalog.write_text(catalog.read_text().replace('"patients"', '"others"'))
    with pytest.raises(sf.errors.LedgerError, match="about another population"):
        sf.open(second)


def test_whoever_opens_last_does_not_set_the_limit(tmp_path):
    first = folder_at(tmp_path / "first", 'ledger = "../shared.db"')
    second = folder_at(tmp_path / "second", 'ledger = "../shared.db"')
    catalog = second / "catalog.toml"
    catalog.write_text(catalog.read_text().replace('epsilon = "2"', 'epsilon = "200"'))
    with sf.open(first) as one:
        with pytest.raises(sf.errors.LedgerError, match="sfumato budget set"):
            sf.open(second)
        assert float(one.budget.limit.epsilon) == 2
        sf.set_budget(second, sf.Budget(epsilon=2))
        sf.open(second).close()
        sf.set_budget(first, sf.Budget(epsilon=3))
        assert float(one.budget.limit.epsilon) == 3
        assert load_catalog(first).budget == sf.Budget(epsilon=3)


def test_the_limit_of_a_protected_frame_is_changed_by_its_owner_only(tmp_path):
    import pandas as pd

    def protect(epsilon):
        return sf.protect(
            pd.DataFrame({"age": [1, 2, 3]}), name="t", unit=sf.ROW, columns={"age": sf.Integer(0, 120)},
            budget=sf.Budget(epsilon=epsilon), ledger=tmp_path / "ledger.db",
        )  # fmt: skip

    protect(1).close()
    with pytest.raises(sf.errors.LedgerError, match=r"sf\.set_budget"):
        protect(100)
    sf.set_budget(tmp_path / "ledger.db", sf.Budget(epsilon=100))
    with protect(100) as frame:
        assert [entry.kind for entry in frame.ledger().entries()] == ["open", "limit"]


def test_a_reader_who_kept_a_head_tells_an_older_ledger(tmp_path):
    folder = folder_at(tmp_path / "clinic")
    with sf.open(folder) as clinic:
        head = clinic.ask(COUNT, epsilon="0.5").disclosure["statement"]["ledger_head"]
    with sf.open(folder, expected_head=head) as clinic:
        assert clinic.ask(COUNT, epsilon="0.5").cached
    with pytest.raises(sf.errors.LedgerError, match="No entry of this ledger has the expected hash"):
        sf.open(folder, expected_head="0" * 64)
