"""A person's own ledger: what each survey has cost, the person's caps, and the permanent reports.

It is one SQLite file. A charge, the permanent report and the report are committed to disk in one transaction before the
report is returned. After a crash, either all of them are there or none.
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
from sfumato.kernel.exact import sum_exactly, write_plain
from sfumato.local.mechanisms.permanent_coins import PermanentCoins
from sfumato.local.mechanisms.two_stage import TwoStage
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.survey.announcement import Announcement
from sfumato.local.survey.canonical_json import write_canonical
from sfumato.local.survey.device_clock import read_device_clock
from sfumato.local.survey.domains import Answer, draw_report
from sfumato.local.survey.manifest import SECONDS_A_DAY, Manifest
from sfumato.local.survey.sqlite_transaction import run_sqlite_transaction
from sfumato.local.survey.survey_refusals import build_refusal
from sfumato.number_arguments import Number, read_positive_decimal, read_probability

FORMAT, FIRST_FORMAT = "sfumato-device 2", "sfumato-device 1"
DAYS_A_MONTH = 30
SECRET_BYTES = 32
PLACE = "SFUMATO_DEVICE"
PURPOSE = "sfumato permanent report 1"
_WAIT_SECONDS = 30.0
_DURABLE = ("synchronous = EXTRA",)  # the removal of the journal, which is the commit, is on the disk as well
_SCHEMA = """
    CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE charges (number INTEGER PRIMARY KEY, survey TEXT NOT NULL, period INTEGER NOT NULL,
        day INTEGER NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL DEFAULT '0');
    CREATE TABLE permanent (survey TEXT, renewal INTEGER, report TEXT NOT NULL, PRIMARY KEY (survey, renewal));
    CREATE TABLE reports (survey TEXT, period INTEGER, record TEXT NOT NULL, PRIMARY KEY (survey, period));
    CREATE TABLE floors (survey TEXT PRIMARY KEY, period INTEGER NOT NULL);
