"""A subclass of a library's frame is read like that frame. An unknown kind is refused without quoting values."""

from datetime import date, datetime, tzinfo
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.catalog.text_format import TextFormat
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import CatalogError, InvalidParameter
from sfumato.ingest import frames
from sfumato.ingest.canonical import BEFORE, BEFORE_DAY, BEYOND, BEYOND_DAY

MOMENT = sf.DateTime("2000-01-01T00:00:00", "2030-12-31T00:00:00")
DAY = sf.Date("2000-01-01", "2030-12-31")


def pinned(data, declared, **keys):
    """The column v of a source, as it is pinned."""
    engine = DuckDBEngine.of_data(Table("t", None, sf.ROW, {"v": declared}, reading=TextFormat(**keys)), data)
    try:
        return [row[0] for row in engine._connection.execute("SELECT v FROM t").fetchall()]
    finally:
        engine.close()


class Frame(pd.DataFrame):
    """As geopandas' frame is one."""

    @property
    def _constructor(self):
        return Frame

    def __arrow_c_stream__(self, requested_schema=None):
        raise AssertionError("it was exported as it likes")


class PolarsFrame(pl.DataFrame):
    pass


MOMENTS = [datetime(2020, 1, 1, 5), datetime(2020, 1, 1, 23)]


@pytest.mark.parametrize("first", [None, date(2020, 1, 1), "word", 7])
def test_a_subclass_is_read_as_its_library_reads_it(first):
    """Arrow guessed the type of a column: with one person's day, everybody's moments were cut to midnight."""
    column = pd.Series([first, *MOMENTS], dtype=object)
    assert pinned(Frame({"v": column}), MOMENT)[1:] == MOMENTS
    assert pinned(pd.DataFrame({"v": column}), MOMENT)[1:] == MOMENTS
    assert pinned(PolarsFrame({"v": pl.Series([first, *MOMENTS], dtype=pl.Object)}), MOMENT)[1:] == MOMENTS
    data = sf.protect(Frame({"v": column}), name="t", unit=sf.ROW, columns={"v": MOMENT}, budget=sf.Budget(epsilon=1))
    data.close()


@pytest.mark.parametrize("first", [None, date(2020, 1, 1), "word", 7])
def test_a_sparse_column_of_objects_is_read_object_by_object(first):
    column = pd.arrays.SparseArray(np.array([first, *MOMENTS], dtype=object), dtype=pd.SparseDtype(object))
    assert pinned(pd.DataFrame({"v": column}), MOMENT)[1:] == MOMENTS


def test_other_librarys_frames_are_refused():
    """A library may guess the type of a column from all its values when it exports it."""

    class Narwhal:
        def __init__(self, inner):
            self.inner = inner

        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table(self.inner).__arrow_c_stream__(requested_schema)

        def to_table(self):
            return pa.table(self.inner)

        collect = read_all = to_table

    other = Narwhal(pd.DataFrame({"v": [1]}))
    with pytest.raises(CatalogError, match="not known") as caught:
        pinned(other, sf.Integer(0, 9))
    assert ".to_pandas()" in caught.value.hint
    with pytest.raises(InvalidParameter, match="must be a frame") as refused:
        sf.protect(other, name="t", unit=sf.ROW, columns={"v": sf.Integer(0, 9)}, budget=sf.Budget(epsilon=1))
    assert ".to_pandas()" in refused.value.hint


def test_a_column_of_another_librarys_type_is_refused():
    """As geometries in pandas: Arrow would guess a type from all values."""
    from pandas.api.extensions import ExtensionDtype

    class Other(ExtensionDtype):
        name, type = "int64", int

    assert frames._is_known(np.dtype("int64"))
    assert frames._is_known(pd.Int64Dtype())
    assert not frames._is_known(Other())


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.period_range("2020", periods=2, freq="D")),
        pd.Series(pd.interval_range(0, 2)),
        pd.Series(pd.to_timedelta([1, 2], unit="s")),
        pd.Series([1j, 2j]),
        pa.array([1, 2], pa.opaque(pa.int64(), "x", "y")),
        pa.array([[1], [2]], pa.list_(pa.int64())),
    ],
    ids=lambda values: str(getattr(values, "dtype", getattr(values, "type", ""))),
)
@pytest.mark.parametrize("declared", [sf.Integer(0, 9), DAY, sf.Text()], ids=repr)
def test_types_that_no_rule_reads_are_refused_by_name(column, declared):
    """A period was read as its ordinal, and an opaque type as what it is stored as."""
    made = pd.DataFrame({"v": column}) if isinstance(column, pd.Series) else pa.table({"v": column})
    with pytest.raises(CatalogError, match="the column v holds"):
        pinned(made, declared)
    if isinstance(column, pd.Series) and column.dtype == "period[D]":
        with pytest.raises(CatalogError, match="the column v holds"):
            pinned(pa.table({"v": pa.array(column)}), declared)


