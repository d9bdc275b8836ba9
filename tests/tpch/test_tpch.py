"""TPC-H with the customer as the privacy unit: true answers lie inside the intervals as often as stated."""

import re
from collections import Counter
from itertools import count

import pytest
from scipy import stats
from tpch_questions import DOCUMENT, QUESTIONS

from sfumato.curator import Curator
from sfumato.ledger.ledger import Ledger, Limit

FALSE_ALARM = 1e-6
CONFIDENCE = "0.95"
CERTAIN = "0.9999999"
REPEATED = 40
EPSILONS = {1: 20, 4: 1, 5: 1, 6: 2, 12: 1, 13: 1, 14: 20}
LIMITS = {
    "SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM orders GROUP BY o_custkey)": 40,
    "SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM orders JOIN lineitem USING (o_orderkey) GROUP BY o_custkey)": 160,
    "SELECT MAX(l_extendedprice) FROM lineitem": 105_000,
    "SELECT MAX(l_discount) FROM lineitem": 0.1,
    "SELECT MAX(l_tax) FROM lineitem": 0.08,
    "SELECT MAX(l_quantity) FROM lineitem": 50,
    "SELECT MAX(l_partkey) FROM lineitem": 2000,
    "SELECT MAX(l_suppkey) FROM lineitem": 100,
}
WEIGHED = """
WITH o AS (SELECT *, LEAST(1, 10 / COUNT(*) OVER (PARTITION BY o_custkey)) AS w FROM orders),
l AS (
    SELECT lineitem.* EXCLUDE (l_extendedprice), LEAST(l_extendedprice, 50000) AS l_extendedprice, o_orderpriority,
           LEAST(1, 40 / COUNT(*) OVER (PARTITION BY o_custkey)) AS w, o.w AS w_of_order
    FROM lineitem JOIN o USING (o_orderkey)
)
"""
BOUNDED = {  # what is true of the bounded and clamped rows, by plain SQL that knows nothing of plans
    1: "SELECT l_returnflag, l_linestatus, SUM(w * l_quantity) AS sum_qty, SUM(w * l_extendedprice) AS sum_base_price, "
    "SUM(w * l_quantity) / SUM(w) AS avg_qty, SUM(w) AS count_order FROM l WHERE l_shipdate <= DATE '1998-09-02' "
    "GROUP BY ALL",
    6: "SELECT SUM(w * l_extendedprice * l_discount) AS revenue FROM l WHERE l_shipdate >= DATE '1994-01-01' AND "
    "l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    12: "SELECT l_shipmode, CASE WHEN o_orderpriority < '3' THEN 'high' ELSE 'low' END AS priority, "
    "SUM(w * w_of_order) AS lines FROM l WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND "
    "l_shipdate < l_commitdate AND YEAR(l_receiptdate) = 1994 GROUP BY ALL",
    13: "SELECT LEAST(n, 10) AS orders, COUNT(*) AS customers FROM (SELECT COUNT(o_custkey) AS n FROM customer "
    "LEFT JOIN o ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey) GROUP BY ALL",
}  # fmt: skip
fresh = count(1)


def rows_of(plain, sql):
    found = plain.execute(sql)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def coverage(curator, sql, true, epsilon, repeated, confidence=CONFIDENCE, narrowed=1.0):
    """For each column, how many intervals held the true value, and of how many; intervals narrowed as is said."""
    held, asked = Counter(), Counter()
    books = Ledger.create(None, curator.dataset.population, Limit(curator.dataset.budget.loss), {})
    curator = Curator(curator.dataset, curator.engine, books, curator.versions)  # nothing was answered before
    for _ in range(repeated):
        larger = f"{epsilon}.{next(fresh):09}"  # each time, so that no stored answer is as good
        answer = curator.ask(sql, epsilon=larger, confidence=confidence)
        assert not answer.cached
        there = {tuple(row[key] for key in answer.keys): row for row in true}
        for row, ends in zip(answer.rows, answer.intervals, strict=True):
            wanted = there.get(tuple(row[key] for key in answer.keys))
            for name, (low, high) in ends.items():
                value = wanted.get(name) if wanted is not None else None if name.startswith("avg") else 0
                if value is not None:  # else nothing is there to take the mean of
                    asked[name] += 1
                    if narrowed != 1.0:  # an interval without ends has no middle
                        middle, half = (low + high) / 2, narrowed * (high - low) / 2
                        low, high = middle - half, middle + half  # noqa: PLW2901
                    held[name] += low <= float(value) <= high
    return {name: (held[name], asked[name]) for name in asked}


def p_values(found):
    return [stats.binomtest(held, asked, float(CONFIDENCE), "less").pvalue for held, asked in found.values()]


def test_the_document_has_all_seven():
    assert sorted(QUESTIONS) == sorted(EPSILONS) == [1, 4, 5, 6, 12, 13, 14]


def test_nothing_is_bounded_or_clamped(plain):
    """The bounds do not change the data, so plain SQL gives the true answer; and they are not much too large."""
    for sql, most in LIMITS.items():
        (found,) = plain.execute(sql).fetchone()
        assert most / 2 < float(found) <= most, sql


@pytest.mark.parametrize("number", QUESTIONS)
def test_true_answers_lie_inside_as_often_as_promised(number, tpch, plain):
    true = rows_of(plain, QUESTIONS[number])
    found = coverage(tpch, QUESTIONS[number], true, EPSILONS[number], REPEATED)
    assert min(p_values(found)) > FALSE_ALARM, found


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 50])
@pytest.mark.parametrize("number", QUESTIONS)
def test_true_answers_lie_inside_as_often_as_promised_ten_times_as_often_asked(number, epsilon, tpch, plain):
    found = coverage(tpch, QUESTIONS[number], rows_of(plain, QUESTIONS[number]), epsilon, 10 * REPEATED)
    assert min(p_values(found)) > FALSE_ALARM, found


@pytest.mark.parametrize("number", [1, 5, 13])
def test_intervals_half_as_wide_are_noticed(number, tpch, plain):
    """Negative control."""
    true = rows_of(plain, QUESTIONS[number])
    found = coverage(tpch, QUESTIONS[number], true, EPSILONS[number], REPEATED, narrowed=0.5)
    assert max(p_values(found)) < FALSE_ALARM, found


@pytest.mark.parametrize("number", BOUNDED)
def test_bounded_rows_are_what_the_intervals_are_about(number, tight, plain):
    """With tight bounds, intervals contain the answer for the bounded rows. Negative control: not that for all rows."""
    true = rows_of(plain, WEIGHED + BOUNDED[number])
    columns = {*true[0]}
    found = coverage(tight, QUESTIONS[number], true, 1_000, REPEATED)
    assert min(p_values({name: found[name] for name in found if name in columns})) > FALSE_ALARM, found
    everything = rows_of(plain, QUESTIONS[number])
    for truth, inside in ((true, True), (everything, False)):
        found = coverage(tight, QUESTIONS[number], truth, 1_000, 1, CERTAIN)
        assert all(held == asked for name, (held, asked) in found.items() if name in columns) is inside, found


@pytest.mark.parametrize(
    ("number", "column", "margin", "value"), re.findall(r"\| (\d+) \| (\w+) \| ([\d.,]+) \| ([\d.,]+) \|", DOCUMENT)
)
def test_the_table_in_the_document_is_true(number, column, margin, value, tpch, plain):
    sql = QUESTIONS[int(number)]
    assert tpch.preview(sql, epsilon=1).margins[column] == pytest.approx(float(margin.replace(",", "")), rel=5e-3)
    assert float(value.replace(",", "")) in {float(row[column]) for row in rows_of(plain, sql)}
