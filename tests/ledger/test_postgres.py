"""What is special about a ledger on PostgreSQL: its address, its schema, durable commits, and a server that dies.

Tests of every other kind run on both databases (the fixtures `place` and `memory_or_server`).
"""

import json
import os
import sys
import threading
import time

import pytest
import sqlalchemy as sa
from ledger_questions import POPULATION, ask, make_answer, make_plain_answer, make_question
from postgres_server import run_server
from raw_ledger import open_raw
from test_processes import SHARE, answers_by_charge, ask_until_killed, finish, start

import sfumato as sf
from sfumato.errors import LedgerError, MissingExtra
from sfumato.kernel.losses import PureDP
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.server_address import read_server_address

LIMIT = Limit(PureDP(10))
CATALOG = """
[dataset]
name = "clinic"
ledger = "{ledger}"
[budget]
epsilon = "3"
[tables.people]
source = "people.csv"
unit = "row"
columns.age = {{ type = "integer", lower = 0, upper = 120 }}
"""


@pytest.fixture
def place(postgres_server):
    return postgres_server.make_address()


def test_one_database_holds_several_ledgers(postgres_server):
    places = [postgres_server.make_address() for _ in range(3)]
    for number, place in enumerate(places, 1):
        with Ledger.create(place, f"crowd {number}", LIMIT) as ledger:
            ledger.reserve("ann", make_question(PureDP(number), "x", population=f"crowd {number}"))
    for number, place in enumerate(places, 1):
        identity = Ledger.read_identity(place)
        assert identity.population == f"crowd {number}"
        with Ledger.open(place, identity.ledger_id, identity.population, LIMIT) as ledger:
            assert ledger.totals().spent == PureDP(number)
            assert ledger.verify().ok
    schemas = {read_server_address(place).schema for place in places}
    with open_raw(places[0]) as connection:
        found = connection.exec_driver_sql("SELECT schemaname FROM pg_tables WHERE tablename = 'sfumato_head'")
        assert schemas <= {name for (name,) in found}


def test_without_a_schema_the_ledger_is_where_the_search_path_says(postgres_server):
    inside = postgres_server.make_address()
    schema = read_server_address(inside).schema
    by_path = f"{postgres_server.url}&options=-csearch_path={schema}"
    with Ledger.create(inside, POPULATION, LIMIT) as ledger:
        pass
    with Ledger.open(by_path, ledger.ledger_id, POPULATION, LIMIT) as same:
        assert same.head() == (1, same.entries()[0].hash)


def test_processes_that_begin_a_ledger_at_once_make_one(place):
    made, refused = [], []

    def begin():
        try:
            made.append(Ledger.create(place, POPULATION, LIMIT))
        except LedgerError as error:
            refused.append(error.code)

    threads = [threading.Thread(target=begin) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), refused) == (1, ["ledger-exists"] * 5)
    made[0].close()


@pytest.mark.parametrize("schema", ["a-b", "1a", "a%20b", "a%22b", "x" * 64])
def test_a_schema_is_a_plain_name(postgres_server, schema):
    with pytest.raises(LedgerError, match="not a plain name") as refused:
        Ledger.create(f"{postgres_server.url}&schema={schema}", POPULATION, LIMIT)
    assert refused.value.code == "ledger-unreachable"


@pytest.mark.parametrize("driver", ["postgres", "postgresql", "postgresql+psycopg", "postgresql+psycopg2"])
def test_a_driver_need_not_be_named(place, driver):
    Ledger.create(place.replace("postgresql", driver, 1), POPULATION, LIMIT).close()
    assert Ledger.read_identity(place).population == POPULATION


