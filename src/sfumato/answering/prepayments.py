"""Which loss is charged for a sequence of releases, and which limit the releases share."""

from dataclasses import dataclass
from decimal import Decimal
from typing import assert_never

from sfumato.catalog.budget import find_largest_rho
from sfumato.errors import InvalidParameter
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PrivacyLoss, PureDP


@dataclass(frozen=True, slots=True)
class Prepayment:
    """The loss that is charged to the population's budget, and the limit of the releases. The limit implies the loss.

    A limit in epsilon is shared by Laplace noise and choices; one in rho by Gaussian noise.
    """

    loss: PrivacyLoss
    limit: PureDP | ZCDP


def choose_prepayment(epsilon: Decimal, delta: Decimal, budget: PrivacyLoss) -> Prepayment:
    """What (epsilon, delta) is charged as under this budget.

    Without a delta it is epsilon. With a delta it is the largest rho that implies (epsilon, delta): a budget in rho is
    charged this rho, and a budget in epsilon and delta is charged (epsilon, delta).
    """
    if not delta:
        return Prepayment(PureDP(epsilon), PureDP(epsilon))
    limit = ZCDP(find_largest_rho(epsilon, delta))
    match budget:
        case PureDP():
            hint = "Leave delta at 0 (Laplace noise), or declare a budget with a delta or with accounting='zcdp'."
            raise InvalidParameter("delta", "must be 0 under a budget without a delta", "a larger number", hint)
        case ApproxDP():
            return Prepayment(ApproxDP(epsilon, delta), limit)
        case ZCDP():
            return Prepayment(limit, limit)
        case GDP():
            hint = "Leave delta at 0 (Laplace noise), or declare the budget with accounting='zcdp'."
            raise InvalidParameter("delta", "must be 0 under a budget in mu", "a larger number", hint)
        case _:
            assert_never(budget)
