"""Sums of a value and its noise that stay within 64 bits: they are clamped, never wrapped."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato.kernel.samplers import IntArray

LARGEST = (1 << 63) - 1


def add_saturating(values: npt.NDArray[np.int64], noise: IntArray) -> npt.NDArray[np.int64]:
    """values + noise, clamped to plus or minus LARGEST where the sum does not fit.

    Claim: K-13. Equal to the clamped exact sum: post-processing of values + noise.
    Requires: |values| <= LARGEST (to_grid).
    Relies on: two's complement addition.
    Checked by: tests/kernel/test_grid.py::test_addition_saturates
    """
    if noise.dtype == object:
        pairs = zip(values.tolist(), noise.tolist(), strict=True)
        return np.array([saturate(value + more) for value, more in pairs], np.int64)
    total = values + noise
    wrapped = (values ^ total) & (noise ^ total) < 0
    if wrapped.any():
        total[wrapped] = np.where(values[wrapped] < 0, -LARGEST, LARGEST)
    return np.maximum(total, -LARGEST)


def saturate(total: int) -> int:
    """The integer itself, clamped to plus or minus LARGEST.

    Claim: K-13. Post-processing of `total`.
    Checked by: tests/kernel/test_grid.py::test_addition_saturates
    """
    return max(-LARGEST, min(LARGEST, total))


def saturate_cells(cells: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The integers of an engine, each clamped to plus or minus LARGEST.

    Claim: K-13. Post-processing of the integers, one by one.
    Checked by: tests/kernel/test_grid.py::test_cells_saturate
    """
    if isinstance(cells, np.ndarray) and cells.dtype == np.int64:
        return np.maximum(cells, -LARGEST)
    return np.array([saturate(int(value)) for value in cells], np.int64)