"""
_UPGRADE = (
    "ALTER TABLE charges ADD COLUMN delta TEXT NOT NULL DEFAULT '0'",
    "CREATE TABLE floors (survey TEXT PRIMARY KEY, period INTEGER NOT NULL)",
    "INSERT INTO settings VALUES ('delta', '0')",
    "UPDATE settings SET value = 'sfumato-device 2' WHERE name = 'format'",
)
KEPT_PERIODS = 52  # reports of earlier periods are removed


@dataclass(frozen=True, slots=True)
class Caps:
    """The most epsilon that a person allows, for one survey, in any thirty days and in total; and the most delta.

    A delta of 0 refuses every survey whose guarantee has a delta: with that probability, a report may reveal anything.
    """

    per_survey: Decimal = Decimal(4)
    per_month: Decimal = Decimal(8)
    lifetime: Decimal = Decimal(32)
    delta: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Report:
    """The record that leaves the device. `epsilon` and `delta` are its cost; `repeated`: it was made before."""

    survey: str
    period: int
    id: str
    report: int | str
    epsilon: Decimal
    repeated: bool = False
    delta: Decimal = Decimal(0)

    def to_json(self) -> str:
        """The line that is sent: the survey, the period, a random id that is used once, and the report."""
        record = {"survey": self.survey, "period": self.period, "id": self.id, "report": self.report}
        return json.dumps(record, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class SpentEpsilon:
    """The epsilon that was charged so far, for one survey, in the last thirty days and in total; and the delta."""

    survey: Decimal
    month: Decimal
    lifetime: Decimal
    survey_delta: Decimal
    delta: Decimal


class Device:
    """The ledger in one file, which is created if it does not exist. Its secret never leaves the device."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = find_default_place() if path is None else Path(path)
        if not self.path.exists():
            self._create()

    def caps(self) -> Caps:
        with self._open_ledger() as ledger:
            return _read_caps(ledger)

    def set_caps(
        self,
        *,
        per_survey: Number | None = None,
        per_month: Number | None = None,
        lifetime: Number | None = None,
        delta: Number | None = None,
    ) -> Caps:
        """Change the person's caps. Charges stay. `delta=0` refuses surveys with a delta again."""
        given = {"per_survey": per_survey, "per_month": per_month, "lifetime": lifetime}
        wanted = {name: read_positive_decimal(value, name) for name, value in given.items() if value is not None}
        if delta is not None:
            wanted["delta"] = _read_delta_cap(delta)
        with self._open_ledger() as ledger:
            for name, cap in wanted.items():
                ledger.execute("UPDATE settings SET value = ? WHERE name = ?", (str(cap), name))
            return _read_caps(ledger)

    def sum_spent(self, survey: Manifest, at: datetime) -> SpentEpsilon:
        with self._open_ledger() as ledger:
            return _sum_charges(ledger, survey, _count_days(at))

    def report(
        self, survey: Manifest, answer: Answer, at: datetime, announcement: Announcement | None = None
    ) -> Report:
        """Make the report for the period of this time. A second call in the period returns the same report, for free.

        The charge and a refusal depend on earlier charges and on public numbers, never on the answer. `at` only chooses
        the period, and an announcement replaces it: thirty days are counted by the device's own clock, and by the
        announced time if that is earlier.
        """
        if at.tzinfo is None:
            raise InvalidParameter("at", "must have a time zone", "a time without one", "Use datetime.now(UTC).")
        period = survey.period_at(at) if announcement is None else announcement.period
        now = read_device_clock() if announcement is None else min(read_device_clock(), announcement.at)
        with self._open_ledger() as ledger:
            made = ledger.execute(
                "SELECT record FROM reports WHERE survey = ? AND period = ?", (survey.digest, period)
            ).fetchone()
            if made:
                return _read_record(made[0])
            if period < _read_floor(ledger, survey):
                raise build_refusal("survey-past")
            if survey.memo is None:
                self._charge(ledger, survey, period, now)
                price, report = survey.price, draw_report(survey.permanent, answer, SYSTEM)
            else:
                price, kept = self._keep_permanent(ledger, survey, answer, period, now)
                report = _draw_again(survey, kept)
            delta = survey.price_delta if price else Decimal(0)
            record = Report(survey.id, period, SYSTEM.take(16).tobytes().hex(), report, price, delta=delta)
            ledger.execute("INSERT INTO reports VALUES (?, ?, ?)", (survey.digest, period, record.to_json()))
            _prune(ledger, survey)
        return record

    def _keep_permanent(
        self, ledger: sqlite3.Connection, survey: Manifest, answer: Answer, period: int, now: datetime
    ) -> tuple[Decimal, int | str]:
        """Return the cost of this renewal's permanent report now, and the report itself.

        The first answer of a renewal is kept. If a changed answer led to a new permanent report, the reports would
        reveal the change.
        """
        renewal = period // survey.memo.periods if survey.memo else 0
        kept = ledger.execute(
            "SELECT report FROM permanent WHERE survey = ? AND renewal = ?", (survey.digest, renewal)
        ).fetchone()
        if kept:
            return Decimal(0), _read_permanent(kept[0])
        self._charge(ledger, survey, period, now)
        stream = PermanentCoins(_read_secret(ledger), write_permanent_purpose(survey.digest, renewal, answer))
        drawn = draw_report(survey.permanent, answer, stream)
        ledger.execute("INSERT INTO permanent VALUES (?, ?, ?)", (survey.digest, renewal, json.dumps(drawn)))
        return survey.price, drawn

    def _charge(self, ledger: sqlite3.Connection, survey: Manifest, period: int, now: datetime) -> None:
        caps, spent = _read_caps(ledger), _sum_charges(ledger, survey, _count_days(now))
        limits = (
            (survey.lifetime_epsilon, spent.survey, "the survey's lifetime epsilon"),
            (caps.per_survey, spent.survey, "your cap for one survey"),
            (caps.per_month, spent.month, "your cap for thirty days"),
            (caps.lifetime, spent.lifetime, "your total cap"),
        )
        for limit, so_far, name in limits:
            left = max(
                sum_exactly(limit, -Fraction(so_far)), Decimal(0)
            )  # negating a Decimal would round it to 28 digits
            if survey.price > left:
                raise BudgetExceeded(
                    f"This costs epsilon {write_plain(survey.price)}, but only {write_plain(left)} is left of {name}.",
                    "Nothing was sent, and no budget was spent.",
                    survey.price,
                    left,
                )
        for limit, so_far, name in (
            (survey.lifetime_delta, spent.survey_delta, "the survey's lifetime delta"),
            (caps.delta, spent.delta, "your cap on delta"),
        ):
            left = max(sum_exactly(limit, -Fraction(so_far)), Decimal(0))
            if survey.price_delta > left:
                raise BudgetExceeded(
                    f"This has a delta of {write_plain(survey.price_delta)}, but only {write_plain(left)} is left of "
                    f"{name}.",
                    "Nothing was sent, and no budget was spent. Device(...).set_caps(delta=...) allows a delta.",
                    survey.price_delta,
                    left,
                )
        ledger.execute(
            "INSERT INTO charges (survey, period, day, epsilon, delta) VALUES (?, ?, ?, ?, ?)",
            (survey.digest, period, _count_days(now), str(survey.price), str(survey.price_delta)),
        )

    @contextmanager
    def _open_ledger(self) -> Iterator[sqlite3.Connection]:
        """Open one exclusive transaction. It is committed to disk at the end."""
        if not self.path.exists():
            raise _build_error("is missing")
        failure = _build_error("cannot be read or written")
        with run_sqlite_transaction(self.path, _DURABLE, _WAIT_SECONDS, failure) as ledger:
            found = ledger.execute("SELECT value FROM settings WHERE name = 'format'").fetchone()
            if found == (FIRST_FORMAT,):
                for statement in _UPGRADE:
                    ledger.execute(statement)
            elif found != (FORMAT,):
                raise _build_error("has another format version")
            yield ledger

    def _create(self) -> None:
        """Write the whole file under another name, then link it to its place, unless another process did so first."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(f"{self.path.name}.{SYSTEM.take(8).tobytes().hex()}")
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with closing(sqlite3.connect(fresh)) as ledger, ledger:
                ledger.executescript(_SCHEMA)
                caps = [(cap.name, str(cap.default)) for cap in fields(Caps)]
                secret = ("secret", SYSTEM.take(SECRET_BYTES).tobytes().hex())
                ledger.executemany("INSERT INTO settings VALUES (?, ?)", [("format", FORMAT), secret, *caps])
            with suppress(FileExistsError):  # another process was first: its ledger is used
                os.link(fresh, self.path)
        finally:
            fresh.unlink()
        if os.name == "posix":  # the file's name must be on disk, too, before a report leaves
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)


def find_default_place() -> Path:
    """The path in SFUMATO_DEVICE, or a file in the person's home."""
    return Path(os.environ.get(PLACE) or Path.home() / ".sfumato" / "device.db")


