"""Batches, withdrawals, windows of periods and hostile input, in a SQLite file and on a PostgreSQL server."""

import json
import multiprocessing
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from make_vectors import BEGINS, FixedKey

from sfumato.errors import InvalidParameter, QueryError
from sfumato.local.collect.collector import Collector, find_period
from sfumato.local.collect.received_counts import ReceivedCounts
from sfumato.local.collect.report_files import make_report_schema, read_lines, read_reports
from sfumato.local.survey.new_survey import new_survey

KEY = FixedKey()


def made(**changes):
    options = {"labels": list("abcdef"), "minimum_batch": 100, "begins": BEGINS, "mechanism": "krr", **changes}
    return new_survey("Which?", epsilon=1, key=KEY, **options).manifest


def lines_of(manifest, people, first=0, report=lambda number: number % 6, period=0):
    return [
        json.dumps({"survey": manifest.id, "period": period, "id": f"{number:032x}", "report": report(number)})
        for number in range(first, first + people)
    ]


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """A function that makes places for collectors."""
    if request.param == "sqlite":
        return lambda name: tmp_path / f"{name}.db"
    server = request.getfixturevalue("postgres_server")
    places = {}
    return lambda name: places.setdefault(name, server.make_address())


def test_what_arrives_is_counted_by_its_fate(place):
    manifest = made(period_days=7, lifetime_epsilon=9)
    collector = Collector(manifest, place("c"), accepted_periods=lambda _: range(1, 3))
    lines = lines_of(manifest, 10, period=1)
    other = json.dumps({**json.loads(lines[0]), "report": 5})
    later = json.dumps({**json.loads(lines[1]), "period": 2})
    twice = lines[2].replace('"report": 2', '"report": 2, "report": 2')
    foreign = lines[3].replace(manifest.id, "0" * 32)
    assert collector.withdraw(f"{9:032x}")
    found = collector.ingest_lines(
        [
            *lines,
            lines[4],
            other,
            later,
            twice,
            foreign,
            *lines_of(manifest, 3, 50),
            *lines_of(manifest, 2, 60, period=3),
        ]
    )
    assert found == ReceivedCounts(accepted=9, duplicate=1, malformed=1, foreign=1, conflict=2, untimely=5, withdrawn=1)
    assert collector.ingest_lines([*lines[:3], other]) == ReceivedCounts(duplicate=3, conflict=1)
    assert collector.count_received() == found + ReceivedCounts(duplicate=3, conflict=1)
    assert collector.periods() == {1: 9}


def test_fake_reports_for_a_later_week_are_neither_counted_nor_the_default_result(tmp_path):
    """100 fake reports for week 51 once became the default result over 5,000 honest reports of week 0."""
    begun = datetime.now(UTC) - timedelta(days=3)
    manifest = made(minimum_batch=50, period_days=7, lifetime_epsilon=90, begins=begun)
    collector = Collector(manifest, tmp_path / "c.db")
    assert collector.ingest_lines(lines_of(manifest, 5000)).accepted == 5000
    assert collector.ingest_lines(lines_of(manifest, 100, 10_000, period=51)) == ReceivedCounts(untimely=100)
    assert collector.select_tally()[0] == 0
    believing = Collector(manifest, tmp_path / "c.db", accepted_periods=lambda _: range(52))
    assert believing.ingest_lines(lines_of(manifest, 100, 10_000, period=51)).accepted == 100
    assert believing.select_tally()[0] == 0
    assert find_period(manifest, begun - timedelta(days=1)) == -1
    assert find_period(manifest, manifest.expires + timedelta(days=1)) == manifest.periods - 1


def test_a_report_can_be_withdrawn_until_its_batch_is_published(place):
    manifest = made()
    collector = Collector(manifest, place("c"))
    lines = lines_of(manifest, 101)
    collector.ingest_lines(lines)
    assert collector.withdraw(f"{0:032x}")
    assert collector.withdraw(f"{0:032x}")  # again: it stays withdrawn
    assert collector.ingest_lines(lines[:1]) == ReceivedCounts(withdrawn=1)
    _, tally = collector.select_tally(publish=True)
    assert tally == manifest.table.tally(np.arange(1, 101) % 6)
    assert not collector.withdraw(f"{1:032x}")
    assert collector.tally() == tally
    assert collector.withdraw(f"{500:032x}")  # it has not arrived yet, and will not count
    assert collector.ingest_lines(lines_of(manifest, 1, 500)) == ReceivedCounts(withdrawn=1)
    for wrong in ("", "0" * 31, "G" * 32, "0" * 34, "A" * 32):
        with pytest.raises(InvalidParameter):
            collector.withdraw(wrong)


def test_nothing_is_published_by_looking(place):
    manifest = made()
    collector = Collector(manifest, place("c"))
    collector.ingest_lines(lines_of(manifest, 150))
    with pytest.raises(QueryError):
        collector.select_tally(publish=False)
    assert collector.published_periods() == {}
    assert collector.tally().people == 150
    collector.ingest_lines(lines_of(manifest, 99, 150))
    assert collector.select_tally(publish=False)[1].people == collector.tally().people == 150
    collector.ingest_lines(lines_of(manifest, 1, 249))
    assert collector.select_tally(publish=False)[1].people == 150
    assert collector.tally().people == 250
    assert collector.published_periods() == {0: 250}


