"""The privacy loss of a group of people, as text (group privacy)."""

from decimal import ROUND_CEILING, Context, Decimal
from typing import assert_never

from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import write_plain
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.number_arguments import read_whole_number
from sfumato.shown_amounts import write_amounts

LARGE_DELTA = Decimal("0.25")
DELTA = Decimal("1e-6")  # the delta at which a zCDP or Gaussian-DP loss is stated as an epsilon
MOST_SHOWN = 700  # e to a higher power overflows a double


def extend_to_group(loss: PrivacyLoss, people: int) -> PrivacyLoss | None:
    """The loss for a group of this size; None if the release guarantees nothing for it."""
    read_whole_number(people, "people", 1)
    try:
        return loss.group(people)
    except InvalidParameter:
        return None


def describe_loss(loss: PrivacyLoss, neighbours: Neighbours, people: int = 1) -> str:
    """State the loss for a group: the factor by which the group can change the probability of any outcome."""
    grown = extend_to_group(loss, people)
    stated = f"Privacy loss for {'one person' if people == 1 else f'a group of {people:,} people'}"
    if grown is None:
        return f"{stated}: no guarantee, because delta would reach 1. Ask about a smaller group."
    match grown:
        case PureDP(epsilon):
            stated += f": {write_amounts({'epsilon': write_plain(epsilon)})}"
            return f"{stated}. {_describe_factor(epsilon, neighbours, people)}."
        case ApproxDP(epsilon, delta):
            factor = _describe_factor(epsilon, neighbours, people)
            amounts = f"ε = {write_plain(epsilon)}, δ = {_round_up(delta)}"
            return f"{stated}: {amounts}. {factor}, plus a probability of at most δ."
        case ZCDP(amount, delta) | GDP(amount, delta):
            implied = grown.to_approx(max(DELTA, 2 * delta) if delta < LARGE_DELTA else (delta + 1) / 2)
            factor = _describe_factor(implied.epsilon, neighbours, people)
            chance = f"a probability of at most δ = {_round_up(implied.delta)}"
            name = "rho" if isinstance(grown, ZCDP) else "mu_squared"
            return f"{stated}: {write_amounts({name: write_plain(amount)})}. {factor}, plus {chance}."
        case _:
            assert_never(grown)


def _describe_factor(epsilon: Decimal, neighbours: Neighbours, people: int) -> str:
    size = f"e^{float(epsilon):.4g}"
    if epsilon < MOST_SHOWN:
        size += f" = {float(epsilon.exp()):,.4g}"
    match neighbours:
        case Neighbours.ADD_REMOVE:
            change = f"Adding or removing {'that person' if people == 1 else 'them'}"
        case Neighbours.REPLACE_ONE:
            change = f"Replacing {'that person by another' if people == 1 else 'them by others'}"
        case _:
            assert_never(neighbours)
    return f"{change} makes any outcome at most {size} times as likely"


def _round_up(delta: Decimal) -> str:
    """Round up to four digits."""
    return write_plain(Context(prec=4, rounding=ROUND_CEILING).plus(delta).normalize())
