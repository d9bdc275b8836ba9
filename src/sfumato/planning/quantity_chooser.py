"""Choose the quantities that answer the aggregates of a query: as few as possible, since they share one loss.

The count and the sum of a value are one quantity where both are wanted. Its count serves COUNT(*) and every AVG of a
column without NULLs (moment_measurements.py). Values that are linear in one another are measured once
(linear_repeats.py), and so are aggregates over disjoint rows (pivots.py). Quantiles of one value share one choice.
Undeclared keys are released with their numbers of people.
"""

import math
from dataclasses import replace
from fractions import Fraction

from sfumato.catalog.dataset import Dataset
from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Call, Expression, Literal, Scalar
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.plan import (
    Choice,
    Count,
    Curve,
    Distinct,
    DistinctSum,
    Extreme,
    Halves,
    Key,
    Keys,
    Mode,
    People,
    Pivot,
    Quantiles,
    Quantity,
    Sum,
    Thirds,
)
from sfumato.kernel.released_steps import number_conditions
from sfumato.kernel.row_sources import derive_extent
from sfumato.planning.formulas import (
    BinFormula,
    CountFormula,
    Formula,
    ListFormula,
    MeanFormula,
    PairFormula,
    SumFormula,
    VarianceFormula,
)
from sfumato.planning.grids import make_bin_grid, make_squared_grid, make_sum_grid
from sfumato.planning.groups import has_one_row_per_group
from sfumato.planning.linear import Linear
from sfumato.planning.linear_repeats import fold_repeats, list_measured
from sfumato.planning.moment_measurements import (
    Moments,
    RowFacts,
    choose_splits,
    read_curve,
    read_halves,
    read_thirds,
)
from sfumato.planning.pair_moments import PAIRS, bound_pair, list_moments, make_product
from sfumato.planning.pivots import PivotGroup, PivotReader, find_pivots
from sfumato.planning.public_numbers import find_largest_numbers, find_public_numbers
from sfumato.planning.value_numbers import bound_different_sum, count_values
from sfumato.query.query import Aggregate, Query, Typed


