"""Waiting for other processes that write: soon after they end, and never in place of the lock itself."""

import sqlite3
import threading
import time

import pytest

from sfumato.ledger import write_lock
from sfumato.ledger.write_lock import wait_for_writers


@pytest.fixture
def two(tmp_path):
    found = [
        sqlite3.connect(tmp_path / "l.db", isolation_level=None, check_same_thread=False, timeout=30) for _ in range(2)
    ]
    found[0].execute("PRAGMA journal_mode = WAL")
    found[0].execute("CREATE TABLE t (n)")
    yield found
    for one in found:
        one.close()


def read_timeout(connection):
    return connection.execute("PRAGMA busy_timeout").fetchone()[0]


def test_it_waits_until_the_other_has_written_and_takes_no_lock(two):
    ours, other = two
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO t VALUES (1)")
    ended = []
    threading.Timer(0.2, lambda: (ended.append(time.monotonic()), other.execute("COMMIT"))).start()
    wait_for_writers(ours, 30)
    assert ended, "not before the other has ended"
    assert not ours.in_transaction
    assert read_timeout(ours) == 30_000, "other statements wait as usual"
    assert ours.execute("SELECT n FROM t").fetchall() == [(1,)]
    other.execute("BEGIN IMMEDIATE")  # nobody has the lock
    other.execute("ROLLBACK")


def test_it_gives_up_and_leaves_the_refusal_to_the_transaction(two, monkeypatch):
    monkeypatch.setattr(write_lock, "MOST_SECONDS", 0.05)
    ours, other = two
    other.execute("BEGIN IMMEDIATE")
    wait_for_writers(ours, 30)
    assert not ours.in_transaction
    assert read_timeout(ours) == 30_000
    other.execute("ROLLBACK")


def test_a_failure_that_is_no_lock_is_left_to_the_transaction(two, monkeypatch):
    ours, _ = two
    ours.execute("BEGIN IMMEDIATE")  # "cannot start a transaction within a transaction"
    wait_for_writers(ours, 30)
    assert ours.in_transaction
    ours.execute("ROLLBACK")


def test_without_steps_of_its_own_sqlite_would_sleep_far_longer(two, monkeypatch):
    """The negative control: what the tests above see is the waiting itself, and not SQLite's."""
    ours, other = two
    slept = []
    monkeypatch.setattr(write_lock.time, "sleep", lambda seconds: (slept.append(seconds), other.execute("ROLLBACK")))
    other.execute("BEGIN IMMEDIATE")
    wait_for_writers(ours, 30)
    assert slept == [write_lock.STEP_SECONDS], "it looked again after one step"
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(write_lock, "MOST_SECONDS", 0.0)  # it looks at nothing, as if it were not called
    wait_for_writers(ours, 30)
    ours.execute("PRAGMA busy_timeout = 0")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        ours.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
