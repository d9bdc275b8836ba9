"""How much work an answer takes: counted, not timed."""

import copy
import pickle
from dataclasses import asdict, replace

import pytest
from protected import protect

import sfumato.answers.make_answer as presenting
from sfumato.answers.answer import DETAILS
from sfumato.answers.disclosure import verify

FOUR = "SELECT age, COUNT(*) AS n, SUM(income) AS s, AVG(income) AS a, STDDEV(income) AS d FROM people GROUP BY age"


@pytest.fixture
def cells_with_intervals(monkeypatch):
    """The number of cells for which intervals of each column were computed."""
    found = []

    def counted(post, shown, miss):
        found.append(shown.cells)
        return find_column_ends(post, shown, miss)

    find_column_ends = presenting.find_column_ends
    monkeypatch.setattr(presenting, "find_column_ends", counted)
    return found


@pytest.mark.parametrize(
    ("after", "rows"), [(" LIMIT 3", 3), (" ORDER BY n DESC LIMIT 1", 1), (" HAVING COUNT(*) > 1e9", 0), ("", 121)]
)
def test_intervals_are_found_only_for_the_rows_that_are_shown(cells_with_intervals, after, rows):
    answer = protect().ask(FOUR + after, epsilon=1)
    assert cells_with_intervals == []  # they are computed when they are read
    assert len(answer.rows) == len(answer.intervals) == rows
    assert cells_with_intervals == ([rows] * 4 if rows else [])


def test_intervals_stand_beside_their_own_rows():
    """Negative control: intervals in another order than the rows would not hold the released values."""
    answer = protect(budget=None).ask(FOUR + " ORDER BY n DESC LIMIT 40", epsilon=3)
    for row, ends in zip(answer.rows, answer.intervals, strict=True):
        for name in ("n", "s"):  # neither can be below zero, so no interval is
            assert ends[name][0] <= max(row[name], 0) <= ends[name][1]


def test_only_the_rows_are_computed_before_they_are_read(cells_with_intervals, monkeypatch):
    signed = []
    curator = protect()
    sign = type(curator.desk.signer).sign
    monkeypatch.setattr(type(curator.desk.signer), "sign", lambda *given: signed.append(1) or sign(*given))
    answer = curator.ask(FOUR, epsilon=1)
    assert answer.rows
    assert cells_with_intervals == signed == []
    assert answer.disclosure is answer.disclosure
    assert answer.intervals is answer.intervals
    assert (len(signed), len(cells_with_intervals)) == (1, 4)


def test_an_answer_says_the_same_whenever_it_is_read():
    """Details that are computed later depend neither on later events nor on changes by the reader to the rows."""
    early, late = protect(), protect()
    first = early.ask(FOUR, epsilon=1)
    for answer in (first, late.ask(FOUR, epsilon=1)):
        assert verify(answer.disclosure, answer.disclosure["public_key"])
    read = (first.intervals, first.warnings, first.explain(), first.disclosure, first.interval_note)
    again = early.ask(FOUR, epsilon=1)
    rows = [dict(row) for row in again.rows]
    again.rows.clear()
    early.ask(FOUR, epsilon=2)
    early.close()
    statement = dict(again.disclosure["statement"])
    assert statement == first.disclosure["statement"]
    assert (again.intervals, again.warnings, again.explain(), again.interval_note) == (*read[:3], read[4])
    assert rows == first.rows


def test_an_answer_can_be_pickled_with_everything_but_the_key():
    answer = protect().ask(FOUR + " LIMIT 2", epsilon=1)
    twin = pickle.loads(pickle.dumps(answer))
    assert twin == answer
    for name in DETAILS:
        assert getattr(twin, name) == getattr(answer, name)
    assert twin.explain() == answer.explain()
    assert twin._details.values.keys() == set(DETAILS)


def test_a_changed_answer_keeps_its_details():
    answer = protect().ask(FOUR + " LIMIT 2", epsilon=1)
    for source in (answer, pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
        changed = replace(source, cached=True)
        assert changed.cached
        for name in DETAILS:
            assert getattr(changed, name) == getattr(answer, name)
        assert changed.to_dict()["intervals"] == answer.to_dict()["intervals"]


def test_the_fields_of_an_answer_hold_its_details_but_not_the_key():
    curator = protect()
    answer = curator.ask(FOUR + " LIMIT 2", epsilon=1)
    for source in (answer, pickle.loads(pickle.dumps(answer))):
        parts = asdict(source)
        assert set(DETAILS) <= parts.keys()
        assert parts["intervals"] == answer.intervals
        assert parts["warnings"] == answer.warnings
        assert curator.desk.signer._secret not in repr(parts)
