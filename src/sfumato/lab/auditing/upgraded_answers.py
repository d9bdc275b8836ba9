"""Upgrade an answer on a throwaway desk, and check the charge, the integers, the new noise and the stored answer."""

from collections.abc import Iterator
from dataclasses import dataclass

from sfumato.answering.certified_plans import certify_plan, read_stored
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.prices import choose_loss
from sfumato.answering.upgrade import upgrade
from sfumato.errors import SfumatoError, UnsupportedSyntax
from sfumato.kernel.losses import ZCDP
from sfumato.lab.auditing.audit_stage import Setting, Stage
from sfumato.lab.auditing.independent_prices import covers
from sfumato.lab.auditing.pair_maker import DatasetPair
from sfumato.lab.auditing.real_releases import RealRelease
from sfumato.lab.auditing.recorded_release import RecordingEngine, record_with

FAULT = "fault"  # what is wrong on one dataset alone
ERROR = "error of the upgrade"
LARGE = 10**6  # noise of this size is drawn twice with probability below 1e-6

Shown = tuple[str, str]  # what an answer shows besides its numbers, or FAULT, with a text


@dataclass(frozen=True, slots=True)
class UpgradedAnswer:
    """What an upgrade showed, and its release. An upgrade that is not supported has neither."""

    shown: tuple[Shown, ...] = ()
    releases: tuple[RealRelease, ...] = ()


def upgrade_answer(
    desk: Desk, sql: str, setting: Setting, engine: RecordingEngine, before: RealRelease
) -> UpgradedAnswer:
    """Pay for the answer `before` again, so that it has twice its price in all."""
    query = setting.bind(sql, desk.dataset)
    if query.dp_options is not None and query.dp_options.epsilon is not None:
        return UpgradedAnswer()  # the question states its price: it has no other
    if setting.max_rows is not None or setting.max_groups is not None:
        return UpgradedAnswer()  # an upgrade takes no limits
    loss = choose_loss(query, setting.epsilon, setting.rho)
    epsilon, rho = (None, 2 * loss.rho) if isinstance(loss, ZCDP) else (2 * loss.epsilon, None)
    measured = len(engine.measured)
    try:
        answer = upgrade(desk, sql, epsilon, rho=rho)
    except UnsupportedSyntax:  # private choices and undeclared keys
        return UpgradedAnswer()
    except SfumatoError as error:
        return UpgradedAnswer(((ERROR, f"{type(error).__name__}: {error.message}"),))
    if len(engine.measured) != measured + 1:
        return UpgradedAnswer(((FAULT, "An upgrade did not measure the data once."),))
    spent = desk.ledger.totals().spent
    after = _find_newest(desk, engine)
    faults = []
    if after.exact != before.exact:
        faults.append("An upgrade measured other integers than its answer.")
    if not covers(spent, before.released.certificate, after.released.certificate):
        faults.append("An answer and its upgrade were charged less than their losses.")
    if before.released.certificate.measurements == after.released.certificate.measurements and _is_same(before, after):
        faults.append("An upgrade has the noise of its answer again.")
    if upgrade(desk, sql, epsilon, rho=rho).rows != answer.rows or desk.ledger.totals().spent != spent:
        faults.append("The same upgrade again is charged again, or its stored answer differs.")
    shown = [(FAULT, fault) for fault in faults]
    return UpgradedAnswer((*shown, ("columns of the upgrade", repr(answer.columns))), (after,))


def check_upgrade(stage: Stage, pair: DatasetPair, setting: Setting) -> Iterator[str]:
    """The faults of one answer and its upgrade, on a desk of their own."""
    recorders: list[RecordingEngine] = []
    asked = setting.complete(stage.query)
    with setting.open(stage.dataset, pair.second, record_with(setting.wrap, recorders)) as desk:
        asked.ask(desk, stage.sql)
        for before in find_released(desk, recorders[0]):
            upgraded = upgrade_answer(desk, stage.sql, asked, recorders[0], before)
            yield from (text for kind, text in upgraded.shown if kind in (FAULT, ERROR))


def find_released(desk: Desk, engine: RecordingEngine) -> Iterator[RealRelease]:
    """What was measured and released for a complete answer with declared keys."""
    plan, exact = engine.measured[0]
    stored = desk.find_stored(certify_plan(plan), DEFAULT_ANALYST)
    if stored is not None and exact.keys is None:
        yield RealRelease(exact, stored.released[0])


def _find_newest(desk: Desk, engine: RecordingEngine) -> RealRelease:
    """The release that the upgrade made: the ledger stores it with a summary."""
    plan, exact = engine.measured[-1]
    certificate = certify_plan(plan).certificate
    earlier = desk.ledger.find_earlier(certificate.answer_key, DEFAULT_ANALYST)
    stored = earlier.rest[-1] if earlier.summed_up is None else earlier.summed_up[1]
    return RealRelease(exact, read_stored(plan, stored))


def _is_same(before: RealRelease, after: RealRelease) -> bool:
    """Whether both have the same integers, and one so large that this is no coincidence."""
    integers = before.released.integers
    return integers == after.released.integers and any(
        abs(cell) > LARGE for cells in integers.values() for cell in cells
    )
