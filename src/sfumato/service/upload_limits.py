"""Uploads that grow too much when they are read: a Parquet file of kilobytes can stand for gigabytes."""

from pathlib import Path

from sfumato.errors import InvalidParameter
from sfumato.local.collect.parquet_pages import ENCODINGS, UnboundedPages, bound_row_group

GROWTH = 16  # the most bytes of all pages, for each byte that an upload may have
MOST_ROWS_PER_BYTE = 100  # a row of a file with ids has bytes of its own; only constant columns have none
MOST_ROW_GROUPS = 1 << 16
LENGTHS_FIRST = 6  # DELTA_LENGTH_BYTE_ARRAY: the texts are in the page, one after the other


def refuse_growing_parquet(place: Path, most_upload_bytes: int) -> None:
    """Refuse a Parquet file that stands for far more than it holds, by the headers of its pages.

    Only the owner who uploads the file sees this.
    """
    import pyarrow as pa  # noqa: PLC0415 - 35 MiB that most workers never need
    from pyarrow import parquet  # noqa: PLC0415

    left = GROWTH * most_upload_bytes
    try:
        with place.open("rb") as pages:
            footer = parquet.ParquetFile(pages, thrift_container_size_limit=MOST_ROW_GROUPS).metadata
            if footer.num_rows > MOST_ROWS_PER_BYTE * place.stat().st_size:
                raise UnboundedPages
            for number in range(footer.num_row_groups):
                left -= bound_row_group(pages, footer.row_group(number), left, {*ENCODINGS, LENGTHS_FIRST})
    except UnboundedPages:
        raise InvalidParameter(
            "file",
            f"must be a Parquet file that has at most {GROWTH * most_upload_bytes >> 20} MiB when it is read",
            "one that grows more, or in an encoding that hides how much",
            "Write it again with the usual encodings (not DELTA_BYTE_ARRAY), or in parts.",
        ) from None
    except (pa.ArrowException, OSError):
        raise InvalidParameter("file", "must be a readable Parquet file", "another", "Write it again.") from None
