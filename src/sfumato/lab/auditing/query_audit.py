"""Audit a whole question: replays on hard pairs, repeated releases of the hardest, and complete runs."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.answering.ask import ask
from sfumato.answering.certified_plans import CertifiedPlans, certify_plan
from sfumato.answering.charged_draws import charge_and_release
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.prices import choose_delta, choose_loss
from sfumato.engines.engine import Engine
from sfumato.errors import SfumatoError
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.release import Released
from sfumato.lab.auditing.audit_result import CONFIDENCE, AuditResult, Verdict
from sfumato.lab.auditing.canonical_outputs import observe
from sfumato.lab.auditing.mechanism_audit import judge_runs
from sfumato.lab.auditing.neighbouring_pairs import ALONE, NOBODY, DatasetPair
from sfumato.lab.auditing.query_replay import (
    MADE_UP,
    RANDOM_PAIRS,
    DatasetMaker,
    PairReplay,
    ReplayResult,
    Setting,
    Stage,
    make_pairs,
    read_dataset,
    replay_pairs,
    set_stage,
)
from sfumato.lab.auditing.real_releases import RealRelease, check_releases, find_small_noise
from sfumato.lab.auditing.recorded_release import ExactIntegers, RecordingEngine, release_repeatedly
from sfumato.lab.auditing.sampled_runs import Runs, Vocabulary, collect_arrays, collect_runs
from sfumato.lab.auditing.tested_claims import TestedClaim
from sfumato.lab.auditing.throwaway_desk import Wrap, open_throwaway
from sfumato.number_arguments import Number, read_whole_number
from sfumato.query.bind import bind
from sfumato.query.parse import parse

DEFAULT_SAMPLES = 4_000
LEAST_SAMPLES = 100
SAMPLED_PAIRS = 2
WITH_UNDECLARED_KEYS = 400  # samples: every release of undeclared keys is a charge of its own
COMPLETE_RUNS = 3  # of the whole path, on each dataset of the hardest pair
MOST_COLUMNS = 16  # integers of a release that are searched: first those that differ between the datasets


@dataclass(frozen=True, slots=True)
class SampledPair:
    """The audit of repeated releases on one pair of datasets."""

    pair: str
    result: AuditResult


@dataclass(frozen=True, slots=True)
class QueryAuditResult:
    """What an audit of one question found.

    `replayed` compares exact integers, `sampled` measures epsilon (or rho) from repeated releases, and
    `complete_faults` are differences between complete answers. The lower bounds of all sampled pairs hold together.
    """

    sql: str
    claim: PrivacyLoss
    replayed: ReplayResult
    sampled: tuple[SampledPair, ...]
    complete_runs: int
    complete_faults: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Violated if anything shows a fault; inconclusive if some samples cannot tell."""
        verdicts = [self.replayed.verdict, *(sampled.result.verdict for sampled in self.sampled)]
        if "violated" in verdicts or self.complete_faults:
            return "violated"
        return "inconclusive" if "inconclusive" in verdicts or not self.sampled else "consistent"

    @property
    def lower_bound(self) -> float:
        """With 95 % confidence, the loss is at least this."""
        return max((sampled.result.lower_bound for sampled in self.sampled), default=0.0)

    @property
    def confidence(self) -> float:
        return CONFIDENCE

    @property
    def samples(self) -> int:
        """The number of releases on each dataset of a sampled pair."""
        return max((sampled.result.samples for sampled in self.sampled), default=0)

    @property
    def event(self) -> str:
        """The event behind the lower bound, or the first fault."""
        faults = (*self.replayed.faults, *self.complete_faults)
        if faults:
            return faults[0]
        best = max(self.sampled, key=lambda sampled: sampled.result.lower_bound, default=None)
        return "" if best is None else f"{best.pair}: {best.result.event}"

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "sql": self.sql,
            "verdict": self.verdict,
            "claim": repr(self.claim),
            "lower_bound": self.lower_bound,
            "confidence": self.confidence,
            "samples": self.samples,
            "event": self.event,
            "replay": self.replayed.to_dict(),
            "sampled": [{"pair": sampled.pair, **sampled.result.to_dict()} for sampled in self.sampled],
            "complete_runs": self.complete_runs,
            "complete_faults": list(self.complete_faults),
            "data": MADE_UP,
        }

    def to_json(self) -> str:
        """The result as JSON text."""
        return json.dumps(self.to_dict())

    def __str__(self) -> str:
        claim = TestedClaim.from_loss(self.claim)
        letter = "ε" if claim.parameter == "epsilon" else "rho"
        share = f"{100 * self.replayed.share:.0f} %"
        lines = [
            f"Verdict: {self.verdict} (claim: {claim.describe()}).",
            f"{letter} ≥ {self.lower_bound:.4g} with {100 * self.confidence:g} % confidence, from "
            f"{self.samples:,} releases on each dataset.",
            f"Replay of {len(self.replayed.pairs)} pairs of neighbouring datasets: {self.replayed.verdict}; one person "
            f"moved an integer by at most {share} of its certified sensitivity.",
            f"Complete answers: {2 * self.complete_runs} compared.",
            *(f"Sampled: {sampled.pair}: {sampled.result.event}." for sampled in self.sampled),
            *(
                f"{sampled.pair}: about {sampled.result.samples_needed:,} samples would tell."
                for sampled in self.sampled
                if sampled.result.samples_needed is not None
            ),
            *self.replayed.faults,
            *self.complete_faults,
            MADE_UP,
        ]
        return "\n".join(lines)

    __repr__ = __str__


