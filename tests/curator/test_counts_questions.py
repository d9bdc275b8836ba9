"""Questions about a counts table: what can be asked, what is refused, and what explain() says."""

import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, UnsupportedSyntax

DATA = pd.DataFrame({"type": ["flu", "gout", "mumps"], "ward": [1, 2, 2], "days": [3.0, 9.0, 5.0], "n": [812, 40, 7]})
COLUMNS = {
    "type": sf.Category(["flu", "gout", "mumps"]), "ward": sf.Category([1, 2]), "days": sf.Real(0, 10),
}  # fmt: skip
NOTE = "Privacy unit of sick: each unit of n is one person. A record with n = 5 stands for 5 people, each with n = 1."


@pytest.fixture(scope="module")
def sick():
    return sf.protect(DATA, name="sick", unit=sf.COUNTS("n"), columns=COLUMNS, budget=sf.Budget(epsilon=10**5))


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("SELECT SUM(n) AS s FROM sick", [{"s": 859}]),
        ("SELECT COUNT(*) AS s FROM sick WHERE ward = 2", [{"s": 47}]),
        ("SELECT COUNT(n) AS s FROM sick WHERE ward = 2", [{"s": 47}]),
        ("SELECT SUM(n * 2) AS s FROM sick", [{"s": 1718}]),
        ("SELECT SUM(-n) AS s FROM sick", [{"s": -859}]),
        ("SELECT ward, SUM(n) AS s FROM sick GROUP BY ward HAVING SUM(n) > 100", [{"ward": 1, "s": 812}]),
        ("SELECT SUM(m) AS s FROM (SELECT n AS m, type FROM sick) WHERE type = 'mumps'", [{"s": 7}]),
        ("WITH w AS (SELECT n * 3 AS m FROM sick) SELECT SUM(m) AS s FROM w", [{"s": 2577}]),
    ],
)
def test_sums_count_people(sick, question, rows):
    answer = sick.ask(question, epsilon=500)
    assert answer.rows == rows
    assert NOTE in answer.explain()


def test_the_sensitivity_of_the_sum_is_one(sick):
    preview = sick.preview("SELECT SUM(n) AS s FROM sick WHERE days > 4", epsilon=1)
    assert "one person can change it by at most 1." in preview.explain()
    assert NOTE in preview.explain()
    assert preview.margins["s"] == pytest.approx(3, abs=0.1)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) AS s FROM sick WHERE n > 5",
        "SELECT n, COUNT(*) AS s FROM sick GROUP BY n",
        "SELECT n AS m, COUNT(*) AS s FROM sick GROUP BY 1",
        "SELECT AVG(n) AS s FROM sick",
        "SELECT MAX(n) AS s FROM sick",
        "SELECT MEDIAN(n) AS s FROM sick",
        "SELECT SUM(CASE WHEN n > 5 THEN 1 ELSE 0 END) AS s FROM sick",
        "SELECT COUNT(*) AS s FROM (SELECT n AS m FROM sick) WHERE m > 5",
        "SELECT COUNT(*) AS s FROM (SELECT type FROM sick WHERE n > 5 UNION ALL SELECT type FROM sick)",
    ],
)
def test_a_count_is_no_value_of_a_person(sick, question):
    """Each person has n = 1, so the answer to such a question would not be what its SQL means."""
    spent = sick.budget.spent
    with pytest.raises(UnsupportedSyntax, match="1 for each person") as refusal:
        sick.ask(question, epsilon=1)
    assert "HAVING SUM(n) > 5" in refusal.value.hint
    assert sick.budget.spent == spent


def test_a_refusal_says_where(sick):
    with pytest.raises(UnsupportedSyntax, match="n at 1:66 is 1 for each person"):
        sick.ask("SELECT SUM(n) AS s FROM sick WHERE ward = 1 AND type = 'flu' AND n > 5", epsilon=1)


def test_questions_in_python_are_the_same(sick):
    frame = sick.where("ward = 2").group_by("type").agg(s=sf.total("n"), c=sf.count())
    rows = {row["type"]: row for row in frame.ask(epsilon=500).rows}
    assert (rows["gout"]["s"], rows["gout"]["c"], rows["flu"]["s"]) == (40, 40, 0)


def test_tables_of_rows_are_explained_as_before():
    rows = sf.protect(DATA, name="sick", unit=sf.ROW, columns=COLUMNS, budget=sf.Budget(epsilon=9))
    assert "Privacy unit" not in rows.ask("SELECT COUNT(*) AS s FROM sick", epsilon=1).explain()


def test_a_diagnosis_does_not_pay_for_the_count(sick):
    assert list(sick.diagnose("SELECT SUM(n) AS s, AVG(days) AS d FROM sick", epsilon=10).at_bounds) == ["days"]
    with pytest.raises(InvalidParameter, match="count column"):
        sick.find_bounds("n", epsilon=1)


def test_replace_one_moves_a_person():
    fixed = sf.protect(
        DATA, name="sick", unit=sf.COUNTS("n"), columns=COLUMNS, budget=sf.Budget(epsilon=10**4),
        neighbours="replace-one", rows=859,
    )  # fmt: skip
    answer = fixed.ask("SELECT type, SUM(n) AS s FROM sick GROUP BY type", epsilon=500)
    assert [row["s"] for row in answer.rows] == [812, 40, 7]
    assert "at most 2, summed over all groups" in answer.explain()
    assert fixed.ask("SELECT SUM(n) AS s FROM sick", epsilon=500).rows == [{"s": 859}]
