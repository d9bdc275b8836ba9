"""EXTRACT(epoch), EXTRACT(second) and DATE_DIFF('second'): whole seconds, as plain DuckDB counts them."""

from datetime import datetime, timedelta

import duckdb
import pandas as pd
import pytest
from test_corpus import rows_of, without_noise  # noqa: F401 - a fixture

import sfumato as sf
from sfumato.query.bind import bind
from sfumato.query.parse import parse

FIRST = datetime(1969, 12, 31, 23, 59, 58)


@pytest.fixture(scope="module")
def calls():
    began = [FIRST + timedelta(seconds=37 * number) for number in range(50)]
    ended = [begin + timedelta(seconds=number * number - 30) for number, begin in enumerate(began)]
    table = pd.DataFrame({"began": began, "ended": ended})
    bounds = {"lower": datetime(1969, 12, 31), "upper": datetime(1970, 1, 2)}
    columns = {"began": sf.DateTime(**bounds), "ended": sf.DateTime(**bounds)}
    plain = duckdb.connect()
    plain.register("given", table)
    plain.execute("CREATE TABLE calls AS SELECT * FROM given")
    return sf.protect(table, name="calls", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=10**9)), plain


@pytest.mark.parametrize(
    "question",
    [
        "SELECT SUM(EXTRACT(EPOCH FROM began)) AS n FROM calls",
        "SELECT SUM(EXTRACT(EPOCH FROM (ended - began))) AS n FROM calls",
        "SELECT SUM(DATE_DIFF('second', began, ended)) AS n FROM calls",
        "SELECT SUM(EXTRACT(SECOND FROM ended)) AS n FROM calls",
        "SELECT COUNT(*) n FROM calls WHERE DATE_DIFF('second', began, ended) > 9 AND EXTRACT(second FROM ended) < 9",
    ],
)
def test_seconds_are_those_of_plain_sql(question, calls, without_noise):  # noqa: F811
    data, plain = calls
    got = [tuple(row.values()) for row in data.ask(question, epsilon=1000).rows]
    assert rows_of(got) == rows_of(plain.execute(question).fetchall())


def test_fractions_are_left_out_with_a_note(calls):
    question = bind(parse("SELECT AVG(EXTRACT(EPOCH FROM began)) FROM calls"), calls[0].dataset)
    assert any("whole seconds" in caution for caution in question.cautions)
    exact = bind(parse("SELECT SUM(DATE_DIFF('second', began, ended)) FROM calls"), calls[0].dataset)
    assert not any("whole seconds" in caution for caution in exact.cautions)
