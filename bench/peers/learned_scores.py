"""Ask each library for its scores on one data set, in its own environment; keep what it said.

A score is stored under everything that it depends on: the script, the data, the splits and the library's code. A run
that was interrupted therefore goes on where it ended, and a change of the code measures again.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from peers.environments import PEERS, PLACE, ROOT, find_python
from peers.estimator_code import read_estimator_code
from peers.learning_sets import LearningSet, draw_tests
from rich.console import Console

SCRIPTS = Path(__file__).parent
OURS, PLAIN = "sfumato", "plain"
NO_NOISE = "inf"  # the epsilon of models that are not private


@dataclass(frozen=True)
class Task:
    """One data set, the models to fit, and how: for each model its score and neighbouring relation."""

    data: LearningSet
    models: Mapping[str, tuple[str, str]]
    epsilons: tuple[str, ...]
    delta: float
    seeds: int
    clusters: int = 2
    components: int = 2

    def describe(self) -> str:
        models = {name: {"score": score, "neighbours": relation} for name, (score, relation) in self.models.items()}
        return json.dumps(
            {
                **self.data.describe(),
                "models": models,
                "epsilons": self.epsilons,
                "delta": self.delta,
                "clusters": self.clusters,
                "components": self.components,
            }
        )


@dataclass(frozen=True)
class Scores:
    """A score for each seed, or the reason why there are none."""

    values: tuple[float, ...] = ()
    trouble: str = ""


Said = dict[tuple[str, str], Scores]  # by model and epsilon
Found = dict[str, dict]  # by epsilon: scores, or the trouble


def ask_library(library: str, task: Task, *, fresh: bool, console: Console) -> Said:
    """The scores of one library. They are stored until its script, its code or the data changes."""
    tests = draw_tests(task.data.name, len(task.data.target), task.seeds)
    kept = {name: find_stored(library, replace(task, models={name: task.models[name]}), tests) for name in task.models}
    said: Said = {}
    if not fresh:
        for name, path in kept.items():
            said |= read_said({name: json.loads(path.read_text())}) if path.exists() else {}
    known = {model for model, _ in said}
    left = replace(task, models={name: how for name, how in task.models.items() if name not in known})
    if not left.models:
        return said
    try:
        python = find_python(library) if library in PEERS else Path(sys.executable)
        for name, found in run_script(python, library, left, tests, console):
            said |= read_said({name: found})
            kept[name].parent.mkdir(parents=True, exist_ok=True)
            kept[name].write_text(json.dumps(found))
    except subprocess.CalledProcessError as error:
        why = ((error.stderr or error.stdout or "").strip().splitlines() or ["it failed"])[-1][:200]
        said = {(name, epsilon): Scores(trouble=why) for name in left.models for epsilon in task.epsilons} | said
    return said


def find_stored(library: str, task: Task, tests: np.ndarray) -> Path:
    """The file for the scores of one model: its name depends on everything that the scores depend on."""
    key = hashlib.sha256()
    texts = ((SCRIPTS / f"{library}_models.py").read_text(), (SCRIPTS / "scores.py").read_text())
    code = PEERS.get(library, ())
    if library == OURS:
        code = [text for name in task.models for text in read_estimator_code(ROOT / "src", name)]
    for text in (task.describe(), *texts, *code):
        key.update(text.encode() + b"\0")
    for array in (task.data.features, task.data.target, tests):
        key.update(np.ascontiguousarray(array).data)
    return PLACE / "learned" / f"{library}-{task.data.name.replace(' ', '-')}-{key.hexdigest()[:16]}.json"


def run_script(
    python: Path, library: str, task: Task, tests: np.ndarray, console: Console
) -> Iterator[tuple[str, Found]]:
    """Run a library's script on files: each model's scores as they come. Progress is shown."""
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryFile("w+") as errors:
        folder = Path(name)
        (folder / "task.json").write_text(task.describe())
        for what, array in (("features", task.data.features), ("target", task.data.target), ("tests", tests)):
            np.save(folder / f"{what}.npy", array)
        command = [python, SCRIPTS / f"{library}_models.py", folder]
        settings = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # small models: threads cost more
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=settings) as process:
            for line in process.stdout or ():
                if line.startswith("{"):
                    yield from json.loads(line).items()
                else:
                    console.print(f"  {library}: {line.strip()}", highlight=False)
        if process.returncode:
            errors.seek(0)
            raise subprocess.CalledProcessError(process.returncode, library, "", errors.read())


def read_said(said: Mapping[str, Found]) -> Said:
    return {
        (model, epsilon): Scores(tuple(found.get("scores", ())), found.get("trouble", ""))
        for model, by_epsilon in said.items()
        for epsilon, found in by_epsilon.items()
    }
