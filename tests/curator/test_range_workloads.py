"""Workloads of ranges of one column: cut into pieces, measured together, and answered without bias."""

import datetime as dt
import random

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.kernel.expressions import Call, Column, ColumnType, Literal
from sfumato.planning.optimal_strategies import find_gaussian_strategy
from sfumato.planning.range_strategies import choose_range_strategy, cut_ranges, meet_range_variances
from sfumato.row_meanings.evaluate import evaluate

AGE = Column("age", ColumnType.INTEGER)
AGES = [None if row % 19 == 0 else (row * 7) % 61 for row in range(1_000)]
DATA = pd.DataFrame(
    {
        "age": pd.array(AGES, dtype="Int64"),
        "day": [dt.date(2024, 1, 1) + dt.timedelta(days=row % 300) for row in range(1_000)],
        "pay": [float(row % 50) for row in range(1_000)],
    }
)
COLUMNS = {"age": sf.Integer(0, 60), "day": sf.Date("2024-01-01", "2024-12-31"), "pay": sf.Real(0, 50)}
BUDGETS = {
    "zcdp": lambda: sf.Budget(epsilon=3_000, delta=1e-6, accounting="zcdp"),
    "gdp": lambda: sf.Budget(epsilon=3_000, delta=1e-6, accounting="gdp"),
    "basic": lambda: sf.Budget(epsilon=100_000),
}
WHERE = {
    "age < 20": lambda age: age < 20,
    "age BETWEEN 10 AND 30": lambda age: 10 <= age <= 30,
    "age >= 18 AND age < 50": lambda age: 18 <= age < 50,
    "NOT age > 40": lambda age: age <= 40,
    "30 < age": lambda age: age > 30,
    "age = 7 OR age >= 55": lambda age: age == 7 or age >= 55,
}
QUESTIONS = [f"SELECT COUNT(*) AS n FROM t WHERE {one}" for one in WHERE]
EXACT = [sum(age is not None and holds(age) for age in AGES) for holds in WHERE.values()]


def protect(accounting="zcdp", columns=COLUMNS):
    return sf.protect(DATA, name="t", unit=sf.ROW, columns=columns, budget=BUDGETS[accounting]())


@pytest.mark.parametrize("accounting", sorted(BUDGETS))
def test_ranges_are_measured_together(accounting):
    with protect(accounting) as table:
        plan = table.plan(QUESTIONS, epsilon=1)
        (group,) = plan.together
        assert group.places == tuple(range(6))
        answers = table.ask_all(plan)
        assert "pieces of the ranges" in answers[0].explain()
        assert sum(answer.cost != answers[-1].cost for answer in answers) == 1  # the first one is counted for all
        assert all(answer.cached for answer in table.ask_all(QUESTIONS, epsilon=1))
        sure = {"epsilon": 500} if accounting == "basic" else {"rho": 100}
        assert [answer.rows[0]["n"] for answer in table.ask_all(QUESTIONS, **sure)] == EXACT
        wanted = [(sql, 20 + place) for place, sql in enumerate(QUESTIONS)]
        cheap = table.plan(wanted)
        for (_, most), margins in zip(wanted, cheap.together[0].margins, strict=True):
            assert margins["n"] <= most
        for answer, (_, most) in zip(table.ask_all(cheap), wanted, strict=True):
            low, high = answer.intervals[0]["n"]
            assert (high - low) / 2 <= most * 1.0001
        assert table.ledger().verify().ok


def test_what_is_no_range_of_one_column_is_asked_one_by_one():
    more = ["SELECT COUNT(*) AS n FROM t", "SELECT COUNT(*) AS n FROM t WHERE age % 2 = 0"]
    with protect() as table:
        assert table.plan([*QUESTIONS[:2], more[0]], rho=1).together == ()  # rows without an age are in the last one
        assert table.plan([QUESTIONS[0], more[1]], rho=1).together == ()
        assert table.plan([QUESTIONS[0], "SELECT COUNT(*) AS n FROM t WHERE pay < 9"], rho=1).together == ()
    known = {**COLUMNS, "age": sf.Integer(0, 60, nullable=False)}
    with protect(columns=known) as table:
        (group,) = table.plan([*QUESTIONS[:2], more[0]], rho=1).together
        assert group.places == (0, 1, 2)


