"""Random words in random order: a Query or a QueryError, and nothing else."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.sql.lowering import lower, lower_people
from sfumato.errors import QueryError
from sfumato.kernel.certify import certify
from sfumato.kernel.plan import People
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse, parse_expression
from sfumato.query.query import Query

COLUMNS = {
    "id": sf.Id(), "age": sf.Integer(0, 120), "pay": sf.Real(10, 9_000), "city": sf.Category(["Rome", "Oslo"]),
    "smoker": sf.Boolean(), "note": sf.Text(), "born": sf.Date("1900-01-01", "2025-12-31"),
}  # fmt: skip
DATASET = Dataset("t", [Table("t", None, "id", COLUMNS, 3, 2)], sf.Budget(epsilon=9))
TEXT = (
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AND OR NOT IN BETWEEN LIKE IS NULL TRUE CASE WHEN THEN ELSE END "
    "DISTINCT AS DATE ASC DESC COUNT( SUM( AVG( ABS( FLOOR( ROUND( COALESCE( COUNT(*) ( ) , . * + - / = <> < >= "
    "age pay city smoker note born id t n 1 0 2.5 1e3 'Rome' '2020-01-01' DATE'2020-01-01' OVER FILTER ALL INTERVAL "
    "ROW ARRAY STRUCT [ ] { } :: ? $1 ; -- /* */ EXISTS UNION WITH VALUES FIRST NULLS ESCAPE USING SAMPLE PIVOT date "
    '"age" "a""b" IF( LEFT RIGHT MAP( E\'x\' X LATERAL WINDOW ANY SOME'
)
OPERATORS = "+ - * / = <> < >= AND OR LIKE"
FUNCTIONS = "ABS FLOOR CEIL COALESCE SUM AVG COUNT VARIANCE STDDEV ROUND"
values = st.recursive(
    st.sampled_from(["age", "pay", "city", "smoker", "note", "born", "1", "-2.5", "'Rome'", "TRUE", "NULL", "0", "n"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS.split()), inner).map("({0[0]} {0[1]} {0[2]})".format),
        st.tuples(st.sampled_from(FUNCTIONS.split()), inner).map("{0[0]}({0[1]})".format),
        st.tuples(inner, inner, inner).map("CASE WHEN {0[0]} THEN {0[1]} ELSE {0[2]} END".format),
        st.tuples(inner, inner, inner).map("({0[0]} BETWEEN {0[1]} AND {0[2]})".format),
        st.tuples(inner, inner, inner).map("({0[0]} IN ({0[1]}, {0[2]}))".format),
        inner.map("(NOT {0})".format), inner.map("(- {0})".format), inner.map("({0} IS NOT NULL)".format),
    ),
    max_leaves=6,
)  # fmt: skip
VERSIONS = dict.fromkeys(DATASET.tables, "1")


def understood(sql):
    """The query, after planning and lowering it to SQL; None if it is refused with a QueryError."""
    try:
        query = bind(parse(sql), DATASET)
    except QueryError as error:
        assert error.hint
        return None
    plan = choose_plan(query, sf.PureDP(1), DATASET, VERSIONS).plan
    certify(plan)
    if any(not isinstance(measurement.quantity, People) for measurement in plan.measurements):
        lower(plan, {}).sql("duckdb")
    else:
        lower_people(plan).sql("duckdb")
    return query


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(TEXT.split()), max_size=25))
def test_words(words):
    understood(" ".join(words))
    understood("SELECT COUNT(*) FROM t WHERE " + " ".join(words))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_letters(text):
    for sql in (text, f"SELECT COUNT(*) FROM t WHERE {text}", f"SELECT COUNT({text}) FROM t"):
        understood(sql)
    with suppress(QueryError):
        parse_expression(text)


@settings(max_examples=300, deadline=None)
@given(values, values, values, values)
def test_expressions(one, two, three, four):
    understood(f"SELECT COUNT(*) AS n, {one} AS x FROM t WHERE {two}")
    understood(f"SELECT {one} AS k, SUM({two}) AS s FROM t GROUP BY {one} HAVING {three} ORDER BY {four}")


@pytest.mark.parametrize("text", ["age", "smoker", "city = 'Rome'"])
def test_some_are_understood(text):
    """Negative control: the fuzzed shapes can bind."""
    assert isinstance(
        understood(f"SELECT {text} AS k, SUM(age) AS s FROM t GROUP BY {text} HAVING s > 3 ORDER BY k"), Query
    )
