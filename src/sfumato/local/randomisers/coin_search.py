"""Find the most informative coin whose table costs at most a given epsilon.

No privacy proof rests on this search: the loss that is charged and published is computed from the finished table.
"""

from collections.abc import Callable
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import write_plain
from sfumato.local.mechanisms.coin_tables import UNITS, bound_ratio_loss

_SHOWN = Decimal("1e-6")


def find_greatest_coin(ratio: Callable[[int], Fraction], epsilon: Decimal) -> int:
    """The greatest coin of 1 .. 2**32 - 1 units whose table, of greatest ratio `ratio(coin)`, costs at most epsilon.

    `ratio` must grow with the coin. Bisection: every coin up to `low` costs at most epsilon or has a ratio of at most
    1; every coin above `high` costs more.
    """
    most = ratio(UNITS - 1)
    if most > 1 and bound_ratio_loss(most) < epsilon:
        raise InvalidParameter(
            "epsilon",
            f"must be at most {write_plain(bound_ratio_loss(most).quantize(_SHOWN, ROUND_FLOOR))} here",
            "more",
            "Probabilities are whole units of 2**-32; a larger epsilon needs a probability below one unit.",
        )
    low, high = 0, UNITS - 1
    while low < high:
        middle = (low + high + 1) // 2
        value = ratio(middle)
        if value <= 1 or bound_ratio_loss(value) <= epsilon:
            low = middle
        else:
            high = middle - 1
    if low == 0 or ratio(low) <= 1:
        raise InvalidParameter(
            "epsilon",
            "must be large enough to bias a coin by one unit of 2**-32",
            "less",
            "Reports would be independent of the answers. Use a larger epsilon or fewer categories.",
        )
    return low
