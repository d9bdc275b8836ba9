"""Time and memory of one system's tasks, one line of JSON each. It needs only the standard library.

A task is a function without arguments, or a text that says why the system cannot do it. Each task runs in a process of
its own, so that its memory is its own: the script calls itself again with the task's name. The first run of a task
loads and compiles; it is reported apart from the median of the later ones.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

ROUNDS = 3
SECONDS = 600  # for one task
CHOSEN = "SFUMATO_BENCH_TASKS"  # an environment variable: the names of the tasks to run; without it, all
KEYS = [f"k{index:02}" for index in range(100)]
MOST_ROWS = 10  # of one person


def run(tasks: Mapping[str, Callable[[], object] | str]) -> None:
    """Run all tasks in processes of their own, or the one that is named after the path of the rows."""
    if len(sys.argv) > 2:
        print("\n" + json.dumps(measure(tasks[sys.argv[2]])))
        return
    chosen = os.environ.get(CHOSEN, "").split() or list(tasks)
    for name, task in ((name, tasks[name]) for name in chosen):
        print(
            json.dumps({"task": name, **({"cannot": task} if isinstance(task, str) else run_apart(name))}), flush=True
        )


def run_apart(name: str) -> dict[str, object]:
    """What the task measures in a process of its own."""
    try:
        done = subprocess.run(
            [sys.executable, sys.argv[0], sys.argv[1], name],
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"cannot": f"not finished after {SECONDS} s"}
    if done.returncode:
        return {"cannot": (done.stderr.strip().splitlines() or ["failed"])[-1][:120]}
    found: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def measure(task: Callable[[], object] | str) -> dict[str, object]:
    """Seconds of the first run and of a later one, and the most memory that this process ever held."""
    if isinstance(task, str):
        return {"cannot": task}
    times = []
    for _ in range(1 + ROUNDS):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
        if sum(times) > SECONDS / 2:
            break
    return {"first": times[0], "seconds": statistics.median(times[1:] or times), "megabytes": find_peak()}


def find_peak() -> float:
    """The most memory of this process and of the ones that it started (Spark's), in MB."""
    peak = 0.0
    for process in ["self", *find_children()]:
        try:
            with open(f"/proc/{process}/status") as status:
                peak += next((int(line.split()[1]) / 1000 for line in status if line.startswith("VmHWM")), 0.0)
        except OSError:
            continue
    return peak


def find_children() -> list[str]:
    listed = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True, check=False)
    return listed.stdout.split()
