"""Time and memory of Sfumato and six other systems for the same tasks on the same rows. Run by `make bench-peers`.

Each system is asked by its own script (`*_speed.py`), the peers in environments of their own. The table and the chart
go to docs/benchmarks.md. `--rows 100000` for a first look, `--only opendp` for one system, `--tasks median` for one
task, `--write` to write the page. Results are kept in `.venv/peers`, so a page can be made of several runs; the ratio
of a peer is always to Sfumato's time in the same run. `--only` without a name measures nothing.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import altair as alt
import duckdb
import vl_convert
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from peers.environments import PEERS, PLACE, find_python  # noqa: E402
from peers.page_tables import write_table  # noqa: E402
from peers.speed import CHOSEN  # noqa: E402

ROOT = HERE.parents[1]
PAGE, CHART = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "figures" / "benchmarks.svg"
ROWS = 1_000_000
ASKED = ("opendp", "tmlt", "smartnoise", "pipelinedp", "diffprivlib", "pydp")
NAMES = {"pipelinedp": "pipeline-dp", "pydp": "python-dp", "smartnoise": "smartnoise-sql", "tmlt": "tmlt.analytics"}
TASKS = {
    "grouped": "COUNT, SUM and AVG by 100 keys, row unit",
    "person": "the same, person unit (10 rows each)",
    "median": "a median",
    "keys": "people by undeclared key",
    "noise": "Laplace noise on 1 M numbers",
}
MADE = (
    "COPY (SELECT 'k' || lpad((range % 100)::VARCHAR, 2, '0') AS k, random() AS x, (range % {people})::INT AS p, "
    "'item ' || floor({items} * pow(hash(range + 77) % 1000003 / 1000003.0, 3))::BIGINT AS item, 'all' AS one "
    "FROM range({rows})) TO '{path}'"
)
Found = dict[str, dict[str, object]]  # of one system, by task: what it measured, or why it cannot


def ask(system: str, rows: Path, tasks: Sequence[str]) -> Found:
    """What a system measured, or why it could not."""
    python = sys.executable if system == "sfumato" else find_python(system)
    done = subprocess.run(
        [python, HERE / f"{system}_speed.py", rows],
        capture_output=True, text=True, check=False, cwd=rows.parent, env=os.environ | {CHOSEN: " ".join(tasks)},
    )  # fmt: skip
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            one = json.loads(line)
            found[one.pop("task")] = one
    return found or {task: {"cannot": (done.stderr.strip().splitlines() or ["failed"])[-1][:120]} for task in tasks}


def keep(answers: dict[str, Found], path: Path) -> dict[str, Found]:
    """Add what was just measured to what earlier runs measured. Peers keep Sfumato's time in the same run."""
    kept: dict[str, Found] = json.loads(path.read_text()) if path.exists() else {}
    for system, found in answers.items():
        for task, one in found.items():
            ours = answers["sfumato"].get(task, {}).get("seconds")
            kept.setdefault(system, {})[task] = one | {"ours": ours, "on": datetime.now(UTC).date().isoformat()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1))
    return {system: kept.get(system, {}) for system in ("sfumato", *ASKED)}


def find_ratio(one: dict[str, object]) -> float | None:
    """How many times as long as Sfumato in the same run."""
    if "seconds" not in one or one.get("ours") is None:
        return None
    return float(str(one["seconds"])) / float(str(one["ours"]))


def show(one: dict[str, object] | None, *, own: bool) -> str:
    """The ratio to Sfumato's time, seconds, seconds of the first run, and megabytes; a dash for what cannot be done."""
    if one is None:
        return "not measured"
    if "seconds" not in one:
        return "-"
    first, taken, memory = (float(str(one[name])) for name in ("first", "seconds", "megabytes"))
    found = find_ratio(one)
    ratio = "" if own or found is None else f"**{found:,.0f} x**, " if found >= 100 else f"**{found:.3g} x**, "
    return f"{ratio}{taken:,.3g} s (first {first:,.3g} s), {memory:,.0f} MB"


def list_reasons(answers: dict[str, Found]) -> list[str]:
    return [
        f"{NAMES.get(system, system)}, {TASKS[task]}: {one['cannot']}."
        for system, found in answers.items()
        for task, one in found.items()
        if "cannot" in one
    ]


def draw(answers: dict[str, Found], path: Path) -> None:
    """Ratios to Sfumato, one bar for each system and task, on a logarithmic axis."""
    bars = []
    for system, found in answers.items():
        for task, one in found.items():
            ratio = find_ratio(one)
            if system != "sfumato" and ratio is not None:
                bars.append({"system": NAMES.get(system, system), "task": TASKS[task], "ratio": ratio, "same": 1})
    chart = (
        alt.Chart(alt.Data(values=bars))
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=alt.X("ratio:Q", scale=alt.Scale(type="log"), title="times as long as Sfumato"),
            x2="same:Q",  # bars begin at 1: a logarithmic axis has no zero
            y=alt.Y("system:N", title=None, sort="-x"),
            color=alt.Color("system:N", legend=None, scale=alt.Scale(scheme="tableau10")),
            row=alt.Row(
                "task:N", title=None, sort=list(TASKS.values()),
                header=alt.Header(labelAngle=0, labelAlign="left", labelAnchor="start", labelLimit=320, orient="top"),
            ),
        )
        .properties(width=420)
        .resolve_scale(y="independent")
        .configure_view(stroke=None)
    )  # fmt: skip
    path.parent.mkdir(exist_ok=True)
    path.write_text(vl_convert.vegalite_to_svg(chart.to_json()))


def describe_machine(rows: int, answers: dict[str, Found]) -> str:
    memory = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    versions = ", ".join(requirement for name in ASKED for requirement in PEERS[name][:1])
    own = importlib.metadata.version("sfumato")
    days = sorted({str(one["on"]) for found in answers.values() for one in found.values()})
    measured = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    return (
        f"{rows:,} rows in Parquet, {os.cpu_count()} processors, {memory} GiB of memory, Python "
        f"{platform.python_version()}, measured {measured}. Sfumato {own}; {versions}."
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--only", nargs="*", default=ASKED, help="these systems beside Sfumato")
    options.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS), help="only these tasks")
    options.add_argument("--write", action="store_true", help="write docs/benchmarks.md and its chart")
    chosen = options.parse_args()
    answers: dict[str, Found] = {}
    if chosen.only:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            items = max(chosen.rows * 7 // 100, 1)
            duckdb.connect().execute(MADE.format(people=chosen.rows // 10, items=items, rows=chosen.rows, path=path))
            answers = {system: ask(system, path, chosen.tasks) for system in ("sfumato", *chosen.only)}
    answers = keep(answers, PLACE / f"speed-{chosen.rows}.json")
    heads = ["System", *TASKS.values()]
    made = [
        [NAMES.get(system, system), *(show(found.get(task), own=system == "sfumato") for task in TASKS)]
        for system, found in answers.items()
    ]
    table = Table(*heads, title="Ratio to Sfumato's time, time of a later answer and of the first, peak of memory")
    for cells in made:
        table.add_row(*cells)
    console = Console(width=200)
    console.print(table, *list_reasons(answers), describe_machine(chosen.rows, answers), sep="\n")
    if chosen.write:
        write_table(PAGE, "speed", heads, made, [describe_machine(chosen.rows, answers), *list_reasons(answers)])
        draw(answers, CHART)


if __name__ == "__main__":
    main()
