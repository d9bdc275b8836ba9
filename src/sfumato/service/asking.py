"""One request for answers: within the reader's grant, paid once however often it is sent, and written down."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from typing import Any

from sfumato.answering.ask import ask
from sfumato.answering.workload import Workload, ask_workload, plan_workload
from sfumato.answers.answer import Answer, Cost
from sfumato.catalog.catalog_file import write_public_catalog
from sfumato.catalog.dataset import Dataset
from sfumato.curator import Curator
from sfumato.errors import LedgerError
from sfumato.json_values import write_json
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.plan import LOWERING_VERSION
from sfumato.ledger.loss_sums import add_losses, convert_loss, make_zero_loss
from sfumato.remote.answer_wire import write_answer_wire
from sfumato.service.accounts import Accounts, Grant, User
from sfumato.service.api_questions import Question, WorkloadQuestion
from sfumato.service.grant_limits import check_single_limit, refuse_single
from sfumato.service.idempotent_requests import CLOSED, Attempt, IdempotentRequests, find_marked
from sfumato.service.served_datasets import ServedDatasets

NEW_KEY = "Send a new key to ask again. It is a new charge."
Asked = Question | WorkloadQuestion


@dataclass(frozen=True, slots=True)
class Written:
    """The answers to a request, each as the JSON text that is kept for retries and sent."""

    texts: tuple[str, ...]

    def write_list(self) -> str:
        """All of them, as one JSON text."""
        return f"[{','.join(self.texts)}]"

    def read(self) -> list[dict[str, Any]]:
        """The answers, for `read_answer_wire`."""
        return [json.loads(text) for text in self.texts]


@dataclass(frozen=True, slots=True)
class Asking:
    """Answers the requests of a service."""

    accounts: Accounts
    served: ServedDatasets
    requests: IdempotentRequests

    def answer(self, name: str, asked: Asked, user: User, key: str | None = None) -> Written:
        """The answers to a request, as the API sends them. The same key never pays twice."""
        with self.served.using(name, user) as (curator, grant), curator.at_desk():
            if key is None:
                return self._keep(None, user, name, _ask(curator, grant, asked, user, None))
            state = describe_state(curator)
            request = f"{name}\n{asked.model_dump_json()}"
            last = curator.ledger().newest_number
            with self.requests.attempt(user.name, key, request, last, state) as attempt:
                if attempt.answer is not None:
                    return Written(tuple(map(write_json, attempt.answer)))
                self._refuse_second_charge(curator, attempt, state)
                return self._keep(attempt, user, name, _ask(curator, grant, asked, user, attempt.mark))

    def _refuse_second_charge(self, curator: Curator, attempt: Attempt, state: str) -> None:
        """Refuse a retry whose first charge is closed, or is about other data. An open charge is resumed."""
        failure = attempt.failure
        if not failure and not attempt.first:
            charge = find_marked(curator.ledger(), attempt)
            if charge is not None and charge.closed:
                failure = "The answer of an earlier attempt could not be made, and its charge is closed."
            elif charge is not None and attempt.state != state:
                failure = "An earlier attempt was charged, and the data or the catalog has changed since."
            if failure:
                self.requests.fail(attempt, failure)
        if failure:
            raise LedgerError(CLOSED, failure, NEW_KEY)

    def _keep(self, attempt: Attempt | None, user: User, name: str, answers: Sequence[Answer]) -> Written:
        written = Written(tuple(write_json(write_answer_wire(answer)) for answer in answers))
        detail = "; ".join(f"entry {answer.entry}, cost {answer.cost}" for answer in answers)
        self.requests.finish(attempt, user.name, name, detail, written.write_list())
        return written


_DECLARED: dict[int, tuple[Dataset, str]] = {}  # catalogs as texts: it takes as long as to plan a question
MOST_DECLARED = 64


def _write_declared(dataset: Dataset) -> str:
    """The catalog of a dataset. It is remembered with the very object, which does not change."""
    found = _DECLARED.get(id(dataset))
    if found is not None and found[0] is dataset:
        return found[1]
    if len(_DECLARED) >= MOST_DECLARED:
        _DECLARED.clear()
    text = write_public_catalog(dataset)
    _DECLARED[id(dataset)] = (dataset, text)
    return text


def describe_state(curator: Curator) -> str:
    """What a plan follows from, besides the question: the declarations, the data versions, and how plans are run."""
    declared = _write_declared(curator.dataset)
    return sha256(f"{LOWERING_VERSION}\n{sorted(curator.versions.items())}\n{declared}".encode()).hexdigest()


def price_workload(workload: Workload, budget: PrivacyLoss) -> Cost:
    """What a workload takes of a budget."""
    counted = reduce(add_losses, (convert_loss(loss, budget) for loss in workload.losses), make_zero_loss(budget))
    return Cost.from_loss(counted)


def _ask(curator: Curator, grant: Grant | None, asked: Asked, user: User, mark: str | None) -> list[Answer]:
    with curator.at_desk() as desk:
        if isinstance(asked, WorkloadQuestion):
            workload = plan_workload(desk, asked.write_wanted(), asked.confidence, asked.epsilon, asked.rho)
            budget = desk.dataset.budget
            refuse_single(budget, grant, price_workload(workload, budget.loss))  # all of it is one charge
            return ask_workload(desk, workload, user.name, mark)
        answer = ask(
            desk, asked.sql, asked.epsilon, rho=asked.rho, delta=asked.delta, margin=asked.margin,
            confidence=asked.confidence, analyst=user.name, request=mark,
            check=check_single_limit(desk, grant, user.name),
        )  # fmt: skip
        return [answer]
