"""Buy bounds for a column whose declared bounds are wide: two private quantiles among powers of two."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.answering.certified_plans import certify_together
from sfumato.answering.desk import Desk
from sfumato.answering.question_record import write_record
from sfumato.answers.answer import Cost
from sfumato.errors import InvalidParameter
from sfumato.kernel.expressions import Call, ColumnType, Expression, Literal
from sfumato.kernel.losses import PureDP
from sfumato.kernel.plan import BoundedPlan, Grid, Measurement, Quantiles
from sfumato.kernel.row_sources import Scan
from sfumato.number_arguments import Number, read_privacy_amount
from sfumato.planning.unit_and_version import find_unit, pin_versions

OUTSIDE = Fraction(1, 100)  # of the rows, below and above the bounds
POWERS = 53


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds that hold for about 98 % of rows: powers of two, or zero. Declare them, and prepare the data again."""

    column: str
    lower: float
    upper: float
    cost: Cost

    def __str__(self) -> str:
        return f"{self.column}: declare lower = {self.lower:g}, upper = {self.upper:g} ({self.cost})"

    __repr__ = __str__


def find_bounds(desk: Desk, column: str, epsilon: Number, table: str | None, analyst: str) -> Bounds:
    """Choose two private quantiles among 0, ±1, ±2, ±4, … The owner still has to declare them."""
    names = [private.name for private in desk.dataset.tables.values() if not private.public]
    if table is None and len(names) != 1:
        raise InvalidParameter("table", f"must be one of {', '.join(names) or 'the private tables'}", "nothing")
    about = desk.dataset.table(names[0] if table is None else table)
    if about.public:
        raise InvalidParameter(
            "table", "must be a private table", "a public one", "Read its bounds from the table itself."
        )
    found = about.column(column)
    if found.type not in (ColumnType.INTEGER, ColumnType.REAL):
        raise InvalidParameter("column", "must be an integer or a real column", f"a {found.type.value} column")
    if found.name == about.count_column:
        raise InvalidParameter(
            "column", "must not be the count column", found.name, "It is 1 for each person, and needs no bounds."
        )
    edges = [-(2.0**power) for power in range(POWERS, -1, -1)] + [0.0] + [2.0**power for power in range(POWERS + 1)]
    branches: list[Expression] = []
    for number, edge in enumerate(edges):
        branches += [Call("<=", (found, Literal(edge))), Literal(number)]
    number_of = Call("case", (Call("is null", (found,)), Literal(None), *branches, Literal(len(edges) - 1)))
    source = Scan(about.name, "", about.max_rows_per_unit)
    unit, groups = find_unit(source, desk.dataset)
    loss = PureDP(read_privacy_amount(epsilon, "epsilon"))
    choice = Quantiles(number_of, Grid(0, len(edges) - 1, 0), (OUTSIDE, 1 - OUTSIDE))
    measured = Measurement("bounds", choice, loss)
    plan = BoundedPlan(desk.dataset.population, pin_versions(source, desk.versions), unit, groups, (), (), (measured,))
    record = write_record("bounds", table=about.name, column=found.name)
    answered = desk.answer(certify_together([plan]), desk.admit(analyst), lambda: record)
    low, high = answered.released[0].integers["bounds"]
    return Bounds(found.name, edges[max(low - 1, 0)], edges[high], answered.receipt.cost)
