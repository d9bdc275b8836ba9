"""How much work an answer takes: counted, not timed."""

import pytest
from protected import protect

import sfumato.answers.present as presenting

FOUR = "SELECT age, COUNT(*) AS n, SUM(income) AS s, AVG(income) AS a, STDDEV(income) AS d FROM people GROUP BY age"


@pytest.fixture
def cells_with_intervals(monkeypatch):
    """How many cells the intervals of each column were found for."""
    found = []

    def counted(post, shown, miss):
        found.append(shown.cells)
        return column_ends(post, shown, miss)

    column_ends = presenting.column_ends
    monkeypatch.setattr(presenting, "column_ends", counted)
    return found


@pytest.mark.parametrize(
    ("after", "rows"), [(" LIMIT 3", 3), (" ORDER BY n DESC LIMIT 1", 1), (" HAVING COUNT(*) > 1e9", 0), ("", 121)]
)
def test_intervals_are_found_only_for_the_rows_that_are_shown(cells_with_intervals, after, rows):
    answer = protect().ask(FOUR + after, epsilon=1)
    assert len(answer.rows) == len(answer.intervals) == rows
    assert cells_with_intervals == ([rows] * 4 if rows else [])


def test_intervals_stand_beside_their_own_rows():
    """Negative control: intervals in another order than the rows would not hold the released values."""
    answer = protect(budget=None).ask(FOUR + " ORDER BY n DESC LIMIT 40", epsilon=3)
    for row, ends in zip(answer.rows, answer.intervals, strict=True):
        for name in ("n", "s"):  # neither can be below zero, so no interval is
            assert ends[name][0] <= max(row[name], 0) <= ends[name][1]
