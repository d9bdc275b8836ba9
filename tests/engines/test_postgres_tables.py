"""Rows in the database are those of the snapshot, value for value. Names that PostgreSQL cuts off are told apart."""

import math
from datetime import date, datetime

import pandas as pd
import pytest
from hostile_clinic import list_tables

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.postgres import copied_rows
from sfumato.engines.postgres.copied_rows import store_table
from sfumato.engines.postgres.postgres_sessions import Sessions
from sfumato.engines.sql.postgres_dialect import shorten_name

LONG = "ä" * 40
ODD = pd.DataFrame(
    {
        "id": ["a", "b", "", "\\N", "x,y", 'q"'],
        LONG + "1": [0.1, 1e-30, 1 / 3, -1e15, math.nan, 1.7e308],
        LONG + "2": ["", None, "\\.", "a\nb\r\n", '"', "😀 \\x"],
        "big": [2**53, -(2**53), 0, 1, 2, 3],
        "day": [date(1, 1, 1), date(9999, 12, 31), None, date(4, 2, 29), date(1970, 1, 1), date(2024, 1, 1)],
        "seen": [
            datetime(1, 1, 1),
            datetime(9999, 12, 31, 23, 59, 59, 999999),
            None,
            datetime(4, 2, 29, 1),
            None,
            None,
        ],
        "yes": [True, False, None, True, True, False],
    }
)
COLUMNS = {
    "id": sf.Id(), LONG + "1": sf.Real(-(2**53), 2**53), LONG + "2": sf.Text(), "big": sf.Integer(-(2**53), 2**53),
    "day": sf.Date("0001-01-01", "9999-12-31"), "yes": sf.Boolean(),
    "seen": sf.DateTime("0001-01-01T00:00:00", "9999-12-31T23:59:59.999999"),
}  # fmt: skip


@pytest.fixture(scope="module")
def session(postgres_server):
    with Sessions(postgres_server.url, 60).open() as opened:
        yield opened


def read_both(session, tables):
    """The rows of each table in both databases, in the order of the snapshot's columns."""
    engine = DuckDBEngine.of_tables(tables)
    for name in tables:
        described = engine._connection.execute(f'DESCRIBE "{name}"').fetchall()
        place = f'pg_temp."copy of {name}"'
        store_table(engine._connection, name, session, place)
        columns = ", ".join('"' + shorten_name(row[0]) + '"' for row in described)
        there = session.execute(f"SELECT {columns} FROM {place}").fetchall()
        session.execute(f"DROP TABLE {place}")
        yield engine._connection.execute(f'SELECT * FROM "{name}"').fetchall(), there
    engine.close()


def test_stored_rows_are_those_of_the_snapshot(session):
    tables = list_tables() | {"odd": (Table("odd", None, "id", COLUMNS, 2), ODD)}
    for here, there in read_both(session, tables):
        assert sorted(map(repr, here)) == sorted(map(repr, there))
        assert here


def test_a_lost_value_would_be_noticed(session, monkeypatch):
    """Negative control: a narrower type loses digits."""
    monkeypatch.setitem(copied_rows.TYPES, "DOUBLE", "real")
    ((here, there),) = read_both(session, {"odd": (Table("odd", None, "id", COLUMNS, 2), ODD)})
    assert sorted(map(repr, here)) != sorted(map(repr, there))


def test_long_names_are_told_apart():
    assert shorten_name("a" * 63) == "a" * 63
    first, second = (shorten_name(LONG + end) for end in "12")
    assert first != second
    assert len(first.encode()) <= 63
    assert first.startswith("ä" * 10)
