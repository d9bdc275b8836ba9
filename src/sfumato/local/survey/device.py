"""A person's own books: what each survey has cost them, their caps, and the permanent reports that they keep.

One SQLite file. A charge, the permanent report and the report are committed together, to the disk, before the report
leaves: a crash leaves all of them or none.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path

from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerError
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import plain, sum_exactly
from sfumato.kernel.parameters import Number
from sfumato.local.mechanisms.permanent_coins import PermanentCoins
from sfumato.local.mechanisms.two_stage import TwoStage
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.survey.canonical_json import canonical
from sfumato.local.survey.domains import Answer, draw_one
from sfumato.local.survey.manifest import SECONDS_A_DAY, Manifest
from sfumato.number_arguments import positive_decimal

FORMAT = "sfumato-device 1"
DAYS_A_MONTH = 30
SECRET_BYTES = 32
PLACE = "SFUMATO_DEVICE"
PURPOSE = "sfumato permanent report 1"
_PATIENCE = 30.0
_SCHEMA = """
    CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE charges (number INTEGER PRIMARY KEY, survey TEXT NOT NULL, period INTEGER NOT NULL,
        day INTEGER NOT NULL, epsilon TEXT NOT NULL);
    CREATE TABLE permanent (survey TEXT, renewal INTEGER, report TEXT NOT NULL, PRIMARY KEY (survey, renewal));
    CREATE TABLE reports (survey TEXT, period INTEGER, record TEXT NOT NULL, PRIMARY KEY (survey, period));
"""


@dataclass(frozen=True, slots=True)
class Caps:
    """The most epsilon that a person gives: to one survey, in any thirty days, and ever."""

    per_survey: Decimal = Decimal(4)
    per_month: Decimal = Decimal(8)
    lifetime: Decimal = Decimal(32)


@dataclass(frozen=True, slots=True)
class Report:
    """What leaves the device: a record of one line. `epsilon` is what it cost, and `repeated` if it was made before."""

    survey: str
    period: int
    id: str
    report: int | str
    epsilon: Decimal
    repeated: bool = False

    def to_json(self) -> str:
        """The line that is sent: which survey and period, a number that is used once, and the report."""
        record = {"survey": self.survey, "period": self.period, "id": self.id, "report": self.report}
        return json.dumps(record, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Spent:
    """What was charged so far: for one survey, in the last thirty days, and ever."""

    survey: Decimal
    month: Decimal
    lifetime: Decimal


class Device:
    """The books in one file, which is made if it is not there; the secret in it never leaves."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = default_place() if path is None else Path(path)
        if not self.path.exists():
            self._begin()

    def caps(self) -> Caps:
        with self._books() as books:
            return _caps(books)

    def set_caps(
        self, *, per_survey: Number | None = None, per_month: Number | None = None, lifetime: Number | None = None
    ) -> Caps:
        """Change what the person allows; what was charged stays."""
        given = {"per_survey": per_survey, "per_month": per_month, "lifetime": lifetime}
        wanted = {name: positive_decimal(value, name) for name, value in given.items() if value is not None}
        with self._books() as books:
            for name, cap in wanted.items():
                books.execute("UPDATE settings SET value = ? WHERE name = ?", (str(cap), name))
            return _caps(books)

    def spent(self, survey: Manifest, at: datetime) -> Spent:
        with self._books() as books:
            return _spent(books, survey, _day(at))

    def report(self, survey: Manifest, answer: Answer, at: datetime) -> Report:
        """The report for the period of this moment. Asked again in the same period, it is the same one, and free.

        Whether it is charged or refused depends on what happened before and on public numbers, never on the answer.
        """
        if at.tzinfo is None:
            raise InvalidParameter("at", "must say its time zone", "a time without one", "datetime.now(UTC) does.")
        period = survey.period_at(at)
        with self._books() as books:
            made = books.execute(
                "SELECT record FROM reports WHERE survey = ? AND period = ?", (survey.digest, period)
            ).fetchone()
            if made:
                return _read(made[0])
            if survey.memo is None:
                self._charge(books, survey, period, at)
                price, report = survey.price, draw_one(survey.permanent, answer, SYSTEM)
            else:
                price, kept = self._permanent(books, survey, answer, period, at)
                report = _again(survey, kept)
            record = Report(survey.id, period, SYSTEM.take(16).tobytes().hex(), report, price)
            books.execute("INSERT INTO reports VALUES (?, ?, ?)", (survey.digest, period, record.to_json()))
        return record

    def _permanent(
        self, books: sqlite3.Connection, survey: Manifest, answer: Answer, period: int, at: datetime
    ) -> tuple[Decimal, int | str]:
        """What the permanent report of this renewal costs now, and the report itself.

        The first answer of a renewal is the one that is kept: were a new report drawn when the answer changes, the
        reports would show that it changed.
        """
        renewal = period // survey.memo.periods if survey.memo else 0
        kept = books.execute(
            "SELECT report FROM permanent WHERE survey = ? AND renewal = ?", (survey.digest, renewal)
        ).fetchone()
        if kept:
            return Decimal(0), _kept(kept[0])
        self._charge(books, survey, period, at)
        stream = PermanentCoins(_secret(books), permanent_purpose(survey.digest, renewal, answer))
        drawn = draw_one(survey.permanent, answer, stream)
        books.execute("INSERT INTO permanent VALUES (?, ?, ?)", (survey.digest, renewal, json.dumps(drawn)))
        return survey.price, drawn

    def _charge(self, books: sqlite3.Connection, survey: Manifest, period: int, at: datetime) -> None:
        caps, spent = _caps(books), _spent(books, survey, _day(at))
        limits = (
            (survey.lifetime_epsilon, spent.survey, "this survey may ever have"),
            (caps.per_survey, spent.survey, "you give to one survey"),
            (caps.per_month, spent.month, "you give in thirty days"),
            (caps.lifetime, spent.lifetime, "you ever give"),
        )
        for limit, so_far, whom in limits:
            left = max(sum_exactly(limit, -Fraction(so_far)), Decimal(0))  # -Decimal would round to 28 digits
            if survey.price > left:
                raise BudgetExceeded(
                    f"This costs epsilon {plain(survey.price)}; {plain(left)} is left of what {whom}.",
                    "Nothing was sent or spent.",
                    survey.price,
                    left,
                )
        books.execute(
            "INSERT INTO charges (survey, period, day, epsilon) VALUES (?, ?, ?, ?)",
            (survey.digest, period, _day(at), str(survey.price)),
        )

    @contextmanager
    def _books(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone among all processes: committed and on the disk when it is left."""
        if not self.path.exists():
            raise _damaged("is gone")
        try:
            with closing(sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)) as books:
                books.execute("PRAGMA synchronous = FULL")
                books.execute("BEGIN IMMEDIATE")
                found = books.execute("SELECT value FROM settings WHERE name = 'format'").fetchone()
                if found != (FORMAT,):
                    raise _damaged("is of another version")
                try:
                    yield books
                except BaseException:
                    books.execute("ROLLBACK")
                    raise
                books.execute("COMMIT")
        except (sqlite3.Error, UnicodeDecodeError):  # the second where sqlite3 quotes a damaged file in its message
            raise _damaged("cannot be read or written") from None

    def _begin(self) -> None:
        """Make the file under another name, whole, and put it in its place if nobody else has."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(f"{self.path.name}.{SYSTEM.take(8).tobytes().hex()}")
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with closing(sqlite3.connect(fresh)) as books, books:
                books.executescript(_SCHEMA)
                caps = [(each.name, str(each.default)) for each in fields(Caps)]
                secret = ("secret", SYSTEM.take(SECRET_BYTES).tobytes().hex())
                books.executemany("INSERT INTO settings VALUES (?, ?)", [("format", FORMAT), secret, *caps])
            with suppress(FileExistsError):  # another process was first: its books are the books
                os.link(fresh, self.path)
        finally:
            fresh.unlink()
        if os.name == "posix":  # the name, too, has to be on the disk before a report leaves
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)


