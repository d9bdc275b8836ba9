"""BoundedPlan: what may be measured. A closed union of quantities, each with a rule in sensitivity.py.

To add a quantity: add its class, with the number of its integers for a cell (`width`), to `Quantity`.
mypy then names the places that need a case: released_steps.py, sensitivity.py, engines/measured_cells.py,
engines/reference, answers/column_margins.py, answers/measurement_summary.py and lab/auditing. Three places have no
such check: certify.py chooses its noise, engines/sql/row_totals.py its SQL, and planning/planner.py plans it.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar

from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Expression, Scalar
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PureDP
from sfumato.kernel.neighbours import PrivacyUnit
from sfumato.kernel.row_sources import Source, derive_extent
from sfumato.kernel.strategies import Matrix, check_matrices

MOST_STEPS = 1 << 53  # engines clamp in doubles before they cast
MOST_SPAN = 1 << 15  # of Thirds and Curve, in steps: they are squared
LOWERING_VERSION = 4  # of what an engine computes for a plan: raised when that changes
ROW_WEIGHT_EXPONENT = -16  # a person's rows weigh min(1, r/n) each, in steps of 2**-16
KEY_WEIGHT_EXPONENT = -16  # a person's n undeclared keys weigh 1/sqrt(n) each, in steps of 2**-16


@dataclass(frozen=True, slots=True)
class Grid:
    """The bounds of a value, in steps of 2**exponent."""

    lower: int
    upper: int
    exponent: int

    def __post_init__(self) -> None:
        if not -MOST_STEPS <= self.lower <= self.upper <= MOST_STEPS:
            raise KernelFault("Bounds are ordered, and not too many steps of their grid.")

    @property
    def middle(self) -> int:
        """The step halfway between the bounds, rounded down."""
        return (self.lower + self.upper) // 2

    @property
    def span(self) -> int:
        """The number of steps from the lower bound to the upper."""
        return self.upper - self.lower


@dataclass(frozen=True, slots=True)
class Count:
    """Rows, or rows where `value` is not NULL. The rows of a person are weighed."""

    value: Expression | None
    width: ClassVar = 1


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of `value` on its grid, clamped, less `offset`; NULL adds nothing. The rows of a person are weighed."""

    value: Expression
    grid: Grid
    offset: int = 0
    width: ClassVar = 1


@dataclass(frozen=True, slots=True)
class People:
    """Units with at least one row, each in at most `max_groups_per_unit` cells."""

    width: ClassVar = 1


@dataclass(frozen=True, slots=True)
class Keys:
    """The people of each undeclared key. A key is released only if enough people hold it."""

    width: ClassVar = 1


@dataclass(frozen=True, slots=True)
class Key:
    """A GROUP BY expression and its public values; rows with other values belong to no cell. None: undeclared."""

    expression: Expression
    values: tuple[Scalar, ...] | None

    def __post_init__(self) -> None:
        if self.values is not None and not 0 < len(self.values) == len(set(map(repr, self.values))):
            raise KernelFault("A key needs public values, each once.")


@dataclass(frozen=True, slots=True)
class Distinct:
    """The different values of `keys` in each cell. A person adds at most `reach` of them, over all cells."""

    keys: tuple[Key, ...]
    width: ClassVar = 1


@dataclass(frozen=True, slots=True)
class DistinctSum:
    """The sum of the different values of `key` in each cell, on the grid, clamped, less `offset`."""

    key: Key
    grid: Grid
    offset: int = 0
    width: ClassVar = 1

    @property
    def keys(self) -> tuple[Key]:
        """The one expression whose different values are added up."""
        return (self.key,)


@dataclass(frozen=True, slots=True)
class WeightedKeys:
    """The weights of each undeclared key: those of one unit are 1 in L2 (K-74, and K-87 for two rounds)."""

    rounds: int = 1
    width: ClassVar = 1

    def __post_init__(self) -> None:
        if self.rounds not in (1, 2):
            raise KernelFault("Keys are weighed in one round or in two.")


@dataclass(frozen=True, slots=True)
class Halves:
    """The weights of the rows below and above the middle of `value`: count and sum together (split_sums.py)."""

    value: Expression
    grid: Grid
    width: ClassVar = 2


