"""Each report is counted once or refused, without a crash. Tallies of several workers add up in any order."""

import json
import sqlite3
import tracemalloc
from datetime import timedelta
from itertools import permutations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from make_vectors import BEGINS, FixedKey, whole_surveys
from scipy import stats

import sfumato as sf
from sfumato.errors import InvalidParameter, LedgerError, QueryError
from sfumato.local.collect import collector as collector_module
from sfumato.local.collect.collector import Collector
from sfumato.local.collect.received_counts import ReceivedCounts
from sfumato.local.collect.report_files import ParquetReports, make_report_schema, read_lines, write_lines
from sfumato.local.collect.results import make_results
from sfumato.local.collect.simulation import simulate
from sfumato.local.randomisers.tally import Tally
from sfumato.local.survey.new_survey import new_survey
from sfumato.local.survey.signed_survey import Survey

FALSE_ALARM = 1e-6
KEY = FixedKey()
SURVEYS = {name: survey.manifest for name, survey in whole_surveys(KEY)}


def made(**changes):
    options = {"labels": list("abcdef"), "mechanism": None, "minimum_batch": 5, "begins": BEGINS, **changes}
    return new_survey("Which?", epsilon=1, key=KEY, **options).manifest


SMALL = made(mechanism="krr")


def some(manifest, people, seed=0):
    """Ids, periods and reports of made-up people."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(0, 256, (people, 16), dtype=np.uint8)
    periods = generator.integers(0, min(manifest.periods, 3), people)
    values = {
        "Categories": lambda: generator.integers(0, len(manifest.domain.labels), people),
        "Numbers": lambda: generator.uniform(float(manifest.domain.lower), float(manifest.domain.upper), people),
        "YesNo": lambda: generator.integers(0, 2, (people, len(manifest.domain.labels)), dtype=np.int64).astype(bool),
        "AnyWord": lambda: ["abc", "bcd", "c"] * (people // 3) + ["a"] * (people % 3),
    }[type(manifest.domain).__name__]()
    return ids, periods, manifest.table.randomise(values)


def write_json(path, manifest, ids, periods, reports):
    with path.open("wb") as file:
        write_lines(file, manifest, ids, periods, reports)
    return path


def write_parquet(path, manifest, *columns):
    with ParquetReports(path, manifest) as file:
        file.write(*columns)
    return path


def lines_of(manifest, people=6, seed=0):
    ids, periods, reports = some(manifest, people, seed)
    values = manifest.table.form.encode(reports)
    return [
        json.dumps({"survey": manifest.id, "period": int(period), "id": bytes(report_id).hex(), "report": value})
        for report_id, period, value in zip(ids, periods, values, strict=True)
    ]


def tallies(collector):
    return {period: collector_tally(collector, period) for period in collector.periods()}


def collector_tally(collector, period):
    with collector._open_state() as rows:
        return sum((batch.tally for batch in rows.list_batches(period=period)), Tally.empty(collector._width))


# counting


@pytest.mark.parametrize("name", SURVEYS)
def test_both_kinds_of_file_give_the_tally_of_the_reports(name, tmp_path):
    manifest = SURVEYS[name]
    ids, periods, reports = some(manifest, 500)
    for write, ending in ((write_json, "jsonl"), (write_parquet, "parquet")):
        path = write(tmp_path / f"reports.{ending}", manifest, ids, periods, reports)
        collector = Collector(manifest, tmp_path / f"{ending}.db")
        assert collector.ingest(path) == ReceivedCounts(accepted=500)
        assert collector.periods() == {int(period): int((periods == period).sum()) for period in np.unique(periods)}
        for period in collector.periods():
            assert collector_tally(collector, period) == manifest.table.tally(reports[periods == period])


def test_a_report_counts_once_however_often_it_comes(tmp_path):
    ids, periods, reports = some(SMALL, 300)
    path = write_json(tmp_path / "a.jsonl", SMALL, ids, periods, reports)
    collector = Collector(SMALL, tmp_path / "c.db")
    assert collector.ingest(path) == ReceivedCounts(300)
    assert collector.ingest(path) == ReceivedCounts(0, 300)
    twice = write_parquet(
        tmp_path / "b.parquet", SMALL, np.concatenate((ids, ids)), *(np.concatenate((x, x)) for x in (periods, reports))
    )
    assert collector.ingest(twice) == ReceivedCounts(0, 600)
    fresh = Collector(SMALL, tmp_path / "fresh.db")
    assert fresh.ingest(twice) == ReceivedCounts(300, 300)
    assert collector.tally() == fresh.tally() == SMALL.table.tally(reports)
    assert collector.count_received() == ReceivedCounts(300, 900)


def test_of_two_reports_with_one_id_the_first_counts(tmp_path):
    first = {"survey": SMALL.id, "period": 0, "id": "0" * 32, "report": 1}
    collector = Collector(SMALL, tmp_path / "c.db")
    assert collector.ingest_lines([json.dumps(first), json.dumps({**first, "report": 2})]) == ReceivedCounts(
        1, conflict=1
    )
    assert collector.ingest_lines([json.dumps({**first, "report": 3})]) == ReceivedCounts(conflict=1)
    assert collector.ingest_lines([json.dumps(first)] * 2) == ReceivedCounts(duplicate=2)
    assert collector_tally(collector, 0).counts.tolist() == [0, 1, 0, 0, 0, 0]


def test_ids_that_differ_in_any_byte_are_different(tmp_path):
    ids = np.zeros((257, 16), np.uint8)
    ids[np.arange(1, 257), np.arange(256) % 16] = 1 + np.arange(256) // 16
    collector = Collector(SMALL, tmp_path / "c.db")
    lines = [
        json.dumps({"survey": SMALL.id, "period": 0, "id": bytes(report_id).hex(), "report": 0}) for report_id in ids
    ]
    assert collector.ingest_lines(lines) == ReceivedCounts(257)


def test_a_crash_in_the_middle_loses_and_doubles_nothing(tmp_path, monkeypatch):
    ids, periods, reports = some(SMALL, 1000)
    path = write_json(tmp_path / "a.jsonl", SMALL, ids, periods, reports)
    monkeypatch.setattr("sfumato.local.collect.report_files.AT_ONCE", 100)
    collector = Collector(SMALL, tmp_path / "c.db")
    calls = []

    def failing(state, found):
        calls.append(found)
        if len(calls) == 4:
            raise KeyboardInterrupt

    note = collector_module.add_received
    monkeypatch.setattr(
        collector_module, "add_received", lambda state, found: (failing(state, found), note(state, found))
    )
    with pytest.raises(KeyboardInterrupt):
        collector.ingest(path)
    assert collector.count_received() == ReceivedCounts(300)
    assert collector.ingest(path) == ReceivedCounts(700, 300)
    assert collector.tally() == SMALL.table.tally(reports)


# many workers


def test_workers_add_up_in_any_order_whatever_they_share(tmp_path):
    """Overlapping halves: a report that two workers received counts once, in every order of merging."""
    ids, periods, reports = some(SURVEYS["two stages, rows"], 400)
    manifest = SURVEYS["two stages, rows"]
    parts = {"a": slice(0, 200), "b": slice(100, 300), "c": slice(250, 400)}
    for name, part in parts.items():
        lines = write_json(tmp_path / f"{name}.jsonl", manifest, ids[part], periods[part], reports[part])
        Collector(manifest, tmp_path / f"{name}.db").ingest(lines)
    whole = Collector(manifest, tmp_path / "whole.db")
    whole.ingest(write_json(tmp_path / "all.jsonl", manifest, ids, periods, reports))
    for number, order in enumerate(permutations(parts)):
        total = Collector(manifest, tmp_path / f"total{number}.db")
        for name in order:
            total.merge(tmp_path / f"{name}.db")
        assert tallies(total) == tallies(whole)
        assert total.count_received() == ReceivedCounts(400, 150)


def test_merging_is_addition_where_nothing_is_shared(tmp_path):
    first, second = some(SMALL, 200, 1), some(SMALL, 100, 2)
    for name, columns in (("a", first), ("b", second)):
        Collector(SMALL, tmp_path / f"{name}.db").ingest(write_parquet(tmp_path / f"{name}.parquet", SMALL, *columns))
    total = Collector(SMALL, tmp_path / "a.db")
    expected = total.tally() + Collector(SMALL, tmp_path / "b.db").tally()
    assert total.merge(tmp_path / "b.db") == ReceivedCounts(100)
    assert total.tally() == expected == sf.local.Tally.from_json(json.loads(json.dumps(expected.to_json())))
    assert total.merge(tmp_path / "b.db") == ReceivedCounts()
    assert total.tally() == expected
    with pytest.raises(InvalidParameter):
        total.merge(tmp_path / "a.db")


def test_a_worker_is_added_again_as_it_grows(tmp_path):
    """Merging the same worker again, for example every hour, counts nothing twice and reports no duplicates."""
    manifest = made(minimum_batch=1)
    lines = lines_of(manifest, 30)
    worker, whole = (Collector(manifest, tmp_path / name) for name in ("worker.db", "whole.db"))
    worker.ingest_lines([*lines[:10], lines[0], "nonsense"])
    assert whole.merge(worker.path) == ReceivedCounts(10, 1, 1, 0)
    assert whole.merge(worker.path) == ReceivedCounts()
    older = tmp_path / "older.db"
    older.write_bytes(worker.path.read_bytes())
    whole.ingest_lines(lines[15:20])
    worker.ingest_lines([*lines[10:20], "more nonsense"])
    assert whole.merge(worker.path) == ReceivedCounts(5, 5, 1, 0)
    assert whole.merge(older) == ReceivedCounts()
    assert whole.merge(worker.path) == ReceivedCounts()
    assert whole.count_received() == ReceivedCounts(20, 6, 2, 0)
    assert whole.tally(0).people == 20


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE received SET name = 'acce6ted' WHERE name = 'accepted'",
        "UPDATE received SET count = 'x'",
        "DELETE FROM about WHERE name = 'worker'",
        "UPDATE reports SET report = 'x'",
        "UPDATE batches SET counts = X'00'",
        "UPDATE merged SET name = 'other' WHERE name = 'foreign'",
    ],
)
def test_files_that_say_what_cannot_be_are_refused(change, tmp_path):
    lines = lines_of(SMALL, 8)
    first, second = (Collector(SMALL, tmp_path / name) for name in ("first.db", "second.db"))
    first.ingest_lines(lines)
    second.ingest_lines(lines)
    first.merge(second.path)
    with sqlite3.connect(first.path) as state:
        state.execute(change)
    state.close()
    refused = []
    for use in (
        lambda: Collector(SMALL, first.path).count_received(),
        lambda: Collector(SMALL, first.path).tally(0),
        lambda: first.merge(second.path),
        lambda: second.merge(first.path),
    ):
        try:
            use()
        except LedgerError as error:
            refused.append(error.code)
    assert set(refused) == {"collector-file"}


def test_a_damaged_schema_is_a_file_that_cannot_be_read(tmp_path):
    collector = Collector(SMALL, tmp_path / "c.db")
    whole = collector.path.read_bytes()
    collector.path.write_bytes(whole.replace(b"CREATE TABLE batches", b"CREATE TABLE\xd2batches", 1))
    with pytest.raises(LedgerError):
        collector.count_received()


def test_a_worker_that_is_not_there_is_not_made_up(tmp_path):
    collector = Collector(made(), tmp_path / "c.db")
    with pytest.raises(InvalidParameter):
        collector.merge(tmp_path / "typo.db")
    assert not (tmp_path / "typo.db").exists()


def test_a_file_of_another_survey_is_refused(tmp_path):
    Collector(SMALL, tmp_path / "small.db")
    for path in (tmp_path / "small.db",):
        with pytest.raises(LedgerError):
            Collector(SURVEYS["numbers"], path)
        with pytest.raises(LedgerError):
            Collector(SURVEYS["numbers"], tmp_path / "numbers.db").merge(path)
    (tmp_path / "broken.db").write_bytes(b"nonsense" * 1000)
    with pytest.raises(LedgerError):
        Collector(SMALL, tmp_path / "broken.db")


# what is malformed


def wrong_lines(manifest):
    good = json.loads(lines_of(manifest, 1)[0])
    for name in good:
        yield json.dumps({other: value for other, value in good.items() if other != name})
        for value in (None, -1, 1.5, True, "", "x", [], {}, 10**30, "é" * 40, 1 << 62):
            if not (name == "survey" and isinstance(value, str)):
                yield json.dumps({**good, name: value})
    yield json.dumps({**good, "more": 1})
    yield json.dumps({**good, "id": good["id"].upper() if good["id"].upper() != good["id"] else "G" * 32})
    yield json.dumps({**good, "period": manifest.periods})
    yield from ("{", "[]", "null", "1", '"text"', "NaN", "[" * 5000, '{"a":' * 3000, "9" * 5000, "\x00", "{}")


@pytest.mark.parametrize("name", SURVEYS)
def test_malformed_lines_are_counted_and_left_out(name, tmp_path):
    manifest = SURVEYS[name]
    wrong, good = list(wrong_lines(manifest)), lines_of(manifest, 7)
    foreign = [json.dumps({**json.loads(good[0]), "survey": "0" * 32})]
    mixed = [line for pair in zip(wrong, [*good, *foreign] * len(wrong), strict=False) for line in pair]
    collector = Collector(manifest, tmp_path / "c.db")
    found = collector.ingest_lines(mixed)
    survey_of_another_kind = sum('"survey": ' in line and manifest.id not in line for line in wrong)
    assert found.accepted == 7
    assert found.malformed + found.foreign + found.duplicate + found.accepted == len(mixed)
    assert found.malformed >= len(wrong) - survey_of_another_kind
    assert sum(collector.periods().values()) == 7


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.binary(max_size=80)
        | st.text(max_size=80)
        | st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["survey", "period", "id", "report"]), inner, max_size=4)
            ),
            max_leaves=6,
        ).map(json.dumps),
        max_size=6,
    )
)
@pytest.mark.parametrize("name", ["categories", "two stages, rows"])
def test_whatever_arrives_nothing_crashes(name, lines):
    manifest = SURVEYS[name]
    found = read_lines(manifest, [*lines, lines_of(manifest, 1)[0]])
    assert found.malformed + found.foreign + len(found.ids) == len(lines) + 1
    assert len(found.ids) == len(found.periods) == len(found.reports) >= 1


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_report_with_one_wrong_field_is_never_counted(data):
    record = json.loads(lines_of(SMALL, 1)[0])
    field = data.draw(st.sampled_from(sorted(record)))
    wrong = data.draw(
        st.none() | st.booleans() | st.floats() | st.text(max_size=40) | st.integers() | st.lists(st.integers())
    )
    right = {
        "survey": lambda value: value == SMALL.id,
        "period": lambda value: type(value) is int and 0 <= value < SMALL.periods,
        "id": lambda value: isinstance(value, str) and len(value) == 32 and set(value) <= set("0123456789abcdef"),
        "report": lambda value: type(value) is int and 0 <= value < 6,
    }[field]
    found = read_lines(SMALL, [json.dumps({**record, field: wrong})])
    assert len(found.ids) == (1 if right(wrong) else 0)


def test_a_line_of_any_length_takes_little_memory(tmp_path):
    path = tmp_path / "long.jsonl"
    good = lines_of(SMALL, 2)
    with path.open("wb") as file:
        file.write(good[0].encode() + b"\n")
        for _ in range(40):
            file.write(b"[" * 1_000_000)
        file.write(b"\n\n" + good[1].encode())
    collector = Collector(SMALL, tmp_path / "c.db")
    tracemalloc.start()
    found = collector.ingest(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == ReceivedCounts(2, 0, 1)
    assert peak < 8_000_000


@pytest.mark.parametrize("length", [1022, 1023, 1024, 1025, 1 << 20, (1 << 20) + 1023, (1 << 20) + 1024])
def test_lines_at_the_limit_are_told_apart_from_the_next(tmp_path, length):
    path = tmp_path / "edge.jsonl"
    path.write_text("x" * length + "\n" + lines_of(SMALL, 1)[0] + "\n")
    assert Collector(SMALL, tmp_path / "c.db").ingest(path) == ReceivedCounts(1, 0, 1)


def test_malformed_rows_of_parquet_are_counted_and_left_out(tmp_path):
    rows = SURVEYS["two stages, rows"]
    for manifest, bad in ((SMALL, [-1, 6, None, 1 << 40]), (rows, [b"", None, b"\xff" * 6, b"\xff" * 5])):
        good = manifest.table.form.encode(some(manifest, 1)[2])[0]
        good = bytes.fromhex(good) if isinstance(good, str) else good
        records = [(manifest.id, 0, bytes(16), good)]
        records += [(manifest.id, 0, bytes([number + 1]) * 16, value) for number, value in enumerate(bad)]
        records += [
            (None, 0, b"a" * 16, good),
            (manifest.id, None, b"b" * 16, good),
            (manifest.id, -1, b"c" * 16, good),
        ]
        records += [(manifest.id, 10**6, b"d" * 16, good), (manifest.id, 0, None, good), ("other", 0, b"e" * 16, good)]
        columns = list(zip(*records, strict=True))
        fields = make_report_schema(manifest)
        table = pa.Table.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)], schema=fields
        )
        pq.write_table(table, tmp_path / "bad.parquet")
        collector = Collector(manifest, tmp_path / f"{manifest.id}.db")
        right = 2 if manifest is rows else 1  # forty bits may all be set
        assert collector.ingest(tmp_path / "bad.parquet") == ReceivedCounts(right, 0, len(records) - right - 1, 1)


def test_rows_with_bits_that_cannot_be_are_malformed(tmp_path):
    manifest = made(labels=[str(label) for label in range(13)], mechanism="subset")
    ones = manifest.table.mechanism.size
    right = sum(1 << place for place in range(ones))
    words = [right, right << 13 - ones, right << 14 - ones, right | 1 << ones, 0]
    rows = np.array([list(word.to_bytes(2, "little")) for word in words], np.uint8)
    ids = np.arange(80, dtype=np.uint8).reshape(5, 16)
    for write, ending in ((write_json, "jsonl"), (write_parquet, "parquet")):
        path = write(tmp_path / f"r.{ending}", manifest, ids, np.zeros(5, np.int64), rows)
        collector = Collector(manifest, tmp_path / f"{ending}.db")
        assert collector.ingest(path) == ReceivedCounts(2, 0, 3)
        assert collector_tally(collector, 0) == manifest.table.tally(rows[:2])


def test_a_file_that_is_none_is_refused_and_what_was_read_stays(tmp_path):
    collector = Collector(SMALL, tmp_path / "c.db")
    (tmp_path / "no.parquet").write_bytes(b"PAR1nonsense")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    for name in ("no.parquet", "other.parquet", "reports.csv"):
        with pytest.raises(InvalidParameter):
            collector.ingest(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        collector.ingest(tmp_path / "none.jsonl")


# results


def test_results_move_on_by_whole_batches(tmp_path):
    """Two results never differ by only a few people, even if workers are merged."""
    manifest = made(minimum_batch=100)
    lines = lines_of(manifest, 400)
    first, second = (Collector(manifest, tmp_path / name) for name in ("first.db", "second.db"))
    first.ingest_lines(lines[:120])
    shown = first.tally()
    assert shown.people == 120
    first.ingest_lines(lines[120:219])
    assert first.tally() == shown
    assert first.tally(0) == shown
    assert first.periods() == {0: 219}
    second.ingest_lines(lines[219:220])
    second.merge(first.path)
    assert second.tally().people == 220  # a hundred more than first showed
    second.ingest_lines(lines[220:300])
    assert second.tally().people == 220
    first.merge(second.path)
    assert first.tally().people == 220  # what second showed, not 300
    first.ingest_lines(lines[300:])
    assert first.tally().people == 400


def test_no_result_before_the_minimum_batch(tmp_path):
    manifest = made(minimum_batch=100, period_days=7, lifetime_epsilon=9)
    collector = Collector(manifest, tmp_path / "c.db")
    ids, _, reports = some(manifest, 250)
    periods = np.repeat([0, 1, 2], [100, 99, 51])
    collector.ingest(write_parquet(tmp_path / "r.parquet", manifest, ids, periods, reports))
    assert collector.select_tally()[0] == 0
    assert collector.tally(0).people == 100
    for period in (1, 2, 3, -1):
        with pytest.raises(QueryError) as caught:
            collector.tally(period)
        assert caught.value.code == "survey-batch"
    extra = some(manifest, 1, 9)
    collector.ingest(write_parquet(tmp_path / "x.parquet", manifest, extra[0], np.array([1]), extra[2]))
    assert collector.select_tally()[0] == 1
    with pytest.raises(QueryError):
        Collector(manifest, tmp_path / "empty.db").tally()


@pytest.mark.parametrize("name", [name for name in SURVEYS if name not in ("words", "bytes")])
def test_results_show_everything_with_its_name(name):
    manifest = SURVEYS[name]
    tally = manifest.table.tally(some(manifest, 4000)[2])
    found = make_results(manifest, 0, tally, fakes="0.02", delta="1e-7")
    shown = json.loads(json.dumps(found.to_dict()))
    assert shown["people"] == 4000
    assert shown["fakes"] == 0.02
    if name == "delta":  # the local loss: no smaller one is computed
        assert shown["shuffled"]["delta"] == shown["delta"] != "0"
    else:
        assert shown["shuffled"]["delta"] == "1e-7"
        assert shown["delta"] == "0"
        assert len(shown["shuffled"]["assumptions"]) >= 4
    for estimate in shown["estimates"]:
        assert estimate["low"] < estimate["unbiased"] < estimate["high"]
        assert estimate["moved_by_fakes"] > 0
    consistent = [estimate["consistent"] for estimate in shown["estimates"]]
    if found.kind == "share":
        assert all(0 <= share <= 1 for share in consistent)
        if name not in ("questions",):
            assert sum(consistent) == pytest.approx(1)
        wide = make_results(manifest, 0, tally, simultaneous=True)
        assert wide.lines[0].high > found.lines[0].high
    assert found.plot().to_dict()["title"]["text"] == manifest.question


@pytest.mark.parametrize("method", ["split", "sample"])
def test_fakes_move_a_question_as_far_as_is_said(method):
    """The worst fake reports move the estimate exactly as far as stated; other fake reports never move it further."""
    manifest = made(labels=None, questions=["a", "b"], mechanism=method, minimum_batch=1)
    table = manifest.table
    honest = table.randomise(np.tile([True, False], (900, 1)))
    before = table.estimate(table.tally(honest)).share
    for question, lie, worst in ((0, 0, True), (0, 1, False), (1, 1, True), (1, 0, False)):
        row = np.full((100, 1), 3 * lie, np.uint8)
        fakes = np.full(100, 2 * question + lie) if method == "sample" else row
        found = make_results(manifest, 0, table.tally(np.concatenate((honest, fakes))), fakes="0.1").lines[question]
        moved = abs(found.unbiased - before[question])
        assert moved <= found.moved + 1e-9
        assert (moved == pytest.approx(found.moved)) == worst
    few = table.tally(honest[:20])
    assert np.isinf(make_results(manifest, 0, few, fakes="0.9").lines[0].moved) == (method == "sample")


def test_a_simulation_goes_the_whole_way(tmp_path):
    for name in ("categories", "numbers", "questions", "two stages, rows"):
        folder = tmp_path / name
        folder.mkdir()
        seen = []
        found = simulate(
            SURVEYS[name], 5000, folder, workers=3, progress=lambda stage, count, into=seen: into.append((stage, count))
        )
        assert found.received == ReceivedCounts(5000)
        assert found.results.people == 5000
        for line, truth, asked in zip(found.results.lines, found.population, found.asked, strict=True):
            spread = (line.high - line.low) / 2
            assert abs(line.unbiased - truth) < 3.2 * spread  # six standard errors
            assert abs(asked - truth) < 3.2 * spread
        assert sum(count for stage, count in seen if stage == "Reporting") == 5000
        assert {stage for stage, _ in seen} == {"Reporting", "Collecting", "Adding up"}


def test_a_simulated_population_is_as_asked(tmp_path):
    found = simulate(SURVEYS["yes or no"], 3000, tmp_path, shares=["0.25", "0.75"])
    assert found.population.tolist() == [0.25, 0.75]
    assert stats.binomtest(round(found.asked[1] * 3000), 3000, 0.75).pvalue > FALSE_ALARM
    for wrong in (["0.5"], ["0.5", "0.6"], ["-0.5", "1.5"], ["a", "b"], ["1/0", "1"]):
        with pytest.raises(InvalidParameter):
            simulate(SURVEYS["yes or no"], 10, tmp_path, shares=wrong)


def test_from_devices_to_results(tmp_path):
    """Sixty people with real devices, three weeks each; their lines go through a file into the collector."""
    manifest = made(labels=["no", "yes"], period_days=7, renewal=sf.local.Renewal(2, 10), minimum_batch=50)
    path = tmp_path / "arrived.jsonl"
    with path.open("w") as file:
        for person in range(60):
            survey = Survey(manifest, tmp_path / f"{person}.db")
            for week in range(3):
                for _ in range(1 + person % 2):  # some send twice
                    report = survey.report(person % 3 == 0, at=BEGINS + timedelta(days=7 * week))
                    file.write(report.to_json() + "\n")
    collector = Collector(manifest, tmp_path / "c.db")
    assert collector.ingest(path) == ReceivedCounts(180, 90)
    assert collector.periods() == {0: 60, 1: 60, 2: 60}
    assert make_results(manifest, *collector.select_tally()).longitudinal_epsilon <= 2


def test_coverage_through_the_file_and_the_collector(tmp_path):
    """Intervals of collected surveys hold as often as stated. Negative control: narrower ones do not."""
    surveys, people, shares = 300, 300, np.array([0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    generator = np.random.default_rng(3)
    covered = narrow = 0
    for number in range(surveys):
        values = generator.choice(6, people, p=shares)
        ids = generator.integers(0, 256, (people, 16), dtype=np.uint8)
        path = write_parquet(
            tmp_path / "r.parquet", SMALL, ids, np.zeros(people, np.int64), SMALL.table.randomise(values)
        )
        collector = Collector(SMALL, tmp_path / f"{number}.db")
        collector.ingest(path)
        found = SMALL.table.estimate(collector.tally())
        covered += found.low[1] <= shares[1] <= found.high[1]
        narrow += abs(found.frequency[1] - shares[1]) <= 0.65 * (found.high[1] - found.low[1]) / 2
    assert stats.binomtest(int(covered), surveys, 0.95).pvalue > FALSE_ALARM
    assert stats.binomtest(int(narrow), surveys, 0.95).pvalue < FALSE_ALARM
