"""What bounds do to data, privately: how many rows stand at their bounds, how many people have more rows than count,
how many rows a filter drops; and bounds that an owner buys."""

from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.accuracy.noise_margins import noise_margin
from sfumato.answering.certified_plans import certify_together
from sfumato.answering.desk import Desk
from sfumato.answering.question_record import record_question, write_record
from sfumato.answers.answer import Cost
from sfumato.catalog.columns import Integer, Real
from sfumato.errors import InvalidParameter, KernelFault, UnsupportedSyntax
from sfumato.kernel.certify import BinChoice
from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal, columns_of
from sfumato.kernel.losses import PureDP
from sfumato.kernel.parameters import Number
from sfumato.kernel.plan import BoundedPlan, Count, Grid, Measurement, People, Quantiles
from sfumato.kernel.row_sources import Scan
from sfumato.number_arguments import privacy_amount
from sfumato.planning.shares import split_evenly
from sfumato.planning.unit_and_version import find_unit, pin_versions
from sfumato.query.bind import bind
from sfumato.query.dp_options import refuse_epsilon
from sfumato.query.parse import parse

ROWS_OF_UNIT = "__sfumato_rows"
OUTER = Fraction(1, 100)  # of the rows, on each side, that bought bounds may leave out
POWERS = 53
BOUND = "bound "


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Noisy shares, each between 0 and 1; None where a question has no such thing."""

    filtered: float | None
    at_bounds: dict[str, float]
    people_bounded: float | None
    cost: Cost
    margin: float

    def __str__(self) -> str:
        lines = [
            f"{name}: {share:.1%} of rows are at a bound, or were beyond it" for name, share in self.at_bounds.items()
        ]
        if self.filtered is not None:
            lines.append(f"WHERE drops {self.filtered:.1%} of rows")
        if self.people_bounded is not None:
            lines.append(f"{self.people_bounded:.1%} of people have more rows than count in full")
        return "\n".join(
            [*lines, f"{self.cost}; counts behind these shares are off by about {self.margin:,.3g} at most"]
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds that about 98 of 100 rows lie within: powers of two, or zero. Declare them, and prepare the data again."""

    column: str
    lower: float
    upper: float
    cost: Cost

    def __str__(self) -> str:
        return f"{self.column}: declare lower = {self.lower:g}, upper = {self.upper:g} ({self.cost})"


def diagnose(desk: Desk, sql: str, epsilon: Number, analyst: str) -> Diagnosis:
    """Noisy counts on one reservation, and what they say of a question's rows."""
    tree = parse(sql)
    query = bind(tree, desk.dataset)
    refuse_epsilon(query.dp_options, "a diagnosis has its own")
    if not isinstance(query.source, Scan):
        raise UnsupportedSyntax("diagnose", "A diagnosis is of a question about one table.", "Ask about each table.")
    table = desk.dataset.table(query.source.table)
    read = set().union(*(columns_of(each.value.expression) for each in query.aggregates if each.value is not None))
    conditions: dict[str, tuple[Expression, ...]] = {"rows": ()}
    if query.filters:
        conditions["kept"] = query.filters
    for name in sorted(read):
        declared = table.columns[name]
        if isinstance(declared, (Integer, Real)):
            column = Column(name, table.column(name).type, declared.nullable)
            ends = (Call("<=", (column, Literal(declared.lower))), Call(">=", (column, Literal(declared.upper))))
            conditions[BOUND + name] = (Call("or", ends),)
    counts = _counts(desk, query.source, conditions, Count(None))
    if isinstance(table.unit, str):
        more = Call(">", (Column(ROWS_OF_UNIT, ColumnType.INTEGER, False), Literal(table.max_rows_per_unit)))
        counts |= _counts(desk, query.source, {"people": (), "more": (more,)}, People())
    found, cost, margin = _count(desk, counts, epsilon, analyst, write_record("diagnose", record_question(tree, query)))
    rows = max(found["rows"], 1.0)
    filtered = 1 - found["kept"] / rows if "kept" in found else None
    people = found["more"] / max(found["people"], 1.0) if "more" in found else None
    at_bounds = {
        name.removeprefix("bound "): count / rows for name, count in found.items() if name.startswith("bound ")
    }
    return Diagnosis(
        None if filtered is None else _share(filtered),
        {name: _share(each) for name, each in at_bounds.items()},
        None if people is None else _share(people),
        cost,
        margin,
    )


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _counts(
    desk: Desk, source: Scan, conditions: dict[str, tuple[Expression, ...]], counted: Count | People
) -> dict[str, BoundedPlan]:
    unit, groups = find_unit(source, desk.dataset)
    count = Measurement("count", counted, PureDP(1))
    plan = BoundedPlan(desk.dataset.population, pin_versions(source, desk.versions), unit, groups, (), (), (count,))
    return {name: replace(plan, filters=filters) for name, filters in conditions.items()}


