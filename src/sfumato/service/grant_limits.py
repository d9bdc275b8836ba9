"""The limits of a grant as losses: of all questions together, and of a single one."""

from sfumato.answers.answer import Cost
from sfumato.catalog.budget import Budget
from sfumato.errors import PermissionDenied
from sfumato.kernel.losses import GDP, ZCDP, PrivacyLoss
from sfumato.service.accounts import Grant


def check_single_limit(whole: Budget, grant: Grant | None, cost: Cost) -> None:
    """Refuse a question above the grant's limit for one question: in epsilon, or rho, or mu, and in delta.

    The limit is converted to the accounting of the dataset as the whole grant is.
    """
    if grant is None or not grant.per_query:
        return
    limit = make_grant_budget(grant.per_query, grant.per_query_delta or grant.delta, whole).loss
    most = Cost.from_loss(limit)
    if not _is_within(cost, most, limit):
        hint = f"Ask for {most} or less."
        raise PermissionDenied("per-query-limit", f"A single question may cost at most {most}.", hint)


def _is_within(cost: Cost, most: Cost, limit: PrivacyLoss) -> bool:
    match limit:
        case ZCDP():
            amount, largest = cost.rho, most.rho
        case GDP():
            amount, largest = cost.mu_squared, most.mu_squared
        case _:
            amount, largest = cost.epsilon, most.epsilon
    return amount is not None and largest is not None and amount <= largest and cost.delta <= most.delta


def make_grant_budget(epsilon: str, delta: str, whole: Budget) -> Budget:
    """A limit of a grant. Accounting in rho or mu needs a delta: the dataset's own, if the grant has none."""
    if whole.accounting == "basic":
        return Budget(epsilon, delta)
    return Budget(epsilon, whole.delta if delta == "0" else delta, whole.accounting)