def test_ranges_of_days_and_sums():
    ranges = [f"SELECT SUM(pay) AS s FROM t WHERE day < DATE '2024-0{month}-01'" for month in range(2, 9)]
    with protect() as table:
        plan = table.plan(ranges, rho=200)
        assert len(plan.together) == 1
        for month, answer in zip(range(2, 9), table.ask_all(plan), strict=True):
            exact = sum(pay for day, pay in zip(DATA["day"], DATA["pay"], strict=True) if day < dt.date(2024, month, 1))
            assert answer.rows[0]["s"] == pytest.approx(exact, abs=60)


def make_conditions(draw):
    def compare():
        function, value = draw.choice(["<", "<=", "=", ">=", ">"]), Literal(draw.randint(0, 9))
        return Call(function, (AGE, value) if draw.random() < 0.7 else (value, AGE))

    def combine(depth):
        if not depth or draw.random() < 0.4:
            return compare()
        if draw.random() < 0.2:
            return Call("not", (combine(depth - 1),))
        return Call(draw.choice(["and", "or"]), (combine(depth - 1), combine(depth - 1)))

    return tuple(combine(2) for _ in range(draw.randint(1, 2)))


@pytest.mark.parametrize("seed", range(60))
def test_every_value_is_in_the_piece_that_its_conditions_say(seed):
    """Random conditions: a value counts for a question exactly where the question's own conditions are true."""
    draw = random.Random(seed)
    questions = [make_conditions(draw) for _ in range(4)]
    ranges = cut_ranges(questions)
    if ranges is None:  # fewer than two pieces: all questions are about the same rows, or about none
        wholes = {
            tuple(all(evaluate(one, {"age": age}) is True for one in asked) for asked in questions)
            for age in range(-1, 11)
        }
        assert len(wholes - {(False,) * 4}) < 2
        return
    for age in (None, *range(-1, 11)):
        row = {"age": age}
        piece = evaluate(ranges.key.expression, row)
        for conditions, sums in zip(questions, ranges.sums, strict=True):
            asked = all(evaluate(condition, row) is True for condition in conditions)
            assert asked == (piece is not None and sums[int(piece)] == 1)


def test_pieces_without_whole_numbers_or_days_are_left_out():
    def count_pieces(column, *ends):
        questions = [(Call("<", (column, Literal(end))),) for end in ends]
        return len(cut_ranges(questions).key.values)

    real, day = Column("x", ColumnType.REAL), Column("d", ColumnType.DATE)
    assert count_pieces(AGE, 3, 4, 6) == 3
    assert count_pieces(real, 3, 4, 6) == 3
    within = [(Call(">=", (AGE, Literal(low))), Call("<=", (AGE, Literal(low + 1)))) for low in (3, 4, 5)]
    assert len(cut_ranges(within).key.values) == 4  # 3, 4, 5 and 6
    reals = [tuple(Call(one.function, (real, one.arguments[1])) for one in asked) for asked in within]
    assert len(cut_ranges(reals).key.values) == 5  # there are numbers between 4 and 5, in one range only
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    assert len(cut_ranges([(Call("<=", (day, Literal(one))),) for one in days]).key.values) == 2


@pytest.mark.parametrize("seed", range(4))
def test_the_strategy_is_within_a_percent_of_the_best(seed):
    draw = np.random.default_rng(seed)
    ends = np.sort(draw.choice(50, (20, 2)), axis=1)
    sums = [[int(low <= piece <= high) for piece in range(50)] for low, high in ends.tolist()]
    sums = np.unique(np.array(sums), axis=1).tolist()
    questions = np.array(sums, float)
    found = choose_range_strategy(sums, [1.0] * len(sums), gaussian=True)
    matrix = np.array(found.matrix, float)
    error = (matrix**2).sum(axis=0).max() * (np.array(found.readings) ** 2).sum()
    ridged = questions.T @ questions + 1e-7 * np.eye(questions.shape[1])
    least = find_gaussian_strategy(ridged)[2]
    assert least * 0.999 < error < 1.01 * least < 20 * 20  # one by one: 20 questions with 20 times the variance
    assert np.array(found.readings) @ matrix == pytest.approx(questions)  # without bias


def test_a_smaller_target_gets_a_smaller_variance():
    sums = [[1, 1, 0], [0, 1, 1], [1, 1, 1]]
    for gaussian in (True, False):
        even, uneven = (meet_range_variances(sums, targets, gaussian=gaussian) for targets in ([1, 1, 1], [1, 1, 0.01]))
        assert uneven.weigh((2,))[0].square <= even.weigh((2,))[0].square * 1.0001
