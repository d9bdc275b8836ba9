"""Speed and memory of whole answers, beside the plain DuckDB query, as ratios of one run. Run by `make bench`."""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import sfumato as sf

ROWS = 10_000_000
PEOPLE = 1_000_000
PLAIN = "SELECT k, COUNT(*), SUM(x), AVG(x) FROM '{path}' GROUP BY k"
ROWS_OF_PEOPLE = (
    "COPY (SELECT 'k' || lpad((range % 100)::VARCHAR, 2, '0') AS k, random() AS x, (range % {people})::INT AS p "
    "FROM range({rows})) TO '{path}'"
)
TINY = "SELECT COUNT(*) AS n, AVG(age) AS a FROM t WHERE age > {}"
SAME = "SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM t GROUP BY k"
COLUMNS = {"k": sf.Category([f"k{index:02}" for index in range(100)]), "x": sf.Real(0, 1, nullable=False)}


def seconds(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


class Report:
    """The table, and whether every limit was met."""

    def __init__(self) -> None:
        self.table = Table("What", "Sfumato", "Plain", "Ratio", "Limit", "", title="Whole answers")
        self.missed = 0

    def line(self, what: str, shown: tuple[str, str], ratio: float, limit: float) -> None:
        met = ratio <= limit
        self.missed += not met
        self.table.add_row(what, *shown, f"{ratio:,.3g}", f"≤ {limit:g}", "met" if met else "MISSED")


def ms(value: float) -> str:
    return f"{1e3 * value:,.1f} ms"


def in_turns(ours: Callable[[], object], plain: Callable[[], object], rounds: int = 7) -> tuple[float, float]:
    """Median times of two pieces of work, taken in turns so that a busy machine troubles both alike."""
    ours()
    plain()
    pairs = [(seconds(ours, 1), seconds(plain, 1)) for _ in range(rounds)]
    return float(np.median([pair[0] for pair in pairs])), float(np.median([pair[1] for pair in pairs]))


def ten_million(report: Report, folder: Path) -> None:
    path = folder / "rows.parquet"
    source = duckdb.connect()
    source.execute(ROWS_OF_PEOPLE.format(path=path, people=PEOPLE, rows=ROWS))
    for unit, limit in ((sf.ROW, 1.3), ("p", 1.5)):
        ratio_of_unit(report, source, path, unit, limit)
    source.close()


def ratio_of_unit(report: Report, source: duckdb.DuckDBPyConnection, path: Path, unit: object, limit: float) -> None:
    person = unit == "p"
    columns = COLUMNS | ({"p": sf.Id()} if person else {})
    start = time.perf_counter()
    most = 10 if person else 1
    curator = sf.protect(
        path, name="t", unit=unit, columns=columns, budget=sf.Budget(epsilon=1000), max_rows_per_unit=most
    )
    pinned = time.perf_counter() - start
    epsilon = iter(range(1, 100))
    with curator:
        asked, plain = in_turns(
            lambda: curator.ask(SAME, epsilon=next(epsilon)),  # a better answer each time, so that none is stored
            lambda: source.execute(PLAIN.format(path=path)).fetchall(),
        )
    who = "person unit" if person else "row unit"
    report.line(f"COUNT, SUM, AVG by 100 keys of 10 M rows, {who}", (ms(asked), ms(plain)), asked / plain, limit)
    if person:
        report.line("Pinning 10 M rows of 1 M people", (ms(pinned), ms(plain)), pinned / plain, 15)
    else:
        report.table.add_row("Pinning 10 M rows", ms(pinned), ms(plain), f"{pinned / plain:.3g}", "", "")


def tiny(report: Report, folder: Path) -> None:
    data = pa.table(
        {"age": [20 + index % 60 for index in range(1000)], "k": [f"k{index % 100:02}" for index in range(1000)]}
    )
    columns = {"age": sf.Integer(0, 120, nullable=False), "k": COLUMNS["k"]}
    budget = sf.Budget(epsilon=1000)
    with sf.protect(
        data, name="t", unit=sf.ROW, columns=columns, budget=budget, ledger=folder / "ledger.db"
    ) as curator:
        sql = iter(TINY.format(index / 100) for index in range(1000))
        curator.ask(next(sql), epsilon="0.1")
        preview = seconds(lambda: curator.preview(next(sql), epsilon="0.1"), 100)
        asked = seconds(lambda: curator.ask(next(sql), epsilon="0.1"), 100)
    report.line("ask, a tiny table, durable ledger, ms", (ms(asked), ""), 1e3 * asked, 10)
    report.line("preview, ms", (ms(preview), ""), 1e3 * preview, 3)


def main() -> None:
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        tiny(report, Path(folder))
        ten_million(report, Path(folder))
    Console(width=150).print(report.table)
    sys.exit(f"{report.missed} limits missed" if report.missed else 0)


if __name__ == "__main__":
    main()
