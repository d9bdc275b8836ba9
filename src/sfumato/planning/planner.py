"""Query + what may be spent -> BoundedPlan: bounds, grids, and the split of the budget.

Every measurement gets an equal share. COUNT(*) and the AVG of a column without NULLs share one noisy count.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor

from sfumato.catalog.model import Dataset
from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.exact import exact_decimal
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.plan import ROW_WEIGHT_EXPONENT, BoundedPlan, Call, Kind, Literal, Measurement, grid_exponent
from sfumato.query.query import Aggregate, Query, Typed

SHARE_DIGITS = Decimal("1e-12")


@dataclass(frozen=True, slots=True)
class Formula:
    """How an aggregate follows from measurements, by name: total, count and squares, around a centre, within bounds."""

    function: str
    total: str | None = None
    count: str | None = None
    squares: str | None = None
    centre: float = 0.0
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan, and for each aggregate of the query how to read it."""

    plan: BoundedPlan
    formulas: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class _Wanted:
    kind: Kind
    value: Typed | None
    lower: int = 0
    upper: int = 0
    exponent: int = 0
    offset: int = 0


def choose_plan(query: Query, loss: PureDP | ZCDP, dataset: Dataset, data_version: str) -> Planned:
    """The measurements that answer the query, sharing `loss` evenly."""
    table = dataset.table(query.table)
    unit = dataset.unit(query.table)
    chooser = _Chooser(per_row=unit.per_row)
    formulas = tuple(chooser.formula(each) for each in query.aggregates)
    shares = split(loss, len(chooser.wanted))
    measurements = tuple(
        Measurement(
            name, each.kind, None if each.value is None else each.value.expression,
            each.lower, each.upper, each.exponent, share, each.offset,
        )
        for (name, each), share in zip(chooser.wanted.items(), shares, strict=True)
    )  # fmt: skip
    plan = BoundedPlan(
        dataset.population,
        table.name,
        data_version,
        unit,
        dataset.bound(query.table),
        query.filters,
        query.keys,
        measurements,
    )
    return Planned(plan, formulas)


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

    def __init__(self, *, per_row: bool) -> None:
        self.per_row = per_row
        self.wanted: dict[str, _Wanted] = {}

    def formula(self, aggregate: Aggregate) -> Formula:
        value = aggregate.value
        match aggregate.function:
            case "COUNT":
                return Formula("COUNT", count=self._count(value))
            case "PEOPLE":
                return Formula("COUNT", count=self._add(_Wanted(Kind.PEOPLE, None)))
            case "SUM" if value is not None:
                return Formula("SUM", total=self._sum(value, centred=False)[0])
            case "AVG" if value is not None:
                total, centre = self._sum(value, centred=True)
                return Formula("AVG", total, self._count(value), None, centre, value.lower, value.upper)
            case "VARIANCE" | "STDDEV" if value is not None:
                total, centre = self._sum(value, centred=True)
                away = Call("-", (value.expression, Literal(centre)))
                reach = max(abs((value.lower or 0) - centre), abs((value.upper or 0) - centre))
                squared = Typed(Call("*", (away, away)), "number", value.nullable, 0.0, reach**2)
                squares = self._sum(squared, centred=False)[0]
                # a sample's variance divides by n - 1, and so reaches n/(n - 1) of the square: at most twice
                return Formula(aggregate.function, total, self._count(value), squares, centre, 0.0, 2 * reach**2)
        raise KernelFault("An aggregate has no plan.")

    def _count(self, value: Typed | None) -> str:
        exponent = 0 if self.per_row else ROW_WEIGHT_EXPONENT
        return self._add(
            _Wanted(Kind.COUNT, value if value is not None and value.nullable else None, exponent=exponent)
        )

    def _sum(self, value: Typed, *, centred: bool) -> tuple[str, float]:
        if value.lower is None or value.upper is None:
            raise KernelFault("A sum without bounds has no plan.")
        exponent = grid_exponent(value.lower, value.upper, whole=value.whole, per_row=self.per_row)
        step = Fraction(2) ** exponent
        lower, upper = (floor(Fraction(end) / step + Fraction(1, 2)) for end in (value.lower, value.upper))
        offset = (lower + upper) // 2 if centred else 0
        name = self._add(_Wanted(Kind.SUM, value, lower, upper, exponent, offset))
        return name, offset * 2.0**exponent

    def _add(self, wanted: _Wanted) -> str:
        for name, each in self.wanted.items():
            if each == wanted:
                return name
        name = f"{wanted.kind.value}{len(self.wanted) + 1}"
        self.wanted[name] = wanted
        return name
