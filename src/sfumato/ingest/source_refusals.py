"""Refusals of a source. They name what the owner wrote, and never quote what a file holds."""

from pathlib import Path

from sfumato.catalog.catalog_errors import catalog_error
from sfumato.errors import CatalogError

KINDS = "Use .csv or .parquet files (visits/*.parquet names many), a table of a .duckdb file, or a frame."
NOT_A_FRAME = (
    "Frames of pandas, polars, Arrow and DuckDB are read. Convert others first, with their own .to_pandas(), "
    ".to_polars() or .to_arrow()."
)


class NotEnoughMemory(CatalogError):
    """DuckDB could not load a source within the memory that it may use."""


def refused(table: str, message: str, hint: str) -> CatalogError:
    return catalog_error(f"tables.{table}: {message}", hint)


def unreadable(table: str) -> CatalogError:
    """The only message about an error whose own text may quote a record."""
    return refused(table, "the source could not be read.", f"Check that it is whole, and not open elsewhere. {KINDS}")


def not_enough_memory(table: str) -> NotEnoughMemory:
    """Loading needs more memory than there is, or more space for temporary files."""
    hint = "Free memory, or space in the folder of the pinned data, and try again."
    return NotEnoughMemory("catalog", f"tables.{table}: there is not enough memory to load the source.", hint)


def two_columns(table: str, name: str) -> CatalogError:
    """The source has two columns of one name, so the name does not say which of them is meant."""
    return refused(table, f"the source has two columns {name}.", "Give each column a name of its own.")


def no_rule(table: str, name: str, kind: str) -> CatalogError:
    """No rule reads the type of this column."""
    hint = "Make it a column of texts, numbers, truth values, days or moments; or leave it undeclared."
    if "2**53" in kind:
        hint = "Such numbers are not told apart. Store them as whole numbers (Int64) or as texts."
    return refused(table, f"the column {name} holds {kind}, which is not read.", hint)


def records_disagree(table: str) -> CatalogError:
    """The reader of CSV files and the check of their records found different numbers of records."""
    hint = "Please report it: the reader of CSV files and the check of their records disagree."
    return refused(table, "its records could not be told apart with certainty.", hint)


def rows_disagree(table: str) -> CatalogError:
    """The people of the rows were not those of the people that were counted before."""
    hint = "The id must have the same value whenever it is read. If it is a generated column, store its values."
    return refused(table, "its rows could not be matched with their people.", hint)


def first_lines_differ(table: str, path: Path, first: Path) -> CatalogError:
    """Two files of one source have different header lines."""
    hint = "Files that are read together begin with the same line, and end their lines alike."
    return refused(table, f"the first line of {path.name} differs from that of {first.name}.", hint)


def names_unclear(table: str, path: Path) -> CatalogError:
    """The header line of a file lacks a name, or has one twice."""
    hint = "Give it a header line, with another name for each column. delimiter says what separates them."
    return refused(table, f"the first line of {path.name} must name the columns, each once.", hint)
