"""Collect the reports on a survey in one SQLite file or on a PostgreSQL server: batches of reports, and their ids.

Several workers can collect, and their files can be merged. A report counts once, however often it arrives and at
whichever worker. The file needs no protection for privacy: every report was randomised on the device.

Results are sums of whole batches. A batch is published when it has the minimum number of reports; from then on it does
not change, and its reports cannot be withdrawn. So two results never differ by the reports of a few people.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from sfumato.errors import InvalidParameter, QueryError
from sfumato.kernel.entropy import SYSTEM
from sfumato.local.collect.collector_rows import (
    Cell,
    CollectorDatabase,
    CollectorRows,
    StoredBatch,
    StoredReport,
    build_file_error,
)
from sfumato.local.collect.received_counts import ReceivedCounts, add_received, count_new, read_received
from sfumato.local.collect.report_files import AT_ONCE, ID_BYTES, Batch, read_lines, read_reports
from sfumato.local.collect.report_ids import compare_ids, cut_ids, read_id
from sfumato.local.randomisers.heavy_hitters import HeavyHitters
from sfumato.local.randomisers.questions import Questions
from sfumato.local.randomisers.report_forms import Codes, Counts, Reports
from sfumato.local.randomisers.tally import Tally
from sfumato.local.survey.manifest import Manifest

FORMAT = "sfumato-collector 2"
MOST_UNKNOWN_WITHDRAWN = 10_000  # and one more for each report that was counted
CLOCK_SKEW = timedelta(days=1)  # a device's clock may be ahead


def accept_begun_periods(manifest: Manifest) -> range:
    """The periods that have begun, or begin within a day: a report for a later one is not from an honest device."""
    return range(find_period(manifest, datetime.now(UTC) + CLOCK_SKEW) + 1)


def find_period(manifest: Manifest, moment: datetime) -> int:
    """The period at this time; -1 before the survey begins, and the last one after its end."""
    if moment < manifest.created:
        return -1
    return manifest.period_at(min(moment, manifest.expires - timedelta(seconds=1)))


class Collector:
    """Collects reports on one survey, in a file that is created if it does not exist, or at a PostgreSQL address.

    `accepted_periods` returns the periods for which reports are counted now.
    """

    def __init__(
        self,
        manifest: Manifest,
        path: Path | str,
        *,
        accepted_periods: Callable[[Manifest], range] = accept_begun_periods,
    ) -> None:
        self.manifest = manifest
        self.path = path if isinstance(path, str) and "://" in path else Path(path)
        self._accepted_periods = accepted_periods
        self._width = _count_width(manifest)
        self._database = CollectorDatabase(self.path, manifest.id, whole_numbers=isinstance(manifest.table.form, Codes))
        self._worker = ""
        with self._database.transaction(create=True) as rows:
            self._check_survey(rows)

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
        return self.add_all([batch])[0]

    def add_all(self, batches: Sequence[Batch]) -> list[ReceivedCounts]:
        """Count several batches in one transaction. When this returns, they are on the disk."""
        with self._open_state() as rows:
            found = [self._add(rows, batch) for batch in batches]
            add_received(rows, sum(found, ReceivedCounts()))
        return found

    def _add(self, rows: CollectorRows, batch: Batch) -> ReceivedCounts:
        window = self._accepted_periods(self.manifest)
        timely = (batch.periods >= window.start) & (batch.periods < window.stop)
        order, is_first, conflicts = compare_ids(batch.ids[timely], batch.periods[timely], batch.reports[timely])
        first = order[is_first]  # in the order of ids, as in the file
        periods, reports = batch.periods[timely][first], batch.reports[timely][first]
        ids = cut_ids(batch.ids[timely][first])
        _, found = self._insert(rows, ids, periods, reports)
        return found + ReceivedCounts(
            duplicate=int(timely.sum()) - len(ids) - conflicts,
            malformed=batch.malformed,
            foreign=batch.foreign,
            conflict=conflicts,
            untimely=len(timely) - int(timely.sum()),
        )

    def _insert(
        self, rows: CollectorRows, ids: list[bytes], periods: Counts, reports: Reports
    ) -> tuple[Counts, ReceivedCounts]:
        """Store and tally those of these different reports that are new. Return their places, and the counts."""
        withdrawn = rows.find_withdrawn(ids)
        numbers = {
            period: rows.open_batch(period, self._worker, self._width).number for period in np.unique(periods).tolist()
        }
        batches = [numbers[period] for period in periods.tolist()]
        cells = list(_encode_cells(reports))
        places, found = np.arange(len(ids)), ReceivedCounts(accepted=len(ids))
        if withdrawn or not rows.try_adding(ids, batches, cells):  # the usual case is that all of them are new
            known = {report.id: report for report in rows.find_reports(ids)}
            same = sum(
                (known[name].period, known[name].report) == (period, cell)
                for name, period, cell in zip(ids, periods.tolist(), cells, strict=True)
                if name in known
            )
            places = np.flatnonzero([name not in known and name not in withdrawn for name in ids])
            rows.add_reports(
                [ids[place] for place in places],
                [batches[place] for place in places],
                (cells[place] for place in places),
            )
            gone = len(withdrawn - known.keys())
            found = ReceivedCounts(len(places), same, conflict=len(known) - same, withdrawn=gone)
        for period, number in numbers.items():
            chosen = places[periods[places] == period]
            batch = rows.open_batch(period, self._worker, self._width)
            rows.store_tally(number, batch.tally + self.manifest.table.tally(reports[chosen]))
        return places, found

    def withdraw(self, report_id: str) -> bool:
        """Take a report back: it is not counted, also if it arrives later. False if its batch is published.

        Ids that were never received are kept too, because their reports may still arrive. Their number is bounded:
        anyone can make ids up.
        """
        name = read_id(report_id)
        with self._open_state() as rows:
            found_here = rows.find_reports([name])
            for found in found_here:
                if found.sealed:
                    return False
                self._remove(rows, [found])
            if not rows.find_withdrawn([name]):
                if not found_here and rows.count_withdrawn() >= MOST_UNKNOWN_WITHDRAWN + self._count_accepted(rows):
                    raise QueryError(
                        "survey-withdrawals",
                        "Too many unknown reports were withdrawn.",
                        "Send the withdrawal again when the report has arrived.",
                    )
                rows.run("INSERT INTO {withdrawn} VALUES (:id)", id=name)
        return True

    def _count_accepted(self, rows: CollectorRows) -> int:
        return read_received(rows.read_pairs("SELECT name, count FROM {received}")).accepted

    def _remove(self, rows: CollectorRows, stored: list[StoredReport]) -> None:
        """Remove reports of open batches."""
        for number in {report.batch for report in stored}:
            gone = [report for report in stored if report.batch == number]
            (batch,) = (found for found in rows.list_batches(period=gone[0].period) if found.number == number)
            less = self.manifest.table.tally(self._decode_reports([report.report for report in gone]))
            rows.store_tally(number, _subtract(batch.tally, less))
        rows.remove_reports([report.id for report in stored])

    def merge(self, other: Path | str) -> ReceivedCounts:
        """Merge another worker's file on the same survey. A report that both files have counts once.

        The same worker's file can be merged again later: only its new reports are counted. Batches that the other
        worker has published stay whole. If they share reports with batches that are published here, the merge is
        refused: the sum of the two would reveal the shared reports.
        """
        is_file = not (isinstance(other, str) and "://" in other)
        if other == self.path or (
            is_file and (not Path(other).is_file() or Path(other).resolve() == Path(self.path).resolve())
        ):
            raise InvalidParameter("other", "must be another worker's file", "this file, or no file")
        theirs = Collector(self.manifest, other)  # checks that it is a file of the same survey
        with theirs._open_state() as source, self._open_state() as rows:
            published = {batch.name for batch in rows.list_batches() if batch.sealed}
            shared = 0
            gone = [bytes(row[0]) for row in source.run("SELECT id FROM {withdrawn}")]
            known = rows.find_withdrawn(gone)
            for name in gone:
                if name not in known:
                    rows.run("INSERT INTO {withdrawn} VALUES (:id)", id=name)
            self._remove(rows, [report for report in rows.find_reports(gone) if not report.sealed])
            for batch in source.list_batches():
                if batch.sealed and batch.name in published:
                    shared += batch.tally.people
                elif batch.sealed:
                    shared += self._take_batch(rows, source, batch)
                else:
                    for ids, reports in self._read_batch(source, batch):
                        places, _ = self._insert(rows, ids, np.full(len(ids), batch.period, np.int64), reports)
                        shared += len(ids) - len(places)
            found = count_new(rows, source, theirs._worker, shared)
            add_received(rows, found)
        return found

    def _take_batch(self, rows: CollectorRows, source: CollectorRows, batch: StoredBatch) -> int:
        """Add a batch that another worker published, and return how many of its reports were here already."""
        own = rows.add_sealed(batch.name, batch.period, batch.tally)
        shared = 0
        for ids, reports in self._read_batch(source, batch):
            known = rows.find_reports(ids)
            if any(report.sealed for report in known):
                raise QueryError(
                    "survey-merge",
                    "Both files have published results that contain the same reports.",
                    "Adding them up would reveal these reports. Merge files before their results are shown, or give "
                    "each report to one worker.",
                )
            self._remove(rows, known)
            shared += len(known)
            rows.add_reports(ids, [own.number] * len(ids), _encode_cells(reports))
        return shared

    def _read_batch(self, source: CollectorRows, batch: StoredBatch) -> Iterator[tuple[list[bytes], Reports]]:
        for part in source.iterate_reports(batch.number, AT_ONCE):
            yield [name for name, _ in part], self._decode_reports([report for _, report in part])

    def count_received(self) -> ReceivedCounts:
        with self._open_state() as rows:
            return read_received(rows.read_pairs("SELECT name, count FROM {received}"))

    def periods(self) -> dict[int, int]:
        """The number of people who reported in each period."""
        with self._open_state() as rows:
            return _sum_people(rows.list_batches())

    def published_periods(self) -> dict[int, int]:
        """The number of people in the published result of each period."""
        with self._open_state() as rows:
            return _sum_people(batch for batch in rows.list_batches() if batch.sealed)

    def tally(self, period: int | None = None) -> Tally:
        """The tally of a period that has the minimum batch; by default, of the last such period."""
        return self.select_tally(period)[1]

    def select_tally(self, period: int | None = None, *, publish: bool = True) -> tuple[int, Tally]:
        """Select the tally that may be shown, and return its period and the tally.

        It is the sum of the published batches. With `publish`, new reports are published first if they are a whole
        batch. By default, the period is the last one that has begun and has a result.
        """
        with self._open_state() as rows:
            return self._select(rows, period, publish)

    def _select(self, rows: CollectorRows, period: int | None, publish: bool) -> tuple[int, Tally]:
        last = find_period(self.manifest, datetime.now(UTC) + CLOCK_SKEW)
        shown: dict[int, Tally] = {}
        for batch in rows.list_batches(period=period):
            ready = batch.sealed or (publish and self._is_whole(batch.tally))
            if ready and (period is not None or batch.period <= last):
                shown[batch.period] = shown.get(batch.period, Tally.empty(self._width)) + batch.tally
        if not shown:
            raise QueryError(
                "survey-batch",
                f"There are fewer reports than this survey's minimum batch of {self.manifest.minimum_batch:,}"
                f"{name_parts(self.manifest)}.",
                "Results are shown from the minimum batch on. Collect more reports, or name another period.",
            )
        wanted = max(shown)
        for batch in rows.list_batches(period=wanted):
            if not batch.sealed and publish and self._is_whole(batch.tally):
                rows.seal(batch.number)
        return wanted, shown[wanted]

    def select_reports(self, period: int | None = None, *, publish: bool = True) -> tuple[int, Reports]:
        """The reports of the tally that `select_tally` selects: words are found in the reports themselves."""
        with self._open_state() as rows:
            wanted, _ = self._select(rows, period, publish)
            parts = [
                reports
                for batch in rows.list_batches(period=wanted)
                if batch.sealed
                for _, reports in self._read_batch(rows, batch)
            ]
        return wanted, np.concatenate(parts)

    def _is_whole(self, tally: Tally) -> bool:
        """Whether a batch may be published: each part of it needs the minimum."""
        return int(_count_parts(self.manifest, tally).min()) >= self.manifest.minimum_batch

    def _decode_reports(self, cells: list[Cell]) -> Reports:
        form = self.manifest.table.form
        try:
            if not isinstance(form, Codes):
                whole = b"".join(report for report in cells if isinstance(report, bytes))
                return np.frombuffer(whole, np.uint8).reshape(len(cells), form.bytes)
            return np.array(cells, np.int64)
        except (ValueError, TypeError, OverflowError):
            raise build_file_error("holds invalid reports") from None

    @contextmanager
    def _open_state(self) -> Iterator[CollectorRows]:
        """Open one exclusive transaction."""
        with self._database.transaction() as rows:
            self._check_survey(rows)
            yield rows

    def _check_survey(self, rows: CollectorRows) -> None:
        wanted: dict[str, object] = {"format": FORMAT, "survey": self.manifest.digest}
        found = rows.read_pairs("SELECT name, value FROM {about}")
        if not found:
            found = wanted | {"worker": SYSTEM.take(ID_BYTES).tobytes().hex()}
            for name, value in found.items():
                rows.run("INSERT INTO {about} VALUES (:name, :value)", name=name, value=value)
        elif {name: value for name, value in found.items() if name != "worker"} != wanted or len(found) != 3:
            raise build_file_error("belongs to another survey or format version")
        self._worker = str(found["worker"])


def _encode_cells(reports: Reports) -> Iterator[Cell]:
    """Encode reports for the file."""
    return (bytes(row) for row in reports) if reports.ndim == 2 else iter(reports.tolist())


def _subtract(whole: Tally, part: Tally) -> Tally:
    try:
        return Tally(whole.people - part.people, whole.counts - part.counts)
    except InvalidParameter:
        raise build_file_error("holds invalid counts") from None


def _sum_people(batches: Iterable[StoredBatch]) -> dict[int, int]:
    people: dict[int, int] = {}
    for batch in batches:
        people[batch.period] = people.get(batch.period, 0) + batch.tally.people
    return {period: count for period, count in sorted(people.items()) if count}


def _count_width(manifest: Manifest) -> int:
    """The number of counts in a tally of this survey."""
    form = manifest.table.form
    return manifest.table.tally(np.empty(0 if isinstance(form, Codes) else (0, form.bytes), form.dtype)).counts.size


def _count_parts(manifest: Manifest, tally: Tally) -> Counts:
    """The reports on each part of a survey: on each question that is asked of some people, or each length of prefix."""
    match manifest.table:
        case Questions(method="sample"):
            answered: Counts = tally.counts.reshape(-1, 2).sum(axis=1)
            return answered
        case HeavyHitters():
            return tally.counts
        case _:
            return np.array([tally.people])


def name_parts(manifest: Manifest) -> str:
    """For what the minimum batch is needed, if not once for the survey."""
    match manifest.table:
        case Questions(method="sample"):
            return " for each question"
        case HeavyHitters(lengths=lengths) if len(lengths) > 1:
            return f" for each of its {len(lengths)} lengths of prefixes"
        case _:
            return ""
