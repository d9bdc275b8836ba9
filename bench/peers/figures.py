"""Errors for the table: root mean squares, with how each was found. It needs only numpy, which every peer has."""

import json
import math
import sys
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Figure = dict[str, float | str | None]
Rows = dict[str, dict[str, Figure]]
FALSE_ALARM = 5  # standard errors between a model and real calls


def run(peer: Callable[[Mapping[str, object], float, Callable[[str, Figure], None]], None]) -> None:
    """Read the task, ask the peer for its rows at each epsilon, write all of them as one line of JSON."""
    task = json.load(sys.stdin)
    rows: Rows = {}
    for epsilon in task["epsilons"]:
        peer(task, float(epsilon), lambda row, figure, at=epsilon: rows.setdefault(row, {}).update({at: figure}))
    print("\n" + json.dumps(rows))


def laplace(scale: float) -> Figure:
    """Plain additive noise, continuous."""
    return {"value": math.sqrt(2) * scale, "error": None, "how": "scale"}


def discrete_laplace(scale: float) -> Figure:
    """Plain additive noise on whole numbers."""
    return {"value": math.sqrt(discrete_variance(scale)), "error": None, "how": "scale"}


def discrete_variance(scale: float) -> float:
    ratio = math.exp(-1 / scale)
    return 2 * ratio / (1 - ratio) ** 2


def held_at_zero(counts: list[int], scale: float) -> Figure:
    """max(0, count + noise) for discrete Laplace noise: summed over all noise that matters."""
    noise = np.arange(-int(60 * scale), int(60 * scale) + 1)
    chance = np.exp(-np.abs(noise) / scale)
    chance /= chance.sum()
    squares = [(chance * (np.maximum(count + noise, 0) - count) ** 2).sum() for count in counts]
    return {"value": math.sqrt(np.mean(squares)), "error": None, "how": "exact"}


def repeated(errors: Floats) -> Figure:
    """From repetitions, with the standard error of the root mean square."""
    squares = np.asarray(errors, np.float64).ravel() ** 2
    value = math.sqrt(squares.mean())
    if not value:
        return {"value": 0.0, "error": None, "how": "repeated"}
    return {"value": value, "error": squares.std() / math.sqrt(squares.size) / (2 * value), "how": "repeated"}


def averaged(values: Floats) -> Figure:
    """A mean of repetitions, such as of the number of keys released."""
    values = np.asarray(values, np.float64)
    return {"value": values.mean(), "error": values.std() / math.sqrt(values.size), "how": "repeated"}


def draw_discrete(scale: float, size: int | tuple[int, ...], generator: np.random.Generator) -> Floats:
    """Discrete Laplace noise: the difference of two geometric variables."""
    first, second = (generator.geometric(1 - math.exp(-1 / scale), size) for _ in range(2))
    return (first - second).astype(np.float64)


def interval_median(tables: list[list[float]], upper: float, rate: float) -> Figure:
    """The exponential mechanism over the intervals between people, exactly: length * exp(-rate * |rank - n/2|)."""
    squares = []
    for table in tables:
        ends, ranks = np.concatenate([[0], np.sort(table), [upper]]), np.arange(len(table) + 1)
        weights = np.diff(ends) * np.exp(-rate * np.abs(ranks - len(table) / 2))
        left, right = ends[:-1] - np.median(table), ends[1:] - np.median(table)
        squares.append((weights * (left**2 + left * right + right**2) / 3).sum() / weights.sum())
    return {"value": math.sqrt(np.mean(squares)), "error": None, "how": "exact"}


def must_agree(figure: Figure, real: Figure, what: str) -> None:
    """Refuse a figure that real calls contradict."""
    if abs(figure["value"] - real["value"]) > FALSE_ALARM * math.hypot(figure["error"] or 0, real["error"] or 0):
        raise SystemExit(f"{what}: real calls give {real['value']:.4g}, not {figure['value']:.4g}")