def test_arrows_own_extension_types_that_have_a_rule_are_read():
    truths = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))
    assert pinned(pa.table({"v": truths}), sf.Boolean()) == [True, False, None]
    json = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['"7"', "7", "null", "{"], pa.string()))
    assert pinned(pa.table({"v": json}), sf.Text()) == ["7", "7", None, "{"]


@pytest.mark.parametrize("dtype", ["Int128", "UInt128"])
def test_wide_whole_numbers_of_polars_are_read(dtype):
    frame = pl.DataFrame({"v": pl.Series([1, 2**100, None], dtype=getattr(pl, dtype))})
    assert pinned(frame, sf.Integer(0, 9)) == [1, 9, None]
    assert pinned(frame, sf.Text()) == ["1", str(2**100), None]


@pytest.mark.parametrize("frame", [pd.DataFrame(), pl.DataFrame(), pa.table({}), pd.DataFrame(index=[1, 2])])
def test_a_frame_without_columns_is_refused_for_that(frame):
    with pytest.raises(CatalogError, match="the frame has no columns"):
        pinned(frame, sf.Integer(0, 9))


def test_kinds_of_arrow_and_relations_are_read(tmp_path):
    """A relation of DuckDB's failed: its to_table makes a table."""
    table = pa.table({"v": [1, 2]})
    parquet.write_table(table, tmp_path / "t.parquet")
    there = dataset.dataset(tmp_path / "t.parquet")
    connection = duckdb.connect()
    relation = connection.sql("SELECT * FROM (VALUES (1), (2)) rows(v)")
    kinds = [
        table,
        table.to_batches()[0],
        table.to_reader(),
        there,
        there.scanner(),
        relation,
        pl.LazyFrame({"v": [1, 2]}),
    ]
    for frame in kinds:
        assert pinned(frame, sf.Integer(0, 9)) == [1, 2], type(frame)
    connection.close()


class Raising(tzinfo):
    def utcoffset(self, when):
        raise RuntimeError("SECRET")


def batches():
    yield pa.record_batch({"v": [1]})
    raise KeyError("SECRET")


@pytest.mark.parametrize(
    "made",
    [
        lambda folder: pl.scan_csv(folder / "t.csv", schema_overrides={"v": pl.Float64}),
        lambda folder: pl.LazyFrame({"v": ["SECRET"]}).with_columns(pl.col("v").cast(pl.Int64, strict=True)),
        lambda folder: pa.RecordBatchReader.from_batches(pa.schema({"v": pa.int64()}), batches()),
        lambda folder: pd.DataFrame({"v": pd.Series([datetime(2020, 1, 1, tzinfo=Raising()), "x"], dtype=object)}),
        lambda folder: dataset.dataset(folder / "t.csv", schema=pa.schema({"v": pa.int64()}), format="csv"),
        lambda folder: duckdb.sql("SELECT CAST(t AS INTEGER) AS v FROM (VALUES ('SECRET')) rows(t)"),
    ],
    ids=["scan", "cast", "reader", "zone", "dataset", "relation"],
)
def test_what_a_library_says_of_a_failure_is_not_passed_on(tmp_path, made):
    """polars quoted a value: could not parse `zz`."""
    (tmp_path / "t.csv").write_text("v\n1\nSECRET\n")
    with pytest.raises(CatalogError, match="could not be read") as caught:
        pinned(made(tmp_path), sf.Real(0, 9))
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


NUMBERS = [20200101, 20210101]


@pytest.mark.parametrize("word", [[], ["x"], [None], [date(2020, 5, 5)]], ids=repr)
@pytest.mark.parametrize("declared", [DAY, MOMENT], ids=repr)
def test_a_date_format_reads_numbers_alike_in_every_type(word, declared):
    """With one person's word, the column became one of objects, and everybody's day was NULL."""
    wanted = pinned(pd.DataFrame({"v": list(map(str, NUMBERS))}), declared, date_format="%Y%m%d")
    assert None not in wanted
    for series in (
        pd.Series([*NUMBERS, *word], dtype=object),
        pd.Series([*map(float, NUMBERS), *word], dtype=object),
        pd.Series([*map(Decimal, NUMBERS), *word], dtype=object),
        pd.Series([*map(np.int32, NUMBERS), *word], dtype=object),
        pd.Series(pd.Categorical([*NUMBERS, *word])),
        pd.Series([*NUMBERS, *word]),
        pd.Series([*map(float, NUMBERS), *word]),
    ):
        assert pinned(pd.DataFrame({"v": series}), declared, date_format="%Y%m%d")[:2] == wanted
    assert pinned(pl.DataFrame({"v": NUMBERS}), declared, date_format="%Y%m%d") == wanted
    objects = pl.DataFrame({"v": pl.Series([*NUMBERS, *word], dtype=pl.Object)})
    assert pinned(objects, declared, date_format="%Y%m%d")[:2] == wanted


