"""Buy a contribution bound: the rows of one person that most people keep to.

Each candidate is a truncation: at most so many rows of one person. The race begins at the largest. It stops at the
first candidate that enough people reach, by a private comparison with noise on both sides (docs/claims/K-32.md). The
number of people who reach it is a count of people, so one person changes it by 1, however many rows they have.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.accuracy.choice_margins import compute_bin_margin
from sfumato.answering.certified_plans import certify_together
from sfumato.answering.desk import Desk
from sfumato.answering.question_record import write_record
from sfumato.answers.answer import Cost
from sfumato.catalog.dataset import Dataset, Table
from sfumato.errors import InvalidParameter
from sfumato.kernel.bin_choice import ExtremeChoice
from sfumato.kernel.certify import Certificate, certify
from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal
from sfumato.kernel.losses import PureDP
from sfumato.kernel.neighbours import ROW
from sfumato.kernel.plan import BoundedPlan, Extreme, Grid, Measurement
from sfumato.kernel.row_sources import PerUnit, Scan, UnitColumn
from sfumato.number_arguments import Number, read_privacy_amount
from sfumato.planning.unit_and_version import find_unit, pin_versions

CANDIDATES = (1, 2, *(size << power for power in range(19) for size in (3, 4)))  # 1, 2, 3, 4, 6, 8, 12, ... 2**20
CONFIDENCE = Fraction(95, 100)


@dataclass(frozen=True, slots=True)
class Cap:
    """A contribution bound for a table. The owner still has to declare it, and to prepare the data again."""

    table: str
    max_rows_per_unit: int
    people_above: int  # with 95 % confidence, no more people have more rows
    cost: Cost

    def __str__(self) -> str:
        return (
            f"{self.table}: declare max_rows_per_unit = {self.max_rows_per_unit}. With 95 % confidence at most "
            f"{self.people_above:,} people have more rows ({self.cost})"
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class CapPreview:
    """What buying a contribution bound would cost, and how sure it would be. No data is read."""

    table: str
    people_above: int  # with 95 % confidence, no more people will have more rows than the bound that is found
    cost: Cost

    def __str__(self) -> str:
        return (
            f"{self.table}: choosing max_rows_per_unit costs {self.cost}, once, whatever is chosen. With 95 % "
            f"confidence at most {self.people_above:,} people will have more rows than that. Nothing was spent."
        )

    __repr__ = __str__


def preview_cap(dataset: Dataset, table: str | None, epsilon: Number) -> CapPreview:
    """The cost and the margin of `find_cap`, from the declarations alone."""
    about = _find_table(dataset, table)
    certificate = certify(_plan_race(dataset, about, epsilon))
    return CapPreview(about.name, _count_above(certificate), Cost.from_loss(certificate.loss))


def find_cap(desk: Desk, table: str | None, epsilon: Number, analyst: str) -> Cap:
    """Choose the smallest candidate that nearly everybody keeps to. The cost is epsilon, whatever is chosen."""
    about = _find_table(desk.dataset, table)
    race = _plan_race(desk.dataset, about, epsilon)
    certified = certify_together([replace(race, source=pin_versions(race.source, desk.versions))])
    record = write_record("cap", table=about.name)
    answered = desk.answer(certified, desk.admit(analyst), lambda: record)
    (chosen,) = answered.released[0].integers["cap"]
    return Cap(about.name, CANDIDATES[chosen], _count_above(answered.released[0].certificate), answered.receipt.cost)


def _plan_race(dataset: Dataset, about: Table, epsilon: Number) -> BoundedPlan:
    rows = UnitColumn("rows", "count", None, 0, CANDIDATES[-1], 0)
    source = PerUnit(Scan(about.name, "", about.max_rows_per_unit), (), (rows,))
    counted = Column("rows", ColumnType.INTEGER, nullable=False)
    branches: list[Expression] = []
    for number, most in enumerate(CANDIDATES):
        branches += [Call("<=", (counted, Literal(most))), Literal(number)]
    number_of = Call("case", (*branches, Literal(len(CANDIDATES) - 1)))
    unit, groups = find_unit(source, dataset)
    race = Extreme(number_of, Grid(0, len(CANDIDATES) - 1, 0), largest=True)
    measured = Measurement("cap", race, PureDP(read_privacy_amount(epsilon, "epsilon")))
    return BoundedPlan(dataset.population, source, unit, groups, (), (), (measured,))


def _count_above(certificate: Certificate) -> int:
    """With 95 % confidence, no more people are above the chosen candidate."""
    (part,) = certificate.measurements
    if not isinstance(part.noise, ExtremeChoice):
        raise AssertionError("a race is a choice of the largest")
    return int(compute_bin_margin(part.noise, CONFIDENCE) * 2.0**part.weight_exponent)


def _find_table(dataset: Dataset, table: str | None) -> Table:
    private = [candidate for candidate in dataset.tables.values() if not candidate.public]
    if table is None and len(private) != 1:
        names = ", ".join(candidate.name for candidate in private) or "the private tables"
        raise InvalidParameter("table", f"must be one of {names}", "nothing")
    about = private[0] if table is None else dataset.table(table)
    if about.public or about.unit is ROW:
        kind = "a public one" if about.public else "one in which each row is a person"
        hint = "Such a table needs no bound on the rows of one person."
        raise InvalidParameter("table", "must be a table whose people have ids", kind, hint)
    return about
