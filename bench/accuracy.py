"""The errors of Sfumato and four peers for the same questions, at the same epsilon, on the same data and unit.

Run by `make bench`. A row ends in "met" or "MISSED"; the program fails if any row is missed. `--markdown` writes the
table into docs/accuracy.md. Each library is asked by its own script in `peers/`, the peers in an environment
of their own, made when it is first needed (`.venv/peers`): they want other versions of numpy, pandas, polars and
scikit-learn than we do. What a peer said is kept there until its script or the data changes; `--fresh` asks again.
"""

import argparse
import hashlib
import json
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from peers.environments import PEERS, PLACE, find_python
from peers.page_tables import write_table
from peers.question_costs import list_costs
from peers.workload_errors import list_workloads
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "bench" / "peers"
PAGE = ROOT / "docs" / "accuracy.md"

EPSILONS = ("0.1", "1")
LIMIT = 1.05
WORKLOAD_LIMIT = 1.01
REPETITIONS = 25_000
PEOPLE, TABLES = 1_001, 25
ROWS_EACH = 4
DELTA = 1e-6
KEPT_AT_RANDOM = 2_000
CALLS = (0.55, 0.2, 0.1, 0.05, 0.03, 0.02, 0.02, 0.01, 0.01, 0.01)  # numbers that many people have in common

ASKED = ("opendp", "diffprivlib", "tmlt", "pipelinedp")
ROWS = {
    "count": "Count",
    "sum": "Sum of ages",
    "mean_ages": "Mean age",
    "mean_incomes": "Mean income",
    "mean_known": "Mean age, n public",
    "variance_ages": "Variance of ages",
    "variance_incomes": "Variance of incomes",
    "variance_known_ages": "Variance of ages, n public",
    "variance_known_incomes": "Variance of incomes, n public",
    "median_ages": "Median age",
    "median_incomes": "Median income",
    "median_calls": "Median number of calls, 0 to 9",
    "histogram": "Histogram of 100 cells",
    "sparse_histogram": "Histogram, half empty, held at 0",
    "person_count": "Count by site, person unit",
    "person_sum": "Sum by site, person unit",
    "keys_released": "Unknown keys: released, of 48",
    "keys_error": "Unknown keys: error on them",
}
MORE_IS_BETTER = "keys_released"

Figure = dict[str, float | str | None]
Rows = dict[str, dict[str, Figure]]


@dataclass(frozen=True)
class Said:
    """The figures of one library, or the reason why there are none."""

    rows: Rows
    trouble: str = ""


def task() -> dict[str, object]:
    """The data, the same for all; bounds: ages [0, 100], incomes [0, 200,000], costs [0, 500], calls [0, 9]."""
    draw = np.random.default_rng(4)
    ages = [np.clip(np.rint(100 * draw.beta(1.6, 2.2, PEOPLE)), 0, 100).astype(int).tolist() for _ in range(TABLES)]
    incomes = [
        np.clip(np.round(35_000 * np.exp(0.6 * draw.standard_normal(PEOPLE)), 2), 0, 200_000).tolist()
        for _ in range(TABLES)
    ]
    calls = [draw.choice(10, PEOPLE, p=CALLS).tolist() for _ in range(TABLES)]
    rows = np.where(draw.random(300) < 0.03, draw.integers(5, 9, 300), draw.integers(1, 5, 300))
    person = np.repeat(np.arange(300), rows)
    visits = {
        "person": person.tolist(),
        "site": [f"site {site}" for site in draw.integers(0, 5, person.size)],
        "cost": np.clip(np.round(80 * np.exp(0.7 * draw.standard_normal(person.size)), 2), 0, 500).tolist(),
    }
    few = (
        2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 22, 25, 28, 32, 36, 40, 45, 50, 60, 70, 80, 100, 120, 150, 200, 300,
    )  # fmt: skip
    return {
        "epsilons": EPSILONS,
        "repetitions": REPETITIONS,
        "delta": DELTA,
        "ages": ages,
        "incomes": incomes,
        "calls": calls,
        "income_bins": (32.0 * np.arange(6_251)).tolist(),  # Sfumato's bins, for who must be given candidates
        "histogram": [150 + 5 * index for index in range(100)],
        "sparse_histogram": [0] * 50 + list(range(1, 51)),
        "rows_each": ROWS_EACH,
        "visits": visits,
        "keys": [1] * 20 + list(few),
    }


def said_by(name: str, questions: str, *, fresh: bool) -> Said:
    """A peer's rows: stored ones if nothing changed, otherwise computed in its own environment."""
    script = SCRIPTS / f"{name}_errors.py"
    texts = (questions, script.read_text(), (SCRIPTS / "figures.py").read_text(), *PEERS[name])
    key = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    kept = PLACE / f"{name}.json"
    if not fresh and kept.exists() and (before := json.loads(kept.read_text()))["key"] == key:
        return Said(before["rows"])
    try:
        rows = answered(find_python(name), script, questions)
    except subprocess.CalledProcessError as error:
        return Said({}, (error.stderr or error.stdout).strip().splitlines()[-1][:200])
    kept.write_text(json.dumps({"key": key, "rows": rows}))
    return Said(rows)


