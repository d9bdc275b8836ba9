"""BoundedPlan: what may be measured. A closed set of operators, each with a rule in sensitivity.py."""

import hashlib
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import frexp, prod

from sfumato.errors import KernelFault
from sfumato.kernel.canonical_text import canonical_text
from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal, Scalar
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.kernel.neighbours import PrivacyUnit
from sfumato.kernel.row_sources import Source, extent

MOST_CELLS = 1_000_000
MOST_BINS = 1 << 16
MOST_CHOSEN = 100
MOST_IN_BINS = 1 << 28  # cells times bins of a choice
MOST_STEPS = 1 << 53  # engines clamp in doubles before they cast
MOST_SPAN = 1 << 15  # of thirds and curves, in steps: they are squared
ROW_WEIGHT_EXPONENT = -16  # a person's rows weigh min(1, r/n) each, in steps of 2**-16


class Kind(Enum):
    """What a measurement adds up."""

    COUNT = "count"  # rows, or rows where `value` is not NULL; weighed for a person
    SUM = "sum"  # `value` on its grid, clamped, less `offset`; NULL adds nothing; weighed for a person
    PEOPLE = "people"  # units with at least one row, in at most `max_groups_per_unit` cells each
    KEYS = "keys"  # PEOPLE of every key that the data names: a key comes out only if enough people hold it
    CHOICE = "choice"  # one of public bins, by the weights of the rows in each
    HALVES = "halves"  # a row's weight below and above `value`: its count and its sum together (split_sums.py)
    THIRDS = "thirds"  # the same of the square: count, sum and squares together
    CURVE = "curve"  # sum and squares together, of a public number of rows


PARTS = {Kind.HALVES: 2, Kind.THIRDS: 3, Kind.CURVE: 2}  # how many
SQUARED = (Kind.THIRDS, Kind.CURVE)
OF_A_VALUE = (Kind.SUM, Kind.CHOICE, *PARTS)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Values below which these fractions of the rows lie."""

    fractions: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Extreme:
    """The largest value, or the smallest, that enough rows reach."""

    largest: bool


@dataclass(frozen=True, slots=True)
class Mode:
    """The `most` values, of a public list, that most rows have."""

    most: int
    values: tuple[Scalar, ...]


Choice = Quantiles | Extreme | Mode


@dataclass(frozen=True, slots=True)
class Measurement:
    """One noisy vector: an integer for each cell, or `width` of them. `lower`, `upper`, `offset`: steps of 2**exponent.

    A choice's integers are bins: 0 is `lower`, or the first value of a mode.
    """

    name: str
    kind: Kind
    value: Expression | None
    lower: int
    upper: int
    exponent: int
    loss: PureDP | ApproxDP | ZCDP  # its share: PureDP is paid with Laplace noise, ZCDP with Gaussian, ApproxDP by KEYS
    offset: int = 0
    choice: Choice | None = None

    def __post_init__(self) -> None:
        if self.kind in OF_A_VALUE and (self.value is None or not self.lower <= self.upper):
            raise KernelFault("A sum, a choice and parts need a value and bounds.")
        if self.kind in SQUARED and self.upper - self.lower > MOST_SPAN:
            raise KernelFault("Squares are of few enough steps.")
        if self.kind in PARTS and not isinstance(self.loss, PureDP):
            raise KernelFault("Parts share a pure loss.")
        if max(abs(self.lower), abs(self.upper), abs(self.offset)) > MOST_STEPS:
            raise KernelFault("The bounds of a sum are too many steps of its grid.")
        if isinstance(self.loss, ZCDP) and self.loss.delta:
            raise KernelFault("A measurement's share of rho carries no delta.")
        if isinstance(self.loss, ApproxDP) != (self.kind is Kind.KEYS):
            raise KernelFault("Keys that the data names, and nothing else, spend a delta.")
        if (self.choice is not None) != (self.kind is Kind.CHOICE):
            raise KernelFault("A choice, and nothing else, has bins.")
        if self.choice is not None and not (1 <= self.bins <= MOST_BINS and 1 <= self.width <= MOST_CHOSEN):
            raise KernelFault("A choice has few enough bins, and chooses few enough.")

    @property
    def bins(self) -> int:
        """The number of bins of a choice."""
        return len(self.choice.values) if isinstance(self.choice, Mode) else self.upper - self.lower + 1

    @property
    def width(self) -> int:
        """How many integers it gives for each cell."""
        match self.choice:
            case Quantiles(fractions):
                return len(fractions)
            case Mode(most):
                return most
            case _:
                return PARTS.get(self.kind, 1)


@dataclass(frozen=True, slots=True)
class Key:
    """A GROUP BY expression and its public values; rows elsewhere belong to no cell. None: the data names them."""

    expression: Expression
    values: tuple[Scalar, ...] | None

    def __post_init__(self) -> None:
        if self.values is None:
            return
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
    """Measurements over the cells of a source. Bounding precedes filters."""

    population: str
    source: Source
    unit: PrivacyUnit
    max_groups_per_unit: int
    filters: tuple[Expression, ...]
    keys: tuple[Key, ...]
    measurements: tuple[Measurement, ...]
    repeat: int = 0  # how often the same was released before: another release of it is another plan

    def __post_init__(self) -> None:
        reached = extent(self.source)
        if not reached.private:
            raise KernelFault("A plan is about a private source.")
        if self.max_groups_per_unit < 1:
            raise KernelFault("A unit is in at least one group.")
        if self.unit.per_row and (self.max_groups_per_unit > 1 or not reached.single_rows):
            raise KernelFault("A row unit contributes one row to one group.")
        kinds = {each.kind for each in self.measurements}
        if self.unit.per_row and reached.reach > 1 and kinds & {Kind.PEOPLE, Kind.KEYS}:
            raise KernelFault("A row that became several cannot be counted as one person.")
        if self.cells is None and not self.unit.per_row and reached.rows_met is None:
            raise KernelFault("Undeclared keys read a bounded number of rows of one unit.")
        most_bins = max((each.bins for each in self.measurements if each.choice is not None), default=1)
        if (self.cells or 1) * most_bins > max(MOST_IN_BINS, MOST_CELLS):
            raise KernelFault("A choice has few enough cells and bins.")
        if not self.measurements or (self.cells or 0) > MOST_CELLS:
            raise KernelFault("A plan has at least one measurement and at most a million cells.")
        if len({each.name for each in self.measurements}) != len(self.measurements):
            raise KernelFault("Measurements have different names.")
        if sum(each.kind is Kind.KEYS for each in self.measurements) != (self.cells is None):
            raise KernelFault("Keys that the data names are released by one measurement.")

    @property
    def cells(self) -> int | None:
        """The number of cells, in the order of itertools.product over the keys' values; None: the data names them."""
        declared = [len(key.values) for key in self.keys if key.values is not None]
        return prod(declared) if len(declared) == len(self.keys) else None

    @property
    def reach(self) -> int:
        """The most that the weights of one unit's rows add up to."""
        return extent(self.source).reach


