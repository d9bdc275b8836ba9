"""Columns of a PostgreSQL table -> Arrow, by their types. Part of the trusted perimeter: claim K-50.

A value is read by its type and by itself alone: the server writes it as CSV, in quotes unless it is NULL. Days and
moments come as counts since 1970, because DuckDB cannot hold all of them. Decimals come as texts, with all digits.
"""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb

from sfumato.catalog.columns import Category, ColumnDeclaration, Integer, Real
from sfumato.ingest.canonical import BEFORE_DAY, BEYOND_DAY
from sfumato.ingest.hidden_names import FRAME
from sfumato.ingest.parsing import is_read_as_text
from sfumato.ingest.sql_quoting import quote

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

DAY = 86_400_000_000  # in microseconds
MOST = 2**63 - 1
TEXTS = ("text", "character varying", "name", "character")  # of char(n), blanks at the end are no part of the value


@dataclass(frozen=True, slots=True)
class ReadAs:
    """`value`: what to select, with {0} for the column. `arrow`: Arrow's name of its type. `kind`: see canonical.py."""

    value: str
    arrow: str
    kind: str


def choose_reading(kind: str, declared: ColumnDeclaration | None = None, decimal: str = ".") -> ReadAs:  # noqa: PLR0911
    """How a column of a type is read. Types without a rule are read as texts of a kind that is refused.

    Claim: K-50. Of the type, the declaration and the text format alone.
    Relies on: K-50.
    Checked by: tests/ingest/test_postgres_sources.py::test_a_table_is_read_as_its_csv_is
    """
    kind = kind.removesuffix(' COLLATE "C"').split("(")[0]
    whole = {"smallint": "int16", "integer": "int32", "bigint": "int64"}
    if kind in whole:
        return ReadAs("{0}", whole[kind], {"smallint": "SMALLINT", "integer": "INTEGER", "bigint": "BIGINT"}[kind])
    if kind in ("double precision", "real"):
        return ReadAs("CAST({0} AS double precision)", "float64", "DOUBLE")
    if kind == "boolean":
        return ReadAs("{0}", "bool", "BOOLEAN")
    if kind == "date":
        return ReadAs(_count("{0} - DATE '1970-01-01'", BEYOND_DAY, BEFORE_DAY), "int64", "DAY(day)")
    if kind.startswith("timestamp"):
        zone = ", UTC" if kind.endswith("with time zone") else ""
        microseconds = _count("extract(epoch FROM {0}) * 1000000", BEYOND_DAY * DAY, BEFORE_DAY * DAY)
        return ReadAs(microseconds, "int64", f"MOMENT(us{zone})")
    if kind == "numeric":
        is_number = declared is None or not is_read_as_text(declared)
        point = decimal if is_number and isinstance(declared, Integer | Real | Category) else "."
        digits = f"replace(CAST(trim_scale({{0}}) AS text), '.', '{point}')"
        odd = "WHEN {0} = 'NaN' THEN NULL WHEN {0} = 'Infinity' THEN 'inf' WHEN {0} = '-Infinity' THEN '-inf'"
        return ReadAs(f"CASE {odd} ELSE {digits} END", "string", "VARCHAR")
    known = (
        "VARCHAR" if kind in (*TEXTS, "character", "enum") else "JSON" if kind in ("json", "jsonb") else kind.upper()
    )
    return ReadAs("CAST({0} AS text)", "string", known)


def _count(finite: str, most: int, least: int) -> str:
    """A count of units since 1970. Infinity is counted as beyond every calendar."""
    beyond = f"WHEN {{0}} IS NULL THEN NULL WHEN {{0}} = 'infinity' THEN {most} WHEN {{0}} = '-infinity' THEN {least}"
    return f"CASE {beyond} ELSE CAST(LEAST(GREATEST({finite}, {-MOST}), {MOST}) AS bigint) END"


@contextmanager
def read_rows(
    connection: duckdb.DuckDBPyConnection, database: "Connection", place: str, columns: Mapping[str, ReadAs]
) -> Iterator[str]:
    """The rows of a table, read once and as they come: a name for DuckDB to select from. `place`: the table, as SQL.

    Claim: K-50. Every value is the one that the server holds; NULL stays NULL, and '' stays ''.
    Requires: the caller's transaction sees one state of the table.
    Relies on: K-50.
    Checked by: tests/ingest/test_postgres_sources.py::test_a_table_is_read_as_its_csv_is
    """
    import pyarrow as pa  # noqa: PLC0415 - 35 MiB that files do not need
    from pyarrow import csv  # noqa: PLC0415

    values = ", ".join(f"{reading.value.format(quote(name))} AS {quote(name)}" for name, reading in columns.items())
    query = f"COPY (SELECT {values} FROM {place}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)"
    names = list(columns)
    types = {name: pa.type_for_alias(reading.arrow) for name, reading in columns.items()}
    schema = pa.schema(list(types.items()))
    with database.cursor() as cursor, cursor.copy(query) as copy:
        stream = CopyStream(iter(copy))
        if stream.is_empty:
            connection.register(FRAME, schema.empty_table())
        else:
            found = csv.open_csv(
                stream,
                csv.ReadOptions(column_names=names, block_size=1 << 22),
                csv.ParseOptions(newlines_in_values=True),
                csv.ConvertOptions(
                    column_types=types, null_values=[""], true_values=["t"], false_values=["f"],
                    strings_can_be_null=True, quoted_strings_can_be_null=False, include_columns=names,
                ),
            )  # fmt: skip
            connection.register(FRAME, found)
        try:
            yield FRAME
        finally:
            connection.unregister(FRAME)


class CopyStream(io.RawIOBase):
    """What a server sends, as a file that is read once."""

    def __init__(self, parts: Iterator[Any]) -> None:
        self._parts = parts
        self._rest = bytearray(next(parts, b""))
        self.is_empty = not self._rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any object with bytes
        size = len(buffer)
        while len(self._rest) < size and (part := next(self._parts, None)) is not None:
            self._rest += part
        found = self._rest[:size]
        buffer[: len(found)] = found
        del self._rest[:size]
        return len(found)
