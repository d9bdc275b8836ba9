"""Audit a whole question: replays on hard pairs, repeated releases of the hardest, and complete runs."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np

from sfumato.answering.certified_plans import CertifiedPlans
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.kernel.losses import PrivacyLoss, compose
from sfumato.kernel.release import Released
from sfumato.lab.auditing.audit_result import AuditResult
from sfumato.lab.auditing.audit_stage import DatasetMaker, Setting, Stage, plan_question, read_dataset, set_stage
from sfumato.lab.auditing.canonical_outputs import observe
from sfumato.lab.auditing.complete_answers import COMPLETE_RUNS, check_real_path
from sfumato.lab.auditing.independent_prices import covers
from sfumato.lab.auditing.mechanism_audit import judge_runs
from sfumato.lab.auditing.neighbouring_pairs import NOBODY
from sfumato.lab.auditing.pair_maker import ALONE, DatasetPair
from sfumato.lab.auditing.query_audit_result import QueryAuditResult, SampledPair
from sfumato.lab.auditing.query_replay import RANDOM_PAIRS, PairReplay, ReplayResult, replay_pairs
from sfumato.lab.auditing.question_checks import check_question
from sfumato.lab.auditing.question_pairs import make_pairs
from sfumato.lab.auditing.real_releases import RealRelease, find_small_noise, find_wrong_choices, release_given
from sfumato.lab.auditing.recorded_release import ExactIntegers, RecordingEngine, record_with, release_repeatedly
from sfumato.lab.auditing.sampled_runs import Runs, Vocabulary, collect_arrays, collect_runs, count_searched
from sfumato.lab.auditing.tested_claims import TestedClaim
from sfumato.lab.auditing.throwaway_desk import PinnedRows, Wrap
from sfumato.number_arguments import Number, read_whole_number

DEFAULT_SAMPLES = 4_000
LEAST_SAMPLES = 100
SAMPLED_PAIRS = 2
WITH_UNDECLARED_KEYS = 400  # samples: every release of undeclared keys is a charge of its own
MOST_COLUMNS = 16  # integers of a release that are searched: first those that differ between the datasets


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
    max_rows: int | None = None,
    max_groups: int | None = None,
    interval_share: Number | None = None,
) -> QueryAuditResult:
    """Audit a question end to end, on made-up neighbouring datasets and ledgers in memory. The default epsilon is 1.

    `dataset_maker` is a curator or a dataset (or makes one): only its declarations are used. Three parts:
    1. every hard pair is replayed (see `replay`);
    2. the `sampled_pairs` pairs that move the integers furthest are measured once each, and released `samples` times
       on one charge that pays for all of these releases. The searched output is the released integers, from which
       every answer is computed without the data;
    3. the hardest pair is asked completely a few times, and the answers are compared in form.
    The noise of all releases, and of draws of the certified noise, is compared with the certificate.
    With undeclared keys every release is charged by itself, so at most 400 samples are taken. Of a question of several
    releases (ROLLUP), each is audited at its share of the price, on one pair, and then the whole. `max_rows`,
    `max_groups` and `interval_share` are those of `ask`.
    """
    setting = Setting(
        epsilon, rho, delta, engine, wrap, max_rows=max_rows, max_groups=max_groups, interval_share=interval_share
    )
    runs = read_whole_number(samples, "samples", LEAST_SAMPLES)
    most = read_whole_number(sampled_pairs, "sampled_pairs", 1)
    stage = set_stage(read_dataset(dataset_maker), sql)
    setting.bind(sql, stage.dataset)  # refuses limits that the question cannot have
    with tempfile.TemporaryDirectory() as folder:
        pairs = list(make_pairs(stage, Path(folder), RANDOM_PAIRS, seed, setting))
        return audit_pairs(stage, sql, pairs, setting, runs, most)


def audit_pairs(  # noqa: PLR0917 - its callers name what they pass
    stage: Stage, sql: str, pairs: Sequence[DatasetPair], setting: Setting, samples: int, most: int
) -> QueryAuditResult:
    """Audit a question on these pairs: replay all of them, and sample the hardest, at most `most` of them."""
    replayed = list(replay_pairs(stage, sql, pairs, setting))
    parts = setting.split(stage)
    chosen: list[tuple[Setting, DatasetPair]] = []
    for place, part in enumerate(parts):
        found = replayed[place * len(pairs) : (place + 1) * len(pairs)]
        hardest = _choose_hardest(stage, part, pairs, found, most if len(parts) == 1 else 1)
        chosen += [(part, pair) for pair in hardest]
    sampled: list[SampledPair] = []
    claim: PrivacyLoss | None = None
    faults: tuple[str, ...] = ()
    with ExitStack() as open_rows:
        if setting.pinned is None:  # the hardest pairs are used many times
            setting = replace(setting, pinned=open_rows.enter_context(PinnedRows()))
        for part, pair in chosen:
            at = replace(part, pinned=setting.pinned)
            claim, result, wrong = _sample_pair(stage, sql, pair, at, samples, len(chosen))
            sampled.append(SampledPair(pair.name, result))
            faults += tuple(f"{pair.name}: sampled releases: {fault}" for fault in wrong)
        if chosen:
            faults += tuple(check_real_path(stage, sql, chosen[0][1], setting))
        if claim is None or len(parts) > 1:
            claim = _find_claim(stage, sql, pairs[0], setting)
    done = COMPLETE_RUNS if chosen else 0
    replays = ReplayResult(sql, setting.engine, tuple(replayed), check_question(stage, pairs[0], setting))
    return QueryAuditResult(sql, claim, replays, tuple(sampled), done, faults)


def _choose_hardest(
    stage: Stage, setting: Setting, pairs: Sequence[DatasetPair], replayed: Sequence[PairReplay], most: int
) -> list[DatasetPair]:
    """The pairs whose replay used the most of the certified sensitivities. For undeclared keys: a key of one person.

    Where two pairs or more are sampled, the last is nobody against one person: MODE, MIN, MAX and quantiles choose
    among bins, and a crowd can hide the difference that one person makes.
    """
    usable = [(found.used, pair) for pair, found in zip(pairs, replayed, strict=True) if not found.note]
    if any(key.values is None for key in (stage.query, *stage.query.beside)[setting.part or 0].keys):
        lonely = [(share, pair) for share, pair in usable if ALONE in pair.name]
        return [pair for _, pair in (lonely or usable)[:1]]
    usable.sort(key=lambda found: -found[0])
    hardest = [pair for _, pair in usable]
    alone = [pair for pair in hardest if NOBODY in pair.name]
    if most > 1 and alone and alone[0] not in hardest[:most]:
        return [*hardest[: most - 1], alone[0]]
    return hardest[:most]


def _find_claim(stage: Stage, sql: str, pair: DatasetPair, setting: Setting) -> PrivacyLoss:
    """The loss of the question: of all its releases together."""
    with setting.open(stage.dataset, pair.first) as desk:
        losses = [plan_question(desk, sql, part).certificate.loss for part in setting.split(stage)]
        return reduce(compose, losses)


def _sample_pair(  # noqa: PLR0917 - its caller names what it passes
    stage: Stage, sql: str, pair: DatasetPair, setting: Setting, samples: int, comparisons: int
) -> tuple[PrivacyLoss, AuditResult, list[str]]:
    """Measure once on each dataset, release often, and audit the released integers against the certified loss.

    The noise of the same releases is compared with the certificate.
    """
    drawn: list[list[Released]] = []
    real: list[RealRelease] = []
    wrong: list[str] = []
    for data in (pair.first, pair.second):
        recorders: list[RecordingEngine] = []
        with setting.open(stage.dataset, data, record_with(setting.wrap, recorders)) as desk:
            certified = plan_question(desk, sql, setting)
            drawn.append(list(_release_often(desk, certified, samples)))
            if not covers(desk.ledger.totals().spent, *(released.certificate for released in drawn[-1])):
                wrong.append("the charge of all releases together is less than the sum of their losses.")
        ((_, exact),) = recorders[0].measured
        if exact.keys is None:
            here = [RealRelease(exact, released) for released in drawn[-1]]
            wrong += find_wrong_choices(here)
            real += here
    claim = certified.certificate.loss
    collected, words = _collect(drawn[0], drawn[1])
    result = judge_runs(collected, words, TestedClaim.from_loss(claim), claim, comparisons)
    return claim, result, [*wrong, *find_small_noise(real)]


def _release_often(desk: Desk, certified: CertifiedPlans, samples: int) -> Iterator[Released]:
    if certified.certificate.cells is not None:
        yield from release_repeatedly(desk, certified, DEFAULT_ANALYST, samples)
        return
    (plan,) = certified.plans
    desk.engine.check(plan)
    exact = ExactIntegers.read(desk.engine.aggregate(plan))
    for real in release_given(desk, plan, exact, min(samples, WITH_UNDECLARED_KEYS)):
        yield real.released


def _collect(first: list[Released], second: list[Released]) -> tuple[tuple[Runs, Runs], Vocabulary]:
    """The released integers as columns. Undeclared keys are part of the output."""
    if first[0].keys is not None:
        seen = [[observe(_index_keys(released)) for released in side] for side in (first, second)]
        return collect_runs((seen[0], seen[1]))
    sides = [
        np.array([[step for cells in released.integers.values() for step in cells] for released in side], np.int64)
        for side in (first, second)
    ]
    half = [side[: count_searched(len(side))] for side in sides]  # the tested half must not choose what is tested
    moved = np.abs(np.median(half[0], axis=0) - np.median(half[1], axis=0)) / (np.std(half[0], axis=0) + 1e-9)
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
