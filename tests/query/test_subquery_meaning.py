"""Subqueries in conditions, with NULLs on both sides: random questions have the answers of plain DuckDB."""

import random
from datetime import date, timedelta

import duckdb
import pandas as pd
import pytest
from examples import count_examples
from test_corpus import rows_of, without_noise  # noqa: F401 - a fixture

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.query.bind import bind
from sfumato.query.parse import parse

CATALOG = """
[dataset]
name = "pairs"
[budget]
epsilon = "1000000000"
[tables.a]
source = "a.parquet"
unit_column = "pid"
max_rows_per_unit = 6
columns = { pid = { type = "id" }, x = { type = "integer", lower = 0, upper = 4 }, s = { type = "category", values = ["u", "v"] }, d = { type = "date", lower = "2024-01-01", upper = "2024-01-05" } }
[tables.b]
source = "b.parquet"
unit_column = "pid"
max_rows_per_unit = 6
columns = { pid = { type = "id" }, x = { type = "integer", lower = 0, upper = 4 }, s = { type = "category", values = ["u", "v"] }, d = { type = "date", lower = "2024-01-01", upper = "2024-01-05" } }
[tables.k]
source = "k.parquet"
public = true
columns = { x = { type = "integer", lower = 0, upper = 4 }, z = { type = "integer", lower = 0, upper = 9 } }
[tables.m]
source = "m.parquet"
public = true
columns = { x = { type = "integer", lower = 0, upper = 4 } }
"""  # noqa: E501
PER_SEED = 40


def make_rows(rng):
    rows = []
    for person in range(14):
        rows += [
            {"pid": f"p{person}", "x": rng.choice([0, 1, 2, 3, 4, None]), "s": rng.choice(["u", "v", None]),
             "d": rng.choice([None, *(date(2024, 1, 1) + timedelta(days=day) for day in range(5))])}
            for _ in range(rng.randint(0, 6))
        ]  # fmt: skip
    return pd.DataFrame(rows, columns=["pid", "x", "s", "d"]).astype({"x": "Int64"})


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    rng, folder, plain = random.Random(5), tmp_path_factory.mktemp("pairs"), duckdb.connect()
    public = pd.DataFrame({"x": [0, 1, 3], "z": [4, 0, 2]}).astype("Int64")
    gaps = pd.DataFrame({"x": [1, None, 2]}).astype("Int64")
    for name, rows in (("a", make_rows(rng)), ("b", make_rows(rng)), ("k", public), ("m", gaps)):
        rows.to_parquet(folder / f"{name}.parquet")
        plain.register("given", rows)
        plain.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        if "d" in rows:
            plain.execute(f"ALTER TABLE {name} ALTER d TYPE DATE")
    (folder / "catalog.toml").write_text(CATALOG)
    return sf.open(str(folder)), plain


