"""Hostile questions: each is refused, at once, with a hint, and nothing is charged."""

import re

import pandas as pd
import pytest
from processor_time import take_less_than

import sfumato as sf
from sfumato.errors import MissingBounds, QueryError, UnknownName, UnsupportedSyntax

FRAME = pd.DataFrame(
    {"id": ["a", "b"], "age": [30, 70], "pay": [1.0, 2.0], "city": ["Rome", "Oslo"], "smoker": [True, False]}
)
COLUMNS = {
    "id": sf.Id(), "age": sf.Integer(0, 120), "pay": sf.Real(10, 9_000), "city": sf.Category(["Rome", "Oslo"]),
    "smoker": sf.Boolean(), "note": sf.Text(), "born": sf.Date("1900-01-01", "2025-12-31"), "big": sf.Integer(0, 2**50),
}  # fmt: skip
MANY = 10_000


@pytest.fixture(scope="module")
def people():
    frame = FRAME.assign(note="x", born="1990-01-01", big=1)
    with sf.protect(frame, name="people", unit="id", columns=COLUMNS, budget=sf.Budget(epsilon=3)) as curator:
        yield curator


def doubling(inner, wrap, times):
    for _ in range(times):
        inner = wrap.format(inner)
    return inner


HOSTILE = {
    "count over": "SELECT COUNT(*) OVER () FROM people",
    "avg over": "SELECT AVG(age) OVER (PARTITION BY city) FROM people",
    "median distinct": "SELECT MEDIAN(DISTINCT age) FROM people",
    "sum distinct": "SELECT SUM(DISTINCT note) FROM people",
    "count of two": "SELECT COUNT(age, pay) FROM people",
    "count distinct column": "SELECT COUNT(DISTINCT 7) FROM people",
    "count distinct of two": "SELECT COUNT(DISTINCT id, age) FROM people",
    "count distinct elsewhere": "SELECT COUNT(DISTINCT other.id) FROM people",
    "count of nothing": "SELECT COUNT() FROM people",
    "count null": "SELECT COUNT(NULL) FROM people",
    "limit percent": "SELECT COUNT(*) FROM people LIMIT 5 PERCENT",
    "limit %": "SELECT COUNT(*) FROM people LIMIT 5%",
    "limit expression": "SELECT COUNT(*) FROM people LIMIT 1 + 1",
    "limit superscript": "SELECT COUNT(*) FROM people LIMIT ²",
    "limit text": "SELECT COUNT(*) FROM people LIMIT '3'",
    "limit huge": "SELECT COUNT(*) FROM people LIMIT 99999999999999999999",
    "group by nothing": "SELECT COUNT(*) FROM people GROUP BY",
    "group by nothing, then more": "SELECT COUNT(*) FROM people GROUP BY HAVING COUNT(*) > 1",
    "group by nothing in a subquery": "SELECT COUNT(*) FROM (SELECT person_id, COUNT(*) AS n FROM people GROUP BY) q",
    "order by all": "SELECT city, COUNT(*) FROM people GROUP BY city ORDER BY ALL",
    "order by 0": "SELECT COUNT(*) FROM people ORDER BY 0",
    "order by 2": "SELECT COUNT(*) FROM people ORDER BY 2",
    "round by expression": "SELECT ROUND(AVG(age), COUNT(*)) FROM people",
    "round by aggregate": "SELECT ROUND(AVG(age), COUNT(*)) FROM people",
    "round by text": "SELECT ROUND(AVG(age), 'x') FROM people",
    "round by much": "SELECT ROUND(AVG(age), 400) FROM people",
    "round by half": "SELECT ROUND(AVG(age), 1.5) FROM people",
    "in subquery": "SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people)",
    "in nothing": "SELECT COUNT(*) FROM people WHERE age IN ()",
    "in unnest": "SELECT COUNT(*) FROM people WHERE age IN UNNEST([1, [2]])",
    "between symmetric": "SELECT COUNT(*) FROM people WHERE age BETWEEN SYMMETRIC 5 AND 1",
    "similar to": "SELECT COUNT(*) FROM people WHERE note SIMILAR TO 'a%'",
    "glob": "SELECT COUNT(*) FROM people WHERE note GLOB 'a*'",
    "like column": "SELECT COUNT(*) FROM people WHERE note LIKE city",
    "like bomb": f"SELECT COUNT(*) FROM people WHERE note LIKE '{'%a' * 50}'",
    "like backslash": r"SELECT COUNT(*) FROM people WHERE note LIKE 'a\%'",
    "regular expression": "SELECT COUNT(*) FROM people WHERE regexp_matches(note, '(a+)+$')",
    "regular expression sign": "SELECT COUNT(*) FROM people WHERE note ~ '(a+)+$'",
    "sample": "SELECT COUNT(*) FROM people TABLESAMPLE 10%",
    "using sample": "SELECT COUNT(*) FROM people USING SAMPLE 10",
    "alias columns": "SELECT COUNT(*) FROM people AS p(a, b)",
    "schema": "SELECT COUNT(*) FROM other.people",
    "deep column": "SELECT COUNT(a.b.c.d.e) FROM people",
    "scalar subquery": "SELECT COUNT(*), (SELECT age FROM people) FROM people",
    "where subquery": "SELECT COUNT(*) FROM people WHERE age = (SELECT MAX(age) FROM people)",
    "exists": "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1)",
    "join": "SELECT COUNT(*) FROM people JOIN people AS q ON TRUE",
    "comma join": "SELECT COUNT(*) FROM people, people AS q",
    "lateral": "SELECT COUNT(*) FROM people, LATERAL (SELECT 1)",
    "qualify": "SELECT COUNT(*) FROM people QUALIFY TRUE",
    "window": "SELECT COUNT(*) FROM people WINDOW w AS (ORDER BY age)",
    "group by aggregate": "SELECT COUNT(*) FROM people GROUP BY 1",
    "group by 99": "SELECT COUNT(*) FROM people GROUP BY 99",
    "distinct on": "SELECT DISTINCT ON (city) COUNT(*) FROM people",
    "quoted dots": 'SELECT COUNT("people.age") FROM people',
    "quoted quotes": 'SELECT COUNT("a""; DROP TABLE people; --") FROM people',
    "quoted function": 'SELECT "read_csv"(\'x\') FROM people',
    "question mark": "SELECT COUNT(*) FROM people WHERE age > ?",
    "dollar": "SELECT COUNT(*) FROM people WHERE age > $1",
    "named parameter": "SELECT COUNT(*) FROM people WHERE age > :x",
    "at": "SELECT COUNT(*) FROM people WHERE age > @x",
    "hash": "SELECT COUNT(*), #1 FROM people",
    "repeat": "SELECT COUNT(*) FROM people WHERE repeat(note, 2000000000) = 'x'",
    "chr": "SELECT COUNT(*) FROM people WHERE chr(-1) = note",
    "read_csv": "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "file": "SELECT COUNT(*) FROM '/etc/passwd'",
    "quoted file": 'SELECT COUNT(*) FROM "/etc/passwd"',
    "glob function": "SELECT COUNT(*) FROM glob('*')",
    "getenv": "SELECT getenv('HOME'), COUNT(*) FROM people",
    "current_setting": "SELECT current_setting('home'), COUNT(*) FROM people",
    "version": "SELECT version(), COUNT(*) FROM people",
    "now": "SELECT COUNT(*) FROM people WHERE born < now()",
    "current_date": "SELECT COUNT(*) FROM people WHERE born < CURRENT_DATE",
    "random": "SELECT COUNT(*) FROM people WHERE random() < 0.5",
    "error": "SELECT COUNT(*) FROM people WHERE error('x')",
    "integer division": "SELECT COUNT(*) FROM people WHERE age // 0 > 1",
    "modulo": "SELECT COUNT(*) FROM people WHERE age % 0 > 1",
    "adjacent texts": "SELECT COUNT(*) FROM people WHERE note = 'a' 'b'",
    "lambda": "SELECT COUNT(*) FROM people WHERE x -> x",
    "list": "SELECT COUNT(*) FROM people WHERE [1, 2][1] = 1",
    "struct": "SELECT COUNT(*) FROM people WHERE {'a': 1}.a = 1",
    "tuple": "SELECT COUNT(*) FROM people WHERE (age, pay) = (1, 2)",
    "bad day": "SELECT COUNT(*) FROM people WHERE born > '2020-02-31'",
    "week day": "SELECT COUNT(*) FROM people WHERE born > '2020-W01-1'",
    "collate": "SELECT COUNT(*) FROM people WHERE note COLLATE NOCASE = 'a'",
    "byte text": r"SELECT COUNT(*) FROM people WHERE note = E'\x41'",
    "dollar text": "SELECT COUNT(*) FROM people WHERE note = $$x$$",
    "hex": "SELECT COUNT(*) FROM people WHERE age = 0x1F",
    "half a number": "SELECT COUNT(*) FROM people WHERE age = 1e",
    "huge number": "SELECT COUNT(*) FROM people WHERE age < 1e999",
    "long number": f"SELECT COUNT(*) FROM people WHERE age < {'9' * 5000}",
    "arabic number": "SELECT COUNT(*) FROM people WHERE age < ٣",
    "pragma": "PRAGMA database_list",
    "set": "SET threads = 1",
    "attach": "ATTACH 'x.db'",
    "copy": "COPY people TO 'x.csv'",
    "copy select": "COPY (SELECT * FROM people) TO 'x.csv'",
    "install": "INSTALL httpfs",
    "load": "LOAD httpfs",
    "call": "CALL pragma_version()",
    "drop": "DROP TABLE people",
    "create": "CREATE TABLE x AS SELECT COUNT(*) FROM people",
    "insert": "INSERT INTO people VALUES (1)",
    "delete": "DELETE FROM people",
    "update": "UPDATE people SET age = 3",
    "describe": "DESCRIBE people",
    "summarize": "SUMMARIZE people",
    "explain": "EXPLAIN SELECT COUNT(*) FROM people",
    "values": "VALUES (1)",
    "pivot": "PIVOT people ON city USING COUNT(*)",
    "select into": "SELECT COUNT(*) INTO x FROM people",
    "for update": "SELECT COUNT(*) FROM people FOR UPDATE",
    "star": "SELECT * FROM people",
    "from alone": "FROM people",
    "star exclude": "SELECT * EXCLUDE (age) FROM people",
    "table star": "SELECT people.* FROM people",
    "columns": "SELECT COUNT(COLUMNS('a.*')) FROM people",
    "open comment": "SELECT COUNT(*) FROM people /* x",
    "open text": "SELECT COUNT(*) FROM people WHERE note = 'x",
    "two statements": "SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people",
    "statement behind": "SELECT COUNT(*) FROM people; DROP TABLE people",
    "system table": "SELECT COUNT(*) FROM duckdb_settings()",
    "information schema": "SELECT COUNT(*) FROM information_schema.tables",
    "sqlite_master": "SELECT COUNT(*) FROM sqlite_master",
    "other table": "SELECT COUNT(*) FROM persons",
    "no table": "SELECT COUNT(*)",
    "own column": "SELECT COUNT(*) FROM people WHERE __sfumato_unit = 'a'",
    "rowid": "SELECT COUNT(*) FROM people WHERE rowid = 3",
    "id shown": "SELECT id, COUNT(*) FROM people GROUP BY id",
    "id compared": "SELECT COUNT(*) FROM people WHERE id = age",
    "id compared with a text": "SELECT COUNT(*) FROM people WHERE id = note",
    "row shown": "SELECT age, COUNT(*) FROM people",
    "million groups": "SELECT COUNT(*) FROM people GROUP BY age, age + 0 > 1, FLOOR(age * 10), FLOOR(age * 11)",
    "sum of text": "SELECT SUM(note) FROM people",
    "sum without bounds": "SELECT SUM(age / (age - 3)) FROM people",
    "arithmetic without bounds": "SELECT COUNT(*) FROM people WHERE age / (age - 3) + 1 > 2",
    "too large": "SELECT SUM(" + " * ".join(["big"] * 20) + ") FROM people",
    "nested aggregate": "SELECT AVG(COUNT(*)) FROM people",
    "where aggregate": "SELECT COUNT(*) FROM people WHERE COUNT(*) > 3",
    "no aggregate": "SELECT age FROM people",
    "having of mixed types": "SELECT city, COUNT(*) FROM people GROUP BY city HAVING city > 3",
    "having a number": "SELECT COUNT(*) FROM people HAVING COUNT(*)",
    "key arithmetic": "SELECT city + 1, COUNT(*) FROM people GROUP BY city",
    "not of a number": "SELECT NOT COUNT(*) FROM people",
    "alias of itself": "SELECT a + 1 AS a, COUNT(*) FROM people",
    "aliases in a circle": "SELECT b AS a, a AS b, COUNT(*) FROM people",
    "same names": "SELECT COUNT(*) AS n, SUM(age) AS N FROM people",
    "never true": "SELECT COUNT(*) FROM people WHERE age <> NULL",
    "in null": "SELECT COUNT(*) FROM people WHERE age IN (1, NULL)",
    "nul byte": "SELECT COUNT(*) FROM people WHERE note = 'a\0b'",
    "surrogate": "SELECT COUNT(*) FROM people WHERE note = '\ud800'",
    "right to left": "SELECT COUNT(*) FROM people WHERE note = '\u202e'",
    "zero width": "SELECT COUNT(*) FROM peo\u200bple",
    "full width": "\uff33\uff25LECT COUNT(*) FROM people",
    "homoglyph": "SELECT COUNT(\u0430ge) FROM people",
    "blank": " \n ",
    "nothing": "",
    "words": "how many people are there",
    "parentheses": f"SELECT COUNT(*) FROM people WHERE {'(' * MANY}smoker{')' * MANY}",
    "few parentheses": f"SELECT COUNT(*) FROM people WHERE {'(' * 60}smoker{')' * 60}",
    "open parentheses": f"SELECT COUNT(*) FROM people WHERE {'(' * MANY}",
    "nots": f"SELECT COUNT(*) FROM people WHERE {'NOT ' * 4_000}smoker",
    "minus signs": f"SELECT COUNT(*) FROM people WHERE age > {'- ' * 9_000}1",
    "cases": f"SELECT COUNT(*) FROM people WHERE {'CASE WHEN smoker THEN ' * 500}smoker{' END' * 500}",
    "case else": f"SELECT COUNT(*) FROM people WHERE {'CASE WHEN smoker THEN smoker ELSE ' * 400}smoker{' END' * 400}",
    "ands": f"SELECT COUNT(*) FROM people WHERE {'smoker AND ' * MANY}smoker",
    "pluses": f"SELECT SUM(age{' + age' * 1_200}) FROM people",
    "ins": f"SELECT COUNT(*) FROM people WHERE age {'IN (age ' * 25}{')' * 25}",
    "dots": f"SELECT COUNT({'a.' * 1_200}a) FROM people",
    "doubling in": f"SELECT COUNT(*) FROM people WHERE {doubling('smoker', '({} IN (TRUE, FALSE))', 11)}",
    "doubling between": f"SELECT COUNT(*) FROM people WHERE {doubling('smoker', '({} BETWEEN FALSE AND TRUE)', 20)}",
    "doubling aliases": "SELECT COUNT(*) AS a0, "
    + ", ".join(f"a{i} + a{i} AS a{i + 1}" for i in range(100)) + " FROM people",
    "tiny": "SELECT SUM(pay * 1e-99 * 1e-99 * 1e-99 * 1e-20) FROM people",
    "constant": "SELECT AVG(1) FROM people",
    "constant zero": "SELECT SUM(0 * age) FROM people",
    "semicolon": ";",
    "only a comment": "-- SELECT",
    "no argument": "SELECT AVG() FROM people",
    "open function": "SELECT COUNT(*) FROM people WHERE FLOOR(",
    "closing too much": "SELECT COUNT(*)) FROM people",
    "nested divisors": f"SELECT SUM({doubling('pay', '(1 / ({} + 1))', 10)}) FROM people",
    "many columns": "SELECT " + ", ".join(f"COUNT(*) + {i} AS c{i}" for i in range(201)) + " FROM people",
    "many aggregates": "SELECT " + ", ".join(f"SUM(age + {i}) AS c{i}" for i in range(150)) + " FROM people",
    "many keys": "SELECT COUNT(*) FROM people GROUP BY " + ", ".join(f"age > {i}" for i in range(40)),
    "a megabyte": "SELECT COUNT(*) FROM people WHERE note = '" + "x" * 1_000_000 + "'",
    "a megabyte of quotes": '"' * 1_000_000,
    "many commas": "SELECT " + "," * 15_000,
}  # fmt: skip


