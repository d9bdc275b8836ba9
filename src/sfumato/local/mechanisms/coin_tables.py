"""Finite tables of probabilities in whole units of 2**-32: their coins, their draws, and the loss that they have.

A local randomiser is such a table: anyone who has the published table can compute its epsilon. Part of the trusted
perimeter.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.coins import BoolArray
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.exact import enclose_log, round_up

UNITS = 1 << 32
_BITS = 256


def flip_units(units: int | npt.NDArray[np.int64], size: int, entropy: Entropy) -> BoolArray:
    """Flip `size` coins, each heads with probability units / 2**32: one number for all, or one for each.

    Claim: K-40. Flips are independent, and each is heads with exactly its probability; four bytes are read for each.
    Requires: 0 <= units <= 2**32 (checked here).
    Relies on: K-04 (fair bytes).
    Checked by: tests/local/test_coin_tables.py::test_coins_are_exact
    """
    if not np.logical_and(np.greater_equal(units, 0), np.less_equal(units, UNITS)).all():
        raise KernelFault("A coin has from 0 to 2**32 units.")
    return entropy.take(4 * size).view("<u4") < units


def flip_rows(places: npt.NDArray[np.int64], one: int, zero: int, width: int, entropy: Entropy) -> BoolArray:
    """For each place, a row of `width` coins: the one at the place has `one` units of 2**-32, the others `zero`.

    Claim: K-40. Flips are independent, and each is heads with exactly its probability; four bytes are read for each.
    Requires: 0 <= one, zero <= 2**32 (checked here); places from 0 to width - 1 (caller).
    Relies on: K-04 (fair bytes).
    Checked by: tests/local/test_coin_tables.py::test_coins_are_exact
    """
    if not (0 <= one <= UNITS and 0 <= zero <= UNITS):
        raise KernelFault("A coin has from 0 to 2**32 units.")
    words = entropy.take(4 * width * places.size).view("<u4").reshape(places.size, width)
    rows = np.arange(places.size)
    heads: BoolArray = words < zero
    heads[rows, places] = words[rows, places] < one
    return heads


def draw_rows(table: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], entropy: Entropy) -> npt.NDArray[np.int64]:
    """For each entry of `rows`, draw a column of that row of the table: column c with table[row, c] / 2**32.

    Claim: K-41. Draws are independent, and each has exactly its row's law; four bytes are read for each.
    Requires: every row has entries >= 0 that sum to 2**32 (checked here); rows name rows of the table (caller).
    Relies on: K-04 (fair bytes).
    Checked by: tests/local/test_coin_tables.py::test_rows_are_drawn_exactly
    """
    if table.ndim != 2 or bool((table < 0).any()) or bool((table.sum(axis=1) != UNITS).any()):
        raise KernelFault("Each row of a table has entries of 0 or above that sum to 2**32.")
    ends = np.cumsum(table, axis=1) + np.arange(len(table))[:, None] * UNITS  # one staircase, row upon row
    words = entropy.take(4 * rows.size).view("<u4").astype(np.int64)
    columns = np.searchsorted(ends.reshape(-1), words + rows * UNITS, side="right").astype(np.int64)
    columns -= rows * table.shape[1]
    return columns


def draw_uniform_subsets(places: int, chosen: int, fewer: BoolArray, entropy: Entropy) -> BoolArray:
    """For each entry of `fewer`, an evenly drawn set of `chosen` of the places, or of chosen - 1 where it is True.

    The result has shape (entries, places). Each place is given a random word; the least words are the chosen. A row
    in which the words at either border are equal is drawn again.

    Claim: K-42. Rows are independent, and every set of the wanted size is equally likely. What is read, and how often
        a row is drawn again, does not depend on `fewer`.
    Requires: 1 <= chosen <= places (checked here).
    Relies on: K-04 (fair bytes).
    Checked by: tests/local/test_coin_tables.py::test_subsets_are_even
    """
    if not 1 <= chosen <= places:
        raise KernelFault("draw_uniform_subsets takes from 1 place to all of them.")
    subsets = np.empty((fewer.size, places), np.bool_)
    todo = np.arange(fewer.size)
    while todo.size:
        words = entropy.take(4 * places * todo.size).view("<u4").reshape(todo.size, places)
        order = np.sort(words, axis=1)
        last = order[:, chosen - 1]
        tied = np.zeros(todo.size, np.bool_)
        if chosen > 1:
            tied |= order[:, chosen - 2] == last
        if chosen < places:
            tied |= order[:, chosen] == last
        subsets[todo] = (words < last[:, None]) | ((words == last[:, None]) & ~fewer[todo, None])
        todo = todo[tied]
    return subsets


@lru_cache(maxsize=1024)
def bound_ratio_loss(ratio: Fraction) -> Decimal:
    """The epsilon of a table whose most telling report is `ratio` times as likely for one answer as for another.

    Claim: K-43. e**result >= max(ratio, 1/ratio), and the result is above the logarithm by one part in 10**29 or less.
    Requires: ratio > 0 (checked here).
    Relies on: K-01.
    Checked by: tests/local/test_coin_tables.py::test_losses_are_rounded_up
    """
    if ratio <= 0:
        raise InvalidParameter("table", "must have no zero entry", "one", "Its epsilon would be infinite.")
    return round_up(Fraction(max(enclose_log(max(ratio, 1 / ratio), _BITS)[1], 0), 1 << _BITS))


def bound_rows_loss(rows: Sequence[Sequence[int]]) -> Decimal:
    """The epsilon of a table of inputs (rows) and reports (columns), in units of 2**-32.

    Claim: K-43. No report is more than e**result times as likely for one row as for another.
    Requires: every entry is 1 or above, and every row sums to 2**32 (checked here).
    Relies on: K-01.
    Checked by: tests/local/test_coin_tables.py::test_losses_are_rounded_up
    """
    if any(min(row) < 1 for row in rows):
        raise InvalidParameter("table", "must have no zero entry", "one", "Its epsilon would be infinite.")
    if any(sum(row) != UNITS for row in rows) or len({len(row) for row in rows}) != 1:
        raise InvalidParameter("table", "must have rows that sum to 2**32", "other rows")
    return bound_ratio_loss(max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True)))
