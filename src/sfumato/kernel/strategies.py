"""Strategies: integer queries over all cells of a plan at once, from which answers are reconstructed after the release.

A strategy is the Kronecker product of one square integer matrix for each key. Its noise is paid for by the columns of
that product: what one unit adds to one cell moves the queries along the cell's column.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import KernelFault

Matrix = tuple[tuple[int, ...], ...]
MOST_VALUES = 1 << 10  # of a key: rows and columns of its matrix
MOST_ENTRY = 1 << 20  # so that sums of products of entries are whole numbers below 2**53, which doubles add exactly
SAFE = 1 << 62


def check_matrices(matrices: Sequence[Matrix], sizes: Sequence[int]) -> None:
    """Refuse matrices that are not square, or not of the keys' numbers of values, or of too large numbers.

    Claim: K-80. What passes has one row and one column for each value of its key, and entries that add up exactly.
    Checked by: tests/kernel/test_strategies.py::test_strategies_that_cannot_be
    """
    if len(matrices) != len(sizes):
        raise KernelFault("A strategy has a matrix for each key.")
    for matrix, size in zip(matrices, sizes, strict=True):
        entries = {type(entry) for row in matrix for entry in row}
        if not len(matrix) == size <= MOST_VALUES or {len(row) for row in matrix} != {size} or entries != {int}:
            raise KernelFault("A strategy has a square matrix of integers for each key.")
        if max(abs(entry) for row in matrix for entry in row) > MOST_ENTRY:
            raise KernelFault("The numbers of a strategy are too large.")


def bound_columns(matrices: Sequence[Matrix]) -> tuple[int, int, int]:
    """Of the columns of the Kronecker product: the largest L1 and squared L2 norms, and the least product of two.

    Claim: K-80. The first two are those norms; no two columns, and no column and itself, have a smaller inner product
        than the third, which is at most 0.
    Requires: matrices that check_matrices accepts.
    Checked by: tests/kernel/test_strategies.py::test_columns_are_those_of_the_whole_matrix
    """
    factors = [_bound_factor(matrix) for matrix in matrices]
    ends = {1}
    for _, largest, least in factors:
        ends = {end * bound for end in ends for bound in (least, largest)}
    return prod(one for one, _, _ in factors), prod(two for _, two, _ in factors), min(0, *ends)


@lru_cache(maxsize=256)
def _bound_factor(matrix: Matrix) -> tuple[int, int, int]:
    """The same for one matrix. No inner product is larger than the largest squared norm."""
    entries = np.array(matrix, np.float64)
    products = entries.T @ entries  # exact: whole numbers below 2**53
    return int(np.abs(entries).sum(axis=0).max()), int(products.diagonal().max()), int(products.min())


def mix_cells(cells: Sequence[int], matrices: Sequence[Matrix]) -> list[int]:
    """The queries of the strategy: the Kronecker product of the matrices times the cells, exactly.

    Claim: K-80. The cells are in the order of itertools.product over the keys' values, and so are the queries.
    Checked by: tests/kernel/test_strategies.py::test_queries_are_the_product_with_the_cells
    """
    grown = prod(max(sum(map(abs, row)) for row in matrix) for matrix in matrices)  # of the largest cell, at most
    fits = max(map(abs, cells), default=0) * max(grown, 1) < SAFE
    mixed: npt.NDArray[Any] = np.array(cells, np.int64 if fits else object)
    mixed = mixed.reshape([len(matrix) for matrix in matrices])
    for axis, matrix in enumerate(matrices):
        turned = np.array(matrix, mixed.dtype) @ np.moveaxis(mixed, axis, 0).reshape(len(matrix), -1)
        shape = (len(matrix), *(size for place, size in enumerate(mixed.shape) if place != axis))
        mixed = np.moveaxis(turned.reshape(shape), 0, axis)
    return [int(query) for query in mixed.ravel()]
