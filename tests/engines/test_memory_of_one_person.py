"""What one person makes the engine hold in memory, with real limits: an engine that fails would tell about that person.

Each case runs in a process of its own. DuckDB gets a memory limit and no directory to write to, so that a query that
needs more fails.
"""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, warnings
import duckdb, pandas as pd
import sfumato as sf
from sfumato.query import source_outline, per_unit

question, rows, limit, most_held, max_rows = sys.argv[1], *map(int, sys.argv[2:])
warnings.simplefilter("ignore")
connect = duckdb.connect
duckdb.connect = lambda path=":memory:", config=None, **more: connect(
    path, config={**(config or {}), "memory_limit": f"{limit}MB", "temp_directory": "", "threads": "2"}, **more
)
source_outline.MOST_HELD = per_unit.MOST_HELD = most_held
mine = {"p": [1] * rows, "w": [f"text of row {row}" for row in range(rows)], "x": [row % 7 for row in range(rows)]}
visits = pd.DataFrame({name: [*values, *values[:1]] for name, values in mine.items()} | {"p": [1] * rows + [2]})
columns = {"p": sf.Id(), "w": sf.Text(), "x": sf.Integer(0, 6)}
curator = sf.protect(
    visits, name="t", unit="p", columns=columns, budget=sf.Budget(epsilon=9, delta="1e-3"),
    max_rows_per_unit=rows // 8, max_groups_per_unit=2,
)
try:
    curator.ask(question, epsilon=1, delta="1e-6", max_rows=max_rows or None)
    print("answered")
except sf.errors.SfumatoError as refused:
    print(refused.code)
"""
JOIN = "FROM t a JOIN t b ON a.p = b.p"
HOLDING = [  # and megabytes that are enough
    (f"SELECT COUNT(DISTINCT a.w || b.w) AS n {JOIN}", 900),
    (f"SELECT a.w AS one, b.w AS two, COUNT(*) AS n {JOIN} GROUP BY a.w, b.w", 900),
    (f"SELECT COUNT(*) AS n FROM (SELECT a.p, a.w || b.w AS k, COUNT(*) AS m {JOIN} GROUP BY a.p, a.w || b.w) v", 300),
]
STREAMING = [
    f"SELECT COUNT(*) AS n {JOIN}",
    f"SELECT SUM(a.x * b.x) AS s {JOIN}",
    f"SELECT a.x AS k, COUNT(DISTINCT a.p) AS n {JOIN} GROUP BY a.x",
    f"SELECT COUNT(DISTINCT a.x + b.x) AS n {JOIN}",
    f"SELECT AVG(s) AS s FROM (SELECT a.p, SUM(b.x) AS s {JOIN} GROUP BY a.p) v",
]


def run(question: str, *, rows: int, megabytes: int, most_held: int = 1 << 20, max_rows: int = 0) -> str:
    arguments = [question, *map(str, (rows, megabytes, most_held, max_rows))]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize(("question", "megabytes"), HOLDING)
def test_what_is_held_of_a_join_is_bounded(question, megabytes):
    """At the limit a question is answered; beyond it, it is refused before any data is read."""
    assert run(question, rows=1024, megabytes=megabytes) == "answered"
    assert run(question, rows=1040, megabytes=megabytes) in ("invalid-parameter", "syntax")


@pytest.mark.slow
@pytest.mark.parametrize(("question", "megabytes"), HOLDING)
def test_without_the_limit_one_person_makes_the_engine_fail(question, megabytes):
    """Negative control."""
    assert run(question, rows=2600, megabytes=megabytes, most_held=1 << 30) == "engine-failed"


@pytest.mark.slow
@pytest.mark.parametrize("max_rows", [0, 3])
@pytest.mark.parametrize("question", STREAMING)
def test_other_questions_hold_no_pairs(question, max_rows):
    """Also where the rows of a join are bounded again, by a query that counts them."""
    assert run(question, rows=2048, megabytes=64, max_rows=max_rows) == "answered"
