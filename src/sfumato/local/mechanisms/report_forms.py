"""The two forms of a report: a whole number, or a row of bits. Arrays in bulk, small JSON values one at a time."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.grid import plain_array

Reports = npt.NDArray[Any]
Counts = npt.NDArray[np.int64]

CELLS_AT_ONCE = 1 << 18  # rows of bits are worked on in blocks that stay in the cache
_HEX = re.compile(r"[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class Codes:
    """Reports 0 .. count - 1: an int64 array of one entry a person; in JSON, a whole number."""

    count: int

    @property
    def dtype(self) -> npt.DTypeLike:
        return np.int64

    @property
    def bits(self) -> int:
        return (self.count - 1).bit_length()

    def sift(self, reports: object) -> tuple[Reports, int]:
        """The well-formed reports of an array, and how many others there were."""
        array = plain_array(reports, "reports").reshape(-1)
        if array.dtype.kind not in "iu":
            return np.empty(0, np.int64), array.size
        if array.size and not (int(array.min()) >= 0 and int(array.max()) < self.count):
            kept = array[(array >= 0) & (array < self.count)]
        else:
            kept = array
        return kept.astype(np.int64, copy=False), array.size - kept.size

    def encode(self, reports: Reports) -> list[int]:
        """Reports as JSON values."""
        return [int(each) for each in np.asarray(reports).reshape(-1)]

    def decode(self, values: Iterable[object]) -> tuple[Reports, int]:
        """JSON values as an array of reports, and how many were malformed."""
        everything = list(values)
        good = [each for each in everything if type(each) is int and 0 <= each < self.count]
        return np.array(good, np.int64), len(everything) - len(good)

    def one(self, report: Reports) -> int:
        """The report of a single person as a plain value."""
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
        """The well-formed reports of an array, and how many others there were."""
        array = plain_array(reports, "reports")
        if array.ndim == 1 and array.size == self.bytes:
            array = array.reshape(1, -1)
        if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != self.bytes:
            return np.empty((0, self.bytes), np.uint8), len(array) if array.ndim else 1
        step = max(1, CELLS_AT_ONCE // self.bytes)
        bad = [start + self._malformed(array[start : start + step]) for start in range(0, len(array), step)]
        wrong = np.concatenate(bad) if bad else np.empty(0, np.int64)
        return np.delete(array, wrong, axis=0) if wrong.size else array, wrong.size

    def _malformed(self, rows: Reports) -> Counts:
        """Which rows have bits beyond the last, or another number of bits."""
        wrong = rows[:, -1] >> self.width % 8 != 0 if self.width % 8 else np.zeros(len(rows), np.bool_)
        if self.ones is not None:
            wrong |= np.bitwise_count(rows).sum(axis=1, dtype=np.int64) != self.ones
        return np.flatnonzero(wrong)

    def encode(self, reports: Reports) -> list[str]:
        """Reports as JSON values."""
        return [bytes(row).hex() for row in np.asarray(reports).reshape(-1, self.bytes)]

    def decode(self, values: Iterable[object]) -> tuple[Reports, int]:
        """JSON values as an array of reports, and how many were malformed."""
        everything = list(values)
        length = 2 * self.bytes
        good = [each for each in everything if type(each) is str and len(each) == length and _HEX.fullmatch(each)]
        rows = np.frombuffer(bytes.fromhex("".join(good)), np.uint8).reshape(-1, self.bytes)
        kept, malformed = self.sift(rows)
        return kept, malformed + len(everything) - len(good)

    def one(self, report: Reports) -> Reports:
        """The report of a single person: its bytes."""
        row: Reports = report[0]
        return row

    def count_ones(self, reports: Reports) -> Counts:
        """How many reports have each bit set."""
        total = np.zeros(self.width, np.int64)
        step = max(1, CELLS_AT_ONCE // self.width)
        for start in range(0, len(reports), step):
            bits = np.unpackbits(reports[start : start + step], axis=1, count=self.width, bitorder="little")
            total += bits.sum(axis=0, dtype=np.int64)
        return total


Form = Codes | BitRows


def well_formed(form: Form, reports: object) -> Reports:
    """All reports of an array; refused if one of them cannot have come from this randomiser."""
    kept, malformed = form.sift(reports)
    if malformed:
        raise InvalidParameter(
            "reports",
            "must have been made by this randomiser",
            f"{malformed} that cannot have been",
            "form.sift(reports) keeps the well-formed ones and counts the others.",
        )
    return kept
