"""Subqueries and outer joins whose NULLs, names or clauses mislead: the answers are those of plain DuckDB."""

import random

import duckdb
import pandas as pd
import pytest
from test_corpus import rows_of, without_noise  # noqa: F401 - a fixture
from test_subquery_meaning import world  # noqa: F401 - a fixture

import sfumato as sf
from sfumato.errors import SfumatoError

UNMATCHED = "FROM a LEFT JOIN b ON a.pid = b.pid AND b.x > 3"
SAME = {
    "the id of a left-out row meets nobody": [
        f"SELECT COUNT(*) {UNMATCHED} JOIN b AS c ON b.pid = c.pid",
        f"SELECT COUNT(*) {UNMATCHED} LEFT JOIN b AS c ON b.pid = c.pid WHERE c.x IS NULL",
        f"SELECT COUNT(c.x) {UNMATCHED} LEFT JOIN b AS c ON c.pid = b.pid AND c.x < 2",
        f"SELECT COUNT(*) {UNMATCHED} WHERE EXISTS (SELECT 1 FROM b AS c WHERE c.pid = b.pid)",
        f"SELECT COUNT(*) {UNMATCHED} WHERE NOT EXISTS (SELECT 1 FROM b AS c WHERE c.pid = b.pid AND c.x = 1)",
        f"SELECT COUNT(*) {UNMATCHED} WHERE b.pid IN (SELECT pid FROM a)",
        f"SELECT COUNT(*) {UNMATCHED} WHERE b.pid NOT IN (SELECT pid FROM b WHERE x = 0)",
        f"SELECT COUNT(*) {UNMATCHED} WHERE (SELECT COUNT(*) FROM b AS c WHERE c.pid = b.pid) = 0",
        f"SELECT COUNT(*) {UNMATCHED} WHERE b.pid NOT IN (SELECT c.pid FROM b AS c WHERE c.pid = b.pid AND c.x = 0)",
    ],
    "an id in a subquery may be NULL": [
        f"SELECT COUNT(pid) FROM (SELECT b.pid {UNMATCHED}) AS t",
        f"SELECT COUNT(*) FROM (SELECT b.pid {UNMATCHED}) AS t WHERE t.pid IS NULL",
        f"SELECT COUNT(DISTINCT other) FROM (SELECT a.pid, b.pid AS other {UNMATCHED}) AS t",
        f"SELECT COUNT(*) FROM (SELECT b.pid {UNMATCHED}) AS t JOIN a AS c ON t.pid = c.pid",
        f"SELECT COUNT(*) FROM a AS c JOIN (SELECT b.pid {UNMATCHED}) AS t ON c.pid = t.pid",
        f"SELECT COUNT(t.pid) FROM a AS c LEFT JOIN (SELECT b.pid {UNMATCHED}) AS t ON c.pid = t.pid",
        "SELECT COUNT(*) FROM (SELECT * FROM a LEFT JOIN (SELECT pid AS other, x AS y FROM b WHERE x > 3) AS b "
        "ON a.pid = b.other) AS t WHERE other IS NULL",
        f"SELECT SUM(n) FROM (SELECT a.pid, COUNT(b.pid) AS n {UNMATCHED} GROUP BY a.pid) AS t",
        f"SELECT COUNT(*) FROM (SELECT b.pid {UNMATCHED} WHERE b.pid IS NOT NULL GROUP BY b.pid) AS t",
    ],
    "a public list may be empty, hold a NULL, or be cut": [
        "SELECT COUNT(*) FROM a WHERE x NOT IN (SELECT x FROM k WHERE z > 100)",
        "SELECT COUNT(*) FROM a WHERE (x IN (SELECT x FROM k WHERE z > 100)) IS NULL",
        "SELECT COUNT(*) FROM a WHERE x NOT IN (SELECT x FROM m)",
        "SELECT COUNT(*) FROM a WHERE x IN (SELECT x FROM m)",
        "SELECT COUNT(*) FROM a WHERE (x IN (SELECT x FROM m)) IS NULL",
        "SELECT COUNT(*) FROM a WHERE x IN (SELECT x FROM k ORDER BY z LIMIT 2)",
        "SELECT COUNT(*) FROM a WHERE x IN (SELECT x FROM k LIMIT 0)",
        "SELECT COUNT(*) FROM a WHERE x IN (SELECT MAX(x) FROM k)",
        "SELECT COUNT(*) FROM a WHERE x IN (SELECT z FROM k GROUP BY z HAVING COUNT(*) = 1)",
        "SELECT COUNT(*) FROM a WHERE x NOT IN (SELECT MAX(x) FROM k)",
        "SELECT COUNT(*) FROM a LEFT JOIN b ON a.pid = b.pid AND b.x IN (SELECT x FROM k)",
        "SELECT COUNT(*) FROM a JOIN b ON a.pid = b.pid AND b.x IN (SELECT x FROM k) "
        "RIGHT JOIN a AS c ON c.pid = b.pid",
        "SELECT COUNT(*) FROM a WHERE x IN (WITH k AS (SELECT x FROM k WHERE z > 1) SELECT x FROM k)",
    ],
    "a comparison other than '='": [
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND b.x < a.x AND b.d < a.d)",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND b.d < a.d AND b.d >= a.d - 2)",
        "SELECT COUNT(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND b.d BETWEEN a.d - 1 AND a.d)",
        "SELECT COUNT(*) FROM a WHERE (SELECT COUNT(*) FROM b WHERE b.pid = a.pid AND b.x < a.x) > 1",
        "SELECT COUNT(*) FROM a WHERE (SELECT COUNT(*) FROM b WHERE b.pid = a.pid AND b.x < a.x) = 0",
        "SELECT COUNT(*) FROM a WHERE (SELECT SUM(x) FROM b WHERE b.pid = a.pid AND b.d <= a.d AND b.s = a.s) > 3",
        "SELECT SUM((SELECT COUNT(*) FROM a AS w WHERE w.pid = a.pid AND w.d < a.d)) FROM a",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND b.x < a.x HAVING COUNT(*) > 1)",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND b.x < a.x GROUP BY b.s "
        "HAVING COUNT(*) > 1)",
        "SELECT COUNT(*) FROM a WHERE a.x NOT IN (SELECT b.x FROM b WHERE b.pid = a.pid AND b.d > a.d)",
        "SELECT COUNT(*) FROM a WHERE a.x IN (SELECT b.x FROM b WHERE b.pid = a.pid AND b.d <> a.d)",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND b.x + a.x = 4)",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND b.x > COALESCE(a.x, 0))",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM a AS w WHERE w.pid = a.pid AND w.x > a.x AND w.s <> a.s)",
        "SELECT COUNT(*) FROM a JOIN b ON a.pid = b.pid WHERE EXISTS (SELECT 1 FROM b AS w WHERE w.pid = a.pid "
        "AND w.x > a.x AND w.d > a.d)",
    ],
    "several tables, and names": [
        "SELECT COUNT(*) FROM a WHERE pid IN (SELECT b.pid FROM b, a AS c WHERE b.pid = c.pid AND b.x > c.x)",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b, a AS c WHERE b.pid = c.pid AND b.pid = a.pid "
        "AND c.x = 4)",
        "SELECT COUNT(*) FROM a, (SELECT pid AS q, x AS y FROM b) AS b WHERE pid = q AND EXISTS (SELECT 1 FROM b AS c "
        "WHERE c.pid = q AND c.x = y AND c.s = 'u')",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND b.x = (SELECT MAX(c.x) "
        "FROM b AS c WHERE c.pid = a.pid))",
        "SELECT COUNT(*) FROM a WHERE (SELECT MAX(x) FROM b WHERE b.pid = a.pid) IN (SELECT c.x FROM a AS c "
        "WHERE c.pid = a.pid)",
        "SELECT COUNT(*) FROM a WHERE (SELECT MAX(x) FROM b WHERE b.pid = a.pid) NOT IN (SELECT c.x FROM a AS c "
        "WHERE c.pid = a.pid)",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND EXISTS (SELECT 1 FROM a AS c "
        "WHERE c.pid = b.pid AND c.x = b.x))",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM a AS b WHERE b.pid = a.pid AND x > 3)",
        "SELECT COUNT(*) FROM a WHERE EXISTS (WITH b AS (SELECT pid, x AS y FROM a WHERE x > 2) SELECT 1 FROM b "
        "WHERE b.pid = a.pid AND y > a.x)",
        "SELECT COUNT(*) FROM a WHERE pid IN (SELECT pid FROM a WHERE x > 2 EXCEPT SELECT pid FROM b)",
        "SELECT COUNT(*) FROM (SELECT * FROM a WHERE a.x NOT IN (SELECT b.x FROM b WHERE b.pid = a.pid AND b.x = a.x)) "
        "AS t WHERE x > 0",
        "SELECT COUNT(*) FROM a WHERE (SELECT COUNT(*) FILTER (WHERE b.x > 1) FROM b WHERE b.pid = a.pid) = 0",
        "SELECT COUNT(*) FROM a WHERE (SELECT COUNT(*) FROM b WHERE b.pid = a.pid) BETWEEN 1 AND 3",
        "SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND b.s = a.s) THEN 1 ELSE 0 END) FROM a",
        "SELECT (SELECT COUNT(*) FROM b WHERE b.pid = a.pid) AS n, COUNT(*) AS c FROM a GROUP BY n HAVING COUNT(*) > 0",
        "SELECT (SELECT COUNT(*) FROM b WHERE b.pid = a.pid) AS n, COUNT(*) AS c FROM a GROUP BY 1 HAVING COUNT(*) > 0",
        "SELECT COUNT(*) FROM b RIGHT JOIN a ON a.pid = b.pid AND b.x > 3 WHERE EXISTS (SELECT 1 FROM b AS c "
        "WHERE c.pid = b.pid)",
    ],
}
SAME["a computed value"] = [
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM (SELECT pid, x + 1 AS y FROM b) AS t WHERE t.pid = a.pid "
    "AND t.y = a.x)",
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM (SELECT pid, UPPER(s) AS y FROM b) AS t "
    "WHERE t.pid = a.pid AND t.y = UPPER(a.s))",
    "SELECT COUNT(*) FROM a WHERE x IN (SELECT b.x + 1 FROM b WHERE b.pid = a.pid)",
    "SELECT COUNT(*) FROM a WHERE x + 1 IN (SELECT DISTINCT b.x * 2 FROM b WHERE b.pid = a.pid AND b.s = 'u')",
    "SELECT COUNT(*) FROM a AS q WHERE q.x IN (SELECT a.x + 1 FROM a WHERE a.pid = q.pid)",
    "SELECT COUNT(*) FROM a WHERE x IN (SELECT y FROM (SELECT pid, x + 1 AS y FROM b) AS t WHERE t.pid = a.pid)",
    "SELECT COUNT(*) FROM a WHERE (SELECT COUNT(*) FROM (SELECT pid, x + 1 AS y FROM b) AS t WHERE t.pid = a.pid "
    "AND t.y = a.x) = 1",
]
SAME["rows of several values"] = [
    "SELECT COUNT(*) FROM a WHERE (pid, x) IN (SELECT pid, x FROM b)",
    "SELECT COUNT(*) FROM a WHERE (pid, x, s) IN (SELECT pid, x, s FROM b WHERE d IS NOT NULL) AND s = 'u'",
    "SELECT COUNT(*) FROM a WHERE (pid, d) IN (SELECT pid, MAX(d) FROM a GROUP BY pid)",
    "SELECT COUNT(*) FROM a WHERE (pid, x) IN (SELECT pid, COUNT(*) FROM b GROUP BY pid HAVING COUNT(*) > 1)",
    "SELECT COUNT(*) FROM a WHERE (pid, s, x) IN (SELECT pid, s, MAX(x) FROM b GROUP BY pid, s)",
    "SELECT COUNT(*) FROM a WHERE (x, x) IN (SELECT x, z FROM k)",
    "SELECT COUNT(*) FROM a WHERE x > 0 AND (s, x) IN (('u', 1), ('v', 2)) OR s = 'v'",
    "SELECT SUM(CASE WHEN (s, x) IN (('u', 1), ('v', 2)) THEN 1 ELSE 0 END) FROM a",
]
SAME["a condition without columns"] = [
    "SELECT COUNT(*), COUNT(b.x) FROM a LEFT JOIN b ON a.pid = b.pid AND 1 = 0",
    "SELECT COUNT(*), COUNT(b.pid) FROM a LEFT JOIN b ON a.pid = b.pid AND TRUE AND b.x > 2",
]
REFUSED = {
    "SELECT COUNT(*) FROM a WHERE x NOT IN (SELECT b.x + 1 FROM b WHERE b.pid = a.pid)": "computed",
    "SELECT COUNT(*) FROM a WHERE x IN (SELECT COALESCE(b.x, 0) FROM b WHERE b.pid = a.pid)": "comparison",
    "SELECT COUNT(*) FROM a WHERE (pid, x) NOT IN (SELECT pid, x FROM b)": "unknown here",
    "SELECT COUNT(*) FROM a WHERE (pid, x) IN (SELECT pid, MAX(x) FROM b GROUP BY pid, s)": "several groups",
    "SELECT COUNT(*) FROM a WHERE (s, x) NOT IN (('u', 1), ('v', 2))": "brackets",
    "SELECT COUNT(*) FROM a WHERE ((s, x) IN (('u', 1), ('v', 2))) IS NULL": "brackets",
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT COUNT(*) FROM b WHERE b.pid = a.pid AND b.x < a.x)": "always true",
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM k WHERE k.x = a.x HAVING COUNT(*) = 0)": "aggregates",
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM k WHERE k.x = a.x LIMIT 0)": "LIMIT",
    "SELECT COUNT(*) FROM a WHERE (SELECT z FROM k WHERE k.x = a.x LIMIT 0) > 1": "LIMIT",
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM k WHERE k.x = a.x OFFSET 1)": "OFFSET",
    "SELECT COUNT(*) FROM a WHERE (SELECT z, x FROM k WHERE k.x = a.x) > 1": "several columns",
    "SELECT COUNT(*) FROM a WHERE a.x NOT IN (SELECT k.x FROM k WHERE k.z = a.x)": "unknown here",
    f"SELECT COUNT(*) FROM (SELECT b.pid, COUNT(*) AS n {UNMATCHED} GROUP BY b.pid) AS t": "outer join",
    f"SELECT COUNT(*) FROM (SELECT DISTINCT b.pid {UNMATCHED}) AS t": "outer join",
    f"SELECT COUNT(*) FROM (SELECT b.pid {UNMATCHED} UNION ALL SELECT pid FROM a) AS t": "outer join",
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b LEFT JOIN a AS c ON b.pid = c.pid AND c.x > 3 "
    "WHERE c.pid = a.pid)": "outer join",
    "SELECT COUNT(*) FROM a JOIN b ON a.pid = b.pid AND b.x IN (SELECT w.x FROM a AS w WHERE w.pid = b.pid) "
    "RIGHT JOIN a AS c ON c.pid = b.pid": "RIGHT JOIN",
    "SELECT COUNT(*) FROM a WHERE x > (SELECT x FROM k WHERE z > 100)": "NULL",
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND (b.x = 1 OR a.x = 1))": "comparison",
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND b.x > COALESCE(a.x, 0) "
    "AND b.d > a.d)": "comparison",
}  # fmt: skip


