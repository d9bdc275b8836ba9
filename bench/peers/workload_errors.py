"""The errors of workloads at rho = 1: ours, with one noise for each question, and the least of any Gaussian strategy.

Errors are root mean squares of the noise, from the certified noise of plans: over the questions of a workload (each
counts as much as another), and over all shown groups and running totals. The least error of marginals is the bound by
singular values. That of running totals and ranges is a bound by duality: for every diagonal D and W of the questions,
tr((D^(1/2) W'W D^(1/2))^(1/2))^2 / tr(D) is at most the squared error of any strategy with columns of length 1.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

import sfumato as sf
from sfumato.kernel.certify import certify

NORMAL = 1.959963984540054  # standard deviations: the margin of a normal variable at 95 %
ADULT = (9, 16, 7, 15, 6, 5, 2, 42)  # values of the categorical columns of the Adult data set
DOMAINS = {"Adult's 8 categories": ADULT, "10 yes-or-no columns": (2,) * 10, "3 columns of 4, 30 and 100": (4, 30, 100)}
PERIODS = {"12 months": 12, "36 months": 36, "52 weeks": 52, "365 days": 365}
RANGES = (10, 30, 100)  # random ranges of 0 to 119
RUNNING = "SELECT k, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY k) AS r FROM t GROUP BY k"


@dataclass(frozen=True, slots=True)
class WorkloadError:
    """A workload: our error, that of plain noise, and the least that is possible."""

    what: str
    ours: float
    plain: float
    best: float

    @property
    def ratio(self) -> float:
        return self.ours / self.best


def list_workloads() -> list[WorkloadError]:
    """The workloads of this page, in its order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        running = [_measure_running(what, size) for what, size in PERIODS.items()]
        return [*_list_marginals(), *running, *map(_measure_ranges, RANGES)]


def _protect(sizes: Sequence[int]) -> "sf.curator.Curator":
    names = [f"c{place}" for place in range(len(sizes))]
    frame = pd.DataFrame({name: ["v0"] for name in names})
    columns = {
        name: sf.Category([f"v{value}" for value in range(size)], nullable=False)
        for name, size in zip(names, sizes, strict=True)
    }
    budget = sf.Budget(epsilon=9, delta=1e-6, accounting="zcdp")
    return sf.protect(frame, name="t", unit=sf.ROW, columns=columns, budget=budget)


def _list_marginals() -> list[WorkloadError]:
    found = []
    for domain, sizes in DOMAINS.items():
        for most in (1, 2, 3):
            sets = [keys for size in range(1, most + 1) for keys in combinations(range(len(sizes)), size)]
            found.append(_measure_marginals(f"{domain}: tables of up to {most}", sizes, sets))
    return found


def _measure_marginals(what: str, sizes: Sequence[int], sets: Sequence[tuple[int, ...]]) -> WorkloadError:
    lists = [", ".join(f"c{key}" for key in keys) for keys in sets]
    with _protect(sizes) as table:
        questions = [" ".join(("SELECT", keys, ", COUNT(*) AS n FROM t GROUP BY", keys)) for keys in lists]
        plan = table.plan(questions, rho=1)
    (group,) = plan.together
    ours = math.sqrt(np.mean([(margins["n"] / NORMAL) ** 2 for margins in group.margins]))
    total = 0.0
    closure = {part for keys in sets for size in range(len(keys) + 1) for part in combinations(keys, size)}
    for part in closure:  # the eigenvalues of the workload, each with its multiplicity
        value = sum(
            1 / math.prod(sizes[key] for key in keys) * _count_others(sizes, keys)
            for keys in sets
            if set(part) <= set(keys)
        )
        total += math.sqrt(value) * math.prod(sizes[key] - 1 for key in part)
    best = math.sqrt(total**2 / math.prod(sizes) / 2 / len(sets))
    return WorkloadError(what, ours, math.sqrt(len(sets) / 2), best)


def _count_others(sizes: Sequence[int], keys: tuple[int, ...]) -> int:
    return math.prod(size for place, size in enumerate(sizes) if place not in keys)


def _measure_running(what: str, size: int) -> WorkloadError:
    frame = pd.DataFrame({"k": [1]})
    budget = sf.Budget(epsilon=9, delta=1e-6, accounting="zcdp")
    with sf.protect(frame, name="t", unit=sf.ROW, columns={"k": sf.Integer(1, size)}, budget=budget) as table:
        plan = table.preview(RUNNING, rho=1)._details.planned.plan
    (measurement,), (certified,) = plan.measurements, certify(plan).measurements
    (matrix,) = measurement.quantity.matrices
    inverse = np.linalg.inv(np.array(matrix, float))
    shown = np.vstack([np.eye(size), np.tril(np.ones((size, size)))])
    ours = math.sqrt(float(certified.noise.variance) * ((shown @ inverse) ** 2).sum() / len(shown))
    plain = math.sqrt((shown**2).sum() / len(shown) / 2)
    return WorkloadError(f"Groups and running totals of {what}", ours, plain, math.sqrt(_bound(shown) / len(shown) / 2))


def _measure_ranges(count: int) -> WorkloadError:
    draw = np.random.default_rng(count)
    ends = sorted({tuple(sorted(draw.choice(120, 2, replace=False).tolist())) for _ in range(count)})
    where = [f"k BETWEEN {low} AND {high}" for low, high in ends]
    budget = sf.Budget(epsilon=9, delta=1e-6, accounting="zcdp")
    columns = {"k": sf.Integer(0, 119)}
    with sf.protect(pd.DataFrame({"k": [1]}), name="t", unit=sf.ROW, columns=columns, budget=budget) as table:
        (group,) = table.plan([" ".join(("SELECT COUNT(*) AS n FROM t WHERE", one)) for one in where], rho=1).together
    ours = math.sqrt(np.mean([(margins["n"] / NORMAL) ** 2 for margins in group.margins]))
    shown = np.array([[low <= value <= high for value in range(120)] for low, high in ends], float)
    pieces = np.unique(shown[:, shown.any(axis=0)], axis=1)
    best = math.sqrt(_bound(pieces) / len(ends) / 2)
    return WorkloadError(f"{len(ends)} random ranges of 120 values", ours, math.sqrt(len(ends) / 2), best)


def _bound(shown: np.ndarray) -> float:
    """A lower bound of the squared error of any strategy with columns of length 1."""
    wanted = shown.T @ shown
    weights, best = np.sqrt(wanted.diagonal()), 0.0
    for _ in range(30):
        root = np.sqrt(weights)
        values, vectors = np.linalg.eigh(root[:, None] * wanted * root)
        square_root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        best = max(best, float(square_root.trace() ** 2 / weights.sum()))
        weights = square_root.diagonal() ** 2 / weights
    return best
