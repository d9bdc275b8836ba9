"""What the ledger says about an answer: who got it, what it took from which budget, and the head of the chain."""

from dataclasses import dataclass, replace

from sfumato.answers.answer import Cost
from sfumato.kernel.certify import Certificate
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.release import Released
from sfumato.ledger.loss_sums import make_zero_loss, price, split_loss
from sfumato.ledger.spending import Spending, spend_on

# what became of a charge when its answer failed after the draw
CLOSED = "Noise was drawn for this charge, so it is spent and closed: asking again is another charge."
STORED = "The answer was already stored: asking again returns it at no further cost. A watch is over."
LEFT_OPEN = (
    "The charge is spent, and could not be closed: it stays open. Once the ledger can be written again, asking again "
    "resumes it at no further cost, with new noise. A watch is over."
)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The ledger's side of one answer. `cached`: the answer was stored before, and nothing was drawn for it."""

    analyst: str
    head: str
    taken: Spending
    cached: bool

    @property
    def cost(self) -> Cost:
        """What the analyst pays: from their own limit if they have one, otherwise from the population's budget."""
        return compute_cost(self.taken)

    def free(self) -> "Receipt":
        """The receipt of a question out of several whose parts are all counted for the others."""
        population, own, loss = self.taken.population, self.taken.own, self.taken.loss
        nothing = Spending(
            make_zero_loss(population), None if own is None else make_zero_loss(own), make_zero_loss(loss)
        )
        return replace(self, taken=nothing)

    def part(self, certificate: Certificate) -> "Receipt":
        """The receipt of one question out of several that were charged together."""
        population, own = self.taken.population, self.taken.own
        if _is_free(population) and (own is None or _is_free(own)):
            return self
        charge = price(certificate.loss, tuple(part.loss for part in certificate.measurements), population)
        if _is_free(population):  # another analyst paid; only this analyst's own limit is charged
            return replace(self, taken=Spending(population, charge, certificate.loss))
        return replace(self, taken=spend_on(certificate.loss, charge, own))


@dataclass(frozen=True, slots=True)
class Answered:
    """What was released for the plans of one charge, one entry per plan, and the ledger's receipt."""

    released: tuple[Released, ...]
    receipt: Receipt


def compute_cost(taken: Spending) -> Cost:
    """What an analyst pays: from their own limit if they have one, otherwise from the population's budget."""
    return Cost.from_charge(taken.loss, taken.population if taken.own is None else taken.own)


def compute_population_cost(taken: Spending) -> Cost:
    """What the population's budget pays."""
    loss = make_zero_loss(taken.loss) if _is_free(taken.population) else taken.loss
    return Cost.from_charge(loss, taken.population)


def _is_free(loss: PrivacyLoss) -> bool:
    return not any(split_loss(loss))
