"""Limits, the cost of an answer, what is left, and the refusal of a charge that does not fit."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from sfumato.errors import BudgetExceeded, InvalidParameter, KernelFault, LedgerError, describe_kind
from sfumato.kernel.exact import sum_exactly, write_plain
from sfumato.kernel.losses import GDP, ZCDP, PrivacyLoss, PureDP
from sfumato.ledger.loss_sums import convert_loss, fits, make_loss, make_zero_loss, read_loss, round_long, split_loss
from sfumato.number_arguments import read_privacy_amount
from sfumato.shown_amounts import Rounding, round_amounts

LONG = 500  # digits: more than any sum of amounts that pass `refuse_long_amounts`


@dataclass(frozen=True, slots=True)
class Limit:
    """A population's budget. The kind of the loss is the kind of accounting."""

    loss: PrivacyLoss

    def __post_init__(self) -> None:
        if not isinstance(self.loss, PrivacyLoss):
            raise InvalidParameter(
                "limit", "must be a privacy loss: PureDP, ApproxDP, ZCDP or GDP", describe_kind(self.loss)
            )
        refuse_long_amounts(self.loss)


@dataclass(frozen=True, slots=True)
class Totals:
    """A limit, what is spent and what remains: losses of one kind."""

    limit: PrivacyLoss
    spent: PrivacyLoss
    remaining: PrivacyLoss


@dataclass(frozen=True, slots=True)
class Spending:
    """What one answer takes, in the kind of the budget. `loss` is the certified loss, in its own kind.

    `population` is taken from the population's budget. `own` is taken from the analyst's own limit; None if they have
    none. The two differ when an analyst sees another analyst's answer for the first time: it counts on the viewer's
    limit, and the population does not pay again.
    """

    population: PrivacyLoss
    own: PrivacyLoss | None
    loss: PrivacyLoss


def read_charge(text: str) -> PrivacyLoss:
    """The loss of a charge, which is never empty."""
    loss = read_loss(text)
    if loss is None:
        raise KernelFault("A charge has a loss.")
    return loss


def spend_on(loss: PrivacyLoss, population: PrivacyLoss, limit: PrivacyLoss | None) -> Spending:
    """What a new charge takes: the same from the population's budget and from the analyst's own limit."""
    return Spending(population, None if limit is None else population, loss)


def spend_nothing(loss: PrivacyLoss, budget: PrivacyLoss, limit: PrivacyLoss | None) -> Spending:
    """What an answer takes that the analyst has paid for already."""
    return spend_on(make_zero_loss(loss), make_zero_loss(budget), limit)


def subtract_spent(limit: PrivacyLoss, spent: PrivacyLoss) -> PrivacyLoss:
    """What is left of a limit. It is zero, not negative, if the owner lowered the limit below what is spent."""
    (most, most_delta), (amount, delta) = split_loss(limit), split_loss(spent)
    return make_loss(limit, max(Fraction(0), most - amount), max(Fraction(0), most_delta - delta), ROUND_FLOOR)


def find_excess(more: PrivacyLoss, less: PrivacyLoss) -> PrivacyLoss:
    """How far each amount of `more` is above that of `less`, rounded up; zero where it is below."""
    (most, most_delta), (amount, delta) = split_loss(more), split_loss(less)
    return make_loss(more, max(Fraction(0), most - amount), max(Fraction(0), most_delta - delta))


def shorten(spent: PrivacyLoss) -> PrivacyLoss:
    """What is spent; very long amounts, which old ledgers may hold, are rounded up to AMOUNT_DIGITS."""
    amount, delta = (Fraction(round_long(part, ROUND_CEILING, LONG)) for part in split_loss(spent))
    return make_loss(spent, amount, delta)


@lru_cache(maxsize=4096)
def refuse_long_amounts(loss: PrivacyLoss) -> None:
    """Refuse a loss with an amount of too many digits, or out of range."""
    name = _name_amount(loss)
    for part_name, part in zip((name, "delta"), split_loss(loss), strict=True):
        if part:
            read_privacy_amount(sum_exactly(part), part_name)


def convert_sublimit(declared: PrivacyLoss, budget: PrivacyLoss) -> PrivacyLoss:
    """An analyst's limit in the kind of the budget.

    A limit on epsilon is refused under a budget in rho or mu: none of these allows exactly the same answers.
    """
    if _name_amount(declared) == _name_amount(budget):
        return convert_loss(declared, budget)
    hint = "Declare both in epsilon, both in rho, or both in mu."
    raise LedgerError("ledger-currency", "An analyst's limit must count what the budget counts.", hint)


def refuse_over_limit(
    charge: PrivacyLoss, spent: PrivacyLoss, limit: PrivacyLoss, name: str, shares: tuple[PrivacyLoss, ...]
) -> None:
    """Refuse a charge that does not fit under the limit of this name, and say what would fit."""
    if fits(charge, spent, limit):
        return
    left = subtract_spent(limit, spent)
    amount, _ = split_loss(left)
    hint = "Nothing more fits. Questions that were answered before can still be asked."
    if amount:
        hint = f"A question of at most {describe_loss(left, 'down')} still fits."
        # epsilon**2 / 2 is at least the rho of epsilon, however it is split; in millionths, rounded down
        epsilon = Fraction(isqrt(int(2 * amount * 10**12)), 10**6)
        if isinstance(left, ZCDP) and epsilon and any(isinstance(share, PureDP) for share in shares):
            hint += f" With Laplace noise that is epsilon = {write_plain(epsilon)}."
        if split_loss(charge)[1] > split_loss(left)[1]:
            hint += _explain_delta(limit)
    cost, rest, whole = describe_loss(charge, "up"), describe_loss(left, "down"), describe_loss(limit)
    raise BudgetExceeded(f"This costs {cost}, and {rest} is left of {name} of {whole}.", hint, charge, left)


def _explain_delta(limit: PrivacyLoss) -> str:
    """What to do where a question takes more delta than is left."""
    keys = "Undeclared keys take a delta, declared values of the keys take none"
    if split_loss(limit)[1]:
        return f" {keys}, and a smaller delta may fit."
    declared = {"rho": "rho and a delta", "mu_squared": "mu and a delta"}.get(_name_amount(limit), "a delta")
    return f" {keys}. This budget has no delta for keys: the owner can declare one with {declared}."


def describe_loss(loss: PrivacyLoss, rounding: Rounding | None = None) -> str:
    """A loss in words: epsilon = 0.5, delta = 0.000001. With `rounding`, a long amount is rounded, and it says so."""
    parts = zip((_name_amount(loss), "delta"), map(write_plain, split_loss(loss)), strict=True)
    amounts = {name: text for name, text in parts if name != "delta" or not isinstance(loss, PureDP)}
    shown, rounded = (amounts, False) if rounding is None else round_amounts(amounts, rounding)
    words = ", ".join(f"{name} = {text}" for name, text in shown.items())
    return f"{words} (rounded {rounding})" if rounded else words


def _name_amount(loss: PrivacyLoss) -> str:
    match loss:
        case ZCDP():
            return "rho"
        case GDP():
            return "mu_squared"
        case _:
            return "epsilon"


def build_other_limit_error(wanted: PrivacyLoss, found: PrivacyLoss) -> LedgerError:
    """The refusal of a declared budget that is not the ledger's."""
    message = f"The ledger's budget is {describe_loss(found)}, and {describe_loss(wanted)} is declared here."
    hint = "To change the budget, run `sfumato budget set` (or sf.set_budget): the change is recorded in the ledger."
    return LedgerError("ledger-limit", message, hint)
