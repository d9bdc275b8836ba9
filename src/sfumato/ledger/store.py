"""Where a ledger is kept: a table of chained entries and one row that names the last, on SQLite or PostgreSQL."""

import hashlib
import json
import os
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, assert_never

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from sfumato.errors import LedgerError
from sfumato.kernel.exact import plain
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP

WAIT_SECONDS = 30

_TABLES = sa.MetaData()
_ENTRIES = sa.Table(
    "sfumato_entries",
    _TABLES,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("analyst", sa.Text, nullable=False),
    sa.Column("plan_digest", sa.Text, nullable=False),
    sa.Column("answer_key", sa.Text, nullable=False),
    sa.Column("about", sa.Integer),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("loss", "budget", "spent", "analyst_spent")),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("payload_hash", "time", "previous", "hash")),
    sa.Column("payload", sa.Text, nullable=False),
)
_HEAD = sa.Table(
    "sfumato_head",
    _TABLES,
    sa.Column("single", sa.Integer, sa.CheckConstraint("single = 1"), primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, nullable=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("hash", "budget", "spent")),
)


def _is(kind: str) -> sa.ColumnElement[bool]:
    """A condition with the kind written out: SQLite uses a partial index only if it can read the condition."""
    return _ENTRIES.c.kind == sa.literal_column(f"'{kind}'")


def _index(name: str, kind: str, *columns: str, unique: bool = False) -> None:
    where = _is(kind)
    parts = [_ENTRIES.c[column] for column in columns]
    sa.Index(f"sfumato_{name}", *parts, unique=unique, sqlite_where=where, postgresql_where=where)


_index("charges", "charge", "plan_digest", "analyst", "number")
_index("answers", "answer", "answer_key")
_index("one_answer", "answer", "about", unique=True)
_index("seen_once", "seen", "about", "analyst", unique=True)
sa.Index("sfumato_analysts", _ENTRIES.c.analyst, _ENTRIES.c.number)

_PLAIN = [column for column in _ENTRIES.c if column.name != "payload"]  # a payload may be megabytes long
_CHAINED = [name for name in _ENTRIES.c.keys() if name not in ("previous", "hash", "payload")]  # noqa: SIM118
_charge, _answer = _ENTRIES.alias("charge"), _ENTRIES.alias("answer")

# built once, so that SQLAlchemy compiles each of them once
_GET_HEAD = sa.select(_HEAD).where(_HEAD.c.single == 1)
_LOCK_HEAD = _GET_HEAD.with_for_update()
_MOVE_HEAD = sa.update(_HEAD).where(_HEAD.c.single == 1)
_ADD_ENTRY = sa.insert(_ENTRIES)
_GET_LAST = sa.select(*_PLAIN).order_by(_ENTRIES.c.number.desc()).limit(1)
_GET_PLAIN = sa.select(*_PLAIN).where(_ENTRIES.c.number == sa.bindparam("number"))
_GET_WHOLE = sa.select(_ENTRIES).where(_ENTRIES.c.number == sa.bindparam("number"))
_GET_CHARGE = (
    sa.select(_ENTRIES)
    .where(_is("charge"), _ENTRIES.c.plan_digest == sa.bindparam("plan"), _ENTRIES.c.analyst == sa.bindparam("analyst"))
    .order_by(_ENTRIES.c.number.desc())
    .limit(1)
)
_GET_ANSWER = sa.select(_ENTRIES).where(_is("answer"), _ENTRIES.c.about == sa.bindparam("charge"))
_HAS_SEEN = sa.select(_ENTRIES.c.number).where(
    _is("seen"), _ENTRIES.c.about == sa.bindparam("charge"), _ENTRIES.c.analyst == sa.bindparam("analyst")
)
_GET_ANSWERED = sa.select(_charge).join(_answer, _charge.c.number == _answer.c.about)
_GET_ANSWERED = _GET_ANSWERED.where(
    _answer.c.kind == sa.literal_column("'answer'"), _answer.c.answer_key == sa.bindparam("key")
)
_GET_SPENT = (
    sa.select(*_PLAIN).where(_ENTRIES.c.analyst == sa.bindparam("analyst")).order_by(_ENTRIES.c.number.desc()).limit(1)
)
_WALK = sa.select(_ENTRIES).order_by(_ENTRIES.c.number)
_NEWEST = sa.select(*_PLAIN).order_by(_ENTRIES.c.number.desc())

