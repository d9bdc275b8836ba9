"""The form of a report on a prefix: a row of bytes with the group, the hash, and the seed of the hash."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.local.randomisers.word_bits import BitRow
from sfumato.number_arrays import plain_array

_HEX = re.compile(r"[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class PrefixRows:
    """The group, the reported hash, and the seed: one row of random bits for each bit of the hash.

    A seed's row has as many bits as the group's prefix, highest bit first, and then zeros up to the longest prefix.
    A uint8 array of shape (people, bytes); in JSON, the bytes in hex.
    """

    lengths: tuple[int, ...]
    hash_bits: int

    @property
    def dtype(self) -> npt.DTypeLike:
        return np.uint8

    @property
    def seed_bytes(self) -> int:
        """The number of bytes of one row of the seed."""
        return -(-self.lengths[-1] // 8)

    @property
    def bytes(self) -> int:
        return 2 + self.hash_bits * self.seed_bytes

    @property
    def bits(self) -> int:
        return 8 * self.bytes

    def sift(self, reports: object) -> tuple[BitRow, int]:
        """Return the well-formed reports of an array, and the number of the others."""
        array = plain_array(reports, "reports")
        if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != self.bytes:
            return np.empty((0, self.bytes), np.uint8), len(array) if array.ndim else 1
        good = (array[:, 0] < len(self.lengths)) & (array[:, 1] < 1 << self.hash_bits)
        lengths = np.array([*self.lengths, *[0] * (256 - len(self.lengths))])[array[:, 0]]
        ends = 8 * np.arange(1, self.seed_bytes + 1)
        beyond = (1 << np.clip(ends[None] - lengths[:, None], 0, 8)) - 1  # the bits of each byte that must be zero
        seeds = array[:, 2:].reshape(len(array), self.hash_bits, self.seed_bytes)
        good &= ~(seeds & beyond.astype(np.uint8)[:, None]).any(axis=(1, 2))
        return array[good], int(good.size - good.sum())

    def take_single(self, report: BitRow) -> BitRow:
        """Return the only report of an array: its bytes."""
        row: BitRow = report[0]
        return row

    def encode(self, reports: npt.NDArray[Any]) -> list[str]:
        """Encode reports as JSON values."""
        return [row.tobytes().hex() for row in np.asarray(reports).reshape(-1, self.bytes)]

    def decode(self, values: Iterable[object]) -> tuple[BitRow, int]:
        """Decode JSON values to an array of reports, and count the malformed ones."""
        everything, length = list(values), 2 * self.bytes
        good = [text for text in everything if type(text) is str and len(text) == length and _HEX.fullmatch(text)]
        rows = np.frombuffer(bytes.fromhex("".join(good)), np.uint8).reshape(-1, self.bytes)
        kept, malformed = self.sift(rows)
        return kept, malformed + len(everything) - len(good)
