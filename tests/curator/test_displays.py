"""What a prompt and a notebook show of the objects that users hold. None of it derives from data without a release."""

import math
import re
from decimal import Context, Decimal

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from protected import protect

import sfumato as sf
from sfumato.answers.shown_values import MOST_TEXT_ROWS, format_value, write_rows
from sfumato.errors import BudgetExceeded, SfumatoError, UnknownName
from sfumato.kernel.exact import write_plain
from sfumato.lab.auditing.verdict_card import make_verdict_card
from sfumato.shown_amounts import round_amounts, write_amounts

BY_CITY = "SELECT city, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY city"


@pytest.fixture(scope="module")
def people():
    with protect(sf.Budget(epsilon=10)) as curator:
        yield curator


def show_both(thing):
    """The text and the HTML. HTML has no address to fetch from and no script."""
    made = thing._repr_html_()
    assert "http" not in made
    assert "<script" not in made
    assert "object at 0x" not in repr(thing)
    return repr(thing), re.sub(r"<style>.*?</style>", "", made, flags=re.DOTALL)


def test_a_curator_shows_its_tables_and_budget(people):
    text, made = show_both(people)
    assert text.startswith("<Curator of people: people; ε = ")
    assert "left of ε = 10>" in text
    assert "sf-gauge" in made
    assert all(name in made for name in people.columns)


def test_a_closed_curator_shows_that(people):
    with protect(sf.Budget(epsilon=1)) as other:
        pass
    assert "closed" in repr(other)
    assert "It is closed." in other._repr_html_()


def test_a_budget_is_a_gauge():
    with protect(sf.Budget(epsilon=4, delta="1e-6")) as people:
        people.ask("SELECT COUNT(*) AS n FROM people", 1)
        text, made = show_both(people.budget)
        assert text.splitlines()[0] == "[######..................] ε = 1 of 4 is spent, 3 is left"
        assert text.splitlines()[1].startswith("[........................] δ = 0 of 0.000001")
        assert "width:25.0%" in made
        assert repr(people.budget.limit) == "Cost(epsilon=4, delta=0.000001)"


@pytest.mark.parametrize("budget", [sf.Budget(rho=1, accounting="zcdp"), sf.Budget(mu=1, accounting="gdp")], ids=str)
def test_every_accounting_has_a_gauge(budget):
    with protect(budget) as people:
        assert " is spent, " in repr(people.budget)


def test_tables_and_columns_are_listed(people):
    assert list(people.tables) == ["people"]
    assert len(people.tables) == 1
    assert people.tables._ipython_key_completions_() == ["people"]
    assert people.columns["AGE"] == sf.Integer(0, 120, nullable=False)
    assert list(people.tables["people"]) == list(people.columns) == people.columns._ipython_key_completions_()
    assert "0 to 120" in repr(people.columns)
    with pytest.raises(UnknownName, match="Did you mean age"):
        people.columns["agee"]
    show_both(people.tables)
    show_both(people.columns)


def test_columns_of_several_tables_have_the_name_of_their_table():
    from sfumato.answering.declared_view import DeclaredColumns
    from sfumato.catalog.dataset import Table

    tables = [Table(name, None, sf.ROW, {"age": sf.Integer(0, 9)}) for name in ("a", "b")]
    assert list(DeclaredColumns(tuple(tables))) == ["a.age", "b.age"]


def test_a_preview_shows_margins_and_cost(people):
    text, made = show_both(people.preview(BY_CITY, 0.5))
    assert re.search(r"^n +±[0-9.]+", text, re.MULTILINE)
    assert "unknown" in text
    assert "private count" in text
    assert "Cost: ε = 0.5, which fits the budget. Nothing was spent." in text
    assert "sf-flag" not in made
    assert "sf-flag" in show_both(people.preview(BY_CITY, 50))[1]


def test_a_question_shows_its_sql_and_that_nothing_is_asked(people):
    question = people.where("age > 30").group_by("city").agg(n=sf.count())
    text, made = show_both(question)
    assert question.sql() in text
    assert "Nothing is asked yet" in text
    assert "age &gt; 30" in made
    assert repr(people.where("age > 30").group_by("city")).startswith(
        "<Rows of people, where age > 30, grouped by city"
    )


def test_a_workload_shows_its_split(people):
    workload = people.plan(["SELECT COUNT(*) AS n FROM people", "SELECT SUM(age) AS s FROM people"], epsilon=1)
    text, made = show_both(workload)
    assert text == str(workload)
    assert "ε = 1 in all" in made


@pytest.mark.parametrize(
    ("value", "ends", "shown"),
    [
        (20.1, (20.0, 20.1), "20.1 [20.0, 20.1]"),  # ROUND(x, 1): no digit that it does not have
        (20.0, (19.0, 21.0), "20 [19, 21]"),
        (20.12345, (20.0, 20.2), "20.123 [20.000, 20.200]"),
        (148.0, (145.4979, 150.4698), "148.0 [145.5, 150.5]"),
        (7, (1.5, 9.25), "7 [2, 9]"),
        (0.5, (-math.inf, math.inf), "0 [-inf, inf]"),
    ],
)
def test_a_value_shows_the_digits_that_it_has(value, ends, shown):
    assert format_value(value, ends) == shown


def test_an_answer_is_a_table_with_intervals(people):
    answer = people.ask(BY_CITY, 1)
    text, made = show_both(answer)
    assert text.splitlines()[0].split() == ["city", "n", "age"]
    for row, ends in zip(answer.rows, answer.intervals, strict=True):
        assert format_value(row["n"], ends["n"]) in text
    assert "Cost: ε = 1." in text
    assert made.count("sf-interval") == 2 * len(answer.rows)