def test_a_missing_driver_is_named(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sfumato\[postgres\]'"):
        Ledger.create(place, POPULATION, LIMIT)


def test_the_same_place_has_one_fingerprint():
    same = ["postgresql://a:b@host/db?schema=x", "postgres://host:5432/db?schema=x&sslmode=require"]
    other = ["postgresql://host/db", "postgresql://host/other?schema=x", "postgresql://host:5433/db?schema=x"]
    assert len({read_server_address(place).fingerprint for place in same}) == 1
    assert len({read_server_address(place).fingerprint for place in [*same, *other]}) == 4


@pytest.mark.parametrize(("asked", "kept"), [("off", "on"), ("local", "local"), ("on", "on"), ("remote_apply", None)])
def test_commits_are_durable_whatever_the_role_prefers(place, asked, kept):
    """A stricter setting stays. `off` would answer before the charge is on the disk."""
    with_option = f"{place}&options=-csynchronous_commit={asked}"
    with open_raw(with_option) as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() == (kept or asked)


def test_a_server_that_does_not_write_to_its_disk_is_refused():
    with run_server() as server:
        engine = sa.create_engine(read_server_address(server.url).url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql("ALTER SYSTEM SET fsync = off")
            connection.exec_driver_sql("SELECT pg_reload_conf()")
            for _ in range(300):
                time.sleep(0.1)
                if connection.exec_driver_sql("SHOW fsync").scalar_one() == "off":
                    break
        engine.dispose()
        with pytest.raises(LedgerError, match="fsync is off") as refused:
            Ledger.create(server.make_address(), POPULATION, LIMIT)
        assert refused.value.code == "ledger-not-durable"


def test_a_schema_that_was_dropped_is_no_fresh_start(place):
    with Ledger.create(place, POPULATION, LIMIT) as ledger:
        ask(ledger, "ann", make_question(SHARE))
    with open_raw(place) as connection:
        connection.exec_driver_sql(f"DROP SCHEMA {read_server_address(place).schema} CASCADE")
    with pytest.raises(LedgerError) as refused:
        Ledger.open(place, ledger.ledger_id, POPULATION, LIMIT)
    assert refused.value.code == "ledger-missing"


def test_a_database_put_back_to_an_older_state_is_noticed(place):
    """As after the restore of an older dump: the entries and the totals agree, and the mark of this user does not."""
    with Ledger.create(place, POPULATION, LIMIT) as ledger:
        for topic in "abc":
            ask(ledger, "ann", make_question(SHARE, topic))
    with open_raw(place) as connection:
        last = "SELECT number, hash, budget, spent FROM sfumato_entries WHERE number = 3"
        connection.exec_driver_sql("DELETE FROM sfumato_entries WHERE number > 3")
        connection.exec_driver_sql("DELETE FROM sfumato_releases WHERE number > 3")
        connection.exec_driver_sql(f"UPDATE sfumato_head SET (number, hash, budget, spent) = ({last})")
    with pytest.raises(LedgerError, match="entry 4 is missing") as refused:
        Ledger.open(place, ledger.ledger_id, POPULATION, LIMIT)
    assert refused.value.code == "ledger-older"


def test_a_server_killed_again_and_again_loses_no_answer(tmp_path):
    """Each round kills every process of the server while two clients ask. What was shown is in the ledger."""
    log, limit, rounds = str(tmp_path / "log"), Limit(PureDP(100_000)), 3
    with run_server() as server:
        place = server.make_address()
        with Ledger.create(place, POPULATION, limit) as ledger:
            ledger_id = ledger.ledger_id
        for round_ in range(rounds):
            names = [f"{round_} {number}" for number in range(2)]
            pair = [start(ask_until_refused, place, ledger_id, limit, log, name) for name in names]
            wait_for_lines(log, 10 * (round_ + 1))
            server.kill()
            finish(pair)  # each was told that its ledger cannot be reached
            server.start()
        with Ledger.open(place, ledger_id, POPULATION, limit) as ledger:
            assert ledger.verify().ok
            stored = answers_by_charge(ledger)
            charges = [entry.number for entry in ledger.entries() if entry.kind == "charge"]
            with open(log) as lines:
                shown = dict(map(int, line.split()) for line in lines)
            assert len(shown) >= 10 * rounds
            assert shown.items() <= stored.items(), "an answer left without being stored"
            assert ledger.totals().spent == PureDP(SHARE.epsilon * len(charges))


def ask_until_refused(place, ledger_id, limit, log, name):
    """Ask until the server dies. Anything but a LedgerError fails the process."""
    try:
        ask_until_killed(place, ledger_id, limit, log, name)
    except LedgerError as error:
        assert error.code in ("ledger-unreachable", "charge-closed")


def wait_for_lines(path, wanted):
    for _ in range(6000):
        if os.path.exists(path):
            with open(path) as lines:
                if len(lines.readlines()) >= wanted:
                    return
        time.sleep(0.01)
    pytest.fail("the clients did not answer")


def test_an_open_ledger_goes_on_after_the_server_came_back(tmp_path):
    with run_server() as server:
        place = server.make_address()
        with Ledger.create(place, POPULATION, LIMIT) as ledger:
            ask(ledger, "ann", make_question(SHARE, "before"))
            reservation = ledger.reserve("ann", make_question(SHARE, "between"))
            server.kill()
            with pytest.raises(LedgerError, match="cannot be read or written"):
                ledger.store(reservation, make_plain_answer(reservation))
            with pytest.raises(LedgerError, match="cannot be read or written"):
                ledger.reserve("ann", make_question(SHARE, "while it is away"))
            server.start()
            for _ in range(3):  # a connection that died is noticed when it is used
                try:
                    again = ledger.reserve("ann", make_question(SHARE, "between"))
                    break
                except LedgerError:
                    continue
            assert again.entry_number == reservation.entry_number, "resumed, not charged again"
            ledger.store(again, make_answer(again))
            assert ledger.totals().spent == PureDP("0.2")
            assert ledger.verify().ok


def test_a_frame_can_have_its_ledger_on_a_server(place, tmp_path, monkeypatch):
    monkeypatch.setenv("SFUMATO_HOME", str(tmp_path / "home"))
    (tmp_path / "people.csv").write_text("age\n30\n40\n")
    columns, question = {"age": sf.Integer(0, 99)}, "SELECT COUNT(*) AS n FROM people"

    def protect():
        budget = sf.Budget(epsilon=1)
        return sf.protect(
            tmp_path / "people.csv", name="people", unit=sf.ROW, columns=columns, budget=budget, ledger=place
        )

    with protect() as people:
        answer = people.ask(question, epsilon="0.6")
    with protect() as people:
        assert people.ask(question, epsilon="0.6").rows == answer.rows
        with pytest.raises(sf.errors.BudgetExceeded):
            people.ask("SELECT SUM(age) AS s FROM people", epsilon="0.6")
    sf.set_budget(place, sf.Budget(epsilon=2))
    with pytest.raises(LedgerError) as refused:
        protect()
    assert refused.value.code == "ledger-limit"
    with open_raw(place) as connection:
        connection.exec_driver_sql(f"DROP SCHEMA {read_server_address(place).schema} CASCADE")
    with pytest.raises(LedgerError, match="There is no ledger"):
        protect()


def test_a_folder_and_the_command_line_use_a_ledger_on_a_server(place, tmp_path, capsys, monkeypatch):
    from sfumato.cli.main import run

    folder = tmp_path / "clinic"
    folder.mkdir()
    (folder / "people.csv").write_text("age\n30\n40\n")
    (folder / "catalog.toml").write_text(CATALOG.format(ledger=place))

    def sfumato(*words):
        monkeypatch.setattr(sys, "argv", ["sfumato", "-C", str(folder), *words])
        with pytest.raises(SystemExit) as ended:
            run()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    code, out, _ = sfumato("ask", "SELECT COUNT(*) AS n FROM people", "--epsilon", "1", "--json")
    assert (code, json.loads(out)["entry"]) == (0, 2)
    assert sfumato("ledger", "verify")[0] == 0
    assert Ledger.read_identity(place).population == "clinic"
    code, _, error = sfumato("ledger", "backup", str(tmp_path / "copy.db"))
    assert code != 0
    assert "pg_dump" in error
    assert not (folder / "ledger.db").exists()


def test_no_message_shows_a_password():
    secret = "hunter2secret"
    with pytest.raises(LedgerError) as refused:
        Ledger.create(f"postgresql://ann:{secret}@127.0.0.1:1/books?schema=x", POPULATION, LIMIT)
    assert secret not in str(refused.value)
    assert secret not in repr(refused.value)
