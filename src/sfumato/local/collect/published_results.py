"""The published results of a collector: estimates from the tally, or the words that are found in the reports."""

import math
from fractions import Fraction
from functools import lru_cache

from sfumato.errors import InvalidParameter
from sfumato.local.collect.collector import Collector
from sfumato.local.collect.results import Line, Results, combine_results, make_results
from sfumato.local.randomisers.heavy_hitters import FrequentWord, HeavyHitters
from sfumato.local.randomisers.report_forms import Reports
from sfumato.local.survey.manifest import Manifest
from sfumato.number_arguments import Number, read_probability


def publish_results(
    collector: Collector,
    period: int | None = None,
    *,
    publish: bool = True,
    confidence: Number = "0.95",
    simultaneous: bool = False,
    fakes: Number = "0.01",
    delta: Number = "1e-6",
) -> Results:
    """Estimate from the published batches of a period (default: the last). With `publish`, publish whole batches first.

    Searching words takes seconds, so the words of the last published batches are kept in memory.
    """
    manifest = collector.manifest
    wanted, tally = collector.select_tally(period, publish=publish)
    if not isinstance(manifest.table, HeavyHitters):
        return make_results(
            manifest, wanted, tally, confidence=confidence, simultaneous=simultaneous, fakes=fakes, delta=delta
        )
    people, words = _find_published_words(_Published(collector, wanted, tally.people), confidence)
    share = read_probability(fakes, "fakes")
    lines = tuple(_write_line(manifest.table, word, people, share) for word in words)
    return combine_results(
        manifest, wanted, people[0], lines, confidence=confidence, simultaneous=True, fakes=share, delta=delta
    )


class _Published:
    """The published reports of a period, equal by place, survey and number: published batches never change."""

    def __init__(self, collector: Collector, period: int, people: int) -> None:
        self.collector, self.period = collector, period
        self._key = (str(collector.path), collector.manifest.digest, period, people)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Published) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=16)
def _find_published_words(found: _Published, confidence: Number) -> tuple[tuple[int, int], tuple[FrequentWord, ...]]:
    """The numbers of reports, in all and on whole words, and the words."""
    _, reports = found.collector.select_reports(found.period, publish=False)
    return find_words(found.collector.manifest, reports, confidence)


def find_words(
    manifest: Manifest, reports: Reports, confidence: Number = "0.95"
) -> tuple[tuple[int, int], tuple[FrequentWord, ...]]:
    """Find the words in reports; return the numbers of reports, in all and on whole words, and the words."""
    table = manifest.table
    if not isinstance(table, HeavyHitters):
        raise InvalidParameter("manifest", "must ask for words", "something else")
    counts = table.tally(reports)
    return (counts.people, int(counts.counts[-1])), table.find(reports, confidence=confidence)


def _write_line(table: HeavyHitters, word: FrequentWord, people: tuple[int, int], share: Fraction) -> Line:
    """A word and its share. Fake reports can all be on whole words, so they are a greater part of those."""
    everyone, last = people
    true, other = (float(probability) for probability in table.support)
    fakes = math.ceil(share * everyone)
    supports = round((word.frequency * (true - other) + other) * last)
    if fakes >= last:
        moved = math.inf
    else:
        honest = last - fakes
        least, most = max(supports - fakes, 0) / honest, min(supports, honest) / honest
        shares = ((least - other) / (true - other), (most - other) / (true - other))
        moved = max(word.frequency - shares[0], shares[1] - word.frequency)
    consistent = min(max(word.frequency, 0.0), 1.0)
    return Line(word.word, word.frequency, word.low, word.high, consistent, moved)
