"""What a release means for a group of people at once, in words (group privacy)."""

from decimal import Decimal

from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import plain
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.parameters import whole_number

DELTA = Decimal("1e-6")  # at which a loss under zCDP is put into words
MOST_SHOWN = 700  # e to a higher power does not fit a double


def group_of(loss: PrivacyLoss, people: int) -> PrivacyLoss | None:
    """The loss for so many people at once; None: the release guarantees nothing for that many."""
    whole_number(people, "people", 1)
    try:
        return loss.group(people)
    except InvalidParameter:
        return None


def in_words(loss: PrivacyLoss, people: int = 1) -> str:
    """The loss for a group of people: how much likelier their data can make any outcome."""
    grown = group_of(loss, people)
    who = "one person" if people == 1 else f"a group of {people:,} people"
    if grown is None:
        return f"For {who} this release guarantees nothing: its delta would reach 1. Ask about a smaller group."
    match grown:
        case PureDP(epsilon):
            return f"For {who} the loss is ε = {plain(epsilon)}: {_times(epsilon, who)}."
        case ApproxDP(epsilon, delta):
            but = f", except with probability δ = {plain(delta)}" if delta else ""
            return f"For {who} the loss is ε = {plain(epsilon)}, δ = {plain(delta)}: {_times(epsilon, who)}{but}."
        case ZCDP(rho, delta):
            kept = DELTA if delta < DELTA else (delta + 1) / 2
            implied = grown.to_approx(kept)
            return (
                f"For {who} the loss is rho = {plain(rho)}: {_times(implied.epsilon, who)}, "
                f"except with probability δ = {plain(implied.delta)}."
            )


def _times(epsilon: Decimal, who: str) -> str:
    size = f"e^{float(epsilon):.4g}"
    if epsilon < MOST_SHOWN:
        size += f" = {float(epsilon.exp()):,.4g}"
    whose = "that person's" if who == "one person" else "their"
    return f"whatever {whose} data are, every outcome is at most {size} times as likely"
