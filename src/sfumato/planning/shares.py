"""The loss of a question, shared evenly among its measurements."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from sfumato.catalog.dataset import Dataset
from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import find_decimal
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.kernel.plan import Choice, Keys, Loss, Quantity, WeightedKeys
from sfumato.number_arguments import Number, read_privacy_amount

SHARE_DIGITS = Decimal("1e-12")
EPSILON_DIGITS = 12  # of an epsilon that a rho pays for
SHARE_OF_DELTA = 100  # a question that needs a delta and is given none takes a hundredth of the budget's


@lru_cache(maxsize=1024)
def split_evenly(loss: PureDP | ZCDP, parts: int) -> tuple[PureDP | ZCDP, ...]:
    """Split a loss into finite decimals that add up to it exactly; the last share takes what rounding left."""
    whole = Fraction(loss.epsilon if isinstance(loss, PureDP) else loss.rho)
    share = round_share(whole / parts, whole)
    if share <= 0:
        raise InvalidParameter("epsilon", "must be large enough to share", "a smaller one", "Raise it.")
    amounts = [share] * (parts - 1) + [whole - share * (parts - 1)]
    decimals = [find_decimal(amount) for amount in amounts]
    kind = PureDP if isinstance(loss, PureDP) else ZCDP
    return tuple(kind(amount) for amount in decimals if amount is not None)


def round_share(share: Fraction, whole: Fraction | None = None) -> Fraction:
    """Round a share down to a finite decimal: to 12 digits after the first digit of the whole (or of the share)."""
    reference = share if whole is None else whole
    digits = len(str(reference.numerator)) - len(str(reference.denominator))
    unit = Fraction(SHARE_DIGITS) * Fraction(10) ** digits
    return (share // unit) * unit


def split_off(share: PureDP | ZCDP, part: Fraction) -> tuple[PureDP | ZCDP, PureDP | ZCDP]:
    """What is left of a loss, and a part of it, as finite decimals that add up to it exactly."""
    kind = PureDP if isinstance(share, PureDP) else ZCDP
    whole = Fraction(share.epsilon if isinstance(share, PureDP) else share.rho)
    taken = round_share(whole * part, whole)
    amounts = [find_decimal(amount) for amount in (whole - taken, taken)]
    if taken <= 0 or None in amounts:
        raise InvalidParameter("interval_share", "must be large enough to pay for intervals", "a smaller one")
    rest, split = (kind(amount) for amount in amounts if amount is not None)
    return rest, split


def pay_for(quantity: Quantity, share: PureDP | ZCDP, delta: Decimal | None, dataset: Dataset) -> Loss:
    """Make the loss that pays for a quantity. A choice is paid by the epsilon that a rho pays for."""
    if isinstance(quantity, Keys | WeightedKeys):
        return _add_delta(share, delta, dataset)
    if isinstance(quantity, Choice) and isinstance(share, ZCDP):
        return find_epsilon(share)
    return share


@lru_cache(maxsize=1024)
def find_epsilon(share: ZCDP) -> PureDP:
    """The largest epsilon of 12 digits whose zCDP loss, epsilon tanh(epsilon / 2), is at most rho."""
    above = max(2 * share.rho.sqrt(), 2 * share.rho)  # tanh(x) > 0.76 min(x, 1)
    unit = Decimal(1).scaleb(above.adjusted() - EPSILON_DIGITS)
    low, high = 0, int(above / unit) + 1  # low units are affordable, high units are not
    while high - low > 1:
        middle = (low + high) // 2
        affordable = PureDP(middle * unit).to_zcdp().rho <= share.rho
        low, high = (middle, high) if affordable else (low, middle)
    if not low:
        raise InvalidParameter("rho", "must be large enough for a choice among bins", "a smaller one", "Raise it.")
    return PureDP(low * unit)


def split_delta(delta: Number | None, undeclared: Sequence[bool], dataset: Dataset) -> list[Decimal | None]:
    """The delta of each release: those with undeclared keys together take what one question takes, exactly."""
    whole = dataset.budget.delta / SHARE_OF_DELTA if delta is None else read_privacy_amount(delta, "delta")
    parts = sum(undeclared)
    if not parts or not whole:  # none is needed; or there is none, which the first such release refuses
        return [None for _ in undeclared]
    share = round_share(Fraction(whole) / parts, Fraction(whole))
    amounts = [find_decimal(share)] * (parts - 1) + [find_decimal(Fraction(whole) - share * (parts - 1))]
    return [amounts.pop() if needs_delta else None for needs_delta in undeclared]


def _add_delta(share: PureDP | ZCDP, delta: Decimal | None, dataset: Dataset) -> ApproxDP:
    """The share of undeclared keys: it has a delta."""
    if isinstance(share, ZCDP):
        hint = "Ask with epsilon= and delta=, or group by declared values."
        raise InvalidParameter("rho", "must not be given where a group key is undeclared", "a rho", hint)
    if delta is None:
        if not dataset.budget.delta:
            hint = "Declare the key's values, or give the budget a delta, such as 1e-6."
            raise InvalidParameter(
                "delta", "must be above zero where a group key is undeclared", "a budget without a delta", hint
            )
        delta = dataset.budget.delta / SHARE_OF_DELTA
    return ApproxDP(share.epsilon, delta)
