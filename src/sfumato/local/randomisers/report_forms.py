"""The forms of a report: a whole number, a row of bits, or a prefix. In bulk they are arrays; alone, JSON values."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import Entropy
from sfumato.local.randomisers.prefix_rows import PrefixRows
from sfumato.number_arrays import plain_array

Reports = npt.NDArray[Any]
Counts = npt.NDArray[np.int64]

CELLS_AT_ONCE = 1 << 18  # work is done in blocks that fit the processor's cache
_HEX = re.compile(r"[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class Codes:
    """Reports 0 .. count - 1: an int64 array with one entry per person; in JSON, a whole number."""

    count: int

    @property
    def dtype(self) -> npt.DTypeLike:
        return np.int64

    @property
    def bits(self) -> int:
        return (self.count - 1).bit_length()

    def sift(self, reports: object) -> tuple[Reports, int]:
        """Return the well-formed reports of an array, and the number of the others."""
        array = plain_array(reports, "reports").reshape(-1)
        if array.dtype.kind not in "iu":
            return np.empty(0, np.int64), array.size
        if array.size and not (int(array.min()) >= 0 and int(array.max()) < self.count):
            kept = array[(array >= 0) & (array < self.count)]
        else:
            kept = array
        return kept.astype(np.int64, copy=False), array.size - kept.size

    def encode(self, reports: Reports) -> list[int]:
        """Encode reports as JSON values."""
        return [int(code) for code in np.asarray(reports).reshape(-1)]

    def decode(self, values: Iterable[object]) -> tuple[Reports, int]:
        """Decode JSON values to an array of reports, and count the malformed ones."""
        everything = list(values)
        good = [value for value in everything if type(value) is int and 0 <= value < self.count]
        return np.array(good, np.int64), len(everything) - len(good)

    def take_single(self, report: Reports) -> int:
        """Return the only report of an array as a plain value."""
        return int(report[0])


@dataclass(frozen=True, slots=True)
class BitRows:
    """Reports of `width` bits, `ones` of them set (None: any number).

    A uint8 array of shape (people, bytes), bit i of a row in byte i // 8 at place i % 8; in JSON, the bytes in hex.
    """

    width: int
    ones: int | None = None

    @property
    def dtype(self) -> npt.DTypeLike:
        return np.uint8

    @property
    def bits(self) -> int:
        return self.width

    @property
    def bytes(self) -> int:
        return -(-self.width // 8)

    def sift(self, reports: object) -> tuple[Reports, int]:
        """Return the well-formed reports of an array, and the number of the others."""
        array = plain_array(reports, "reports")
        if array.ndim == 1 and array.size == self.bytes:
            array = array.reshape(1, -1)
        if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != self.bytes:
            return np.empty((0, self.bytes), np.uint8), len(array) if array.ndim else 1
        step = max(1, CELLS_AT_ONCE // self.bytes)
        bad = [start + self._find_malformed(array[start : start + step]) for start in range(0, len(array), step)]
        wrong = np.concatenate(bad) if bad else np.empty(0, np.int64)
        return np.delete(array, wrong, axis=0) if wrong.size else array, wrong.size

    def _find_malformed(self, rows: Reports) -> Counts:
        """The indices of rows that have a bit set beyond the last, or a wrong number of bits set."""
        wrong = rows[:, -1] >> self.width % 8 != 0 if self.width % 8 else np.zeros(len(rows), np.bool_)
        if self.ones is not None:
            wrong |= np.bitwise_count(rows).sum(axis=1, dtype=np.int64) != self.ones
        return np.flatnonzero(wrong)

    def encode(self, reports: Reports) -> list[str]:
        """Encode reports as JSON values."""
        return [bytes(row).hex() for row in np.asarray(reports).reshape(-1, self.bytes)]

    def decode(self, values: Iterable[object]) -> tuple[Reports, int]:
        """Decode JSON values to an array of reports, and count the malformed ones."""
        everything = list(values)
        length = 2 * self.bytes
        good = [text for text in everything if type(text) is str and len(text) == length and _HEX.fullmatch(text)]
        rows = np.frombuffer(bytes.fromhex("".join(good)), np.uint8).reshape(-1, self.bytes)
        kept, malformed = self.sift(rows)
        return kept, malformed + len(everything) - len(good)

    def take_single(self, report: Reports) -> Reports:
        """Return the only report of an array: its bytes."""
        row: Reports = report[0]
        return row

    def count_ones(self, reports: Reports) -> Counts:
        """Count, for each bit, the reports in which it is set."""
        total = np.zeros(self.width, np.int64)
        step = max(1, CELLS_AT_ONCE // self.width)
        for start in range(0, len(reports), step):
            bits = np.unpackbits(reports[start : start + step], axis=1, count=self.width, bitorder="little")
            total += bits.sum(axis=0, dtype=np.int64)
        return total


Form = Codes | BitRows | PrefixRows


def draw_in_blocks(draw: Callable[[Any, Entropy], Reports], values: Reports, form: Form, entropy: Entropy) -> Reports:
    """Draw the reports of many people in blocks."""
    reports = np.empty(len(values) if isinstance(form, Codes) else (len(values), form.bytes), form.dtype)
    step = max(1, CELLS_AT_ONCE // (form.width if isinstance(form, BitRows) else 1))
    for start in range(0, len(values), step):
        reports[start : start + step] = draw(values[start : start + step], entropy)
    return reports


def check_reports(form: Form, reports: object) -> Reports:
    """Return the reports of an array. Refuse all of them if one cannot have come from this randomiser."""
    checked, malformed = form.sift(reports)
    if malformed:
        raise InvalidParameter(
            "reports",
            "must have been made by this randomiser",
            f"{malformed} malformed",
            "form.sift(reports) returns the well-formed ones and counts the others.",
        )
    return checked
