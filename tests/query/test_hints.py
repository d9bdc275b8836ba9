"""Refusals: each names what to write, and a suggestion that works or that says that it is another question."""

import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.errors import SfumatoError
from sfumato.query.bind import bind
from sfumato.query.hints import FUNCTION_HINTS
from sfumato.query.parse import parse
from sfumato.query.tokens import KNOWN_FUNCTIONS

VISITS = Table(
    "visits", None, "pid",
    {
        "pid": sf.Id(), "visit_id": sf.Id(), "cost": sf.Real(0, 1000), "age": sf.Integer(0, 120),
        "city": sf.Category(["A", "B"]), "day": sf.Date("2024-01-01", "2024-12-31"), "note": sf.Text(),
    },
    5,
)  # fmt: skip
SITES = Table("sites", None, None, {"city": sf.Category(["A", "B"]), "beds": sf.Integer(0, 9)}, public=True)
CLINIC = Dataset("clinic", [VISITS, SITES], sf.Budget(epsilon=9, delta="1e-6"))
REFUSED = {  # a question -> what the refusal must say
    "SELECT pid FROM visits": "No answer shows an id",
    "SELECT cost, COUNT(*) FROM visits GROUP BY cost": "another question, which can be answered: HISTOGRAM(x, 20)",
    "SELECT city, COUNT(*) FROM visits GROUP BY city HAVING age > 3": "belongs in WHERE",
    "SELECT SUM(age) OVER (PARTITION BY city) FROM visits": "over the groups of an answer",
    "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY pid) AS r FROM visits) WHERE r = 1": "MIN(w.day)",
    "SELECT SUM(1 / cost) FROM visits": "a + 1 is another number",
    "SELECT AVG(LN(cost)) FROM visits": "another number: LN(1 + x)",
    "SELECT COUNT(*) FROM visits WHERE city = A": "If it is a text, write it in single quotes: 'A'",
    "SELECT COUNT(*) FROM visits WHERE age > '30'": "without quotes: 30",
    "SELECT COUNT(*) FROM visits WHERE age > 30 = 'yes'": "TRUE or FALSE",
    "SELECT COUNT(*) FROM visits WHERE day > 2000": "YEAR(x) > 2000",
    "SELECT COUNT(*) FROM visits WHERE age IN ()": "IN ('a', 'b')",
    "SELECT COUNT(*) FROM visits WHERE note REGEXP 'a.*'": "REGEXP_MATCHES",
    "EXPLAIN SELECT COUNT(*) FROM visits": "preview(sql)",
    "SELECT COUNT(DISTINCT pid, city) FROM visits": "GROUP BY pid, x) counts the different pairs",
    "SELECT COUNT(*) FROM visits v JOIN sites s ON v.cost = s.beds": "hardly ever equal",
    "SELECT JSON_EXTRACT(note, 'a') FROM visits": "stored as a column",
    "SELECT cost FROM visits LIMIT 5": "FLOOR(cost / 10)",
    "SELECT city, COUNT(*) FROM visits": "Add it to GROUP BY",
    "SELECT AVG(note) FROM visits": "another question",
    "SELECT MEDIAN(city) FROM visits": "MODE(x) is the most frequent value. That is another question",
    "SELECT SUM(SIN(cost)) FROM visits": "Engines differ in its last digit",
    "SELECT SUM(COS(cost)) FROM visits": "as in COS(AVG(x)), it is computed for free",
    "SELECT MAX(LENGTH(note)) FROM visits": "Give it one: LEAST(x, 100)",
    "SELECT COUNT(*) FROM visits WHERE pid = cost": "the owner adds a copy of the id's column",
    "SELECT COUNT(*) FROM visits WHERE visit_id = kind": "the owner adds a copy of the id's column",
    "SELECT COUNT(*) FROM sites": "read it without Sfumato",
    "SELECT VARIANCE(DISTINCT age) FROM visits WHERE age = 3": "VARIANCE of a constant does not need the data",
    "SELECT COUNT(*) FROM sites a JOIN sites b ON a.city = b.city": "from their files, with any tool",
    "SELECT AVG(TIMESTAMPDIFF(MONTH, day, day)) FROM visits": "the same number if both are first days",
    "SELECT VARIANCE(DISTINCT LENGTH(note)) FROM visits": "Declare bounds",
    "SELECT KURTOSIS(cost) FROM visits": "SUM(x * x * x * x)",
    "SELECT COUNT(*) FROM visits a LEFT JOIN (visits b JOIN sites s USING (site)) ON a.pid = b.pid": "as a subquery",
    "SELECT STRING_SPLIT(note, ' ')[1], COUNT(*) FROM visits GROUP BY 1": "SPLIT_PART(x, '@', 2)",
    "SELECT SUBSTRING_INDEX(note, '.', 2), COUNT(*) FROM visits GROUP BY 1": "another question",
    "SELECT SPLIT_PART(note, '', 1), COUNT(*) FROM visits GROUP BY 1": "SPLIT_PART(x, '@', 2)",
    "SELECT MD5(note), COUNT(*) FROM visits GROUP BY 1": "group by the text itself",
    "SELECT COUNT(*) FROM visits WHERE note SIMILAR TO 'a%'": "LIKE",
    "SELECT COUNT(*) FROM visits WHERE note ~ 'a'": "REGEXP_MATCHES",
    "SELECT SUM(age & 1) FROM visits": "MOD(x, 2)",
    "SELECT COUNT(*) FROM visits WHERE ISNAN(cost)": "NaN is read as NULL: write x IS NULL",
    "SELECT COUNT(*) FROM visits WHERE cost IS NAN": "NaN is read as NULL: write x IS NULL",
    "SELECT WEEKDAY(day), COUNT(*) FROM visits GROUP BY 1": "ISODOW(day)",
    "SELECT COUNT(*) FROM read_csv('x.csv')": "`sfumato add`",
    "SELECT HISTOGRAM(cost) FROM visits": "HISTOGRAM(x, 20)",
    "DELETE FROM visits": "Questions only read",
    "DESCRIBE visits": "`sfumato check`",
    "SELCT COUNT(*) FROM visits": "Did you mean SELECT?",
    "SELECT COUNT(*) FORM visits": "Did you mean FROM instead of FORM?",
    "SELECT COUNT(*) FROM visits WHRE age > 3": "Did you mean WHERE instead of WHRE?",
    "SELECT COUNT(*) FROM visits WHERE age => 3": "Write >=",
    'SELECT COUNT(*) FROM visits WHERE city = "A"': "write it in single quotes: 'A'",
    "SELECT SUM(glob) FROM visits": 'write it in double quotes: "glob"',
    "SELECT COUNT(*) FROM visits CROSS JOIN sites": "repeat each row for every row of a public table",
    "SELECT COUNT(*) FROM visits v CROSS JOIN visits w": "combine rows of different people",
    "SELECT COUNT(*) FROM visits v WHERE NOT age IN (SELECT age FROM visits w WHERE w.pid = v.pid GROUP BY 1)": (
        "Write EXISTS"
    ),
    "SELECT COUNT(*) FROM visits v WHERE age > ALL (SELECT age FROM visits w WHERE w.pid = v.pid)": "except where",
    "SELECT COUNT(*) FROM visits WHERE RANGE_BUCKET(age, [0, 9]) = 1": "CASE WHEN x < 0 THEN 0",
    "SELECT INITCAP(note), COUNT(*) FROM visits GROUP BY 1": "Group by the text itself",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.age = v.age)": "the same person",
}


