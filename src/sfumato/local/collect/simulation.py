"""A survey rehearsed: made-up people answer, their devices randomise, workers collect the files, and add up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.parameters import Number
from sfumato.local.collect.collector import Collector, Received
from sfumato.local.collect.report_files import AT_ONCE, ID_BYTES, ParquetReports
from sfumato.local.collect.results import Results, results_of
from sfumato.local.mechanisms.coin_tables import UNITS, draw_rows, flip_units
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser
from sfumato.local.randomisers.report_forms import Reports
from sfumato.local.randomisers.share_estimates import FloatArray
from sfumato.local.survey.domains import Categories, Numbers, YesNo
from sfumato.local.survey.manifest import Manifest
from sfumato.number_arguments import whole_number

Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """What was found, beside the truth: of the population that was made up, and of the people drawn from it."""

    results: Results
    received: Received
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
) -> Simulated:
    """Draw people from a made-up population, have each report once, and collect what they sent with some workers.

    `shares` is the population: of each category; of yes to each question; of a number, its mean between the bounds
    (from 0 to 1). Without them: shares in proportion to 1, 1/2, 1/3 ...; or numbers spread evenly.
    """
    whole_number(people, "people", 1)
    whole_number(workers, "workers", 1)
    made_up = _population(manifest, shares)
    files = [folder / f"reports-{number}.parquet" for number in range(workers)]
    totals = np.zeros(made_up.size)
    for number, file in enumerate(files):
        own = people // workers + (number < people % workers)
        with ParquetReports(file, manifest) as written:
            for start in range(0, own, AT_ONCE):
                count = min(AT_ONCE, own - start)
                values, sums = _answers(manifest, made_up, count)
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
    found = results_of(manifest, 0, collectors[0].tally(0), fakes=fakes)
    return Simulated(found, collectors[0].received(), _scaled(manifest, made_up), _scaled(manifest, totals / people))


def _population(manifest: Manifest, shares: Sequence[Number] | None) -> FloatArray:
    """The shares, or the mean as a share of the range."""
    match manifest.domain:
        case Numbers():
            wanted, whole = 1, False
        case Categories(labels):
            wanted, whole = len(labels), True
        case YesNo(labels):
            wanted, whole = len(labels), False
    if shares is None:
        default = 1 / np.arange(1, wanted + 1)
        return default / default.sum() if whole else default / 2
    try:
        given = [Fraction(str(each)) for each in shares]
    except (ValueError, ZeroDivisionError):
        given = []
    if len(given) != wanted or any(not 0 <= each <= 1 for each in given) or (whole and sum(given) != 1):
        rule = f"must be {wanted} from 0 to 1" + (", which sum to 1" if whole else "")
        raise InvalidParameter("shares", rule, "others")
    return np.array([float(each) for each in given])


def _answers(manifest: Manifest, shares: FloatArray, count: int) -> tuple[Reports, FloatArray]:
    """Answers of people drawn from the population, and their sum."""
    match manifest.domain:
        case Categories():
            units = np.floor(shares * UNITS).astype(np.int64)
            units[np.argmax(units)] += UNITS - units.sum()
            values = draw_rows(units[None], np.zeros(count, np.int64), SYSTEM)
            return values, np.bincount(values, minlength=shares.size).astype(np.float64)
        case Numbers(lower, upper):
            even = (
                SYSTEM.take(4 * count).view("<u4") / UNITS
            )  # spread evenly between 0 and twice the mean, or its mirror
            mean = float(shares[0])
            placed = 2 * mean * even if mean <= 0.5 else 1 - 2 * (1 - mean) * even
            return float(lower) + placed * (float(upper) - float(lower)), np.array([placed.sum()])
        case YesNo():
            units = np.floor(shares * UNITS).astype(np.int64)
            flips = flip_units(np.tile(units, count), units.size * count, SYSTEM).reshape(count, -1)
            return flips, flips.sum(axis=0).astype(np.float64)


def _scaled(manifest: Manifest, shares: FloatArray) -> FloatArray:
    table = manifest.table
    return float(table.lower) + table.span * shares if isinstance(table, MeanRandomiser) else shares
