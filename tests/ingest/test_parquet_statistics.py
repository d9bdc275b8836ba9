"""A Parquet file states the least and the greatest value of a column, but not that there is a NaN.

An engine that trusts these limits takes a NaN for a value within them: others would decide how it is read.
"""

import math

import pyarrow as pa
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine

DECLARED = [
    sf.Real(-5, 5),
    sf.Real(-5, 5, nullable=False),
    sf.Integer(-5, 5),
    sf.Integer(-5, 5, nullable=False),
    sf.Category([1, 3]),
    sf.Category([True]),
    sf.Boolean(),
    sf.Text(),
    sf.Date("1990-01-01", "2020-01-01"),
]
OTHERS = [(1.0, 3.0), (1.0, 1.0), (), (0.0,), (1e15, -1e15, None, 2.0), (math.inf, 1.0)]


def pin(data, columns, unit=sf.ROW):
    engine = DuckDBEngine.of_tables({"t": (Table("t", None, unit, columns), data)})
    try:
        found = engine._connection.execute("SELECT * FROM t")
        return sorted(map(repr, found.fetchall()))
    finally:
        engine.close()


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("declared", DECLARED, ids=repr)
def test_a_nan_is_read_by_itself(declared, kind, tmp_path):
    for others in OTHERS:
        rows = pa.table({"c": pa.array([*others, math.nan], kind)})
        parquet.write_table(rows, tmp_path / "rows.parquet")
        assert pin(str(tmp_path / "rows.parquet"), {"c": declared}) == pin(rows, {"c": declared}), others


@pytest.mark.parametrize("ids", [[1.0, 2.0, math.nan], [1, 2, 2]])
def test_ids_of_a_parquet_file_are_read_one_by_one(ids, tmp_path):
    rows = pa.table({"who": ids, "c": [1.0, math.nan, 3.0]})
    parquet.write_table(rows, tmp_path / "rows.parquet")
    columns = {"who": sf.Id(), "c": sf.Real(-5, 5)}
    assert pin(str(tmp_path / "rows.parquet"), columns, "who") == pin(rows, columns, "who")
