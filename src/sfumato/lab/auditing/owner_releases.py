"""What owners buy of the data: a contribution bound and bounds of a column. Its charge, its choice and its engine."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sfumato.answering.certified_plans import certify_plan
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.find_bounds import find_bounds
from sfumato.answering.find_cap import find_cap
from sfumato.catalog.columns import Integer, Real
from sfumato.catalog.dataset import Table
from sfumato.errors import SfumatoError
from sfumato.kernel.certify import BinChoice, Certificate
from sfumato.kernel.losses import PureDP
from sfumato.lab.auditing.audit_stage import Setting, Stage
from sfumato.lab.auditing.choice_sampling import check_choosers
from sfumato.lab.auditing.contribution_pairs import make_pair_with_many_rows
from sfumato.lab.auditing.independent_prices import covers
from sfumato.lab.auditing.independent_sensitivities import check_sensitivities
from sfumato.lab.auditing.pinned_tables import read_pinned
from sfumato.lab.auditing.recorded_release import ExactIntegers, RecordingEngine, record_with
from sfumato.lab.auditing.replay_comparison import compare_integers
from sfumato.lab.auditing.second_measurement import compare_measurements, make_second_engine
from sfumato.lab.auditing.throwaway_desk import Data, PinnedRows

EPSILON = 1
Buy = Callable[[Desk], object]


def check_owner_releases(stage: Stage, setting: Setting) -> Iterator[str]:
    """The faults of find_cap and find_bounds for the first private table of a question, on a person with many rows."""
    table = next(candidate for candidate in stage.tables if not candidate.public)
    pair = make_pair_with_many_rows(stage)
    with PinnedRows() as rows:
        opened = replace(setting, pinned=rows)
        for what, buy in list_purchases(table).items():
            bought = [_buy(stage, opened, data, buy) for data in (pair.first, pair.second)]
            yield from dict.fromkeys(f"{what}: {fault}" for purchase in bought for fault in purchase.faults)
            if (
                all(purchase.certificate == bought[0].certificate for purchase in bought)
                and bought[0].certificate is not None
            ):
                compared = compare_integers(bought[0].certificate, bought[0].exact, bought[1].exact)
                yield from (f"{what}: {fault}" for fault in compared.faults)
                noises = [part.noise for part in bought[0].certificate.measurements]
                chosen = check_choosers([noise for noise in noises if isinstance(noise, BinChoice)])
                yield from (f"{what}: {fault}" for fault in chosen)
            elif any(purchase.certificate is not None for purchase in bought):
                yield f"{what}: it is bought, or certified, on one dataset and not on the other."


@dataclass(frozen=True, slots=True)
class Bought:
    """What was measured for a purchase. One that is refused has no certificate."""

    certificate: Certificate | None
    exact: ExactIntegers
    faults: tuple[str, ...] = ()


def _buy(stage: Stage, setting: Setting, data: Data, buy: Buy) -> Bought:
    """Buy once, and compare the charge, the sensitivity and the engine."""
    recorders: list[RecordingEngine] = []
    tables = {name: one for name, (one, _) in data.items()}
    with setting.open(stage.dataset, data, record_with(setting.wrap, recorders)) as desk:
        try:
            buy(desk)
        except SfumatoError:
            return Bought(None, ExactIntegers({}, None, {}))
        spent = desk.ledger.totals().spent
    if len(recorders[0].measured) != 1:
        return Bought(None, ExactIntegers({}, None, {}), ("the data is not measured once.",))
    ((plan, exact),) = recorders[0].measured
    certificate = certify_plan(plan).certificate
    rows = setting.pinned or PinnedRows()
    pinned = rows.remember(data, "rows", read_pinned)
    faults = [] if covers(spent, certificate) else ["the charge is less than the loss."]
    if not isinstance(certificate.loss, PureDP) or certificate.loss.epsilon > EPSILON:
        faults.append("it costs more than was asked for.")
    faults += check_sensitivities(certificate, tables, pinned)
    second = make_second_engine(setting.engine, pinned, rows.load(data))
    faults += compare_measurements(plan, exact, second, pinned)
    return Bought(certificate, exact, tuple(faults))


def list_purchases(table: Table) -> dict[str, Buy]:
    """What can be bought about a table."""
    made: dict[str, Buy] = {"find_cap": lambda desk: find_cap(desk, table.name, EPSILON, DEFAULT_ANALYST)}
    column = next((name for name, kind in table.columns.items() if isinstance(kind, Integer | Real)), None)
    if column is not None:
        made["find_bounds"] = lambda desk: find_bounds(desk, str(column), EPSILON, table.name, DEFAULT_ANALYST)
    return made
