"""Answers say which rows are in no group, and which groups plain SQL would not have."""

import pandas as pd
import pytest

import sfumato as sf
from sfumato.answers.explanation import NO_GROUP, NULL_KEYS
from sfumato.query.empty_groups import COUNTED, LIMITED

COLUMNS = {
    "pid": sf.Id(), "city": sf.Category(["A", "B", "C"]), "sex": sf.Category(["F", "M"], nullable=False),
    "age": sf.Integer(0, 9),
}  # fmt: skip


@pytest.fixture(scope="module")
def people():
    rows = pd.DataFrame({
        "pid": range(40), "city": ["A", "B", None, "A"] * 10, "sex": ["F", "M"] * 20, "age": [1, 2, 3, None] * 10,
    })  # fmt: skip
    return sf.protect(rows, name="people", unit="pid", columns=COLUMNS, budget=sf.Budget(epsilon=10**6, delta="0.1"))


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("SELECT city, COUNT(*) AS n FROM people GROUP BY city", True),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", False),
        ("SELECT sex, city, COUNT(*) AS n FROM people GROUP BY sex, city", True),
        ("SELECT COALESCE(city, 'none') AS c, COUNT(*) AS n FROM people GROUP BY c", False),
        ("SELECT COALESCE(age, -1) AS a, COUNT(*) AS n FROM people GROUP BY a", False),
        ("SELECT city, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY city", False),
        ("SELECT city, COUNT(*) AS n FROM people WHERE city IN ('A', 'B') GROUP BY city", False),
        ("SELECT city, COUNT(*) AS n FROM people WHERE city <> 'A' AND sex = 'F' GROUP BY city", False),
        ("SELECT city, COUNT(*) AS n FROM people WHERE city = 'A' OR sex = 'F' GROUP BY city", True),
        ("SELECT city, COUNT(*) AS n FROM people WHERE NOT (city IS NULL AND sex = 'F') GROUP BY city", True),
        ("SELECT city, COUNT(*) AS n FROM people WHERE age = 1 GROUP BY city", True),
        ("SELECT CASE WHEN sex = 'F' THEN 1 END AS f, COUNT(*) AS n FROM people GROUP BY f", True),
        ("SELECT COUNT(*) AS n FROM people", False),
        ("SELECT MAX(n) AS most FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city)", True),
    ],
)
def test_an_answer_says_that_rows_are_in_no_group(people, question, said):
    answer = people.ask(question, epsilon=100)
    assert answer.interval_note.count(NO_GROUP) == said
    assert str(answer).count(NO_GROUP) == said
    assert (NULL_KEYS in answer.explain()) == said


def test_what_the_note_suggests_shows_the_rows(people):
    keyed = people.ask("SELECT COALESCE(city, 'none') AS c, COUNT(*) AS n FROM people GROUP BY c", epsilon=1000)
    assert {row["c"]: row["n"] for row in keyed.rows} == {"A": 20, "B": 10, "C": 0, "none": 10}
    keyed = people.ask("SELECT COALESCE(age, -1) AS a, COUNT(*) AS n FROM people GROUP BY a", epsilon=1000)
    assert {row["a"]: row["n"] for row in keyed.rows if row["n"]} == {-1: 10, 1: 10, 2: 10, 3: 10}


@pytest.mark.parametrize(
    ("question", "warning"),
    [
        ("SELECT COUNT(*) AS n FROM (SELECT city, COUNT(*) AS k FROM people GROUP BY city)", COUNTED),
        ("SELECT AVG(k) AS n FROM (SELECT city, COUNT(*) AS k FROM people GROUP BY city)", COUNTED),
        ("SELECT SUM(k) AS n FROM (SELECT city, COUNT(*) AS k FROM people GROUP BY city)", None),
        ("SELECT MAX(k) AS n FROM (SELECT city, COUNT(*) AS k FROM people GROUP BY city)", None),
        ("SELECT city, AVG(age) AS a FROM people GROUP BY city", None),
        ("SELECT city, COUNT(*) AS k, AVG(COUNT(*)) OVER () AS m FROM people GROUP BY city", None),
        ("SELECT age, COUNT(*) AS k FROM people GROUP BY age ORDER BY age LIMIT 2", LIMITED),
        ("SELECT age, COUNT(*) AS k FROM people GROUP BY age ORDER BY 1 LIMIT 2", LIMITED),
        ("SELECT age, COUNT(*) AS k FROM people GROUP BY age LIMIT 2", LIMITED),
        ("SELECT age, COUNT(*) AS k FROM people GROUP BY age ORDER BY k DESC LIMIT 2", None),
        ("SELECT age, COUNT(*) AS k FROM people GROUP BY age ORDER BY 2 DESC LIMIT 2", None),
        ("SELECT age, COUNT(*) AS k FROM people GROUP BY age HAVING COUNT(*) > 3 ORDER BY age LIMIT 2", None),
        ("SELECT age, COUNT(*) AS k FROM people GROUP BY age ORDER BY age", None),
    ],
)
def test_a_warning_says_that_groups_of_nobody_count(people, question, warning):
    warnings = people.ask(question, epsilon=100).warnings
    assert [one for one in warnings if "groups that nobody is in" in one] == ([] if warning is None else [warning])