def default_place() -> Path:
    """Where SFUMATO_DEVICE says, or in the person's home."""
    return Path(os.environ.get(PLACE) or Path.home() / ".sfumato" / "device.db")


def permanent_purpose(digest: str, renewal: int, answer: Answer) -> bytes:
    """The purpose of a permanent report's coins. The digest is of the whole survey, so two tables never share coins."""
    return canonical({"purpose": PURPOSE, "survey": digest, "renewal": renewal, "answer": answer})


def _again(survey: Manifest, kept: int | str) -> int | str:
    match survey.table:
        case Randomiser(mechanism=TwoStage() as staged):
            row, malformed = survey.table.form.decode([kept])
            if malformed:
                raise _damaged("holds a report that cannot have been made")
            return survey.table.form.encode(staged.draw_again(row, SYSTEM))[0]
    return kept


def _read(record: str) -> Report:
    try:
        match json.loads(record):
            case {"survey": str(survey), "period": int(period), "id": str(name), "report": int() | str() as report}:
                return Report(survey, period, name, report, Decimal(0), repeated=True)
    except (ValueError, TypeError):
        pass
    raise _damaged("holds a report that cannot have been made")


def _kept(report: str) -> int | str:
    try:
        match json.loads(report):
            case int() | str() as kept:
                return kept
    except (ValueError, TypeError):
        pass
    raise _damaged("holds a report that cannot have been made")


def _secret(books: sqlite3.Connection) -> bytes:
    try:
        (value,) = books.execute("SELECT value FROM settings WHERE name = 'secret'").fetchone()
        secret = bytes.fromhex(value)
    except (ValueError, TypeError):
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise _damaged("has lost its secret")
    return secret


def _caps(books: sqlite3.Connection) -> Caps:
    found = dict(books.execute("SELECT name, value FROM settings"))
    try:
        return Caps(*(positive_decimal(found[each.name], each.name) for each in fields(Caps)))
    except (KeyError, InvalidParameter):
        raise _damaged("has lost its caps") from None


def _spent(books: sqlite3.Connection, survey: Manifest, today: int) -> Spent:
    """What was charged, in the order in which it was.

    Time only moves on: what was charged after a charge of the last thirty days is of these thirty days too, whatever
    day the clock said. So a clock that is set back, and right again later, does not make a month of more days.
    """
    charges = [
        (digest, when, _charged(epsilon))
        for digest, when, epsilon in books.execute("SELECT survey, day, epsilon FROM charges ORDER BY number")
    ]
    first = next((place for place, (_, when, _) in enumerate(charges) if when > today - DAYS_A_MONTH), len(charges))
    return Spent(
        sum_exactly(*(epsilon for digest, _, epsilon in charges if digest == survey.digest)),
        sum_exactly(*(epsilon for _, _, epsilon in charges[first:])),
        sum_exactly(*(epsilon for _, _, epsilon in charges)),
    )


def _charged(text: str) -> Decimal:
    try:
        epsilon = Decimal(text)
        if epsilon.is_finite() and epsilon >= 0:
            return epsilon
    except (InvalidOperation, TypeError, ValueError):
        pass
    raise _damaged("holds a charge that cannot have been made")


def _day(at: datetime) -> int:
    return int(at.timestamp()) // SECONDS_A_DAY


def _damaged(what: str) -> LedgerError:
    return LedgerError(
        "device-ledger",
        f"The device's own ledger {what}.",
        "Nothing was sent. Put the file back from a copy; a new one would forget what was spent.",
    )
