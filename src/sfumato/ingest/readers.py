"""What the owner's data is read from: CSV and Parquet files, one or many; a table of a DuckDB file or of a
PostgreSQL database; a frame.

Part of the trusted perimeter: claims K-50 and K-52. One person's record never changes how another's is read.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.ingest.ambiguous_categories import refuse_ambiguous
from sfumato.ingest.attached_files import attach_file
from sfumato.ingest.canonical import EXACT, FLOATS, has_rule
from sfumato.ingest.csv_files import read_csv_files
from sfumato.ingest.database_tables import find_stored_table
from sfumato.ingest.hidden_names import FRAME
from sfumato.ingest.parquet_files import read_parquet_files
from sfumato.ingest.parsing import is_read_as_text
from sfumato.ingest.server_sources import read_server_table
from sfumato.ingest.source_files import CSV, DATABASE, is_postgres, require_files
from sfumato.ingest.source_refusals import (
    build_changed_error,
    build_inexact_error,
    build_no_rule_error,
    refuse_missing_columns,
)
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote

_STATE = attrgetter("st_ino", "st_size", "st_mtime_ns")


@contextmanager
def open_source(
    connection: duckdb.DuckDBPyConnection, table: Table, data: object, folder: Path | None = None, *, whole: bool = True
) -> Iterator[SourceRelation]:
    """Open a table's source for a while. It may be read more than once, and must not change meanwhile.

    Refusals name what the owner wrote, and nothing that a file holds. The caller hides DuckDB's own errors. Of a frame,
    the declared columns are taken; of a public table, all. Not `whole`: for names and types alone, no row is read.
    """
    with ExitStack() as stack:
        if not isinstance(data, (str, Path)):
            from sfumato.ingest.frames import convert_to_arrow  # noqa: PLC0415 - pyarrow: 35 MiB that files do not need

            frame, kinds = convert_to_arrow(table, data)
            connection.register(FRAME, frame)
            stack.callback(connection.unregister, FRAME)
            yield SourceRelation(FRAME, _describe(connection, FRAME) | kinds, reading=table.reading)
            return
        if is_postgres(data):
            yield read_server_table(connection, table, str(data), stack, whole=whole)
            return
        files = require_files(table.name, str(data), folder or Path())
        before = [_STATE(file.stat()) for file in files]
        if database := DATABASE.fullmatch(str(data)):
            schema, name = attach_file(connection, table.name, files[0], database["name"] or quote(table.name), stack)
            relation = find_stored_table(connection, table.name, schema, name)
            found = SourceRelation(relation, _describe(connection, relation))
        elif Path(str(data)).suffix.lower() in CSV:
            found = read_csv_files(table.name, files, table.reading, stack, whole=whole)
        else:
            wanted = () if not whole else None if table.public else tuple(table.columns)
            found = read_parquet_files(connection, table.name, files, wanted, stack)
        yield replace(found, reading=table.reading)
        if [_STATE(file.stat()) for file in files] != before:  # what was checked would not be what was pinned
            raise build_changed_error(table.name)


def check_readable(connection: duckdb.DuckDBPyConnection, table: Table, source: SourceRelation) -> None:
    """Refuse a source that lacks a declared column, or has one that cannot be read with certainty as it is declared.

    Claim: K-50. What passes has a type that `spell_column` reads, and no two different whole numbers have one text.
    Requires: the source is open.
    Relies on: K-50.
    Checked by: tests/ingest/test_parsing.py::test_types_without_a_rule_are_refused
    """
    check_types(table, source.columns)
    for name in list_exact_floats(table, source.columns):
        column = quote(name)
        beyond = f"SELECT 1 FROM {source.relation} WHERE isfinite({column}) AND ABS({column}) > {EXACT} LIMIT 1"
        if connection.execute(beyond).fetchall():
            raise build_inexact_error(table.name, name)


def check_types(table: Table, columns: Mapping[str, str]) -> None:
    """Refuse a source that lacks a declared column, or has one of a type that is not read. No row is read.

    Claim: K-50. What passes has a type that `spell_column` reads.
    Relies on: K-50.
    Checked by: tests/ingest/test_parsing.py::test_types_without_a_rule_are_refused
    """
    refuse_missing_columns(table.name, list(table.columns), columns)
    for name, declared in table.columns.items():
        if not has_rule(columns[name]):
            raise build_no_rule_error(table.name, name, columns[name])
        refuse_ambiguous(table.name, name, declared, columns[name])


def list_exact_floats(table: Table, columns: Mapping[str, str]) -> list[str]:
    """The columns of floats that are read as texts: none of their numbers may be beyond 2**53.

    Claim: K-50. Of the declaration and the types alone.
    Relies on: K-50.
    Checked by: tests/ingest/test_ids.py::test_floats_that_do_not_tell_people_apart_are_refused
    """
    return [name for name, declared in table.columns.items() if columns[name] in FLOATS and is_read_as_text(declared)]


def _describe(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    return {row[0]: str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}