def audit_query(
    dataset_maker: DatasetMaker,
    sql: str,
    epsilon: Number | None = None,
    *,
    rho: Number | None = None,
    delta: Number | None = None,
    samples: int = DEFAULT_SAMPLES,
    sampled_pairs: int = SAMPLED_PAIRS,
    engine: str = "duckdb",
    seed: int | None = None,
    wrap: Wrap | None = None,
) -> QueryAuditResult:
    """Audit a question end to end, on made-up neighbouring datasets and ledgers in memory. The default epsilon is 1.

    `dataset_maker` is a curator or a dataset (or makes one): only its declarations are used. Three parts:
    1. every hard pair is replayed (see `replay`);
    2. the `sampled_pairs` pairs that move the integers furthest are measured once each, and released `samples` times
       on one charge that pays for all of these releases. The searched output is the released integers, from which
       every answer is computed without the data;
    3. the hardest pair is asked completely a few times, and the answers are compared in form. The noise of these
       answers, and of repeated releases through their path, is compared with the certificate.
    With undeclared keys every release is charged by itself, so at most 400 samples are taken.
    """
    setting = Setting(epsilon, rho, delta, engine, wrap)
    runs = read_whole_number(samples, "samples", LEAST_SAMPLES)
    stage = set_stage(read_dataset(dataset_maker), sql)
    with tempfile.TemporaryDirectory() as folder:
        pairs = list(make_pairs(stage, Path(folder), RANDOM_PAIRS, seed))
        replayed = list(replay_pairs(stage, sql, pairs, setting))
        hardest = _choose_hardest(stage, pairs, replayed, read_whole_number(sampled_pairs, "sampled_pairs", 1))
        sampled, claim = [], None
        for pair in hardest:
            claim, result = _sample_pair(stage, sql, pair, setting, runs, len(hardest))
            sampled.append(SampledPair(pair.name, result))
        faults = tuple(check_real_path(stage, sql, hardest[0], setting)) if hardest else ()
    if claim is None:
        claim = _find_claim(stage, sql, pairs[0], setting)
    done = COMPLETE_RUNS if hardest else 0
    return QueryAuditResult(sql, claim, ReplayResult(sql, engine, tuple(replayed)), tuple(sampled), done, faults)


