"""Parsing depends only on the declared type and on the value, and is the same for every source and dtype."""

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.catalog.text_format import TextFormat
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.ingest import frames
from sfumato.ingest.canonical import spell_value

ROME = timezone(timedelta(hours=2))
DECLARED = {
    "integer": sf.Integer(-100, 100),
    "real": sf.Real(-100, 100),
    "boolean": sf.Boolean(),
    "flags": sf.Category([True]),
    "codes": sf.Category([0, 1, 2]),
    "words": sf.Category(["1", "2.50", "true", "Rome", "2020-05-05"]),
    "text": sf.Text(),
    "date": sf.Date("2000-01-01", "2030-12-31"),
    "datetime": sf.DateTime("2000-01-01T00:00:00", "2030-12-31T23:59:59"),
    "id": sf.Id(),
}


def pinned(data, declared, **keys):
    """The column x of a source, in the order of its rows, as it is pinned."""
    engine = DuckDBEngine.of_data(Table("t", None, sf.ROW, {"x": declared}, reading=TextFormat(**keys)), data)
    try:
        return [row[0] for row in engine._connection.execute("SELECT x FROM t").fetchall()]
    finally:
        engine.close()


VALUES = {
    "integers": [0, 1, 2, 7, -3, 200, 2**40, None],
    "small": [0, 1, 2, 7, -3, 100, None],
    "floats": [0.0, 1.0, 2.5, 1.5, -0.0, 0.1, 1e-5, 2.4, 1e9, math.inf, -math.inf, math.nan, None],
    "decimals": [Decimal("1.00"), Decimal("2.50"), Decimal("0.10"), Decimal("-3.05"), None],
    "truths": [True, False, None],
    "days": [date(2020, 5, 5), date(1999, 1, 1), date(9999, 12, 31), date(1, 1, 1), None],
    "moments": [datetime(2020, 5, 5), datetime(2020, 5, 5, 23, 59, 59, 999_999), datetime(1969, 12, 31, 1), None],
    "zoned": [datetime(2020, 5, 5, 1, tzinfo=ROME), datetime(2020, 5, 5, 23, tzinfo=UTC), None],
    "texts": ["1", "1.0", "2.50", "2.5", "Rome", "rome", "true", "True", "2020-05-05", "x", "007", " 1 ", "yes", None],
}


