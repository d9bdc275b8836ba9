"""Bound what a Parquet file can grow to, before anything of it is decoded.

The footer of a file states sizes, but whoever wrote the file chose them. The decoder allocates what the header of each
page states. So this module reads the headers of all pages itself, where the decoder will read them.
"""

from collections.abc import Collection
from typing import Any, BinaryIO

MOST_HEADER_BYTES = 1 << 16
MOST_DEPTH = 8
# PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY, BYTE_STREAM_SPLIT. In DELTA_BYTE_ARRAY, each value
# continues the one before it: a page of kilobytes can stand for gigabytes.
ENCODINGS = frozenset((0, 2, 3, 5, 8, 9))
_ENCODING_PLACES = ((5, 2), (7, 2), (8, 4))  # of data pages, dictionaries and data pages of version 2
_UNCOMPRESSED, _COMPRESSED = 2, 3


class UnboundedPages(Exception):
    """The pages grow too much, or cannot be read."""


def bound_row_group(
    file: BinaryIO,
    group: Any,  # noqa: ANN401 - pyarrow has no types
    most_bytes: int,
    encodings: Collection[int] = ENCODINGS,
) -> int:
    """Check that the pages of a row group have at most so many bytes when they are decoded. Returns how many."""
    total = 0
    for number in range(group.num_columns):
        chunk = group.column(number)
        place = chunk.data_page_offset
        if chunk.dictionary_page_offset is not None and 0 < chunk.dictionary_page_offset < place:
            place = chunk.dictionary_page_offset
        end = place + chunk.total_compressed_size
        while place < end:
            file.seek(place)
            header, length = read_page_header(file.read(MOST_HEADER_BYTES))
            decoded, stored = header.get(_UNCOMPRESSED), header.get(_COMPRESSED)
            if not isinstance(decoded, int) or not isinstance(stored, int) or decoded < 0 or stored < 0:
                raise UnboundedPages
            for outer, inner in _ENCODING_PLACES:
                about = header.get(outer)
                if isinstance(about, dict) and about.get(inner) not in encodings:
                    raise UnboundedPages
            total += decoded + length
            if total > most_bytes:
                raise UnboundedPages
            place += length + stored
    return total


def read_page_header(data: bytes) -> tuple[dict[int, object], int]:
    """The fields of a page's header (Thrift, compact protocol) by their numbers, and its length in bytes."""
    try:
        return _read_struct(data, 0, 0)
    except IndexError:
        raise UnboundedPages from None


def _read_struct(data: bytes, place: int, depth: int) -> tuple[dict[int, object], int]:
    if depth > MOST_DEPTH:
        raise UnboundedPages
    fields: dict[int, object] = {}
    number = 0
    while data[place]:
        step, kind = data[place] >> 4, data[place] & 15
        place += 1
        if step:
            number += step
        else:
            number, place = _read_signed(data, place)
        fields[number], place = _read_value(data, place, kind, depth)
    return fields, place + 1


def _read_value(data: bytes, place: int, kind: int, depth: int) -> tuple[object, int]:
    match kind:
        case 1 | 2:  # true and false have no bytes
            return kind == 1, place
        case 3:
            return data[place], place + 1
        case 4 | 5 | 6:
            return _read_signed(data, place)
        case 7:
            return None, place + 8
        case 8:
            length, place = _read_unsigned(data, place)
            return None, place + length
        case 12:
            return _read_struct(data, place, depth + 1)
        case _:  # lists, sets and maps: no header of a page has them
            raise UnboundedPages


def _read_signed(data: bytes, place: int) -> tuple[int, int]:
    value, place = _read_unsigned(data, place)
    return (value >> 1) ^ -(value & 1), place


def _read_unsigned(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
        if shift > 63:
            raise UnboundedPages