def _choose_hardest(
    stage: Stage, pairs: Sequence[DatasetPair], replayed: Sequence[PairReplay], most: int
) -> list[DatasetPair]:
    """The pairs whose replay used the most of a certified sensitivity. For undeclared keys: a key of one person.

    Where two pairs or more are sampled, the last is nobody against one person: MODE, MIN, MAX and quantiles choose
    among bins, and a crowd can hide the difference that one person makes.
    """
    usable = [(found.share, pair) for pair, found in zip(pairs, replayed, strict=True) if not found.note]
    if any(key.values is None for key in stage.query.keys):
        lonely = [(share, pair) for share, pair in usable if ALONE in pair.name]
        return [pair for _, pair in (lonely or usable)[:1]]
    usable.sort(key=lambda found: -found[0])
    hardest = [pair for _, pair in usable]
    alone = [pair for pair in hardest if NOBODY in pair.name]
    if most > 1 and alone and alone[0] not in hardest[:most]:
        return [*hardest[: most - 1], alone[0]]
    return hardest[:most]


def _plan(desk: Desk, sql: str, setting: Setting) -> CertifiedPlans:
    query = bind(parse(sql), desk.dataset)
    asked = setting.complete(query)
    loss = choose_loss(query, asked.epsilon, asked.rho)
    return certify_plan(desk.plan(query, loss, choose_delta(query, asked.delta)).plan)


def _find_claim(stage: Stage, sql: str, pair: DatasetPair, setting: Setting) -> PrivacyLoss:
    with open_throwaway(stage.dataset, pair.first, setting.engine, setting.wrap) as desk:
        return _plan(desk, sql, setting).certificate.loss


def _sample_pair(  # noqa: PLR0917 - its caller names what it passes
    stage: Stage, sql: str, pair: DatasetPair, setting: Setting, samples: int, comparisons: int
) -> tuple[PrivacyLoss, AuditResult]:
    """Measure once on each dataset, release often, and audit the released integers against the certified loss."""
    drawn: list[list[Released]] = []
    for data in (pair.first, pair.second):
        with open_throwaway(stage.dataset, data, setting.engine, setting.wrap) as desk:
            certified = _plan(desk, sql, setting)
            drawn.append(list(_release_often(desk, certified, samples)))
    claim = certified.certificate.loss
    collected, words = _collect(drawn[0], drawn[1])
    return claim, judge_runs(collected, words, TestedClaim.from_loss(claim), claim, comparisons)


def _release_often(desk: Desk, certified: CertifiedPlans, samples: int) -> Iterator[Released]:
    if certified.certificate.cells is not None:
        yield from release_repeatedly(desk, certified, DEFAULT_ANALYST, samples)
        return
    (plan,) = certified.plans
    for number in range(min(samples, WITH_UNDECLARED_KEYS)):
        again = certify_plan(replace(plan, repeat=number + 1))
        yield charge_and_release(desk.engine, desk.ledger, again, DEFAULT_ANALYST, "audit").released[0]


def _collect(first: list[Released], second: list[Released]) -> tuple[tuple[Runs, Runs], Vocabulary]:
    """The released integers as columns. Undeclared keys are part of the output."""
    if first[0].keys is not None:
        seen = [[observe(_index_keys(released)) for released in side] for side in (first, second)]
        return collect_runs((seen[0], seen[1]))
    sides = [
        np.array([[step for cells in released.integers.values() for step in cells] for released in side], np.int64)
        for side in (first, second)
    ]
    moved = np.abs(np.median(sides[0], axis=0) - np.median(sides[1], axis=0)) / (np.std(sides[0], axis=0) + 1e-9)
    columns = np.sort(np.argsort(-moved, kind="stable")[:MOST_COLUMNS])
    return collect_arrays(sides[0][:, columns], sides[1][:, columns])


