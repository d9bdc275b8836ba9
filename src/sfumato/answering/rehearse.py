"""Rehearse a question on made-up rows, from the catalog alone. It reads no data and costs nothing."""

from dataclasses import replace

from sfumato.answering.ask import answer_query
from sfumato.answering.ask_together import answer_together, plan_together
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.made_up_rows import declare_made_up, find_needed_tables, make_rows
from sfumato.answering.prices import choose_delta, choose_loss
from sfumato.answers.answer import Answer
from sfumato.answers.disclosure import Signer
from sfumato.catalog.dataset import replace_tables
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.kernel.certify import certify
from sfumato.kernel.losses import ApproxDP, PrivacyLoss, PureDP
from sfumato.ledger.charging import list_shares
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.loss_sums import price
from sfumato.number_arguments import Number, read_probability
from sfumato.query.bind import bind
from sfumato.query.parse import parse
from sfumato.query.source_outline import outline_source


def rehearse(
    desk: Desk, sql: str, epsilon: Number | None = None, *, rho: Number | None = None, confidence: Number = "0.95"
) -> Answer:
    """Answer a question on made-up rows, with real noise, from a ledger in memory that is dropped afterwards.

    Without a price, epsilon is 1.
    """
    query = bind(parse(sql), desk.dataset)
    level, delta = read_probability(confidence, "confidence"), choose_delta(query, None)
    own = query.dp_options.epsilon if query.dp_options is not None else None
    priced = any(amount is not None for amount in (epsilon, rho, own))
    loss = choose_loss(query, epsilon, rho) if priced else PureDP(1)
    limit: PrivacyLoss
    if isinstance(loss, PureDP) and desk.dataset.budget.accounting == "basic":
        limit = ApproxDP(loss.epsilon, desk.dataset.budget.delta)
    else:  # what the question takes
        certificate = (
            plan_together(desk, query, loss, level, delta)[1].certificate
            if query.beside
            else certify(desk.plan(query, loss, delta).plan)
        )
        limit = price(certificate.loss, list_shares(certificate), desk.dataset.budget.loss)
    named = dict.fromkeys(
        name for asked_query in (query, *query.beside) for name in outline_source(asked_query.source).tables
    )
    tables = {table.name: declare_made_up(table) for table in find_needed_tables(named, desk.dataset)}
    engine = DuckDBEngine.of_tables({name: (table, make_rows(table)) for name, table in tables.items()})
    ledger = Ledger.create(None, desk.dataset.population, Limit(limit))
    dataset = replace_tables(desk.dataset, {**desk.dataset.tables, **tables})
    try:
        stage = replace(desk, dataset=dataset, engine=engine, ledger=ledger, signer=Signer())
        if query.beside:
            answer = answer_together(stage, query, loss, level, DEFAULT_ANALYST, delta, str)
        else:
            answer = answer_query(stage, query, loss, level, DEFAULT_ANALYST, delta, str)
        return replace(answer, rehearsed=True)
    finally:
        ledger.close()
        engine.close()
