"""The desk where questions are answered, and the only place that charges for noise and draws it.

Part of the trusted perimeter. A desk holds the data, the ledger and the keys of one dataset. The functions of this
package (`ask`, `preview`, `upgrade`, `ask_workload`, `begin_watch`, `diagnose`, `find_bounds`, `rehearse`) take a desk
as their first argument.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

from sfumato.answering.certified_plans import CertifiedPlans
from sfumato.answering.receipt import Receipt
from sfumato.answers.disclosure import Signer
from sfumato.catalog.analysts import admit_analyst
from sfumato.catalog.dataset import Dataset
from sfumato.engines.engine import Engine
from sfumato.errors import KernelFault, LedgerError, QueryError
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.parameters import Number
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import ExactAggregates, Released
from sfumato.kernel.reservation import Reservation
from sfumato.ledger.ledger import AlreadyAnswered, Ledger
from sfumato.number_arguments import privacy_amount
from sfumato.planning.planner import Planned, choose_plan
from sfumato.query.query import Query

DEFAULT_ANALYST = "analyst"
# what became of a charge when its answer failed after the draw
CLOSED = "Noise was drawn for this charge, so it is spent and closed: asking again is another charge."
STORED = "The answer was already stored: asking again returns it at no further cost. A watch is over."
LEFT_OPEN = (
    "The charge is spent, and could not be closed: it stays open. Once the ledger can be written again, asking again "
    "resumes it at no further cost, with new noise. A watch is over."
)
Drawn = TypeVar("Drawn")
Summarise = Callable[[Released], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Answered:
    """What was released for the plans of one charge, one entry per plan, and the ledger's receipt."""

    released: tuple[Released, ...]
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything that one question needs. It does not change while a question is answered."""

    dataset: Dataset
    engine: Engine
    ledger: Ledger
    versions: Mapping[str, str]
    signer: Signer

    def admit(self, analyst: object) -> str:
        """The name that is charged. If the catalog lists analysts, any other name is refused."""
        return admit_analyst(analyst, self.dataset.analysts)

    def plan(self, query: Query, loss: PureDP | ZCDP, delta: Number | None = None) -> Planned:
        """Plan a query on this desk's data at this loss."""
        share = None if delta is None else privacy_amount(delta, "delta")
        return choose_plan(query, loss, self.dataset, self.versions, delta=share)

    def answer(self, certified: CertifiedPlans, analyst: str, question: Callable[[], str]) -> Answered:
        """The stored answer if there is one that is precise enough; otherwise a new one, for its price.

        `question` writes the question down for the ledger. It is called only for a charge, because it takes time.
        """
        stored = self.find_stored(certified, analyst)
        if stored is not None:
            return stored
        try:
            return self.charge_and_release(certified, analyst, question())
        except AlreadyAnswered:  # another process of the same analyst was faster: use its answer
            stored = self.find_stored(certified, analyst)
            if stored is None:
                raise
            return stored

    def find_stored(self, certified: CertifiedPlans, analyst: str) -> Answered | None:
        """The ledger's answer to these plans, at least as precise; None if there is none."""
        stored = self.ledger.find_stored(certified.certificate, analyst)
        if stored is None:
            return None
        return Answered(certified.read_stored(stored), Receipt(analyst, stored.head, stored.taken, cached=True))

    def charge_and_release(
        self, certified: CertifiedPlans, analyst: str, question: str, summarise: Summarise | None = None
    ) -> Answered:
        """Check, charge, measure, add noise once, store: in this order. Nothing else in Sfumato has this order.

        The charge is durable before the engine reads data, and the answer is durable before any of it is returned.
        `summarise` computes what an upgrade stores next to the answer.
        """
        for plan in certified.plans:
            self.engine.check(plan)
        reservation, taken = self.ledger.charge(analyst, certified.certificate, question)

        def release_and_store(exact: Sequence[ExactAggregates]) -> Answered:
            released, whole = certified.release(exact, reservation)
            summary = None if summarise is None else summarise(whole)
            head = self.ledger.store(reservation, whole, summary)
            return Answered(released, Receipt(analyst, head, taken, cached=False))

        return self.draw_once(certified.plans, reservation, release_and_store)

    def draw_once(
        self, plans: Sequence[BoundedPlan], reservation: Reservation, draw: Callable[[Sequence[ExactAggregates]], Drawn]
    ) -> Drawn:
        """Measure the plans, then draw their noise. If anything fails or interrupts from the draw on, close the charge.

        A failure after the draw may depend on the noise. If the charge stayed open, the analyst could resume it and
        draw again until the noise suits them. Closing a charge writes a constant text, so whether that succeeds does
        not depend on the noise (docs/claims/K-28.md). Every error says what became of the charge.
        """
        exact = [self.engine.aggregate(plan) for plan in plans]
        try:
            return draw(exact)
        except QueryError:  # refused before the draw: a watch that is busy or finished
            raise
        except AlreadyAnswered:  # another request stored its answer to this charge first; this draw is dropped
            raise
        except LedgerError as error:
            raise LedgerError(error.code, error.message, f"{error.hint} {self._close(reservation)}".strip()) from error
        except Exception:  # its text and its cause may depend on data and noise: keep neither
            outcome = self._close(reservation)
        except BaseException as interrupt:  # KeyboardInterrupt, SystemExit and the like: the caller's, not a failure
            interrupt.add_note(self._close(reservation))
            raise
        raise KernelFault(f"The answer could not be made. {outcome}")

    def _close(self, reservation: Reservation) -> str:
        """Close a charge whose answer failed after the draw, and say what became of it."""
        try:
            closed = self.ledger.void(reservation)
        except Exception:
            return LEFT_OPEN
        return CLOSED if closed else STORED


AtDesk = Callable[[], AbstractContextManager[Desk]]  # opens the desk of one question, with the data as it is then
