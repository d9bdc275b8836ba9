"""The ledger records the question: normalised SQL, analyst, columns, margin."""

import json

import pytest
from protected import protect

import sfumato as sf
from sfumato.ledger.entries import sha256
from sfumato.query.parse import parse
from sfumato.query.sql_text import normalise_sql

SQL = "select  city, count( * ) as n from people where (age>30) group by city"
NORMAL = "SELECT city, COUNT(*) AS n FROM people WHERE age > 30 GROUP BY city"


def charges(people):
    return [entry for entry in people.ledger().entries() if entry.kind == "charge"]


def test_a_charge_records_what_was_asked():
    with protect(sf.Budget(epsilon=100)) as people:
        people.ask(SQL, epsilon=1, analyst="ann")
        people.ask("SELECT COUNT(*) AS n FROM people", margin={"n": 20}, confidence="0.9", analyst="bob")
        first, second = charges(people)
        assert first.analyst == "ann"
        assert json.loads(first.question) == {
            "how": "ask",
            "questions": [{"sql": NORMAL, "columns": ["city", "n"]}],
            "confidence": "0.95",
        }
        wanted = json.loads(second.question)
        assert (wanted["questions"][0]["margin"], wanted["confidence"]) == ({"n": 20}, "0.9")
        people.ask(SQL, epsilon=1, analyst="ann")
        assert len(charges(people)) == 2, "a stored answer is no charge"


def test_every_way_to_ask_is_recorded():
    with protect(sf.Budget(epsilon=100)) as people:
        people.where("age > 30").group_by("city").agg(n=sf.count()).ask(epsilon=1)
        people.upgrade(SQL, epsilon=2)
        people.ask_all([("SELECT COUNT(*) AS n FROM people", 20), (SQL, {"n": 30})])
        people.watch("SELECT COUNT(*) AS n FROM people", above=10, epsilon="0.1")
        people.diagnose("SELECT AVG(age) AS a FROM people WHERE age > 20", epsilon=1)
        people.find_bounds("income", epsilon=1)
        people.find_cap("people", epsilon=1)
        found = [json.loads(entry.question) for entry in charges(people)]
        ways = ["ask", "upgrade", "ask_all", "watch", "diagnose", "bounds", "cap"]
        assert [record["how"] for record in found] == ways
        assert found[0]["questions"][0]["sql"] == NORMAL, "a frame is recorded as its SQL"
        assert [record["margin"] for record in found[2]["questions"]] == [{"n": 20}, {"n": 30}]
        assert found[3]["above"] == 10
        assert (found[5]["table"], found[5]["column"]) == ("people", "income")
        assert people.rehearse(SQL).rows, "a rehearsal charges nobody"


def test_a_changed_question_breaks_the_chain(tmp_path):
    with protect(ledger=tmp_path / "ledger.db") as people:
        people.ask(SQL, epsilon=1)
        assert people.ledger().verify().ok
        with people.ledger()._database.write() as rows:
            rows.connection.exec_driver_sql("UPDATE sfumato_entries SET question = '' WHERE kind = 'charge'")
        assert not people.ledger().verify().ok


def test_a_question_in_other_words_resumes_the_same_charge(monkeypatch):
    with protect() as people:
        with monkeypatch.context() as broken:
            broken.setattr(people.engine, "aggregate", lambda plan: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                people.ask(SQL, epsilon=1)
        again = people.ask(NORMAL, epsilon=1)
        assert again.cost.epsilon == 0, "it was charged before the crash"
        assert people.budget.spent.epsilon == 1


@pytest.mark.parametrize(
    "sql",
    [
        SQL,
        'SELECT "age" + 1 AS "a b", COUNT(*) FROM people WHERE smoker IS NOT NULL GROUP BY 1',
        "WITH e AS (SELECT person_id, COUNT(*) AS v FROM people GROUP BY person_id) SELECT v FROM e GROUP BY 1",
        'SELECT ("select" + 1) * 2 AS "from", ((age)) FROM "people" WHERE (age > 1 OR (age < 0)) AND NOT (age = 3)',
        "SELECT MEDIAN(age), QUANTILE_CONT(income, 0.9) AS q FROM people WHERE city IN ('O''Hara', 'Oslo')",
    ],
)
def test_the_normal_form_reads_back_as_itself(sql):
    once = normalise_sql(parse(sql))
    assert normalise_sql(parse(once)) == once
    assert sha256(once) != sha256("")


@pytest.mark.parametrize(
    "sql",
    [
        SQL,
        "SELECT COUNT(DISTINCT age, city) AS d FROM people WHERE born > DATE '1980-01-31'",
        'SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) AS m FROM "people"',
    ],
)
def test_recording_a_question_does_not_change_it(sql):
    """The tree of a question is remembered, and bound again for the suggestions of a preview."""
    tree = parse(sql)
    before = tree.copy()
    assert normalise_sql(tree) != ""
    assert tree == before
    assert [type(node) for node in tree.walk()] == [type(node) for node in before.walk()]
    assert [node.args.get("quoted") for node in tree.walk()] == [node.args.get("quoted") for node in before.walk()]
