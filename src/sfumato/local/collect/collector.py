"""Collect the reports on a survey in one SQLite file: a tally for each period, and the ids of all reports.

Several workers can collect, and their files can be merged. A report counts once, however often it arrives and at
whichever worker. The file needs no protection for privacy: every report was randomised on the device.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.errors import InvalidParameter, LedgerError, QueryError
from sfumato.kernel.entropy import SYSTEM
from sfumato.local.collect.report_files import AT_ONCE, ID_BYTES, Batch, Ids, read_lines, read_reports
from sfumato.local.randomisers.report_forms import BitRows, Counts, Reports
from sfumato.local.randomisers.tally import Tally
from sfumato.local.survey.manifest import Manifest
from sfumato.local.survey.sqlite_transaction import run_sqlite_transaction

FORMAT = "sfumato-collector 1"
_WAIT_SECONDS = 60.0
_SETTINGS = ("temp_store = MEMORY", "cache_size = -65536")  # 64 MiB, for any number of ids
_SCHEMA = """
    CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS tallies (period INTEGER PRIMARY KEY, people INTEGER NOT NULL, counts BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS received (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS reports (id BLOB PRIMARY KEY, period INTEGER NOT NULL, report BLOB NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS shown (period INTEGER PRIMARY KEY, people INTEGER NOT NULL, counts BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS merged (worker TEXT, name TEXT, count INTEGER NOT NULL, PRIMARY KEY (worker, name))
        WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class ReceivedCounts:
    """The numbers of reports that were counted, were duplicates, were malformed, or were for another survey."""

    accepted: int = 0
    duplicate: int = 0
    malformed: int = 0
    foreign: int = 0

    def __add__(self, other: "ReceivedCounts") -> "ReceivedCounts":
        return ReceivedCounts(
            self.accepted + other.accepted,
            self.duplicate + other.duplicate,
            self.malformed + other.malformed,
            self.foreign + other.foreign,
        )

    def __sub__(self, other: "ReceivedCounts") -> "ReceivedCounts":
        return self + ReceivedCounts(-other.accepted, -other.duplicate, -other.malformed, -other.foreign)

    def to_dict(self) -> dict[str, int]:
        return {
            "accepted": self.accepted,
            "duplicate": self.duplicate,
            "malformed": self.malformed,
            "foreign": self.foreign,
        }


class Collector:
    """Collects reports on one survey in a file, which is created if it does not exist."""

    def __init__(self, manifest: Manifest, path: Path | str) -> None:
        self.manifest = manifest
        self.path = Path(path)
        self._width = _count_width(manifest)
        with self._open_state():
            pass

    def ingest(self, path: Path | str) -> ReceivedCounts:
        """Count the reports of a file (.jsonl or .parquet). After a crash, ingest it again: no report counts twice."""
        total = ReceivedCounts()
        for batch in read_reports(self.manifest, path):
            total += self.add(batch)
        return total

    def ingest_lines(self, lines: Iterable[bytes | str]) -> ReceivedCounts:
        """Count reports that arrive as lines of JSON."""
        return self.add(read_lines(self.manifest, lines))

    def add(self, batch: Batch) -> ReceivedCounts:
        """Count a batch of reports in one transaction."""
        first = _find_first_ids(batch.ids)  # in the order of ids, as in the file
        with self._open_state() as state:
            before = state.total_changes
            names, periods, reports = batch.ids[first].tobytes(), batch.periods[first], batch.reports[first]
            ids = [names[start : start + ID_BYTES] for start in range(0, len(names), ID_BYTES)]
            rows = list(zip(ids, periods.tolist(), _encode_cells(reports), strict=True))
            state.execute("SAVEPOINT batch")
            state.executemany("INSERT OR IGNORE INTO reports VALUES (?, ?, ?)", rows)
            if state.total_changes - before != len(rows):  # some ids are known: find the others
                state.execute("ROLLBACK TO batch")
                there = "SELECT 1 FROM reports WHERE id = ?"
                fresh = [place for place, known in enumerate(ids) if state.execute(there, (known,)).fetchone() is None]
                state.executemany("INSERT INTO reports VALUES (?, ?, ?)", [rows[place] for place in fresh])
                periods, reports = periods[fresh], reports[fresh]
            for period, tally in self._tally_periods(periods, reports).items():
                self._store_tally(state, period, self._read_tally(state, period) + tally)
            found = ReceivedCounts(len(periods), len(batch.ids) - len(periods), batch.malformed, batch.foreign)
            _add_received(state, found)
        return found

    def merge(self, other: Path | str) -> ReceivedCounts:
        """Merge another worker's file on the same survey. A report that both files have counts once.

        The same worker's file can be merged again later: only its new reports are counted.
        """
        theirs = Path(other)
        if not theirs.is_file() or theirs.resolve() == self.path.resolve():
            raise InvalidParameter("other", "must be another worker's file", "this file, or no file")
        Collector(self.manifest, theirs)  # checks that it is a file of the same survey
        with self._open_state(attached=theirs) as state:
            both = self._tally_shared(state)
            for (period,) in state.execute("SELECT period FROM other.tallies").fetchall():
                whole, twice = (
                    self._read_tally(state, period, "other.tallies"),
                    both.get(period, self._make_empty_tally()),
                )
                fresh = Tally(whole.people - twice.people, whole.counts - twice.counts)
                self._store_tally(state, period, self._read_tally(state, period) + fresh)
            for (period,) in state.execute("SELECT period FROM other.shown").fetchall():
                shown = self._read_tally(state, period, "other.shown")
                if shown.people > self._read_tally(state, period, "main.shown").people:
                    self._store_tally(state, period, shown, "shown")
            state.execute("INSERT OR IGNORE INTO main.reports SELECT id, period, report FROM other.reports")
            found = _count_new(state, sum(tally.people for tally in both.values()))
            _add_received(state, found)
        return found

    def _tally_shared(self, state: sqlite3.Connection) -> dict[int, Tally]:
        """Tally the other file's reports whose ids are in both files."""
        both: dict[int, Tally] = {}
        shared = state.execute(
            "SELECT theirs.period, theirs.report FROM other.reports AS theirs JOIN main.reports USING (id)"
        )
        while rows := shared.fetchmany(AT_ONCE):
            periods, reports = np.array([period for period, _ in rows], np.int64), self._decode_reports(rows)
            for period, tally in self._tally_periods(periods, reports).items():
                both[period] = both.get(period, self._make_empty_tally()) + tally
        return both

    def count_received(self) -> ReceivedCounts:
        with self._open_state() as state:
            return _read_received(dict(state.execute("SELECT name, count FROM received")))

    def periods(self) -> dict[int, int]:
        """The number of people who reported in each period."""
        with self._open_state() as state:
            return dict(state.execute("SELECT period, people FROM tallies ORDER BY period"))

    def tally(self, period: int | None = None) -> Tally:
        """The tally of a period that has the minimum batch; by default, of the last such period."""
        return self.select_tally(period)[1]

    def select_tally(self, period: int | None = None) -> tuple[int, Tally]:
        """Select the tally that may be shown, and return its period and the tally.

        The tally that was shown last stays until a whole minimum batch of new reports has arrived. So two results never
        differ by the reports of a few people.
        """
        waits = self.manifest.minimum_batch
        with self._open_state() as state:
            people = dict(state.execute("SELECT period, people FROM tallies WHERE people >= ?", (waits,)))
            wanted = max(people, default=-1) if period is None else period
            if wanted not in people:
                raise QueryError(
                    "survey-batch",
                    f"There are fewer reports than this survey's minimum batch of {waits:,}.",
                    "Results are shown from the minimum batch on. Collect more reports, or name another period.",
                )
            whole, shown = self._read_tally(state, wanted), self._read_tally(state, wanted, "main.shown")
            if whole.people - shown.people < waits:
                return wanted, shown
            self._store_tally(state, wanted, whole, "shown")
            return wanted, whole

    def _tally_periods(self, periods: Counts, reports: Reports) -> dict[int, Tally]:
        numbers = np.unique(periods).tolist()
        return {period: self.manifest.table.tally(reports[periods == period]) for period in numbers}

    def _make_empty_tally(self) -> Tally:
        return Tally.empty(self._width)

    def _decode_reports(self, rows: list[tuple[int, int | bytes]]) -> Reports:
        form = self.manifest.table.form
        try:
            if isinstance(form, BitRows):
                whole = b"".join(report for _, report in rows if isinstance(report, bytes))
                return np.frombuffer(whole, np.uint8).reshape(len(rows), form.bytes)
            return np.array([report for _, report in rows], np.int64)
        except (ValueError, TypeError, OverflowError):
            raise _build_file_error("holds invalid reports") from None

    def _read_tally(self, state: sqlite3.Connection, period: int, table: str = "main.tallies") -> Tally:
        query = f"SELECT people, counts FROM {table} WHERE period = ?"  # noqa: S608 - one of a few constants
        found = state.execute(query, (period,)).fetchone()
        if found is None:
            return self._make_empty_tally()
        try:
            return Tally(found[0], np.frombuffer(found[1], "<i8").astype(np.int64))
        except (ValueError, TypeError):
            raise _build_file_error("holds invalid counts") from None

    def _store_tally(self, state: sqlite3.Connection, period: int, tally: Tally, table: str = "tallies") -> None:
        counts = tally.counts.astype("<i8").tobytes()
        query = f"REPLACE INTO main.{table} VALUES (?, ?, ?)"  # noqa: S608 - one of two constants
        state.execute(query, (period, tally.people, counts))

    @contextmanager
    def _open_state(self, attached: Path | None = None) -> Iterator[sqlite3.Connection]:
        """Open one exclusive transaction on the file."""
        failure = _build_file_error("cannot be read or written")
        with run_sqlite_transaction(self.path, _SETTINGS, _WAIT_SECONDS, failure, attached=attached) as state:
            self._check_survey(state)
            yield state

    def _check_survey(self, state: sqlite3.Connection) -> None:
        for statement in _SCHEMA.split(";"):
            state.execute(statement)
        wanted = {"format": FORMAT, "survey": self.manifest.digest}
        found = dict(state.execute("SELECT name, value FROM about"))
        if not found:
            worker = {"worker": SYSTEM.take(ID_BYTES).tobytes().hex()}
            state.executemany("INSERT INTO about VALUES (?, ?)", (wanted | worker).items())
        elif {name: value for name, value in found.items() if name != "worker"} != wanted or len(found) != 3:
            raise _build_file_error("belongs to another survey or format version")


def _find_first_ids(ids: Ids) -> Counts:
    """The index of the first occurrence of every id, in the order of the ids."""
    halves = np.ascontiguousarray(ids).view(">u8").reshape(-1, 2)
    order = np.lexsort((halves[:, 1], halves[:, 0]))  # the sort is stable: the first of equal ids stays first
    ordered = halves[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order[new]


def _build_file_error(why: str) -> LedgerError:
    return LedgerError("collector-file", f"The collector's file {why}.", "Use another file for each survey.")


def _encode_cells(reports: Reports) -> Iterator[int | bytes]:
    """Encode reports for the file."""
    return (bytes(row) for row in reports) if reports.ndim == 2 else iter(reports.tolist())


def _read_received(rows: dict[str, int]) -> ReceivedCounts:
    if not rows.keys() <= ReceivedCounts().to_dict().keys() or not all(type(count) is int for count in rows.values()):
        raise _build_file_error("holds invalid counts")
    return ReceivedCounts(**rows)


def _count_new(state: sqlite3.Connection, shared: int) -> ReceivedCounts:
    """The counts of the attached worker since the last merge; a report that was here already is a duplicate."""
    (worker,) = state.execute("SELECT value FROM other.about WHERE name = 'worker'").fetchone()
    now = _read_received(dict(state.execute("SELECT name, count FROM other.received")))
    known = dict(state.execute("SELECT name, count FROM main.merged WHERE worker = ?", (worker,)))
    whole = now.to_dict()
    seen = _read_received(known).to_dict()
    before = ReceivedCounts(
        **{name: min(count, whole[name]) for name, count in seen.items()}
    )  # this may be an older copy
    for name, count in whole.items():
        state.execute("REPLACE INTO main.merged VALUES (?, ?, ?)", (worker, name, max(count, seen[name])))
    again = shared - before.accepted
    return now - before + ReceivedCounts(-again, again)


def _add_received(state: sqlite3.Connection, found: ReceivedCounts) -> None:
    for name, count in found.to_dict().items():
        state.execute(
            "INSERT INTO received VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count",
            (name, count),
        )


def _count_width(manifest: Manifest) -> int:
    """The number of counts in a tally of this survey."""
    form = manifest.table.form
    return manifest.table.tally(np.empty((0, form.bytes) if isinstance(form, BitRows) else 0, form.dtype)).counts.size
