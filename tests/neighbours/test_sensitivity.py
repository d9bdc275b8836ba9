"""On random neighbouring tables, no engine's integers change by more than the kernel's sensitivity."""

import pandas as pd
import pytest
from examples import SLOW, count_examples
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.kernel.certify import certify
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

VERSIONS = {"t": "1"}
COLUMNS = {
    "id": sf.Id(),
    "age": sf.Integer(-5, 120),
    "pay": sf.Real(-100, 9_000),
    "base": sf.Real(10, 20, nullable=False),
    "city": sf.Category(["Rome", "Oslo", "Tromsø"]),
    "smoker": sf.Boolean(),
}
QUESTIONS = [
    "SELECT COUNT(*) FROM t",
    "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM t GROUP BY city",
    "SELECT COUNT(age) AS n, SUM(pay) AS s FROM t WHERE smoker",
    "SELECT SUM(base) AS s FROM t",
    "SELECT SUM(age) AS s, COUNT(DISTINCT id) AS p FROM t WHERE city <> 'Rome' OR age IS NULL",
    "SELECT city, smoker, COUNT(DISTINCT id) p, SUM(CASE WHEN age > 40 THEN pay ELSE 1 END) s FROM t GROUP BY 1, 2",
    "SELECT VARIANCE(pay) AS v, AVG(pay - base) AS d FROM t WHERE pay / (age - 3) > 2 OR pay IS NULL",
    "SELECT CORR(age, pay) AS c, REGR_SLOPE(pay, base) AS s, COVAR_POP(base, age) AS v FROM t WHERE smoker",
    "SELECT city, REGR_INTERCEPT(age, pay) AS i, VARIANCE(pay) AS v FROM t GROUP BY city",
    "SELECT age > 40 AS old, AVG(pay * 0.01) AS m FROM t GROUP BY old",
    "SELECT SUM(CASE WHEN city = 'Rome' THEN pay END) AS a, SUM(CASE WHEN city = 'Oslo' THEN pay END) AS b FROM t",
    "SELECT smoker, COUNT(*) AS n, COUNT(CASE WHEN age < 40 THEN 1 END) AS a, "
    "AVG(CASE WHEN age < 40 THEN pay END) AS m, AVG(CASE WHEN age >= 40 THEN pay END) AS o, "
    "COUNT(CASE WHEN age >= 40 THEN 1 END) AS b FROM t GROUP BY smoker",
    "SELECT VARIANCE(CASE WHEN smoker THEN base END) AS a, VARIANCE(CASE WHEN NOT smoker THEN base END) AS b FROM t",
]
numbers = st.one_of(
    st.none(),
    st.floats(-200, 10_000),
    st.sampled_from([float("nan"), float("inf"), float("-inf"), 1e300, -0.0, 3.0, 0.1]),
)
rows = st.fixed_dictionaries(
    {
        "age": numbers,
        "pay": numbers,
        "base": numbers,
        "city": st.sampled_from(["Rome", "Oslo", "Tromsø", "Atlantis", None, ""]),
        "smoker": st.sampled_from([True, False, None]),
    }
)
people = st.lists(st.lists(rows, min_size=1, max_size=7), min_size=0, max_size=4)


def frame(owners):
    records = [{"id": f"p{index}", **row} for index, owned in owners for row in owned]
    table = pd.DataFrame(records, columns=list(COLUMNS))
    return table.astype({"age": float, "pay": float, "base": float, "city": object, "smoker": object, "id": object})


def engines(owners, table):
    duck = DuckDBEngine.of_data(table, frame(owners))
    names = [name[0] for name in duck._connection.execute(f'DESCRIBE "{table.name}"').fetchall()]
    held = duck._connection.execute(f'SELECT * FROM "{table.name}"').fetchall()
    return duck, ReferenceEngine({table.name: [dict(zip(names, row, strict=True)) for row in held]})


def measured(owners, plan, table):
    duck, reference = engines(owners, table)
    try:
        one, two = duck.aggregate(plan)._integers, reference.aggregate(plan)._integers
    finally:
        duck.close()
    for name in one:
        assert one[name].tolist() == two[name].tolist(), "engines differ"
    return one


def planned(question, unit, neighbours):
    bounds = {} if unit is sf.ROW else {"max_rows_per_unit": 3, "max_groups_per_unit": 2}
    columns = COLUMNS if unit is not sf.ROW else {name: column for name, column in COLUMNS.items() if name != "id"}
    table = Table("t", None, unit, columns, **bounds)
    dataset = Dataset("t", [table], sf.Budget(epsilon=100), neighbours=neighbours)
    query = bind(parse(question), dataset)
    return choose_plan(query, sf.PureDP(1), dataset, VERSIONS).plan, table


def check(question, unit, neighbours, one, two):
    plan, table = planned(question, unit, neighbours)
    certificate = certify(plan)
    before, after = measured(one, plan, table), measured(two, plan, table)
    for measurement in certificate.measurements:
        moved = [abs(int(a) - int(b)) for a, b in zip(before[measurement.name], after[measurement.name], strict=True)]
        assert sum(moved) <= measurement.sensitivity.l1, (question, measurement.name)
        assert sum(step * step for step in moved) <= measurement.sensitivity.l2_squared, (question, measurement.name)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@settings(max_examples=count_examples(12), deadline=None, suppress_health_check=SLOW)
@given(people, st.lists(rows, min_size=1, max_size=9), st.lists(rows, min_size=1, max_size=9))
def test_no_neighbour_moves_more(question, neighbours, others, mine, yours):
    rest = list(enumerate(others))
    with_me, without = [*rest, (99, mine)], rest
    if neighbours == "replace-one":
        without = [*rest, (98, yours)]
    check(question, "id", neighbours, with_me, without)


