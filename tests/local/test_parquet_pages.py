"""The size of a Parquet file is bounded by its pages' own headers, which its decoder obeys, and not by its footer."""

import io
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from make_vectors import FixedKey

from sfumato.errors import InvalidParameter
from sfumato.local.collect import report_files
from sfumato.local.collect.parquet_pages import UnboundedPages, bound_row_group, read_page_header
from sfumato.local.collect.report_files import make_report_schema, read_reports
from sfumato.local.survey.new_survey import new_survey

PEOPLE = 500
LONG = 40_000_000
MOST = 1_000_000
MANIFEST = new_survey(
    "Which?", epsilon=1, key=FixedKey(), labels=[f"site {number}" for number in range(40)], mechanism="oue"
).manifest
ROWS = [b"\0" * 5] * PEOPLE


def write(path, reports, **options):
    schema = make_report_schema(MANIFEST)
    ids = [os.urandom(16) for _ in reports]
    columns = [[MANIFEST.id] * len(ids), [0] * len(ids), ids, reports]
    table = pa.table([pa.array(part, field.type) for part, field in zip(columns, schema, strict=True)], schema=schema)
    pq.write_table(table, path, compression="zstd", **options)
    return path


def write_varint(number):
    number, written = 2 * number, b""
    while number > 127:
        number, written = number >> 7, written + bytes([number & 127 | 128])
    return written + bytes([number])


def understate(path, stated):
    """Write smaller sizes into the footer, in as many bytes."""
    group = pq.ParquetFile(path).metadata.row_group(0)
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:]
    for size in {group.total_byte_size, *(group.column(place).total_uncompressed_size for place in range(4))}:
        if size > stated:
            assert len(write_varint(size)) == len(write_varint(stated))
            footer = footer.replace(write_varint(size), write_varint(stated))
    path.write_bytes(data[:start] + footer)
    assert pq.ParquetFile(path).metadata.row_group(0).total_byte_size == stated


@pytest.mark.parametrize("options", [{"use_dictionary": False}, {}, {"data_page_version": "2.0"}])
def test_a_footer_that_understates_its_pages_is_refused(tmp_path, monkeypatch, options):
    monkeypatch.setattr(report_files, "MOST_DECODED", 20_000_000)
    path = write(tmp_path / "x.parquet", [b"\0" * LONG, *ROWS[1:]], dictionary_pagesize_limit=2**30, **options)
    assert path.stat().st_size < 100_000
    understate(path, 18_000_000)
    with pytest.raises(InvalidParameter, match="grows much more"):
        list(read_reports(MANIFEST, path))


def test_values_that_continue_each_other_are_refused(tmp_path):
    """Five hundred values of a megabyte each, in a page of a megabyte."""
    reports = [b"\0" * MOST + bytes([number % 256, number // 256]) for number in range(PEOPLE)]
    path = write(tmp_path / "x.parquet", reports, use_dictionary=False, column_encoding={"report": "DELTA_BYTE_ARRAY"})
    assert pq.ParquetFile(path).metadata.row_group(0).column(3).total_uncompressed_size < 2 * MOST
    with pytest.raises(InvalidParameter, match="DELTA_BYTE_ARRAY"):
        list(read_reports(MANIFEST, path))


@pytest.mark.parametrize(
    "options",
    [
        {}, {"use_dictionary": False}, {"data_page_version": "2.0"}, {"row_group_size": 100}, {"data_page_size": 200},
        {"use_dictionary": False, "column_encoding": {"period": "DELTA_BINARY_PACKED"}},
        {"store_schema": False}, {"write_page_checksum": True}, {"write_page_index": True},
    ],
)  # fmt: skip
def test_usual_files_are_read(tmp_path, options):
    path = write(tmp_path / "x.parquet", ROWS, **options)
    assert sum(len(batch.ids) for batch in read_reports(MANIFEST, path)) == PEOPLE


def test_the_bound_is_what_the_pages_have(tmp_path):
    path = write(tmp_path / "x.parquet", ROWS, use_dictionary=False)
    group = pq.ParquetFile(path).metadata.row_group(0)
    with path.open("rb") as file:
        bound_row_group(file, group, group.total_byte_size)
        with pytest.raises(UnboundedPages):
            bound_row_group(file, group, group.total_byte_size - 1)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x15", b"\x15\x80", b"\x19\x00\x00", b"\x1c" * 20 + b"\0" * 20, b"\x15" + b"\xff" * 20, b"\x18\xff\x7f"],
)
def test_a_header_that_is_none_is_refused(data):
    with pytest.raises(UnboundedPages):
        read_page_header(data)


def test_a_damaged_file_is_refused(tmp_path):
    path = write(tmp_path / "x.parquet", ROWS)
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        try:
            assert sum(len(batch.ids) for batch in read_reports(MANIFEST, path)) <= PEOPLE
        except InvalidParameter:
            continue


def test_pages_beyond_the_file_are_refused(tmp_path):
    path = write(tmp_path / "x.parquet", ROWS)
    group = pq.ParquetFile(path).metadata.row_group(0)
    with pytest.raises(UnboundedPages):
        bound_row_group(io.BytesIO(path.read_bytes()[:30]), group, MOST)