@pytest.mark.parametrize("question", [one for questions in SAME.values() for one in questions])
def test_the_answer_is_that_of_plain_sql(question, world, without_noise):  # noqa: F811
    pairs, plain = world
    wanted = plain.execute(question).fetchall()
    got = [tuple(row.values()) for row in pairs.ask(question, epsilon=1000).rows]
    assert sorted(rows_of(got)) == sorted(rows_of(wanted))


@pytest.mark.parametrize(("question", "words"), REFUSED.items())
def test_what_has_another_meaning_is_refused(question, words, world, without_noise):  # noqa: F811
    with pytest.raises(SfumatoError) as refused:
        world[0].ask(question, epsilon=1000)
    assert words in str(refused.value)


LINKED = {
    "SELECT COUNT(*) FROM l WHERE oid IN (SELECT oid FROM o WHERE x > 1)": None,
    "SELECT COUNT(*), SUM(q) FROM l WHERE oid IN (SELECT o.oid FROM o WHERE o.x < 3) AND q > 0": None,
    "SELECT COUNT(*) FROM l WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.oid = l.oid AND o.x > l.q)": None,
    "SELECT COUNT(*) FROM l WHERE EXISTS (SELECT 1 FROM o WHERE o.oid = l.oid AND o.x = l.q)": None,
    "SELECT COUNT(*) FROM l WHERE (SELECT MAX(x) FROM o WHERE o.oid = l.oid) > 1": None,
    "SELECT COUNT(*) FROM l WHERE oid NOT IN (SELECT oid FROM o WHERE x > 1)": "unknown here",  # a NULL among them
    "SELECT COUNT(*) FROM l WHERE q IN (SELECT x FROM o)": "other people",
}
LINKS = """
[dataset]
name = "links"
[budget]
epsilon = "1000000000"
[tables.o]
source = "o.parquet"
unit_column = "pid"
max_rows_per_unit = 4
columns.pid = { type = "id" }
columns.oid = { type = "id", unique = true }
columns.x = { type = "integer", lower = 0, upper = 4 }
[tables.l]
source = "l.parquet"
unit_through = { column = "oid", table = "o" }
max_rows_per_unit = 12
columns = { oid = { type = "id" }, q = { type = "integer", lower = 0, upper = 5 } }
"""


