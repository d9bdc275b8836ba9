"""What the ledger says of an answer that is given: to whom, what it takes, and the chain's head after it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.answers.answer import Cost
from sfumato.kernel.certify import Certificate, certify
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import Released
from sfumato.ledger.charges import Taken, amounts_of, nothing, price, taken_for
from sfumato.ledger.stored import Stored


@dataclass(frozen=True, slots=True)
class Given:
    """An answer that is given. `cached`: it was stored before."""

    analyst: str
    head: str
    taken: Taken
    cached: bool

    def part(self, certificate: Certificate) -> "Given":
        """The same of one question, where several were charged together."""
        if not any(amounts_of(self.taken.population)):
            return self
        shares = tuple(each.loss for each in certificate.measurements)
        charge = price(certificate.loss, shares, self.taken.population)
        return replace(self, taken=taken_for(certificate.loss, charge, self.taken.own))


def cost_of(taken: Taken) -> Cost:
    """What the asker pays: of their own limit if they have one, else of the population's budget."""
    return Cost.taken(taken.loss, taken.population if taken.own is None else taken.own)


def population_cost(taken: Taken) -> Cost:
    """What the population's budget pays."""
    loss = taken.loss if any(amounts_of(taken.population)) else nothing(taken.loss)
    return Cost.taken(loss, taken.population)


def as_stored(plan: BoundedPlan, stored: Stored) -> Released:
    """A stored answer, certified again with the shares that it was given for."""
    return Released(stored.entry_number, certify(with_shares(plan, stored.shares)), stored.integers, stored.keys)


def with_shares(plan: BoundedPlan, shares: Sequence[PrivacyLoss]) -> BoundedPlan:
    """The plan as it was when its measurements had these shares of the loss."""
    priced = zip(plan.measurements, shares, strict=True)
    return replace(plan, measurements=tuple(replace(each, loss=share) for each, share in priced))
