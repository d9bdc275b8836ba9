"""Comparisons that the declarations decide give a warning in the preview, the answer, the terminal and the JSON."""

import difflib
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.catalog.names import is_like
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.query.bind import bind
from sfumato.query.parse import parse

COLUMNS = {
    "city": sf.Category(["Rome", "Oslo", "Lima"]), "ward": sf.Category([1, 2, 5]), "age": sf.Integer(0, 120),
    "pay": sf.Real(0, 900), "job": sf.Text(), "born": sf.Date("1900-01-01", "2025-12-31"), "smoker": sf.Boolean(),
}  # fmt: skip
DATASET = Dataset("t", [Table("t", None, sf.ROW, COLUMNS)], sf.Budget(epsilon=9, delta="1e-5"))


def cautions(condition):
    return bind(parse(f"SELECT COUNT(*) AS n FROM t WHERE {condition}"), DATASET).cautions


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("city = 'Roma'", "'Roma' at 1:35 is not among the declared values 'Rome', 'Oslo', 'Lima': no row has it. "
                          "Did you mean 'Rome'?"),
        ("'Roma' = city", "no row has it"), ("city IN ('Rome', 'Paris')", "'Paris' at 1:35 is not among"),
        ("city NOT IN ('Rome', 'Paris')", "'Paris'"), ("city <> 'rome'", "differs from every value that is not NULL"),
        ("NOT city = 'ROME'", "'ROME'"), ("city LIKE 'P%'", "pattern 'P%' at 1:35 matches none of the declared values"),
        ("city NOT LIKE '%x%'", "matches none"), ("age > 200", "'> 200' at 1:35 is true for no row"),
        ("age > 120", "true for no row"), ("200 < age", "true for no row"), ("age < 0", "true for no row"),
        ("pay < 1000", "true for every value that is not NULL: values are clamped to the declared bounds, 0 to 900"),
        ("age = 30.5", "30.5"), ("age = 121", "no row has it"), ("age BETWEEN 130 AND 140", "true for no row"),
        ("ward = 3", "3 at 1:35 is not among the declared values 1, 2, 5"), ("pay = 901", "901"),
        ("born > DATE '2030-01-01'", "true for no row"), ("born = '1800-01-01'", "no row has it"),
        ("YEAR(born) = 2050", "2050"), ("FLOOR(age / 10) = 13", "13"), ("age + 1 > 300", "true for no row"),
        ("CASE WHEN city = 'Roma' THEN 1 ELSE 0 END = 1", "'Roma'"), ("age > 0.1 + 200", "200.1"),
        ("COALESCE(city, 'none') = 'None'", "'None'"),
    ],
)  # fmt: skip
def test_what_no_declared_value_can_be_is_told(condition, told):
    assert any(told in caution for caution in cautions(condition)), cautions(condition)


@pytest.mark.parametrize(
    "condition",
    ["city = 'Rome'", "city IN ('Rome', 'Oslo')", "city LIKE 'R%'", "age >= 0", "age <= 120", "age > 119", "ward = 5",
     "ward = 5.0", "age BETWEEN 0 AND 120", "job = 'Roma'", "job LIKE 'x%'", "pay < 900", "smoker", "smoker = TRUE",
     "born >= DATE '1900-01-01'", "age = 30", "city IS NULL", "age < pay", "COALESCE(city, 'none') = 'none'",
     "born BETWEEN '1950-01-01' AND '2000-01-01'", "0.1 + 0.2 = 0.3"],
)  # fmt: skip
def test_what_may_be_is_not(condition):
    """Negative control."""
    assert cautions(condition) == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(CASE WHEN city = 'Roma' THEN 1 ELSE 0 END) AS n FROM t",
        "SELECT city, COUNT(*) AS n FROM t GROUP BY city HAVING city <> 'Roma'",
        "SELECT CASE WHEN city = 'Roma' THEN 'a' ELSE 'b' END AS k, COUNT(*) AS n FROM t GROUP BY 1",
        "SELECT COUNT(*) AS n FROM (SELECT city AS town FROM t) q WHERE town = 'Roma'",
        "WITH q AS (SELECT age FROM t WHERE city = 'Roma') SELECT AVG(age) AS a FROM q",
        "SELECT AVG(city = 'Roma') AS share FROM t",
    ],
)
def test_wherever_the_comparison_stands(sql):
    found = bind(parse(sql), DATASET).cautions
    assert len(found) == 1
    assert "'Roma'" in found[0]


