"""Sums of privacy losses, to the last digit: what a charge costs here, what fits, and what is left."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import reduce
from math import isqrt
from typing import assert_never

from sfumato.errors import BudgetExceeded, LedgerError
from sfumato.kernel.exact import plain, sum_exactly
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP, compose
from sfumato.kernel.parameters import AMOUNT_DIGITS, MOST_DIGITS, privacy_amount

LONG = 500  # digits: more than any sum of amounts that are short


def amounts_of(loss: PrivacyLoss) -> tuple[Fraction, Fraction]:
    """Epsilon or rho, and delta."""
    match loss:
        case PureDP(amount):
            return Fraction(amount), Fraction(0)
        case ApproxDP(amount, delta) | ZCDP(amount, delta):
            return Fraction(amount), Fraction(delta)
        case _:
            assert_never(loss)


def _make_loss(kind: PrivacyLoss, amount: Fraction, delta: Fraction, rounding: str = ROUND_CEILING) -> PrivacyLoss:
    kept, kept_delta = _round_long(amount, rounding), _round_long(delta, rounding)
    match kind:
        case PureDP():
            return PureDP(kept)
        case ApproxDP():
            return ApproxDP(kept, kept_delta)
        case ZCDP():
            return ZCDP(kept, kept_delta)
        case _:
            assert_never(kind)


def _round_long(amount: Fraction, rounding: str, most: int = MOST_DIGITS) -> Decimal:
    """An amount to its last digit; one of more than `most` digits is rounded to AMOUNT_DIGITS.

    Amounts that are charged are short (`demand_short`), and so are their sums. Only ledgers of the first version may
    hold longer ones.
    """
    exact = sum_exactly(amount)
    if len(exact.as_tuple().digits) <= most and (not exact or exact.adjusted() > -MOST_DIGITS // 4):
        return exact
    least = Decimal(f"1e-{MOST_DIGITS // 4}")
    if exact < least:
        return least if rounding == ROUND_CEILING else Decimal(0)
    return Context(prec=AMOUNT_DIGITS, rounding=rounding).plus(exact)


def shorten(spent: PrivacyLoss) -> PrivacyLoss:
    """What is spent, rounded up to AMOUNT_DIGITS where it is very long: amounts were not always limited."""
    amount, delta = (Fraction(_round_long(each, ROUND_CEILING, LONG)) for each in amounts_of(spent))
    return _make_loss(spent, amount, delta)


def refuse_long_amounts(loss: PrivacyLoss) -> None:
    """Refuse an amount of too many digits, or out of range, before it is charged."""
    name = "rho" if isinstance(loss, ZCDP) else "epsilon"
    for each, part in zip((name, "delta"), amounts_of(loss), strict=True):
        if part:
            privacy_amount(sum_exactly(part), each)


def zero_loss(kind: PrivacyLoss) -> PrivacyLoss:
    """No loss at all, of the same kind as this one."""
    return _make_loss(kind, Fraction(0), Fraction(0))


def add_losses(one: PrivacyLoss, two: PrivacyLoss) -> PrivacyLoss:
    """Two losses of one kind, added."""
    (amount, delta), (more, more_delta) = amounts_of(one), amounts_of(two)
    return _make_loss(one, amount + more, delta + more_delta)


def subtract_spent(limit: PrivacyLoss, spent: PrivacyLoss) -> PrivacyLoss:
    """What is left; nothing, not less, where the owner lowered the limit below what is spent."""
    (most, most_delta), (amount, delta) = amounts_of(limit), amounts_of(spent)
    return _make_loss(limit, max(Fraction(0), most - amount), max(Fraction(0), most_delta - delta), ROUND_FLOOR)


def find_excess(more: PrivacyLoss, less: PrivacyLoss) -> PrivacyLoss:
    """What the one has of each amount that the other has not, rounded up."""
    (most, most_delta), (amount, delta) = amounts_of(more), amounts_of(less)
    return _make_loss(more, max(Fraction(0), most - amount), max(Fraction(0), most_delta - delta))


def fits(charge: PrivacyLoss, spent: PrivacyLoss, limit: PrivacyLoss) -> bool:
    """Whether both amounts stay within the limit, to the last digit."""
    parts = zip(amounts_of(charge), amounts_of(spent), amounts_of(limit), strict=True)
    return all(more + before <= most for more, before, most in parts)


def convert_loss(loss: PrivacyLoss, budget: PrivacyLoss) -> PrivacyLoss:
    """The loss in the budget's currency: never less than it was, and refused where there is no such rate."""
    match budget, loss:
        case ZCDP(), _:
            return loss.to_zcdp()
        case _, ZCDP():
            hint = "Declare the budget with accounting='zcdp', or ask with epsilon= and Laplace noise."
            raise LedgerError("ledger-currency", "This budget counts epsilon, and a zCDP loss has none.", hint)
        case PureDP(), ApproxDP(delta=delta) if delta:
            hint = "Declare a budget with a delta."
            raise LedgerError("ledger-currency", "This budget has no delta to spend.", hint)
        case _:
            return _make_loss(budget, *amounts_of(loss))


