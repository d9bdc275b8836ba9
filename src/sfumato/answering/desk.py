"""The desk where questions are answered: the data, the ledger and the keys of one dataset.

The functions of this package (`ask`, `preview`, `upgrade`, `ask_workload`, `begin_watch`, `diagnose`, `find_bounds`,
`rehearse`) take a desk as their first argument. `charged_draws` has the order in which data is charged for and read.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sfumato.answering.certified_plans import CertifiedPlans
from sfumato.answering.charged_draws import charge_and_release
from sfumato.answering.receipt import Answered, Receipt
from sfumato.answers.disclosure import Signer
from sfumato.catalog.analysts import admit_analyst
from sfumato.catalog.dataset import Dataset
from sfumato.engines.engine import Engine
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.ledger.ledger import AlreadyAnswered, Ledger
from sfumato.number_arguments import Number, read_privacy_amount
from sfumato.planning.planner import Planned, choose_plan
from sfumato.query.query import Query

DEFAULT_ANALYST = "analyst"


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

    def plan(self, query: Query, loss: PureDP | ZCDP, delta: Number | None = None, *, laplace: bool = False) -> Planned:
        """Plan a query on this desk's data at this loss. `laplace`: an epsilon pays for Laplace noise in any case."""
        share = None if delta is None else read_privacy_amount(delta, "delta")
        return choose_plan(query, loss, self.dataset, self.versions, delta=share, laplace=laplace)

    def answer(self, certified: CertifiedPlans, analyst: str, question: Callable[[], str]) -> Answered:
        """The stored answer if there is one that is precise enough; otherwise a new one, for its price.

        `question` writes the question down for the ledger. It is called only for a charge, because it takes time.
        """
        stored = self.find_stored(certified, analyst)
        if stored is not None:
            return stored
        try:
            return charge_and_release(self.engine, self.ledger, certified, analyst, question())
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


AtDesk = Callable[[], AbstractContextManager[Desk]]  # opens the desk of one question, with the data as it is then
