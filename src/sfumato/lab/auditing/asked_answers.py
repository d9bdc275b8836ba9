"""Ask once as a user does, and compare the answer with what the ledger charged and stored for it."""

from collections.abc import Iterator

from sfumato.answering.certified_plans import certify_plan
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.present_answer import PlannedQuery, present_answer
from sfumato.answering.prices import choose_delta, choose_loss
from sfumato.lab.auditing.audit_stage import Setting
from sfumato.lab.auditing.independent_prices import covers
from sfumato.lab.auditing.shown_answers import rebuild, show_answer
from sfumato.number_arguments import read_probability

PAID = ("cost", "population_cost", "remaining", "cached", "own_remaining", "to_dict()", "_repr_html_()")


def check_asked(desk: Desk, sql: str, setting: Setting) -> Iterator[str]:
    """The faults of one answer: its charge, what was stored, what it shows, and the same question again."""

    query = setting.bind(sql, desk.dataset)
    planned = desk.plan(query, choose_loss(query, setting.epsilon, setting.rho), choose_delta(query, setting.delta))
    certified = certify_plan(planned.plan)
    before = desk.ledger.head()[0]
    answer = setting.ask(desk, sql)
    spent = desk.ledger.totals().spent
    if not covers(spent, certified.certificate) or desk.ledger.head()[0] == before:
        yield "A complete answer is not charged."
    stored = desk.find_stored(certified, DEFAULT_ANALYST)
    if stored is None:
        yield "A complete answer is not stored under its plan."
        return
    asked = PlannedQuery(query, planned, read_probability("0.95", "confidence"))
    again = show_answer(present_answer(desk, asked, rebuild(stored.released[0]), stored.receipt))
    for name, text in show_answer(answer).items():
        if name not in PAID and again.get(name) != text:
            yield f"{name} of a complete answer is not that of the release that was stored."
    if setting.ask(desk, sql).rows != answer.rows or desk.ledger.totals().spent != spent:
        yield "The same question again is charged again, or its stored answer differs."
