"""The same made-up records in every format that the owner may pass: frames of three libraries, and files."""

import csv
import io
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow

from sfumato.catalog.columns import Category, Date, DateTime, Integer, Real
from sfumato.catalog.dataset import Table
from sfumato.extras import imported
from sfumato.lab.auditing.pair_maker import Record, to_arrow, to_typed_arrow, write_text

MOST_WHOLE = 2**62  # 64-bit columns hold it
Write = Callable[[Table, Sequence[Record], Path], object]  # records as a source; the path has no suffix


def make_portable(table: Table, record: Record) -> Record:
    """A record that every format can hold: whole numbers of 64 bits, no empty texts (in CSV files, they are NULL)."""
    made: Record = {}
    for name, value in record.items():
        if isinstance(table.columns[name], Integer) and isinstance(value, float):
            made[name] = None if value != value else int(min(max(value, -MOST_WHOLE), MOST_WHOLE))  # noqa: PLR0124
        else:
            made[name] = "x" if value == "" else value
    return made


def write_csv(table: Table, records: Sequence[Record]) -> str:
    """A CSV file of records; NULL is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([write_text(record[name]) or "" for name in table.columns] for record in records)
    return text.getvalue()


def list_objects(table: Table, records: Sequence[Record]) -> dict[str, list[Any]]:
    """Columns of Python objects in the types of their declaration; a value that is not of its type stays a text."""
    return {
        name: [_make_object(record[name], declared) for record in records] for name, declared in table.columns.items()
    }


def _make_object(value: object, declared: object) -> object:
    try:
        match declared:
            case Date() if value is not None:
                return date.fromisoformat(str(value))
            case DateTime() if value is not None:
                return datetime.fromisoformat(str(value))
    except ValueError:
        pass
    return value


def _write_pandas_objects(table: Table, records: Sequence[Record], _: Path) -> object:
    pandas = imported("pandas")
    columns = list_objects(table, records)
    return pandas.DataFrame({name: pandas.Series(values, dtype=object) for name, values in columns.items()})


def _write_pandas_typed(table: Table, records: Sequence[Record], _: Path) -> object:
    pandas = imported("pandas")
    made = {}
    for name, values in list_objects(table, records).items():
        match table.columns[name]:
            case Integer():
                made[name] = pandas.array(values, dtype="Int64")
            case Real():
                made[name] = pandas.array([None if value is None else float(value) for value in values], dtype=float)
            case Category(values=(str(), *_)):
                made[name] = pandas.Categorical(values)
            case _:
                made[name] = pandas.Series(to_typed_arrow(table, records)[name].to_pandas(types_mapper=None))
    return pandas.DataFrame(made)


def _write_polars(table: Table, records: Sequence[Record], _: Path) -> object:
    return imported("polars").from_arrow(to_typed_arrow(table, records))


def _write_dictionaries(table: Table, records: Sequence[Record], _: Path) -> object:
    texts = to_arrow(table, records, as_text=True)
    return pyarrow.table({name: column.dictionary_encode() for name, column in zip(texts.column_names, texts.columns,
                                                                                    strict=True)})  # fmt: skip


def _write_parquet(table: Table, records: Sequence[Record], path: Path) -> object:
    import pyarrow.parquet  # noqa: PLC0415 - only for files

    pyarrow.parquet.write_table(to_typed_arrow(table, records), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def _write_csv_file(table: Table, records: Sequence[Record], path: Path) -> object:
    path.with_suffix(".csv").write_text(write_csv(table, records), encoding="utf-8")
    return path.with_suffix(".csv")


def _write_database(table: Table, records: Sequence[Record], path: Path) -> object:
    import duckdb  # noqa: PLC0415 - only for files

    rows = to_typed_arrow(table, records)
    quoted = table.name.replace('"', '""')
    with duckdb.connect(str(path.with_suffix(".duckdb"))) as connection:
        connection.register("__made_up", rows)
        connection.execute(f'CREATE OR REPLACE TABLE "{quoted}" AS SELECT * FROM __made_up')
    return path.with_suffix(".duckdb")


FORMATS: dict[str, Write] = {
    "typed columns of Arrow": lambda table, records, _: to_typed_arrow(table, records),
    "columns of Arrow with dictionaries": _write_dictionaries,
    "columns of objects of pandas": _write_pandas_objects,
    "typed columns of pandas": _write_pandas_typed,
    "columns of polars": _write_polars,
    "a CSV file": _write_csv_file,
    "a Parquet file": _write_parquet,
    "a table of DuckDB": _write_database,
}
HOLD_ANYTHING = ("columns of Arrow with dictionaries", "columns of objects of pandas", "a CSV file")