def test_a_widened_interval_is_noted(people):
    assert "Widened" not in repr(people.ask(BY_CITY, 1))
    widened = people.ask(f"{BY_CITY} ORDER BY n DESC", 1)
    assert "Widened, because noise decides which rows are shown or first: n" in repr(widened)


def test_a_warning_is_flagged(people):
    answer = people.ask("SELECT COUNT(*) AS n FROM people WHERE age > 500", 0.1)
    assert answer.warnings
    text, made = show_both(answer)
    assert "Warning: " in text
    assert "sf-flag" in made


def test_many_rows_are_counted_not_dropped_silently():
    rows = [{"n": number} for number in range(MOST_TEXT_ROWS + 7)]
    shown = write_rows(("n",), rows, [{}] * len(rows), ())
    assert len(shown.splitlines()) == MOST_TEXT_ROWS + 2
    assert shown.endswith("… and 7 more rows: see .rows or .to_pandas()")


def test_html_is_escaped():
    frame = pd.DataFrame({"city": ["<b>Rome</b>"] * 50})
    columns = {"city": sf.Category(["<b>Rome</b>"])}
    with sf.protect(frame, name="t", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=9)) as curator:
        answer = curator.ask("SELECT city, COUNT(*) AS n FROM t GROUP BY city", 1)
        for thing in (answer, curator, curator.columns, curator.where("city = '<b>Rome</b>'").agg(n=sf.count())):
            assert "<b>" not in thing._repr_html_()


def test_what_was_bought_shows_as_words(people):
    for thing in (people.diagnose(BY_CITY, 0.1), people.find_bounds("age", 0.1), people.find_cap(epsilon=0.1)):
        assert repr(thing) == str(thing)
        assert "Decimal" not in repr(thing)
    watch = people.watch("SELECT COUNT(*) AS n FROM people", above=10_000_000, epsilon=0.1)
    assert repr(watch) == "<Watch, paid with ε = 0.1: every answer was False so far>"


def test_an_audit_flags_a_violation():
    assert "sf-flag" in make_verdict_card("Verdict: violated.\nMore.", "violated")
    assert "sf-flag" not in make_verdict_card("Verdict: consistent.\nMore.", "consistent").replace(".sf-flag{", "")


def test_an_error_is_three_lines_in_a_notebook(people):
    with pytest.raises(SfumatoError) as caught:
        people.ask("SELECT COUNT(*) FROM peeple", 1)
    lines = caught.value._render_traceback_()
    assert lines[0].startswith("UnknownName: There is no table 'peeple'")
    assert lines[1].startswith("Did you mean people?")
    assert re.fullmatch(r'At line \d+: people\.ask\("SELECT COUNT\(\*\) FROM peeple", 1\)', lines[2])
    assert len(lines) == 3
    assert BudgetExceeded("a", "b", 1, 2)._render_traceback_() == ["BudgetExceeded: a", "b"]


@given(st.integers(0, 10**40), st.integers(-60, 5))
def test_a_shown_amount_is_on_the_safe_side(digits, exponent):
    exact = Decimal(digits).scaleb(exponent, Context(prec=80))
    for rounding in ("up", "down"):
        shown, rounded = round_amounts({"rho": write_plain(exact)}, rounding)
        value = Decimal(shown["rho"])
        assert value >= exact if rounding == "up" else value <= exact
        assert abs(value - exact) <= exact * Decimal("1e-5")
        assert rounded == (value != exact)
        words = write_amounts({"rho": write_plain(exact)}, rounding)
        assert words == f"rho = {shown['rho']}" + (f" (rounded {rounding})" if rounded else "")


def test_amounts_of_ten_digits_stay_as_they_are():
    amounts = {"epsilon": "1234.567891", "delta": "0"}
    assert round_amounts(amounts, "up") == (amounts, False)
    assert write_amounts(amounts) == "ε = 1234.567891"
    assert write_amounts({"rho": "0.12345678901", "delta": "1e-9"}) == "rho = 0.123457, δ = 1e-9 (rounded up)"
    assert write_amounts({"rho": "0.12345678901"}, "down") == "rho = 0.123456 (rounded down)"
    assert write_amounts(None) == ""


def test_a_cost_under_zcdp_is_short_and_says_that_it_is_rounded():
    with protect(sf.Budget(rho=1, accounting="zcdp")) as people:
        answer = people.ask("SELECT COUNT(*) AS n FROM people", 0.5)
        assert len(str(answer.cost.rho)) > 20
        assert answer.price() == "Cost: rho = 0.12246 (rounded up). Left: rho = 0.87754 (rounded down)."
        assert answer.to_dict()["cost"]["rho"] == str(answer.cost.rho)  # all digits
        assert repr(people.budget).endswith("rho = 0.12246 of 1 is spent, 0.87754 is left (rounded)")
        assert "rho = 0.87754 (rounded down) left of rho = 1>" in repr(people)
        assert "rho = 0.12246 (rounded up)" in repr(people.preview("SELECT SUM(age) AS s FROM people", 0.5))
        with pytest.raises(BudgetExceeded) as caught:
            people.ask("SELECT SUM(age) AS s FROM people", 3)
        said = str(caught.value)
        assert "rho = 0.87754, delta = 0 (rounded down) is left" in said
        assert not re.search(r"0\.\d{11}", said)
