"""How much work an answer takes: counted, not timed."""

import pytest
from protected import protect

import sfumato.present as presenting

FOUR = "SELECT age, COUNT(*) AS n, SUM(income) AS s, AVG(income) AS a, STDDEV(income) AS d FROM people GROUP BY age"


@pytest.fixture
def simulated_cells(monkeypatch):
    """How many cells each simulation of intervals was of."""
    found = []

    def counted(reading, *rest):
        found.append(max(each.values.size for each in reading.measured))
        return simulated(reading, *rest)

    simulated = presenting.simulated
    monkeypatch.setattr(presenting, "simulated", counted)
    return found


@pytest.mark.parametrize(
    ("after", "rows"), [(" LIMIT 3", 3), (" ORDER BY n DESC LIMIT 1", 1), (" HAVING COUNT(*) > 1e9", 0), ("", 121)]
)
def test_intervals_are_simulated_only_for_the_rows_that_are_shown(simulated_cells, after, rows):
    answer = protect().ask(FOUR + after, epsilon=1)
    assert len(answer.rows) == len(answer.intervals) == rows
    assert simulated_cells == ([rows] if rows else [])


def test_intervals_stand_beside_their_own_rows():
    """Negative control: intervals in another order than the rows would not hold the released values."""
    answer = protect(budget=None).ask(FOUR + " ORDER BY n DESC LIMIT 40", epsilon=3)
    for row, ends in zip(answer.rows, answer.intervals, strict=True):
        assert ends["n"][0] <= row["n"] <= ends["n"][1]
        assert ends["s"][0] <= row["s"] <= ends["s"][1]