Row = Mapping[str, Any]
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=repr)


def canonical(thing: object) -> str:
    """The one JSON text of a thing: what is hashed, and what an auditor can hash again."""
    return _ENCODER.encode(thing)


def sha256(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def loss_text(loss: PrivacyLoss | None) -> str:
    """A loss as it is kept: every digit, never a float."""
    match loss:
        case None:
            return ""
        case PureDP(epsilon):
            return canonical({"epsilon": plain(epsilon)})
        case ApproxDP(epsilon, delta):
            return canonical({"delta": plain(delta), "epsilon": plain(epsilon)})
        case ZCDP(rho, delta):
            return canonical({"delta": plain(delta), "rho": plain(rho)})
        case _:
            assert_never(loss)


@lru_cache(maxsize=4096)
def read_loss(text: str) -> PrivacyLoss | None:
    """The loss that `loss_text` wrote."""
    if not text:
        return None
    parts = {name: Decimal(digits) for name, digits in json.loads(text).items()}
    if "rho" in parts:
        return ZCDP(parts["rho"], parts["delta"])
    return ApproxDP(parts["epsilon"], parts["delta"]) if "delta" in parts else PureDP(parts["epsilon"])


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger. `about` is the charge that an answer or a view belongs to; `budget` is the limit then."""

    number: int
    kind: str  # open | limit | charge | answer | seen
    analyst: str
    plan_digest: str
    answer_key: str
    about: int | None
    loss: PrivacyLoss | None
    budget: PrivacyLoss
    spent: PrivacyLoss
    analyst_spent: PrivacyLoss | None
    payload_hash: str
    time: str
    previous: str
    hash: str

    @classmethod
    def of(cls, row: Row) -> "Entry":
        """The entry that a row of the table holds."""
        values = {field.name: row[field.name] for field in fields(cls)}
        for name in ("loss", "budget", "spent", "analyst_spent"):
            values[name] = read_loss(values[name])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry: its number and hash, and the totals after it."""

    number: int
    hash: str
    budget: PrivacyLoss
    spent: PrivacyLoss


def chain_hash(previous: str, row: Row) -> str:
    """The hash of an entry: of the hash before it and of its own fields."""
    return sha256(previous + "\n" + canonical({name: row[name] for name in _CHAINED}))


def altered(row: Row) -> bool:
    """Whether the row is no longer what was hashed."""
    if "payload" in row and sha256(str(row["payload"])) != row["payload_hash"]:
        return True
    return bool(chain_hash(str(row["previous"]), row) != row["hash"])


def altered_error(number: int, what: str = "was altered") -> LedgerError:
    """The refusal to work from an entry that does not hold."""
    hint = "Run `sfumato ledger verify`, and restore the ledger from a backup that is not older."
    return LedgerError("ledger-altered", f"Entry {number} of the ledger {what}.", hint)


class Books:
    """The ledger's rows inside one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def has_tables(self) -> bool:
        """Whether a ledger was ever made here."""
        return sa.inspect(self._connection).has_table(_HEAD.name)

    def make_tables(self) -> None:
        """Make the tables, and the head row of a ledger without entries; the caller appends the first."""
        _TABLES.create_all(self._connection, checkfirst=False)
        self._connection.execute(_HEAD.insert().values(single=1, number=0, hash="", budget="", spent=""))

    def head(self, *, lock: bool) -> Head:
        """The last entry, checked against its own hash and against the row of totals; `lock` holds others off."""
        row = self._one(_LOCK_HEAD if lock else _GET_HEAD)
        if row is None:
            raise LedgerError("ledger-altered", "The ledger has lost its totals.", "Restore it from its latest backup.")
        last = self._sound(_GET_LAST)
        number = last["number"] if last else 0
        if number != row["number"]:
            what = "is missing" if number < row["number"] else "was never added by the ledger"
            raise altered_error(min(number, row["number"]) + 1, what)
        if last is None or any(last[name] != row[name] for name in ("hash", "budget", "spent")):
            raise altered_error(number, "does not agree with the totals")
        budget, spent = read_loss(row["budget"]), read_loss(row["spent"])
        if budget is None or spent is None:
            raise altered_error(number)
        return Head(number, row["hash"], budget, spent)

    def claimed_number(self) -> int:
        """The number of entries that the row of totals speaks of, for an audit."""
        row = self._one(_GET_HEAD)
        return row["number"] if row else 0

    def append(self, before: Head | None, kind: str, budget: PrivacyLoss, spent: PrivacyLoss, **parts: Any) -> Head:  # noqa: ANN401
        """Chain one more entry to the head, and move the head. The transaction makes both happen, or neither."""
        payload = parts.pop("payload", "")
        row = {
            "number": before.number + 1 if before else 1,
            "kind": kind,
            "analyst": "",
            "plan_digest": "",
            "answer_key": "",
            "about": None,
            "time": datetime.now(UTC).isoformat(timespec="microseconds"),
            "payload_hash": sha256(payload),
            "budget": loss_text(budget),
            "spent": loss_text(spent),
            **parts,
            "loss": loss_text(parts.get("loss")),
            "analyst_spent": loss_text(parts.get("analyst_spent")),
        }
        previous = before.hash if before else ""
        head = Head(row["number"], chain_hash(previous, row), budget, spent)
        self._connection.execute(_ADD_ENTRY, {**row, "previous": previous, "hash": head.hash, "payload": payload})
        moved = {name: row[name] for name in ("number", "budget", "spent")}
        self._connection.execute(_MOVE_HEAD, {**moved, "hash": head.hash})
        return head

    def row(self, number: int) -> Row | None:
        """An entry without its payload; an altered one is refused."""
        return self._sound(_GET_PLAIN, number=number)

    def whole_row(self, number: int) -> Row | None:
        """An entry with its payload; an altered one is refused."""
        return self._sound(_GET_WHOLE, number=number)

    def newest_charge(self, plan_digest: str, analyst: str) -> Row | None:
        """The analyst's last charge for this very plan."""
        return self._sound(_GET_CHARGE, plan=plan_digest, analyst=analyst)

    def newest_of(self, analyst: str) -> Row | None:
        """The analyst's last entry, which carries what the analyst has spent."""
        return self._sound(_GET_SPENT, analyst=analyst)

    def answer_to(self, charge: int) -> Row | None:
        """The answer entry of a charge, with its integers."""
        return self._sound(_GET_ANSWER, charge=charge)

    def has_seen(self, charge: int, analyst: str) -> bool:
        """Whether the analyst's view of this charge's answer was counted."""
        return self._one(_HAS_SEEN, charge=charge, analyst=analyst) is not None

    def answered(self, answer_key: str) -> list[Row]:
        """The charges under this key that have an answer."""
        found = self._connection.execute(_GET_ANSWERED, {"key": answer_key})
        return [_refuse_altered(row._asdict()) for row in found]

    def walk(self) -> Generator[Row, None, None]:
        """Every entry as it stands, first to last, a few at a time."""
        with self._connection.execute(_WALK, execution_options={"yield_per": 100}) as rows:
            for row in rows:
                yield row._asdict()

    def newest(self, most: int | None) -> list[Entry]:
        """The newest entries, oldest of them first."""
        rows = self._connection.execute(_NEWEST.limit(most)).all()
        return [Entry.of(_refuse_altered(row._asdict())) for row in reversed(rows)]

    def _one(self, statement: sa.Select[Any], **values: object) -> Row | None:
        row = self._connection.execute(statement, values).first()
        return None if row is None else row._asdict()

    def _sound(self, statement: sa.Select[Any], **values: object) -> Row | None:
        row = self._one(statement, **values)
        return None if row is None else _refuse_altered(row)


def _refuse_altered(row: Row) -> Row:
    if altered(row):
        raise altered_error(row["number"])
    return row


class Store:
    """A database that holds one ledger. Threads share it; a forked child of the process gets connections of its own."""

    def __init__(self, url: str | None, *, must_exist: bool) -> None:
        address = _address(url)
        on_sqlite = address.get_backend_name() == "sqlite"
        self._in_memory = on_sqlite and not address.database
        if must_exist and (self._in_memory or (on_sqlite and not os.path.isfile(address.database or ""))):
            hint = "Name the file that the ledger was made in. A new one is made only where no ledger_id is declared."
            raise LedgerError("ledger-missing", "There is no ledger at this address.", hint)
        self._process = os.getpid()
        self._lock = threading.RLock()
        reading: dict[str, str] = {"begin": "BEGIN"}
        writing: dict[str, str] = {"begin": "BEGIN IMMEDIATE"}  # SQLite: take the write lock before reading
        if on_sqlite:
            pool = {"poolclass": StaticPool} if self._in_memory else {}
            connect_args = {"isolation_level": None, "check_same_thread": False, "timeout": WAIT_SECONDS}
            self._engine = sa.create_engine(address, connect_args=connect_args, hide_parameters=True, **pool)
            sa.event.listen(self._engine, "connect", _set_up_sqlite)
            sa.event.listen(self._engine, "begin", _begin_sqlite)
        else:
            self._engine = sa.create_engine(address, hide_parameters=True)
            reading["isolation_level"] = "REPEATABLE READ"  # one snapshot for the whole reading
            writing["isolation_level"] = "READ COMMITTED"  # after the wait for the lock, read what others wrote
        self._reader = self._engine.execution_options(**reading)
        self._writer = self._engine.execution_options(**writing)

    @contextmanager
    def read(self) -> Iterator[Books]:
        """One consistent view of the ledger."""
        with self._transaction(self._reader) as books:
            yield books

    @contextmanager
    def write(self) -> Iterator[Books]:
        """One transaction that excludes other writers; on leaving it without an error, it is on the disk."""
        with self._transaction(self._writer) as books:
            yield books

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self, engine: sa.Engine) -> Iterator[Books]:
        self._stay_in_one_process()
        try:
            if not self._in_memory:
                with engine.begin() as connection:
                    yield Books(connection)
            else:
                with self._lock, engine.begin() as connection:  # threads share its one connection
                    yield Books(connection)
        except SQLAlchemyError as error:
            hint = "Check its address, its permissions and its disk. Nothing is answered without it."
            raise LedgerError("ledger-unreachable", "The ledger cannot be read or written.", hint) from error

    def _stay_in_one_process(self) -> None:
        if self._process == os.getpid():
            return
        if self._in_memory:  # a child's copy would be a second budget
            hint = "Keep the ledger in a file or a database, and open it in each process."
            raise LedgerError("ledger-foreign", "A ledger in memory belongs to the process that made it.", hint)
        self._engine.dispose(close=False)
        self._process = os.getpid()


def _address(url: str | None) -> sa.URL:
    if url is None:
        return sa.URL.create("sqlite")
    if "://" not in url:
        return sa.URL.create("sqlite", database=os.path.abspath(url))
    try:
        address = sa.make_url(url)
        backend = address.get_backend_name()
        if backend in ("sqlite", "postgresql"):
            address.get_dialect()
            in_file = backend == "sqlite" and address.database not in (None, "", ":memory:")
            database = os.path.abspath(address.database or "") if in_file else None
            return address if backend == "postgresql" else address.set(database=database)
    except (ArgumentError, NoSuchModuleError, ImportError):
        pass
    hint = "Give a file path, or a URL such as postgresql+psycopg://user@host/database."
    raise LedgerError("ledger-unreachable", "A ledger lives in SQLite or PostgreSQL.", hint)


def _set_up_sqlite(connection: Any, _: object) -> None:  # noqa: ANN401
    for pragma in (f"busy_timeout = {1000 * WAIT_SECONDS}", "journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))