def test_a_long_list_is_told_in_part():
    values = ", ".join(f"'x{index}'" for index in range(100))
    assert len(cautions(f"city IN ({values})")) == 20


def test_long_lists_and_long_patterns_take_no_long_look(monkeypatch):
    """However many values are declared and compared, spellings are compared for a few."""
    looked = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda *given: looked.append(given) or [])
    many = Table("t", None, sf.ROW, {"code": sf.Category([f"c{index}" for index in range(9_000)])})
    dataset = Dataset("t", [many], sf.Budget(epsilon=9))
    values = ", ".join(f"'x{index}'" for index in range(900))
    sql = f"SELECT COUNT(*) AS n FROM t WHERE code IN ({values}) OR code LIKE '%c%c%c%c%c'"
    assert len(bind(parse(sql), dataset).cautions) == 20
    assert len(looked) == 20


@given(st.text("ab\n%_x", max_size=8), st.text("ab%_\n", max_size=8))
@settings(max_examples=500)
def test_like_is_that_of_regular_expressions(text, pattern):
    wanted = "".join({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern)
    assert is_like(text, pattern) == (re.fullmatch(wanted, text, re.DOTALL) is not None)


@pytest.fixture
def without_noise(monkeypatch):
    monkeypatch.setattr(LaplaceNoise, "draw", lambda self, size, entropy: np.zeros(size, np.int64))


@pytest.fixture(scope="module")
def people():
    rows = {"city": ["Rome"] * 30 + ["Oslo"] * 2, "age": [40] * 32, "job": [f"j{index}" for index in range(32)]}
    columns = {name: COLUMNS[name] for name in rows}
    budget = sf.Budget(epsilon=100, delta="1e-5")
    return sf.protect(pd.DataFrame(rows), name="t", unit=sf.ROW, columns=columns, budget=budget)


def test_preview_answer_and_explanation_say_so(people):
    sql = "SELECT COUNT(*) AS n FROM t WHERE city = 'Roma'"
    preview, answer = people.preview(sql, epsilon=1), people.ask(sql, epsilon=1)
    assert preview.warnings == answer.warnings == people.ask(sql, epsilon=1).warnings  # stored, too
    assert "Did you mean 'Rome'?" in answer.warnings[0]
    assert f"Warning: {answer.warnings[0]}" in answer.explain()
    assert f"Warning: {answer.warnings[0]}" in preview.explain()
    assert answer.to_dict()["warnings"] == list(answer.warnings)
    assert "Roma" in answer._repr_html_()
    assert people.ask("SELECT COUNT(*) AS n FROM t", epsilon=1).warnings == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM t WHERE pay / age > 1",
        "SELECT COUNT(pay / (age - 18)) AS n FROM t",
        "SELECT COUNT(*) AS n FROM (SELECT pay / age AS r FROM t) q WHERE r > 1",
        "SELECT ward2, COUNT(*) / ward2 AS r FROM t GROUP BY ward2",
    ],
)
def test_a_divisor_whose_declaration_contains_zero_is_told(sql):
    columns = COLUMNS | {"ward2": sf.Category([0, 1])}
    dataset = Dataset("t", [Table("t", None, sf.ROW, columns)], sf.Budget(epsilon=9))
    (caution,) = bind(parse(sql), dataset).cautions
    assert "The divisor at 1:" in caution
    assert "may be 0: it is within the declared" in caution
    assert "A division by 0 gives NULL" in caution