def test_merged_results_are_sums_of_whole_batches(place):
    """Whatever two workers published, no sum or difference of results is about fewer people than a batch."""
    manifest = made()
    first, second = Collector(manifest, place("a")), Collector(manifest, place("b"))
    first.ingest_lines(lines_of(manifest, 110))
    second.ingest_lines(lines_of(manifest, 120, 200))
    shown = [first.tally().people, second.tally().people]
    first.ingest_lines(lines_of(manifest, 5, 400))
    first.merge(second.path)
    assert shown == [110, 120]
    assert first.tally().people == 230  # not 235: the five are no batch
    assert first.tally() == manifest.table.tally(np.r_[np.arange(110), np.arange(200, 320)] % 6)
    first.ingest_lines(lines_of(manifest, 95, 500))
    assert first.tally().people == 330
    assert first.merge(second.path) == ReceivedCounts()
    assert first.tally().people == 330


def test_published_batches_that_share_reports_are_not_added_up(place):
    manifest = made()
    first, second = Collector(manifest, place("a")), Collector(manifest, place("b"))
    first.ingest_lines(lines_of(manifest, 110))
    second.ingest_lines(lines_of(manifest, 110, 107))
    first.tally()
    before = second.tally()
    with pytest.raises(QueryError, match="contain the same reports"):
        first.merge(second.path)
    assert first.tally().people == 110
    third = Collector(manifest, place("c"))
    third.ingest_lines(lines_of(manifest, 50, 180))  # not published: these reports move into the published batch
    assert third.merge(second.path) == ReceivedCounts(110 - 37, 37)
    assert third.tally() == before
    assert third.periods() == {0: 110 + 13}


def test_withdrawals_are_merged(place):
    manifest = made()
    first, second = Collector(manifest, place("a")), Collector(manifest, place("b"))
    first.ingest_lines(lines_of(manifest, 100))
    second.withdraw(f"{7:032x}")
    first.merge(second.path)
    assert first.periods() == {0: 99}
    assert first.ingest_lines(lines_of(manifest, 1, 7)) == ReceivedCounts(withdrawn=1)


def test_a_sampled_questionnaire_is_published_when_every_question_has_a_batch(tmp_path):
    manifest = made(labels=None, questions=["a", "b", "c"], mechanism="sample", minimum_batch=10)
    collector = Collector(manifest, tmp_path / "c.db")
    collector.ingest_lines(lines_of(manifest, 60, report=lambda number: number % 4))
    with pytest.raises(QueryError, match="10 for each question"):
        collector.tally()
    collector.ingest_lines(lines_of(manifest, 9, 100, report=lambda number: 4))
    with pytest.raises(QueryError):
        collector.tally()
    collector.ingest_lines(lines_of(manifest, 1, 200, report=lambda number: 5))
    assert collector.tally().people == 70


def ingest(address, document, first):
    from sfumato.local.survey.manifest import read_manifest

    manifest = read_manifest(document)
    collector = Collector(manifest, address)
    for start in range(first, first + 400, 100):
        collector.ingest_lines(lines_of(manifest, 150, start))


def test_several_processes_collect_at_once(place):
    manifest = made()
    address = place("c")
    fork = multiprocessing.get_context("spawn")
    workers = [fork.Process(target=ingest, args=(address, manifest.to_bytes(), 200 * number)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    collector = Collector(manifest, address)
    assert collector.tally() == manifest.table.tally(np.arange(850) % 6)
    assert collector.count_received() == ReceivedCounts(850, 3 * 600 - 850)


REPEATED = (
    '{"survey":"%s","period":0,"id":"%s","report":1,"report":2}',
    '{"survey":"%s","survey":"x","period":0,"id":"%s","report":1}',
    '{"report":1,"survey":"%s","period":0,"id":"%s","report":1}',
)


@pytest.mark.parametrize("line", REPEATED)
def test_repeated_names_are_malformed(line):
    manifest = made()
    assert read_lines(manifest, [line % (manifest.id, "0" * 32)]).malformed == 1
    usual = f'{{"survey":"{manifest.id}","period":0,"id":"{"0" * 32}","report":1}}'
    assert len(read_lines(manifest, [usual, usual.encode(), f" {usual} \n", f"{usual}\r\n"]).ids) == 4


def watch_memory(batches):
    for _ in batches:
        yield pa.total_allocated_bytes()


def test_a_small_file_that_decodes_to_gigabytes_is_bounded(tmp_path):
    """One long text, repeated by its dictionary, is stored once; ids that repeat cannot be random."""
    manifest = made()
    schema = make_report_schema(manifest)

    def write(name, texts, ids):
        count = len(ids)
        columns = {"survey": pa.array(texts), "period": pa.array([0] * count, pa.int32()),
                   "id": pa.array(ids, pa.binary(16)), "report": pa.array([1] * count, pa.int64())}  # fmt: skip
        path = tmp_path / name
        with pq.ParquetWriter(path, schema, compression="zstd") as file:
            file.write_table(pa.table(columns, schema=schema))
        return path

    random = np.random.default_rng(1)
    ids = [random.bytes(16) for _ in range(3000)]
    texts = pa.array([manifest.id, "x" * 20_000]).take(pa.array([0] + [1] * 2999))
    collector = Collector(manifest, tmp_path / "c.db")
    long = write("long.parquet", texts, ids)
    assert len(texts) * 20_000 > 50_000_000
    before = pa.total_allocated_bytes()
    (batch,) = (seen for seen in watch_memory(read_reports(manifest, long)))
    assert batch - before < 10_000_000
    assert collector.ingest(long) == ReceivedCounts(1, foreign=2999)
    with pytest.raises(InvalidParameter, match="grows much more"):
        collector.ingest(write("many.parquet", [manifest.id] * 100_000, [ids[0]] * 100_000))
    assert collector.ingest(write("right.parquet", [manifest.id] * 3000, ids)) == ReceivedCounts(2999, 1)
