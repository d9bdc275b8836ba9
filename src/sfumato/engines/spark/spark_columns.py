"""The columns of prepared tables: their types in Arrow and in Spark, by the declaration alone.

Part of the trusted perimeter: claim K-50.
"""

from collections.abc import Mapping

import pyarrow as pa

from sfumato.catalog.dataset import Table
from sfumato.ingest.canonical import WHOLE
from sfumato.ingest.counting import pack_outcomes
from sfumato.ingest.hidden_names import MET, OWNER, ROWS_OF_UNIT, UNIT
from sfumato.ingest.pinned_rows import list_columns, list_kept
from sfumato.kernel.neighbours import ROW

TYPES = {
    "BOOLEAN": (pa.bool_(), "BOOLEAN"),
    "TINYINT": (pa.int8(), "TINYINT"),
    "SMALLINT": (pa.int16(), "SMALLINT"),
    "INTEGER": (pa.int32(), "INT"),
    "BIGINT": (pa.int64(), "BIGINT"),
    "DOUBLE": (pa.float64(), "DOUBLE"),
    "DATE": (pa.date32(), "DATE"),
    "TIMESTAMP": (pa.timestamp("us"), "TIMESTAMP_NTZ"),
    "VARCHAR": (pa.string(), "STRING"),
}


def list_pinned(table: Table, unit_kind: str = "VARCHAR") -> dict[str, str]:
    """The columns of a prepared table and their types, as DuckDB names them; categories are texts.

    `unit_kind`: the type of the ids, a text or a whole number.
    """
    columns = {name: "VARCHAR" if kind.startswith("ENUM") else kind for name, kind in list_columns(table).items()}
    return {name: unit_kind if name == UNIT else kind for name, kind in columns.items()}


def list_parsed(table: Table, unit_kind: str) -> dict[str, str]:
    """The columns that executors make of a source's rows: values, steps, outcomes, and the unit or the link to it."""
    kept = list_pinned(table, unit_kind)
    if table.unit is not ROW:
        dropped = (ROWS_OF_UNIT, MET) if table.unit_through is None else (ROWS_OF_UNIT, MET, UNIT)
        kept = {name: kind for name, kind in kept.items() if name not in dropped}
        kept |= {} if table.unit_through is None else {OWNER: "VARCHAR"}
    return kept | dict.fromkeys(pack_outcomes(list_kept(table)), "INTEGER")


def choose_unit_kind(table: Table, columns: Mapping[str, str]) -> str:
    """Ids that are whole numbers in the source are kept as such: grouping by them is faster."""
    whole = isinstance(table.unit, str) and columns[table.unit] in WHOLE
    return "BIGINT" if whole else "VARCHAR"


def write_arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    """Columns as Arrow has them."""
    return pa.schema([(name, TYPES[kind][0]) for name, kind in columns.items()])


def write_spark_schema(columns: Mapping[str, str]) -> str:
    """Columns as Spark declares them."""
    return ", ".join(f"{quote_name(name)} {TYPES[kind][1]}" for name, kind in columns.items())


def quote_name(name: str) -> str:
    """A name, as Spark quotes it."""
    return "`" + name.replace("`", "``") + "`"