def write_permanent_purpose(digest: str, renewal: int, answer: Answer) -> bytes:
    """The purpose of a permanent report's coins. The digest is of the whole survey, so two tables never share coins."""
    return write_canonical({"purpose": PURPOSE, "survey": digest, "renewal": renewal, "answer": answer})


def _draw_again(survey: Manifest, kept: int | str) -> int | str:
    match survey.table:
        case Randomiser(mechanism=TwoStage() as staged):
            row, malformed = survey.table.form.decode([kept])
            if malformed:
                raise _build_error("holds an invalid report")
            return survey.table.form.encode(staged.draw_again(row, SYSTEM))[0]
    return kept


def _read_record(record: str) -> Report:
    try:
        match json.loads(record):
            case {"survey": str(survey), "period": int(period), "id": str(name), "report": int() | str() as report}:
                return Report(survey, period, name, report, Decimal(0), repeated=True)
    except (ValueError, TypeError):
        pass
    raise _build_error("holds an invalid report")


def _read_permanent(report: str) -> int | str:
    try:
        match json.loads(report):
            case int() | str() as kept:
                return kept
    except (ValueError, TypeError):
        pass
    raise _build_error("holds an invalid report")


def _read_secret(ledger: sqlite3.Connection) -> bytes:
    try:
        (value,) = ledger.execute("SELECT value FROM settings WHERE name = 'secret'").fetchone()
        secret = bytes.fromhex(value)
    except (ValueError, TypeError):
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise _build_error("has no valid secret")
    return secret


