"""Forms of other systems, and values of public tables: each is answered as the form that it stands for."""

import pytest

import sfumato as sf
from sfumato.query.bind import bind
from sfumato.query.parse import parse

CATALOG = """
[dataset]
name = "shop"
[budget]
epsilon = "1000000"
[tables.orders]
source = "orders.csv"
unit_column = "person"
max_rows_per_unit = 3
columns.person = { type = "id" }
columns.amount = { type = "integer", lower = 0, upper = 100 }
columns.channel = { type = "category", values = ["web", "store", "phone"] }
columns.bought = { type = "date", lower = "2024-01-01", upper = "2024-12-31" }
[tables.visits]
source = "visits.csv"
unit_column = "who"
max_rows_per_unit = 2
columns.who = { type = "id" }
columns.product = { type = "category", values = ["desk", "lamp"] }
[tables.products]
source = "products.csv"
public = true
"""
CHANNELS = ("web", "store", "phone")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    orders = [
        f"{row // 2},{row % 101},{CHANNELS[row % 3]},2024-{row % 12 + 1:02}-{row % 28 + 1:02}" for row in range(400)
    ]
    (folder / "orders.csv").write_text("\n".join(["person,amount,channel,bought", *orders]))
    visits = [f"{person},{'desk' if person % 2 else 'lamp'}" for person in range(100, 300)]
    (folder / "visits.csv").write_text("\n".join(["who,product", *visits]))
    (folder / "products.csv").write_text("product,price,since\ndesk,60,2020-01-01\nlamp,20,2021-06-01\n")
    (folder / "catalog.toml").write_text(CATALOG)
    with sf.open(folder) as curator:
        yield curator


SAME = [
    ("SELECT APPROX_QUANTILES(amount, 4)[OFFSET(2)] AS m FROM orders",
     "SELECT QUANTILE_CONT(amount, 0.5) AS m FROM orders"),
    ("SELECT APPROX_QUANTILES(amount, 2)[ORDINAL(2)] AS m FROM orders",
     "SELECT QUANTILE_CONT(amount, 0.5) AS m FROM orders"),
    ("SELECT DATETIME_TRUNC(bought, MONTH) AS m, COUNT(*) AS n FROM orders GROUP BY m",
     "SELECT DATE_TRUNC('month', bought) AS m, COUNT(*) AS n FROM orders GROUP BY m"),
    ("SELECT DATE_DIFF(bought, DATE '2023-12-01', MONTH) AS d, COUNT(*) AS n FROM orders GROUP BY d",
     "SELECT DATE_DIFF('month', DATE '2023-12-01', bought) AS d, COUNT(*) AS n FROM orders GROUP BY d"),
    ("SELECT DATEDIFF(bought, '2024-01-01') AS d, COUNT(*) AS n FROM orders GROUP BY d",
     "SELECT DATE_DIFF('day', DATE '2024-01-01', bought) AS d, COUNT(*) AS n FROM orders GROUP BY d"),
    ("SELECT NVL2(amount, 1, 0) AS k, COUNT(*) AS n FROM orders GROUP BY k",
     "SELECT CASE WHEN amount IS NOT NULL THEN 1 ELSE 0 END AS k, COUNT(*) AS n FROM orders GROUP BY k"),
    ("SELECT COUNT(*) AS n FROM orders WHERE channel LIKE ANY ('w%', 'p%')",
     "SELECT COUNT(*) AS n FROM orders WHERE (channel LIKE 'w%' OR channel LIKE 'p%')"),
    ("SELECT COUNT(*) AS n FROM orders WHERE channel NOT ILIKE ALL ('W%', 'P%')",
     "SELECT COUNT(*) AS n FROM orders WHERE (NOT channel ILIKE 'W%' AND NOT channel ILIKE 'P%')"),
    ("SELECT k, COUNT(*) AS n FROM (SELECT channel, amount FROM orders) AS t (k, v) WHERE v > 5 GROUP BY k",
     "SELECT k, COUNT(*) AS n FROM (SELECT channel AS k, amount AS v FROM orders) AS t WHERE v > 5 GROUP BY k"),
    ("WITH t (k, v) AS (SELECT channel, amount FROM orders) SELECT k, SUM(v) AS s FROM t GROUP BY k",
     "WITH t AS (SELECT channel AS k, amount AS v FROM orders) SELECT k, SUM(v) AS s FROM t GROUP BY k"),
    ("SELECT COUNT(*) AS n FROM visits v, products p WHERE (v.product = p.product AND p.price > 50) "
     "OR (v.product = p.product AND v.product = 'lamp')",
     "SELECT COUNT(*) AS n FROM visits v, products p WHERE v.product = p.product "
     "AND (p.price > 50 OR v.product = 'lamp')"),
    ("SELECT AVERAGE(amount) AS a, PERCENTILE(amount, 0.5) AS p FROM orders",
     "SELECT AVG(amount) AS a, QUANTILE_CONT(amount, 0.5) AS p FROM orders"),
    ("SELECT COUNT(*) AS n FROM orders WHERE amount > (SELECT AVG(price) FROM products)",
     "SELECT COUNT(*) AS n FROM orders WHERE amount > 40.0"),
    ("SELECT COUNT(*) AS n FROM orders "
     "WHERE amount > (SELECT MIN(p.price) - 50 FROM products p WHERE p.product = 'lamp')",
     "SELECT COUNT(*) AS n FROM orders WHERE amount > (-30)"),
    ("SELECT COUNT(*) AS n FROM orders WHERE bought > (SELECT MAX(since) FROM products)",
     "SELECT COUNT(*) AS n FROM orders WHERE bought > DATE '2021-06-01'"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "same"), SAME, ids=[sql for sql, _ in SAME])
