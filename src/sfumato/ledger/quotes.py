"""What asking would take now, and which stored answer would be used."""

from dataclasses import dataclass

from sfumato.errors import LedgerError
from sfumato.kernel.certify import Certificate
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.charging import list_shares, read_own_spent
from sfumato.ledger.entries import Head, Row
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.ledger_tables import GET_ANSWER
from sfumato.ledger.loss_sums import convert_loss, fits, make_zero_loss, price
from sfumato.ledger.release_index import Order, Release, find_releases, find_same
from sfumato.ledger.spending import Spending, read_charge, spend_nothing, spend_on
from sfumato.ledger.stored_answers import describe_certificate, is_precise_enough, read_certified


@dataclass(frozen=True, slots=True)
class Quote:
    """What `ask` would take now, and whether it fits. `shares` are those of the stored answer that it would return."""

    taken: Spending
    fits: bool
    shares: tuple[PrivacyLoss, ...] | None = None


def quote_certificate(
    rows: LedgerRows, now: Head, analyst: str, certificate: Certificate, limit: PrivacyLoss | None
) -> Quote:
    """What asking would take now, and whether it fits. `limit` is the analyst's own."""
    release = choose_stored(rows, certificate, analyst, limit, now.budget, whole=False)
    before, newest = rows.find_charge_of_plan(certificate.plan_digest, analyst)
    own = read_own_spent(newest, now.budget)
    if release is not None:
        taken = price_view(release.charge, limit, now.budget, has=release.has)
        shares = read_certified(release.charge["payload"]).shares
        return Quote(taken, taken.own is None or limit is None or fits(taken.own, own, limit), shares)
    paid = before is not None and before["payload"] == describe_certificate(certificate)
    if before and paid and rows.find_row(GET_ANSWER, charge=before["number"]) is None:
        return Quote(spend_nothing(certificate.loss, now.budget, limit), True)
    charge = _price_request(certificate, now.budget)
    if charge is None:  # a kind of loss that this budget cannot count
        return Quote(spend_on(certificate.loss, certificate.loss, limit), False)
    within = fits(charge, now.spent, now.budget) and (limit is None or fits(charge, own, limit))
    return Quote(spend_on(certificate.loss, charge, limit), within)


def price_view(charge: Row, limit: PrivacyLoss | None, budget: PrivacyLoss, *, has: bool) -> Spending:
    """What a stored answer takes: nothing, except from the own limit of an analyst who does not have it yet."""
    loss = read_certified(charge["payload"]).loss
    if limit is None or has:
        return spend_nothing(loss, budget, limit)
    return Spending(make_zero_loss(budget), convert_loss(read_charge(charge["loss"]), budget), loss)


def choose_stored(
    rows: LedgerRows,
    certificate: Certificate,
    analyst: str,
    limit: PrivacyLoss | None,
    budget: PrivacyLoss,
    *,
    whole: bool,
) -> Release | None:
    """The stored release that is used for a certificate: at least as precise, at the same delta.

    An analyst without a limit gets the most precise one. An analyst with a limit gets the most precise one that they
    have, or else the least precise one. Its loss must not be above what they asked for, since all of it counts on
    their limit. Only so many candidates are tried; the answer to this very certificate is found in any case, if the
    analyst has it, because no charge is made for it again.
    """
    best = _choose_best(rows, certificate, analyst, limit, budget, whole=whole)
    return find_same(rows, certificate, analyst) if best is None else best


def _choose_best(
    rows: LedgerRows,
    certificate: Certificate,
    analyst: str,
    limit: PrivacyLoss | None,
    budget: PrivacyLoss,
    *,
    whole: bool,
) -> Release | None:
    """The first of the candidates that may be used."""
    if limit is None:
        return _find_first(rows, certificate, analyst, Order.BEST, budget, whole=whole)
    own = _find_first(rows, certificate, analyst, Order.OWN_BEST, budget, whole=whole)
    if own is not None:
        return own
    asked = _price_request(certificate, budget)
    if asked is None:
        return None
    return _find_first(rows, certificate, analyst, Order.NEAREST, budget, whole=whole, most=asked)


def _find_first(
    rows: LedgerRows,
    certificate: Certificate,
    analyst: str,
    order: Order,
    budget: PrivacyLoss,
    *,
    whole: bool,
    most: PrivacyLoss | None = None,
) -> Release | None:
    """The first release in this order that is precise enough, and costs at most `most` if the analyst lacks it."""
    for release in find_releases(rows, certificate, analyst, order, whole=whole):
        if not is_precise_enough(release.charge, certificate):
            continue
        if release.has or _is_affordable(release.charge, budget, most):
            return release
    return None


def _is_affordable(charge: Row, budget: PrivacyLoss, most: PrivacyLoss | None) -> bool:
    """Whether the loss of a charge can be counted under today's budget, and is at most `most`."""
    try:
        cost = convert_loss(read_charge(charge["loss"]), budget)
    except LedgerError:
        return False
    return most is None or fits(cost, make_zero_loss(budget), most)


def _price_request(certificate: Certificate, budget: PrivacyLoss) -> PrivacyLoss | None:
    """What was asked for, in the kind of the budget; None if it cannot be converted."""
    try:
        return price(certificate.loss, list_shares(certificate), budget)
    except LedgerError:
        return None
