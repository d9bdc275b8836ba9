"""Refusals of a source. They name what the owner wrote, and never quote what a file holds."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import duckdb

from sfumato.catalog.catalog_errors import build_catalog_error
from sfumato.errors import CatalogError, SfumatoError
from sfumato.ingest.canonical import NoRule
from sfumato.ingest.hidden_names import ATTACHED

Found = TypeVar("Found")

KINDS = "Use .csv or .parquet files (visits/*.parquet names many), a table of a .duckdb file, or a frame."
NOT_A_FRAME = (
    "Frames of pandas, polars, Arrow and DuckDB are read. Convert others first, with their own .to_pandas(), "
    ".to_polars() or .to_arrow()."
)


class NotEnoughMemory(CatalogError):
    """DuckDB could not load a source within the memory that it may use."""


def build_source_error(table: str, message: str, hint: str) -> CatalogError:
    return build_catalog_error(f"tables.{table}: {message}", hint)


def build_unreadable_error(table: str) -> CatalogError:
    """The only message about an error whose own text may quote a record."""
    return build_source_error(
        table, "the source could not be read.", f"Check that it is whole, and not open elsewhere. {KINDS}"
    )


def build_memory_error(table: str) -> NotEnoughMemory:
    """Loading needs more memory than there is, or more space for temporary files."""
    hint = "Free memory, or space in the folder of the pinned data, and try again."
    return NotEnoughMemory("catalog", f"tables.{table}: there is not enough memory to load the source.", hint)


def refuse_twins(table: str, names: Sequence[str]) -> None:
    """Refuse two columns of one name: the name does not say which of them is meant."""
    for name in sorted(names):
        if names.count(name) > 1:
            raise build_source_error(
                table, f"the source has two columns {name}.", "Give each column a name of its own."
            )


def build_no_rule_error(table: str, name: str, kind: str) -> CatalogError:
    """No rule reads the type of this column."""
    hint = "Make it a column of texts, numbers, truth values, days or moments; or leave it undeclared."
    if "2**53" in kind:
        hint = "Such numbers are not told apart. Store them as whole numbers (Int64) or as texts."
    return build_source_error(table, f"the column {name} holds {kind}, which is not read.", hint)


def build_inexact_error(table: str, name: str) -> CatalogError:
    """A column of floats that is read as text has a number that floats do not tell apart."""
    return build_no_rule_error(table, name, "floating-point numbers beyond 2**53")


def explain_no_rule(table: str, name: str, convert: Callable[[], Found]) -> Found:
    """Convert a column. A value that no rule reads refuses the source, by the kind of the value."""
    kind = ""
    try:
        return convert()
    except NoRule as error:
        kind = str(error)
    raise build_no_rule_error(table, name, kind)


def hide_errors(table: str, read: Callable[[], Found]) -> Found:
    """Read a source. An error of a library may quote a value, so its text is not passed on."""
    lacks_memory, is_panic = False, False
    try:
        return read()
    except SfumatoError:
        raise
    except duckdb.OutOfMemoryException:
        lacks_memory = True
    except Exception:
        lacks_memory = False
    except BaseException as error:
        is_panic = type(error).__name__ == "PanicException"  # polars panics: it is no Exception
        if not is_panic:
            raise
    if is_panic:
        hint = "It may hold decimals of more than 38 digits, which polars cannot hold: use Arrow, or texts."
        raise build_source_error(table, "polars failed while it read the frame.", hint)
    raise build_memory_error(table) if lacks_memory else build_unreadable_error(table)


def build_records_error(table: str) -> CatalogError:
    """The reader of CSV files and the check of their records found different numbers of records."""
    hint = "Please report it: the reader of CSV files and the check of their records disagree."
    return build_source_error(table, "its records could not be told apart with certainty.", hint)


def build_rows_error(table: str) -> CatalogError:
    """The people of the rows were not those of the people that were counted before."""
    hint = "The id must have the same value whenever it is read. If it is a generated column, store its values."
    return build_source_error(table, "its rows could not be matched with their people.", hint)


def build_header_error(table: str, path: Path, first: Path) -> CatalogError:
    """Two files of one source have different header lines."""
    hint = "Files that are read together begin with the same line, and end their lines alike."
    return build_source_error(table, f"the first line of {path.name} differs from that of {first.name}.", hint)


def build_names_error(table: str, path: Path) -> CatalogError:
    """The header line of a file lacks a name, or has one twice."""
    hint = "Give it a header line, with another name for each column. delimiter says what separates them."
    return build_source_error(table, f"the first line of {path.name} must name the columns, each once.", hint)


def build_changed_error(table: str) -> CatalogError:
    """The files of a source are not those whose records were checked."""
    return build_source_error(table, "the source changed while it was read.", "Try again when no program writes to it.")


def refuse_missing_columns(table: str, declared: Sequence[str], there: Mapping[str, str]) -> None:
    """Refuse a source that lacks a declared column."""
    missing = [name for name in declared if name not in there]
    if missing:
        hint = "Check the header line of the file, or the names of the table's or the frame's columns."
        if len(there) == 1:
            hint += " The source has one column: if its fields are separated in another way, declare it (--delimiter)."
        raise build_source_error(table, f"the source has no column {', '.join(missing)}.", hint)


def build_schema_error(table: str, path: Path, first: Path) -> CatalogError:
    """Two Parquet files of one source have different columns."""
    hint = "Write them with the same columns, in the same order and of the same types."
    return build_source_error(table, f"the columns of {path.name} differ from those of {first.name}.", hint)


def build_one_number_error(table: str, name: str, values: tuple[str, str]) -> CatalogError:
    """Two declared values of a category are one number, and the source has numbers."""
    hint = "Make the column a text in the source, or keep one of the two values."
    return build_source_error(
        table, f"values {values[0]} and {values[1]} of {name} are one number in this source.", hint
    )


def build_table_name_error(table: str, path: Path) -> CatalogError:
    """The text after :: of a source is not a name."""
    hint = f"Write {path.name}::table or {path.name}::schema.table, in double quotes where a name holds a dot."
    return build_source_error(table, "what follows :: is not a table's name.", hint)


def build_attach_error(table: str, path: Path) -> CatalogError:
    """DuckDB could not open its file."""
    hint = "Check that it is a DuckDB file, and that no program has it open for writing."
    return build_source_error(table, f"{path.name} could not be opened.", hint)


def build_missing_table_error(
    connection: duckdb.DuckDBPyConnection, table: str, schema: str, name: str
) -> CatalogError:
    """The attached DuckDB file lacks the table, or has a view of that name."""
    query = (
        f"SELECT view_name FROM duckdb_views() WHERE database_name = '{ATTACHED}' "
        "AND lower(schema_name) = lower(?) AND lower(view_name) = lower(?)"
    )
    (file,) = connection.execute(f"SELECT path FROM duckdb_databases() WHERE database_name = '{ATTACHED}'").fetchall()[
        0
    ]
    path = Path(str(file)).name
    if connection.execute(query, [schema, name]).fetchall():
        hint = "Make it a table: CREATE TABLE ... AS SELECT * FROM the view."
        return build_source_error(table, f"{schema}.{name} is a view in {path}.", hint)
    hint = f'Name the one to read: source = "{path}::schema.table".'
    return build_source_error(table, f"{path} has no table {schema}.{name}.", hint)


def build_volatile_error(table: str) -> CatalogError:
    """A table has a generated column of random numbers."""
    hint = "Store the values: CREATE TABLE ... AS SELECT * FROM the table."
    return build_source_error(table, "a generated column has other values whenever it is read.", hint)


def build_unpinned_error(table: str, *, by_other_version: bool) -> CatalogError:
    why = "it was pinned by another version of Sfumato" if by_other_version else "a declaration has changed"
    hint = "Run `sfumato prepare`: the data becomes a new version."
    return build_source_error(table, f"it is not pinned as it is declared now; {why}.", hint)


def build_public_count_error(table: str, what: str) -> CatalogError:
    """The number of rows, or of people, is declared public, and is not the source's."""
    hint = f"Declare the number of {what} that it has, or none: {what} = n makes n public."
    return build_source_error(table, f"it has another number of {what} than is declared.", hint)