def test_a_form_of_another_system_is_the_form_that_it_stands_for(sql, same, shop):
    assert bind(parse(sql), shop.dataset) == bind(parse(same), shop.dataset)


def test_shares_of_a_total(shop):
    answer = shop.ask(
        "SELECT channel, RATIO_TO_REPORT(COUNT(*)) OVER () AS share FROM orders GROUP BY channel", epsilon=90
    )
    assert [row["share"] for row in answer.rows] == pytest.approx([1 / 3] * 3, abs=0.01)


def test_ids_of_people_are_united_once(shop):
    """People 0 to 199 have orders, 100 to 299 have visits."""
    both = "SELECT COUNT(*) AS n FROM (SELECT person FROM orders UNION SELECT who FROM visits) AS u"
    assert shop.ask(both, epsilon=90).rows[0]["n"] == pytest.approx(300, abs=2)
    with pytest.raises(sf.errors.UnsupportedSyntax, match="duplicate rows") as refused:
        shop.ask(
            "SELECT COUNT(*) AS n FROM (SELECT amount FROM orders UNION SELECT amount FROM orders) AS u", epsilon=1
        )
    assert "means the same only if" in refused.value.hint


def test_a_public_value_beside_released_ones(shop):
    sql = "SELECT COUNT(*) / (SELECT SUM(price) FROM products) AS r, (SELECT COUNT(*) FROM products) AS k FROM orders"
    (row,) = shop.ask(sql, epsilon=90).rows
    assert row["r"] == pytest.approx(5, abs=0.1)
    assert row["k"] == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM orders WHERE amount > (SELECT price FROM products)",  # two rows
        "SELECT COUNT(*) AS n FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)",  # of other people
        "SELECT COUNT(*) AS n FROM orders o WHERE amount > (SELECT AVG(price) FROM products WHERE price > o.amount)",
    ],
)
def test_values_that_are_not_public_or_not_one_are_refused(sql, shop):
    with pytest.raises(sf.errors.QueryError):
        shop.ask(sql, epsilon=1)
    assert shop.budget.spent.epsilon < 1_000
