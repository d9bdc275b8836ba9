"""Names that nobody gave: columns that would be named alike get numbers, and aliases name keys in ROLLUP too."""

import pyarrow as pa
import pytest

import sfumato as sf


@pytest.fixture
def people():
    table = pa.table({"age": [20, 30, 40, 50] * 50, "city": ["Rome", "Oslo"] * 100})
    columns = {"age": sf.Integer(0, 120), "city": sf.Category(["Rome", "Oslo"])}
    with sf.protect(table, name="people", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=1000)) as curator:
        yield curator


def test_columns_of_one_spelling_are_numbered(people):
    answer = people.ask("SELECT VARIANCE(age), VAR_SAMP(age), COUNT(*), COUNT(*) FROM people", epsilon=100)
    first, second, third, fourth = answer.columns
    assert (second, fourth) == (f"{first}_2", f"{third}_2")
    assert answer.rows[0][first] == answer.rows[0][second]


def test_a_given_name_is_never_changed(people):
    with pytest.raises(sf.errors.QueryError, match="A second column has the name n"):
        people.ask("SELECT COUNT(*) AS n, SUM(age) AS n FROM people", epsilon=1)


def test_an_alias_is_a_key_of_rollup(people):
    by_alias = "SELECT city, age > 25 AS older, COUNT(*) AS n FROM people GROUP BY ROLLUP (city, older)"
    by_value = "SELECT city, age > 25 AS older, COUNT(*) AS n FROM people GROUP BY ROLLUP (city, (age > 25))"
    found, same = (people.ask(sql, epsilon=100).rows for sql in (by_alias, by_value))
    assert [(row["city"], row["older"]) for row in found] == [(row["city"], row["older"]) for row in same]
    assert len(found) == 7


def test_a_column_comes_before_an_alias(people):
    sql = "SELECT UPPER(city) AS city, COUNT(*) AS n FROM people GROUP BY ROLLUP (city)"
    assert {row["city"] for row in people.ask(sql, epsilon=100).rows} <= {"ROME", "OSLO", None}
