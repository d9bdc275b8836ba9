"""Answer one question. DESIGN.md, "The calls that produce one answer", lists these calls."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from sfumato.answering.ask_together import answer_together
from sfumato.answering.certified_plans import CheckCertificate, accept_any, certify_plan
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.least_epsilon import find_least_epsilon
from sfumato.answering.present_answer import PlannedQuery, present_answer
from sfumato.answering.prices import choose_delta, choose_loss, read_assumed_rows, read_margins, refuse_assumption
from sfumato.answering.question_record import record_question, write_record
from sfumato.answers.answer import Answer
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.number_arguments import Number, read_probability
from sfumato.query.bound_question import bind_question
from sfumato.query.contribution_limits import limit_contributions
from sfumato.query.frame import FrameQuery
from sfumato.query.interval_share import add_quantile_intervals
from sfumato.query.query import Query


def ask(
    desk: Desk,
    question: str | FrameQuery,
    epsilon: Number | None = None,
    *,
    rho: Number | None = None,
    delta: Number | None = None,
    margin: Mapping[str, float] | None = None,
    assume: Mapping[str, float] | None = None,
    confidence: Number = "0.95",
    analyst: str = DEFAULT_ANALYST,
    max_rows: int | None = None,
    max_groups: int | None = None,
    interval_share: Number | None = None,
    request: str | None = None,
    check: CheckCertificate = accept_any,
) -> Answer:
    """Answer a question for its price. If the ledger has an answer that is as precise, it is free.

    `request` is recorded with the charge, so that a service finds the charge of a request that is sent again. `check`
    may refuse the certificate, before the ledger looks for an answer or charges it.
    """
    bound = bind_question(question, desk.dataset)
    query = limit_contributions(bound.query, max_rows, max_groups, desk.dataset)
    level = read_probability(confidence, "confidence")
    query = add_quantile_intervals(query, interval_share, level)
    margins = read_margins(query, margin, epsilon, rho)
    count = read_assumed_rows(assume)
    if margins is None:
        refuse_assumption(count)
        loss: PureDP | ZCDP = choose_loss(query, epsilon, rho)
    else:
        loss = find_least_epsilon(desk, query, margins, level, count)

    def write_question() -> str:
        share = None if interval_share is None else str(interval_share)
        limits: dict[str, object] = {"max_rows": max_rows, "max_groups": max_groups, "interval_share": share}
        limits |= {"assumed_rows": count, "request": request}
        given = {name: limit for name, limit in limits.items() if limit is not None}
        return write_record("ask", record_question(bound.tree, query, margins), confidence=level, **given)

    share, name = choose_delta(query, delta), desk.admit(analyst)
    if query.beside:
        return answer_together(desk, query, loss, level, name, share, write_question, check)
    return answer_query(desk, query, loss, level, name, share, write_question, check)


def answer_query(  # noqa: PLR0917 - its callers name what they pass
    desk: Desk,
    query: Query,
    loss: PureDP | ZCDP,
    confidence: Fraction,
    analyst: str,
    delta: Number | None,
    write_question: Callable[[], str],
    check: CheckCertificate = accept_any,
) -> Answer:
    """Plan, certify, charge and release (or find the stored answer), and present."""
    planned = desk.plan(query, loss, delta)
    certified = certify_plan(planned.plan)
    check(certified.certificate)
    answered = desk.answer(certified, analyst, write_question)
    return present_answer(desk, PlannedQuery(query, planned, confidence), answered.released[0], answered.receipt)