def refuse(question):
    with pytest.raises(SfumatoError) as caught:
        bind(parse(question), CLINIC)
    return str(caught.value)


@pytest.mark.parametrize(("question", "said"), REFUSED.items())
def test_a_refusal_says_what_to_write(question, said):
    assert said in refuse(question)


def test_a_hint_stands_without_the_list_of_aggregates():
    assert "Aggregates:" not in refuse("SELECT SOUNDEX(note), COUNT(*) FROM visits GROUP BY 1")
    assert "from the answer's rows in Python" in refuse("SELECT QQQ(note), COUNT(*) FROM visits GROUP BY 1")
    assert "Did you mean MEDIAN?" in refuse("SELECT MEDAIN(age) FROM visits")


def test_a_function_that_exists_has_no_hint_that_it_does_not():
    assert not {"ANY_VALUE"} ^ (FUNCTION_HINTS.keys() & KNOWN_FUNCTIONS)  # ANY_VALUE of a key is supported


def test_only_a_division_is_told_about_divisors():
    assert "Divide only" not in refuse("SELECT AVG(LENGTH(note)) FROM visits")
    assert "Divide only" in refuse("SELECT AVG(cost / age) FROM visits")


@pytest.mark.parametrize("column", ["copy", "show", "replace", "merge"])
def test_words_that_begin_other_statements_are_names_of_columns(column):
    table = Table("t", None, "pid", {"pid": sf.Id(), column: sf.Integer(0, 9)}, 5)
    dataset = Dataset("d", [table], sf.Budget(epsilon=9))
    assert bind(parse(f"SELECT SUM({column}) FROM t"), dataset).aggregates


@pytest.mark.parametrize(
    ("condition", "swapped"),
    [
        ("age BETWEEN 60 AND 30", True), ("age BETWEEN 30 AND 60", False), ("age BETWEEN 30 AND 30", False),
        ("day BETWEEN '2024-06-01' AND '2024-01-01'", True), ("day BETWEEN '2024-01-01' AND '2024-06-01'", False),
        ("day BETWEEN DATE '2024-06-01' AND DATE '2024-01-01'", True), ("note BETWEEN 'b' AND 'a'", True),
        ("age NOT BETWEEN 60 AND 30", True), ("cost BETWEEN 5.5 AND 5", True), ("age BETWEEN age AND 3", False),
    ],
)  # fmt: skip
def test_bounds_in_the_wrong_order_are_reported(condition, swapped):
    cautions = bind(parse(f"SELECT COUNT(*) FROM visits WHERE {condition}"), CLINIC).cautions
    assert any("the first value is the larger one" in caution for caution in cautions) == swapped
