"""The same ledger on PostgreSQL. It runs if SFUMATO_POSTGRES_URL names a server on which a schema can be created."""

import os
import uuid

import pytest
import sqlalchemy as sa
from ledger_questions import POPULATION, ask, make_plain_answer, make_question
from test_processes import finish, spend, start

from sfumato.errors import BudgetExceeded, KernelFault, LedgerError
from sfumato.kernel.losses import ApproxDP, PureDP
from sfumato.ledger.ledger import Ledger, Limit

SERVER = os.environ.get("SFUMATO_POSTGRES_URL")
pytestmark = pytest.mark.skipif(not SERVER, reason="SFUMATO_POSTGRES_URL is not set")


@pytest.fixture
def server():
    engine = sa.create_engine(SERVER)
    yield engine
    engine.dispose()


@pytest.fixture
def schema(server):
    name = f"ledger_{uuid.uuid4().hex}"
    with server.begin() as connection:
        connection.execute(sa.text(f"CREATE SCHEMA {name}"))
    yield name
    with server.begin() as connection:
        connection.execute(sa.text(f"DROP SCHEMA {name} CASCADE"))


@pytest.fixture
def url(schema):
    return sa.make_url(SERVER).update_query_dict({"options": f"-csearch_path={schema}"}).render_as_string(False)


def test_a_life(url):
    limit = Limit(ApproxDP(1, "1e-6"))
    with pytest.raises(LedgerError, match="There is no ledger"):
        Ledger.open(url, "0", POPULATION, limit)
    with Ledger.create(url, POPULATION, limit, {"bob": PureDP("0.5")}) as ledger:
        assert ask(ledger, "ann", make_question(PureDP("0.4"), "a"))
        assert not ask(ledger, "bob", make_question(PureDP("0.4"), "a"))
        key = make_question(PureDP("0.4"), "a").answer_key
        assert [stored.analyst for stored in ledger.find_earlier(key, "bob").rest] == ["ann"]
        assert ledger.find_earlier(key, "cyd").rest == ()
        assert not ledger.fits("bob", make_question(PureDP("0.4"), "b"))
        with pytest.raises(BudgetExceeded, match="own limit"):
            ledger.reserve("bob", make_question(PureDP("0.4"), "b"))
        lost = ledger.reserve("ann", make_question(PureDP("0.6"), "b"))
    with pytest.raises(LedgerError, match="There is a ledger at this address"):
        Ledger.create(url, POPULATION, limit)
    with Ledger.open(
        url, ledger.ledger_id, POPULATION, limit, expected_head=(5, ledger._guarded.newest.hash)
    ) as ledger:
        assert ledger.reserve("ann", make_question(PureDP("0.6"), "b")).entry_number == lost.entry_number
        ledger.store(lost, make_plain_answer(lost))
        with pytest.raises(KernelFault):
            ledger.store(lost, make_plain_answer(lost))
        with pytest.raises(BudgetExceeded):
            ledger.reserve("ann", make_question(PureDP("1e-6"), "c"))
        assert ledger.totals().spent == ApproxDP(1, 0)
        assert ledger.verify().ok


def test_an_altered_entry_is_named(server, schema, url):
    with Ledger.create(url, POPULATION, Limit(PureDP(1))) as ledger:
        for topic in "abc":
            ask(ledger, "ann", make_question(PureDP("0.1"), topic))
        with server.begin() as connection:
            connection.execute(sa.text(f"UPDATE {schema}.sfumato_entries SET analyst = 'eve' WHERE number = 4"))
        assert ledger.verify().first_broken == 4


def test_racing_processes_spend_exactly_the_budget(url, tmp_path):
    log, limit = str(tmp_path / "log"), Limit(PureDP(10))
    with Ledger.create(url, POPULATION, limit) as ledger:
        finish([start(spend, url, ledger.ledger_id, limit, f"p{i}", log) for i in range(16)])
        with open(log) as lines:
            assert sum(map(int, lines)) == 100
        assert ledger.totals().spent == PureDP(10)
        assert ledger.verify().ok
