"""Moments in milliseconds of Parquet files: one that DuckDB cannot hold is read as in a frame, and refuses nothing."""

import os
import subprocess
import sys
from contextlib import closing
from datetime import datetime

import duckdb
import older_parquet
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.ingest import parquet_files
from sfumato.ingest.canonical import write_moment
from sfumato.ingest.parquet_schemas import read_parquet_schema
from sfumato.ingest.readers import open_source

COLUMNS = {
    "d": sf.DateTime(datetime(2000, 1, 1), datetime(2030, 1, 1)),
    "day": sf.Date(datetime(2000, 1, 1).date(), datetime(2030, 1, 1).date()),
    "n": sf.Integer(0, 1_000),
}
BEYOND = 2**63 // 1_000
ODD = [0, 10**12, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1, BEYOND - 1, BEYOND, -BEYOND, -BEYOND - 1, None]
moments = st.one_of(st.none(), st.integers(-(2**63) + 1, 2**63 - 1), st.integers(0, 2 * 10**12), st.sampled_from(ODD))


def frame(values, unit="ms", zone=None):
    made = pa.array(values, pa.timestamp(unit, zone))
    return pa.table({"d": made, "day": made, "n": list(range(len(values)))})


def pinned(data):
    """The pinned rows in the source's order, and what the load report says of the moments."""
    with closing(DuckDBEngine.of_data(Table("t", None, sf.ROW, COLUMNS), data)) as engine:
        rows = engine._connection.execute("SELECT d, day, n FROM t ORDER BY n").fetchall()
        counts = [
            (column.null, column.unreadable, column.clamped_below, column.clamped_above)
            for column in engine.load_report["t"].columns[:2]
        ]
        return rows, counts


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Rome"])
def test_moments_beyond_the_calendar_are_read_as_in_a_frame(tmp_path, zone):
    data = frame(ODD, zone=zone)
    parquet.write_table(data, tmp_path / "t.parquet")
    with pytest.raises(duckdb.ConversionException):  # negative control: DuckDB alone refuses the whole file
        duckdb.connect().execute(f"SELECT d FROM '{tmp_path / 't.parquet'}'").fetchall()
    rows, counts = pinned(tmp_path / "t.parquet")
    assert (rows, counts) == pinned(data) == pinned(data.to_pandas(types_mapper=pd.ArrowDtype))
    assert len(rows) == len(ODD)
    assert counts == [(1, 0, 5, 4)] * 2
    assert rows[1][0] == datetime(2001, 9, 9, 1, 46, 40)  # others are read as they are


def test_seconds_become_milliseconds_in_parquet(tmp_path):
    data = frame([0, 2**50, -(2**50), None], "s")
    parquet.write_table(data, tmp_path / "t.parquet")
    assert pinned(tmp_path / "t.parquet") == pinned(data)