@pytest.fixture(scope="module")
def links(tmp_path_factory):
    rng, folder, plain = random.Random(3), tmp_path_factory.mktemp("links"), duckdb.connect()
    orders = [(f"p{number % 9}", f"o{number}", rng.choice([0, 1, 2, 4, None])) for number in range(30)]
    lines = [(order[1], rng.choice([0, 1, 3, None])) for order in orders for _ in range(rng.randint(0, 3))]
    tables = {"o": pd.DataFrame(orders, columns=["pid", "oid", "x"]), "l": pd.DataFrame(lines, columns=["oid", "q"])}
    for name, rows in tables.items():
        typed = rows.astype({column: "Int64" for column in rows.columns if column in ("x", "q")})
        typed.to_parquet(folder / f"{name}.parquet")
        plain.register("given", typed)
        plain.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    (folder / "catalog.toml").write_text(LINKS)
    return sf.open(str(folder)), plain


@pytest.mark.parametrize(("question", "words"), LINKED.items())
def test_a_subquery_about_the_row_that_a_link_leads_to(question, words, links, without_noise):  # noqa: F811
    data, plain = links
    if words is not None:
        with pytest.raises(SfumatoError, match=words):
            data.ask(question, epsilon=1000)
        return
    got = [tuple(row.values()) for row in data.ask(question, epsilon=1000).rows]
    assert rows_of(got) == rows_of(plain.execute(question).fetchall())