def frames_of(kind):
    """The same values in every dtype that holds them."""
    values = VALUES[kind]
    rows = [{"x": value} for value in values]
    yield "objects", pd.DataFrame({"x": pd.Series(values, dtype=object)})
    yield "objects and a word", pd.DataFrame({"x": pd.Series([*values, "word"], dtype=object)})
    yield "as pandas infers", pd.DataFrame(rows)
    yield "polars objects", pl.DataFrame({"x": pl.Series(values, dtype=pl.Object)})
    yield "texts", pd.DataFrame({"x": pd.Series([spell_value(value) for value in values], dtype="string")})
    numbers = {
        "integers": [pa.int64(), pa.float64(), pa.decimal128(38, 0), pa.decimal256(60, 2)],
        "small": [
            pa.int8(),
            pa.int16(),
            pa.int32(),
            pa.float16(),
            pa.float32(),
            pa.decimal128(9, 2),
            pa.decimal256(50, 3),
        ],
        "floats": [pa.float64()],
        "decimals": [pa.decimal128(9, 2), pa.decimal128(38, 10), pa.decimal256(60, 5)],
        "truths": [pa.bool_()],
        "days": [pa.date32(), pa.date64()],
        "moments": [pa.timestamp("us")],
        "zoned": [pa.timestamp("us", "UTC"), pa.timestamp("us", "Asia/Tokyo")],
        "texts": [pa.string(), pa.large_string(), pa.string_view()],
    }
    for arrow_type in numbers[kind]:
        if pa.types.is_decimal256(arrow_type) and kind != "decimals":
            column = pa.array([None if value is None else Decimal(value) for value in values], arrow_type)
        elif pa.types.is_float16(arrow_type):
            column = pa.array([None if value is None else np.float16(value) for value in values], arrow_type)
        else:
            column = pa.array(values, arrow_type, from_pandas=True)
        table = pa.table({"x": column})
        yield f"arrow {arrow_type}", table
        if not pa.types.is_date64(arrow_type):
            yield (
                f"dictionary {arrow_type}",
                pa.table({"x": column.dictionary_encode()}) if not pa.types.is_string_view(arrow_type) else table,
            )
        if not (
            pa.types.is_date64(arrow_type)
            or pa.types.is_decimal256(arrow_type)
            or pa.types.is_float16(arrow_type)
            or pa.types.is_string_view(arrow_type)
        ):
            yield f"pandas of Arrow {arrow_type}", table.to_pandas(types_mapper=pd.ArrowDtype)
            yield f"polars {arrow_type}", pl.from_arrow(table)
    if kind == "texts":
        yield "category", pd.DataFrame({"x": pd.Categorical(values)})
        yield "polars category", pl.DataFrame({"x": pl.Series(values, dtype=pl.Categorical)})
    if kind == "truths":
        yield "boolean", pd.DataFrame({"x": pd.array(values, dtype="boolean")})
    if kind in ("integers", "small"):
        yield "Int64", pd.DataFrame({"x": pd.array(values, dtype="Int64")})
        yield "Float64", pd.DataFrame({"x": pd.array(values, dtype="Float64")})
        yield "category of numbers", pd.DataFrame({"x": pd.Categorical(values)})
        yield "sparse", pd.DataFrame({"x": pd.arrays.SparseArray([math.nan if v is None else v for v in values])})
    if kind == "moments":
        yield "datetime64[ns]", pd.DataFrame({"x": pd.Series(values).astype("datetime64[ns]")})
    if kind == "zoned":
        yield (
            "datetime64[ns, tz]",
            pd.DataFrame(
                {
                    "x": pd.to_datetime(pd.Series(values), utc=True)
                    .dt.tz_convert("Europe/Rome")
                    .astype("datetime64[ns, Europe/Rome]")
                }
            ),
        )


def each_way(data):
    """The column x of a source, as it is pinned under every declaration at once, in the order of its rows."""
    if isinstance(data, pd.DataFrame):
        data = pd.DataFrame(dict.fromkeys(DECLARED, data["x"]))
    elif isinstance(data, pl.DataFrame):
        data = pl.DataFrame([data["x"].alias(name) for name in DECLARED])
    elif isinstance(data, pa.Table):
        data = pa.table(dict.fromkeys(DECLARED, data["x"]))
    engine = DuckDBEngine.of_data(Table("t", None, sf.ROW, DECLARED), data)
    try:
        rows = engine._connection.execute(f"SELECT {', '.join(DECLARED)} FROM t").fetchall()
    finally:
        engine.close()
    return [dict(zip(DECLARED, map(str, row), strict=True)) for row in rows]


@pytest.mark.parametrize("kind", VALUES)
def test_every_type_is_read_as_its_text_is(tmp_path, kind):
    """The fast paths of typed columns give the value of the canonical text; so do Parquet, DuckDB tables and CSV."""
    size = len(VALUES[kind])
    texts = [spell_value(value) for value in VALUES[kind]]
    wanted = each_way(pa.table({"x": pa.array(texts, pa.string())}))
    for label, frame in frames_of(kind):
        assert each_way(frame)[:size] == wanted, label
        if isinstance(frame, pa.Table) and not pa.types.is_decimal256(frame["x"].type):
            path = tmp_path / "x.parquet"
            parquet.write_table(pa.table(dict.fromkeys(DECLARED, frame["x"])), path)
            assert each_way(path) == wanted, f"Parquet {label}"
    pd.DataFrame(dict.fromkeys(DECLARED, texts)).to_csv(tmp_path / "x.csv", index=False)
    assert each_way(tmp_path / "x.csv") == wanted
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        zoned = pa.timestamp("us", "Europe/Rome") if kind == "zoned" else None
        column = pa.array(VALUES[kind], zoned, from_pandas=True)
        connection.register("given", pa.table(dict.fromkeys(DECLARED, column)))
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    assert each_way(tmp_path / "x.duckdb") == wanted, "DuckDB"


