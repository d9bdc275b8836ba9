"""Probe the charge of a question: does the budget end, are limits kept, and is a stored answer used for no other?

The ledgers are small, in memory, and made here. The integers are given: no dataset is measured.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.answering.certified_plans import CertifiedPlans, certify_plan, certify_together, replace_shares
from sfumato.answering.charged_draws import charge_and_release
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.catalog.dataset import Dataset
from sfumato.errors import BudgetExceeded, EngineFailed, KernelFault, PermissionDenied, SfumatoError
from sfumato.kernel.exact import sum_exactly
from sfumato.kernel.expressions import Column, Literal
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.plan import BoundedPlan, Extreme, Grid, Pivot, Quantiles, Quantity
from sfumato.kernel.release import ExactAggregates
from sfumato.kernel.row_sources import Capped, Scan
from sfumato.lab.auditing.audit_stage import Setting
from sfumato.lab.auditing.recorded_release import ExactIntegers
from sfumato.lab.auditing.throwaway_desk import make_throwaway_ledger
from sfumato.ledger.ledger import Ledger

TIMES = 4  # charges that are tried
Alter = Callable[[BoundedPlan], BoundedPlan]


class Meter:
    """An engine that gives integers, counts how often it is read, and notes whether a charge came first."""

    def __init__(self, given: ExactIntegers, ledger: Ledger, *, fails: bool = False) -> None:
        self._given, self._ledger, self._fails = given, ledger, fails
        self.times = 0
        self.unpaid = False

    def check(self, plan: BoundedPlan) -> None:
        """Every plan is accepted."""

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        self.times += 1
        self.unpaid = self.unpaid or not any(_split(self._ledger.totals().spent))
        if self._fails:
            raise EngineFailed
        return self._given.to_exact(plan)

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question that is charged on small ledgers."""

    plan: BoundedPlan
    given: ExactIntegers
    population: str
    charge: PrivacyLoss  # what one answer takes from the budget

    def make_ledger(self, times: Fraction, own: Mapping[str, Fraction] | None = None) -> Ledger:
        """A ledger whose limit is so many charges; `own` limits of analysts too."""
        sublimits = {name: multiply(self.charge, limit) for name, limit in (own or {}).items()}
        return make_throwaway_ledger(self.population, multiply(self.charge, times), sublimits)

    def repeat(self, number: int) -> BoundedPlan:
        """The same plan once more: another release, and another charge."""
        return replace(self.plan, repeat=self.plan.repeat + number)

    def ask(self, ledger: Ledger, certified: CertifiedPlans, analyst: str = DEFAULT_ANALYST) -> str:
        """What becomes of a charge: "answered", "refused", or the name of an error."""
        meter = Meter(self.given, ledger)
        try:
            charge_and_release(meter, ledger, certified, analyst, "audit")
        except BudgetExceeded:
            return "refused" if not meter.times else "measured, and then refused"
        except SfumatoError as error:
            return type(error).__name__
        return "answered" if not meter.unpaid else "measured before it was charged"


def multiply(loss: PrivacyLoss, times: Fraction) -> PrivacyLoss:
    """So many times a loss."""
    amounts = [sum_exactly(part * times) for part in _split(loss)]
    if isinstance(loss, PureDP):
        return PureDP(amounts[0])
    return type(loss)(amounts[0], min(amounts[1], sum_exactly(Fraction(9, 10))))


def _split(loss: PrivacyLoss) -> tuple[Fraction, Fraction]:
    match loss:
        case PureDP(epsilon):
            return Fraction(epsilon), Fraction(0)
        case ApproxDP(amount, delta) | ZCDP(amount, delta) | GDP(amount, delta):
            return Fraction(amount), Fraction(delta)


def check_ledger(desk: Desk, plan: BoundedPlan, given: ExactIntegers) -> Iterator[str]:
    """The faults of the charge of a plan."""
    declared = desk.dataset.budget.loss
    unlimited = (ApproxDP if isinstance(declared, PureDP) else type(declared))(10**6, "0.9")
    with make_throwaway_ledger(plan.population, unlimited) as ledger:
        charge_and_release(Meter(given, ledger), ledger, certify_plan(plan), DEFAULT_ANALYST, "audit")
        probe = Probe(plan, given, plan.population, ledger.totals().spent)
    yield from _check_limit(probe)
    yield from _check_own_limits(probe)
    yield from _check_failures(probe)
    yield from _check_stored(probe)


