"""What a release means for a group of people at once, in words (group privacy)."""

from decimal import ROUND_CEILING, Context, Decimal
from typing import assert_never

from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import plain
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.number_arguments import whole_number

DELTA = Decimal("1e-6")  # at which a loss under zCDP is put into words
MOST_SHOWN = 700  # e to a higher power does not fit a double


def group_of(loss: PrivacyLoss, people: int) -> PrivacyLoss | None:
    """The loss for so many people at once; None: the release guarantees nothing for that many."""
    whole_number(people, "people", 1)
    try:
        return loss.group(people)
    except InvalidParameter:
        return None


def in_words(loss: PrivacyLoss, neighbours: Neighbours, people: int = 1) -> str:
    """The loss for a group of people: how much likelier they can make any outcome."""
    grown = group_of(loss, people)
    who = "one person" if people == 1 else f"a group of {people:,} people"
    if grown is None:
        return f"For {who} this release guarantees nothing: its delta would reach 1. Ask about a smaller group."
    match grown:
        case PureDP(epsilon):
            return f"For {who} the loss is ε = {plain(epsilon)}: {_times(epsilon, neighbours, people)}."
        case ApproxDP(epsilon, delta):
            stated, compared = f"ε = {plain(epsilon)}, δ = {_up(delta)}", _times(epsilon, neighbours, people)
            return f"For {who} the loss is {stated}: {compared}, plus a probability of at most δ."
        case ZCDP(rho, delta):
            implied = grown.to_approx(DELTA if delta < DELTA else (delta + 1) / 2)
            most = f"a probability of at most δ = {_up(implied.delta)}"
            return (
                f"For {who} the loss is rho = {plain(rho)}: {_times(implied.epsilon, neighbours, people)}, plus {most}."
            )


def _times(epsilon: Decimal, neighbours: Neighbours, people: int) -> str:
    size = f"e^{float(epsilon):.4g}"
    if epsilon < MOST_SHOWN:
        size += f" = {float(epsilon.exp()):,.4g}"
    match neighbours:
        case Neighbours.ADD_REMOVE:
            change = f"whether {'that person is' if people == 1 else 'they are'} in the data or not"
        case Neighbours.REPLACE_ONE:
            change = f"replacing {'that person by another' if people == 1 else 'them by others'}"
        case _:
            assert_never(neighbours)
    return f"{change} makes no outcome more than {size} times as likely"


def _up(delta: Decimal) -> str:
    """Four digits, not below it."""
    return plain(Context(prec=4, rounding=ROUND_CEILING).plus(delta).normalize())