def test_the_comparison_sees_a_dtype_that_is_read_in_its_own_way(monkeypatch):
    """Negative control: with Python's text of a boolean, one text in a column would change how all are parsed."""
    monkeypatch.setattr(frames, "spell_value", lambda value, exact=False: None if value is None else str(value))
    flags = sf.Category(["true", "no"])
    frame = pd.DataFrame({"x": [1.0, 2.0, None, "word"]})
    assert pinned(frame, sf.Text())[:2] != pinned(frame[:3].astype(float), sf.Text())[:2]
    assert pinned(pd.DataFrame({"x": [True]}), flags) == ["true"]


@pytest.mark.parametrize(
    "declared", [sf.Integer(0, 1), sf.Real(0, 1), sf.Boolean(), sf.Category([0, 1]), sf.Text()], ids=repr
)
def test_truth_values_are_read_alike_with_and_without_gaps(declared):
    """bool and None moved a count by 1,000, and was certified for 1."""
    plain = pd.DataFrame({"x": [True, False] * 500})
    gap = pd.DataFrame({"x": [*plain["x"], None]})
    word = pd.DataFrame({"x": [*plain["x"], "word"]})
    told = pinned(plain, declared)
    assert None not in told
    assert len(set(told)) == 2
    assert pinned(gap, declared)[:1000] == pinned(word, declared)[:1000] == told
    text = pd.DataFrame({"x": ["True", "False"] * 500})
    if not isinstance(declared, sf.Text):
        assert pinned(text, declared) == told


def test_floats_and_a_text_are_read_as_floats():
    values = [1.0, 2.5, float(np.float32(0.1)), 1e20]
    for declared in (sf.Real(0, 1e9), sf.Integer(0, 9), sf.Category([1, 2]), sf.Category(["1", "2.5"])):
        told = pinned(pd.DataFrame({"x": values[:3]}), declared)
        assert pinned(pd.DataFrame({"x": [*values[:3], "word"]}), declared)[:3] == told
    small = pd.DataFrame({"x": pd.Series([0.1, 0.25], dtype="float32")})
    mixed = pd.DataFrame({"x": pd.Series([np.float32(0.1), np.float32(0.25), "word"], dtype=object)})
    assert pinned(mixed, sf.Real(0, 1))[:2] == pinned(small, sf.Real(0, 1)) == [0.10000000149011612, 0.25]


def test_a_category_of_numbers_counts_its_numbers_only():
    """Category([1, 2]) counted 1.5 and 2.4 as 2."""
    for values in ([1.5, 2.4, 1.0, 2.0], ["1.5", "2.4", "1.0", "2"], [Decimal("1.5"), Decimal("2.4"), 1, 2]):
        assert pinned(pd.DataFrame({"x": values}), sf.Category([1, 2])) == [None, None, 1, 2]


@pytest.mark.parametrize(
    "declared", [sf.Category(["1", "x"]), sf.Category([1, 5]), sf.Category(["1.00", "x"])], ids=repr
)
def test_one_is_one_in_every_spelling(declared):
    """DECIMAL 1.00 did not match Category(["1"]), although DOUBLE 1.0 did."""
    wanted = [declared.values[0]]
    for value in (Decimal("1.00"), 1.0, 1, "1", "1.0", "01", np.float32(1), True if isinstance(wanted[0], int) else 1):
        assert pinned(pd.DataFrame({"x": pd.Series([value], dtype=object)}), declared) == wanted
    for kind in (pa.decimal128(9, 2), pa.float32(), pa.int8(), pa.uint64()):
        assert (
            pinned(pa.table({"x": pa.array([Decimal(1) if pa.types.is_decimal(kind) else 1], kind)}), declared)
            == wanted
        ), kind


