"""Arithmetic with numbers in a question is exact, as with SQL decimals: 0.06 - 0.01 is 0.05."""

import duckdb
import pandas as pd
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.kernel.expressions import Call, Column, Literal
from sfumato.kernel.losses import PureDP
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

VALUES = [hundredths / 100 for hundredths in range(11)] + [0.3, 0.1 + 0.2, 1.1, 3.3, -0.05, 2.0]
COLUMNS = {"d": sf.Real(-10, 10, nullable=False)}
TABLE = Table("t", None, sf.ROW, COLUMNS)
DATASET = Dataset("t", [TABLE], sf.Budget(epsilon=1))


@pytest.fixture(scope="module")
def engine():
    return DuckDBEngine.of_data(TABLE, pd.DataFrame({"d": VALUES}))


def query_of(condition):
    return bind(parse(f"SELECT COUNT(*) AS n FROM t WHERE {condition}"), DATASET)


def literals(expression):
    match expression:
        case Literal(value):
            return [value]
        case Call(_, arguments):
            return [value for argument in arguments for value in literals(argument)]
        case Column():
            return []


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0.06 - 0.01", 0.05), ("0.06 + 0.01", 0.07), ("0.1 + 0.2", 0.3), ("1.1 * 3", 3.3), ("(0.1 + 0.2) * 10", 3.0),
        ("-(0.06 - 0.01)", -0.05), ("- - 0.05", 0.05), ("0.3 / 0.1", 3.0), ("7 / 2", 3.5), ("1 / 3", 1 / 3),
        ("2 * 3", 6), ("1e-2 + 0.06", 0.07), ("ABS(0.01 - 0.06)", 0.05), ("FLOOR(0.3 / 0.1)", 3.0),
        ("CEIL(1.1 * 3 - 3.3)", 0.0), ("9007199254740993 - 9007199254740992", 1), ("-0.0", 0.0),
        ("0.1 * 0.1 * 0.1", 0.001),
    ],
)  # fmt: skip
def test_constants_are_computed_exactly_and_then_rounded_once(written, value):
    for condition in (f"d < {written}", f"d BETWEEN -1 AND {written}", f"d IN (9, {written})", f"{written} > d"):
        assert value in literals(Call("all", query_of(condition).filters)), condition
    (found,) = literals(Call("all", query_of(f"d = {written}").filters))
    assert repr(float(found)) == repr(float(value))


CONDITIONS = [
    "d BETWEEN 0.06 - 0.01 AND 0.06 + 0.01", "d = 0.1 + 0.2", "d IN (0.06 - 0.01, 1.1 * 3)", "d <> 0.06 + 0.01",
    "CASE WHEN d >= 0.06 + 0.01 THEN 0.1 + 0.2 ELSE 1 - 0.7 END = 0.3", "d > -(0.06 - 0.01)", "NOT d < 0.06 + 0.01",
    "COALESCE(d, 0.1 + 0.2) = 0.3", "0.1 + 0.2 = 0.3", "d * (0.1 + 0.2) >= 0.09",
]  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_keep_the_rows_that_plain_sql_keeps(condition, engine):
    query = query_of(condition)
    plan = choose_plan(query, PureDP(1), DATASET, engine.versions).plan
    plain = duckdb.connect()
    plain.execute("CREATE TABLE t (d DOUBLE)")
    plain.executemany("INSERT INTO t VALUES (?)", [[value] for value in VALUES])
    (expected,) = plain.execute(f"SELECT COUNT(*) FROM t WHERE {condition}").fetchone()
    (name,) = (measurement.name for measurement in plan.measurements)
    held = [{"d": value} for value in VALUES]
    for tried in (engine, ReferenceEngine({"t": held})):
        assert tried.aggregate(plan)._integers[name].tolist() == [expected], condition


def test_doubles_would_keep_other_rows():
    """Negative control: the conditions distinguish exact constants from doubles."""
    assert 0.06 + 0.01 < 0.07 in VALUES
    assert 0.1 + 0.2 != 0.3
    kept = [value for value in VALUES if 0.06 - 0.01 <= value <= 0.06 + 0.01]
    assert len(kept) != len([value for value in VALUES if 0.05 <= value <= 0.07])


def test_only_constants_are_folded():
    (condition,) = query_of("d * 0.1 + 0.2 > 0.1 + 0.2").filters
    assert literals(condition) == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("written", "place"), [("1 / 0", "1:"), ("0.5 / (0.3 - 0.1 - 0.2)", "1:"), ("1 / (2 - 2.0)", "1:")]
)
def test_a_constant_divided_by_zero_is_refused_at_its_place(written, place):
    for sql in (
        f"SELECT COUNT(*) AS n FROM t WHERE d > {written}",
        f"SELECT COUNT(*) AS n FROM t HAVING COUNT(*) > {written}",
    ):
        with pytest.raises(sf.errors.UnsupportedSyntax, match=rf"divides by 0 (at|near) {place}"):
            bind(parse(sql), DATASET)


@pytest.mark.parametrize("written", ["1e101", "1e9999", "1e-9999", "1" * 200, "1e60 * 1e60", "0." + "1" * 500])
def test_constants_beyond_reach_are_refused(written):
    with pytest.raises(sf.errors.MissingBounds, match="too large"):
        query_of(f"d > {written}")


@pytest.mark.parametrize("written", [". 2.5", ". 2 . 5"])
def test_numbers_that_are_none_are_refused(written):
    with pytest.raises(sf.errors.UnsupportedSyntax):
        query_of(f"d > {written}")


def test_having_and_quantiles_take_exact_constants():
    query = bind(
        parse("SELECT COUNT(*) AS n, QUANTILE_CONT(d, 1 - 0.1) AS q FROM t HAVING AVG(d) > 0.06 - 0.01"), DATASET
    )
    assert query.having.arguments[1] == Literal(0.05)
    assert float(query.aggregates[1].fraction) == 0.9
