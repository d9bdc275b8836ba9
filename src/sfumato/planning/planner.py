"""Query + loss -> BoundedPlan: the quantities to measure, their grids, and an equal share of the loss for each."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from sfumato.catalog.dataset import Dataset
from sfumato.errors import InvalidParameter
from sfumato.kernel.losses import GDP, ZCDP, PureDP
from sfumato.kernel.plan import BoundedPlan, Choice, Measurement
from sfumato.kernel.released_steps import count_bins
from sfumato.planning.cheapest_noise import pay_least, takes_gaussian
from sfumato.planning.formulas import Formula
from sfumato.planning.key_rule import MOST_KEYS, choose_key_rule
from sfumato.planning.public_numbers import PublicNumbers
from sfumato.planning.quantity_chooser import QuantityChooser
from sfumato.planning.running_totals import measure_running_totals
from sfumato.planning.shares import pay_for, split_evenly, split_off
from sfumato.planning.unit_and_version import find_unit, pin_versions
from sfumato.query.capped_scans import cap_scans
from sfumato.query.query import Query
from sfumato.query.size_limits import MOST_IN_BINS
from sfumato.query.source_outline import check_work


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan, and how each aggregate of the query is computed from its released numbers."""

    plan: BoundedPlan
    formulas: tuple[Formula, ...]
    public: PublicNumbers


def choose_plan(
    query: Query,
    loss: PureDP | ZCDP,
    dataset: Dataset,
    versions: Mapping[str, str],
    *,
    delta: Decimal | None = None,
    laplace: bool = False,
) -> Planned:
    """Choose the measurements that answer the query. They share `loss` evenly; `delta` is for undeclared keys.

    An epsilon pays for Laplace noise. Under a budget in rho or mu it pays for Gaussian noise where that is smaller at
    the same price, unless `laplace` is set.
    """
    accounting = "basic" if laplace else dataset.budget.accounting
    if isinstance(loss, PureDP) and accounting != "basic":
        whole = _plan_measurements(query, loss, dataset, versions, delta, split=False)
        cheapest = pay_least(whole.plan, accounting)
        if all(
            isinstance(measurement.loss, ZCDP | GDP) or not takes_gaussian(measurement.quantity)
            for measurement in cheapest.measurements
        ):
            return replace(whole, plan=measure_running_totals(query, cheapest, whole.formulas, accounting))
    split = isinstance(loss, PureDP)
    planned = _plan_measurements(query, loss, dataset, versions, delta, split=split)
    cheapest = pay_least(planned.plan, accounting)
    return replace(planned, plan=measure_running_totals(query, cheapest, planned.formulas, accounting))


def _plan_measurements(
    query: Query,
    loss: PureDP | ZCDP,
    dataset: Dataset,
    versions: Mapping[str, str],
    delta: Decimal | None,
    *,
    split: bool,
) -> Planned:
    """Choose the measurements. `split`: count and sum of a value may share Laplace noise."""
    unit, groups = find_unit(query.source, dataset, query.keys)
    if query.dp_options is not None and query.dp_options.max_groups_contributed is not None:
        groups = query.dp_options.max_groups_contributed
    asked = None if query.dp_options is None else query.dp_options.max_groups_contributed
    if query.max_groups is not None:
        asked = groups = min(groups, query.max_groups)
    undeclared = any(key.values is None for key in query.keys)
    chooser = QuantityChooser(query, dataset, per_row=unit.per_row, undeclared=undeclared, pure=split, groups=asked)
    formulas = tuple(chooser.choose_formula(aggregate) for aggregate in query.aggregates)
    if not chooser.wanted:
        hint = "The catalog declares it, so everybody knows it: there is nothing to ask."
        raise InvalidParameter("question", "must depend on the data", "the public number of rows or people", hint)
    shares = _share_loss(chooser, loss, query)
    measurements = tuple(
        Measurement(name, quantity, pay_for(quantity, shares[name], delta, dataset))
        for name, (quantity, _) in chooser.wanted.items()
    )
    source = pin_versions(query.source, versions)
    grouped = (undeclared or chooser.counts_unlisted) and not unit.per_row
    if grouped:  # before rows are grouped: one person's many keys or values must not show in the time
        source = cap_scans(source)
    check_work(source, groups_undeclared_keys=grouped)
    plan = BoundedPlan(dataset.population, source, unit, groups, query.filters, query.keys, measurements)
    _refuse_many_bins(plan)
    counts_people = not query.keys_alone and any(aggregate.function == "PEOPLE" for aggregate in query.aggregates)
    stated = None if query.dp_options is None else query.dp_options.max_groups_contributed
    plan = choose_key_rule(plan, counts_people=counts_people, most_keys=stated or MOST_KEYS)
    return Planned(plan, formulas, chooser.public)


def _share_loss(chooser: QuantityChooser, loss: PureDP | ZCDP, query: Query) -> dict[str, PureDP | ZCDP]:
    """An equal share for each measurement. Intervals of quantiles are paid from the share of their quantiles."""
    names = [name for name in chooser.wanted if name not in chooser.ends_of.values()]
    shares = dict(zip(names, split_evenly(loss, len(names)), strict=True))
    for name, ends in chooser.ends_of.items():
        if query.quantile_intervals is not None:
            shares[name], shares[ends] = split_off(shares[name], query.quantile_intervals.share)
    return shares


def _refuse_many_bins(plan: BoundedPlan) -> None:
    quantities = (measurement.quantity for measurement in plan.measurements)
    bins = max((count_bins(quantity) for quantity in quantities if isinstance(quantity, Choice)), default=0)
    if (plan.cells or 1) * bins > MOST_IN_BINS:
        kind = f"{plan.cells:,} groups of {bins:,} bins each"
        hint = "Ask for fewer groups, or declare narrower bounds of the value."
        raise InvalidParameter("question", f"must choose among at most {MOST_IN_BINS:,} bins in all groups", kind, hint)
