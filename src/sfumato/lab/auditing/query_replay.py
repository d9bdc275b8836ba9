"""Replay a question on neighbouring datasets with the same recorded noise. One run finds a sensitivity violation."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sfumato.answering.certified_plans import certify_plan
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.present_answer import PlannedQuery, present_answer
from sfumato.answering.prices import choose_delta, choose_loss
from sfumato.catalog.dataset import Dataset
from sfumato.errors import CatalogError, SfumatoError
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.lab.auditing.audit_stage import DatasetMaker, Setting, Stage, plan_question, read_dataset, set_stage
from sfumato.lab.auditing.independent_prices import AskedPrice
from sfumato.lab.auditing.noise_distribution import check_samplers
from sfumato.lab.auditing.pair_maker import DatasetPair
from sfumato.lab.auditing.question_pairs import make_pairs
from sfumato.lab.auditing.recorded_release import RecordedEntropy, RecordingEngine, record_with, release_recorded
from sfumato.lab.auditing.replay_comparison import Recording, compare_recordings
from sfumato.lab.auditing.throwaway_desk import Data, Wrap
from sfumato.number_arguments import Number, read_privacy_amount, read_probability
from sfumato.planning.shares import SHARE_OF_DELTA
from sfumato.query.bind import bind
from sfumato.query.parse import parse
from sfumato.query.query import Query

MADE_UP = "All rows are made up from the declared types and bounds: no data of the owner is read, nothing is spent."
NOT_SEARCHED = (
    "Not searched: other readers than frames and CSV files, watches, several analysts and processes, running time and "
    "memory."
)
NOT_REPLAYED = "Not replayed: workloads, stored answers and upgrades. An audit with samples covers them."
RANDOM_PAIRS = 4


@dataclass(frozen=True, slots=True)
class PairReplay:
    """One pair of datasets: its faults, and the largest share of a certified sensitivity that one person used.

    `used` is the sum of these shares over all measurements, weighted by their losses.
    """

    pair: str
    faults: tuple[str, ...]
    share: float
    note: str = ""
    used: float = 0.0


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The replays of one question. It is "violated" if any pair of datasets shows a fault."""

    sql: str
    engine: str
    pairs: tuple[PairReplay, ...]
    noise_faults: tuple[str, ...] = ()  # of draws of the certified noise

    @property
    def verdict(self) -> Literal["consistent", "violated", "inconclusive"]:
        """A fault in one run is a proof. Without a run that reached the release, nothing can be said."""
        if self.faults:
            return "violated"
        return "consistent" if any(not replayed.note for replayed in self.pairs) else "inconclusive"

    @property
    def faults(self) -> tuple[str, ...]:
        """All faults, each with the pair that shows it, and those of the noise."""
        return (
            *(f"{replayed.pair}: {fault}" for replayed in self.pairs for fault in replayed.faults),
            *self.noise_faults,
        )

    @property
    def share(self) -> float:
        """The largest share of a certified sensitivity that one person used."""
        return max((replayed.share for replayed in self.pairs), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "sql": self.sql,
            "engine": self.engine,
            "verdict": self.verdict,
            "largest_share_of_sensitivity": self.share,
            "pairs": [
                {"pair": replayed.pair, "share": replayed.share, "faults": list(replayed.faults), "note": replayed.note}
                for replayed in self.pairs
            ],
            "noise_faults": list(self.noise_faults),
            "not_searched": [NOT_SEARCHED, NOT_REPLAYED],
            "data": MADE_UP,
        }

    def to_json(self) -> str:
        """The result as JSON text."""
        return json.dumps(self.to_dict())

    def __str__(self) -> str:
        lines = [
            f"Verdict: {self.verdict} ({len(self.pairs)} pairs of neighbouring datasets, engine {self.engine}).",
            f"One person moved an integer by at most {100 * self.share:.0f} % of its certified sensitivity.",
            *self.faults,
            *(f"{replayed.pair}: {replayed.note}" for replayed in self.pairs if replayed.note),
            MADE_UP,
            NOT_SEARCHED,
            NOT_REPLAYED,
        ]
        return "\n".join(lines)

    __repr__ = __str__


