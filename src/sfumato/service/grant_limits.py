"""The limits of a grant as losses: of all questions together, and of a single one."""

from collections.abc import Callable, Iterable
from functools import lru_cache

from sfumato.answering.desk import Desk
from sfumato.answering.receipt import compute_cost
from sfumato.answers.answer import Cost
from sfumato.catalog.analysts import DEFAULT, find_analyst
from sfumato.catalog.budget import Budget
from sfumato.catalog.dataset import Dataset
from sfumato.errors import PermissionDenied, SfumatoError
from sfumato.kernel.certify import Certificate
from sfumato.kernel.losses import GDP, ZCDP, PrivacyLoss
from sfumato.ledger.charging import list_shares
from sfumato.ledger.loss_sums import price
from sfumato.ledger.spending import convert_sublimit, spend_on
from sfumato.service.accounts import Grant

Limits = dict[str, Budget]


def check_single_limit(desk: Desk, grant: Grant | None, analyst: str) -> Callable[[Certificate], None]:
    """What refuses a question above the grant's limit for one question.

    A question above it may still be asked if a stored answer to it costs less.
    """
    whole = desk.dataset.budget

    def check(certificate: Certificate) -> None:
        charge = price(certificate.loss, list_shares(certificate), whole.loss)
        cost = compute_cost(spend_on(certificate.loss, charge, None))
        if not is_single_allowed(whole, grant, cost):  # a stored answer never costs more
            refuse_single(whole, grant, compute_cost(desk.ledger.quote(analyst, certificate).taken))

    return check


def refuse_single(whole: Budget, grant: Grant | None, cost: Cost) -> None:
    """Refuse a cost above the grant's limit for one question."""
    if grant is not None and not is_single_allowed(whole, grant, cost):
        most = Cost.from_loss(_read_single_limit(whole, grant))
        message = f"A single question may cost at most {most}."
        raise PermissionDenied("per-query-limit", message, f"Ask for {most} or less.")


def is_single_allowed(whole: Budget, grant: Grant | None, cost: Cost) -> bool:
    """Whether a question of this cost is within the grant's limit for one question.

    It limits epsilon, or rho, or mu, and delta: the limit is converted to the accounting of the dataset.
    """
    return grant is None or not grant.per_query or _is_within(cost, _read_single_limit(whole, grant))


def _read_single_limit(whole: Budget, grant: Grant) -> PrivacyLoss:
    return make_grant_budget(grant.per_query, grant.per_query_delta or grant.delta, whole).loss


def _is_within(cost: Cost, limit: PrivacyLoss) -> bool:
    most = Cost.from_loss(limit)
    match limit:
        case ZCDP():
            amount, largest = cost.rho, most.rho
        case GDP():
            amount, largest = cost.mu_squared, most.mu_squared
        case _:
            amount, largest = cost.epsilon, most.epsilon
    return amount is not None and largest is not None and amount <= largest and cost.delta <= most.delta


def check_grant(grant: Grant, whole: Budget) -> None:
    """Refuse a grant that cannot be counted in the accounting of the dataset."""
    convert_sublimit(make_grant_budget(grant.epsilon, grant.delta, whole).loss, whole.loss)
    if grant.per_query:
        _read_single_limit(whole, grant)


def list_limits(declared: Dataset, owners: Iterable[str], grants: Iterable[Grant]) -> tuple[Limits, frozenset[str]]:
    """The analysts' own limits, and those whose grant cannot be counted: they are refused, and nobody else is.

    An owner's limit is the population's own budget. A grant is in place of a limit that the catalog has for the same
    name, or for another spelling of it.
    """
    limits, broken = dict(declared.analysts), set()
    limits |= {owner: declared.budget for owner in owners if find_analyst(owner, limits.keys() - {DEFAULT}) is None}
    for grant in grants:
        listed = find_analyst(grant.user, limits.keys() - {DEFAULT})
        if listed is not None:
            del limits[listed]
        try:
            check_grant(grant, declared.budget)
            limits[grant.user] = make_grant_budget(grant.epsilon, grant.delta, declared.budget)
        except SfumatoError:
            broken.add(grant.user)
    return limits, frozenset(broken)


@lru_cache(maxsize=1024)
def make_grant_budget(epsilon: str, delta: str, whole: Budget) -> Budget:
    """A limit of a grant. Accounting in rho or mu needs a delta: the dataset's own, if the grant has none."""
    if whole.accounting == "basic":
        return Budget(epsilon, delta)
    return Budget(epsilon, whole.delta if delta == "0" else delta, whole.accounting)
