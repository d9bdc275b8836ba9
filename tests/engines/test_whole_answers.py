"""Whole answers beside plain DuckDB, with the noise switched off here: every aggregate, clause and kind of source.

Nothing is clamped and nobody is bounded in these tables, so what plain SQL says is what an answer without noise says:
sums and means up to their public grids, quantiles and extremes up to their public bins.
"""

from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table, replace_tables
from sfumato.curator import Curator
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.ledger.ledger import Ledger, Limit

PEOPLE = 400
BIN = 1_000 / 4_096  # the width of a real value's bins, at most
TABLES = [
    Table("people", None, "pid", {
        "pid": sf.Id(), "age": sf.Integer(0, 120), "pay": sf.Real(0, 1_000),
        "city": sf.Category(["Rome", "Oslo", "Lima"]), "job": sf.Text(), "smoker": sf.Boolean(),
        "born": sf.Date("1900-01-01", "2025-12-31"),
    }, 1, 1),
    Table("visits", None, "pid", {
        "pid": sf.Id(), "cost": sf.Real(0, 1_000), "site": sf.Integer(1, 4), "kind": sf.Text(),
    }, 3, 8),
    Table("sites", None, None, {"site": sf.Integer(1, 4), "region": sf.Category(["n", "s"]), "beds": sf.Integer(0, 9)},
          public=True),
]  # fmt: skip
SITES = pd.DataFrame({"site": [1, 1, 2, 3], "region": ["n", "s", "n", "s"], "beds": [1, 2, 3, 4]})


