"""Post-processing follows SQL: HAVING with three truth values, ORDER BY with NULLs, ROUND."""

from decimal import ROUND_HALF_UP, Decimal

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.answers.output_values import compute_column, round_half_away, select_cells
from sfumato.catalog.dataset import Dataset, Table
from sfumato.query.bind import bind
from sfumato.query.parse import parse

TABLE = Table("t", None, sf.ROW, {"k": sf.Integer(0, 7), "x": sf.Real(-9, 9), "b": sf.Boolean()})
DATASET = Dataset("t", [TABLE], sf.Budget(epsilon=1))
COUNTS = np.array([5.0, 0.0, 3.0, 0.0, 8.0, 1.0, 0.0, 2.0])
SUMS = np.array([2.5, 1.0, -3.0, 0.0, 8.0, 0.5, -1.0, 2.0])
SELECT = "SELECT k, COUNT(*) AS n, SUM(x) AS s, SUM(x) / COUNT(*) AS r FROM t GROUP BY k"


@pytest.fixture(scope="module")
def plain():
    """The released values as a table; x / 0 is NULL, as in an answer."""
    made = duckdb.connect()
    frame = pd.DataFrame({"k": np.arange(8), "n": COUNTS, "s": SUMS})
    made.execute("CREATE TABLE t AS SELECT k, n, s, s / NULLIF(n, 0) AS r FROM frame")
    del frame
    return made


def cells_of(after):
    """The keys of the values above that are shown, in order."""
    query = bind(parse(SELECT + after), DATASET)
    values = {"COUNT": COUNTS, "SUM": SUMS}
    aggregates = [values[aggregate.function] for aggregate in query.aggregates]
    keys = [np.arange(8).astype(object)]
    return select_cells(query, aggregates, keys, 8)


def expected(plain, condition="TRUE", order="k"):
    return [row[0] for row in plain.execute(f"SELECT k FROM t WHERE {condition} ORDER BY {order}").fetchall()]


CONDITIONS = [
    "r > 0", "NOT r > 0", "r > 0 OR r <= 0", "NOT (r > 0 AND n > 0)", "r <> 1", "NOT r = 1", "r IN (1, 0.5)",
    "r NOT IN (1, 0.5)", "r BETWEEN 0 AND 1", "r NOT BETWEEN 0 AND 1", "r IS NULL", "r IS NOT NULL",
    "r > 0 OR n = 0", "r > 0 AND n = 0", "n = 0 OR NOT r > 0", "NOT (r > 0 OR n > 2)", "r IN (1, r)", "k IN (1, 2, 3)",
    "NOT (r IS NULL) AND n > 1", "-r < 0", "ABS(r) >= 0", "ROUND(r, 1) > 0.4", "r + 1 > 1", "s / (n - n) IS NULL",
]  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_having_keeps_what_is_true_and_neither_what_is_false_nor_null(condition, plain):
    in_sql = condition.replace("s / (n - n)", "s / NULLIF(n - n, 0)")
    assert cells_of(f" HAVING {condition}") == expected(plain, in_sql)


def test_two_truth_values_would_keep_other_groups():
    """Negative control: with NaN as a plain double, NOT r > 0 would keep the groups where r has no value."""
    ratio = np.divide(SUMS, COUNTS, out=np.full(8, np.nan), where=COUNTS > 0)
    assert np.flatnonzero(~(ratio > 0)).tolist() != cells_of(" HAVING NOT r > 0")


@pytest.mark.parametrize(
    "order",
    ["r, k", "r DESC, k", "r ASC NULLS FIRST, k", "r DESC NULLS FIRST, k DESC", "r NULLS LAST, k", "r IS NULL, k DESC",
     "n DESC, r, k", "n, r DESC, k DESC", "s, k", "-r, k"],
)  # fmt: skip
def test_order_by_places_nulls_as_plain_sql_does(order, plain):
    assert cells_of(f" ORDER BY {order}") == expected(plain, order=order)


def test_order_by_number_of_the_column(plain):
    assert cells_of(" ORDER BY 4 DESC NULLS FIRST, 1") == expected(plain, order="r DESC NULLS FIRST, k")


def test_limit_counts_what_is_there_first(plain):
    assert cells_of(" ORDER BY r DESC, k LIMIT 4") == expected(plain, order="r DESC, k")[:4]
    assert cells_of(" HAVING r IS NULL ORDER BY k DESC LIMIT 2") == [6, 3]


def test_a_condition_in_the_result_is_true_false_or_null():
    query = bind(parse("SELECT k, COUNT(*) AS n, SUM(x) / COUNT(*) > 0.5 AS big, COUNT(*) > 2 AS many, b "
                       "FROM t GROUP BY k, b"), DATASET)  # fmt: skip
    found = {name: compute_column(post, [COUNTS, SUMS], [np.arange(8), np.arange(8)]) for name, post in query.columns}
    assert found["big"].tolist() == [False, None, False, None, True, False, None, True]
    assert found["many"].tolist() == [True, False, True, False, True, False, False, False]


@pytest.mark.parametrize(
    ("value", "digits", "wanted"),
    [
        (0.5, 0, 1.0), (1.5, 0, 2.0), (2.5, 0, 3.0), (-2.5, 0, -3.0), (2.675, 2, 2.68), (1.005, 2, 1.01),
        (-1.005, 2, -1.01), (25.0, -1, 30.0), (-25.0, -1, -30.0), (24.999, -1, 20.0), (1e300, 2, 1e300),
        (0.49999999999999994, 0, 0.0), (4503599627370497.5, 0, 4503599627370498.0),
        (123456789012.34565, 4, 123456789012.3457),
        (-0.4, 0, 0.0), (1234567.0, -7, 0.0), (5_000_000.0, -7, 10_000_000.0),
        (1e-20, 15, 0.0), (0.0, 3, 0.0),
        (9.5, 0, 10.0), (1e22, -15, 1e22), (5e-324, 0, 0.0),
    ],
)  # fmt: skip
def test_round_is_half_away_from_zero(value, digits, wanted):
    (found,) = round_half_away(np.array([value]), digits)
    assert repr(float(found)) == repr(wanted)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-15, 15))
@settings(max_examples=2000)
def test_round_equals_decimals(value, digits):
    near = [value, float(f"{value:.3g}"), float(f"{value:.6f}") if abs(value) < 1e9 else value]
    for real, found in zip(near, round_half_away(np.array(near), digits).tolist(), strict=True):
        with_digits = Decimal(repr(real)).scaleb(digits).to_integral_value(ROUND_HALF_UP) if abs(real) < 1e25 else None
        if with_digits is not None:
            assert found == float(with_digits.scaleb(-digits)), (real, digits)


def test_rounding_half_to_even_would_differ():
    """Negative control."""
    assert np.round(2.5) != round_half_away(np.array([2.5]), 0)[0]
    assert np.floor(1.005 * 100 + 0.5) / 100 != round_half_away(np.array([1.005]), 2)[0]


def test_what_has_no_value_stays_without_one():
    assert np.isnan(round_half_away(np.array([np.nan]), 2)[0])