@pytest.mark.parametrize("question", [question for question in QUESTIONS if "DISTINCT" not in question])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@settings(max_examples=count_examples(8), deadline=None, suppress_health_check=SLOW)
@given(st.lists(rows, max_size=6), rows, rows)
def test_no_row_moves_more(question, neighbours, others, mine, yours):
    rest = [(0, others)]
    without = rest if neighbours == "add-remove" else [*rest, (1, [yours])]
    check(question, sf.ROW, neighbours, [*rest, (1, [mine])], without)


def test_a_bound_that_is_too_small_is_seen():
    """Negative control: with half the sensitivity, a person with many rows is over it."""
    plan, table = planned("SELECT SUM(pay) AS s FROM t", "id", "add-remove")
    mine = [{"age": 1, "pay": 9_000, "base": 10, "city": "Rome", "smoker": True}] * 5
    (name,) = (measurement.name for measurement in plan.measurements)
    moved = int(measured([(1, mine)], plan, table)[name][0])
    (certified,) = certify(plan).measurements
    assert certified.sensitivity.l1 / 2 < moved <= certified.sensitivity.l1


def moved(columns, question, one, two, unit=sf.ROW, **bounds):
    """By how much a pair of frames changes each measurement, and how much the kernel allows."""
    table = Table("t", None, unit, columns, **bounds)
    dataset = Dataset("t", [table], sf.Budget(epsilon=100))
    plan = choose_plan(bind(parse(question), dataset), sf.PureDP(1), dataset, VERSIONS).plan
    integers = []
    for data in (one, two):
        engine = DuckDBEngine.of_data(table, data)
        integers.append(engine.aggregate(plan)._integers)
        engine.close()
    for measurement in certify(plan).measurements:
        change = sum(
            abs(int(a) - int(b))
            for a, b in zip(integers[0][measurement.name], integers[1][measurement.name], strict=True)
        )
        assert change <= measurement.sensitivity.l1, question
    return integers


def test_a_column_named_like_a_key_of_ours():
    columns = {"k0": sf.Integer(0, 100), "city": sf.Category(["a", "b"])}
    one = pd.DataFrame({"k0": list(range(1, 50)) * 2 + [60], "city": ["a"] * 99})
    first, _ = moved(columns, "SELECT k0 > 50 AS old, COUNT(*) AS n FROM t GROUP BY k0 > 50", one, one.head(98))
    assert first["count1"].tolist() == [98, 1]


def test_one_gap_does_not_change_how_others_are_read():
    """pandas turns whole numbers into floats when one is missing, and mixed objects into whatever comes first."""
    codes = pd.DataFrame({"code": [1, 2] * 50, "id": range(100)})
    gap = pd.DataFrame({"code": [1, 2] * 50 + [None], "id": [*range(100), 100]})
    columns = {"code": sf.Category(["1", "2"]), "id": sf.Id()}
    first, _ = moved(columns, "SELECT code, COUNT(*) AS n FROM t GROUP BY code", codes, gap, "id")
    assert first["count1"].tolist() == [50 << 16, 50 << 16]
    mixed = pd.DataFrame({"b": pd.Series([True] * 50, dtype=object)})
    odd = pd.DataFrame({"b": pd.Series([True] * 50 + ["maybe"], dtype=object)})
    first, _ = moved({"b": sf.Boolean()}, "SELECT SUM(b) AS n FROM t", mixed, odd)
    assert first["sum1"][0] == 50


def test_one_odd_row_of_a_csv_does_not_change_the_others(tmp_path):
    """A well-formed record changes only its own contribution; a malformed one refuses the load, with its line."""
    plain, odd = tmp_path / "plain.csv", tmp_path / "odd.csv"
    lines = ["name,pay", *(f"p{index},10" for index in range(50))]
    plain.write_text("\n".join(lines) + "\n")
    columns = {"pay": sf.Integer(0, 100)}
    question = "SELECT COUNT(pay) AS n, SUM(pay) AS s FROM t"
    for row in ("p,99", "x,", ",", '"a, ""b""",x', "p,1e400"):
        odd.write_text("\n".join([*lines, row]) + "\n")
        first, _ = moved(columns, question, plain, odd)
        assert sum(first["halves1"]) == 50 * 100
    for row in ("Ann;Smith;x", "a,b,c,d", '"broken', "x", ",,,,,,"):
        odd.write_text("\n".join([*lines, row]) + "\n")
        with pytest.raises(sf.errors.CatalogError, match=r"odd\.csv, line 52"):
            moved(columns, question, plain, odd)


def test_bounds_near_the_last_whole_double():
    for lower, upper in ((2**53 - 3, 2**53 - 1), (-(2**53), -(2**53) + 1)):
        columns = {"x": sf.Integer(lower, upper)}
        moved(
            columns,
            "SELECT AVG(x) AS a FROM t",
            pd.DataFrame({"x": [upper, lower, upper]}),
            pd.DataFrame({"x": [upper, lower]}),
        )
    real = {"x": sf.Real(-1, 0.49999999999999994 * 2**-24)}
    moved(real, "SELECT SUM(x) AS a FROM t", pd.DataFrame({"x": [1.0, -1.0]}), pd.DataFrame({"x": [1.0]}))


def test_an_error_keeps_nothing_of_the_data(tmp_path):
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"secret record 12345")
    with pytest.raises(sf.errors.CatalogError) as caught:
        DuckDBEngine.of_data(Table("t", None, sf.ROW, {"x": sf.Integer(0, 1)}), path)
    assert caught.value.__context__ is None
    assert "12345" not in str(caught.value)
