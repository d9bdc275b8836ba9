"""A question that needs several releases (ROLLUP, UNION ALL, a share of another total): one charge for all of them."""

from collections.abc import Callable
from fractions import Fraction

from sfumato.answering.certified_plans import CertifiedPlans, CheckCertificate, accept_any, certify_together
from sfumato.answering.desk import Desk
from sfumato.answering.present_answer import PlannedQuery, present_answer
from sfumato.answering.receipt import compute_population_cost
from sfumato.answers.answer import Answer
from sfumato.answers.finished_answer import Bill, finish_answer
from sfumato.answers.interval_columns import add_interval_columns
from sfumato.errors import InvalidParameter
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.number_arguments import Number
from sfumato.planning.shares import split_delta, split_evenly
from sfumato.query.query import Query

ALONE = "Use ask() or preview(), or ask for each part on its own."


def plan_together(
    desk: Desk, query: Query, loss: PureDP | ZCDP, confidence: Fraction, delta: Number | None
) -> tuple[list[PlannedQuery], CertifiedPlans]:
    """Plan all queries of a question. They share the loss evenly, and those with undeclared keys share delta."""
    queries = [query, *query.beside]
    shares = split_evenly(loss, len(queries))
    undeclared = [any(key.values is None for key in query.keys) for query in queries]
    deltas = split_delta(delta, undeclared, desk.dataset)
    asked = [
        PlannedQuery(query, desk.plan(query, share, part), confidence)
        for query, share, part in zip(queries, shares, deltas, strict=True)
    ]
    return asked, certify_together([question.planned.plan for question in asked])


def answer_together(  # noqa: PLR0917 - its caller names what it passes
    desk: Desk,
    query: Query,
    loss: PureDP | ZCDP,
    confidence: Fraction,
    analyst: str,
    delta: Number | None,
    write_question: Callable[[], str],
    check: CheckCertificate = accept_any,
) -> Answer:
    """Charge and release all queries of a question at once, and compute its rows from them."""
    asked, certified = plan_together(desk, query, loss, confidence, delta)
    check(certified.certificate)
    answered = desk.answer(certified, analyst, write_question)
    parts = [
        present_answer(desk, question, released, answered.receipt.part(released.certificate), finished=False)
        for question, released in zip(asked, answered.released, strict=True)
    ]
    receipt = answered.receipt
    bill = Bill(receipt.cost, compute_population_cost(receipt.taken), certified.certificate.loss)
    if query.finish is None:
        raise AssertionError("a question of several queries has a finish")
    made = finish_answer(parts, query.finish, bill, together=query.together)
    return add_interval_columns(made, query.interval_columns)


def refuse_several(query: Query, where: str, hint: str = ALONE) -> None:
    """Refuse a question that needs several releases, in a call that makes one."""
    if query.beside:
        needed = f"one that needs {1 + len(query.beside)}"
        raise InvalidParameter("question", f"must need one release in {where}", needed, hint)
