"""Texts as rows of bits of one length, and back: characters of a public alphabet, or bytes of UTF-8."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.number_arguments import read_whole_number

MOST_BITS = 512
BitRow = npt.NDArray[np.uint8]  # the first bit is the highest of the first byte


@dataclass(frozen=True, slots=True)
class Words:
    """The first `length` characters of a text; with an empty alphabet, the first `length` bytes of its UTF-8.

    A character is encoded by its place in the alphabet, counted from 1; zero marks the end of the text.
    """

    length: int
    alphabet: str = ""

    def __post_init__(self) -> None:
        read_whole_number(self.length, "length", 1)
        if not isinstance(self.alphabet, str) or len(set(self.alphabet)) != len(self.alphabet):
            raise InvalidParameter("alphabet", "must be a text of different characters", describe_kind(self.alphabet))
        if self.bits > MOST_BITS:
            raise InvalidParameter("length", f"must fit {MOST_BITS} bits", "more", "Shorten it, or use an alphabet.")

    @property
    def width(self) -> int:
        return len(self.alphabet).bit_length() if self.alphabet else 8

    @property
    def bits(self) -> int:
        return self.length * self.width

    def encode(self, text: object) -> int:
        """The number whose `bits` binary digits are the text."""
        if not isinstance(text, str):
            raise InvalidParameter("values", "must be texts", describe_kind(text))
        if self.alphabet:
            codes = [self.alphabet.find(character) + 1 for character in text[: self.length]]
            if 0 in codes:
                raise InvalidParameter("values", "must use only characters of the alphabet", "another character")
        else:
            codes = list(text.encode("utf-8", "replace")[: self.length])
        number = 0
        for place in range(self.length):
            number = number << self.width | (codes[place] if place < len(codes) else 0)
        return number

    def decode(self, number: int) -> str | None:
        """The text of a number, or None if the number encodes no text."""
        mask = (1 << self.width) - 1
        codes = [number >> self.width * place & mask for place in reversed(range(self.length))]
        end = codes.index(0) if 0 in codes else self.length
        if any(codes[end:]):
            return None
        if not self.alphabet:
            try:
                return bytes(codes[:end]).decode()
            except UnicodeDecodeError:
                return bytes(codes[:end]).decode("utf-8", "ignore") if end == self.length else None
        if any(code > len(self.alphabet) for code in codes[:end]):
            return None
        return "".join(self.alphabet[code - 1] for code in codes[:end])


def pack_numbers(numbers: list[int], bits: int) -> BitRow:
    """Write numbers as rows of bits, highest bit first."""
    width = -(-bits // 8)
    shift = 8 * width - bits
    rows = b"".join((number << shift).to_bytes(width, "big") for number in numbers)
    return np.frombuffer(rows, np.uint8).reshape(len(numbers), width)