def answered(python: Path | str, script: Path, questions: str) -> Rows:
    done = subprocess.run([python, script], input=questions, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def with_bounding(rows: Rows, visits: dict[str, list]) -> None:
    """Add, to a peer's noise in the person rows, what it loses by keeping a person's rows at random."""
    lost = kept_at_random(visits)
    for row in ("person_count", "person_sum"):
        for figure in rows.get(row, {}).values():
            figure["value"] = math.hypot(figure["value"], lost[row])


def kept_at_random(visits: dict[str, list]) -> dict[str, float]:
    """The error of keeping ROWS_EACH rows of each person, evenly at random, before any noise."""
    draw = np.random.default_rng(5)
    person, cost = np.array(visits["person"]), np.array(visits["cost"])
    _, site = np.unique(visits["site"], return_inverse=True)
    squares: dict[str, list[float]] = {"person_count": [], "person_sum": []}
    for _ in range(KEPT_AT_RANDOM):
        order = np.lexsort((draw.random(person.size), person))
        first = np.searchsorted(person[order], person[order])
        gone = order[np.arange(person.size) - first >= ROWS_EACH]
        squares["person_count"] += (np.bincount(site[gone], minlength=5) ** 2.0).tolist()
        squares["person_sum"] += (np.bincount(site[gone], cost[gone], 5) ** 2).tolist()
    return {row: math.sqrt(np.mean(errors)) for row, errors in squares.items()}


def shown(figure: Figure | None) -> str:
    if figure is None:
        return "cannot"
    error = f" ± {digits(figure['error'])}" if figure["error"] else ""
    return digits(figure["value"], 4) + error


def digits(value: float, most: int = 2) -> str:
    text = f"{value:.{most}g}"
    return f"{value:,.0f}" if "e" in text and value >= 1 else text


def lines(ours: Rows, peers: dict[str, Said]) -> list[tuple[list[str], bool]]:
    """Cells of the table, row by row, and whether the limit was met."""
    made = []
    for row, label in ROWS.items():
        for epsilon in EPSILONS:
            mine = ours[row][epsilon]
            theirs = [said.rows.get(row, {}).get(epsilon) for said in peers.values()]
            values = [figure["value"] for figure in theirs if figure is not None]
            better = row == MORE_IS_BETTER
            ratio = max(values) / mine["value"] if better else mine["value"] / min(values)
            met = ratio <= LIMIT
            cells = [label, epsilon, shown(mine), *map(shown, theirs), f"{ratio:.3f}", f"≤ {LIMIT:g}"]
            made.append(([*cells, "met" if met else "MISSED"], met))
    return made


def show_costs(console: Console, *, markdown: bool) -> int:
    """The margins of questions beside the best known ones: how many limits were missed."""
    heads = ["Question", "Margin at ε = 1, or number", "Best known", "Ratio", "Limit", ""]
    made, missed = [], 0
    for cost in list_costs():
        met = cost.ratio <= LIMIT
        missed += not met
        figures = [f"{cost.sign}{digits(number, 4)}" for number in (cost.ours, cost.best)]
        cells = [cost.what, *figures, f"{cost.ratio:.3f}"]
        made.append([*cells, f"≤ {LIMIT:g}", "met" if met else "MISSED"])
    table = Table(*heads, title="What a question costs")
    for cells in made:
        table.add_row(*cells)
    console.print(table)
    if markdown:
        write_table(PAGE, "costs", heads, made, ())
    return missed


def show_workloads(console: Console, *, markdown: bool) -> int:
    """The errors of workloads beside plain noise and the least possible ones: how many limits were missed."""
    heads = ["Workload at rho = 1", "Sfumato", "One by one", "Least possible", "Ratio", "Limit", ""]
    made, missed = [], 0
    for one in list_workloads():
        met = one.ratio <= WORKLOAD_LIMIT
        missed += not met
        figures = [digits(error, 4) for error in (one.ours, one.plain, one.best)]
        made.append([one.what, *figures, f"{one.ratio:.4f}", f"≤ {WORKLOAD_LIMIT:g}", "met" if met else "MISSED"])
    table = Table(*heads, title="Root mean square error of workloads")
    for cells in made:
        table.add_row(*cells)
    console.print(table)
    if markdown:
        write_table(PAGE, "workloads", heads, made, ())
    return missed


def main() -> None:
    options = argparse.ArgumentParser(description="Accuracy beside peers.")
    options.add_argument(
        "--costs", action="store_true", help="only the costs of questions and workloads, which need no peer"
    )
    options.add_argument("--markdown", action="store_true", help="write the table into docs/accuracy.md")
    options.add_argument("--fresh", action="store_true", help="ask the peers again")
    chosen = options.parse_args()
    console = Console(width=190)
    dear = show_costs(console, markdown=chosen.markdown) + show_workloads(console, markdown=chosen.markdown)
    if chosen.costs:
        sys.exit(f"{dear} limits missed" if dear else 0)
    PLACE.mkdir(parents=True, exist_ok=True)
    data = task()
    questions = json.dumps(data)
    peers = {name: said_by(name, questions, fresh=chosen.fresh) for name in ASKED}
    ours = answered(sys.executable, SCRIPTS / "sfumato_errors.py", questions)
    for said in peers.values():
        with_bounding(said.rows, data["visits"])
    made = lines(ours, peers)
    heads = ["What", "ε", "Sfumato", *ASKED, "Ratio", "Limit", ""]
    table = Table(*heads, title="Root mean square error")
    for cells, _ in made:
        table.add_row(*cells)
    console.print(table)
    troubles = [f"{name} could not be asked: {said.trouble}" for name, said in peers.items() if said.trouble]
    console.print(*troubles, sep="\n")
    if chosen.markdown:
        write_table(PAGE, "table", heads, [cells for cells, _ in made], troubles)
    missed = dear + sum(not met for _, met in made)
    sys.exit(f"{missed} limits missed" if missed else 0)


if __name__ == "__main__":
    main()
