"""Records of CSV files: what is accepted is what a plain reader of the grammar reads; the rest is refused."""

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_records import parse_plainly, swallows_record

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.catalog.text_format import PLAIN_TEXT, TextFormat
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import CatalogError
from sfumato.ingest import records as module
from sfumato.ingest.readers import open_source

DUCKDB = duckdb.connect()
HEADS = {1: b"a", 2: b"a,b", 3: b"a,b,c"}


def describe(reading=PLAIN_TEXT):
    """A table of which every column is read."""
    return Table("t", None, None, {}, public=True, reading=reading)


def read(path, **keys):
    """The rows of a file, and how many records were dropped."""
    with open_source(DUCKDB, describe(TextFormat(**keys)), path) as source:
        rows = DUCKDB.execute(f"SELECT * FROM {source.relation}").fetchall()
        assert len(rows) == source.records
        return rows, sum(map(len, source.malformed.values()))


def as_read(found):
    return [tuple(field.decode() or None for field in fields) for fields in found if fields is not None]


PIECES = st.sampled_from(
    [b"a", b"1", b",", b",", b",", b"\n", b"\n", b"\r\n", b"\r\n", b'"', b'"', b'""', b'"x"', b'"x\ny"', b"\r",
     b"\0", b"\\", b'\\"', b" ", b"\xff", "é".encode(), b";", b"#",
     b"'", b"NULL", b"\xef\xbb\xbf", b"\x1a", b"\t", b"nan", b"\x85"]
)  # fmt: skip
random_bytes = st.lists(PIECES, max_size=14).map(b"".join) | st.binary(max_size=12)
fields = st.sampled_from(
    [b"", b"1", b'"a,b"', b'"x\ny"', b'"q""q"', b'""', "né".encode(), b"-", b'"\r\n"', b'"""\n"""']
)


@st.composite
def files(draw):
    """A file: mostly well-formed records, with random bytes between them now and then."""
    columns, end = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([b"\n", b"\r\n"]))
    parts = draw(
        st.lists(
            st.lists(fields, min_size=columns, max_size=columns).map(lambda one: b",".join(one) + end) | random_bytes,
            max_size=6,
        )
    )
    body = b"".join(parts)
    return columns, end, body[: -len(end)] if draw(st.booleans()) and body.endswith(end) else body


@pytest.mark.parametrize("quoted_newlines", [True, False, None])
@settings(max_examples=250, deadline=None)
@given(file=files())
@example(file=(2, b"\n", b'1,"x\n2,3\n'))
@example(file=(2, b"\n", b'1,"x\\"y"\n2,3\n4,"5"\n'))
@example(file=(2, b"\n", b"1,x\r2,y\n"))
@example(file=(2, b"\r\n", b"1,x\n2,y\r\n"))
@example(file=(2, b"\n", b'1,"x\n'))
@example(file=(1, b"\n", b"\n\n"))
@example(file=(1, b"\r\n", b"\r\n1\r\n\r\n"))
@example(file=(3, b"\n", b'"""\n""","x\ny",1'))
@example(file=(2, b"\n", b"\n\n1,2\n\n"))
@example(file=(2, b"\n", b'1,"x\n2,3\n4"\n'))
@example(file=(2, b"\r\n", b'1,"x\n2,3\n4"\r\n'))
@example(file=(1, b"\n", b'"x\n\n4"\n'))
def test_records_are_separated_as_the_grammar_says(tmp_path_factory, quoted_newlines, file):
    columns, end, body = file
    path = tmp_path_factory.mktemp("f") / "t.csv"
    path.write_bytes(HEADS[columns] + end + body)
    wanted = parse_plainly(body, columns, end, quoted_newlines is not False)
    if None not in wanted and not (quoted_newlines is None and swallows_record(body, columns, end)):
        assert read(path, quoted_newlines=quoted_newlines) == (as_read(wanted), 0)
    else:
        with pytest.raises(CatalogError, match=r"t\.csv, line \d+: "):
            read(path, quoted_newlines=quoted_newlines)
    if quoted_newlines is False:
        kept = read(path, quoted_newlines=False, on_error="skip")
        assert kept == (as_read(wanted), wanted.count(None))


@settings(max_examples=150, deadline=None)
@given(file=files(), window=st.integers(3, 40))
def test_where_windows_end_changes_nothing(tmp_path_factory, file, window):
    columns, end, body = file
    path = tmp_path_factory.mktemp("f") / "t.csv"
    path.write_bytes(body)
    for quoted_newlines in (True, False):
        dialect = module.CsvDialect(b",", columns, end, quoted_newlines, True)
        wanted = parse_plainly(body, columns, end, quoted_newlines)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "WINDOW", max(window, len(max(body.split(end), key=len, default=b"")) + 3))
            if quoted_newlines:
                patch.setattr(module, "WINDOW", len(body) + 2)
            else:
                kept = path.with_name("kept.csv")
                assert len(module.copy_well_formed_lines(path, 0, dialect, kept)) == wanted.count(None)
                path, wanted = kept, [record for record in wanted if record is not None]
            try:
                found = module.separate(path, 0, dialect)
            except module.Malformed:
                assert None in wanted
                continue
        assert None not in wanted
        assert found.number == len(wanted)