def test_typed_moments_do_not_have_the_date_format():
    moments = [date(2020, 5, 5), datetime(2020, 5, 5), np.datetime64("2020-05-05"), pd.Timestamp("2020-05-05")]
    for frame in (pd.DataFrame({"v": pd.Series(moments, dtype=object)}), pd.DataFrame({"v": pd.to_datetime(moments)})):
        assert pinned(frame, DAY, date_format="%d.%m.%Y") == [date(2020, 5, 5)] * 4


def test_the_repeated_hour_and_the_first_moment_are_read():
    """A value in the autumn's repeated hour refused the load: it was cut in local time."""
    zoned = pd.Series(pd.to_datetime(["2020-10-25T00:30:00.000000001Z", "2020-10-25T01:30:00.000000000Z"])).astype(
        "datetime64[ns, UTC]"
    )
    frame = pd.DataFrame({"v": zoned.dt.tz_convert("Europe/Rome")})
    assert str(frame["v"].dtype) == "datetime64[ns, Europe/Rome]"
    assert pinned(frame, MOMENT) == [datetime(2020, 10, 25, 0, 30), datetime(2020, 10, 25, 1, 30)]
    ends = pd.DataFrame({"v": pd.Series([pd.Timestamp.min, pd.Timestamp.max, pd.NaT]).astype("datetime64[ns]")})
    assert pinned(ends, MOMENT) == [MOMENT.lower, MOMENT.upper, None]
    assert pinned(ends, sf.Text()) == ["1677-09-21 00:12:43.145224", "2262-04-11 23:47:16.854775", None]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Rome"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("declared", [MOMENT, DAY, sf.Text()], ids=repr)
def test_moments_beyond_the_calendar_are_clamped(unit, zone, declared):
    """A moment that microseconds do not reach refused the load."""
    far = [2**62, 2**63 - 1, -(2**62), -(2**63) + 1, -(2**63), 0, None]
    found = pinned(pa.table({"v": pa.array(far, pa.int64()).cast(pa.timestamp(unit, zone))}), declared)
    assert found[-1] is None
    if isinstance(declared, sf.Text):
        assert None not in found[:-1]
    else:
        assert found[:-1] == [declared.upper, declared.upper, *[declared.lower] * 4]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()], ids=str)
@pytest.mark.parametrize("declared", [MOMENT, DAY, sf.Text()], ids=repr)
def test_days_beyond_the_calendar_are_clamped(kind, declared):
    most = 2**31 - 1 if pa.types.is_date32(kind) else 2**63 - 1
    whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    found = pinned(pa.table({"v": pa.array([most, most - 9, -most, -most - 1, 0, None], whole).cast(kind)}), declared)
    assert found[-1] is None
    if isinstance(declared, sf.Text):
        assert None not in found[:-1]
    else:
        assert found[:-1] == [declared.upper] * 2 + [declared.lower] * 3


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"])
def test_far_moments_of_a_duckdb_table_are_clamped(tmp_path, kind):
    path = tmp_path / "p.duckdb"
    values = ["5000000-01-01" if kind == "DATE" else "290001-01-01", "290001-01-01 (BC)", "infinity", "-infinity"]
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t (v {kind})")
        connection.executemany("INSERT INTO t VALUES (?)", [[value] for value in values])
    for declared in (MOMENT, DAY):
        assert pinned(path, declared) == [declared.upper, declared.lower] * 2
    far = pa.table({"v": pa.array([2**60], pa.int64()).cast(pa.timestamp("s"))})
    if kind == "TIMESTAMP_S":
        with duckdb.connect(str(path)) as connection:
            connection.register("far", far)
            connection.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM far")
        assert pinned(path, MOMENT) == [MOMENT.upper]
        assert pinned(path, sf.Text()) == ["infinity"]


