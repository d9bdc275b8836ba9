"""One person's records may be anywhere in a file and contain any bytes. The lines of other people stay records."""

from itertools import groupby

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_records import parse_plainly, swallows_record

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.catalog.text_format import PLAIN_TEXT, TextFormat
from sfumato.errors import CatalogError
from sfumato.ingest import encodings
from sfumato.ingest import records as module
from sfumato.ingest.readers import open_source
from sfumato.ingest.source_columns import list_source_columns

DUCKDB = duckdb.connect()
HEADS = {1: b"a", 2: b"a,b", 3: b"a,b,c"}


def describe(reading=PLAIN_TEXT):
    """A table of which every column is read."""
    return Table("t", None, None, {}, public=True, reading=reading)


FINDING = b'1,"a\n2,b\n3,c\n1,d"\n'


def rows_of(path, **keys):
    """The rows of a file, or None if the load is refused."""
    try:
        with open_source(DUCKDB, describe(TextFormat(**keys)), path) as source:
            return DUCKDB.execute(f"SELECT * FROM {source.relation}").fetchall()
    except CatalogError as error:
        assert error.__context__ is None
        assert ", line " in error.message
        return None


def as_rows(found):
    return [tuple(field.decode() or None for field in fields) for fields in found]


# Fields of others, on one line: also such whose quotes fit the quotes of an unclosed field around them.
fields = st.sampled_from(
    [b"", b"1", b"b", b'"b"', b'","', b'",b,"', b'""', b'"q""q"', b'""""', b'"\r"', b'""","""', "né".encode()]
)
PIECES = st.sampled_from([b"a", b"1,", b",", b'"', b'"', b',"', b'",', b'""', b"\n", b"\r\n", b"\r", b"2,b", b"\0"])
my_bytes = st.lists(PIECES, max_size=6).map(b"".join) | st.binary(max_size=6)


@st.composite
def files(draw):
    """Parts in order: (True, bytes of the one person, whole lines) and (False, a record of another, one line)."""
    columns, end = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([b"\n", b"\r\n"]))
    record = st.lists(fields, min_size=columns, max_size=columns).map(b",".join)
    others = record.filter(lambda one: one or columns == 1).map(lambda one: (False, one + end))
    opened_quote = st.sampled_from([b'1,"a', b'1,d"', b'"', b'1,2,"', b'x"', b'1,","'])
    mine = st.tuples(my_bytes | opened_quote, st.sampled_from([end, end, b"\n"])).map(
        lambda one: (True, one[0] + one[1])
    )
    return columns, end, draw(st.lists(others | mine, min_size=1, max_size=7))


def expected(columns, end, parts, quoted_newlines):
    """Parse each part separately: my bytes and the other people's records. None if one of my parts alone is refused."""
    found = []
    for is_mine, group in groupby(parts, lambda part: part[0]):
        body = b"".join(part for _, part in group)
        records = parse_plainly(body, columns, end, quoted_newlines is not False)
        if None in records or (quoted_newlines is None and swallows_record(body, columns, end)):
            assert is_mine or (quoted_newlines is False and b"\r" in body)  # then others too are refused, by themselves
            return None
        found += records
    return as_rows(found)


AROUND = [(True, b'1,"a\n'), (False, b"2,b\n"), (False, b"3,c\n"), (True, b'1,d"\n')]


@pytest.mark.parametrize("quoted_newlines", [None, False])
@settings(max_examples=400, deadline=None)
@given(file=files())
@example(file=(2, b"\n", AROUND))
@example(file=(2, b"\r\n", [(is_mine, part.replace(b"\n", b"\r\n")) for is_mine, part in AROUND]))
@example(file=(2, b"\r\n", [(True, b'1,"a\n'), (False, b"2,b\r\n"), (True, b'1,d"\r\n')]))
@example(file=(2, b"\n", [(True, b'1,"a\n'), (False, b'2,",b,"\n'), (True, b'1,d"\n')]))
@example(file=(2, b"\n", [(True, b'1,"a\n'), (False, b'2,""\n'), (True, b'1,d"\n')]))
@example(file=(2, b"\n", [(True, b'"a\n'), (False, b'2,","\n'), (True, b'1,d"\n')]))
@example(file=(3, b"\n", [(True, b'1,"a\n'), (False, b'2,",",c\n'), (True, b'd"\n')]))
@example(file=(1, b"\n", [(True, b'"a\n'), (False, b"2\n"), (True, b'"\n')]))
@example(file=(1, b"\n", [(True, b'"a\n'), (False, b"\n"), (True, b'"\n')]))
@example(file=(2, b"\n", [(True, b'1,"a\nb"\n'), (False, b"2,b\n"), (True, b'1,"\n\n"\n')]))
def test_records_in_several_places_leave_the_lines_of_others(tmp_path_factory, quoted_newlines, file):
    """The file is read like its parts, or refused. It is refused only if one of my parts alone would be refused."""
    columns, end, parts = file
    path = tmp_path_factory.mktemp("f") / "t.csv"
    path.write_bytes(HEADS[columns] + end + b"".join(part for _, part in parts))
    assert rows_of(path, quoted_newlines=quoted_newlines) == expected(columns, end, parts, quoted_newlines)