def frames():
    random = np.random.default_rng(4)
    index = np.arange(PEOPLE)
    people = pd.DataFrame({
        "pid": index, "age": random.integers(18, 90, PEOPLE), "pay": random.integers(0, 8_000, PEOPLE) / 8,
        "city": np.array(["Rome", "Oslo"])[index % 2], "job": np.array(["nurse", "smith", "priest"])[index % 3],
        "smoker": index % 4 == 0, "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(index * 31, "D"),
    })  # fmt: skip
    people["born"] = people["born"].dt.date
    people.loc[index % 10 == 0, "pay"] = None
    own = np.repeat(index[: PEOPLE // 2], 3)
    visits = pd.DataFrame({
        "pid": own, "cost": random.integers(0, 8_000, own.size) / 8, "site": random.integers(1, 5, own.size),
        "kind": np.array(["a", "b"])[random.integers(0, 2, own.size)],
    })  # fmt: skip
    return {"people": people, "visits": visits, "sites": SITES}


@pytest.fixture(scope="module")
def plain():
    made = duckdb.connect()
    for name, frame in frames().items():
        made.register(f"{name}_frame", frame)
        made.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_frame")
    return made


@pytest.fixture(scope="module")
def clinic():
    rows = frames()
    engine = DuckDBEngine.of_tables({table.name: (table, rows[table.name]) for table in TABLES})
    budget = sf.Budget(epsilon=10**9, delta="1e-3")
    dataset = replace_tables(Dataset("clinic", TABLES, budget), engine.tables)
    ledger = Ledger.create(None, dataset.population, Limit(dataset.budget.loss), {})
    return Curator(dataset, engine, ledger, engine.versions)


@pytest.fixture
def without_noise(monkeypatch):
    """Counts and sums are released without noise. At this epsilon, choices have one outcome."""
    monkeypatch.setattr(LaplaceNoise, "draw", lambda self, size, entropy: np.zeros(size, np.int64))


def rows_of(plain, sql):
    found = plain.execute(sql)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def same(mine, theirs, tolerance):
    if isinstance(theirs, (int, float, Decimal)) and not isinstance(theirs, bool):
        return mine is not None and abs(float(mine) - float(theirs)) <= tolerance + 1e-6 * abs(float(theirs))
    return mine == theirs


def asked(clinic, sql):
    return clinic.ask(sql, epsilon=1_000, delta="1e-6").rows


VISITS_OF_EACH = "SELECT pid, COUNT(*) AS c, SUM(cost) AS s, MAX(site) AS site FROM visits GROUP BY pid"
QUESTIONS = {
    "count": "SELECT COUNT(*) AS n FROM people",
    "count of values": "SELECT COUNT(pay) AS n, COUNT(*) AS all_rows FROM people",
    "people": "SELECT COUNT(DISTINCT pid) AS n FROM visits WHERE cost > 500",
    "sum": "SELECT city, SUM(pay) AS s, SUM(age) AS t FROM people GROUP BY city ORDER BY city",
    "mean": "SELECT city, AVG(pay) AS a, AVG(age) AS b FROM people GROUP BY city ORDER BY city DESC",
    "mean of truths": "SELECT AVG(CASE WHEN smoker THEN 1 ELSE 0 END) AS share FROM people",
    "undeclared keys": "SELECT job, COUNT(*) AS n, SUM(pay) AS s, AVG(age) AS a FROM people GROUP BY job ORDER BY job",
    "undeclared and declared keys": "SELECT job, smoker, COUNT(*) AS n FROM people GROUP BY job, smoker ORDER BY 1, 2",
    "undeclared keys, people": "SELECT kind, COUNT(DISTINCT pid) AS n FROM visits GROUP BY kind ORDER BY kind",
    "whole numbers": "SELECT FLOOR(age / 10) AS k, COUNT(*) AS n FROM people GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY 1",
    "years": "SELECT YEAR(born) AS y, COUNT(*) AS n FROM people GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY y DESC LIMIT 5",
    "having": "SELECT age, COUNT(*) AS n FROM people GROUP BY age HAVING COUNT(*) > 6 AND age <> 40 "
              "ORDER BY n DESC, age",
    "having of a ratio": "SELECT city, SUM(pay) / COUNT(pay) AS r FROM people GROUP BY city HAVING NOT "
                         "SUM(pay) / COUNT(pay) < 1 ORDER BY r DESC",
    "ratio, NULL last": "SELECT site, SUM(cost) / COUNT(*) AS r FROM visits WHERE site > 2 GROUP BY site "
                        "HAVING COUNT(*) > 0 ORDER BY r DESC, site",
    "round": "SELECT city, ROUND(AVG(pay), 1) AS a, ROUND(SUM(pay), -3) AS s FROM people GROUP BY city ORDER BY city",
    "decimals": "SELECT COUNT(*) AS n FROM people WHERE pay / 1000 BETWEEN 0.25 - 0.125 AND 0.3 + 0.2",
    "private join": "SELECT p.city, COUNT(*) AS n, SUM(v.cost) AS s FROM people p JOIN visits v ON p.pid = v.pid "
                    "WHERE v.cost < 700 GROUP BY p.city ORDER BY p.city",
    "left join": "SELECT COUNT(*) AS n, COUNT(v.cost) AS met FROM people p LEFT JOIN visits v ON p.pid = v.pid",
    "public join": "SELECT s.region, COUNT(*) AS n, SUM(v.cost) AS s FROM visits v JOIN sites s ON v.site = s.site "
                   "GROUP BY s.region ORDER BY s.region",
    "per person": f"SELECT c, COUNT(*) AS n, AVG(s) AS a FROM ({VISITS_OF_EACH}) q GROUP BY c HAVING COUNT(*) > 0",
    "per person, people, public join": f"SELECT s.region, COUNT(DISTINCT q.pid) AS n FROM ({VISITS_OF_EACH}) q "
                                       "JOIN sites s ON q.site = s.site GROUP BY s.region ORDER BY s.region",
    "union": "SELECT COUNT(*) AS n, SUM(x) AS s FROM (SELECT pid, pay AS x FROM people UNION ALL "
             "SELECT pid, cost AS x FROM visits) u",
    "WITH": "WITH dear AS (SELECT pid, cost FROM visits WHERE cost > 250) "
            "SELECT COUNT(*) AS n, SUM(cost) AS s FROM dear",
    "mode": "SELECT MODE(site) AS m, MODE(kind = 'a') AS t FROM visits WHERE site <> 4 OR cost > 900",
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_without_noise_an_answer_is_plain_sqls(name, clinic, plain, without_noise):
    sql = QUESTIONS[name]
    expected, found = rows_of(plain, sql), asked(clinic, sql)
    keys = {key for row in found for key in row}
    assert expected
    assert keys == {*expected[0]}
    if len(found) > len(expected):  # declared groups that are empty are shown too
        there = {row[next(iter(row))] for row in expected}
        found = [row for row in found if row[next(iter(row))] in there]
    assert len(found) == len(expected), sql
    for mine, theirs in zip(found, expected, strict=True):
        for column, value in theirs.items():
            assert same(mine[column], value, 0.01), (sql, column, mine[column], value)


@pytest.mark.parametrize("unit", ["", " WHERE city = 'Rome'"])
def test_variances_are_plain_sqls_up_to_their_grid(unit, clinic, plain, without_noise):
    sql = f"SELECT VARIANCE(age) AS v, STDDEV(age) AS d, VARIANCE(pay) AS w, STDDEV(pay) AS e FROM people{unit}"
    (mine,), (theirs,) = asked(clinic, sql), rows_of(plain, sql)
    for name, tolerance in (("v", 0.5), ("d", 0.02), ("w", 0.002 * theirs["w"]), ("e", 0.002 * theirs["e"])):
        assert same(mine[name], theirs[name], tolerance), (name, mine[name], theirs[name])


@pytest.mark.parametrize("group", ["", "city", "job"])
@pytest.mark.parametrize(
    ("aggregate", "fraction"),
    [("MEDIAN({})", 0.5), ("QUANTILE_CONT({}, 0.9)", 0.9), ("QUANTILE_CONT({}, 0.25)", 0.25), ("MIN({})", 0.0),
     ("MAX({})", 1.0), ("PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY {})", 0.75)],
)  # fmt: skip
@pytest.mark.parametrize(("column", "width"), [("age", 1.0), ("pay", BIN)])
def test_quantiles_are_plain_sqls_up_to_their_bin(aggregate, fraction, column, width, group, clinic, without_noise):
    """Between the rows just below and just above the rank: plain SQL would interpolate between these two."""
    clause = f" GROUP BY {group}" if group else ""
    chosen = f"{group + ', ' if group else ''}{aggregate.format(column)} AS q"
    people = frames()["people"]
    for row in asked(clinic, f"SELECT {chosen} FROM people{clause}"):
        values = people[people[group] == row[group]][column] if group else people[column]
        values = np.sort(values.dropna().to_numpy(float))
        if values.size:
            at = fraction * (values.size - 1)
            low, high = values[max(int(np.floor(at)) - 1, 0)], values[min(int(np.ceil(at)) + 1, values.size - 1)]
            assert low - width <= row["q"] <= high + width, (row, low, high)


def test_the_most_frequent_are_plain_sqls(clinic, plain, without_noise):
    (found,) = asked(clinic, "SELECT TOP_K(age, 3) AS top FROM people WHERE age < 60")
    counted = rows_of(plain, "SELECT age, COUNT(*) AS n FROM people WHERE age < 60 GROUP BY age ORDER BY n DESC")
    numbers = {row["age"]: row["n"] for row in counted}
    assert [numbers[city] for city in found["top"]] == [row["n"] for row in counted[:3]]


def test_with_noise_an_answer_is_not_plain_sqls(clinic, plain):
    """Negative control: the noise is switched off in these tests alone."""
    sql = "SELECT COUNT(*) AS n, SUM(pay) AS s FROM people"
    (mine,), (theirs,) = clinic.ask(sql, epsilon="0.001").rows, rows_of(plain, sql)
    assert abs(mine["s"] - theirs["s"]) > 1  # fails once in 10**5


@pytest.mark.filterwarnings("ignore::sfumato.errors.LoadWarning")
def test_weights_of_large_steps_and_bounds_do_not_overflow():
    """A product of 2**53 steps and 2,000 rows is beyond 64 bits."""
    frame = pd.DataFrame({"pid": [1] * 3_000, "x": [2**53] * 3_000})
    columns = {"pid": sf.Id(), "x": sf.Integer(0, 2**53, nullable=False)}
    budget = sf.Budget(epsilon=10**7)
    with sf.protect(frame, name="t", unit="pid", columns=columns, budget=budget, max_rows_per_unit=2_000) as data:
        (row,) = data.ask("SELECT SUM(x) AS s FROM t", epsilon=10**6).rows
    assert row["s"] == pytest.approx(2**63, rel=1e-3)  # a sum saturates there
