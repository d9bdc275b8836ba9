"""The version of prepared data: a keyed digest of its content, computed on the executors as that of a snapshot is.

The key is not part of a query, so that it is not in Spark's logs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa

from sfumato.engines.duckdb.content_version import PIECES, finish_digest, is_content, make_row_secret, select_sums
from sfumato.engines.spark.batch_parsing import Batches, connect_to_parse, gather_batches
from sfumato.engines.spark.rows_of_units import Frame
from sfumato.engines.spark.stored_tables import number_columns
from sfumato.ingest.hidden_names import FRAME

NAMES = ["rows", *(f"piece{number}" for number in range(PIECES))]
WIDE = pa.decimal128(38, 0)


@dataclass(frozen=True, slots=True)
class SumsOfDigests:
    """The function that adds up the digests of rows, a few batches at a time."""

    columns: Sequence[str]
    secret: str = field(repr=False)

    def __call__(self, batches: Batches) -> Batches:
        with connect_to_parse() as connection:
            for some in gather_batches(batches):
                connection.register(FRAME, some.rename_columns(list(self.columns) or some.column_names))
                row = connection.execute(select_sums(self.columns, FRAME), [self.secret]).fetchall()[0]
                values = [pa.array([Decimal(int(number or 0))], WIDE) for number in row]
                yield pa.RecordBatch.from_arrays(values, NAMES)


def compute_content_digest(rows: Frame, types: dict[str, str], key: bytes) -> str:
    """An HMAC of the rows of a prepared table, whatever their order and partitions."""
    columns = sorted((name, kind) for name, kind in types.items() if is_content(name))
    names = [name for name, _ in columns]
    taken = number_columns(rows, [rows.columns.index(name) for name in names] or [0])
    schema = ", ".join(f"{name} DECIMAL(38, 0)" for name in NAMES)
    summed = taken.mapInArrow(SumsOfDigests(names, make_row_secret(key)), schema)
    row = summed.selectExpr(*(f"SUM({name})" for name in NAMES)).collect()[0]
    return finish_digest(columns, [tuple(int(number or 0) for number in row)], key)