def replay(
    dataset_maker: DatasetMaker,
    sql: str,
    epsilon: Number | None = None,
    *,
    rho: Number | None = None,
    delta: Number | None = None,
    engine: str = "duckdb",
    random_pairs: int = RANDOM_PAIRS,
    seed: int | None = None,
    wrap: Wrap | None = None,
) -> ReplayResult:
    """Run a question on hard and random neighbouring datasets, with the same noise on both, and compare.

    Compared with the certificate: every integer that reaches the release, the number and the scales of the noise
    draws, the charge, the columns, types and number of rows of the answer, and every error. The certified noise is
    drawn 20,000 times, and its distribution is compared. `wrap` puts a fault around the engine: it is for testing the
    replay itself. The default epsilon is 1.
    """
    setting = Setting(epsilon, rho, delta, engine, wrap)
    stage = set_stage(read_dataset(dataset_maker), sql)
    with tempfile.TemporaryDirectory() as folder:
        pairs = list(make_pairs(stage, Path(folder), random_pairs, seed, setting))
        replayed = tuple(replay_pairs(stage, sql, pairs, setting))
        return ReplayResult(sql, engine, replayed, check_noise(stage, pairs[0], setting))


def check_noise(stage: Stage, pair: DatasetPair, setting: Setting) -> tuple[str, ...]:
    """Draw the noise of the question's certificate many times, and compare its distribution with the certified one.

    The replays show that released integers are exact ones plus draws of these samplers.
    """
    try:
        with setting.open(stage.dataset, pair.first) as desk:
            certificate = plan_question(desk, stage.sql, setting).certificate
    except SfumatoError:  # the replays show the same refusal
        return ()
    noises = [measured.noise for measured in certificate.measurements]
    return tuple(check_samplers([noise for noise in noises if isinstance(noise, LaplaceNoise | GaussianNoise)]))


def replay_pairs(stage: Stage, sql: str, pairs: Iterable[DatasetPair], setting: Setting) -> Iterator[PairReplay]:
    """Run a question on both datasets of each pair, with the same noise, and compare."""
    tape, before, run = RecordedEntropy(), None, Recording()
    for pair in pairs:
        if pair.first is not before:  # pairs with the same first dataset share its run and its noise
            tape = RecordedEntropy()
            before, run = pair.first, record_run(stage.dataset, sql, pair.first, setting, tape)
        tape.rewind()
        yield _compare_runs(stage.query, pair, run, record_run(stage.dataset, sql, pair.second, setting, tape))


def _compare_runs(query: Query, pair: DatasetPair, first: Recording, second: Recording) -> PairReplay:
    if first.load_refused != second.load_refused:
        return PairReplay(pair.name, ("The owner's load is refused on one dataset only.",), 0.0)
    if first.load_refused:
        return PairReplay(pair.name, (), 0.0, "the owner's load is refused, before any question")
    fixed = query.having is None and query.limit is None and all(key.values is not None for key in query.keys)
    found = compare_recordings(first, second, rows_are_fixed=fixed)
    if pair.same and found.share > 0:
        return PairReplay(
            pair.name, (*found.faults, "An integer moved though no record of a person changed."), found.share
        )
    note = f"refused on both datasets: {first.error}" if first.error and not found.faults else ""
    return PairReplay(pair.name, found.faults, found.share, note, found.used)


def record_run(
    dataset: Dataset,
    sql: str,
    data: Data,
    setting: Setting,
    tape: RecordedEntropy,
) -> Recording:
    """One run of a question through a throwaway desk, with the noise of the tape."""
    recorders: list[RecordingEngine] = []
    record = record_with(setting.wrap, recorders)
    error = None
    with suppress(CatalogError), setting.open(dataset, data, record) as desk:
        try:
            return _answer_recorded(desk, sql, setting, tape, recorders[0])
        except SfumatoError as refusal:
            error = f"{type(refusal).__name__}: {refusal.message}"
        except Exception as failure:
            error = type(failure).__name__
    return Recording(error=error) if error is not None else Recording(load_refused=True)


def _answer_recorded(
    desk: Desk, sql: str, setting: Setting, tape: RecordedEntropy, engine: RecordingEngine
) -> Recording:
    query = bind(parse(sql), desk.dataset)
    asked = setting.complete(query)
    loss, delta = choose_loss(query, asked.epsilon, asked.rho), choose_delta(query, asked.delta)
    planned = desk.plan(query, loss, delta)
    certified = certify_plan(planned.plan)
    answered = release_recorded(desk, certified, DEFAULT_ANALYST, tape)
    released = answered.released[0]
    level = read_probability("0.95", "confidence")
    answer = present_answer(desk, PlannedQuery(query, planned, level), released, answered.receipt)
    spent = desk.ledger.totals().spent
    most_delta = desk.dataset.budget.delta / SHARE_OF_DELTA if delta is None else read_privacy_amount(delta, "delta")
    price = AskedPrice(loss, most_delta, planned.plan.max_groups_per_unit, desk.dataset.budget)
    measured = tuple(exact for _, exact in engine.measured)
    return Recording(released.certificate, measured, released, tape.taken, spent, answer, asked=price, tape=tape)
