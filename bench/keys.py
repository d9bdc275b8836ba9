"""Undeclared keys that are found, questions that a budget allows, and the time and memory of many keys.

Run `python bench/keys.py`. A line ends in "met" or "MISSED"; the program fails if any line is missed. The figure of the
policy Gaussian is for another draw of the same distribution. Time is processor time, in processes of their own that
open the same snapshot: medians of several turns. Memory is the largest that such a process ever held.
"""

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import dp_accounting
import duckdb
import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

import sfumato as sf

PEOPLE, ITEMS, MOST = 50_000, 121_000, 1_000
TIMES = 5
ROUNDS = 5  # of programs in turns, so that a busy machine troubles all alike
LEAST_KEYS, RECORD = 890, 908  # policy Gaussian
FEW = 5  # groups of one person, who has ten items on average: most have too many
DEVIATION = 2**0.5 / 0.03  # of a count with Laplace noise of epsilon 0.03

PURCHASES = (  # 10 million rows of a million people, with 700,000 different items, some of them frequent
    "COPY (SELECT hash(range) % 1000000 AS person, "
    "'item ' || floor(700000 * pow(hash(range + 77) % 1000003 / 1000003.0, 3))::BIGINT AS item "
    "FROM range(10000000)) TO '{path}'"
)
CATALOG = """
[dataset]
name = "t"
[budget]
epsilon = "1000"
delta = "0.01"
[tables.t]
source = "{path}"
unit_column = "person"
max_rows_per_unit = 20
max_groups_per_unit = 20
columns.person = {{ type = "id" }}
columns.item = {{ type = "text" }}
"""
BY_ITEM = "SELECT item, COUNT(DISTINCT {person}) AS n FROM t GROUP BY item"
ASKING = """
import sys, time, sfumato
with sfumato.open(sys.argv[1]) as curator:
    begun = time.process_time()
    groups = int(sys.argv[3])
    curator.ask(sys.argv[2], epsilon=sys.argv[4], delta="1e-6", max_groups=groups)  # another epsilon: not stored
    print(time.process_time() - begun)
"""
PLAINLY = """
import sys, time, duckdb
snapshot = duckdb.connect(sys.argv[1], read_only=True)
snapshot.execute("SET enable_progress_bar = false")
begun = time.process_time()
snapshot.execute(sys.argv[2]).fetchnumpy()
print(time.process_time() - begun)
"""
PEAK = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"


def run_apart(program: str, *arguments: object) -> tuple[float, float]:
    """Processor seconds and gigabytes of a program in a process of its own."""
    command = [sys.executable, "-c", program + PEAK, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, kilobytes = map(float, done.stdout.split())
    return seconds, kilobytes / 2**20


def measure_many_keys() -> list[tuple[float, float]]:
    """A count of people by item, the same where most people have too many items, and plain SQL on the same snapshot."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        duckdb.connect().execute(PURCHASES.format(path=folder / "t.parquet"))
        (folder / "catalog.toml").write_text(CATALOG.format(path="t.parquet"))
        sf.open(folder).close()  # pins the table
        ours, plain = BY_ITEM.format(person="person"), BY_ITEM.format(person="__sfumato_unit")
        turns = [
            [
                run_apart(ASKING, folder, ours, 20, number),
                run_apart(ASKING, folder, ours, FEW, number),
                run_apart(PLAINLY, folder / ".sfumato" / "snapshot.duckdb", plain),
            ]
            for number in range(1, 1 + ROUNDS)
        ]
        return [(float(seconds), float(memory)) for seconds, memory in np.median(turns, axis=0)]


def make_baskets() -> pd.DataFrame:
    """Sets of Zipf items: sizes lognormal(2.5, 1.3) up to 1,000, exponent 1.05."""
    generator = np.random.default_rng(1)
    sizes = np.clip(np.round(generator.lognormal(2.5, 1.3, PEOPLE)), 1, MOST).astype(int)
    chances = np.arange(1, ITEMS + 1) ** -1.05
    drawn = np.searchsorted(np.cumsum(chances / chances.sum()), generator.random(sizes.sum()))
    baskets = pd.DataFrame({"person": np.repeat(np.arange(PEOPLE), sizes), "item": drawn}).drop_duplicates()
    return baskets.assign(item="item " + baskets["item"].astype(str))


def count_keys(baskets: pd.DataFrame, neighbours: str) -> int:
    """Keys alone, at epsilon = 1 and delta = 1e-5: the mean of several answers, which differ in an absent item."""
    with warnings.catch_warnings(), sf.protect(
        baskets, name="t", unit="person", columns={"person": sf.Id(), "item": sf.Text()}, neighbours=neighbours,
        budget=sf.Budget(epsilon=9, delta="1e-3"), max_rows_per_unit=MOST, max_groups_per_unit=MOST,
    ) as curator:  # fmt: skip
        questions = (f"SELECT item FROM t WHERE item <> 'absent {number}' GROUP BY item" for number in range(TIMES))  # noqa: S608 - numbers
        found = [len(curator.ask(question, epsilon=1, delta="1e-5").rows) for question in questions]
        return round(sum(found) / TIMES)


def main() -> None:
    table = Table("What", "Sfumato", "Best known", "Limit", "", title="Keys and budgets")
    missed = 0

    def line(what: str, ours: int, best: str, least: int) -> None:
        nonlocal missed
        missed += ours < least
        table.add_row(what, f"{ours:,}", best, f"≥ {least:,}", "met" if ours >= least else "MISSED")

    baskets = make_baskets()
    line("Keys found, add-remove", count_keys(baskets, "add-remove"), f"{RECORD} (policy Gaussian)", LEAST_KEYS)
    line("Keys found, replace-one", count_keys(baskets, "replace-one"), "655 (one round of weights)", LEAST_KEYS)
    gdp = sf.Budget(epsilon=3, delta="1e-6", accounting="gdp").loss
    smallest = dp_accounting.get_sigma_gaussian(3, 1e-6)  # of all questions together
    best = int((DEVIATION / smallest) ** 2)
    line(
        "Counts of deviation 47 under (3, 1e-6)", int(float(gdp.mu_squared) * DEVIATION**2), f"{best}", int(best / 1.05)
    )
    *measured, (plainly, plain_memory) = measure_many_keys()
    for whose, (seconds, memory) in zip(("People of 700,000 keys", f"The same, {FEW} of each"), measured, strict=True):
        for what, ours, plain, ratio, limit in (
            ("processor time", f"{seconds:.2f} s", f"{plainly:.2f} s", seconds / plainly, 2.0),
            ("peak memory", f"{memory:.2f} GB", f"{plain_memory:.2f} GB", memory, 1.0),
        ):
            missed += ratio > limit
            met = "met" if ratio <= limit else "MISSED"
            table.add_row(f"{whose}: {what} (plain SQL)", ours, plain, f"{ratio:.2f} ≤ {limit:g}", met)
    Console(width=120).print(table)
    sys.exit(f"{missed} limits missed" if missed else 0)


if __name__ == "__main__":
    main()