def _read_delta_cap(delta: Number) -> Decimal:
    """A cap on delta, exactly as it is given: a cap that is rounded up would allow more than the person did."""
    if delta in (0, "0"):
        return Decimal(0)
    read_probability(delta, "delta")
    return read_positive_decimal(delta, "delta")


def _read_caps(ledger: sqlite3.Connection) -> Caps:
    found = dict(ledger.execute("SELECT name, value FROM settings"))
    try:
        pure = {
            cap.name: read_positive_decimal(found[cap.name], cap.name) for cap in fields(Caps) if cap.name != "delta"
        }
        return Caps(**pure, delta=_read_charge(found["delta"]))
    except (KeyError, InvalidParameter):
        raise _build_error("has no valid caps") from None


def _sum_charges(ledger: sqlite3.Connection, survey: Manifest, today: int) -> SpentEpsilon:
    """Sum the charges, in the order in which they were made.

    A charge that was made after a charge of the last thirty days also counts for these thirty days, whatever date it
    carries. So setting the clock back does not give a person more budget.
    """
    charges = [
        (digest, when, _read_charge(epsilon), _read_charge(delta))
        for digest, when, epsilon, delta in ledger.execute(
            "SELECT survey, day, epsilon, delta FROM charges ORDER BY number"
        )
    ]
    first = next((place for place, (_, when, *_) in enumerate(charges) if when > today - DAYS_A_MONTH), len(charges))
    return SpentEpsilon(
        sum_exactly(*(epsilon for digest, _, epsilon, _ in charges if digest == survey.digest)),
        sum_exactly(*(epsilon for _, _, epsilon, _ in charges[first:])),
        sum_exactly(*(epsilon for _, _, epsilon, _ in charges)),
        sum_exactly(*(delta for digest, _, _, delta in charges if digest == survey.digest)),
        sum_exactly(*(delta for *_, delta in charges)),
    )


def _read_floor(ledger: sqlite3.Connection, survey: Manifest) -> int:
    """The first period that can still be reported: the records of earlier ones were removed."""
    found = ledger.execute("SELECT period FROM floors WHERE survey = ?", (survey.digest,)).fetchone()
    return int(found[0]) if found else 0


def _prune(ledger: sqlite3.Connection, survey: Manifest) -> None:
    """Remove reports of old periods. They cannot be made again: a new one would be a second report. Charges stay."""
    query = "SELECT MAX(period) FROM reports WHERE survey = ?"
    floor = int(ledger.execute(query, (survey.digest,)).fetchone()[0]) - KEPT_PERIODS + 1
    if floor <= _read_floor(ledger, survey):
        return
    ledger.execute("DELETE FROM reports WHERE survey = ? AND period < ?", (survey.digest, floor))
    ledger.execute("INSERT OR REPLACE INTO floors VALUES (?, ?)", (survey.digest, floor))
    if survey.memo is not None:
        whole = floor // survey.memo.periods
        ledger.execute("DELETE FROM permanent WHERE survey = ? AND renewal < ?", (survey.digest, whole))


def _read_charge(text: str) -> Decimal:
    try:
        epsilon = Decimal(text)
        if epsilon.is_finite() and epsilon >= 0:
            return epsilon
    except (InvalidOperation, TypeError, ValueError):
        pass
    raise _build_error("holds an invalid charge")


def _count_days(at: datetime) -> int:
    return int(at.timestamp()) // SECONDS_A_DAY


def _build_error(what: str) -> LedgerError:
    return LedgerError(
        "device-ledger",
        f"The device's own ledger {what}.",
        "Nothing was sent. Restore the file from a backup; a new file would lose the record of what was spent.",
    )
