"""What was received for a survey: for each period a tally, and which report ids were seen; in one SQLite file.

Tallies add, so any number of workers can collect and be added up. A report counts once, however often it arrives, and
at whichever worker. Nothing here is secret to the people who reported: each report was randomised before it left.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.errors import InvalidParameter, LedgerError, QueryError
from sfumato.kernel.entropy import SYSTEM
from sfumato.local.collect.report_files import AT_ONCE, ID_BYTES, Batch, Ids, read_lines, read_reports
from sfumato.local.randomisers.report_forms import BitRows, Counts, Reports
from sfumato.local.randomisers.tally import Tally
from sfumato.local.survey.manifest import Manifest

FORMAT = "sfumato-collector 1"
_PATIENCE = 60.0
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
class Received:
    """How many reports were counted, came again, made no sense, or were for another survey."""

    accepted: int = 0
    duplicate: int = 0
    malformed: int = 0
    foreign: int = 0

    def __add__(self, other: "Received") -> "Received":
        return Received(
            self.accepted + other.accepted,
            self.duplicate + other.duplicate,
            self.malformed + other.malformed,
            self.foreign + other.foreign,
        )

    def __sub__(self, other: "Received") -> "Received":
        return self + Received(-other.accepted, -other.duplicate, -other.malformed, -other.foreign)

    def to_dict(self) -> dict[str, int]:
        return {
            "accepted": self.accepted,
            "duplicate": self.duplicate,
            "malformed": self.malformed,
            "foreign": self.foreign,
        }


class Collector:
    """Collects reports on one survey into a file, which is made if it is not there."""

    def __init__(self, manifest: Manifest, path: Path | str) -> None:
        self.manifest = manifest
        self.path = Path(path)
        self._width = _counts_of(manifest)
        with self._state():
            pass

    def ingest(self, path: Path | str) -> Received:
        """Count the reports of a file (.jsonl or .parquet). After a crash, the same file again counts nothing twice."""
        total = Received()
        for batch in read_reports(self.manifest, path):
            total += self.add(batch)
        return total

    def ingest_lines(self, lines: Iterable[bytes | str]) -> Received:
        """Count reports that arrive as lines of JSON."""
        return self.add(read_lines(self.manifest, lines))

    def add(self, batch: Batch) -> Received:
        """Count a batch: ids, tallies and counters in one transaction."""
        first = _first_of_each(batch.ids)  # in the order of ids, as the file keeps them
        with self._state() as state:
            before = state.total_changes
            names, periods, reports = batch.ids[first].tobytes(), batch.periods[first], batch.reports[first]
            ids = [names[start : start + ID_BYTES] for start in range(0, len(names), ID_BYTES)]
            rows = list(zip(ids, periods.tolist(), _cells(reports), strict=True))
            state.execute("SAVEPOINT batch")
            state.executemany("INSERT OR IGNORE INTO reports VALUES (?, ?, ?)", rows)
            if state.total_changes - before != len(rows):  # some came before: find out which
                state.execute("ROLLBACK TO batch")
                there = "SELECT 1 FROM reports WHERE id = ?"
                fresh = [place for place, each in enumerate(ids) if state.execute(there, (each,)).fetchone() is None]
                state.executemany("INSERT INTO reports VALUES (?, ?, ?)", [rows[place] for place in fresh])
                periods, reports = periods[fresh], reports[fresh]
            for period, tally in self._tallies(periods, reports).items():
                self._keep(state, period, self._tally(state, period) + tally)
            found = Received(len(periods), len(batch.ids) - len(periods), batch.malformed, batch.foreign)
            _note(state, found)
        return found

    def merge(self, other: Path | str) -> Received:
        """Add what another worker collected on the same survey; what both have seen counts once.

        The same worker's file can be added again when it has grown: only what is new to this file is counted.
        """
        theirs = Path(other)
        if not theirs.is_file() or theirs.resolve() == self.path.resolve():
            raise InvalidParameter("other", "must be another worker's file", "this one, or none")
        Collector(self.manifest, theirs)  # of the same survey, and whole
        with self._state(attached=theirs) as state:
            both = self._shared(state)
            for (period,) in state.execute("SELECT period FROM other.tallies").fetchall():
                whole, twice = self._tally(state, period, "other.tallies"), both.get(period, self._nothing())
                fresh = Tally(whole.people - twice.people, whole.counts - twice.counts)
                self._keep(state, period, self._tally(state, period) + fresh)
            for (period,) in state.execute("SELECT period FROM other.shown").fetchall():
                shown = self._tally(state, period, "other.shown")
                if shown.people > self._tally(state, period, "main.shown").people:
                    self._keep(state, period, shown, "shown")
            state.execute("INSERT OR IGNORE INTO main.reports SELECT id, period, report FROM other.reports")
            found = _new_from(state, sum(each.people for each in both.values()))
            _note(state, found)
        return found

    def _shared(self, state: sqlite3.Connection) -> dict[int, Tally]:
        """What the other file says of the ids that both have seen."""
        both: dict[int, Tally] = {}
        shared = state.execute(
            "SELECT theirs.period, theirs.report FROM other.reports AS theirs JOIN main.reports USING (id)"
        )
        while rows := shared.fetchmany(AT_ONCE):
            periods, reports = np.array([each for each, _ in rows], np.int64), self._reports(rows)
            for period, tally in self._tallies(periods, reports).items():
                both[period] = both.get(period, self._nothing()) + tally
        return both

    def received(self) -> Received:
        with self._state() as state:
            return _received(dict(state.execute("SELECT name, count FROM received")))

    def periods(self) -> dict[int, int]:
        """How many people reported in each period."""
        with self._state() as state:
            return dict(state.execute("SELECT period, people FROM tallies ORDER BY period"))

    def tally(self, period: int | None = None) -> Tally:
        """What the people of a period reported, if enough did; by default of the last period with enough of them."""
        return self.enough(period)[1]

    def enough(self, period: int | None = None) -> tuple[int, Tally]:
        """The number of that period, and its tally.

        What is shown moves on by whole batches: until the minimum batch has come since the last tally that was shown,
        that one is shown again. So no two results differ by the reports of a few people.
        """
        waits = self.manifest.minimum_batch
        with self._state() as state:
            people = dict(state.execute("SELECT period, people FROM tallies WHERE people >= ?", (waits,)))
            wanted = max(people, default=-1) if period is None else period
            if wanted not in people:
                raise QueryError(
                    "survey-batch",
                    f"There are fewer reports than the {waits:,} that this survey waits for.",
                    "Nothing is shown before; collect more, or name a period that has enough.",
                )
            whole, shown = self._tally(state, wanted), self._tally(state, wanted, "main.shown")
            if whole.people - shown.people < waits:
                return wanted, shown
            self._keep(state, wanted, whole, "shown")
            return wanted, whole

    def _tallies(self, periods: Counts, reports: Reports) -> dict[int, Tally]:
        numbers = np.unique(periods).tolist()
        return {period: self.manifest.table.tally(reports[periods == period]) for period in numbers}

    def _nothing(self) -> Tally:
        return Tally.empty(self._width)

    def _reports(self, rows: list[tuple[int, int | bytes]]) -> Reports:
        form = self.manifest.table.form
        try:
            if isinstance(form, BitRows):
                whole = b"".join(report for _, report in rows if isinstance(report, bytes))
                return np.frombuffer(whole, np.uint8).reshape(len(rows), form.bytes)
            return np.array([report for _, report in rows], np.int64)
        except (ValueError, TypeError, OverflowError):
            raise _unusable("holds reports that cannot be") from None

    def _tally(self, state: sqlite3.Connection, period: int, table: str = "main.tallies") -> Tally:
        query = f"SELECT people, counts FROM {table} WHERE period = ?"  # noqa: S608 - one of a few constants
        found = state.execute(query, (period,)).fetchone()
        if found is None:
            return self._nothing()
        try:
            return Tally(found[0], np.frombuffer(found[1], "<i8").astype(np.int64))
        except (ValueError, TypeError):
            raise _unusable("holds counts that cannot be") from None

    def _keep(self, state: sqlite3.Connection, period: int, tally: Tally, table: str = "tallies") -> None:
        counts = tally.counts.astype("<i8").tobytes()
        query = f"REPLACE INTO main.{table} VALUES (?, ?, ?)"  # noqa: S608 - one of two constants
        state.execute(query, (period, tally.people, counts))

    @contextmanager
    def _state(self, attached: Path | None = None) -> Iterator[sqlite3.Connection]:
        """One transaction, alone among all processes that use this file."""
        try:
            with closing(sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)) as state:
                state.execute("PRAGMA temp_store = MEMORY")
                state.execute("PRAGMA cache_size = -65536")  # 64 MiB, however many ids there are
                if attached is not None:
                    state.execute("ATTACH DATABASE ? AS other", (str(attached),))
                state.execute("BEGIN IMMEDIATE")
                try:
                    self._of_this_survey(state)
                    yield state
                except BaseException:
                    state.execute("ROLLBACK")
                    raise
                state.execute("COMMIT")
        except (sqlite3.Error, UnicodeDecodeError):  # the second where sqlite3 quotes a damaged file in its message
            raise _unusable("cannot be read or written") from None

    def _of_this_survey(self, state: sqlite3.Connection) -> None:
        for statement in _SCHEMA.split(";"):
            state.execute(statement)
        wanted = {"format": FORMAT, "survey": self.manifest.digest}
        found = dict(state.execute("SELECT name, value FROM about"))
        if not found:
            worker = {"worker": SYSTEM.take(ID_BYTES).tobytes().hex()}
            state.executemany("INSERT INTO about VALUES (?, ?)", (wanted | worker).items())
        elif {name: value for name, value in found.items() if name != "worker"} != wanted or len(found) != 3:
            raise _unusable("is of another survey or version")


def _first_of_each(ids: Ids) -> Counts:
    """The places of different ids, each where it comes first, in the order of the ids."""
    halves = np.ascontiguousarray(ids).view(">u8").reshape(-1, 2)
    order = np.lexsort((halves[:, 1], halves[:, 0]))  # of equals, the first stays first
    ordered = halves[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order[new]


def _unusable(why: str) -> LedgerError:
    return LedgerError("collector-file", f"The collector's file {why}.", "Each survey has a file of its own.")


def _cells(reports: Reports) -> Iterator[int | bytes]:
    """Reports as the file keeps them."""
    return (bytes(row) for row in reports) if reports.ndim == 2 else iter(reports.tolist())


def _received(rows: dict[str, int]) -> Received:
    if not rows.keys() <= Received().to_dict().keys() or not all(type(each) is int for each in rows.values()):
        raise _unusable("holds counts that cannot be")
    return Received(**rows)


def _new_from(state: sqlite3.Connection, shared: int) -> Received:
    """What the attached worker received since it was last added here; of that, what was here already came again."""
    (worker,) = state.execute("SELECT value FROM other.about WHERE name = 'worker'").fetchone()
    now = _received(dict(state.execute("SELECT name, count FROM other.received")))
    known = dict(state.execute("SELECT name, count FROM main.merged WHERE worker = ?", (worker,)))
    whole = now.to_dict()
    seen = _received(known).to_dict()
    before = Received(**{name: min(count, whole[name]) for name, count in seen.items()})  # this may be an older copy
    for name, count in whole.items():
        state.execute("REPLACE INTO main.merged VALUES (?, ?, ?)", (worker, name, max(count, seen[name])))
    again = shared - before.accepted
    return now - before + Received(-again, again)


def _note(state: sqlite3.Connection, found: Received) -> None:
    for name, count in found.to_dict().items():
        state.execute(
            "INSERT INTO received VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count",
            (name, count),
        )


def _counts_of(manifest: Manifest) -> int:
    """How many counts a tally of this survey has."""
    form = manifest.table.form
    return manifest.table.tally(np.empty((0, form.bytes) if isinstance(form, BitRows) else 0, form.dtype)).counts.size
