"""A long load shows a progress bar on a terminal, and nothing elsewhere."""

import io
import threading

import duckdb
import pytest

from sfumato.ingest import connections, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Slow:
    """A connection that reports its progress."""

    def __init__(self, percents):
        self.settings, self.percents, self.asked = [], list(percents), threading.Event()

    def execute(self, setting):
        self.settings.append(setting)

    def query_progress(self):
        if len(self.percents) == 1:
            self.asked.set()
            return self.percents[0]
        return self.percents.pop(0)


def looked_at(monkeypatch, patience=0.0):
    """Called by the test itself: pytest puts its own stderr in place after fixtures."""
    found = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", found)
    monkeypatch.setattr(progress, "EVERY", 0.001)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    return found


def test_a_long_load_shows_how_far_it_is(monkeypatch):
    terminal = looked_at(monkeypatch)
    slow = Slow([-1, 0.0, 10.0, 42.0])
    with progress.show_progress(slow, "Loading visits") as doing:
        doing("rows")
        assert slow.asked.wait(20)
        threading.Event().wait(0.3)  # the bar is drawn ten times a second
    assert "Loading visits: rows" in terminal.getvalue()
    assert "42%" in terminal.getvalue()
    assert slow.settings[0] == "SET enable_progress_bar_print = false"  # DuckDB's own bar stays away
    assert slow.settings[-1] == "SET enable_progress_bar = false"


def test_a_source_of_unknown_size_still_shows_that_it_is_read(monkeypatch):
    terminal = looked_at(monkeypatch)
    slow = Slow([0.0])
    with progress.show_progress(slow, "Loading visits"):
        assert slow.asked.wait(20)
        threading.Event().wait(0.3)
    assert "Loading visits" in terminal.getvalue()
    assert "%" not in terminal.getvalue()


def test_a_short_load_shows_nothing(monkeypatch):
    terminal = looked_at(monkeypatch, progress.PATIENCE)
    with progress.show_progress(Slow([50.0]), "Loading visits"):
        pass
    assert terminal.getvalue() == ""
    assert progress.PATIENCE == 2.0


@pytest.mark.parametrize("stderr", [None, "closed"])
def test_a_program_without_a_console_loads(monkeypatch, stderr):
    closed = Terminal()
    closed.close()
    monkeypatch.setattr(progress.sys, "stderr", closed if stderr else None)
    with progress.show_progress(Slow([50.0]), "Loading visits") as doing:
        doing("rows")


@pytest.mark.parametrize("seen", [True, False])
def test_nothing_is_shown_where_nobody_looks_or_json_is_wanted(monkeypatch, seen):
    stream = Terminal() if seen else io.StringIO()
    monkeypatch.setattr(progress.sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    slow = Slow([50.0])
    with progress.show_progress(slow, "Loading visits", quiet=seen) as doing:
        doing("rows")
        threading.Event().wait(0.1)
    assert stream.getvalue() == ""
    assert slow.settings == []


class NotebookWithoutWidgets:
    """DuckDB in Jupyter without ipywidgets: its progress bar is off, and it refuses every change of the setting."""

    shown = False

    def execute(self, sql):
        if sql.startswith("SET"):
            raise duckdb.InvalidInputException("Could not change the progress bar setting")
        return self

    def fetchall(self):
        return [(self.shown,)]


def test_a_notebook_without_widgets_can_load(monkeypatch):
    monkeypatch.setattr(connections.duckdb, "connect", lambda path, config: NotebookWithoutWidgets())
    assert isinstance(connections.connect_to_pin(), NotebookWithoutWidgets)
    monkeypatch.setattr(NotebookWithoutWidgets, "shown", True)  # elsewhere the bar is switched off
    with pytest.raises(duckdb.InvalidInputException):
        connections.connect_to_pin()
