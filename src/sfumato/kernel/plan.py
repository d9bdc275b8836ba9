"""BoundedPlan: what may be measured. A closed set of operators, each with a rule in sensitivity.py."""

import hashlib
import json
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import frexp, prod

from sfumato.errors import KernelFault
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.neighbours import PrivacyUnit

MOST_CELLS = 1_000_000
MOST_STEPS = 1 << 53  # engines clamp in doubles before they cast
ROW_WEIGHT_EXPONENT = -16  # a person's rows weigh min(1, r/n) each, in steps of 2**-16

Scalar = None | bool | int | float | str | date


class ColumnType(Enum):
    """What a column of a snapshot holds."""

    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    ID = "id"


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column of the plan's table."""

    name: str
    type: ColumnType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that the analyst wrote."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the allow-list, applied to expressions. Every function is total: see query/functions.py."""

    function: str
    arguments: "tuple[Expression, ...]"


Expression = Column | Literal | Call


class Kind(Enum):
    """What a measurement adds up."""

    COUNT = "count"  # rows, or rows where `value` is not NULL; weighted for a person
    SUM = "sum"  # `value` on its grid, clamped, less `offset`; NULL adds nothing; weighted for a person
    PEOPLE = "people"  # units with at least one row, in at most `max_groups_per_unit` cells each


@dataclass(frozen=True, slots=True)
class Measurement:
    """One noisy vector: an integer for each cell. `lower`, `upper`, `offset` are in steps of 2**exponent, for SUM."""

    name: str
    kind: Kind
    value: Expression | None
    lower: int
    upper: int
    exponent: int
    loss: PureDP | ZCDP  # its share: PureDP is paid with Laplace noise, ZCDP with Gaussian
    offset: int = 0

    def __post_init__(self) -> None:
        if self.kind is Kind.SUM and (self.value is None or not self.lower <= self.upper):
            raise KernelFault("A sum needs a value and bounds.")
        if max(abs(self.lower), abs(self.upper), abs(self.offset)) > MOST_STEPS:
            raise KernelFault("The bounds of a sum are too many steps of its grid.")
        if isinstance(self.loss, ZCDP) and self.loss.delta:
            raise KernelFault("A measurement's share of rho carries no delta.")


@dataclass(frozen=True, slots=True)
class Key:
    """A GROUP BY expression and its public values: rows elsewhere belong to no cell."""

    expression: Expression
    values: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        if not self.values or len(set(map(repr, self.values))) != len(self.values):
            raise KernelFault("A key needs public values, each once.")


@dataclass(frozen=True, slots=True)
class ContributionBound:
    """How much of one unit is let in."""

    max_rows_per_unit: int = 1
    max_groups_per_unit: int = 1

    def __post_init__(self) -> None:
        if min(self.max_rows_per_unit, self.max_groups_per_unit) < 1:
            raise KernelFault("A contribution bound is at least 1.")


@dataclass(frozen=True, slots=True)
class BoundedPlan:
    """Measurements over the cells of one pinned table. Bounding precedes filters."""

    population: str
    table: str
    data_version: str
    unit: PrivacyUnit
    bound: ContributionBound
    filters: tuple[Expression, ...]
    keys: tuple[Key, ...]
    measurements: tuple[Measurement, ...]

    def __post_init__(self) -> None:
        if self.unit.per_row and self.bound != ContributionBound():
            raise KernelFault("A row unit contributes one row to one group.")
        if not self.measurements or self.cells > MOST_CELLS:
            raise KernelFault("A plan has at least one measurement and at most a million cells.")
        if len({each.name for each in self.measurements}) != len(self.measurements):
            raise KernelFault("Measurements have different names.")

    @property
    def cells(self) -> int:
        """The number of cells; the order is that of itertools.product over the keys' values."""
        return prod(len(key.values) for key in self.keys)


LOWERING_VERSION = 1
GRID_BITS = 24


def grid_exponent(lower: float, upper: float, *, whole: bool, per_row: bool) -> int:
    """The public grid of values in [lower, upper]: from declared bounds only, never from epsilon or data.

    Claim: K-24. Bounds are at most 2**(GRID_BITS + 1) steps, or whole numbers of at most 2**53: sums fit 128 bits.
    Requires: finite bounds (catalog, interval arithmetic).
    Relies on: nothing.
    Proof: docs/claims/K-24.md
    Checked by: tests/kernel/test_plan.py::test_grids_come_from_bounds
    """
    reach = max(abs(lower), abs(upper))
    if reach == 0 or (whole and per_row and reach <= MOST_STEPS):
        return 0
    fine = frexp(reach)[1] - 1 - GRID_BITS
    return min(fine, 0) if whole else fine


def digest(plan: BoundedPlan) -> str:
    """The plan's name: equal plans, and only equal plans, have equal digests.

    Claim: K-24. A SHA-256 of the canonical text of every field, types included.
    Requires: nothing.
    Relies on: SHA-256 being collision-free in practice.
    Proof: docs/claims/K-24.md
    Checked by: tests/kernel/test_plan.py::test_digests_tell_plans_apart
    """
    return _hash(plan)


def answer_key(plan: BoundedPlan) -> str:
    """What the plan measures, without what it spends: the key under which answers are stored.

    Claim: K-24. Plans with equal keys measure the same integers on the same data.
    Requires: nothing.
    Relies on: SHA-256 being collision-free in practice.
    Proof: docs/claims/K-24.md
    Checked by: tests/kernel/test_plan.py::test_answer_keys_ignore_what_is_spent
    """
    measured = tuple(
        (each.name, each.kind, each.value, each.lower, each.upper, each.exponent, each.offset)
        for each in plan.measurements
    )
    parts = (plan.population, plan.table, plan.data_version, plan.unit, plan.bound, plan.filters, plan.keys)
    return _hash((LOWERING_VERSION, *parts, measured))


def _hash(thing: object) -> str:
    text = json.dumps(_canonical(thing), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(thing: object) -> object:
    """Nested lists of type names and texts: 1, 1.0, True and '1' all differ."""
    if is_dataclass(thing) and not isinstance(thing, type):
        return [type(thing).__name__, *(_canonical(getattr(thing, field.name)) for field in fields(thing))]
    if isinstance(thing, tuple):
        return ["tuple", *map(_canonical, thing)]
    if isinstance(thing, Enum):
        return [type(thing).__name__, thing.name]
    if thing is None or type(thing) in (bool, int, float, str, date, Decimal, Fraction):
        return [type(thing).__name__, str(thing) if not isinstance(thing, float) else thing.hex()]
    raise KernelFault("A plan holds something that has no canonical text.")
