"""Exact sums of privacy losses: what a certificate costs, and whether it fits under a limit.

Part of the trusted perimeter. The statement about the ledger (see `ledger_rows`) needs three facts about this file. A
sum is never smaller than the sum of its parts. A converted loss is never smaller than the loss. A loss that is written
and read again is the same loss. Amounts are decimals with all their digits; only very long ones are rounded, up.
"""

import json
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache, reduce
from typing import assert_never

from sfumato.errors import LedgerError
from sfumato.kernel.exact import sum_exactly, write_plain
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PrivacyLoss, PureDP, compose
from sfumato.ledger.unconvertible_losses import build_unconvertible_error
from sfumato.number_arguments import AMOUNT_DIGITS, MOST_DIGITS


@lru_cache(maxsize=4096)
def split_loss(loss: PrivacyLoss) -> tuple[Fraction, Fraction]:
    """Epsilon, rho or the square of mu; and delta."""
    match loss:
        case ZCDP(amount) | GDP(amount) | PureDP(amount) | ApproxDP(amount):
            pass
        case _:
            assert_never(loss)
    return Fraction(amount), Fraction(0 if isinstance(loss, PureDP) else loss.delta)


def make_loss(kind: PrivacyLoss, amount: Fraction, delta: Fraction, rounding: str = ROUND_CEILING) -> PrivacyLoss:
    """A loss of the same kind as `kind`, with these amounts."""
    if isinstance(kind, PureDP):
        return PureDP(round_long(amount, rounding))
    return type(kind)(round_long(amount, rounding), round_long(delta, rounding))


def round_long(amount: Fraction, rounding: str, most_digits: int = MOST_DIGITS) -> Decimal:
    """The exact decimal; one of more than `most_digits` digits is rounded to AMOUNT_DIGITS.

    A charged amount has few digits (`spending.refuse_long_amounts`), and so has a sum of charges. Only ledgers that
    the first version of Sfumato wrote may hold longer amounts.
    """
    exact = sum_exactly(amount)
    if len(exact.as_tuple().digits) <= most_digits and (not exact or exact.adjusted() > -MOST_DIGITS // 4):
        return exact
    least = Decimal(f"1e-{MOST_DIGITS // 4}")
    if exact < least:
        return least if rounding == ROUND_CEILING else Decimal(0)
    return Context(prec=AMOUNT_DIGITS, rounding=rounding).plus(exact)


@lru_cache(maxsize=64)
def make_zero_loss(kind: PrivacyLoss) -> PrivacyLoss:
    """The loss of nothing, of the same kind as `kind`."""
    return make_loss(kind, Fraction(0), Fraction(0))


@lru_cache(maxsize=4096)
def add_losses(one: PrivacyLoss, two: PrivacyLoss) -> PrivacyLoss:
    """The sum of two losses of one kind."""
    (amount, delta), (more, more_delta) = split_loss(one), split_loss(two)
    return make_loss(one, amount + more, delta + more_delta)


def fits(charge: PrivacyLoss, spent: PrivacyLoss, limit: PrivacyLoss) -> bool:
    """Whether `spent` and `charge` together are within the limit, in both amounts and to the last digit."""
    parts = zip(split_loss(charge), split_loss(spent), split_loss(limit), strict=True)
    return all(more + before <= most for more, before, most in parts)


@lru_cache(maxsize=4096)
def convert_loss(loss: PrivacyLoss, budget: PrivacyLoss) -> PrivacyLoss:
    """The loss in the kind of the budget. It is never smaller; a loss that cannot be converted is refused."""
    match budget, loss:
        case (PureDP(), PureDP()) | (ApproxDP(), ApproxDP()):
            return loss
        case ZCDP(), _:
            return loss.to_zcdp()
        case GDP(), PureDP() | ApproxDP() | GDP():
            return loss.to_gdp()
        case _, GDP() | ZCDP():
            raise build_unconvertible_error(loss, budget)
        case PureDP(), ApproxDP(delta=delta) if delta:
            raise build_unconvertible_error(loss, budget)
        case _:
            return make_loss(budget, *split_loss(loss))


def price(loss: PrivacyLoss, shares: tuple[PrivacyLoss, ...], budget: PrivacyLoss) -> PrivacyLoss:
    """What a certificate costs under this budget.

    In zCDP and Gaussian DP, converting the share of each measurement by itself is sound, and cheaper than converting
    their sum.
    """
    if isinstance(budget, ZCDP | GDP) and shares and reduce(compose, shares) == loss:
        return reduce(compose, (convert_loss(share, budget) for share in shares), make_zero_loss(budget))
    return convert_loss(loss, budget)


@lru_cache(maxsize=4096)
def write_loss(loss: PrivacyLoss | None) -> str:
    """The JSON text of a loss in the ledger: every digit, never a float. No loss is the empty text."""
    if loss is None:
        return ""
    amounts = {name: write_plain(getattr(loss, name)) for name in sorted(loss.__match_args__)}
    return json.dumps(amounts, separators=(",", ":"))


@lru_cache(maxsize=4096)
def read_loss(text: str) -> PrivacyLoss | None:
    """The loss that `write_loss` wrote."""
    if not text:
        return None
    try:
        parts = {name: Decimal(digits) for name, digits in json.loads(text).items()}
        if "rho" in parts:
            return ZCDP(parts["rho"], parts["delta"])
        if "mu_squared" in parts:
            return GDP(parts["mu_squared"], parts["delta"])
        return ApproxDP(parts["epsilon"], parts["delta"]) if "delta" in parts else PureDP(parts["epsilon"])
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        hint = "Run `sfumato ledger verify`, and restore the newest intact backup."
        raise LedgerError("ledger-altered", "The ledger holds an amount that it never wrote.", hint) from None