def test_a_record_that_a_window_cuts_is_read_whole(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(b"1,abcdefghij\n" * 9 + b"2,abcdefghij")
    monkeypatch.setattr(module, "WINDOW", 20)
    dialect = module.CsvDialect(b",", 2, b"\n", True, False)
    assert module.separate(tmp_path / "t.csv", 0, dialect).number == 10


PEOPLE = {"who": sf.Id(), "name": sf.Text(), "x": sf.Integer(0, 9)}


def pinned(path, **keys):
    """The pinned rows, as text."""
    table = Table("t", None, "who", PEOPLE, 5, reading=TextFormat(**keys))
    engine = DuckDBEngine.of_data(table, path)
    try:
        return sorted(map(str, engine._connection.execute("SELECT * FROM t").fetchall()))
    finally:
        engine.close()


OTHERS = [f"{person},n{person},{person % 10}" for person in range(2, 1002)]
BROKEN = {
    "an unclosed quote": ('1,"x,3', "a quote is opened and not closed"),
    "a quote escaped by a backslash": ('1,"x\\"y",3', "text follows a closing quote"),
    "a bare CR": ("1,x\ry,3", "line end unlike the header's"),
    "text after a closing quote": ('1,"x"y,3', "text follows a closing quote"),
    "a quote in a plain field": ('1,x"y,3', "a quote stands inside a field"),
    "too many fields": ("1,x,3,4", "it has 4 fields instead of 3"),
    "too few fields": ("1,x", "it has 2 fields instead of 3"),
    "a NUL byte": ("1,x\0y,3", "NUL"),
    "a CR LF among LF": ("1,x,3\r", "line end unlike the header's"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("quote_later", [False, True])
def test_a_malformed_record_refuses_the_load_on_its_line(tmp_path, name, quote_later):
    """Before, an unclosed quote made 5,022 rows 4, a backslash 1,001 rows 501, and a bare CR 50 rows 52."""
    record, why = BROKEN[name]
    later = ['5000,"a ""quoted"" name",1'] if quote_later else []
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join(["who,name,x", *OTHERS[:500], record, *OTHERS[500:], *later, ""]).encode())
    with pytest.raises(CatalogError) as caught:
        pinned(path)
    told = caught.value.message
    assert "t.csv, line 502: " in told
    assert (why in told) or (quote_later and "closing quote" in told)
    assert "double quotes" in caught.value.hint
    assert caught.value.__context__ is None


@pytest.mark.parametrize("name", BROKEN)
def test_skip_drops_exactly_the_malformed_records(tmp_path, name):
    record, _ = BROKEN[name]
    path, alone = tmp_path / "t.csv", tmp_path / "alone.csv"
    path.write_bytes("\n".join(["who,name,x", *OTHERS[:500], record, *OTHERS[500:], ""]).encode())
    alone.write_bytes("\n".join(["who,name,x", *OTHERS, ""]).encode())
    keys = {"quoted_newlines": False, "on_error": "skip"}
    assert pinned(path, **keys) == pinned(alone, **keys) == pinned(alone)
    with open_source(DUCKDB, describe(TextFormat(**keys)), path) as source:
        assert (source.records, source.malformed) == (1000, {"t.csv": [502]})


def test_bytes_that_are_not_utf8_refuse_the_load_and_name_the_encoding(tmp_path):
    """Before, such rows disappeared."""
    path = tmp_path / "t.csv"
    path.write_bytes("who,name,x\n1,Zo\u00eb,3\n2,Bo,4\n".encode("latin-1"))
    with pytest.raises(CatalogError) as caught:
        pinned(path)
    assert "t.csv, line 2: it is not UTF-8 text" in caught.value.message
    assert 'encoding = "latin-1"' in caught.value.hint
    assert "quoted_newlines = false" in caught.value.hint
    assert "Repair" not in caught.value.hint  # the record may be right in its own encoding
    assert len(pinned(path, encoding="latin-1")) == 2
    assert any("Zo\u00eb" in row for row in pinned(path, encoding="windows-1252"))
    kept = pinned(path, quoted_newlines=False, on_error="skip")
    assert len(kept) == 1
    assert "Bo" in kept[0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_encoding_gives_the_same_rows(tmp_path, encoding, end):
    text = end.join(["who,name,x", '1,"Zo\u00eb\u00e9",3', '"2 3",\u00fc,4', '4,"a\nb",5', ""])
    (tmp_path / "plain.csv").write_bytes(text.encode())
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    assert pinned(tmp_path / "t.csv", encoding=declared) == pinned(tmp_path / "plain.csv")
    assert len(pinned(tmp_path / "plain.csv")) == 3


def test_a_byte_that_an_encoding_lacks_is_told_with_its_line(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"who,name,x\n1,a,2\n2,\x81,3\n")
    with pytest.raises(CatalogError, match="line 3: it is not cp1252 text") as caught:
        pinned(tmp_path / "t.csv", encoding="windows-1252")
    assert caught.value.hint.startswith("Declare the file's encoding")
    assert "Repair" not in caught.value.hint
    assert "skip" not in caught.value.hint  # it does not apply: the text is decoded before records are separated
    (tmp_path / "u.csv").write_bytes("who,name,x\n1,a,2\n".encode("utf-16-le") + b"3")
    with pytest.raises(CatalogError, match="it is not utf-16-le text"):
        pinned(tmp_path / "u.csv", encoding="utf-16-le")


def test_a_record_that_is_too_long_is_refused_or_skipped(tmp_path):
    path = tmp_path / "t.csv"
    for size in (module.MOST_BYTES, module.WINDOW + 5):
        path.write_bytes(b"who,name,x\n1,a,2\n2," + b"b" * size + b",3\n4,c,5\n")
        with pytest.raises(CatalogError, match="line 3: it is longer than"):
            pinned(path)
        assert len(pinned(path, quoted_newlines=False, on_error="skip")) == 2
        path.write_bytes(b'who,name,x\n1,a,2\n2,"' + b"b" * size + b"\n4,c,5\n")
        with pytest.raises(CatalogError, match="line 3: a quote is opened and not closed"):
            pinned(path)


def test_large_files_are_read_in_windows_and_in_parallel(tmp_path):
    """More than one window of ours, and more than one buffer of DuckDB's; line breaks in quotes that look like rows."""
    rows = [f'{person},"n{person}, ""x""",{person % 10}' for person in range(500_000)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["who,name,x", *rows, ""]))
    with open_source(DUCKDB, describe(), path) as source:
        assert source.records == 500_000
        assert DUCKDB.execute(f"SELECT SUM(who::INT), COUNT(DISTINCT name) FROM {source.relation}").fetchall() == [
            (sum(range(500_000)), 500_000)
        ]
    looks_like_rows = '"' + "7,x,1\n" * 20_000 + '"'
    rows = [f"{person},{looks_like_rows if person % 100_000 == 50_000 else person},1" for person in range(500_000)]
    path.write_text("\n".join(["who,name,x", *rows, ""]))
    with (
        pytest.raises(CatalogError, match="line 50,002: a quoted field holds line 50,003"),
        open_source(DUCKDB, describe(), path),
    ):
        pass
    declared = TextFormat(quoted_newlines=True)
    with open_source(DUCKDB, describe(declared), path) as source:
        assert source.records == 500_000
        assert DUCKDB.execute(f"SELECT SUM(who::INT) FROM {source.relation}").fetchall() == [(sum(range(500_000)),)]
    path.write_text("\n".join(["who,name,x", *rows, '1,"x', ""]))
    with (
        pytest.raises(CatalogError, match="line 600,002: a quote is opened and not closed"),
        open_source(DUCKDB, describe(declared), path),
    ):
        pass


BROKEN_CHECKS = {
    "write_field": (lambda *_, **__: rb"[^,\n]*+", b'1,x"y"\n'),
    "is_utf8": (lambda _: True, b"1,\xff\n"),
}


@pytest.mark.parametrize("name", BROKEN_CHECKS)
def test_the_comparison_sees_a_check_that_is_missing(tmp_path, monkeypatch, name):
    """Negative control: without the check, a malformed record passes."""
    broken, body = BROKEN_CHECKS[name]
    (tmp_path / "t.csv").write_bytes(body)
    dialect = module.CsvDialect(b",", 2, b"\n", True, True)
    assert parse_plainly(body, 2, b"\n") == [None]
    with pytest.raises(module.Malformed):
        module.separate(tmp_path / "t.csv", 0, dialect)
    monkeypatch.setattr(module, name, broken)
    assert module.separate(tmp_path / "t.csv", 0, dialect).number == 1


@pytest.mark.parametrize("unit", [sf.ROW, "a"])
@pytest.mark.parametrize("found", [1, 3])
def test_readers_that_disagree_are_refused(tmp_path, monkeypatch, unit, found):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    monkeypatch.setattr("sfumato.ingest.csv_files.separate", lambda *_, **__: module.Records(found))
    columns = {"a": sf.Id(), "b": sf.Integer(0, 9)} if unit == "a" else {"b": sf.Integer(0, 9)}
    with pytest.raises(CatalogError, match="could not be told apart"):
        sf.protect(tmp_path / "t.csv", name="t", unit=unit, columns=columns, budget=sf.Budget(epsilon=1))
