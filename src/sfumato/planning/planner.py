"""Query + what may be spent -> BoundedPlan: bounds, grids, and the split of the budget.

Every measurement gets an equal share. The count and the sum of a value are one measurement where both are wanted, and
its count serves COUNT(*) and every AVG of a column without NULLs (moment_measurements.py). Quantiles of one value
share one choice. Undeclared keys are released with their numbers of people.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sfumato.catalog.dataset import Dataset
from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.exact import exact_decimal
from sfumato.kernel.expressions import Call, Literal
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.kernel.neighbours import ROW, Neighbours
from sfumato.kernel.plan import (
    BoundedPlan,
    Choice,
    Count,
    Curve,
    Extreme,
    Halves,
    Keys,
    Measurement,
    Mode,
    People,
    Quantiles,
    Quantity,
    Sum,
    Thirds,
    kind_of,
)
from sfumato.kernel.row_sources import PerUnit, Scan
from sfumato.planning.formulas import (
    BinFormula,
    CountFormula,
    Formula,
    ListFormula,
    MeanFormula,
    SumFormula,
    VarianceFormula,
)
from sfumato.planning.grids import bin_grid, squared_grid, sum_grid
from sfumato.planning.moment_measurements import Linear, Moments, Rows, of_curve, of_halves, of_thirds, together
from sfumato.planning.unit_and_version import pinned, whose
from sfumato.query.capped_scans import cap_scans
from sfumato.query.query import Aggregate, Query, Typed

SHARE_DIGITS = Decimal("1e-12")
SHARE_OF_DELTA = 10  # a question that needs a delta and is given none takes one tenth of the budget's


@dataclass(frozen=True, slots=True)
class PublicNumbers:
    """What the catalog makes public of the rows that a question is about."""

    rows: int | None = None  # what their weights add up to
    people: int | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan, and for each aggregate of the query how to read it."""

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
) -> Planned:
    """The measurements that answer the query, sharing `loss` evenly; `delta` is for keys that the data names."""
    unit, groups = whose(query.source, dataset, query.keys)
    if query.dp_options is not None and query.dp_options.max_groups_contributed is not None:
        groups = query.dp_options.max_groups_contributed
    discovers = any(key.values is None for key in query.keys)
    pure = isinstance(loss, PureDP)
    chooser = _Chooser(query, dataset, per_row=unit.per_row, discovers=discovers, pure=pure)
    formulas = tuple(chooser.formula(each) for each in query.aggregates)
    if not chooser.wanted:
        hint = "It is declared in the catalog, and known to everybody: there is nothing to ask."
        raise InvalidParameter("question", "must depend on the data", "the public number of rows or people", hint)
    shares = split(loss, len(chooser.wanted))
    measurements = tuple(
        Measurement(name, quantity, _check_share(quantity, share, delta, dataset))
        for (name, (quantity, _)), share in zip(chooser.wanted.items(), shares, strict=True)
    )
    source = pinned(query.source, versions)
    if discovers and not unit.per_row:  # before rows are grouped: one person's many keys must not show in the time
        source = cap_scans(source)
    plan = BoundedPlan(dataset.population, source, unit, groups, query.filters, query.keys, measurements)
    return Planned(plan, formulas, chooser.public)


def _check_share(
    quantity: Quantity, share: PureDP | ZCDP, delta: Decimal | None, dataset: Dataset
) -> PureDP | ApproxDP | ZCDP:
    """The loss that pays for a quantity; refuse a rho where only epsilon can pay."""
    if isinstance(quantity, Keys):
        return _with_delta(share, delta, dataset)
    if isinstance(quantity, Choice) and isinstance(share, ZCDP):
        hint = "Ask with epsilon=."
        raise InvalidParameter("rho", "must not be given for quantiles, MIN, MAX, MODE and TOP_K", "a rho", hint)
    return share


def _with_delta(share: PureDP | ZCDP, delta: Decimal | None, dataset: Dataset) -> ApproxDP:
    """The share of keys that the data names."""
    if isinstance(share, ZCDP):
        hint = "Ask with epsilon= and delta=, or group by declared values."
        raise InvalidParameter("rho", "must not be given where the data names the keys", "a rho", hint)
    if delta is None:
        if not dataset.budget.delta:
            hint = "Declare the key's values, or give the budget a delta, such as 1e-6."
            raise InvalidParameter(
                "delta", "must be above zero where the data names the keys", "a budget without", hint
            )
        delta = dataset.budget.delta / SHARE_OF_DELTA
    return ApproxDP(share.epsilon, delta)