@pytest.mark.parametrize("divisor", ["(age + 1)", "2", "(-age - 1)", "ward", "sides"])
def test_a_divisor_that_cannot_be_zero_is_not(divisor):
    """Negative control. The values of `sides` are -1 and 1: its bounds contain 0, but no value is 0."""
    columns = COLUMNS | {"sides": sf.Category([-1, 1])}
    dataset = Dataset("t", [Table("t", None, sf.ROW, columns)], sf.Budget(epsilon=9))
    assert bind(parse(f"SELECT COUNT(*) AS n FROM t WHERE pay / {divisor} < pay"), dataset).cautions == ()


def test_preview_and_answer_warn_of_a_divisor_that_may_be_zero(people):
    sql = "SELECT COUNT(*) AS n FROM t WHERE 100 / age > 2"
    preview, answer = people.preview(sql, epsilon=1), people.ask(sql, epsilon=1)
    assert preview.warnings == answer.warnings
    assert "may be 0" in answer.warnings[0]


@pytest.mark.parametrize("divisor", ["SUM(age)", "AVG(age)"])
def test_a_ratio_over_a_sum_near_zero_is_flagged(people, without_noise, divisor):
    """Nobody in Lima: the sum is 0. The control: with a large epsilon, Rome's sum is far from 0."""
    near = people.ask(f"SELECT COUNT(*) / {divisor} AS r FROM t WHERE city = 'Lima'", epsilon=1)
    assert any("divisor is not further from zero than its margin" in warning for warning in near.warnings)
    far = people.ask(f"SELECT COUNT(*) / {divisor} AS r FROM t WHERE city = 'Rome'", epsilon=20)
    assert far.warnings == ()


def test_a_mean_of_hardly_any_rows_is_flagged(people, without_noise):
    """The rule: the noisy number of rows is at most its own margin. The control: Rome's thirty are not flagged."""
    answer = people.ask("SELECT city, AVG(age) AS a, COUNT(*) AS n FROM t GROUP BY city", epsilon=1)
    (warning,) = answer.warnings
    assert warning.startswith("a for ")
    assert "Lima" in warning.split(":")[0]
    assert "Rome" not in warning
    ratio = people.ask("SELECT city, SUM(age) / COUNT(*) AS r FROM t WHERE age > 1 GROUP BY city", epsilon=1)
    assert any(warning.startswith("r for ") and "Lima" in warning for warning in ratio.warnings)
    alone = people.ask("SELECT STDDEV(age) AS d FROM t WHERE city = 'Lima'", epsilon=1)
    assert [warning.split(":")[0] for warning in alone.warnings] == ["d"]


def test_means_of_many_rows_are_not_flagged(people, without_noise):
    """Negative control."""
    assert people.ask("SELECT AVG(age) AS a FROM t", epsilon=20).warnings == ()
    assert people.ask("SELECT COUNT(*) AS n FROM t WHERE city = 'Lima'", epsilon=1).warnings == ()


def test_that_no_key_passed_is_said_with_the_threshold(people, without_noise):
    sql = "SELECT job, COUNT(*) AS n FROM t GROUP BY job"
    answer = people.ask(sql, epsilon=1, delta="1e-6")
    assert answer.rows == []
    (warning,) = answer.warnings
    threshold = sf.ThresholdedKeys(1, "1e-6").threshold
    assert warning.startswith("No undeclared key reached the threshold.")
    assert f"is shown if its noisy number of people is at least {threshold} (δ" in warning


def test_keys_that_passed_are_not_warned_of(without_noise):
    """Negative control. A row that HAVING leaves out does not count as a key below the threshold."""
    budget = sf.Budget(epsilon=100, delta="1e-5")
    rows = pd.DataFrame({"job": ["smith"] * 500})
    jobs = sf.protect(rows, name="t", unit=sf.ROW, columns={"job": sf.Text()}, budget=budget)
    sql = "SELECT job, COUNT(*) AS n FROM t GROUP BY job"
    assert jobs.ask(sql, epsilon=1, delta="1e-6").warnings == ()
    assert jobs.ask(sql + " HAVING COUNT(*) > 9999", epsilon=2, delta="1e-6").warnings == ()