def _check_limit(probe: Probe) -> Iterator[str]:
    """A budget of two charges pays for two answers, in every order, and the third is refused before data is read."""
    for times in (Fraction(2), Fraction(5, 2)):
        with probe.make_ledger(times) as ledger:
            found = [probe.ask(ledger, certify_plan(probe.repeat(number))) for number in range(1, TIMES + 1)]
            if found != ["answered", "answered", "refused", "refused"]:
                yield f"A budget for two answers gave these: {', '.join(found)}."
            spent, limit = _split(ledger.totals().spent), _split(multiply(probe.charge, times))
            if any(one > most for one, most in zip(spent, limit, strict=True)):
                yield "The ledger spent more than its limit."
    amount, delta = _split(probe.charge)
    if delta:  # epsilon and delta end, each by itself
        for most in ((5 * amount, 2 * delta), (2 * amount, 5 * delta)):
            limit_of = type(probe.charge)(*(sum_exactly(part) for part in most))
            with make_throwaway_ledger(probe.population, limit_of) as ledger:
                found = [probe.ask(ledger, certify_plan(probe.repeat(number))) for number in range(1, TIMES + 1)]
                if found.count("answered") != 2:
                    yield f"A budget whose epsilon or delta is for two answers gave these: {', '.join(found)}."
    if probe.plan.cells is None:
        return  # undeclared keys are not charged together
    with probe.make_ledger(Fraction(5, 2)) as ledger:
        together = certify_together([probe.repeat(number) for number in range(1, 4)])
        if probe.ask(ledger, together) != "refused":
            yield "Three answers together were charged on a budget for two."


def _check_own_limits(probe: Probe) -> Iterator[str]:
    """An analyst's own limit ends, in every spelling of the name, and does not limit others."""
    with probe.make_ledger(Fraction(9), {"ann": Fraction(1), "bea": Fraction(1, 2)}) as ledger:
        names = ("ann", "ann", "ANN", "bob", "bea")
        found = [probe.ask(ledger, certify_plan(probe.repeat(number + 1)), name) for number, name in enumerate(names)]
        if found != ["answered", "refused", "refused", "answered", "refused"]:
            yield f"An own limit for one answer, and one for half an answer, gave these: {', '.join(found)}."
        with suppress(BudgetExceeded):  # the answer of bob costs more than the limit of bea
            if ledger.find_stored(certify_plan(probe.repeat(4)).certificate, "bea") is not None:
                yield "An analyst saw a stored answer that costs more than their own limit."


def _check_failures(probe: Probe) -> Iterator[str]:
    """A failure of the engine comes after the charge. One reservation pays for one release, of its own plan."""
    with probe.make_ledger(Fraction(9)) as ledger:
        meter = Meter(probe.given, ledger, fails=True)
        with suppress(SfumatoError):
            charge_and_release(meter, ledger, certify_plan(probe.plan), DEFAULT_ANALYST, "audit")
        if meter.unpaid or not any(_split(ledger.totals().spent)):
            yield "The data was measured before it was charged."
        certified, other = (certify_plan(probe.repeat(number)) for number in (1, 2))
        reservation = ledger.reserve(DEFAULT_ANALYST, certified.certificate)
        if _is_released(other, probe.given.to_exact(other.plans[0]), reservation):
            yield "A charge paid for another plan than its own."
        exact = probe.given.to_exact(certified.plans[0])
        if [_is_released(certified, exact, reservation) for _ in range(2)] != [True, False]:
            yield "A charge did not pay for exactly one release."


def _is_released(certified: CertifiedPlans, exact: ExactAggregates, reservation: object) -> bool:
    try:
        certified.release([exact], reservation)  # type: ignore[arg-type]
    except KernelFault:
        return False
    return True


def _check_stored(probe: Probe) -> Iterator[str]:
    """A stored answer is free for the same question, and is not used for any other, or where more is wanted."""
    with probe.make_ledger(Fraction(9)) as ledger:
        certified = certify_plan(probe.plan)
        answered = charge_and_release(Meter(probe.given, ledger), ledger, certified, DEFAULT_ANALYST, "audit")
        (released,), stored = answered.released, ledger.find_stored(certified.certificate, DEFAULT_ANALYST)
        if stored is None:
            yield "A stored answer is not found again."
        elif (stored.integers, stored.keys) != (released.integers, released.keys):
            yield "A stored answer is not the one that was released."
        for what, alter in ALTERED.items():
            with suppress(SfumatoError):  # an altered plan that cannot be
                other = alter(probe.plan)
                if other != probe.plan and _has_stored(ledger, other):
                    yield f"A stored answer is used for another question ({what})."


def _has_stored(ledger: Ledger, plan: BoundedPlan) -> bool:
    return ledger.find_stored(certify_plan(plan).certificate, DEFAULT_ANALYST) is not None


def _flip(neighbours: Neighbours) -> Neighbours:
    return next(relation for relation in Neighbours if relation is not neighbours)


def _alter_scan(plan: BoundedPlan, **changes: object) -> BoundedPlan:
    return replace(plan, source=replace(plan.source, **changes)) if isinstance(plan.source, Scan) else plan  # type: ignore[arg-type]


