"""A question of several releases (ROLLUP, UNION ALL, a share of another total): one charge pays for all of them.

The replays audit each release by itself, at its share of the price. Here the whole is compared with these parts.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from sfumato.answering.ask_together import plan_together
from sfumato.answering.desk import DEFAULT_ANALYST
from sfumato.answering.prices import choose_delta, choose_loss
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise
from sfumato.lab.auditing.audit_stage import CONFIDENCE, Setting, Stage, plan_question
from sfumato.lab.auditing.independent_prices import covers
from sfumato.lab.auditing.pair_maker import DatasetPair
from sfumato.lab.auditing.real_releases import RealRelease, find_small_noise
from sfumato.lab.auditing.recorded_release import RecordingEngine, record_with

TIMES = 24  # answers: independent noise of two releases is equal in all of them with probability below 1e-8


def check_together(stage: Stage, pair: DatasetPair, setting: Setting) -> Iterator[str]:
    """The faults of complete answers: prices, charge, stored answer, and noise that releases share."""
    answers = [_ask_once(stage, pair, setting) for _ in range(TIMES)]
    faults = dict.fromkeys(fault for found, _ in answers for fault in found)
    yield from faults
    if faults:
        return
    for one, two in combinations(range(len(answers[0][1])), 2):
        drawn = [(_subtract(released[one])[:1], _subtract(released[two])[:1]) for _, released in answers]
        if all(first and first == second for first, second in drawn):
            yield f"Releases {one + 1} and {two + 1} have the same noise."
    for place, real in enumerate(zip(*(released for _, released in answers), strict=True), 1):
        if real[0].exact.keys is None:
            yield from (f"release {place}: {fault}" for fault in find_small_noise(real))


def _ask_once(stage: Stage, pair: DatasetPair, setting: Setting) -> tuple[list[str], list[RealRelease]]:
    """Ask on a desk of its own: the faults of the charge and of what is stored, and the releases."""
    recorders: list[RecordingEngine] = []
    parts = setting.split(stage)
    with setting.open(stage.dataset, pair.second, record_with(setting.wrap, recorders)) as desk:
        query = setting.bind(stage.sql, desk.dataset)
        asked = setting.complete(query)
        loss = choose_loss(query, asked.epsilon, asked.rho)
        _, certified = plan_together(desk, query, loss, CONFIDENCE, choose_delta(query, asked.delta))
        answer = asked.ask(desk, stage.sql)
        spent, measured = desk.ledger.totals().spent, recorders[0].measured
        stored = desk.find_stored(certified, DEFAULT_ANALYST)
        if stored is None or not len(stored.released) == len(parts) == len(measured):
            return ["The releases of a complete answer are not measured once each, or not stored together."], []
        own = [plan_question(desk, stage.sql, part).certificate for part in parts]
        again = asked.ask(desk, stage.sql).rows == answer.rows and desk.ledger.totals().spent == spent
        held = {
            "A release is not the one of its own share of the price.": (
                [(release.plans, release.measurements) for release in own]
                == [(certificate.plans, certificate.measurements) for certificate in certified.certificates]
            ),
            "The releases together cost more than was asked for.": (
                _fits(loss, [part.loss for released in stored.released for part in released.certificate.measurements])
            ),
            "The charge is less than the losses of all releases together.": (
                covers(spent, *(released.certificate for released in stored.released))
            ),
            "The same question again is charged again, or its stored answer differs.": again,
        }
        real = [RealRelease(exact, one) for one, (_, exact) in zip(stored.released, measured, strict=True)]
        return [fault for fault, holds in held.items() if not holds], real


def _fits(asked: PureDP | ZCDP, losses: Sequence[PrivacyLoss]) -> bool:
    """Whether losses of the kind that was asked for add up to no more. Others have prices that `covers` compares."""
    if isinstance(asked, ZCDP):
        return sum(Fraction(loss.rho) for loss in losses if isinstance(loss, ZCDP)) <= Fraction(asked.rho)
    return sum(Fraction(loss.epsilon) for loss in losses if isinstance(loss, PureDP | ApproxDP)) <= Fraction(
        asked.epsilon
    )


def _subtract(real: RealRelease) -> list[int]:
    """The noise of the first sum or count with declared keys, in the order of its cells."""
    for measured in real.released.certificate.measurements:
        added = isinstance(measured.noise, LaplaceNoise | GaussianNoise | BoxNoise)
        if added and real.exact.keys is None:
            pairs = zip(real.released.integers[measured.name], real.exact.integers[measured.name], strict=True)
            return [noisy - true for noisy, true in pairs]
    return []
