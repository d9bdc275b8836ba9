"""Rehearse a survey: simulated people answer, their devices randomise, and workers collect and merge the files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import SYSTEM
from sfumato.local.collect.collector import Collector
from sfumato.local.collect.published_results import publish_results
from sfumato.local.collect.received_counts import ReceivedCounts
from sfumato.local.collect.report_files import AT_ONCE, ID_BYTES, ParquetReports
from sfumato.local.collect.results import Results
from sfumato.local.mechanisms.coin_tables import UNITS, draw_rows, flip_units
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser
from sfumato.local.randomisers.report_forms import Reports
from sfumato.local.randomisers.share_estimates import FloatArray
from sfumato.local.randomisers.word_bits import Words
from sfumato.local.survey.domains import AnyWord, Categories, Numbers, YesNo
from sfumato.local.survey.manifest import Manifest
from sfumato.number_arguments import Number, read_whole_number

MADE_UP_WORDS = 1000
LETTERS = "abcdefghijklmnopqrstuvwxyz"
Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedSurvey:
    """The results, and the true values of the simulated population and of the people who were drawn from it."""

    results: Results
    received: ReceivedCounts
    population: FloatArray
    asked: FloatArray


def simulate(
    manifest: Manifest,
    people: int,
    folder: Path,
    *,
    shares: Sequence[Number] | None = None,
    workers: int = 2,
    progress: Progress = lambda stage, count: None,
    fakes: Number = "0.01",
) -> SimulatedSurvey:
    """Draw people from a simulated population, let each report once, and collect the reports with some workers.

    `shares` describes the population: the share of each category, or of yes to each question, or the mean of a number
    between the bounds (from 0 to 1). Without it, shares are proportional to 1, 1/2, 1/3, ..., and numbers are uniform.
    For words, the shares are those of made-up words, and the results' own words have their true shares.
    """
    read_whole_number(people, "people", 1)
    read_whole_number(workers, "workers", 1)
    made_up = _read_population(manifest, shares)
    files = [folder / f"reports-{number}.parquet" for number in range(workers)]
    totals = np.zeros(made_up.size)
    for number, file in enumerate(files):
        own = people // workers + (number < people % workers)
        with ParquetReports(file, manifest) as written:
            for start in range(0, own, AT_ONCE):
                count = min(AT_ONCE, own - start)
                values, sums = _draw_answers(manifest, made_up, count)
                totals += sums
                ids = SYSTEM.take(ID_BYTES * count).reshape(count, ID_BYTES)
                reports: Reports = np.asarray(manifest.table.randomise(values))
                written.write(ids, np.zeros(count, np.int64), reports)
                progress("Reporting", count)
    collectors = [Collector(manifest, folder / f"collected-{number}.db") for number in range(workers)]
    for collector, file in zip(collectors, files, strict=True):
        progress("Collecting", 0)
        progress("Collecting", collector.ingest(file).accepted)
    for other in collectors[1:]:
        progress("Adding up", collectors[0].merge(other.path).accepted)
    found = publish_results(collectors[0], 0, fakes=fakes)
    return SimulatedSurvey(
        found,
        collectors[0].count_received(),
        _scale_shares(manifest, made_up, found),
        _scale_shares(manifest, totals / people, found),
    )


def _read_population(manifest: Manifest, shares: Sequence[Number] | None) -> FloatArray:
    """Read the shares, or the mean as a share of the range."""
    match manifest.domain:
        case Numbers():
            wanted, whole = 1, False
        case Categories(labels):
            wanted, whole = len(labels), True
        case YesNo(labels):
            wanted, whole = len(labels), False
        case AnyWord(words):
            wanted, whole = (_count_made_up(words) if shares is None else len(shares)), True
    if shares is None:
        default = 1 / np.arange(1, wanted + 1)
        return default / default.sum() if whole else default / 2
    try:
        given = [Fraction(str(share)) for share in shares]
    except (ValueError, ZeroDivisionError):
        given = []
    if len(given) != wanted or any(not 0 <= share <= 1 for share in given) or (whole and sum(given) != 1):
        rule = f"must be {wanted} numbers from 0 to 1" + (" with the sum 1" if whole else "")
        raise InvalidParameter("shares", rule, "others")
    return np.array([float(share) for share in given])


def _draw_answers(manifest: Manifest, shares: FloatArray, count: int) -> tuple[Reports, FloatArray]:
    """Draw people from the population; return their answers, and the sum of the answers."""
    match manifest.domain:
        case AnyWord(words):
            places, sums = _draw_places(shares, count)
            known = np.array(make_up_words(words, shares.size), dtype=object)
            return known[places], sums
        case Categories():
            return _draw_places(shares, count)
        case Numbers(lower, upper):
            # uniform between 0 and twice the mean, or mirrored
            even = SYSTEM.take(4 * count).view("<u4") / UNITS
            mean = float(shares[0])
            placed = 2 * mean * even if mean <= 0.5 else 1 - 2 * (1 - mean) * even
            return float(lower) + placed * (float(upper) - float(lower)), np.array([placed.sum()])
        case YesNo():
            units = np.floor(shares * UNITS).astype(np.int64)
            flips = flip_units(np.tile(units, count), units.size * count, SYSTEM).reshape(count, -1)
            return flips, flips.sum(axis=0).astype(np.float64)


def _draw_places(shares: FloatArray, count: int) -> tuple[Reports, FloatArray]:
    units = np.floor(shares * UNITS).astype(np.int64)
    units[np.argmax(units)] += UNITS - units.sum()
    values = draw_rows(units[None], np.zeros(count, np.int64), SYSTEM)
    return values, np.bincount(values, minlength=shares.size).astype(np.float64)


def make_up_words(words: Words, count: int) -> list[str]:
    """Different words of the simulated population: numbers in letters of the alphabet, the last letters first."""
    letters = words.alphabet or LETTERS
    found = []
    for number in range(count):
        places, text = number, ""
        for _ in range(min(words.length, 8)):
            places, place = divmod(places, len(letters))
            text += letters[(place + 7 * len(text)) % len(letters)]
        found.append(text)
    if len(set(found)) != count:
        raise InvalidParameter("shares", "must be no more than there are words", "more")
    return found


def _count_made_up(words: Words) -> int:
    return min(MADE_UP_WORDS, int(len(words.alphabet or LETTERS) ** min(words.length, 8)))


def _scale_shares(manifest: Manifest, shares: FloatArray, found: Results) -> FloatArray:
    """The true value of each line of the results."""
    match manifest.table, manifest.domain:
        case MeanRandomiser() as table, _:
            return float(table.lower) + table.span * shares
        case _, AnyWord(words):
            known = dict(zip(make_up_words(words, shares.size), shares.tolist(), strict=True))
            return np.array([known.get(line.label, 0.0) for line in found.lines])
        case _:
            return shares