def test_values_that_are_one_number_are_told_apart_in_texts_only():
    declared = sf.Category(["1", "01", "x"])
    assert pinned(pd.DataFrame({"x": ["1", "01", "1.0", "x"]}), declared) == ["1", "01", None, "x"]
    with pytest.raises(sf.errors.CatalogError, match="are one number in this source"):
        pinned(pd.DataFrame({"x": [1.0]}), declared)


DAYS, TIMES = sf.Date("2000-01-01", "2030-01-01"), sf.DateTime("2000-01-01T00:00:00", "2030-01-01T00:00:00")
AROUND_MIDNIGHT = [
    datetime(2020, 5, 5, 1, 30, tzinfo=ROME),
    datetime(2020, 5, 5, 23, 30, tzinfo=timezone(timedelta(hours=-3))),
]


def test_texts_and_columns_with_a_zone_have_the_day_in_utc():
    """Zoned texts kept the local day, zoned columns the day in UTC."""
    column = pd.DataFrame({"x": pd.to_datetime(pd.Series(AROUND_MIDNIGHT), utc=True).dt.tz_convert("Asia/Tokyo")})
    texts = pd.DataFrame({"x": [moment.isoformat() for moment in AROUND_MIDNIGHT]})
    mixed = pd.DataFrame({"x": [*AROUND_MIDNIGHT, "word"]})
    mixed_stamps = pd.DataFrame({"x": [*map(pd.Timestamp, AROUND_MIDNIGHT), "word", None]})
    for declared, wanted in (
        (DAYS, [date(2020, 5, 4), date(2020, 5, 6)]),
        (TIMES, [datetime(2020, 5, 4, 23, 30), datetime(2020, 5, 6, 2, 30)]),
    ):
        for frame in (column, texts, mixed, mixed_stamps):
            assert pinned(frame, declared)[:2] == wanted


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2020-05-05", datetime(2020, 5, 5)),
        ("2020/5/5", datetime(2020, 5, 5)),
        (" 2020-05-05 ", datetime(2020, 5, 5)),
        ("2020-05-05T23:00", datetime(2020, 5, 5, 23)),
        ("2020-05-05 23:00:00.9999999999", datetime(2020, 5, 5, 23, 0, 0, 999_999)),
        ("2020-05-05T23:00:00Z", datetime(2020, 5, 5, 23)),
        ("2020-05-05T23:00:00.5z", datetime(2020, 5, 5, 23, 0, 0, 500_000)),
        ("2020-05-05T23:00:00-02:00", datetime(2020, 5, 6, 1)),
        ("2020-05-05T23:00:00-0200", datetime(2020, 5, 6, 1)),
        ("2020-05-05T23:00-02", datetime(2020, 5, 6, 1)),
        ("2020-05-05 00:30:00 +01:00", datetime(2020, 5, 4, 23, 30)),
        ("2020-05-05 23:00:00 UTC", datetime(2020, 5, 5, 23)),
        ("2020-05-05 23:00:00 Europe/Rome", None),
        ("2020-05-05 23:00:00 CET", None),
        ("2020-05-05 23:00:00+99:00", None),
        ("2020-05-05+02:00", None),
        ("2020-02-30", None),
        ("2020-05-05x", None),
        ("05/05/2020", None),
        ("31.12.2020", None),
        ("44000", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_moments_of_texts(text, moment):
    frame = pd.DataFrame({"x": [text]})
    assert pinned(frame, TIMES) == [moment]
    assert pinned(frame, DAYS) == [None if moment is None else moment.date()]


def test_a_declared_date_format_is_the_only_one():
    values = ["31/12/2024", "2024-12-31", "31/02/2024", " 01/02/2024 ", None]
    wanted = [date(2024, 12, 31), None, None, date(2024, 2, 1), None]
    frame = pd.DataFrame({"x": values})
    assert pinned(frame, DAYS, date_format="%d/%m/%Y") == wanted
    assert pinned(frame, TIMES, date_format="%d/%m/%Y")[0] == datetime(2024, 12, 31)
    mixed = pd.DataFrame({"x": [*values, date(2024, 1, 2), datetime(2024, 1, 2, 3), pd.Timestamp("2024-01-02")]})
    assert pinned(mixed, DAYS, date_format="%d/%m/%Y") == [*wanted, *[date(2024, 1, 2)] * 3]
    typed = pd.DataFrame({"x": pd.to_datetime(["2024-01-02"])})
    assert pinned(typed, DAYS, date_format="%d/%m/%Y") == [date(2024, 1, 2)]


def test_a_decimal_comma_is_the_only_mark():
    frame = pd.DataFrame({"x": ["1,5", "1.5", "1.234,5", "2", "-0,25", "1e2", "true", "1,2,3"]})
    wanted = [1.5, None, None, 2.0, -0.25, 100.0, 1.0, None]
    assert pinned(frame, sf.Real(-10, 1000), decimal=",") == wanted
    mixed = pd.DataFrame({"x": [*frame["x"], 1.5, Decimal("2.5"), True, 3]})
    assert pinned(mixed, sf.Real(-10, 1000), decimal=",") == [*wanted, 1.5, 2.5, 1.0, 3.0]
    assert pinned(pd.DataFrame({"x": [1.5]}), sf.Real(-10, 10), decimal=",") == [1.5]


@pytest.mark.parametrize(
    "values",
    [
        [b"1"],
        [timedelta(1)],
        [time(1)],
        [[1]],
        [{"a": 1}],
        pa.array([b"1"], pa.binary()),
        pa.array([1], pa.duration("us")),
        pa.array([1], pa.time64("us")),
        pa.array([[1]]),
        pa.array([{"a": 1}]),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "declared", [sf.Text(), sf.Integer(0, 9), sf.Date("2000-01-01", "2030-01-01"), sf.Id()], ids=repr
)
def test_types_without_a_rule_are_refused(values, declared):
    """The refusal depends on the type alone, or on the type of a Python value, and does not quote the value."""
    given_frames = [pa.table({"x": values})] if isinstance(values, pa.Array) else []
    if not given_frames:
        given_frames = [pd.DataFrame({"x": pd.Series([*values, None, "a"], dtype=object)}), pd.DataFrame({"x": values})]
    for frame in given_frames:
        with pytest.raises(sf.errors.CatalogError, match=r"the column x holds .*, which is not read"):
            pinned(frame, declared)
        other = frame.append_column("y", pa.array([1])) if isinstance(frame, pa.Table) else frame.assign(y=1)
        engine = DuckDBEngine.of_data(Table("t", None, sf.ROW, {"y": sf.Integer(0, 9)}), other)
        engine.close()  # an undeclared column may have any type


def test_periods_and_intervals_are_refused():
    """Their numbers in storage are not values of the declared type."""
    for values in (pd.period_range("2020", periods=2), pd.interval_range(0, 2)):
        with pytest.raises(sf.errors.CatalogError, match="which is not read"):
            pinned(pd.DataFrame({"x": values}), sf.Text())


def test_two_columns_of_one_name_are_refused():
    frame = pd.DataFrame([[1, 2]], columns=["x", "x"])
    with pytest.raises(sf.errors.CatalogError, match="two columns x"):
        pinned(frame, sf.Integer(0, 9))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats() | st.integers(-(2**70), 2**70).map(float), min_size=1, max_size=30))
def test_doubles_are_read_as_their_texts_are(values):
    texts = pa.table({"x": pa.array(list(map(spell_value, values)), pa.string())})
    doubles = pa.table(
        {"x": pa.array([value if abs(value) <= 2**53 else value % 1000 for value in values], pa.float64())}
    )
    small = pa.table({"x": pa.array([spell_value(value) for value in doubles["x"].to_pylist()], pa.string())})
    assert each_way(doubles) == each_way(small)
    for name in ("integer", "real", "codes"):
        assert pinned(pa.table({"x": pa.array(values, pa.float64())}), DECLARED[name]) == pinned(texts, DECLARED[name])
