"""Released rows as tables of a DuckDB database in memory, which can read nothing else. Post-processing."""

import threading
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from math import isnan
from typing import Any

import duckdb

from sfumato.errors import QueryError, UnsupportedSyntax

ROW = "__sfumato_row"  # the number of a row, over all released tables
MOST_SECONDS = 60.0
MOST_SECONDS_OF_CHECK = 10.0  # public rows stand in the SQL as they are
SETTINGS = {
    "enable_external_access": "false", "threads": "1", "memory_limit": "1GB", "lock_configuration": "true",
    "python_enable_replacements": "false",  # a missing table is not looked for among Python's variables
    "ieee_floating_point_ops": "false", "error_on_division_by_zero": "false",  # x / 0 is NULL, as elsewhere
}  # fmt: skip
Tables = tuple[tuple[tuple[str, str], ...], ...]


def check_finish(sql: str, tables: Tables) -> tuple[str, ...]:
    """Run the SQL on made-up rows: the names of its columns, or a refusal. Nothing is known of the data here."""
    made_up = [[[MADE_UP[kind] for _, kind in columns]] for columns in tables]  # one row: some faults need a row
    with _connect(tables, made_up) as connection:
        clock = threading.Timer(MOST_SECONDS_OF_CHECK, connection.interrupt)
        clock.start()
        try:
            described = connection.execute(sql).description or []
        except duckdb.InterruptException:
            what = "The part of the question over results takes too long to compute."
            raise UnsupportedSyntax("syntax", what, "Join fewer rows, or join the answer's rows in Python.") from None
        except duckdb.Error as error:
            reason = " ".join(str(error).split("\n\nLINE")[0].split())[:300]
            raise UnsupportedSyntax(
                "syntax", f"This cannot be computed from the released columns: {reason}", WHAT_IT_CAN
            ) from None
        finally:
            clock.cancel()
    names = tuple(str(column[0]) for column in described)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UnsupportedSyntax(
            "syntax", f"A second column has the name {twice[0]}.", "Give them different names with AS."
        )
    return names


MADE_UP: dict[str, Any] = {
    "DOUBLE": 1.0, "BIGINT": 1, "VARCHAR": "a", "BOOLEAN": True, "DATE": date(2000, 1, 1),
    "TIMESTAMP": datetime(2000, 1, 1), "VARCHAR[]": ["a"],
}  # fmt: skip
WHAT_IT_CAN = (
    "The outer SELECT sees only the columns that the subquery selects. Compute what is missing from the answer's rows "
    "in Python: that is free."
)


def run_finish(sql: str, tables: Tables, rows: Sequence[Sequence[Sequence[Any]]]) -> list[tuple[Any, ...]]:
    """The rows of the SQL over released rows."""
    with _connect(tables, rows) as connection:
        clock = threading.Timer(MOST_SECONDS, connection.interrupt)
        clock.start()
        try:
            found = connection.execute(sql).fetchall()
        except duckdb.Error:
            raise QueryError(
                "results",
                "The released rows are stored, but the rest of the question cannot be computed from them.",
                "Ask for the aggregates alone, which is free now, and compute the rest in Python.",
            ) from None
        finally:
            clock.cancel()
    return [tuple(_make_plain(value) for value in row) for row in found]


def _connect(tables: Tables, rows: Sequence[Sequence[Sequence[Any]]]) -> duckdb.DuckDBPyConnection:
    import pyarrow  # noqa: PLC0415 - 25 MiB that most questions do not need

    connection = duckdb.connect(":memory:", config=dict(SETTINGS))
    number = 0
    for place, (columns, held) in enumerate(zip(tables, rows, strict=True)):
        declared = [f"{_quote(name)} {kind}" for name, kind in columns]
        connection.execute(f"CREATE TABLE released{place} ({', '.join([*declared, f'{ROW} BIGINT'])})")
        if held:
            values = dict(zip(map(str, range(len(columns))), zip(*held, strict=True), strict=True))
            lists = {name: list(column) for name, column in values.items()}
            connection.register("given", pyarrow.table({**lists, "row": _number(held, number)}))
            connection.execute(f"INSERT INTO released{place} SELECT * FROM given")  # noqa: S608 - a number
            connection.unregister("given")
            number += len(held)
    return connection


def _number(rows: Sequence[object], first: int) -> list[int]:
    return list(range(first, first + len(rows)))


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _make_plain(value: Any) -> Any:  # noqa: ANN401 - any value that DuckDB returns
    match value:
        case float() if isnan(value):
            return None
        case Decimal():
            return float(value)
        case None | bool() | int() | float() | str() | date() | datetime():
            return value
        case list() | tuple():
            return [_make_plain(part) for part in value]
    return str(value)


def find_sql_types(columns: Iterable[tuple[str, str, bool]]) -> tuple[tuple[str, str], ...]:
    """The DuckDB types of released columns, from (name, type, whole)."""
    return tuple((name, "BIGINT" if kind == "number" and whole else SQL_TYPES[kind]) for name, kind, whole in columns)


SQL_TYPES = {
    "number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE", "datetime": "TIMESTAMP",
    "list": "VARCHAR[]",
}  # fmt: skip