def _alter_grid(plan: BoundedPlan) -> BoundedPlan:
    """Other bounds of the first value that has any."""
    for place, measurement in enumerate(plan.measurements):
        grid = getattr(measurement.quantity, "grid", None)
        if isinstance(grid, Grid):
            wider = replace(measurement.quantity, grid=replace(grid, upper=grid.upper + 1))  # type: ignore[arg-type]
            others = (*plan.measurements[:place], replace(measurement, quantity=wider), *plan.measurements[place + 1 :])
            return replace(plan, measurements=others)
    return plan


def _alter_value(plan: BoundedPlan) -> BoundedPlan:
    """Another value of the first measurement that has one."""
    for place, measurement in enumerate(plan.measurements):
        value = getattr(measurement.quantity, "value", None)
        if isinstance(value, Column) and not isinstance(measurement.quantity, Pivot):
            other = replace(measurement.quantity, value=replace(value, name=f"{value.name} and more"))  # type: ignore[arg-type]
            others = (*plan.measurements[:place], replace(measurement, quantity=other), *plan.measurements[place + 1 :])
            return replace(plan, measurements=others)
    return plan


def _alter_choice(plan: BoundedPlan) -> BoundedPlan:
    """The other extreme, or other fractions, of the first choice that has any."""
    for place, measurement in enumerate(plan.measurements):
        quantity: Quantity = measurement.quantity
        if isinstance(quantity, Extreme):
            quantity = replace(quantity, largest=not quantity.largest)
        elif isinstance(quantity, Quantiles):
            quantity = replace(quantity, fractions=tuple(fraction / 2 for fraction in quantity.fractions))
        if quantity != measurement.quantity:
            others = (
                *plan.measurements[:place],
                replace(measurement, quantity=quantity),
                *plan.measurements[place + 1 :],
            )
            return replace(plan, measurements=others)
    return plan


def _alter_keys(plan: BoundedPlan) -> BoundedPlan:
    last = plan.keys[-1] if plan.keys else None
    if last is None or last.values is None or len(last.values) == 1:
        return plan
    return replace(plan, keys=(*plan.keys[:-1], replace(last, values=last.values[:-1])))


def _alter_price(plan: BoundedPlan) -> BoundedPlan:
    losses: Sequence[PrivacyLoss] = [measurement.loss for measurement in plan.measurements]
    return replace_shares(plan, [_double(loss) for loss in losses])


def _double(loss: PrivacyLoss) -> PrivacyLoss:
    """Twice epsilon or rho: less noise is wanted. Delta stays."""
    match loss:
        case PureDP(epsilon):
            return PureDP(2 * epsilon)
        case ApproxDP(epsilon, delta):
            return ApproxDP(2 * epsilon, delta)
        case ZCDP(rho, delta):
            return ZCDP(2 * rho, delta)
        case GDP(mu_squared, delta):
            return GDP(2 * mu_squared, delta)


ALTERED: Mapping[str, Alter] = {
    "a filter": lambda plan: replace(plan, filters=(*plan.filters, Literal(True))),
    "fewer filters": lambda plan: replace(plan, filters=plan.filters[:-1]),
    "other neighbours": lambda plan: replace(plan, unit=replace(plan.unit, neighbours=_flip(plan.unit.neighbours))),
    "more groups of a unit": lambda plan: replace(plan, max_groups_per_unit=plan.max_groups_per_unit + 1),
    "more rows of a unit": lambda plan: _alter_scan(plan, max_rows=getattr(plan.source, "max_rows", 0) + 1),
    "another version of the data": lambda plan: _alter_scan(plan, version="another"),
    "another table": lambda plan: _alter_scan(plan, table="another"),
    "other bounds": _alter_grid,
    "another value": _alter_value,
    "another choice": _alter_choice,
    "a bound on the rows of a source": lambda plan: replace(plan, source=Capped(plan.source, plan.reach + 1)),
    "other keys": _alter_keys,
    "less noise": _alter_price,
}


def check_permission(desk: Desk, sql: str, setting: Setting) -> Iterator[str]:
    """A name that the catalog does not list gets no answer, and takes nothing."""
    known = desk.dataset
    dataset = Dataset(
        known.name, tuple(known.tables.values()), known.budget, known.population, known.neighbours,
        analysts={"ann": known.budget}, views=known.views,
    )  # fmt: skip
    listed = replace(desk, dataset=dataset)
    before = desk.ledger.totals().spent
    try:
        setting.ask(listed, sql, "mallory")
    except PermissionDenied:
        if desk.ledger.totals().spent != before:
            yield "A refused analyst was charged."
        return
    yield "An analyst whom the catalog does not list got an answer."
