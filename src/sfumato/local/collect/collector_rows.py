"""The collector's rows in a SQLite file or on a PostgreSQL server: reports, batches and counts of what arrived.

A batch belongs to one period. It is open until it is published; then it is sealed, and new reports go to the next one.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from sfumato.errors import InvalidParameter, LedgerError
from sfumato.ledger.server_address import is_server, read_server_address
from sfumato.local.randomisers.tally import Tally

_WAIT_SECONDS = 60.0
_SETTINGS = ("temp_store = MEMORY", "cache_size = -65536")  # 64 MiB, for any number of ids
_IDS_AT_ONCE = 900
Cell = int | bytes  # a report as it is stored


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report that was counted before, and the batch that contains it."""

    id: bytes
    batch: int
    period: int
    sealed: bool
    report: Cell


@dataclass(frozen=True, slots=True, eq=False)
class StoredBatch:
    """The reports of one period that are published together."""

    number: int
    name: str  # unique over all workers
    period: int
    sealed: bool
    tally: Tally


class CollectorDatabase:
    """A SQLite file, or tables on a PostgreSQL server whose names begin with the survey's id."""

    def __init__(self, address: Path | str, survey: str, *, whole_numbers: bool) -> None:
        self.server = isinstance(address, str) and is_server(address)
        self.prefix = f"survey_{survey}_" if self.server else ""
        self._schema: str | None = None
        if self.server:
            place = read_server_address(str(address))
            self.engine, self._schema = place.make_engine(NullPool), place.schema
        else:
            path = str(Path(address))
            self.engine = sa.create_engine(
                "sqlite://",
                creator=lambda: sqlite3.connect(
                    path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
                ),
                poolclass=NullPool,
                hide_parameters=True,
            )
        report = sa.BigInteger if whole_numbers else sa.LargeBinary
        self._tables = sa.MetaData()
        self._table(
            "about", sa.Column("name", sa.String, primary_key=True), sa.Column("value", sa.String, nullable=False)
        )
        self._table(
            "received",
            sa.Column("name", sa.String, primary_key=True),
            sa.Column("count", sa.BigInteger, nullable=False),
        )
        self._table(
            "merged", sa.Column("worker", sa.String, primary_key=True), sa.Column("name", sa.String, primary_key=True),
            sa.Column("count", sa.BigInteger, nullable=False),
        )  # fmt: skip
        self._table("withdrawn", sa.Column("id", sa.LargeBinary, primary_key=True))
        self._table(
            "batches", sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("name", sa.String, unique=True, nullable=False), sa.Column("period", sa.Integer, nullable=False),
            sa.Column("sealed", sa.Integer, nullable=False), sa.Column("people", sa.BigInteger, nullable=False),
            sa.Column("counts", sa.LargeBinary, nullable=False),
        )  # fmt: skip
        self._table(
            "reports", sa.Column("id", sa.LargeBinary, primary_key=True),
            sa.Column("batch", sa.Integer, nullable=False), sa.Column("report", report, nullable=False),
        )  # fmt: skip

    def _table(self, name: str, *columns: sa.Column[object]) -> None:
        with_rowid = name not in ("reports", "withdrawn")
        sa.Table(self.prefix + name, self._tables, *columns, sqlite_with_rowid=with_rowid)

    @contextmanager
    def transaction(self, *, create: bool = False) -> Iterator["CollectorRows"]:
        """One transaction that excludes other writers: all of it is written, or nothing."""
        try:
            with self.engine.connect() as connection:
                if self.server:
                    with connection.begin():
                        # one writer at a time; it also keeps two starting workers from creating the tables together
                        lock = sa.text("SELECT pg_advisory_xact_lock(hashtext(:name))")
                        connection.execute(lock, {"name": f"{self._schema}.{self.prefix}"})
                        yield self._rows(connection, create)
                    return
                for setting in _SETTINGS:
                    connection.exec_driver_sql(f"PRAGMA {setting}")
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                try:
                    yield self._rows(connection, create)
                except BaseException:
                    connection.exec_driver_sql("ROLLBACK")
                    raise
                connection.exec_driver_sql("COMMIT")
        except (SQLAlchemyError, sqlite3.Error, UnicodeDecodeError):
            raise build_file_error("cannot be read or written") from None

    def _rows(self, connection: sa.Connection, create: bool) -> "CollectorRows":
        if create:
            if self._schema is not None:
                connection.exec_driver_sql(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"')  # letters, digits and _
            self._tables.create_all(connection)
        return CollectorRows(connection, self.prefix, self.server)


class CollectorRows:
    """The rows, inside one transaction."""

    def __init__(self, connection: sa.Connection, prefix: str, server: bool) -> None:
        self._connection, self._prefix, self._server = connection, prefix, server

    def run(self, query: str, **values: object) -> Any:  # noqa: ANN401 - rows of several types
        """Run SQL in which {name} stands for the table of this survey."""
        return self._connection.execute(self._write(query), values)

    def _write(self, query: str) -> sa.TextClause:
        names = ("about", "received", "merged", "withdrawn", "batches", "reports")
        return sa.text(query.format(**{name: self._prefix + name for name in names}))

    def read_pairs(self, query: str, **values: object) -> dict[str, object]:
        return {str(name): value for name, value in self.run(query, **values)}

    def list_batches(self, *, period: int | None = None) -> list[StoredBatch]:
        where = "" if period is None else "WHERE period = :period"
        given = {} if period is None else {"period": period}
        query = f"SELECT number, name, period, sealed, people, counts FROM {{batches}} {where} ORDER BY number"  # noqa: S608
        return [_read_batch(row) for row in self.run(query, **given)]

    def open_batch(self, period: int, worker: str, width: int) -> StoredBatch:
        """The batch of this period that takes new reports; a new one if the last was published."""
        for batch in self.list_batches(period=period):
            if not batch.sealed:
                return batch
        number = self._next_number()
        return self.add_batch(StoredBatch(number, f"{worker}:{number}", period, False, Tally.empty(width)))

    def add_batch(self, batch: StoredBatch) -> StoredBatch:
        self.run(
            "INSERT INTO {batches} VALUES (:number, :name, :period, :sealed, :people, :counts)",
            number=batch.number, name=batch.name, period=batch.period, sealed=int(batch.sealed),
            people=batch.tally.people, counts=_write_counts(batch.tally),
        )  # fmt: skip
        return batch

    def add_sealed(self, name: str, period: int, tally: Tally) -> StoredBatch:
        """Add a batch that another worker published."""
        return self.add_batch(StoredBatch(self._next_number(), name, period, True, tally))

    def store_tally(self, number: int, tally: Tally) -> None:
        self.run(
            "UPDATE {batches} SET people = :people, counts = :counts WHERE number = :number",
            number=number, people=tally.people, counts=_write_counts(tally),
        )  # fmt: skip

    def seal(self, number: int) -> None:
        self.run("UPDATE {batches} SET sealed = 1 WHERE number = :number", number=number)

    def find_reports(self, ids: Sequence[bytes]) -> list[StoredReport]:
        """Those of these reports that were counted."""
        query = self._write(
            "SELECT {reports}.id, batch, period, sealed, report FROM {reports} JOIN {batches} ON number = batch "
            "WHERE {reports}.id IN :ids"
        ).bindparams(sa.bindparam("ids", expanding=True))
        found: list[StoredReport] = []
        for part in _cut(ids):
            rows = self._connection.execute(query, {"ids": part})
            found += [StoredReport(bytes(row[0]), row[1], row[2], bool(row[3]), _read_cell(row[4])) for row in rows]
        return found

    def find_withdrawn(self, ids: Sequence[bytes]) -> set[bytes]:
        if self.run("SELECT 1 FROM {withdrawn} LIMIT 1").fetchone() is None:
            return set()
        query = self._write("SELECT id FROM {withdrawn} WHERE id IN :ids")
        query = query.bindparams(sa.bindparam("ids", expanding=True))
        return {bytes(row[0]) for part in _cut(ids) for row in self._connection.execute(query, {"ids": part})}

    def count_withdrawn(self) -> int:
        (count,) = self.run("SELECT COUNT(*) FROM {withdrawn}").one()
        return int(count)

    def try_adding(self, ids: Sequence[bytes], batches: Sequence[int], reports: Iterable[Cell]) -> bool:
        """Add reports if none of their ids is known. Otherwise nothing is added."""
        self._connection.exec_driver_sql("SAVEPOINT adding")
        try:
            self.add_reports(ids, batches, reports)
        except IntegrityError:
            self._connection.exec_driver_sql("ROLLBACK TO SAVEPOINT adding")
            return False
        return True

    def add_reports(self, ids: Sequence[bytes], batches: Sequence[int], reports: Iterable[Cell]) -> None:
        if not ids:
            return
        table, cells = f"{self._prefix}reports", list(reports)
        if self._server:
            kind = "bytea" if isinstance(cells[0], bytes) else "bigint"
            query = f"INSERT INTO {table} SELECT unnest(%s::bytea[]), unnest(%s::int[]), unnest(%s::{kind}[])"
            self._connection.exec_driver_sql(query, (list(ids), list(batches), cells))
        else:
            query = f"INSERT INTO {table} VALUES (?, ?, ?)"  # noqa: S608 - a constant
            self._connection.exec_driver_sql(query, list(zip(ids, batches, cells, strict=True)))

    def remove_reports(self, ids: Sequence[bytes]) -> None:
        query = self._write("DELETE FROM {reports} WHERE id IN :ids").bindparams(sa.bindparam("ids", expanding=True))
        for part in _cut(ids):
            self._connection.execute(query, {"ids": part})

    def iterate_reports(self, batch: int, at_once: int) -> Iterator[list[tuple[bytes, Cell]]]:
        """The reports of a batch, in the order of their ids."""
        after = b""
        query = "SELECT id, report FROM {reports} WHERE batch = :batch AND id > :after ORDER BY id LIMIT :most"
        while rows := self.run(query, batch=batch, after=after, most=at_once).fetchall():
            yield [(bytes(row[0]), _read_cell(row[1])) for row in rows]
            after = bytes(rows[-1][0])

    def _next_number(self) -> int:
        (number,) = self.run("SELECT COALESCE(MAX(number), 0) + 1 FROM {batches}").one()
        return int(number)


def build_file_error(why: str) -> LedgerError:
    return LedgerError("collector-file", f"The collector's file {why}.", "Use another file for each survey.")


def _cut(ids: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (ids[start : start + _IDS_AT_ONCE] for start in range(0, len(ids), _IDS_AT_ONCE))


def _read_cell(value: object) -> Cell:
    if isinstance(value, int):
        return value
    if isinstance(value, bytes | memoryview):
        return bytes(value)
    raise build_file_error("holds invalid reports")


def _write_counts(tally: Tally) -> bytes:
    return tally.counts.astype("<i8").tobytes()


def _read_batch(row: tuple[int, str, int, int, int, bytes]) -> StoredBatch:
    number, name, period, sealed, people, counts = row
    try:
        tally = Tally(people, np.frombuffer(counts, "<i8").astype(np.int64))
    except (ValueError, TypeError, InvalidParameter):
        raise build_file_error("holds invalid counts") from None
    return StoredBatch(number, name, period, bool(sealed), tally)
