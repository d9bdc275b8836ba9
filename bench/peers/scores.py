"""How a fitted model is scored on held-out rows, and the loop over seeds. Every environment runs this file.

A script gets a folder: `task.json`, `features.npy`, `target.npy` and `tests.npy` (for each seed, the rows that are held
out). It prints lines of progress, and for each model a line of JSON: for each epsilon, a score for each seed.
All scores are "more is better". A fit that takes more than SLOW seconds of processor time is given up.
"""

import json
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
BINS = 40  # of a density
SLOW = 20  # some rejection samplers of peers hardly ever accept


@dataclass(frozen=True)
class Case:
    """One model to fit: at which epsilon, with which declared properties of the data."""

    epsilon: float
    delta: float
    seed: int
    columns: int
    classes: int  # 0: the target is a number in [-1, 1]
    codes: dict[int, int]
    clusters: int
    components: int
    neighbours: str


Make = Callable[[Case], Any]


def score_accuracy(model: Any, features: Floats, target: Floats) -> float:  # noqa: ANN401
    return float(np.mean(np.asarray(model.predict(features)) == target))


def score_auc(model: Any, features: Floats, target: Floats) -> float:  # noqa: ANN401
    """Area under the ROC curve: the chance that a row of class 1 has the greater score, ties counting one half."""
    scores = np.asarray(model.predict_proba(features))[:, 1]
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    ones = target == 1
    return float((ranks[ones].sum() - ones.sum() * (ones.sum() + 1) / 2) / (ones.sum() * (~ones).sum()))


def score_r2(model: Any, features: Floats, target: Floats) -> float:  # noqa: ANN401
    errors = ((np.asarray(model.predict(features)).ravel() - target) ** 2).sum()
    return float(1 - errors / ((target - target.mean()) ** 2).sum())


def score_clusters(model: Any, features: Floats, _: Floats) -> float:  # noqa: ANN401
    """The share of the variance that the nearest centres explain."""
    centres = np.asarray(model.cluster_centers_)
    nearest = np.min([((features - centre) ** 2).sum(axis=1) for centre in centres], axis=0)
    return float(1 - nearest.sum() / ((features - features.mean(axis=0)) ** 2).sum())


def score_components(model: Any, features: Floats, _: Floats) -> float:  # noqa: ANN401
    """The share of the variance that lies in the span of the components."""
    span, _unused = np.linalg.qr(np.asarray(model.components_).T)
    centred = features - features.mean(axis=0)
    return float(((centred @ span) ** 2).sum() / (centred**2).sum())


def score_density(model: Any, features: Floats, _: Floats) -> float:  # noqa: ANN401
    """1 - total variation between the model's chances of BINS equal cells of [-1, 1] and the shares of the rows."""
    shares = np.histogram(features[:, 0], BINS, (-1, 1))[0] / len(features)
    return float(1 - np.abs(np.asarray(model.chances_) - shares).sum() / 2)


SCORES = {
    "accuracy": score_accuracy,
    "auc": score_auc,
    "r2": score_r2,
    "clusters": score_clusters,
    "components": score_components,
    "density": score_density,
}


def stop_slow_fit(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"a fit takes more than {SLOW} seconds of processor time")


def run(models: Mapping[str, Make], *, private: bool = True) -> None:
    """Fit every model that the task names and this library has, at each epsilon and seed."""
    folder = Path(sys.argv[1])
    task = json.loads((folder / "task.json").read_text())
    features, target, tests = (np.load(folder / f"{name}.npy") for name in ("features", "target", "tests"))
    target = target.astype(np.int64) if task["classes"] else target
    codes = {int(place): size for place, size in task["codes"].items()}
    signal.signal(signal.SIGVTALRM, stop_slow_fit)
    for name, asked in task["models"].items():
        if name not in models:
            continue
        found: dict[str, Any] = {}
        for epsilon in task["epsilons"] if private else ["inf"]:
            begun = time.perf_counter()
            scores: list[float] = []
            trouble = ""
            for seed, held_out in enumerate(tests):
                case = Case(
                    float(epsilon), task["delta"], seed, features.shape[1], task["classes"], codes, task["clusters"],
                    task["components"], asked["neighbours"],
                )  # fmt: skip
                signal.setitimer(signal.ITIMER_VIRTUAL, SLOW)
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        model = models[name](case).fit(features[~held_out].copy(), target[~held_out].copy())
                        scores.append(SCORES[asked["score"]](model, features[held_out], target[held_out]))
                except Exception as error:  # a peer may refuse or break: the table says so
                    trouble = f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
                    break
                finally:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            seconds = time.perf_counter() - begun
            found[epsilon] = {"trouble": trouble} if trouble else {"scores": scores}
            shown = trouble or f"{np.mean(scores):.4f}"
            print(f"{task['name']}, {name}, epsilon {epsilon}: {shown} ({seconds:.1f} s)", flush=True)
        print(json.dumps({name: found}), flush=True)