def _count(
    desk: Desk, plans: dict[str, BoundedPlan], epsilon: Number, analyst: str, record: str
) -> tuple[dict[str, float], Cost, float]:
    shares = split_evenly(PureDP(privacy_amount(epsilon, "epsilon")), len(plans))
    priced = [
        replace(plan, measurements=tuple(replace(each, loss=share) for each in plan.measurements))
        for plan, share in zip(plans.values(), shares, strict=True)
    ]
    answered = desk.answer(certify_together(priced), desk.admit(analyst), lambda: record)
    values, margins = {}, []
    for name, released in zip(plans, answered.released, strict=True):
        (measurement,) = released.certificate.measurements
        step = 2.0**measurement.exponent
        values[name] = released.integers[measurement.name][0] * step
        if isinstance(measurement.noise, BinChoice):
            raise KernelFault("A diagnosis only counts.")
        margins.append(noise_margin(measurement.noise, Fraction(1, 20)) * step)
    return values, answered.receipt.cost, max(margins)


def find_bounds(desk: Desk, column: str, epsilon: Number, table: str | None, analyst: str) -> Bounds:
    """Private quantiles among powers of two: 0, 1, 2, 4, … and their opposites. Nothing is declared by this."""
    names = [each.name for each in desk.dataset.tables.values() if not each.public]
    if table is None and len(names) != 1:
        raise InvalidParameter("table", f"must be one of {', '.join(names) or 'the private tables'}", "nothing")
    about = desk.dataset.table(names[0] if table is None else table)
    if about.public:
        raise InvalidParameter("table", "must be a private table", "a public one", "Its bounds can be read off it.")
    found = about.column(column)
    if found.type not in (ColumnType.INTEGER, ColumnType.REAL):
        raise InvalidParameter("column", "must be an integer or a real column", f"a {found.type.value} column")
    edges = [-(2.0**power) for power in range(POWERS, -1, -1)] + [0.0] + [2.0**power for power in range(POWERS + 1)]
    branches: list[Expression] = []
    for number, edge in enumerate(edges):
        branches += [Call("<=", (found, Literal(edge))), Literal(number)]
    number_of = Call("case", (Call("is null", (found,)), Literal(None), *branches, Literal(len(edges) - 1)))
    source = Scan(about.name, "", about.max_rows_per_unit)
    unit, groups = find_unit(source, desk.dataset)
    loss = PureDP(privacy_amount(epsilon, "epsilon"))
    choice = Quantiles(number_of, Grid(0, len(edges) - 1, 0), (OUTER, 1 - OUTER))
    measured = Measurement("bounds", choice, loss)
    plan = BoundedPlan(desk.dataset.population, pin_versions(source, desk.versions), unit, groups, (), (), (measured,))
    record = write_record("bounds", table=about.name, column=found.name)
    answered = desk.answer(certify_together([plan]), desk.admit(analyst), lambda: record)
    low, high = answered.released[0].integers["bounds"]
    return Bounds(found.name, edges[max(low - 1, 0)], edges[high], answered.receipt.cost)