def price(loss: PrivacyLoss, shares: tuple[PrivacyLoss, ...], budget: PrivacyLoss) -> PrivacyLoss:
    """What a certificate costs here. In zCDP each measurement is exchanged alone, which is cheaper than their sum."""
    if isinstance(budget, ZCDP) and shares and reduce(compose, shares) == loss:
        return reduce(compose, (each.to_zcdp() for each in shares), zero_loss(budget))
    return convert_loss(loss, budget)


def convert_sublimit(declared: PrivacyLoss, budget: PrivacyLoss) -> PrivacyLoss:
    """A sub-limit in the budget's currency. A limit on epsilon has no equal in rho: exchange would loosen it."""
    if isinstance(declared, ZCDP) == isinstance(budget, ZCDP):
        return convert_loss(declared, budget)
    hint = "Declare both in epsilon, or both in rho."
    raise LedgerError("ledger-currency", "An analyst's limit must count what the budget counts.", hint)


def refuse_over_limit(
    charge: PrivacyLoss, spent: PrivacyLoss, limit: PrivacyLoss, whose: str, shares: tuple[PrivacyLoss, ...]
) -> None:
    """Refuse a charge that does not fit, and say what would."""
    if fits(charge, spent, limit):
        return
    left = subtract_spent(limit, spent)
    amount, _ = amounts_of(left)
    hint = "Nothing more fits; questions that were answered before can still be asked."
    if amount:
        hint = f"A question of at most {describe_loss(left)} still fits."
        # epsilon**2 / 2 bounds the rho of epsilon, however it is split; in millionths, rounded down
        epsilon = Fraction(isqrt(int(2 * amount * 10**12)), 10**6)
        if isinstance(left, ZCDP) and epsilon and any(isinstance(each, PureDP) for each in shares):
            hint += f" With Laplace noise that is epsilon = {plain(epsilon)}."
    message = (
        f"This costs {describe_loss(charge)}, and {describe_loss(left)} is left of {whose} of {describe_loss(limit)}."
    )
    raise BudgetExceeded(message, hint, charge, left)


def describe_loss(loss: PrivacyLoss) -> str:
    """A loss as a person would say it."""
    amount, delta = (plain(each) for each in amounts_of(loss))
    name = "rho" if isinstance(loss, ZCDP) else "epsilon"
    return f"{name} = {amount}" if isinstance(loss, PureDP) else f"{name} = {amount}, delta = {delta}"


@dataclass(frozen=True, slots=True)
class Spending:
    """What one answer takes, in the budget's currency. `loss` is the same as it was certified: an epsilon, or a rho.

    `own` is taken from the analyst's own limit (None: they have none), `population` from everybody's budget. The two
    differ when an analyst sees another's answer for the first time: it counts as learned, and is not charged again.
    """

    population: PrivacyLoss
    own: PrivacyLoss | None
    loss: PrivacyLoss


def spend_on(loss: PrivacyLoss, population: PrivacyLoss, limit: PrivacyLoss | None) -> Spending:
    """What a new charge takes: of both."""
    return Spending(population, None if limit is None else population, loss)
