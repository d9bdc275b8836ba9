"""Killed workers, connections and servers of the ledger lose no charge, and no retried request is charged twice."""

import random
import sqlite3
import threading
import time
from hashlib import sha256

import psycopg
import pytest
from killed_workers import EPSILON, Killing, check_charges
from postgres_server import run_server
from served_clinic import make_clinic

from sfumato.answering.ask import ask
from sfumato.opening import open_folder
from sfumato.service.accounts import Accounts
from sfumato.service.service_settings import ServiceSettings


def ask_under_kills(clinic, kill, kills, clients=3):
    """Let clients ask while `kill` is called again and again; then compare what they saw with the ledger."""
    settings = ServiceSettings((str(clinic.folder),), str(clinic.accounts), requests_per_second=0)
    with Killing(settings) as service:
        asking = [
            threading.Thread(target=service.keep_asking, args=(name, clinic.tokens[name], seed))
            for seed, name in enumerate(["ann", "bob", "ann"][:clients])
        ]
        for thread in asking:
            thread.start()
        for _ in range(kills):
            service.wait_for_progress()
            time.sleep(random.uniform(0, 0.03))
            kill(service)
        service.wait_for_progress()
        service.stop()
        for thread in asking:
            thread.join(120)
    assert service.faults == []
    answered = check_charges(settings, service.outcomes)
    return service, answered


def test_killed_workers_lose_no_charge_and_charge_no_retry_twice(tmp_path):
    clinic = make_clinic(tmp_path / "clinic", "3")
    service, answered = ask_under_kills(clinic, Killing.kill, 15)
    assert answered > 5
    assert service.resent > 0, "no request was interrupted: the test shows nothing"
    assert service.dropped > 0, "no client went away: the test shows nothing"


def test_a_ledger_on_postgresql_under_kills_of_workers_and_connections(tmp_path):
    with run_server() as server:
        address = server.make_address()
        clinic = make_clinic(tmp_path / "clinic", "3", ledger=address)
        plain = server.url

        def kill(service):
            if random.random() < 0.5:
                service.kill()
                return
            with psycopg.connect(plain, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                    "AND backend_type = 'client backend'"
                )

        _, answered = ask_under_kills(clinic, kill, 10)
        assert answered > 5


def test_the_check_notices_a_second_charge(tmp_path):
    """The negative control: if retries forget what was charged before, the check fails."""
    clinic = make_clinic(tmp_path / "clinic", "3")
    settings = ServiceSettings((str(clinic.folder),), str(clinic.accounts))
    mark = sha256(b"ann\nkey").hexdigest()[:32]
    with open_folder(clinic.folder) as curator, curator.at_desk() as desk:
        for index in (1, 2):
            sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {index}"
            ask(desk, sql, EPSILON, analyst="ann", request=mark)
    with pytest.raises(AssertionError, match="charged 2 times"):
        check_charges(settings, {("ann", "key"): "answered"})
    with pytest.raises(AssertionError, match="belongs to no request"):
        check_charges(settings, {})


@pytest.mark.slow
def test_a_killed_server_of_the_ledger_loses_no_charge(tmp_path):
    with run_server() as server:
        clinic = make_clinic(tmp_path / "clinic", "3", ledger=server.make_address())

        def kill(service):
            server.kill()
            time.sleep(0.2)
            server.start()

        ask_under_kills(clinic, kill, 10)


def test_accounts_of_an_earlier_version_get_the_new_columns(tmp_path):
    clinic = make_clinic(tmp_path / "clinic")
    with sqlite3.connect(clinic.accounts) as connection:
        connection.execute("ALTER TABLE service_grants DROP COLUMN per_query_delta")
        connection.execute("ALTER TABLE service_requests DROP COLUMN answer")
    connection.close()
    accounts = Accounts(clinic.accounts)
    assert [grant.per_query_delta for grant in accounts.list_grants()] == ["", ""]
    accounts.close()
