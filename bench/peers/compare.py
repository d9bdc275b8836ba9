"""Time and memory of Sfumato and six other systems for the same tasks on the same rows. Run by `make bench-peers`.

Each system is asked by its own script (`*_speed.py`), the peers in environments of their own. The table and the chart
go to docs/benchmarks.md. `--rows 100000` for a first look, `--only opendp` for one system, `--write` to write the page.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import altair as alt
import duckdb
import vl_convert
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from peers.environments import PEERS, find_python  # noqa: E402
from peers.page_tables import write_table  # noqa: E402

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
Found = dict[str, dict[str, object]]  # of one system, by task


def ask(system: str, rows: Path) -> Found:
    """What a system measured, or why it could not."""
    python = sys.executable if system == "sfumato" else find_python(system)
    done = subprocess.run(
        [python, HERE / f"{system}_speed.py", rows], capture_output=True, text=True, check=False, cwd=rows.parent
    )
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            one = json.loads(line)
            found[one.pop("task")] = one
    return found or {task: {"cannot": (done.stderr.strip().splitlines() or ["failed"])[-1][:120]} for task in TASKS}


def show(one: dict[str, object] | None, ours: dict[str, object] | None) -> str:
    """Seconds, the ratio to Sfumato's, and megabytes; a dash for what cannot be done."""
    if one is None or "seconds" not in one:
        return "-"
    taken, memory = float(str(one["seconds"])), float(str(one["megabytes"]))
    ratio = (
        ""
        if one is ours or ours is None or "seconds" not in ours
        else f", {taken / float(str(ours['seconds'])):,.3g} x"
    )
    return f"{taken:,.2f} s{ratio}, {memory:,.0f} MB"


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
            ours = answers["sfumato"].get(task, {})
            if system != "sfumato" and "seconds" in one and "seconds" in ours:
                ratio = float(str(one["seconds"])) / float(str(ours["seconds"]))
                bars.append({"system": NAMES.get(system, system), "task": TASKS[task], "ratio": ratio})
    chart = (
        alt.Chart(alt.Data(values=bars))
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=alt.X("ratio:Q", scale=alt.Scale(type="log"), title="times as long as Sfumato"),
            y=alt.Y("system:N", title=None, sort="-x"),
            color=alt.Color("system:N", legend=None, scale=alt.Scale(scheme="tableau10")),
            row=alt.Row(
                "task:N", title=None, sort=list(TASKS.values()),
                header=alt.Header(labelAngle=0, labelAlign="left", labelLimit=320, orient="top"),
            ),
        )
        .properties(width=420)
        .resolve_scale(y="independent")
        .configure_view(stroke=None)
    )  # fmt: skip
    path.parent.mkdir(exist_ok=True)
    path.write_text(vl_convert.vegalite_to_svg(chart.to_json()))


def describe_machine(rows: int) -> str:
    memory = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    versions = ", ".join(requirement for name in ASKED for requirement in PEERS[name][:1])
    own = importlib.metadata.version("sfumato")
    return (
        f"{rows:,} rows in Parquet, {os.cpu_count()} processors, {memory} GiB of memory, Python "
        f"{platform.python_version()}. Sfumato {own}; {versions}."
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--only", nargs="*", default=ASKED, help="these systems beside Sfumato")
    options.add_argument("--write", action="store_true", help="write docs/benchmarks.md and its chart")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        items = max(chosen.rows * 7 // 100, 1)
        duckdb.connect().execute(MADE.format(people=chosen.rows // 10, items=items, rows=chosen.rows, path=path))
        answers = {system: ask(system, path) for system in ("sfumato", *chosen.only)}
    heads = ["Task", *(NAMES.get(system, system) for system in answers)]
    made = [
        [label, *(show(found.get(task), answers["sfumato"].get(task)) for found in answers.values())]
        for task, label in TASKS.items()
    ]
    table = Table(*heads, title="Time of a later answer, the ratio to Sfumato's, and the peak of memory")
    for cells in made:
        table.add_row(*cells)
    console = Console(width=200)
    console.print(table, *list_reasons(answers), describe_machine(chosen.rows), sep="\n")
    if chosen.write:
        write_table(PAGE, "speed", heads, made, [describe_machine(chosen.rows), *list_reasons(answers)])
        draw(answers, CHART)


if __name__ == "__main__":
    main()
