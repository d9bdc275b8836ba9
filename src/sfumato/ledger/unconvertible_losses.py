"""The refusal of a loss that a budget cannot count."""

from sfumato.errors import LedgerError
from sfumato.kernel.losses import GDP, ZCDP, PrivacyLoss

UNCONVERTIBLE = "ledger-currency"


def build_unconvertible_error(loss: PrivacyLoss, budget: PrivacyLoss) -> LedgerError:
    """Say which amount of the loss the budget has no place for, and what fits instead."""
    match budget, loss:
        case GDP(), _:
            message = "This budget counts mu, and a zCDP loss has none."
            hint = "Ask with epsilon=. For Gaussian noise, the question is then priced in mu."
        case _, GDP():
            message = "This budget counts epsilon, and a Gaussian-DP loss has none."
            hint = "Declare the budget with accounting='gdp' or 'zcdp', or ask with epsilon= and Laplace noise."
        case _, ZCDP():
            message = "This budget counts epsilon, and a zCDP loss has none."
            hint = "Declare the budget with accounting='zcdp', or ask with epsilon= and Laplace noise."
        case _:
            message, hint = "This budget has no delta to spend.", "Declare a budget with a delta."
    return LedgerError(UNCONVERTIBLE, message, hint)