def split(loss: PureDP | ZCDP, parts: int) -> tuple[PureDP | ZCDP, ...]:
    """Even shares that are finite decimals and add up to the whole exactly; the last takes what rounding left."""
    whole = Fraction(loss.epsilon if isinstance(loss, PureDP) else loss.rho)
    unit = Fraction(SHARE_DIGITS) * Fraction(10) ** _size(whole)
    share = (whole / parts // unit) * unit
    amounts = [share] * (parts - 1) + [whole - share * (parts - 1)]
    if share <= 0:
        raise InvalidParameter("epsilon", "must be large enough to share", "a smaller one", "Raise it.")
    decimals = [exact_decimal(each) for each in amounts]
    kind = PureDP if isinstance(loss, PureDP) else ZCDP
    return tuple(kind(each) for each in decimals if each is not None)


def _size(whole: Fraction) -> int:
    return len(str(whole.numerator)) - len(str(whole.denominator))


class _Chooser:
    """Collects the measurements that a list of aggregates needs, each once."""

    def __init__(self, query: Query, dataset: Dataset, *, per_row: bool, discovers: bool, pure: bool) -> None:
        self.per_row = per_row
        self.discovers = discovers
        self.wanted: dict[str, tuple[Quantity, Typed | None]] = {}
        self.public = _public_numbers(query, dataset)
        self.most_rows, self.most_people = _greatest_numbers(query, dataset)
        self._moments_of: dict[Typed, Moments] = {}
        self._fractions: dict[Typed, tuple[Fraction, ...]] = {}
        for each in query.aggregates:
            if each.function == "QUANTILE" and each.value is not None and each.fraction is not None:
                known = self._fractions.get(each.value, ())
                self._fractions[each.value] = tuple(sorted({*known, each.fraction}))
        self.keys = self._add(Keys()) if discovers else None
        fixed = self.public.rows is not None
        one_cell = dataset.neighbours is Neighbours.REPLACE_ONE and not query.keys
        rows = Rows(per_row, fixed or (discovers and per_row), fixed, one_cell)
        # noise that is normal is the same in any direction: parts would gain nothing
        self.parts = together(query.aggregates, rows) if pure else {}

    def formula(self, aggregate: Aggregate) -> Formula:  # noqa: PLR0911 - one return an aggregate
        value = aggregate.value
        match aggregate.function:
            case "COUNT":
                all_rows = value is None or not value.nullable
                return CountFormula(self._count(value), 0.0, self.most_rows, value, all_rows)
            case "PEOPLE" if self.public.people is not None:
                return CountFormula(Linear((), Fraction(self.public.people)))
            case "PEOPLE":
                counted = Linear.of(self.keys or self._add(People()))
                return CountFormula(counted, 1.0 if self.keys else 0.0, self.most_people)
            case "SUM" if value is not None:
                return SumFormula(self._whole_sum(value), value, *self._sums_between(value))
            case "AVG" if value is not None:
                found = self._moments(value)
                return MeanFormula(found.count, found.total, float(found.centre), value.lower, value.upper)
            case "VARIANCE" | "STDDEV" if value is not None:
                return self._variance(value, root=aggregate.function == "STDDEV")
            case "QUANTILE" if value is not None and aggregate.fraction is not None:
                fractions = self._fractions[value]
                quantiles = Quantiles(value.expression, bin_grid(value), fractions)
                return self._chosen_bin(value, quantiles, fractions.index(aggregate.fraction))
            case "MIN" | "MAX" if value is not None:
                extreme = Extreme(value.expression, bin_grid(value), aggregate.function == "MAX")
                return self._chosen_bin(value, extreme, 0)
            case "MODE" | "TOP_K" if value is not None and value.values:
                name = self._add(Mode(value.expression, aggregate.most, value.values), value)
                return ListFormula(name, value.values, aggregate.most, aggregate.function == "TOP_K")
        raise KernelFault("An aggregate has no plan.")

    def _chosen_bin(self, value: Typed, choice: Quantiles | Extreme, place: int) -> BinFormula:
        name, grid = self._add(choice, value), choice.grid
        step = 2.0**grid.exponent
        return BinFormula(name, place, choice.width, grid.lower * step, step, value.upper)

    def _variance(self, value: Typed, *, root: bool) -> VarianceFormula:
        found = self._squares(value)
        centre, lower, upper = float(found.centre), value.lower or 0, value.upper or 0
        reach = max(abs(lower - centre), abs(upper - centre))
        # a sample's variance divides by n - 1, and so reaches n/(n - 1) of the square: at most twice
        rows = 2 if found.count.terms else max(int(found.count.constant), 2)
        largest = (upper - lower) ** 2 / 4 * rows / (rows - 1)
        if found.squares is None:
            raise KernelFault("A variance is read from squares.")
        return VarianceFormula(found.count, found.total, found.squares, reach, largest, root)

    def _count(self, value: Typed | None) -> Linear:
        """Public, or that of the keys, or of a value in parts, or a noisy one that all who can share."""
        if value is not None and value.nullable:
            return self._parts(value).count if value in self.parts else self._counted(value)
        if self.public.rows is not None:
            return Linear((), Fraction(self.public.rows))
        if self.keys and self.per_row:
            return Linear.of(self.keys)
        whole = sorted((each for each in self.parts if not each.nullable), key=lambda each: self.parts[each].__name__)
        return self._parts(whole[0]).count if whole else self._counted(None)

    def _counted(self, value: Typed | None) -> Linear:
        return Linear.of(self._add(Count(None if value is None else value.expression), value))

    def _whole_sum(self, value: Typed) -> Linear:
        """A sum that is not centred: of parts or of a public number of rows, what was taken off is put back."""
        if value not in self.parts and (self.public.rows is None or value.nullable):
            return self._sum(value, centred=False)[0]
        found = self._moments(value)
        return found.total.plus(found.count, found.centre)

    def _moments(self, value: Typed) -> Moments:
        if value in self.parts:
            return self._parts(value)
        total, centre = self._sum(value, centred=True)
        return Moments(self._count(value), total, None, centre)

    def _squares(self, value: Typed) -> Moments:
        if value in self.parts:
            return self._parts(value)
        total, centre = self._sum(value, centred=True)
        away = Call("-", (value.expression, Literal(float(centre))))
        reach = max(abs((value.lower or 0) - float(centre)), abs((value.upper or 0) - float(centre)))
        squared = Typed(Call("*", (away, away)), "number", value.nullable, 0.0, reach**2)
        return Moments(self._count(value), total, self._sum(squared, centred=False)[0], centre)

    def _parts(self, value: Typed) -> Moments:
        if value not in self._moments_of:
            if self.parts[value] is Halves:
                halves = Halves(value.expression, sum_grid(value, per_row=self.per_row))
                found = of_halves(self._add(halves, value), halves.grid, per_row=self.per_row)
            elif self.parts[value] is Thirds:
                thirds = Thirds(value.expression, squared_grid(value))
                found = of_thirds(self._add(thirds, value), thirds.grid)
            else:
                curve = Curve(value.expression, squared_grid(value))
                found = of_curve(self._add(curve, value), curve.grid, self.public.rows or 0)
            self._moments_of[value] = found
        return self._moments_of[value]

    def _sum(self, value: Typed, *, centred: bool) -> tuple[Linear, Fraction]:
        grid = sum_grid(value, per_row=self.per_row)
        offset = grid.middle if centred else 0
        name = self._add(Sum(value.expression, grid, offset), value)
        return Linear.of(name), offset * Fraction(2) ** grid.exponent

    def _sums_between(self, value: Typed) -> tuple[float | None, float | None]:
        """Between which numbers a sum can be: of no row, or of the greatest number of them."""
        lower, upper = value.lower or 0.0, value.upper or 0.0
        if self.public.rows is not None and not value.nullable:
            return self.public.rows * lower, self.public.rows * upper
        rows = math.inf if self.most_rows is None else self.most_rows
        least, most = (rows * lower if lower < 0 else 0.0), (rows * upper if upper > 0 else 0.0)
        return (None if math.isinf(least) else least), (None if math.isinf(most) else most)

    def _add(self, quantity: Quantity, value: Typed | None = None) -> str:
        """Name a quantity; one that is wanted twice is measured once. Equal expressions of two types are two."""
        for name, wanted in self.wanted.items():
            if wanted == (quantity, value):
                return name
        name = f"{kind_of(quantity)}{len(self.wanted) + 1}"
        self.wanted[name] = (quantity, value)
        return name


def _greatest_numbers(query: Query, dataset: Dataset) -> tuple[float | None, float | None]:
    """How many rows and people a question can be about at most, where the catalog makes it public."""
    if dataset.neighbours is not Neighbours.REPLACE_ONE or not isinstance(query.source, Scan):
        return None, None
    table = dataset.table(query.source.table)
    if table.unit is ROW:
        return table.rows, table.rows
    return (None if table.people is None else table.people * query.source.max_rows), table.people


def _public_numbers(query: Query, dataset: Dataset) -> PublicNumbers:
    """Of all rows of one table, or of one row for each of its people. Everybody in a table has a row there."""
    if dataset.neighbours is not Neighbours.REPLACE_ONE or query.filters or query.keys:
        return PublicNumbers()
    match query.source:
        case Scan(name, max_rows=most):
            table = dataset.table(name)
            if table.unit is ROW:
                return PublicNumbers(table.rows)
            return PublicNumbers(table.people if most == 1 else None, table.people)
        case PerUnit(Scan(name), ()):
            people = dataset.table(name).people
            return PublicNumbers(people, people)
        case _:
            return PublicNumbers()