@settings(max_examples=25, deadline=None)
@given(st.lists(moments, min_size=1, max_size=30))
@example(ODD)
def test_a_file_is_read_as_a_frame_is(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("t") / "t.parquet"
    parquet.write_table(frame(values), path, row_group_size=7, write_statistics=len(values) % 2 == 0)
    assert pinned(path) == pinned(frame(values))


def test_a_zone_is_kept(tmp_path):
    for zone, end in ((None, ""), ("Europe/Rome", "Z")):
        data = pa.table({"v": pa.array([0, 2**62, None], pa.timestamp("ms", zone))})
        parquet.write_table(data, tmp_path / "t.parquet")
        for source in (data, tmp_path / "t.parquet"):
            with closing(DuckDBEngine.of_data(Table("t", None, sf.ROW, {"v": sf.Text()}), source)) as engine:
                rows = engine._connection.execute("SELECT v FROM t").fetchall()
            assert rows == [("1970-01-01 00:00:00" + end,), ("infinity",), (None,)]


def test_rows_keep_their_order_in_many_files_and_row_groups(tmp_path):
    columns = {"d": COLUMNS["d"], "n": sf.Integer(0, 10**6)}
    total = 300_000
    for part in range(3):
        begin = part * total
        numbers = list(range(begin, begin + total))
        moments_of = pa.array([number * 1_000 for number in numbers[:-1]] + [2**62], pa.timestamp("ms"))
        made = pa.table({"n": numbers, "d": moments_of, "other": ["x"] * total})
        parquet.write_table(made, tmp_path / f"{part}.parquet", row_group_size=50_000)
    connection = duckdb.connect()
    with open_source(connection, Table("t", None, sf.ROW, columns), str(tmp_path / "*.parquet")) as source:
        assert list(source.columns) == ["n", "d", "other"]
        rows = f"(SELECT n, {write_moment('d', source.columns['d'])} AS d FROM {source.relation})"
        wrong = f"SELECT COUNT(*) FROM {rows} WHERE isfinite(d) AND epoch_ms(d) <> n * 1000"
        assert connection.execute(wrong).fetchall() == [(0,)]
        counted = f"SELECT COUNT(*), COUNT(*) FILTER (WHERE NOT isfinite(d)) FROM {rows}"
        assert connection.execute(counted).fetchall() == [(3 * total, 3)]


def test_a_column_that_is_not_declared_is_not_copied(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "_copy_counts", None)
    undeclared = frame([0, 2**62]).rename_columns(["d", "other", "n"]).set_column(0, "d", pa.array([1, 2]))
    parquet.write_table(undeclared, tmp_path / "u.parquet")
    with closing(DuckDBEngine.of_data(Table("t", None, sf.ROW, {"n": COLUMNS["n"]}), tmp_path / "u.parquet")) as engine:
        assert engine.load_report["t"].rows == 2


def test_nested_columns_have_no_names_of_their_own(tmp_path):
    nested = pa.array([{"n": 1, "d": [1]}, None], pa.struct([("n", pa.int64()), ("d", pa.list_(pa.int64()))]))
    parquet.write_table(pa.table({"s": nested, "n": [1, 2], "l": [[1], []]}), tmp_path / "t.parquet")
    schema = read_parquet_schema(duckdb.connect(), "t", tmp_path / "t.parquet")
    assert list(schema.types) == ["s", "n", "l"]
    twice = pa.table([pa.array([1]), pa.array([2])], names=["n", "N"])
    parquet.write_table(twice, tmp_path / "u.parquet")
    with pytest.raises(sf.errors.CatalogError, match="two columns n"):
        read_parquet_schema(duckdb.connect(), "t", tmp_path / "u.parquet")


@pytest.mark.parametrize("zone", ["Europe/Rome", "America/New_York", "UTC"])
def test_one_far_moment_moves_no_other_in_files_of_older_writers(tmp_path, zone):
    """DuckDB and pyarrow disagree about the zone of such a file. The zone of the machine must not matter either."""
    script = (
        "import sys, duckdb, sfumato as sf\n"
        "from datetime import datetime\n"
        "from sfumato.catalog.dataset import Table\n"
        "from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine\n"
        "d = sf.DateTime(datetime(2000, 1, 1), datetime(2030, 1, 1))\n"
        "engine = DuckDBEngine.of_data(Table('t', None, sf.ROW, {'d': d, 'n': sf.Integer(0, 9)}), sys.argv[1])\n"
        "print(engine._connection.execute('SELECT d FROM t WHERE n = 0').fetchall())\n"
    )
    shown = []
    for content in (older_parquet.NEAR, older_parquet.FAR):
        (tmp_path / "t.parquet").write_bytes(content)
        command = [sys.executable, "-c", script, str(tmp_path / "t.parquet")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "TZ": zone})
        shown.append(done.stdout.strip())
    assert shown == ["[(datetime.datetime(2019, 12, 31, 23, 0),)]"] * 2


class Moments(pa.ExtensionType):
    """An extension type that pyarrow knows."""

    def __init__(self):
        super().__init__(pa.timestamp("ms"), "tests.moments")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls()


@pytest.mark.parametrize("value", [0, 2**62])
def test_an_extension_type_is_refused_whatever_its_values(tmp_path, value):
    pa.register_extension_type(Moments())
    try:
        made = pa.ExtensionArray.from_storage(Moments(), pa.array([value], pa.timestamp("ms")))
        parquet.write_table(pa.table({"d": made, "day": made, "n": [1]}), tmp_path / "t.parquet")
        with pytest.raises(sf.errors.CatalogError, match=r"tests\.moments"):
            pinned(tmp_path / "t.parquet")
    finally:
        pa.unregister_extension_type("tests.moments")
