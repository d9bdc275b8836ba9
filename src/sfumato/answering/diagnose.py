"""Diagnose a question with noisy counts: rows that its filter drops, rows at a bound, people over their row bound."""

from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.accuracy.noise_margins import compute_noise_margin
from sfumato.answering.ask_together import refuse_several
from sfumato.answering.certified_plans import certify_together, replace_shares
from sfumato.answering.desk import Desk
from sfumato.answering.question_record import record_question, write_record
from sfumato.answers.answer import Cost
from sfumato.catalog.columns import Integer, Real
from sfumato.errors import KernelFault, UnsupportedSyntax
from sfumato.ingest.hidden_names import ROWS_OF_UNIT
from sfumato.kernel.certify import BinChoice
from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal, collect_columns
from sfumato.kernel.losses import PureDP
from sfumato.kernel.mechanisms import BoxNoise
from sfumato.kernel.plan import BoundedPlan, Count, Measurement, People
from sfumato.kernel.row_sources import Scan
from sfumato.number_arguments import Number, read_privacy_amount
from sfumato.planning.shares import split_evenly
from sfumato.planning.unit_and_version import find_unit, pin_versions
from sfumato.query.bind import bind
from sfumato.query.dp_options import refuse_epsilon
from sfumato.query.parse import parse

BOUND = "bound "  # before the name of a column


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Noisy shares between 0 and 1. None: the question has no filter, or its unit is a row."""

    filtered: float | None
    at_bounds: dict[str, float]
    people_bounded: float | None
    cost: Cost
    margin: float

    def __str__(self) -> str:
        lines = [
            f"{name}: {share:.1%} of rows are at a bound, or were clamped to it"
            for name, share in self.at_bounds.items()
        ]
        if self.filtered is not None:
            lines.append(f"WHERE drops {self.filtered:.1%} of rows")
        if self.people_bounded is not None:
            lines.append(f"{self.people_bounded:.1%} of people have more rows than max_rows_per_unit")
        lines.append(
            f"Cost: {self.cost}. The counts behind these shares have a margin of ±{self.margin:,.3g} (95 % confidence)."
        )
        return "\n".join(lines)

    __repr__ = __str__


def diagnose(desk: Desk, sql: str, epsilon: Number, analyst: str) -> Diagnosis:
    """Count privately, for one charge, and divide."""
    tree = parse(sql)
    query = bind(tree, desk.dataset)
    refuse_several(query, "diagnose")
    refuse_epsilon(query.dp_options, "a diagnosis has its own")
    if not isinstance(query.source, Scan):
        private = ", ".join(table.name for table in desk.dataset.tables.values() if not table.public)
        hint = f"Diagnose a question about each table by itself, without JOIN, UNION and subqueries: {private}."
        raise UnsupportedSyntax("diagnose", "Only a question about one table can be diagnosed.", hint)
    table = desk.dataset.table(query.source.table)
    read = set().union(*(collect_columns(part.value.expression) for part in query.aggregates if part.value is not None))
    conditions: dict[str, tuple[Expression, ...]] = {"rows": ()}
    if query.filters:
        conditions["kept"] = query.filters
    for name in sorted(read):
        declared = table.columns[name]
        if isinstance(declared, (Integer, Real)) and name != table.count_column:
            column = Column(name, table.column(name).type, declared.nullable)
            ends = (Call("<=", (column, Literal(declared.lower))), Call(">=", (column, Literal(declared.upper))))
            conditions[BOUND + name] = (Call("or", ends),)
    plans = _plan_counts(desk, query.source, conditions, Count(None))
    if isinstance(table.unit, str):
        more = Call(">", (Column(ROWS_OF_UNIT, ColumnType.INTEGER, False), Literal(table.max_rows_per_unit)))
        plans |= _plan_counts(desk, query.source, {"people": (), "more": (more,)}, People())
    record = write_record("diagnose", record_question(tree, query))
    found, cost, margin = _count(desk, plans, epsilon, analyst, record)
    rows = max(found["rows"], 1.0)
    filtered = 1 - found["kept"] / rows if "kept" in found else None
    people = found["more"] / max(found["people"], 1.0) if "more" in found else None
    at_bounds = {
        name.removeprefix(BOUND): _clip(count / rows) for name, count in found.items() if name.startswith(BOUND)
    }
    return Diagnosis(
        None if filtered is None else _clip(filtered),
        at_bounds,
        None if people is None else _clip(people),
        cost,
        margin,
    )


def _clip(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _plan_counts(
    desk: Desk, source: Scan, conditions: dict[str, tuple[Expression, ...]], counted: Count | People
) -> dict[str, BoundedPlan]:
    unit, groups = find_unit(source, desk.dataset)
    count = Measurement("count", counted, PureDP(1))
    plan = BoundedPlan(desk.dataset.population, pin_versions(source, desk.versions), unit, groups, (), (), (count,))
    return {name: replace(plan, filters=filters) for name, filters in conditions.items()}


def _count(
    desk: Desk, plans: dict[str, BoundedPlan], epsilon: Number, analyst: str, record: str
) -> tuple[dict[str, float], Cost, float]:
    shares = split_evenly(PureDP(read_privacy_amount(epsilon, "epsilon")), len(plans))
    priced = [replace_shares(plan, (share,)) for plan, share in zip(plans.values(), shares, strict=True)]
    answered = desk.answer(certify_together(priced), desk.admit(analyst), lambda: record)
    values, margins = {}, []
    for name, released in zip(plans, answered.released, strict=True):
        (measurement,) = released.certificate.measurements
        step = 2.0**measurement.exponent
        values[name] = released.integers[measurement.name][0] * step
        if isinstance(measurement.noise, BinChoice | BoxNoise):
            raise KernelFault("A diagnosis only counts.")
        margins.append(compute_noise_margin(measurement.noise, Fraction(1, 20)) * step)
    return values, answered.receipt.cost, max(margins)