@pytest.mark.parametrize("sql", HOSTILE.values(), ids=HOSTILE.keys())
def test_it_is_refused_before_any_charge(sql, people):
    before = people.budget.spent

    def refuse():
        with pytest.raises(QueryError) as refused:
            people.ask(sql, epsilon="0.1")
        return refused

    refused = take_less_than(1, refuse)
    assert refused.value.hint
    assert len(str(refused.value)) < 600
    assert people.budget.spent == before
    if isinstance(refused.value, UnknownName):
        assert re.search(r" (at|near) \d+:\d+", refused.value.message)


@pytest.mark.parametrize("sql", [None, 3, b"SELECT COUNT(*) FROM people", ["SELECT"], object()])
def test_a_question_is_text(sql, people):
    with pytest.raises(UnsupportedSyntax):
        people.ask(sql, epsilon="0.1")


def test_there_are_enough():
    assert len(HOSTILE) >= 60


def test_an_innocent_question_is_charged(people):
    """Negative control: the harness can see a charge."""
    before = people.budget.spent
    people.ask("SELECT COUNT(*) AS n FROM people;", epsilon="0.1")
    assert people.budget.spent != before


@pytest.mark.parametrize(
    "expression",
    [
        "SUM(age" + " + age" * 50 + ")",
        "SUM(" + "CASE WHEN smoker THEN 1 ELSE " * 20 + "0" + " END" * 20 + ")",
        "SUM(" + "ABS(" * 20 + "age" + ")" * 20 + ")",
        "COUNT(" + "(" * 22 + "age" + ")" * 22 + ")",
        "SUM(CASE WHEN " + "NOT " * 20 + "smoker THEN 1 ELSE 0 END)",
        "SUM(CASE WHEN " + "smoker AND " * 200 + "smoker THEN 1 ELSE 0 END)",
        "SUM(CASE WHEN age IN (" + ", ".join(map(str, range(200))) + ") THEN 1 ELSE 0 END)",
        "VARIANCE(pay" + " / (pay + 1)" * 30 + ")",
        "ROUND(" + "ABS(" * 20 + "COUNT(*)" + ")" * 20 + ", 2)",
        "COUNT(*)" + " + 1" * 50,
    ],
)
def test_what_is_let_through_runs(expression, people):
    """A question as deep and wide as the limits allow, on a deep stack, neither fails nor takes long."""

    def ask(frames):
        return ask(frames - 1) if frames else people.ask(f"SELECT {expression} AS x FROM people", epsilon="0.001")

    assert len(take_less_than(5, lambda: ask(100)).rows) == 1


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("SELECT COUNT(agee) FROM people", UnknownName, "There is no column 'agee' in table people at 1:14."),
        ("SELECT\n  COUNT(x.age)\nFROM people", UnknownName, "There is no table 'x' here at 2:9."),
        ("SELECT COUNT(*) FROM persons", UnknownName, "There is no table 'persons' in dataset people at 1:22."),
        ("SELECT MEDIAM(age) FROM people", UnknownName, "There is no function 'MEDIAM' at 1:8."),
        ("SELECT SUM(age / (age - 3)) FROM people", MissingBounds,
         "SUM needs a number with bounds, and this has no bounds at 1:8."),
    ],
)  # fmt: skip
def test_it_says_where(sql, kind, message, people):
    with pytest.raises(kind) as refused:
        people.preview(sql, epsilon=1)
    assert refused.value.message == message


def test_hints_name_what_is_closest(people):
    for sql, hint in {
        "SELECT COUNT(agee) FROM people": "Did you mean age?",
        "SELECT COUNT(*) FROM peeple": "Did you mean people?",
        "SELECT LOWERR(job) FROM people": "Did you mean LOWER?",
        "SELECT KURTOSIS(age) FROM people": "in Python",
        "SELECT STRING_AGG(job, ',') FROM people": "another question",
        "SELECT STDEVV(age) FROM people": "Did you mean STDEV?",
        "SELECT COUNT(*) FROM people WHERE age <> NULL": "Use IS NULL",
    }.items():
        with pytest.raises(QueryError) as refused:
            people.preview(sql, epsilon=1)
        assert hint in refused.value.hint
