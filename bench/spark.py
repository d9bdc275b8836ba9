"""Speed on Spark, as ratios to the plain Spark SQL query in the same run, and beside tmlt.analytics on the same rows.

Ten million rows of a million people, on local[2]. Part of `make bench`. `--rows 1000000` for a first look.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import duckdb
import numpy as np
from peers.environments import find_python
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import sfumato as sf

ROWS = 10_000_000
EACH_PERSON = 10
ROUNDS = 7
KEYS = [f"k{index:02}" for index in range(100)]
MADE = (
    "COPY (SELECT 'k' || lpad((range % 100)::VARCHAR, 2, '0') AS k, random() AS x, (range % {people})::INT AS p "
    "FROM range({rows})) TO '{path}'"
)
PLAIN = "SELECT k, COUNT(*), SUM(x), AVG(x) FROM plain GROUP BY k"
ASKED = "SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM t GROUP BY k"
LIMIT, FASTER = 1.5, 3.0
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}


def start_spark() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    building = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        building = building.config(name, value)
    session = building.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turns(ours: Callable[[], object], plain: Callable[[], object]) -> tuple[float, float]:
    """Median times of two pieces of work, taken in turns so that a busy machine troubles both alike."""
    ours()
    plain()
    times: dict[Callable[[], object], list[float]] = {ours: [], plain: []}
    for index in range(ROUNDS):
        for work in (ours, plain) if index % 2 else (plain, ours):
            times[work].append(seconds(work))
    return float(np.median(times[ours])), float(np.median(times[plain]))


class Report:
    """The table, and how many limits were missed."""

    def __init__(self) -> None:
        self.table = Table("What", "Sfumato", "Other", "Ratio", "Limit", "", title="On Spark, local[2]")
        self.missed = 0

    def line(
        self, what: str, ours: float, other: float, *, most: float | None = None, least: float | None = None
    ) -> None:
        """A ratio of ours to the other's that is at most `most`, or of the other's to ours that is at least `least`."""
        ratio = ours / other if least is None else other / ours
        met = (most is None or ratio <= most) and (least is None or ratio >= least)
        self.missed += not met
        limit = "" if most is None and least is None else f"≤ {most:g}" if most is not None else f"≥ {least:g}"
        told = "" if not limit else "met" if met else "MISSED"
        self.table.add_row(what, f"{ours:,.2f} s", f"{other:,.2f} s", f"{ratio:,.3g}", limit, told)
        print(f"{what}: {ours:,.2f} s, {other:,.2f} s, {ratio:,.3g} {told}", flush=True)  # the whole takes minutes


def measure_units(report: Report, session: SparkSession, path: Path, folder: Path) -> dict[str, float]:
    """Row unit and person unit: later questions, and the first one with the preparation."""
    session.read.parquet(str(path)).createOrReplaceTempView("plain")
    found = {}
    for name, unit, most in (("row", sf.ROW, 1), ("person", "p", EACH_PERSON)):
        columns = {"k": sf.Category(KEYS), "x": sf.Real(0, 1, nullable=False)} | ({"p": sf.Id()} if unit == "p" else {})
        engine = sf.engines.spark(session, prepared=str(folder / name))
        start = time.perf_counter()
        curator = sf.protect(
            str(path), name="t", unit=unit, columns=columns, budget=sf.Budget(epsilon=1_000_000),
            max_rows_per_unit=most, engine=engine,
        )  # fmt: skip
        prepared = time.perf_counter() - start
        epsilons = count(1)
        ours, plain = in_turns(
            lambda asked=curator, epsilons=epsilons: asked.ask(ASKED, epsilon=next(epsilons)).rows,
            lambda: session.sql(PLAIN).collect(),
        )
        report.line(f"{name} unit, later questions / plain Spark SQL", ours, plain, most=LIMIT)
        report.line(f"{name} unit, preparing once / plain Spark SQL", prepared, plain)
        found[name] = ours
        curator.close()
    return found


def measure_tmlt(report: Report, path: Path, ours: dict[str, float]) -> None:
    """tmlt.analytics in its own environment, on the same file, with the same number of processors."""
    script = Path(__file__).parent / "peers" / "tmlt_spark_speed.py"
    command = [find_python("tmlt"), script, path]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=path.parent) as running,
    ):
        for line in running.stdout or ():
            unit, taken = line.split()
            report.line(f"{unit} unit, tmlt.analytics / Sfumato", ours[unit], float(taken), least=FASTER)
        if running.wait():
            errors.seek(0)
            report.table.add_row("tmlt.analytics", "", "-", "", "", errors.read().strip().splitlines()[-1][:60])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    rows = parser.parse_args().rows
    report = Report()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        path = folder / "rows.parquet"
        duckdb.connect().execute(MADE.format(people=rows // EACH_PERSON, rows=rows, path=path))
        session = start_spark()
        ours = measure_units(report, session, path, folder)
        session.stop()
        measure_tmlt(report, path, ours)
    Console().print(report.table)
    sys.exit(1 if report.missed else 0)


if __name__ == "__main__":
    main()