def _index_keys(released: Released) -> dict[str, list[int]]:
    widths = {name: len(cells) // max(len(released.keys or ()), 1) for name, cells in released.integers.items()}
    return {
        repr(key): [
            step
            for name, cells in released.integers.items()
            for step in cells[place * widths[name] : (place + 1) * widths[name]]
        ]
        for place, key in enumerate(released.keys or ())
    }


def check_real_path(stage: Stage, sql: str, pair: DatasetPair, setting: Setting) -> Iterator[str]:
    """The faults of complete answers, and of the noise that the path of all answers adds."""
    yield from _compare_complete_runs(stage, sql, pair, setting)
    with open_throwaway(stage.dataset, pair.second, setting.engine, setting.wrap) as desk:
        try:
            (plan,) = _plan(desk, sql, setting).plans
            exact = ExactIntegers.read(desk.engine.aggregate(plan))
        except SfumatoError:
            return  # the same refusal as in the complete answers
        yield from (f"{pair.name}: {fault}" for fault in check_releases(desk, plan, exact))


def _compare_complete_runs(stage: Stage, sql: str, pair: DatasetPair, setting: Setting) -> Iterator[str]:
    """Ask as a user does, from SQL to the answer, and compare errors, columns, types, noise and stored answers."""
    forms: list[dict[str, set[str]]] = []
    releases: list[RealRelease] = []
    for data in (pair.first, pair.second):
        kinds: dict[str, set[str]] = {}
        for _ in range(COMPLETE_RUNS):
            recorders: list[RecordingEngine] = []
            with open_throwaway(stage.dataset, data, setting.engine, _record(setting, recorders)) as desk:
                for column, kind in _ask_completely(desk, sql, setting.complete(stage.query)):
                    kinds.setdefault(column, set()).add(kind)
                if recorders[0].measured and "error" not in kinds:
                    releases += _find_released(desk, recorders[0])
        forms.append(kinds)
    yield from (f"{pair.name}: complete answers: {fault}" for fault in find_small_noise(releases))
    for column in sorted({*forms[0], *forms[1]}):
        one, two = (form.get(column, set()) - {"NoneType"} for form in forms)
        if any("stored answer" in kind for kind in one | two):
            yield f"{pair.name}: {sorted(one | two)[0]}"
        if one != two and (column.startswith("error") or (one and two)):
            yield f"{pair.name}: {column} is {sorted(one)} on one dataset and {sorted(two)} on the other."


def _record(setting: Setting, recorders: list[RecordingEngine]) -> Wrap:
    """The wrap of the setting, with a recorder around it that is put in `recorders`."""

    def record(inner: Engine) -> Engine:
        recorders.append(RecordingEngine(inner if setting.wrap is None else setting.wrap(inner)))
        return recorders[-1]

    return record


def _find_released(desk: Desk, engine: RecordingEngine) -> Iterator[RealRelease]:
    """What was measured and released for a complete answer with declared keys."""
    plan, exact = engine.measured[0]
    stored = desk.find_stored(certify_plan(plan), DEFAULT_ANALYST)
    if stored is not None and exact.keys is None:
        yield RealRelease(exact, stored.released[0])


def _ask_completely(desk: Desk, sql: str, setting: Setting) -> Iterator[tuple[str, str]]:
    """What an answer shows besides its numbers: columns with the types of their values, or an error."""
    try:
        answer = ask(desk, sql, setting.epsilon, rho=setting.rho, delta=setting.delta)
    except SfumatoError as error:
        yield "error", f"{type(error).__name__}: {error.message}"
        return
    spent = desk.ledger.totals().spent
    again = ask(desk, sql, setting.epsilon, rho=setting.rho, delta=setting.delta)
    if again.rows != answer.rows or desk.ledger.totals().spent != spent:
        yield "error", "The same question again is charged again, or its stored answer differs."
    yield "columns", repr(answer.columns)
    for row in answer.rows:
        yield from ((f"the type of {name}", type(value).__name__) for name, value in row.items())
