"""What the integers of a quantity are: steps of a grid, numbers of bins, numbers of conditions."""

from typing import assert_never

from sfumato.kernel.expressions import Call, Expression, Literal
from sfumato.kernel.plan import (
    KEY_WEIGHT_EXPONENT,
    ROW_WEIGHT_EXPONENT,
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
    Products,
    Quantiles,
    Quantity,
    Strategy,
    Sum,
    Thirds,
    WeightedKeys,
)


def count_bins(choice: Choice) -> int:
    """The number of public bins among which a measurement chooses."""
    return len(choice.values) if isinstance(choice, Mode) else choice.grid.span + 1


def find_exponent(quantity: Quantity, *, per_row: bool) -> int:  # noqa: PLR0911 - one return a kind
    """The released integers of a quantity are steps of 2 to this power; those of a choice are numbers of bins."""
    match quantity:
        case Count():
            return 0 if per_row else ROW_WEIGHT_EXPONENT
        case Sum(grid=grid) | DistinctSum(grid=grid) | Halves(grid=grid):
            return grid.exponent
        case Thirds(grid=grid) | Curve(grid=grid):
            return 2 * grid.exponent
        case Pivot(part) | Strategy(part):
            return find_exponent(part, per_row=per_row)
        case Products():
            return quantity.exponent
        case WeightedKeys():
            return KEY_WEIGHT_EXPONENT
        case People() | Keys() | Distinct() | Quantiles() | Extreme() | Mode():
            return 0
        case _:
            assert_never(quantity)


def number_conditions(conditions: tuple[Expression, ...]) -> Key:
    """The number of the first condition that is true for a row; NULL where none is.

    Claim: K-77. Different conditions have different numbers, so a row belongs to one of them at most.
    Checked by: tests/kernel/test_pivots.py::test_a_row_belongs_to_the_first_true_condition
    """
    numbered = [argument for place, condition in enumerate(conditions) for argument in (condition, Literal(place))]
    return Key(Call("case", (*numbered, Literal(None))), tuple(range(len(conditions))))
