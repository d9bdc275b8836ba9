"""No row makes a text that fills the memory (K-62): an engine that fails on one person's text would tell about it."""

import duckdb
import pandas as pd

import sfumato as sf
from sfumato.engines.sql.dialect import DUCKDB
from sfumato.engines.sql.scalars import lower_expression
from sfumato.kernel.expressions import MOST_MADE, Call, Column, ColumnType, Literal
from sfumato.row_meanings.evaluate import evaluate

T = Column("t", ColumnType.TEXT)
GROW = "REPLACE(%s, 'a', '" + "a" * 300 + "')"


def nest(times):
    made = T
    for _ in range(times):
        made = Call("||", (Call("replace", (made, Literal("a"), Literal("a" * 900))), made))
    return made


def test_no_row_makes_a_longer_text():
    texts = ["a", "aé", "b" * 100_000, "a" * 100_000, "", "é" * 40_000 + "a"]
    functions = [nest(1), nest(3), Call("replace", (T, Literal("ab"), Literal("b"))), Call("||", (T, Literal("é" * 9)))]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE data (t VARCHAR)")
        for text in texts:
            connection.execute("INSERT INTO data VALUES (?)", [text])
        selected = ", ".join(DUCKDB.write(lower_expression(function)) for function in functions)
        found = connection.execute(f"SELECT t, {selected} FROM data").fetchall()
    for text, *values in found:
        assert values == [evaluate(function, {"t": text}) for function in functions]
        assert max(len(values[place]) for place in (0, 1, 3)) <= MOST_MADE


def test_a_text_that_grows_through_unions_fails_for_nobody():
    source = "(SELECT pid, CASE WHEN x = 'ill' THEN 'a' ELSE LEFT(x, 0) END AS y FROM t) AS s"
    for _ in range(4):
        source = f"(SELECT pid, {GROW % 'y'} AS y FROM {source} UNION ALL SELECT pid, x AS y FROM t) AS s"
    rows = pd.DataFrame({"pid": [f"p{number}" for number in range(9)], "x": ["well"] * 8 + ["ill"]})
    people = sf.protect(
        rows, name="t", columns={"pid": sf.Id(), "x": sf.Text()}, unit="pid", max_rows_per_unit=1, budget=sf.Budget(9)
    )
    assert people.ask(f"SELECT COUNT(*) AS n FROM {source} WHERE LENGTH({GROW % 'y'}) > 5", epsilon=1).rows