@dataclass(frozen=True, slots=True)
class Thirds:
    """The same for the square: count, sum and squares together."""

    value: Expression
    grid: Grid
    width: ClassVar = 3


@dataclass(frozen=True, slots=True)
class Curve:
    """Sum and squares together, where the number of rows is public."""

    value: Expression
    grid: Grid
    width: ClassVar = 2


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The bins of `grid`, numbered from its lower bound, below which these fractions of the rows lie.

    With `miss`, two ends around each of these bins: each is on the wrong side with a probability of at most `miss`.
    """

    value: Expression
    grid: Grid
    fractions: tuple[Fraction, ...]
    miss: Fraction | None = None

    @property
    def width(self) -> int:
        """How many bins are chosen in each cell."""
        return len(self.fractions) if self.miss is None else 2 * len(self.fractions)


@dataclass(frozen=True, slots=True)
class Extreme:
    """The largest bin of `grid`, or the smallest, that enough rows reach."""

    value: Expression
    grid: Grid
    largest: bool
    width: ClassVar = 1


@dataclass(frozen=True, slots=True)
class Mode:
    """The `width` values of a public list that most rows have. A bin is a place in the list."""

    value: Expression
    width: int
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Pivot:
    """A quantity, apart for each condition. A row belongs to the first condition that is true for it, or to none."""

    part: Count | Sum | Halves | Thirds
    conditions: tuple[Expression, ...]

    @property
    def width(self) -> int:
        """The integers of the part, for one condition after the other."""
        return len(self.conditions) * self.part.width

    @property
    def value(self) -> Expression | None:
        """The value that the part measures."""
        return self.part.value


@dataclass(frozen=True, slots=True)
class Strategy:
    """Integer queries over all cells, from which the cells of `part` are computed (strategies.py)."""

    part: Count | Sum
    matrices: tuple[Matrix, ...]  # one for each key of the plan
    width: ClassVar = 1

    def __post_init__(self) -> None:
        if not isinstance(self.part, Count | Sum):
            raise KernelFault("A strategy measures counts or sums.")

    @property
    def value(self) -> Expression | None:
        """The value that the part measures."""
        return self.part.value


@dataclass(frozen=True, slots=True)
class Factor:
    """A value on its grid, clamped."""

    value: Expression
    grid: Grid


@dataclass(frozen=True, slots=True)
class Products:
    """Sums of products of factors, measured together with one noise (docs/claims/K-57.md).

    A term names at most two factors; a term without any counts rows. What a row adds is an integer, in steps of the
    finest term; nothing if a factor is NULL. The rows of a person are weighed.
    """

    factors: tuple[Factor, ...]
    terms: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        named = {place for term in self.terms for place in term}
        if not self.terms or not named <= set(range(len(self.factors))) or max(map(len, self.terms)) > 2:
            raise KernelFault("A term is a product of at most two factors.")
        if any(max(map(abs, self.find_bounds(term))) > MOST_STEPS for term in self.terms):
            raise KernelFault("A product is too many steps.")

    @property
    def width(self) -> int:
        """The number of terms."""
        return len(self.terms)

    @property
    def exponent(self) -> int:
        """That of the finest term."""
        return min(map(self._find_exponent, self.terms))

    def _find_exponent(self, term: tuple[int, ...]) -> int:
        return sum(self.factors[place].grid.exponent for place in term)

    def find_multiplier(self, term: tuple[int, ...]) -> int:
        """A step of this term, in steps of the finest."""
        return 1 << self._find_exponent(term) - self.exponent

    def find_bounds(self, term: tuple[int, ...]) -> tuple[int, int]:
        """The least and the most that a row of weight 1 adds to a term, if no factor is NULL.

        Claim: K-57. Every product of steps within the grids lies between them.
        Checked by: tests/kernel/test_products.py::test_every_product_lies_within_its_bounds
        """
        ends = [self.find_multiplier(term)]
        for place in term:
            grid = self.factors[place].grid
            ends = [end * bound for end in ends for bound in (grid.lower, grid.upper)]
        square = len(term) > len(set(term))
        return max(min(ends), 0) if square else min(ends), max(ends)


Choice = Quantiles | Extreme | Mode
Split = Halves | Thirds | Curve
Different = Distinct | DistinctSum
Quantity = Count | Sum | People | Keys | WeightedKeys | Different | Split | Products | Choice | Pivot | Strategy
Loss = PureDP | ApproxDP | ZCDP | GDP


@dataclass(frozen=True, slots=True)
class Measurement:
    """One noisy vector: `width` integers of a quantity for each cell, and the loss that pays for the noise.

    PureDP pays for Laplace noise and for choices, ZCDP and GDP for Gaussian noise, ApproxDP for undeclared keys.
    """

    name: str
    quantity: Quantity
    loss: Loss

    def __post_init__(self) -> None:
        quantity, loss = take_part(self.quantity), self.loss
        if isinstance(quantity, Sum | DistinctSum) and abs(quantity.offset) > MOST_STEPS:
            raise KernelFault("An offset is too many steps of its grid.")
        if isinstance(quantity, Thirds | Curve) and quantity.grid.span > MOST_SPAN:
            raise KernelFault("The square of a value needs a grid with fewer steps.")
        additive = isinstance(quantity, Count | Sum | People | Different)
        gaussian = additive and isinstance(loss, ZCDP | GDP) and not loss.delta
        if not gaussian and not isinstance(loss, ApproxDP if isinstance(quantity, Keys | WeightedKeys) else PureDP):
            raise KernelFault("This kind of loss cannot pay for this quantity.")


def take_part(quantity: Quantity) -> Quantity:
    """What is measured for each condition of a pivot, or mixed by a strategy; any other quantity itself."""
    return quantity.part if isinstance(quantity, Pivot | Strategy) else quantity


@dataclass(frozen=True, slots=True)
class BoundedPlan:
    """Measurements over the cells of a source. Contributions are bounded before the filters."""

    population: str
    source: Source
    unit: PrivacyUnit
    max_groups_per_unit: int
    filters: tuple[Expression, ...]
    keys: tuple[Key, ...]
    measurements: tuple[Measurement, ...]
    repeat: int = 0  # how often the same was released before: another release of it is another plan

    def __post_init__(self) -> None:
        reached, cells, per_row = derive_extent(self.source), self.cells, self.unit.per_row
        quantities = [measurement.quantity for measurement in self.measurements]
        units = any(isinstance(quantity, People | Keys | WeightedKeys) for quantity in quantities)
        naming = [quantity for quantity in quantities if isinstance(quantity, Keys | WeightedKeys)]
        weighted = any(isinstance(quantity, WeightedKeys) for quantity in naming)
        for refused, reason in (
            (not reached.private, "A plan is about a private source."),
            (self.max_groups_per_unit < 1, "A unit is in at least one group."),
            (per_row and self.max_groups_per_unit > 1, "A row unit is in one group."),
            (per_row and not reached.single_rows, "A row unit contributes one row."),
            (per_row and reached.reach > 1 and units, "A row that became several cannot be counted as one person."),
            (not quantities, "A plan measures something."),
            (len({part.name for part in self.measurements}) != len(quantities), "Measurements have different names."),
            (len(naming) != (cells is None), "Undeclared keys are released by one measurement."),
            (weighted and (per_row or People() in quantities), "Keys are weighed by people, who are then not counted."),
            (
                cells is None and any(isinstance(quantity, Products) for quantity in quantities),
                "Products need declared keys.",
            ),
        ):
            if refused:
                raise KernelFault(reason)
        for quantity in quantities:
            if isinstance(quantity, Strategy):
                check_matrices(quantity.matrices, [len(key.values or ()) for key in self.keys])

    @property
    def cells(self) -> int | None:
        """The number of cells, in the order of itertools.product over the keys' values; None: undeclared keys.

        Claim: K-24. A plan that was built has a rule for each of its measurements, and integers that fit.
        Checked by: tests/kernel/test_plan.py::test_plans_that_cannot_be
        """
        declared = [len(key.values) for key in self.keys if key.values is not None]
        return prod(declared) if len(declared) == len(self.keys) else None

    @property
    def holds_pairs(self) -> bool:
        """Does a release need to know which unit holds which undeclared key? Keys are then weighed in two rounds."""
        return any(measurement.quantity == WeightedKeys(rounds=2) for measurement in self.measurements)

    @property
    def reach(self) -> int:
        """The weights of one unit's rows add up to at most this."""
        return derive_extent(self.source).reach
