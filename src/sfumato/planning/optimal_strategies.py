"""The best queries for a set of linear questions about the values of one key: a square matrix of integers.

Questions with the matrix W are answered from queries A as W A^-1 (A x + noise). Their expected squared errors add up to
the noise's variance times tr(W'W (A'A)^-1), and the noise is paid for by the columns of A.

- Gaussian noise is paid for by the longest column. The best A'A with columns of length 1 is X = R^-1 (R W'W R)^(1/2)
  R^-1, where R^2 is diagonal and the fixed point of R^2 = diag((R W'W R)^(1/2)). For every diagonal R^2 = D,
  tr((R W'W R)^(1/2))^2 / tr(D) is a lower bound of any strategy's error, so the search ends where the two are close.
- Laplace noise is paid for by the largest column in L1. A tree of differences (a Haar basis) is used, with weights of
  its levels in closed form.

No data is read here, and no privacy proof depends on it: the kernel bounds the columns of the finished integers.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato.kernel.strategies import Matrix

Floats = npt.NDArray[np.float64]
STEPS = 1 << 12  # entries are rounded to so many steps of a column's length
CLOSE = 2e-3  # the error of a found strategy is above the least one by this share at most
MOST_ROUNDS = 100
COARSE = 48  # values: larger keys begin with the solution for fewer values


@dataclass(frozen=True, slots=True)
class FoundStrategy:
    """A square integer matrix, and its total squared error as a share of that of plain noise in every cell."""

    matrix: Matrix
    share: float


def measure_share(matrix: Floats, wanted: Floats, *, gaussian: bool) -> float:
    """The total squared error of a strategy, as a share of that of plain noise in every cell. `wanted` is W'W."""
    paid = (matrix**2).sum(axis=0).max() if gaussian else np.abs(matrix).sum(axis=0).max() ** 2
    inverse = np.linalg.inv(matrix)
    return float(paid * (inverse * (wanted @ inverse)).sum() / np.trace(wanted))


def find_gaussian_strategy(wanted: Floats, start: Floats | None = None) -> tuple[Floats, Floats, float]:
    """The best A for Gaussian noise, the diagonal it was found with, and a lower bound of any strategy's error."""
    scale = np.sqrt(wanted.diagonal()) if start is None else start
    for _ in range(MOST_ROUNDS):
        root = np.sqrt(scale)
        values, vectors = np.linalg.eigh(root[:, None] * wanted * root)
        found = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        total, lengths = float(found.trace()), found.diagonal() / scale
        least = total**2 / float(scale.sum())
        if total * lengths.max() <= (1 + CLOSE) * least:
            break
        scale = scale * lengths**2  # twice the step of the fixed point: half as many rounds
    gram = found / root[:, None] / root
    return np.asarray(np.linalg.cholesky(gram / gram.diagonal().max()).T), scale, least


def find_laplace_strategy(wanted: Floats) -> Floats:
    """A tree of differences between halves, and the total; its levels are weighted for the least error."""
    size = len(wanted)
    rows, levels = [np.ones(size)], [0]
    parts = [(0, size, 1)]
    for begin, end, level in parts:
        if end - begin > 1:
            middle = (begin + end + 1) // 2
            row = np.zeros(size)
            row[begin:middle], row[middle:end] = 1.0, -1.0
            rows.append(row)
            levels.append(level)
            parts += [(begin, middle, level + 1), (middle, end, level + 1)]
    tree = np.array(rows)
    inverse = np.linalg.inv(tree)
    errors = (inverse * (wanted @ inverse)).sum(axis=0)
    weights = np.bincount(levels, errors) ** (1 / 3)  # the least sum of errors/weight**2 where the weights add up to 1
    return np.asarray((weights / weights.sum())[levels][:, None] * tree)


def round_strategy(matrix: Floats) -> Matrix:
    """The matrix in whole steps of its longest column."""
    longest = math.sqrt(float((matrix**2).sum(axis=0).max()))
    return tuple(tuple(map(int, row)) for row in np.rint(matrix * (STEPS / longest)))


def make_running_wanted(size: int, shown: int, running: int, averaged: int = 0) -> Floats:
    """W'W of `shown` columns with every value's cell, `running` with running totals, `averaged` with their averages."""
    totals = np.tril(np.ones((size, size)))
    averages = totals / np.arange(1, size + 1)[:, None]
    return np.asarray(shown * np.eye(size) + running * (totals.T @ totals) + averaged * (averages.T @ averages))


@lru_cache(maxsize=64)
def find_running_strategy(size: int, shown: int, running: int, averaged: int = 0, *, gaussian: bool) -> FoundStrategy:
    """The best strategy for the cells of a key (in `shown` columns), running totals and running averages over them."""
    wanted = make_running_wanted(size, shown, running, averaged)
    found = _find_running(size, shown, running, averaged)[0] if gaussian else find_laplace_strategy(wanted)
    matrix = round_strategy(found)
    return FoundStrategy(matrix, measure_share(np.array(matrix, np.float64), wanted, gaussian=gaussian))


def _find_running(size: int, shown: int, running: int, averaged: int) -> tuple[Floats, Floats]:
    start = None
    if size > COARSE:  # the solution hardly changes with the number of values, along the key
        coarse = max(size // 4, COARSE)
        _, before = _find_running(coarse, shown, running, averaged)
        start = np.interp(np.linspace(0, 1, size), np.linspace(0, 1, coarse), before)
    matrix, scale, _ = find_gaussian_strategy(make_running_wanted(size, shown, running, averaged), start)
    return matrix, scale
