"""Results that an engine keeps are those of the same text, and every answer still has its own charge and noise."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.duckdb import duckdb_engine, kept_results
from sfumato.engines.duckdb.kept_results import KeptResults

AGES = [20, 30, 40, 50] * 25
DATA = pa.table({"age": AGES, "city": ["Rome", "Oslo"] * 50, "who": list(range(100))})
COLUMNS = {"who": sf.Id(), "age": sf.Integer(0, 120), "city": sf.Category(["Rome", "Oslo"])}


@pytest.fixture
def people():
    with sf.protect(DATA, name="t", unit="who", columns=COLUMNS, budget=sf.Budget(epsilon=10**7)) as made:
        yield made


@pytest.fixture
def ran(people, monkeypatch):
    """The texts that DuckDB ran."""
    texts, real = [], KeptResults.read

    def read(self, query, run):
        return real(self, query, lambda text: texts.append(text) or run(text))

    monkeypatch.setattr(KeptResults, "read", read)
    return texts


def test_what_differs_after_the_release_only_is_measured_once(people, ran):
    grouped = "FROM t GROUP BY city"
    for number, question in enumerate((
        f"SELECT city, SUM(age) AS s {grouped}",
        f"SELECT city, SUM(age) AS other {grouped} ORDER BY other DESC LIMIT 1",
        f"SELECT city, SUM(age) AS s {grouped} HAVING s > 3",
    ), 1):  # fmt: skip
        people.ask(question, epsilon=number)
    assert len(ran) == 1


def test_every_answer_is_charged_and_has_its_own_noise(people, ran):
    question = "SELECT COUNT(*) AS n FROM t"
    answers = [people.ask(question, epsilon=f"0.0{number}").rows[0]["n"] for number in range(1, 9)]
    assert len(ran) == 1
    assert float(people.budget.spent.epsilon) == pytest.approx(0.36)
    assert len(set(answers)) > 1


def test_another_text_is_another_query(people, ran):
    """Also where texts differ in a literal only."""
    for least in (15, 25, 35, 45, 55):
        found = people.ask(f"SELECT COUNT(*) AS n FROM t WHERE age > {least}", epsilon=10**5).rows[0]["n"]
        assert round(found) == sum(age > least for age in AGES)
    assert len(set(ran)) == 5


def test_little_is_kept(monkeypatch):
    monkeypatch.setattr(kept_results, "MOST_RESULTS", 2)
    monkeypatch.setattr(kept_results, "MOST_ROWS", 3)
    kept, ran = KeptResults(), []

    def run(query):
        ran.append(query)
        return [(1,)] * int(query)

    for query in ("1", "2", "1", "4", "4", "3", "2", "1"):
        assert kept.read(query, run) == [(1,)] * int(query)
    assert ran == ["1", "2", "4", "4", "3", "2", "1"]
    kept.clear()
    kept.read("1", run)
    assert ran[-1:] == ["1"]
    assert len(ran) == 8


def test_a_failure_is_not_kept():
    kept = KeptResults()
    with pytest.raises(ZeroDivisionError):
        kept.read("x", lambda query: [(1 // 0,)])
    assert kept.read("x", lambda query: [(1,)]) == [(1,)]


def test_a_closed_engine_keeps_nothing(people):
    people.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    engine = people.desk.engine
    assert isinstance(engine, duckdb_engine.DuckDBEngine)
    assert engine._kept._kept
    engine.close()
    assert not engine._kept._kept
