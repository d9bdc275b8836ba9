"""Replay a question on neighbouring datasets with the same recorded noise. One run finds a sensitivity violation."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sfumato.answering.certified_plans import certify_plan
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.present_answer import PlannedQuery, present_answer
from sfumato.answering.prices import choose_delta, choose_loss
from sfumato.catalog.dataset import Dataset
from sfumato.errors import CatalogError, SfumatoError
from sfumato.lab.auditing.audit_stage import DatasetMaker, Setting, Stage, read_dataset, set_stage
from sfumato.lab.auditing.independent_prices import AskedPrice
from sfumato.lab.auditing.pair_maker import DatasetPair
from sfumato.lab.auditing.pinned_tables import check_pinned, compare_pinned, read_pinned
from sfumato.lab.auditing.question_checks import check_question
from sfumato.lab.auditing.question_pairs import make_pairs
from sfumato.lab.auditing.recorded_release import RecordedEntropy, RecordingEngine, record_with, release_recorded
from sfumato.lab.auditing.replay_comparison import Recording, compare_recordings
from sfumato.lab.auditing.second_measurement import compare_measurements, make_second_engine
from sfumato.lab.auditing.shown_answers import find_changed_details, show_answer
from sfumato.lab.auditing.throwaway_desk import Data, PinnedRows, Wrap
from sfumato.lab.auditing.verdict_card import make_verdict_card
from sfumato.number_arguments import Number, read_privacy_amount, read_probability
from sfumato.planning.shares import SHARE_OF_DELTA
from sfumato.query.query import Query

MADE_UP = "All rows are made up from the declared types and bounds: no data of the owner is read, nothing is spent."
NOT_SEARCHED = "Not searched: several processes, the ledger's file, running time and memory."
NOT_REPLAYED = "Not replayed: workloads. An audit with samples covers them."
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
    question_faults: tuple[str, ...] = ()  # of checks that need no pair: noise, sensitivities, releases, the ledger

    @property
    def verdict(self) -> Literal["consistent", "violated", "inconclusive"]:
        """A fault in one run is a proof. Without a run that reached the release, nothing can be said."""
        if self.faults:
            return "violated"
        return "consistent" if any(not replayed.note for replayed in self.pairs) else "inconclusive"

    @property
    def faults(self) -> tuple[str, ...]:
        """All faults, each with the pair that shows it, and those of the question by itself."""
        return (
            *(f"{replayed.pair}: {fault}" for replayed in self.pairs for fault in replayed.faults),
            *self.question_faults,
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
            "question_faults": list(self.question_faults),
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

    def _repr_html_(self) -> str:
        return make_verdict_card(str(self), self.verdict)


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
    max_rows: int | None = None,
    max_groups: int | None = None,
    interval_share: Number | None = None,
) -> ReplayResult:
    """Run a question on hard and random neighbouring datasets, with the same noise on both, and compare.

    Compared with the certificate: every integer that reaches the release, the number and the scales of the noise
    draws, the charge, everything that the answer shows, and every error. Pinned rows are compared with a plain reading
    of the source, and measured integers with those of another engine. Noise, sensitivities, very wide releases and the
    ledger are checked once (see docs/audit.md). `wrap` puts a fault around the engine: it is for testing the replay
    itself. The default epsilon is 1. `max_rows`, `max_groups` and
    `interval_share` are those of `ask`.
    """
    setting = Setting(
        epsilon, rho, delta, engine, wrap, max_rows=max_rows, max_groups=max_groups, interval_share=interval_share
    )
    stage = set_stage(read_dataset(dataset_maker), sql)
    setting.bind(sql, stage.dataset)  # refuses limits that the question cannot have
    with tempfile.TemporaryDirectory() as folder:
        pairs = list(make_pairs(stage, Path(folder), random_pairs, seed, setting))
        replayed = tuple(replay_pairs(stage, sql, pairs, setting))
        return ReplayResult(sql, engine, replayed, check_question(stage, pairs[0], setting))


def replay_pairs(stage: Stage, sql: str, pairs: Iterable[DatasetPair], setting: Setting) -> Iterator[PairReplay]:
    """Run a question on both datasets of each pair, with the same noise, and compare.

    A question of several releases: each of them by itself, at its share of the price.
    """
    parts = setting.split(stage)
    if len(parts) == 1:
        yield from _replay_release(stage, sql, pairs, parts[0])
        return
    pairs = list(pairs)
    for place, part in enumerate(parts, 1):
        for found in _replay_release(stage, sql, pairs, part):
            yield replace(found, pair=f"{found.pair}, release {place} of {len(parts)}")


def _replay_release(stage: Stage, sql: str, pairs: Iterable[DatasetPair], setting: Setting) -> Iterator[PairReplay]:
    query = (stage.query, *stage.query.beside)[setting.part or 0]
    tape, runs = RecordedEntropy(), dict[int, tuple[Data, Recording]]()
    for pair in pairs:
        if id(pair.first) not in runs:  # else: pairs that share a dataset share its run and its noise
            tape = RecordedEntropy()
            runs = {id(pair.first): (pair.first, record_run(stage.dataset, sql, pair.first, setting, tape))}
        _, first = runs[id(pair.first)]
        tape.rewind()
        second = record_run(stage.dataset, sql, pair.second, setting, tape, first)
        yield _compare_runs(stage, query, pair, first, second)
        reported = (pair.first, replace(first, faults=())), (pair.second, replace(second, faults=()))
        runs = {id(data): (data, run) for data, run in reported}  # holding the data keeps its id from being used again


def _compare_runs(stage: Stage, query: Query, pair: DatasetPair, first: Recording, second: Recording) -> PairReplay:
    if first.load_refused != second.load_refused and not pair.may_be_refused:
        return PairReplay(pair.name, ("The owner's load is refused on one dataset only.",), 0.0)
    if first.load_refused or second.load_refused:
        return PairReplay(pair.name, (), 0.0, "the owner's load is refused, before any question")
    fixed = query.having is None and query.limit is None and all(key.values is not None for key in query.keys)
    found = compare_recordings(first, second, rows_are_fixed=fixed)
    faults = [*found.faults, *first.faults, *second.faults]
    if first.pinned is not None and second.pinned is not None:
        declared = {name: table for name, (table, _) in pair.second.items()}
        faults += compare_pinned(first.pinned, second.pinned, declared, stage.unit, same=pair.same)
    if pair.same and found.share > 0:
        faults.append("An integer moved though no record of a person changed.")
    note = f"refused on both datasets: {first.error}" if first.error and not faults else ""
    return PairReplay(pair.name, tuple(faults), found.share, note, found.used)


def record_run(  # noqa: PLR0917 - its callers name what they pass
    dataset: Dataset,
    sql: str,
    data: Data,
    setting: Setting,
    tape: RecordedEntropy,
    earlier: Recording | None = None,
) -> Recording:
    """One run of a question through a throwaway desk, with the noise of the tape.

    What was pinned is compared with a plain reading of the source, and what was measured with another engine. The
    answer of an `earlier` run is presented again at this desk.
    """
    recorders: list[RecordingEngine] = []
    record = record_with(setting.wrap, recorders)
    run = Recording(load_refused=True)
    with ExitStack() as open_rows, suppress(CatalogError):
        held = setting.pinned if setting.pinned is not None else open_rows.enter_context(PinnedRows())
        loaded = held.load(data)
        pinned = held.remember(data, "rows", read_pinned)
        wrong = held.remember(data, "faults of reading", lambda _: tuple(check_pinned(data, pinned)))
        run = Recording(pinned=pinned, faults=wrong)
        with replace(setting, pinned=held).open(dataset, data, record) as desk:
            try:
                run = _answer_recorded(desk, sql, setting, tape, recorders[0], run, earlier)
            except SfumatoError as refusal:
                return replace(run, error=f"{type(refusal).__name__}: {refusal.message}")
            except Exception as failure:
                return replace(run, error=type(failure).__name__)
        second = make_second_engine(setting.engine, pinned, loaded)
        again = [
            fault
            for plan, measured in recorders[0].measured
            for fault in compare_measurements(plan, measured, second, pinned)
        ]
        return replace(run, faults=(*run.faults, *again))
    return run


def _answer_recorded(  # noqa: PLR0917 - one caller
    desk: Desk,
    sql: str,
    setting: Setting,
    tape: RecordedEntropy,
    engine: RecordingEngine,
    run: Recording,
    earlier: Recording | None,
) -> Recording:
    query = setting.bind(sql, desk.dataset)
    asked = setting.complete(query)
    loss, delta = choose_loss(query, asked.epsilon, asked.rho), choose_delta(query, asked.delta)
    planned = desk.plan(query, loss, delta)
    certified = certify_plan(planned.plan)
    answered = release_recorded(desk, certified, DEFAULT_ANALYST, tape)
    released = answered.released[0]
    presented = PlannedQuery(query, planned, read_probability("0.95", "confidence"))
    answer = present_answer(desk, presented, released, answered.receipt)
    faults = list(run.faults)
    if earlier is not None and earlier.released is not None and earlier.receipt is not None:
        faults += find_changed_details(desk, presented, earlier.released, earlier.receipt, earlier.shown)
    most_delta = desk.dataset.budget.delta / SHARE_OF_DELTA if delta is None else read_privacy_amount(delta, "delta")
    return replace(
        run,
        certificate=released.certificate,
        measured=tuple(exact for _, exact in engine.measured),
        released=released,
        bytes_taken=tape.taken,
        spent=desk.ledger.totals().spent,
        answer=answer,
        asked=AskedPrice(loss, most_delta, planned.plan.max_groups_per_unit, desk.dataset.budget),
        tape=tape,
        receipt=answered.receipt,
        shown=show_answer(answer),
        faults=tuple(faults),
    )
