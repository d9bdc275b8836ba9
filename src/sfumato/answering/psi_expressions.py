"""Functions of a row for statistical queries: an SQL expression, clamped to 0 to 1, as a sum that can be measured."""

from dataclasses import dataclass, field

from sfumato.accuracy.query_tolerances import PSI_BITS
from sfumato.answering.desk import Desk
from sfumato.catalog.dataset import Dataset
from sfumato.errors import InvalidParameter, UnsupportedSyntax, describe_kind
from sfumato.kernel.expressions import Expression
from sfumato.kernel.losses import PureDP
from sfumato.kernel.plan import BoundedPlan, Grid, Measurement, Sum
from sfumato.planning.unit_and_version import find_unit, pin_versions
from sfumato.query.bind import bind
from sfumato.query.frame import Frame, count, total
from sfumato.query.source_outline import check_work

UNIT_GRID = Grid(0, 1 << PSI_BITS, -PSI_BITS)  # values from 0 to 1


@dataclass(frozen=True, slots=True)
class Psi:
    """A bound expression over the rows of a table. Equal expressions are one query, however they are written."""

    expression: Expression
    caution: str | None = field(compare=False)  # set if the declared bounds allow values outside 0 to 1

    def measure(self, name: str, share: PureDP) -> Measurement:
        """The sum of the clamped expression. NULL counts as 0."""
        return Measurement(name, Sum(self.expression, UNIT_GRID), share)


def bind_psi(psi: str, dataset: Dataset, table: str) -> Psi:
    """Parse and bind an SQL expression over the declared columns of a table. A condition counts as 0 or 1."""
    if not isinstance(psi, str):
        raise InvalidParameter(
            "psi", "must be an SQL expression", describe_kind(psi), "For example 'age > 40 AND smoker'."
        )
    query = bind(Frame(dataset, table).agg(total=total(psi)).build_tree(), dataset)
    if len(query.aggregates) != 1 or query.filters or query.keys or query.aggregates[0].value is None:
        raise UnsupportedSyntax("syntax", "A statistical query is one expression over the columns of a row.")
    value = query.aggregates[0].value
    return Psi(value.expression, _describe_clamping(psi, value.lower, value.upper))


def _describe_clamping(psi: str, lower: float | None, upper: float | None) -> str | None:
    if lower is not None and upper is not None and lower >= 0 and upper <= 1:
        return None
    return (
        f"The declared bounds allow values of {psi} from {lower:g} to {upper:g}. Values outside 0 to 1 are clamped, "
        "so the answer is the average of the clamped values."
    )


def plan_sums(desk: Desk, table: str, measurements: tuple[Measurement, ...]) -> BoundedPlan:
    """One plan, and so one scan, for several measurements of all rows of a table."""
    source = pin_versions(
        bind(Frame(desk.dataset, table).agg(n=count()).build_tree(), desk.dataset).source, desk.versions
    )
    check_work(source, groups_undeclared_keys=False)
    unit, groups = find_unit(source, desk.dataset)
    return BoundedPlan(desk.dataset.population, source, unit, groups, (), (), measurements)
