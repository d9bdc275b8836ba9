"""The statistical-query oracle on a throwaway desk: its charge, its noise, its answers and its end."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.accuracy.query_tolerances import PSI_BITS
from sfumato.answering.certified_plans import certify_plan
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.statistical_oracle import ClampWarning, StatisticalOracle, begin_oracle
from sfumato.catalog.columns import Boolean, Category, Integer, Real
from sfumato.catalog.dataset import Table
from sfumato.errors import SfumatoError
from sfumato.kernel.losses import PureDP
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.lab.auditing.independent_prices import covers, covers_losses
from sfumato.lab.auditing.independent_sensitivities import check_sensitivities
from sfumato.lab.auditing.noise_distribution import find_wrong_noise
from sfumato.lab.auditing.plain_reading import PinnedTables
from sfumato.lab.auditing.recorded_release import RecordingEngine
from sfumato.lab.auditing.throwaway_desk import make_throwaway_ledger, require_throwaway

ORACLES = 16
MOST_QUERIES = 12
EPSILON = 1


@dataclass(frozen=True, slots=True)
class OracleRun:
    """One oracle that answered all its queries: what was drawn for each, and what is wrong."""

    noise: LaplaceNoise | None
    drawn: tuple[int, ...]
    faults: tuple[str, ...]


def check_oracle(desk: Desk, table: Table, pinned: PinnedTables) -> Iterator[str]:
    """The faults of oracles on a table whose rows are people. A table that no oracle takes has none."""
    require_throwaway(desk.ledger)
    queries = list_queries(table)
    try:
        _begin(desk, table.name, queries)
    except SfumatoError:
        return
    runs = [_run(desk, table, queries, pinned) for _ in range(ORACLES if queries else 0)]
    yield from dict.fromkeys(fault for run in runs for fault in run.faults)
    noise = next((run.noise for run in runs if run.noise is not None), None)
    if noise is not None:
        for fault in find_wrong_noise(noise, [step for run in runs for step in run.drawn]):
            yield f"An oracle's answers: {fault}."


def list_queries(table: Table) -> list[str]:
    """Conditions over the declared columns. The last one is asked when all others were."""
    found = []
    for name, declared in table.columns.items():
        quoted = '"' + name.replace('"', '""') + '"'
        match declared:
            case Integer(lower=low, upper=high) | Real(lower=low, upper=high):
                steps = [low + (high - low) * place / MOST_QUERIES for place in range(1, MOST_QUERIES)]
                found += [f"{quoted} > {float(step)!r}" for step in steps]
            case Boolean():
                found += [quoted, f"NOT {quoted}"]
            case Category(values=values):
                texts = [value for value in values[:MOST_QUERIES] if isinstance(value, str)]
                found += [f"{quoted} = '{value.replace(chr(39), 2 * chr(39))}'" for value in texts]
            case _:
                continue
    return found[: MOST_QUERIES + 1]


def _begin(desk: Desk, table: str, queries: list[str]) -> StatisticalOracle:
    most = max(len(queries) - 1, 1)
    return begin_oracle(lambda: nullcontext(desk), most, EPSILON, "0.05", table, None, None, DEFAULT_ANALYST)


def _run(desk: Desk, table: Table, queries: list[str], pinned: PinnedTables) -> OracleRun:
    engine, faults = RecordingEngine(desk.engine), list[str]()
    with (
        make_throwaway_ledger(desk.dataset.population, desk.ledger.totals().limit) as ledger,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", ClampWarning)
        here = replace(desk, ledger=ledger, engine=engine)
        oracle = _begin(here, table.name, queries)
        *asked, last = queries
        answers = oracle.means(asked)
        if not covers_losses(ledger.totals().spent, [PureDP(EPSILON)]):
            faults.append("An oracle is charged less than its epsilon.")
        certificates = [certify_plan(plan).certificate for plan, _ in engine.measured]
        if not covers(PureDP(EPSILON), *certificates):
            faults.append("The releases of an oracle lose more than its epsilon.")
        for certificate in certificates:
            faults += check_sensitivities(certificate, {table.name: table}, pinned)
        measured = len(engine.measured)
        if oracle.means(asked) != answers or len(engine.measured) != measured:
            faults.append("An oracle answers the same query again with new noise.")
        with suppress(SfumatoError):
            oracle.mean(last)
            faults.append("An oracle answers more queries than were paid for.")
        noise, drawn, wrong = _compare(oracle, here, engine, dict(zip(asked, answers, strict=True)))
        return OracleRun(noise, drawn, (*faults, *wrong))


def _compare(
    oracle: StatisticalOracle, desk: Desk, engine: RecordingEngine, answers: Mapping[str, float]
) -> tuple[LaplaceNoise | None, tuple[int, ...], list[str]]:
    """What was drawn for the queries; the answers must be computed from the released integers alone."""
    prepaid = replace(desk, ledger=oracle._require_begun().ledger)
    found = [prepaid.find_stored(certify_plan(plan), DEFAULT_ANALYST) for plan, _ in engine.measured]
    plan, exact = engine.measured[-1]
    stored = found[-1]
    if stored is None or None in found:
        return None, (), ["An oracle measured something that its own ledger did not charge."]
    released = stored.released[0].integers
    names = [measurement.name for measurement in plan.measurements]
    rows = max(oracle._find_rows(), 1) << PSI_BITS
    means = [float(min(max(Fraction(released[name][0], rows), Fraction(0)), Fraction(1))) for name in names]
    faults = [] if means == list(answers.values()) else ["An oracle's answer is not that of its released integers."]
    noises = {measured.noise for measured in stored.released[0].certificate.measurements}
    noise = next((drawn for drawn in noises if isinstance(drawn, LaplaceNoise)), None)
    if len(noises) > 1:
        faults.append("Queries of one oracle have noise of different scales.")
    return noise, tuple(released[name][0] - exact.integers[name][0] for name in names), faults
