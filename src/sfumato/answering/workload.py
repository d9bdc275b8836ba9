"""Several questions at once: the smallest epsilon for all their margins, and one charge for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sfumato.answering.ask_together import refuse_several
from sfumato.answering.certified_plans import certify_together
from sfumato.answering.desk import Desk
from sfumato.answering.least_epsilon import find_least_epsilon
from sfumato.answering.present_answer import PlannedQuery, present_answer
from sfumato.answering.prices import check_margins
from sfumato.answering.question_record import record_question, write_record
from sfumato.answers.answer import Answer, Cost
from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.exact import sum_exactly
from sfumato.kernel.losses import PureDP
from sfumato.number_arguments import Number, read_probability
from sfumato.query.bind import bind
from sfumato.query.dp_options import refuse_epsilon
from sfumato.query.parse import parse
from sfumato.query.query import KeyRef, Query

Margin = float | Mapping[str, float]
Wanted = Sequence[tuple[str, Margin]]


@dataclass(frozen=True, slots=True)
class Share:
    """One question of a workload, its margins, and its epsilon."""

    sql: str
    margin: Mapping[str, float]
    epsilon: Decimal


@dataclass(frozen=True, slots=True)
class Workload:
    """Questions, each with the smallest epsilon that gives its margins. The total is the sum of these epsilons."""

    shares: tuple[Share, ...]
    confidence: Fraction

    @property
    def cost(self) -> Cost:
        """The total. A question that is named twice is asked and paid once."""
        once = {share.sql: Fraction(share.epsilon) for share in self.shares}
        return Cost.from_loss(PureDP(sum_exactly(sum(once.values(), Fraction(0)))))

    def __str__(self) -> str:
        lines = [f"ε = {share.epsilon}: {share.sql}" for share in self.shares]
        return "\n".join([f"{self.cost} in all", *lines])


def plan_workload(desk: Desk, wanted: Wanted, confidence: Number) -> Workload:
    """The smallest epsilon, to three digits, for every question. A question that is named twice gets the larger one."""
    level = read_probability(confidence, "confidence")
    needed: dict[str, tuple[Query, dict[str, float]]] = {}
    for sql, margin in _read_pairs(wanted):
        query, margins = needed.get(sql, (None, {}))
        query = query or bind(parse(sql), desk.dataset)
        refuse_several(query, "ask_all")
        refuse_epsilon(query.dp_options, "its margin decides what is spent")
        for name, most in _read_margins(query, margin).items():
            margins[name] = min(most, margins.get(name, most))
        needed[sql] = (query, margins)
    shares = tuple(
        Share(sql, margins, find_least_epsilon(desk, query, margins, level).epsilon)
        for sql, (query, margins) in needed.items()
    )
    return Workload(shares, level)


def _read_pairs(wanted: object) -> list[tuple[str, Margin]]:
    hint = "For example [(sql, 20)], or [(sql, {'n': 20})]."
    if not isinstance(wanted, Sequence) or isinstance(wanted, (str, bytes)):
        raise InvalidParameter(
            "questions", "must be a list of questions with their margins", describe_kind(wanted), hint
        )
    if not wanted:
        raise InvalidParameter("questions", "must be at least one", "none", hint)
    for pair in wanted:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise InvalidParameter("questions", "must be pairs of SQL text and a margin", describe_kind(pair), hint)
    return [(sql, margin) for sql, margin in wanted]


def _read_margins(query: Query, margin: Margin) -> dict[str, float]:
    if isinstance(margin, Mapping):
        return check_margins(margin)
    return check_margins({name: margin for name, post in query.columns if not isinstance(post, KeyRef)})


def ask_workload(desk: Desk, workload: Workload, analyst: str) -> list[Answer]:
    """Answer all questions for one charge, in their order. Asking the same workload again is free."""
    asked: list[PlannedQuery] = []
    records: list[dict[str, object]] = []
    for share in workload.shares:
        tree = parse(share.sql)
        query = bind(tree, desk.dataset)
        refuse_several(query, "ask_all")
        records.append(record_question(tree, query, share.margin))
        refuse_epsilon(query.dp_options, "the workload decides what is spent")
        planned = desk.plan(query, PureDP(share.epsilon))
        if planned.plan.cells is None:
            hint = "Ask it on its own, or declare the key's values."
            raise InvalidParameter("questions", "must have declared keys", "one with an undeclared key", hint)
        asked.append(PlannedQuery(query, planned, workload.confidence))
    certified = certify_together([question.planned.plan for question in asked])

    def write_questions() -> str:
        return write_record("ask_all", *records, confidence=workload.confidence)

    answered = desk.answer(certified, desk.admit(analyst), write_questions)
    return [
        present_answer(desk, question, released, answered.receipt.part(released.certificate))
        for question, released in zip(asked, answered.released, strict=True)
    ]