LOWERING_VERSION = 3
GRID_BITS = 24


def grid_exponent(lower: float, upper: float, *, whole: bool, per_row: bool) -> int:
    """The public grid of values in [lower, upper]: from declared bounds only, never from epsilon or data.

    Claim: K-24. Bounds are at most 2**(GRID_BITS + 1) steps, or whole numbers of at most 2**53: sums fit 128 bits.
    Requires: finite bounds (catalog, interval arithmetic).
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
    Relies on: SHA-256 being collision-free in practice.
    Checked by: tests/kernel/test_plan.py::test_digests_tell_plans_apart
    """
    return _hash(plan)


def answer_key(plan: BoundedPlan) -> str:
    """What the plan measures, without what it spends: the key under which answers are stored.

    Claim: K-24. Plans with equal keys measure the same integers on the same data.
    Relies on: SHA-256 being collision-free in practice.
    Checked by: tests/kernel/test_plan.py::test_answer_keys_ignore_what_is_spent
    """
    measured = tuple(
        (each.name, each.kind, each.value, each.lower, each.upper, each.exponent, each.offset, each.choice)
        for each in plan.measurements
    )
    parts = (plan.population, plan.source, plan.unit, plan.max_groups_per_unit, plan.filters, plan.keys)
    return _hash((LOWERING_VERSION, *parts, measured))


_ATOMS = (type(None), bool, int, float, str, date, datetime, Decimal, Fraction)
_FIELDS: dict[type, tuple[str, ...]] = {}  # of the plan's own classes, found once


def _hash(thing: object) -> str:
    return hashlib.sha256(canonical_text(_canonical(thing)).encode()).hexdigest()


def _canonical(thing: object) -> object:
    """Nested lists of type names and texts: 1, 1.0, True and '1' all differ."""
    kind = type(thing)
    if kind in _ATOMS:
        return [kind.__name__, thing.hex() if isinstance(thing, float) else str(thing)]
    if isinstance(thing, tuple):
        return ["tuple", *map(_canonical, thing)]
    if isinstance(thing, Enum):
        return [kind.__name__, thing.name]
    if isinstance(thing, Call):  # the unit beside the name, as ledgers of earlier versions have it
        name = thing.function if thing.unit is None else f"{thing.function} {thing.unit}"
        return ["Call", _canonical(name), _canonical(thing.arguments)]
    return [kind.__name__, *[_canonical(getattr(thing, name)) for name in _fields_of(kind)]]


def _fields_of(kind: type) -> tuple[str, ...]:
    if kind not in _FIELDS:
        if not is_dataclass(kind):
            raise KernelFault("A plan holds something that has no canonical text.")
        _FIELDS[kind] = tuple(field.name for field in fields(kind))
    return _FIELDS[kind]


__all__ = [
    "BoundedPlan", "Call", "Choice", "Column", "ColumnType", "ContributionBound", "Expression",
    "Extreme", "Key", "Kind", "Literal", "Measurement", "Mode", "Quantiles",
    "Scalar", "answer_key", "digest", "grid_exponent",
]  # fmt: skip