def test_the_ends_of_the_calendar_are_the_same_in_arrow_and_in_sql():
    for day, wanted in ((BEYOND_DAY, BEYOND), (BEFORE_DAY, BEFORE)):
        assert duckdb.sql(f"SELECT DATE '1970-01-01' + {day} = DATE '{wanted}'").fetchall() == [(True,)]
    seconds = [BEYOND_DAY * 86_400, BEYOND_DAY * 86_400 - 1, BEFORE_DAY * 86_400 + 1, BEFORE_DAY * 86_400]
    last, first = "289999-12-31 23:59:59", "290000-01-01 (BC) 00:00:01"
    for unit in ("s", "ms", "us"):
        counts = [count * 1_000 ** ("s", "ms", "us").index(unit) for count in seconds]
        frame = pa.table({"v": pa.array(counts, pa.int64()).cast(pa.timestamp(unit))})
        assert pinned(frame, sf.Text()) == ["infinity", last, first, "-infinity"]
    for kind, count in ((pa.date32(), 1), (pa.date64(), 86_400_000)):
        days = [(day + more) * count for day, more in ((BEYOND_DAY, 0), (BEYOND_DAY, -1), (BEFORE_DAY, 0))]
        frame = pa.table({"v": pa.array(days, pa.int32() if count == 1 else pa.int64()).cast(kind)})
        assert pinned(frame, sf.Text()) == ["infinity", "289999-12-31", "-infinity"]


@pytest.mark.parametrize("names", [["v", "v"], ["v", "V"]])
def test_two_parquet_columns_of_one_name_are_refused(tmp_path, names):
    """The first was taken."""
    parquet.write_table(pa.table([[1], [2]], names=names), tmp_path / "t.parquet")
    with pytest.raises(CatalogError, match="two columns v"):
        pinned(tmp_path / "t.parquet", sf.Integer(0, 9))


def test_a_json_text_is_read_without_its_quotes(tmp_path):
    """The id "7" was another person than 7."""
    path = tmp_path / "p.duckdb"
    values = ['"7"', "7", "7.0", '"Rome"', "null", None, '{"a": 1}', '"a\\u0301\\"b"']
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (v JSON)")
        connection.executemany("INSERT INTO t VALUES (?)", [[value] for value in values])
    assert pinned(path, sf.Id()) == ["7", "7", "7", "Rome", None, None, '{"a": 1}', '\u00e1"b']
    assert pinned(path, sf.Category(["Rome"]))[3] == "Rome"


def test_an_extension_type_that_is_not_registered_is_refused(tmp_path):
    """A period in a Parquet file was read as its ordinal."""
    metadata = {b"ARROW:extension:name": b"other.period", b"ARROW:extension:metadata": b""}
    table = pa.table(
        [[1, 2], [3, 4]], schema=pa.schema([pa.field("v", pa.int64(), metadata=metadata), ("w", pa.int64())])
    )
    period = pa.table({"v": pa.array(pd.Series(pd.period_range("2020", periods=2, freq="D")))})
    truths = pa.table({"v": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))})
    with pytest.raises(CatalogError, match="the column v holds"):
        pinned(table, sf.Integer(0, 9))
    for written in (table, period, truths):
        parquet.write_table(written, tmp_path / "t.parquet")
        with pytest.raises(CatalogError, match="the column v holds"):
            pinned(tmp_path / "t.parquet", sf.Integer(0, 9))
    parquet.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):  # undeclared columns are not read
        engine = DuckDBEngine.of_data(Table("t", None, sf.ROW, {"w": sf.Integer(0, 9)}), source)
        assert engine._connection.execute("SELECT w FROM t").fetchall() == [(3,), (4,)]
        engine.close()
        engine = DuckDBEngine.of_data(Table("t", None, sf.ROW, {}), source)  # rows alone can be counted
        assert engine._connection.execute("SELECT COUNT(*) FROM t").fetchall() == [(2,)]
        engine.close()


def test_a_panic_of_polars_is_refused_with_a_hint(tmp_path):
    """The error is not a subclass of Exception, and escaped."""
    long = pa.table({"v": pa.array([Decimal("1" * 45)], pa.decimal256(50, 0))})
    parquet.write_table(long, tmp_path / "t.parquet")

    def panic(column):
        pl.from_arrow(long)  # it panics: polars has no such decimals
        return column

    with pytest.raises(CatalogError, match="polars failed") as caught:
        pinned(pl.LazyFrame({"v": [1]}).map_batches(panic), sf.Integer(0, 9))
    assert "more than 38 digits" in caught.value.hint
    assert caught.value.__context__ is None
