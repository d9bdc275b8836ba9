"""Surveys that ask for any word: from the signed document over the device and the collector to the published words."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from make_vectors import FixedKey

import sfumato as sf
from sfumato.errors import InvalidParameter, QueryError, SfumatoError
from sfumato.kernel.entropy import SYSTEM
from sfumato.local.collect.collector import Collector
from sfumato.local.collect.published_results import find_words, publish_results
from sfumato.local.collect.report_files import Batch, ParquetReports
from sfumato.local.collect.results import make_results
from sfumato.local.collect.simulation import simulate
from sfumato.local.survey.manifest import read_manifest
from sfumato.local.survey.new_survey import Renewal, new_survey

KEY = FixedKey()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
CONFIDENCE = "0.999999"


def ask(**changes):
    options = {"epsilon": 4, "words": 5, "alphabet": LETTERS, "minimum_batch": 1000, **changes}
    return new_survey("Which word?", key=KEY, **options)


def crowd(count):
    return (["pizza"] * 5 + ["pasta"] * 3 + ["salad"] * 2) * (count // 10)


def batch_of(manifest, texts):
    reports = manifest.table.randomise(texts)
    ids = SYSTEM.take(16 * len(texts)).reshape(-1, 16)
    return Batch(ids, np.zeros(len(texts), np.int64), reports, 0, 0)


def test_words_are_a_survey_of_version_2_and_other_surveys_stay_version_1():
    survey = ask()
    assert survey.manifest.statement["version"] == 2
    assert survey.manifest.statement["domain"] == {"kind": "words", "length": 5, "alphabet": LETTERS}
    assert read_manifest(survey.manifest.to_bytes()).table == survey.table
    assert survey.epsilon <= 4
    assert new_survey("Which?", key=KEY, epsilon=1, labels=["a", "b"]).manifest.statement["version"] == 1


def test_a_device_charges_a_word_like_any_answer(tmp_path):
    survey = sf.local.Survey(ask(epsilon=1).manifest, tmp_path / "device.db")
    made = survey.report("pizza")
    assert made.epsilon == survey.longitudinal_epsilon
    assert survey.report("pasta").to_json() == made.to_json()
    form = survey.table.form
    assert len(made.report) == 2 * form.bytes
    assert form.decode([made.report])[1] == 0
    for wrong in ("", "Pizza", "a\0b", 3, None, "\ud800"):
        with pytest.raises(InvalidParameter) as refused:
            survey.report(wrong)
        assert "Pizza" not in str(refused.value)
    capped = sf.local.Survey(ask(epsilon=5).manifest, tmp_path / "device.db")
    with pytest.raises(SfumatoError):
        capped.report("pizza")


def test_a_permanent_report_on_a_word_is_kept_over_periods(tmp_path):
    survey = sf.local.Survey(ask(epsilon=1, period_days=7, renewal=Renewal(1, 10)).manifest, tmp_path / "device.db")
    start = survey.manifest.created
    reports = [survey.report("pizza", at=start + timedelta(weeks=week)) for week in range(4)]
    assert len({made.report for made in reports}) == 1
    assert [made.epsilon > 0 for made in reports] == [True, False, False, False]


def test_the_collector_publishes_words_when_every_length_has_its_batch(tmp_path):
    manifest = ask().manifest
    collector = Collector(manifest, tmp_path / "collected.db")
    groups = len(manifest.table.lengths)
    collector.add(batch_of(manifest, crowd(1000 * groups - 500)))
    with pytest.raises(QueryError, match=f"1,000 for each of its {groups} lengths"):
        publish_results(collector)
    collector.add(batch_of(manifest, crowd(20_000)))
    found = publish_results(collector, confidence=CONFIDENCE)
    assert found.kind == "word"
    assert found.simultaneous
    assert [line.label for line in found.lines] == ["pizza", "pasta", "salad"]
    for line, share in zip(found.lines, (0.5, 0.3, 0.2), strict=True):
        assert line.low < share < line.high
        assert line.low < line.unbiased < line.high
        assert 0.01 * groups / 2 < line.moved < 1  # all fakes may be on whole words
    assert found.people == collector.published_periods()[0]
    assert found.to_dict()["estimates"][0]["label"] == "pizza"
    collector.add(batch_of(manifest, crowd(500)))  # no whole batch: nothing changes
    assert publish_results(collector, confidence=CONFIDENCE) == found


def test_withdrawn_and_merged_reports_count_as_elsewhere(tmp_path):
    manifest = ask(minimum_batch=50).manifest
    first, second = (Collector(manifest, tmp_path / f"{name}.db") for name in "ab")
    one, two = batch_of(manifest, crowd(400)), batch_of(manifest, crowd(600))
    first.add(one)
    second.add(two)
    assert first.withdraw(bytes(one.ids[0]).hex())
    assert first.merge(tmp_path / "b.db").accepted == 600
    period, reports = first.select_reports()
    assert period == 0
    assert len(reports) == 999
    rows = {bytes(row) for row in reports}
    assert rows == {bytes(row) for row in [*one.reports[1:], *two.reports]}
    assert not first.withdraw(bytes(one.ids[1]).hex())  # published now


def test_reports_of_words_travel_as_lines_and_in_parquet(tmp_path):
    manifest = ask().manifest
    made = batch_of(manifest, crowd(100))
    with ParquetReports(tmp_path / "reports.parquet", manifest) as file:
        file.write(made.ids, made.periods, made.reports)
    lines = [
        json.dumps({"survey": manifest.id, "period": 0, "id": bytes(name).hex(), "report": value})
        for name, value in zip(made.ids, manifest.table.form.encode(made.reports), strict=True)
    ]
    wrong = json.dumps({"survey": manifest.id, "period": 0, "id": "0" * 32, "report": "ff" * manifest.table.form.bytes})
    collector = Collector(manifest, tmp_path / "collected.db")
    assert collector.ingest(tmp_path / "reports.parquet").accepted == 100
    counts = collector.ingest_lines([*lines, wrong])
    assert (counts.duplicate, counts.malformed, counts.accepted) == (100, 1, 0)


def test_a_tally_of_words_has_no_results_by_itself():
    manifest = ask().manifest
    with pytest.raises(InvalidParameter, match="publish_results"):
        make_results(manifest, 0, manifest.table.tally(manifest.table.randomise(crowd(100))))


def test_no_word_is_found_where_nobody_shares_one():
    manifest = ask(minimum_batch=1).manifest
    rng = np.random.default_rng(1)
    texts = ["".join(rng.choice(list(LETTERS), 5)) for _ in range(3000)]
    (people, last), words = find_words(manifest, manifest.table.randomise(texts), CONFIDENCE)
    assert words == ()
    assert people == 3000 > last > 0


def test_more_words_are_found_than_sixteen_where_people_allow_it():
    """64 words of equal share, in fours of one prefix."""
    asked = sf.local.heavy_hitters(3, 6, alphabet="abcdefgh", step=8)
    words = [first + second + third for first in "abcd" for second in "efgh" for third in "aceg"]
    found = asked.find(asked.randomise(words * 2000))
    assert {hitter.word for hitter in found} == set(words)
    assert len(asked.find(asked.randomise(words * 2000), keep=8)) <= 8 * 4


def test_prefixes_that_nobody_has_are_not_kept_beyond_a_few():
    asked = sf.local.heavy_hitters(4, 4)
    reports = asked.randomise(["oslo"] * 20_000)
    own = reports[reports[:, 0] == 0]
    supports = asked._count_supports(own, [0], 0, asked.lengths[0])
    least = asked._find_least_support(len(own), supports.size)
    assert int((supports > least).sum()) < 60  # 16 on average by chance, and the true one
    assert supports[0, int.from_bytes(b"os")] > least


def test_a_rehearsal_knows_the_true_shares_of_the_words_it_finds(tmp_path):
    found = simulate(ask(minimum_batch=100).manifest, 20_000, tmp_path, shares=["0.6", "0.3", "0.1"])
    assert len(found.results.lines) == 3
    assert found.population.tolist() == [0.6, 0.3, 0.1]


@pytest.mark.parametrize(
    "changes", [{"labels": ["a", "b"]}, {"words": None, "labels": ["a", "b"]}, {"mechanism": "krr"}, {"most_bits": 8},
                {"words": 0}, {"words": 200}, {"alphabet": "aa"}],
)  # fmt: skip
def test_wrong_requests_are_refused(changes):
    with pytest.raises(SfumatoError):
        ask(**changes)


def test_an_announced_period_works_for_words_too(tmp_path):
    survey = sf.local.Survey(ask(epsilon=1, period_days=7).manifest, tmp_path / "device.db")
    said = KEY.announce(survey.manifest, datetime.now(UTC))
    assert survey.report("pizza", announcement=said).period == 0
