"""Turns of processes that write: soon after each other, and never in place of the lock itself."""

import os
import subprocess
import sys
import threading
import time

import pytest

from sfumato.kernel.losses import PureDP
from sfumato.ledger import write_lock
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.write_lock import SUFFIX, take_turns

HOLD = """
import sys, time
from sfumato.ledger.write_lock import take_turns
with take_turns(sys.argv[1]):
    print("has it", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "ledger.db")


def test_one_begins_soon_after_the_other_has_ended(path):
    ended, entered = threading.Event(), threading.Event()

    def hold():
        with take_turns(path):
            entered.set()
            time.sleep(0.2)
            ended.set()

    threading.Thread(target=hold).start()
    entered.wait(10)
    with take_turns(path):
        assert ended.is_set(), "not before the other has ended"
    assert os.stat(path + SUFFIX).st_mode & 0o077 == 0
    assert os.stat(path + SUFFIX).st_size == 0


def test_it_looks_again_after_short_steps(path, monkeypatch):
    """The negative control of the test above: while the other has the turn, only these steps pass."""
    slept = []
    other = take_turns(path)
    other.__enter__()

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 3:
            other.__exit__(None, None, None)

    monkeypatch.setattr(write_lock.time, "sleep", sleep)
    with take_turns(path):
        assert slept == pytest.approx([0.0003, 0.00045, 0.000675])


def test_a_process_that_is_killed_frees_its_turn(path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "has it\n"
        other.kill()
        other.wait(30)
        began = time.monotonic()
        with take_turns(path):
            assert time.monotonic() - began < write_lock.MOST_SECONDS / 2


def test_who_waits_too_long_or_cannot_make_the_file_goes_on(path, tmp_path, monkeypatch):
    monkeypatch.setattr(write_lock, "MOST_SECONDS", 0.05)
    with take_turns(path), take_turns(path):
        pass
    with take_turns(str(tmp_path / "missing" / "ledger.db")):
        pass


def test_a_ledger_takes_turns_only_after_another_process_has_written(path, monkeypatch):
    ours = Ledger.create(path, "people", Limit(PureDP(1)))
    theirs = Ledger.open(path, ours.ledger_id, "people")
    ours.set_limit(Limit(PureDP(2)))
    assert not os.path.exists(path + SUFFIX)
    theirs.set_limit(Limit(PureDP(3)))  # it sees that the other has written
    theirs.set_limit(Limit(PureDP(4)))
    assert os.path.exists(path + SUFFIX)
    monkeypatch.setattr(write_lock, "MOST_SECONDS", 0.05)
    with take_turns(path):  # somebody who keeps the turn delays a charge, and does not prevent it
        theirs.set_limit(Limit(PureDP(5)))
    assert ours.totals().limit == PureDP(5)
    assert ours.verify().ok
    ours.close()
    theirs.close()