class QuestionMaker:
    """Random conditions on a row of `a`."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def links(self, *, compare):
        found = ["b.pid = a.pid"]
        if self.random.random() < 0.4:
            found.append(self.pick("b.s = a.s", "a.x = b.x", "b.d = a.d", "b.s = a.s AND b.x = a.x"))
        if self.random.random() < 0.3:
            found.append(self.pick("b.x > 1", "b.s IS NOT NULL", "b.x IN (SELECT x FROM k)", "b.d < DATE '2024-01-04'"))
        if self.random.random() < 0.25:
            found.append(self.pick("a.x > 1", "a.s = 'u'", "a.d IS NULL"))
        for _ in range(2):
            if self.random.random() < (0.3 if compare else 0.1):
                found.append(
                    self.pick("b.x < a.x", "a.x < b.x", "b.x <> a.x", "b.d <= a.d", "b.d > a.d", "b.x >= a.x + 1",
                              "b.x + a.x = 4", "b.d BETWEEN a.d - 1 AND a.d", "b.s <> a.s")
                )  # fmt: skip
        return " AND ".join(found)

    def exists(self):
        tail = self.pick("", "", "", " GROUP BY b.s HAVING COUNT(*) > 1", " HAVING COUNT(*) < 2",
                         " GROUP BY b.pid HAVING SUM(b.x) > 3", " LIMIT 1")  # fmt: skip
        return f"EXISTS (SELECT 1 FROM b WHERE {self.links(compare=not tail)}{tail})"

    def listed(self):
        column = self.pick("x", "s", "pid", "d")
        value = self.pick(f"a.{column}", f"a.{column}", "a.x + 0" if column == "x" else f"a.{column}")
        return f"{value} {self.pick('IN', 'NOT IN')} (SELECT b.{column} FROM b WHERE {self.links(compare=False)})"

    def public(self):
        return self.pick("a.x IN (SELECT x FROM k WHERE z > 1)", "a.x NOT IN (SELECT x FROM k)",
                         "EXISTS (SELECT 1 FROM k WHERE k.x = a.x AND z < 3)",
                         "(SELECT z FROM k WHERE k.x = a.x) > 1", "a.x < (SELECT MAX(z) FROM k)")  # fmt: skip

    def number(self):
        measured = self.pick("COUNT(*)", "COUNT(b.x)", "SUM(b.x)", "COALESCE(SUM(b.x), 0)", "MAX(b.x) - MIN(b.x)",
                             "COUNT(DISTINCT b.s)", "COUNT(*) + 1", "COUNT(*) + COALESCE(MAX(b.x), 9)")  # fmt: skip
        tail = self.pick("", "", "", " GROUP BY b.pid", " HAVING COUNT(*) > 1")
        inner = f"(SELECT {measured} FROM b WHERE {self.links(compare=False)}{tail})"
        return self.pick(f"{inner} > 1", f"{inner} = 0", f"{inner} IS NULL", f"{inner} <= a.x",
                         f"a.x IN {inner}" if measured.startswith("SUM") else f"{inner} < 3")  # fmt: skip

    def day(self):
        end = self.pick("MIN", "MAX")
        return f"a.d {self.pick('=', '<', '>=')} (SELECT {end}(b.d) FROM b WHERE {self.links(compare=False)})"

    def condition(self):
        one = self.pick(self.exists, self.listed, self.number, self.day, self.public)()
        shape = self.pick("{}", "{}", "NOT ({})", "({}) IS NULL", "({}) IS NOT TRUE", "({}) OR a.x = 2",
                          "CASE WHEN {} THEN a.x > 1 ELSE a.s = 'u' END", "({}) AND a.s = 'v'")  # fmt: skip
        return shape.format(one)

    def question(self):
        where = self.condition()
        if self.random.random() < 0.2:
            return f"SELECT COUNT(*) FROM (SELECT * FROM a WHERE {where}) AS t WHERE x > 0"
        if self.random.random() < 0.2:
            return f"SELECT s, COUNT(*) AS n FROM a WHERE ({where}) AND s IS NOT NULL GROUP BY s HAVING COUNT(*) > 0"
        return f"SELECT COUNT(*) AS n FROM a WHERE {where}"


@pytest.mark.parametrize("seed", range(count_examples(3)))
def test_random_subqueries_mean_what_they_mean_in_plain_sql(seed, world, without_noise):  # noqa: F811
    pairs, plain = world
    maker, answered = QuestionMaker(seed), 0
    for _ in range(PER_SEED):
        question = maker.question()
        try:
            answer = pairs.ask(question, epsilon=1000)
        except SfumatoError as error:
            assert error.code in ("syntax", "bounds"), (question, error)  # some are refused
            continue
        answered += 1
        wanted = plain.execute(question).fetchall()
        assert sorted(rows_of([tuple(row.values()) for row in answer.rows])) == sorted(rows_of(wanted)), question
    assert answered > 0.85 * PER_SEED


REFUSED = {
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT COUNT(*) FROM b WHERE b.pid = a.pid)": "always true",
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid LIMIT 0)": "LIMIT",
    "SELECT COUNT(*) FROM a WHERE (SELECT MAX(x) FROM b WHERE b.pid = a.pid GROUP BY b.s) > 1": "one row",
    "SELECT COUNT(*) FROM a WHERE (SELECT b.x FROM b WHERE b.pid = a.pid) > 1": "one aggregate",
    "SELECT COUNT(*) FROM a WHERE (SELECT MAX(b.x) + b.x FROM b WHERE b.pid = a.pid) > 1": "one aggregate",
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND (b.x = 1 OR a.x = 1))": "comparison",
    "SELECT COUNT(*) FROM a WHERE NOT a.x IN (SELECT b.x FROM b WHERE b.pid = a.pid GROUP BY b.x)": "EXISTS",
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x)": "other people",
    "SELECT COUNT(*) FROM a WHERE a.x > ALL (SELECT b.x FROM b WHERE b.pid = a.pid)": "MAX(y)",
    "SELECT COUNT(*) FROM a LEFT JOIN b ON a.pid = b.pid AND b.x IN (SELECT w.x FROM b w WHERE w.pid = b.pid)": "Put",
    "SELECT COUNT(*) FROM (SELECT pid, x FROM a INTERSECT SELECT pid, x FROM b) AS t": "ids of people",
}


@pytest.mark.parametrize(("question", "words"), REFUSED.items())
def test_what_has_another_meaning_is_refused(question, words, world):
    with pytest.raises(SfumatoError) as refused:
        bind(parse(question), world[0].dataset)
    assert words in str(refused.value)


def test_a_name_of_the_question_never_means_a_column_of_a_joined_subquery(world, without_noise):  # noqa: F811
    pairs, plain = world
    inner = "EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND b.x > 2)"
    for name in ("n", "v", "v0", "k0", "m"):
        question = (
            f"SELECT CASE WHEN x > 2 THEN 1 ELSE 0 END AS {name}, COUNT(*) AS c FROM a WHERE {inner} GROUP BY {name}"
        )
        got = rows_of([tuple(row.values()) for row in pairs.ask(question, epsilon=1000).rows])
        assert sorted(got) == sorted(rows_of(plain.execute(question).fetchall()))
        with pytest.raises(SfumatoError, match=f"no column '{name}'") as refused:
            pairs.ask(f"SELECT SUM({name}) FROM a WHERE {inner}", epsilon=1)
        assert "__sfumato" not in str(refused.value)