class QuantityChooser:
    """Collects the quantities that the aggregates of a query need, each once."""

    def __init__(
        self,
        query: Query,
        dataset: Dataset,
        *,
        per_row: bool,
        undeclared: bool,
        pure: bool,
        pivots: bool = True,
        groups: int | None = None,
    ) -> None:
        self.per_row = per_row
        self._counts_people = groups is not None and has_one_row_per_group(query, groups)
        self._query, self._dataset, self._pure = query, dataset, pure
        self.wanted: dict[str, tuple[Quantity, Typed | None]] = {}
        self.ends_of: dict[str, str] = {}  # quantiles -> their intervals
        self.public = find_public_numbers(query, dataset)
        self.most_rows, self.most_people = find_largest_numbers(query, dataset)
        self._reach = derive_extent(query.source).reach
        self.counts_unlisted = False  # of different values: are there any that no list bounds?
        self._moments_of: dict[Typed, Moments] = {}
        self._fractions: dict[Typed, tuple[Fraction, ...]] = {}
        for aggregate in query.aggregates:
            value, fraction = aggregate.value, aggregate.fraction
            if aggregate.function == "QUANTILE" and value is not None and fraction is not None:
                self._fractions[value] = tuple(sorted({*self._fractions.get(value, ()), fraction}))
        self.keys = self._add(Keys()) if undeclared else None
        fixed = self.public.rows is not None
        one_cell = dataset.neighbours is Neighbours.REPLACE_ONE and not query.keys
        rows = RowFacts(per_row, fixed or (undeclared and per_row), fixed, one_cell)
        # Gaussian noise is the same in every direction: parts would gain nothing
        totals = not (one_cell or rows.counted)
        self._pivots = find_pivots(query.aggregates, totals=totals) if pivots else []
        self._opened: dict[tuple[Expression, ...], tuple[PivotReader, dict[Aggregate, Formula]]] = {}
        pivoted = {aggregate for group in self._pivots for aggregate in group.members}
        self._repeats = fold_repeats([aggregate for aggregate in query.aggregates if aggregate not in pivoted])
        measured = [*list_measured(self._repeats), *list_moments(query.aggregates)]
        self.splits = choose_splits(measured, rows) if pure else {}

    def choose_formula(self, aggregate: Aggregate) -> Formula:  # noqa: PLR0911, PLR0912 - one an aggregate
        """Choose the quantities for an aggregate, and how the aggregate is computed from them."""
        for group in self._pivots:
            if aggregate in group.members:
                return self._read_pivot(group, aggregate)
        value, repeat = aggregate.value, self._repeats[aggregate]
        measured = repeat.aggregate.value
        match aggregate.function:
            case "COUNT" if self._counts_people:  # a person has one row in a group: fewer groups cost less
                return CountFormula(Linear.from_vector(self._add(People())), 0.0, self.most_rows, all_rows=True)
            case "COUNT":
                all_rows = value is None or not value.nullable
                return CountFormula(self._find_count(measured), 0.0, self.most_rows, value, all_rows)
            case "PEOPLE" if self.public.people is not None:
                return CountFormula(Linear((), Fraction(self.public.people)))
            case "PEOPLE":
                counted = Linear.from_vector(self.keys or self._add(People()))
                return CountFormula(counted, 1.0 if self.keys else 0.0, self.most_people)
            case "COUNT DISTINCT" if value is not None:
                return self._count_different(value, aggregate.also)
            case "SUM DISTINCT" if value is not None:
                total, _ = self._add_different(value, centred=False)
                return SumFormula(total, value, *bound_different_sum(value), different=True)
            case "AVG DISTINCT" if value is not None:
                total, centre = self._add_different(value, centred=True)
                return MeanFormula(self._count_different(value).count, total, float(centre), value.lower, value.upper)
            case "SUM" if value is not None and measured is not None:
                total = self._read_sum(measured).times(repeat.factor)
                if repeat.shift:
                    total = total.plus(self._find_count(measured), repeat.shift)
                return SumFormula(total, value, *self._bound_sum(value))
            case "AVG" if value is not None and measured is not None:
                found = self._find_moments(measured).rescale(repeat.factor, repeat.shift)
                return MeanFormula(found.count, found.total, float(found.centre), value.lower, value.upper)
            case "VARIANCE" | "STDDEV" if value is not None and measured is not None:
                found = self._find_squares(measured).rescale(repeat.factor, repeat.shift)
                return _read_variance(value, found, root=aggregate.function == "STDDEV")
            case "QUANTILE" if value is not None and aggregate.fraction is not None:
                fractions = self._fractions[value]
                quantiles = Quantiles(value.expression, make_bin_grid(value), fractions)
                formula = self._choose_bin(value, quantiles, fractions.index(aggregate.fraction), aggregate.since)
                return formula if aggregate.since is not None else self._add_ends(formula, value, quantiles)
            case "MIN" | "MAX" if value is not None:
                extreme = Extreme(value.expression, make_bin_grid(value), aggregate.function == "MAX")
                return self._choose_bin(value, extreme, 0, aggregate.since)
            case function if function in PAIRS and value is not None:
                return self._read_pair(function, value, aggregate.also[0])
            case "MODE" | "TOP_K" if value is not None and value.values:
                name = self._add(Mode(value.expression, aggregate.most, value.values), value)
                return ListFormula(name, value.values, aggregate.most, aggregate.function == "TOP_K")
        raise KernelFault("An aggregate has no plan.")

    def _read_pivot(self, group: PivotGroup, aggregate: Aggregate) -> Formula:
        """An aggregate over the rows of a condition, read from the measurement of all conditions."""
        if group.conditions not in self._opened:
            self._opened[group.conditions] = self._open_pivot(group)
        reader, formulas = self._opened[group.conditions]
        (found, places), value = group.members[aggregate], aggregate.value
        formula = reader.read(formulas[found.aggregate], places)
        if isinstance(formula, CountFormula) and aggregate.function == "COUNT":
            return CountFormula(formula.count, 0.0, self.most_rows, value, all_rows=value is None)
        if isinstance(formula, CountFormula | SumFormula) and value is not None:
            total = formula.count if isinstance(formula, CountFormula) else formula.total
            return SumFormula(total.times(found.factor), value, *self._bound_sum(value))
        return formula

    def _open_pivot(self, group: PivotGroup) -> tuple[PivotReader, dict[Aggregate, Formula]]:
        """Choose the quantities for one of the conditions, and measure each of them for all conditions."""
        inner = tuple(dict.fromkeys(found.aggregate for found, _ in group.members.values()))
        keys = (*self._query.keys, number_conditions(group.conditions))
        query = replace(self._query, aggregates=inner, keys=keys)
        chooser = QuantityChooser(
            query, self._dataset, per_row=self.per_row, undeclared=False, pure=self._pure, pivots=False
        )
        formulas = {aggregate: chooser.choose_formula(aggregate) for aggregate in inner}
        names: dict[str, tuple[str, int]] = {}
        for name, (part, value) in chooser.wanted.items():
            if not isinstance(part, Count | Sum | Halves | Thirds):
                raise KernelFault("A quantity is not measured for each of several conditions.")
            names[name] = (self._add(Pivot(part, group.conditions), value), part.width)
        return PivotReader(names), formulas

    def _read_pair(self, function: str, y: Typed, x: Typed) -> PairFormula:
        """Measure the moments that a statistic of two values needs: those of x, what is missing of y, and products."""
        needed = PAIRS[function]
        of_y: Moments | None = None
        if "yy" in needed:
            of_y = self._find_squares(y)
        found = self._find_squares(x) if "xx" in needed else self._find_moments(x)
        if of_y is not None:
            total, centre = of_y.total, of_y.centre
        else:
            total, centre = self._find_total(y) if "xy" in needed else (Linear(()), Fraction(0))
        products = None
        if "xy" in needed:
            products, _ = self._measure_sum(make_product(y, centre, x, found.centre), centred=False)
        squares = None if of_y is None else of_y.squares
        centres = (float(centre), float(found.centre))
        return PairFormula(
            function, found.count, total, found.total, squares, found.squares if "xx" in needed else None, products,
            centres, bound_pair(function, y, x),
        )  # fmt: skip

    def _find_total(self, value: Typed) -> tuple[Linear, Fraction]:
        """The sum of differences from a centre, without a count."""
        if value in self.splits:
            found = self._split(value)
            return found.total, found.centre
        return self._measure_sum(value, centred=True)

    def _count_different(self, value: Typed, also: tuple[Typed, ...] = ()) -> CountFormula:
        keys = tuple(self._list_values(measured_value) for measured_value in (value, *also))
        return CountFormula(Linear.from_vector(self._add(Distinct(keys), value)), 0.0, count_values((value, *also)))

    def _add_different(self, value: Typed, *, centred: bool) -> tuple[Linear, Fraction]:
        grid = make_sum_grid(value, per_row=True)  # a different value weighs 1
        offset = grid.middle if centred else 0
        name = self._add(DistinctSum(self._list_values(value), grid, offset), value)
        return Linear.from_vector(name), offset * Fraction(2) ** grid.exponent

    def _list_values(self, value: Typed) -> Key:
        """The expression, with its possible values if they are so few that they bound what one person adds."""
        self.counts_unlisted = self.counts_unlisted or value.values is None
        few = value.values is not None and len(value.values) <= self._reach
        return Key(value.expression, value.values if few else None)

    def _choose_bin(self, value: Typed, choice: Quantiles | Extreme, place: int, since: Scalar) -> BinFormula:
        name, grid = self._add(choice, value), choice.grid
        step = 2.0**grid.exponent
        return BinFormula(name, place, choice.width, grid.lower * step, step, value.upper, since)

    def _add_ends(self, formula: BinFormula, value: Typed, quantiles: Quantiles) -> BinFormula:
        """Measure the ends of an interval too, if the question asks for intervals of quantiles."""
        wanted = self._query.quantile_intervals
        if wanted is None:
            return formula
        ends = self._add(replace(quantiles, miss=wanted.miss / 2), value)
        self.ends_of[formula.chosen] = ends
        rounding = 0.0 if value.whole and formula.step == 1 else formula.step / 2
        return replace(formula, ends=ends, lower=value.lower, rounding=rounding)

    def _find_count(self, value: Typed | None) -> Linear:
        """Find a count that is public or measured anyway (with the keys, or with a split value); else measure one."""
        if value is not None and value.nullable:
            return self._split(value).count if value in self.splits else self._measure_count(value)
        if self.public.rows is not None:
            return Linear((), Fraction(self.public.rows))
        if self.keys and self.per_row:
            return Linear.from_vector(self.keys)
        split = sorted(
            (candidate for candidate in self.splits if not candidate.nullable),
            key=lambda candidate: self.splits[candidate].__name__,
        )
        return self._split(split[0]).count if split else self._measure_count(None)

    def _measure_count(self, value: Typed | None) -> Linear:
        return Linear.from_vector(self._add(Count(None if value is None else value.expression), value))

    def _read_sum(self, value: Typed) -> Linear:
        """The sum of a value; where the sum of differences from a centre is measured, count times centre is added."""
        if value not in self.splits and (self.public.rows is None or value.nullable):
            return self._measure_sum(value, centred=False)[0]
        found = self._find_moments(value)
        return found.total.plus(found.count, found.centre)

    def _find_moments(self, value: Typed) -> Moments:
        if value in self.splits:
            return self._split(value)
        total, centre = self._measure_sum(value, centred=True)
        return Moments(self._find_count(value), total, None, centre)

    def _find_squares(self, value: Typed) -> Moments:
        if value in self.splits:
            return self._split(value)
        total, centre = self._measure_sum(value, centred=True)
        away = Call("-", (value.expression, Literal(float(centre))))
        reach = max(abs((value.lower or 0) - float(centre)), abs((value.upper or 0) - float(centre)))
        squared = Typed(Call("*", (away, away)), "number", value.nullable, 0.0, reach**2)
        return Moments(self._find_count(value), total, self._measure_sum(squared, centred=False)[0], centre)

    def _split(self, value: Typed) -> Moments:
        if value not in self._moments_of:
            if self.splits[value] is Halves:
                halves = Halves(value.expression, make_sum_grid(value, per_row=self.per_row))
                found = read_halves(self._add(halves, value), halves.grid, per_row=self.per_row)
            elif self.splits[value] is Thirds:
                thirds = Thirds(value.expression, make_squared_grid(value))
                found = read_thirds(self._add(thirds, value), thirds.grid)
            else:
                curve = Curve(value.expression, make_squared_grid(value))
                found = read_curve(self._add(curve, value), curve.grid, self.public.rows or 0)
            self._moments_of[value] = found
        return self._moments_of[value]

    def _measure_sum(self, value: Typed, *, centred: bool) -> tuple[Linear, Fraction]:
        grid = make_sum_grid(value, per_row=self.per_row)
        offset = grid.middle if centred else 0
        name = self._add(Sum(value.expression, grid, offset), value)
        return Linear.from_vector(name), offset * Fraction(2) ** grid.exponent

    def _bound_sum(self, value: Typed) -> tuple[float | None, float | None]:
        """The smallest and the largest possible sum, where the number of rows is bounded."""
        lower, upper = value.lower or 0.0, value.upper or 0.0
        if self.public.rows is not None and not value.nullable:
            return self.public.rows * lower, self.public.rows * upper
        rows = math.inf if self.most_rows is None else self.most_rows
        least, most = (rows * lower if lower < 0 else 0.0), (rows * upper if upper > 0 else 0.0)
        return (None if math.isinf(least) else least), (None if math.isinf(most) else most)

    def _add(self, quantity: Quantity, value: Typed | None = None) -> str:
        """Name a quantity. If two aggregates need the same quantity, it is measured once, unless the types differ."""
        for name, wanted in self.wanted.items():
            if wanted == (quantity, value):
                return name
        name = f"{name_kind(quantity)}{len(self.wanted) + 1}"
        self.wanted[name] = (quantity, value)
        return name


def _read_variance(value: Typed, found: Moments, *, root: bool) -> VarianceFormula:
    centre, lower, upper = float(found.centre), value.lower or 0, value.upper or 0
    reach = max(abs(lower - centre), abs(upper - centre))
    # a sample's variance divides by n - 1, and so reaches n/(n - 1) of the square: at most twice
    rows = 2 if found.count.terms else max(int(found.count.constant), 2)
    largest = (upper - lower) ** 2 / 4 * rows / (rows - 1)
    if found.squares is None:
        raise KernelFault("A variance is read from squares.")
    return VarianceFormula(found.count, found.total, found.squares, reach, largest, root)


def name_kind(quantity: Quantity) -> str:
    """The word for a quantity in digests, in names of measurements and in disclosures."""
    return "choice" if isinstance(quantity, Choice) else type(quantity).__name__.lower()
