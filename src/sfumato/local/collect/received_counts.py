"""What became of the reports that arrived: counts by reason, and their rows in the collector's file."""

from dataclasses import dataclass, fields

from sfumato.local.collect.collector_rows import CollectorRows, build_file_error


@dataclass(frozen=True, slots=True)
class ReceivedCounts:
    """The numbers of reports that were counted, and of those that were not, by reason.

    A duplicate is the same report again. A conflict is another report with a known id: the first one counts. An
    untimely report is for a period that is not accepted now.
    """

    accepted: int = 0
    duplicate: int = 0
    malformed: int = 0
    foreign: int = 0  # of another survey
    conflict: int = 0
    untimely: int = 0
    withdrawn: int = 0  # it arrived after it was withdrawn

    def __add__(self, other: "ReceivedCounts") -> "ReceivedCounts":
        mine, theirs = self.to_dict(), other.to_dict()
        return ReceivedCounts(**{name: mine[name] + theirs[name] for name in mine})

    def __sub__(self, other: "ReceivedCounts") -> "ReceivedCounts":
        return self + ReceivedCounts(**{name: -count for name, count in other.to_dict().items()})

    def to_dict(self) -> dict[str, int]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def read_received(rows: dict[str, object]) -> ReceivedCounts:
    """The counts of rows with names."""
    counts = {name: count for name, count in rows.items() if type(count) is int}
    if len(counts) != len(rows) or not counts.keys() <= ReceivedCounts().to_dict().keys():
        raise build_file_error("holds invalid counts")
    return ReceivedCounts(**counts)


def count_new(rows: CollectorRows, source: CollectorRows, worker: str, shared: int) -> ReceivedCounts:
    """The counts of the other worker since the last merge; a report that was here already is a duplicate."""
    now = read_received(source.read_pairs("SELECT name, count FROM {received}"))
    known = rows.read_pairs("SELECT name, count FROM {merged} WHERE worker = :worker", worker=worker)
    whole, seen = now.to_dict(), read_received(known).to_dict()
    before = ReceivedCounts(**{name: min(count, whole[name]) for name, count in seen.items()})  # an older copy, maybe
    rows.run("DELETE FROM {merged} WHERE worker = :worker", worker=worker)
    for name, count in whole.items():
        rows.run(
            "INSERT INTO {merged} VALUES (:worker, :name, :count)",
            worker=worker, name=name, count=max(count, seen[name]),
        )  # fmt: skip
    again = shared - before.accepted
    return now - before + ReceivedCounts(-again, again)


def add_received(rows: CollectorRows, found: ReceivedCounts) -> None:
    """Add to the stored counts."""
    for name, count in found.to_dict().items():
        if count:
            rows.run(
                "INSERT INTO {received} VALUES (:name, :count) "
                "ON CONFLICT (name) DO UPDATE SET count = {received}.count + excluded.count",
                name=name, count=count,
            )  # fmt: skip
