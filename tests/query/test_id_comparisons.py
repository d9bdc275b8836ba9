"""Ids compared with constants: the rows of plain SQL, and one canonical text on both sides."""

import duckdb
import pandas as pd
import pytest
from sqlglot import exp
from test_corpus import without_noise  # noqa: F401 - a fixture

import sfumato as sf
from sfumato.errors import UnsupportedSyntax
from sfumato.ingest.ids import write_id
from sfumato.query.id_comparisons import spell_id

ORDERS = pd.DataFrame(
    {
        "customer": [1, 1, 2, 3, 3, 3, 11, 12, 9_007_199_254_740_993, -4],
        "product": ["a1", "b2", "a1", "007", "7", "c3", "a1", "b2", "a1", "x"],
        "amount": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    }
)
CUSTOMERS = pd.DataFrame({"customer": [1, 2, 3, 5, 11], "age": [20, 30, 40, 50, 60]})
QUESTIONS = (
    "SELECT COUNT(*) FROM orders WHERE customer = 3",
    "SELECT COUNT(*) FROM orders WHERE customer <> 3",
    "SELECT COUNT(*) FROM orders WHERE 3 = customer OR amount > 8",
    "SELECT SUM(amount) FROM orders WHERE customer IN (1, 2, 99)",
    "SELECT SUM(amount) FROM orders WHERE customer NOT IN (1, 2, 99)",
    "SELECT COUNT(*) FROM orders WHERE customer > 2 AND customer < 1000",
    "SELECT COUNT(*) FROM orders WHERE 2 >= customer",
    "SELECT COUNT(*) FROM orders WHERE customer BETWEEN -4 AND 3",
    "SELECT COUNT(*) FROM orders WHERE customer = 9007199254740993",
    "SELECT COUNT(*) FROM orders WHERE customer = 9007199254740992",
    "SELECT COUNT(*) FROM orders WHERE customer = -4",
    "SELECT COUNT(DISTINCT customer) FROM orders WHERE customer <> 1",
    "SELECT CASE WHEN customer = 3 THEN 'three' ELSE 'other' END AS k, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1",
    "SELECT COUNT(CASE WHEN customer = 3 THEN 1 END), SUM(amount) FROM orders",
    "SELECT COUNT(*) FROM orders WHERE product = 'a1'",
    "SELECT COUNT(*) FROM orders o JOIN customers c ON o.customer = c.customer AND c.customer > 1",
    "SELECT COUNT(*) FROM orders o JOIN customers c ON o.customer = c.customer WHERE o.customer <> 3 OR c.customer = 3",
    "SELECT COUNT(*) FROM customers c LEFT JOIN orders o ON o.customer = c.customer WHERE o.customer = 3",
    "SELECT COUNT(*) FROM customers c LEFT JOIN orders o ON o.customer = c.customer AND o.amount > 4 "
    "WHERE NOT (o.customer = 3)",
    "SELECT COUNT(*) FROM customers c LEFT JOIN orders o ON c.customer = o.customer AND o.customer <> 3",
    "SELECT COUNT(*) FROM (SELECT customer AS who, amount FROM orders WHERE amount > 1) t WHERE who <> 3",
    "SELECT AVG(n) FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) t WHERE customer IN (1, 3)",
    "SELECT COUNT(*) FROM (SELECT customer, amount AS x FROM orders UNION ALL SELECT customer, age FROM customers) u "
    "WHERE customer = 1",
    "SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.customer "
    "AND o.customer <> 1)",
)


CATALOG = """
[dataset]
name = "shop"
[budget]
epsilon = "1000000"
[tables.orders]
source = "orders.parquet"
unit_column = "customer"
max_rows_per_unit = 5
columns.customer = { type = "id" }
columns.product = { type = "id" }
columns.amount = { type = "integer", lower = 0, upper = 10 }
[tables.customers]
source = "customers.parquet"
unit_column = "customer"
columns.customer = { type = "id" }
columns.age = { type = "integer", lower = 0, upper = 99 }
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    (folder / "catalog.toml").write_text(CATALOG)
    plain = duckdb.connect()
    for name, rows in (("orders", ORDERS), ("customers", CUSTOMERS)):
        rows.to_parquet(folder / f"{name}.parquet")
        plain.execute(f"CREATE TABLE {name} AS SELECT * FROM '{folder / name}.parquet'")
    with sf.open(folder) as curator:
        yield curator, plain
    plain.close()


@pytest.mark.usefixtures("without_noise")
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_that_of_plain_sql(shop, question):
    curator, plain = shop
    found = [tuple(row.values()) for row in curator.ask(question, epsilon=1).rows]
    assert [pytest.approx(row) for row in plain.execute(question).fetchall()] == found


@pytest.mark.usefixtures("without_noise")
def test_spellings_of_one_id_are_one_id(shop):
    curator, _ = shop
    for value in ("7", "'007'", "'7.0'", "' 7 '"):
        found = curator.ask(f"SELECT COUNT(*) AS n FROM orders WHERE product = {value}", epsilon=1)
        assert found.rows == [{"n": 2}], value


def test_a_comparison_of_sizes_says_what_it_leaves_out(shop):
    curator, _ = shop
    assert (
        "at most 15 digits" in curator.preview("SELECT COUNT(*) FROM orders WHERE customer > 2", epsilon=1).warnings[0]
    )
    assert not curator.preview("SELECT COUNT(*) FROM orders WHERE customer = 2", epsilon=1).warnings


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("customer = 1.5", "whole numbers or texts"),
        ("customer > 'a'", "whole numbers or texts"),
        ("customer = NULL", "customer IS NULL"),
        ("customer = DATE '2020-01-01'", "whole numbers or texts"),
        ("customer = amount", "the owner adds a copy"),
        ("customer + 1 = 2", "the owner adds a copy"),
        ("customer LIKE '1%'", "the owner adds a copy"),
        ("customer IN (1, amount)", "the owner adds a copy"),
        ("customer = ''", "whole numbers or texts"),
    ],
)
def test_other_comparisons_are_refused_with_what_to_write(shop, condition, hint):
    with pytest.raises(UnsupportedSyntax) as refused:
        shop[0].preview(f"SELECT COUNT(*) FROM orders WHERE {condition}", epsilon=1)
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    "question", ["SELECT customer, COUNT(*) FROM orders GROUP BY 1", "SELECT MAX(customer) FROM orders"]
)
def test_no_answer_shows_an_id(shop, question):
    with pytest.raises(UnsupportedSyntax, match="is an id"):
        shop[0].preview(question, epsilon=1)


TEXTS = (
    "17", "007", "+7", "-7", "-0", "7.00", "12345678901234567890", " a ", "A-17", "a_b", "true", "FALSE", "Zoe\u0308",
    "00000000-0000-0000-0000-00000000000A", "{0123456789abcdef0123456789ABCDEF}", "01234567890123456789012345678901",
    "urn:uuid:01234567-89ab-cdef-0123-456789abcdef", "x\0y", "\u00a0n\u2003", "ß", "nan", "infinity",
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_a_constant_is_spelt_as_ingestion_spells_ids(text):
    spelt = duckdb.sql(f"SELECT {write_id('x', 'VARCHAR')} FROM (SELECT ? AS x)", params=[text]).fetchall()[0][0]
    assert spell_id("x", exp.Literal.string(text), text) == spelt