@settings(max_examples=200, deadline=None)
@given(file=files(), more=st.integers(0, 20))
@example(file=(2, b"\n", [(False, b"5,6\n"), *AROUND]), more=0)
def test_a_record_in_quotes_is_found_wherever_windows_end(tmp_path_factory, file, more):
    columns, end, parts = file
    path = tmp_path_factory.mktemp("f") / "t.csv"
    path.write_bytes(b"".join(part for _, part in parts))
    dialect = module.CsvDialect(b",", columns, end, True, False)
    grouped = [b"".join(part for _, part in group) for _, group in groupby(parts, lambda part: part[0])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW", max(map(len, grouped)) + 3 + more)
        try:
            found = module.separate(path, 0, dialect).number
        except module.Malformed:
            found = None
    wanted = expected(columns, end, parts, None)
    assert found == (None if wanted is None else len(wanted))


def test_two_unclosed_quotes_do_not_swallow_the_lines_between_them(tmp_path):
    """Before, the load gave one record, and persons 2 and 3 vanished."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"who,name\n5,e\n" + FINDING)
    with pytest.raises(CatalogError) as caught:
        sf.protect(path, name="t", unit="who", columns={"who": sf.Id(), "name": sf.Text()}, budget=sf.Budget(1))
    assert "t.csv, line 3: a quoted field holds line 4, which is a record by itself" in caught.value.message
    assert "quoted_newlines = true" in caught.value.hint
    assert "unclosed quote" in caught.value.hint
    assert rows_of(path, quoted_newlines=True) == [("5", "e"), ("1", "a\n2,b\n3,c\n1,d")]
    assert rows_of(path, quoted_newlines=False) is None
    assert len(rows_of(path, quoted_newlines=False, on_error="skip")) == 3


def test_a_record_in_quotes_is_found_before_a_malformed_one(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"who,name\n" + FINDING + b"6\n")
    with (
        pytest.raises(CatalogError, match="line 2: a quoted field holds line 3"),
        open_source(DUCKDB, describe(), tmp_path / "t.csv"),
    ):
        pass


def test_a_header_with_an_unclosed_quote_does_not_swallow_lines(tmp_path):
    """Lines of people do not become column names, which messages would list."""
    (tmp_path / "t.csv").write_bytes(b'who,"name\n2,b\n1,d"\n3,c\n')
    with (
        pytest.raises(CatalogError, match="line 1: a quoted field holds line 2"),
        open_source(DUCKDB, describe(), tmp_path / "t.csv"),
    ):
        pass
    with pytest.raises(CatalogError, match="line 1: a quoted field holds line 2"):
        list_source_columns("t", "t.csv", tmp_path, TextFormat())
    (tmp_path / "t.csv").write_bytes(b'who,"name\n(first)"\n3,c\n')
    assert list(list_source_columns("t", "t.csv", tmp_path, TextFormat())) == ["who", "name\n(first)"]


@pytest.mark.parametrize(
    "text",
    [b'1,"a\nb"\n', b'1,"Dear all,\n\nmany, many, many thanks.\nYours"\n2,b\n', b'1,"a\nb ""c"" d\n"\n', b'"a\nb",2\n'],
)
def test_fields_with_line_breaks_are_read_without_a_declaration(tmp_path, text):
    """Also in files with CR LF whose fields hold LF, as spreadsheets write them: there a line 2,b is no record."""
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + text)
    assert rows_of(tmp_path / "t.csv") == as_rows(parse_plainly(text, 2, b"\n"))
    spreadsheet = b'1,"x\n2,b\ny"\r\n'
    (tmp_path / "t.csv").write_bytes(b"a,b\r\n" + spreadsheet)
    assert rows_of(tmp_path / "t.csv") == [("1", "x\n2,b\ny")]


def test_without_the_check_lines_of_others_are_swallowed(tmp_path, monkeypatch):
    """Negative control of the comparison above."""
    monkeypatch.setattr(module, "refuse_records_in_quotes", lambda *_: None)
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + FINDING)
    assert len(rows_of(tmp_path / "t.csv")) == 1
    assert expected(2, b"\n", AROUND, None) is None


LINES = ["2,b", '3,"c"', "4,\u0a05\u0a06", '5,",d,"', "6,\U0001f600"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("quoted_newlines", [None, False])
@settings(max_examples=150, deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(LINES) | st.binary(max_size=7) | st.sampled_from(["1,x", '1,"', "1"]).map(str.encode),
        max_size=7,
    ),
    end=st.sampled_from(["\n", "\r\n"]),
    block=st.sampled_from([2, 6, 64, 1 << 20]),
    big_bom=st.booleans(),
)
@example(parts=[b"1\0,\0x\0\x01", "2,b", '3,"c"', b"1\0,\0y\0\x01"], end="\n", block=2, big_bom=False)
@example(parts=[b"1\0,\0x\0\x01", "2,b", '3,"c"', b"1\0,\0y\0\x01"], end="\n", block=1 << 20, big_bom=False)
@example(parts=[b"\x001\0,\0x\x01", "2,b", '3,"c"', b"\x001\0,\0y\x01"], end="\n", block=2, big_bom=True)
@example(parts=[b"\x001\0,\0x\x01", "2,b", '3,"c"', b"\x001\0,\0y\x01"], end="\n", block=1 << 20, big_bom=True)
def test_stray_bytes_of_utf16_leave_the_lines_of_others(
    tmp_path_factory, encoding, quoted_newlines, parts, end, block, big_bom
):
    """Texts are other people's lines, bytes are one person's: if the file loads, the other lines are records."""
    units = {"utf-16": "utf-16-be" if big_bom else "utf-16-le"}.get(encoding, encoding)
    mark = "\ufeff".encode(units) if encoding == "utf-16" or big_bom else b""
    body = [(part.encode(units) if isinstance(part, str) else part) + end.encode(units) for part in parts]
    folder = tmp_path_factory.mktemp("f")
    (folder / "t.csv").write_bytes(mark + f"a,b{end}".encode(units) + b"".join(body))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encodings, "BLOCK", block)
        found = rows_of(folder / "t.csv", encoding=encoding, quoted_newlines=quoted_newlines)
    if found is None:
        assert any(isinstance(part, bytes) for part in parts)
        return
    wanted = []
    for is_other, group in groupby(parts, lambda part: isinstance(part, str)):
        alone = b"".join((one.encode(units) if is_other else one) + end.encode(units) for one in group)
        wanted += parse_plainly(alone.decode(units).encode(), 2, end.encode(), quoted_newlines is not False)
    assert found == as_rows(wanted)


STRAY = "a,b\n1,x\n2,b\n3,c\n1,y\n".encode("utf-16-le")
STRAY = STRAY.replace("x".encode("utf-16-le"), b"x\0\x01").replace("y".encode("utf-16-le"), b"y\0\x01")


def test_stray_bytes_of_utf16_do_not_swallow_the_lines_between_them(tmp_path):
    """Before, one byte in each of two records shifted all between them: persons 2 and 3 vanished."""
    for encoding, text in (("utf-16-le", STRAY), ("utf-16", b"\xff\xfe" + STRAY)):
        (tmp_path / "t.csv").write_bytes(text)
        with (
            pytest.raises(CatalogError) as caught,
            open_source(DUCKDB, describe(TextFormat(encoding, quoted_newlines=False)), tmp_path / "t.csv"),
        ):
            pass
        assert "t.csv, line 2: a byte is missing or too many" in caught.value.message
        assert "convert the file to UTF-8" in caught.value.hint
        assert "skip" not in caught.value.hint


def test_without_the_check_stray_bytes_swallow_lines(tmp_path, monkeypatch):
    """Negative control of the two tests above."""
    monkeypatch.setattr(encodings, "_refuse_shifted", lambda *_: None)
    (tmp_path / "t.csv").write_bytes(STRAY)
    found = rows_of(tmp_path / "t.csv", encoding="utf-16-le", quoted_newlines=False)
    assert len(found) == 1
    assert ("2", "b") not in found


def test_utf16_without_a_byte_order_mark_is_refused_with_the_reason(tmp_path):
    """Before, the load could not be read, without a reason."""
    (tmp_path / "t.csv").write_bytes("a,b\n1,x\n".encode("utf-16-le"))
    with (
        pytest.raises(CatalogError, match="does not begin with a byte order mark") as caught,
        open_source(DUCKDB, describe(TextFormat("utf-16")), tmp_path / "t.csv"),
    ):
        pass
    assert "utf-16-le" in caught.value.hint
    assert rows_of(tmp_path / "t.csv", encoding="utf-16-le") == [("1", "x")]
