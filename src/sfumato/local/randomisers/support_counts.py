"""Count, for every category at once, how many reports support it."""

from functools import lru_cache
from typing import assert_never

import numpy as np

from sfumato.local.mechanisms.binary_fields import (
    Elements,
    combine_basis,
    compute_low_bit_form,
    invert_matrix,
    multiply_by_powers,
    sum_basis,
)
from sfumato.local.mechanisms.hadamard import Hadamard
from sfumato.local.mechanisms.hashing import Hashing
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.subset import Subset
from sfumato.local.mechanisms.two_stage import TwoStage
from sfumato.local.mechanisms.unary import Unary
from sfumato.local.randomisers.category_tables import CategoryTable
from sfumato.local.randomisers.report_forms import CELLS_AT_ONCE, BitRows, Counts, Reports

_AT_ONCE = 1 << 22  # reports that are sorted together: memory use does not grow with the number of reports


def count_supports(table: CategoryTable, reports: Reports) -> Counts:
    """The number of reports that support each category."""
    match table:
        case Kary(k):
            return np.bincount(reports, minlength=k)
        case Unary(k) | Subset(k):
            return BitRows(k).count_ones(reports)
        case Hashing():
            return _count_hashes(table, reports)
        case Hadamard(k):
            # the transform gives (number of +1) - (number of -1) for every row
            histogram = np.bincount(reports, minlength=table.columns)
            return (reports.size + transform(histogram)[1 : k + 1]) >> 1
        case TwoStage(permanent):
            return count_supports(permanent, reports)
        case _:
            assert_never(table)


def transform(values: Counts) -> Counts:
    """The Walsh-Hadamard transform along the last axis, in whole numbers.

    Entry x of the result is the sum over y of values[y] * (-1)**(number of bits set in x & y).
    """
    size, half = values.shape[-1], 1
    result = values.astype(np.int64)
    while half < size:
        pairs = result.reshape(-1, 2, half)
        result = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1)
        half *= 2
    return result.reshape(values.shape)


def _count_hashes(table: Hashing, reports: Reports) -> Counts:
    """How many reports (a, y) have hash(a, v) = y, for every v.

    That is 1/g times the sum, over masks u of t bits and over reports, of (-1)**(u . (hash(a, v) + y)). The bits
    that u selects of a product are the lowest bit of c_u times the product, for an element c_u of the field. So all
    masks fold into one array over the field, and one transform of it gives every v.
    """
    seeds, bits = 1 << table.seed_bits, table.hash_bits
    folded = np.zeros(seeds, np.int64)
    if seeds << bits <= CELLS_AT_ONCE:
        _fold_seeds(table, reports, 0, seeds, folded)
    else:
        for start in range(0, reports.size, _AT_ONCE):
            ordered = np.sort(reports[start : start + _AT_ONCE])
            block = max(1, CELLS_AT_ONCE >> bits)
            firsts = np.arange(0, seeds, block)
            edges = [*np.searchsorted(ordered, firsts << bits).tolist(), ordered.size]
            for first, low, high in zip(firsts.tolist(), edges, edges[1:], strict=False):
                if low < high:
                    _fold_seeds(table, ordered[low:high] - (first << bits), first, block, folded)
    return transform(folded)[_transform_places(table.polynomial)[: table.k]] >> bits


def _fold_seeds(table: Hashing, reports: Reports, first: int, block: int, folded: Counts) -> None:
    """Add the reports of the seeds first .. first + block - 1; report codes are relative to the first seed."""
    histogram = np.bincount(reports, minlength=block << table.hash_bits).reshape(block, table.buckets)
    places = _mask_places(table, first, block)
    signed = transform(histogram).reshape(-1)
    folded += np.bincount(places, signed, folded.size).astype(np.int64)  # exact below 2**53


def _mask_places(table: Hashing, first: int, block: int) -> Counts:
    """c_u * a for the seeds a = first .. first + block - 1 and all masks u: linear in the bits of both."""
    places = np.zeros((block, 1), np.uint64)
    for element in _list_single_bit_elements(table.polynomial, table.hash_bits):
        basis = multiply_by_powers(element, table.polynomial.bit_length() - 1, table.polynomial)
        own = combine_basis(basis[: (block - 1).bit_length()]) ^ np.uint64(sum_basis(basis, first))
        places = np.concatenate((places, places ^ own[:, None]), axis=1)
    return places.reshape(-1).astype(np.int64)


@lru_cache(maxsize=16)
def _transform_places(polynomial: int) -> Elements:
    """The place in the transform that holds the sum for each v."""
    return combine_basis(compute_low_bit_form(polynomial))


@lru_cache(maxsize=16)
def _list_single_bit_elements(polynomial: int, hash_bits: int) -> list[int]:
    """c_u for the masks u of a single bit; c_u is linear in u."""
    return invert_matrix(compute_low_bit_form(polynomial))[:hash_bits]
