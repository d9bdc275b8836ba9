"""Questions that become very large when views are expanded are refused quickly, before any charge."""

import pandas as pd
import pytest
from processor_time import take_less_than

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.query.bind import bind
from sfumato.query.parse import parse

DATASET = Dataset(
    "t",
    [
        Table("t", None, "pid", {"pid": sf.Id(), "x": sf.Real(0, 1), "site": sf.Id()}),
        Table(
            "s", None, None, {"day": sf.Date("2020-01-01", "2020-12-31"), "n": sf.Integer(0, 3)},
            public=True, multiplicities=(("day", 1), ("n", 1)),
        ),
    ],
    sf.Budget(epsilon=1),
)  # fmt: skip


def nested(step, times):
    parts = ["c0 AS (SELECT pid, x FROM t)"]
    parts += [f"c{number} AS (SELECT pid, {step} AS x FROM c{number - 1})" for number in range(1, times + 1)]
    return f"WITH {', '.join(parts)} SELECT SUM(x) AS s FROM c{times}"


def refuse_soon(match, sql):
    def refuse():
        with pytest.raises(sf.errors.QueryError, match=match):
            bind(parse(sql), DATASET)

    take_less_than(5, refuse)


@pytest.mark.parametrize(("step", "times"), [("x * x", 14), ("x * x", 40), ("x + 1", 150), ("(x + x) * (x - x)", 20)])
def test_what_doubles_is_refused(step, times):
    refuse_soon("too many parts", nested(step, times))


def wide(question):
    """A question about a table whose x has 2,047 parts when it is expanded; none of them is too large."""
    parts, _ = nested("x * x", 10).split(" SELECT SUM(x)")
    return f"{parts}, wide AS (SELECT pid, x, 1 - x AS y FROM c10){question.format('wide')}"


@pytest.mark.parametrize(
    "question",
    [
        " SELECT COUNT(*) FROM {0} a WHERE " + " AND ".join(f"x > {number}" for number in range(300)),
        " SELECT COUNT(*) FROM {0} a WHERE x IN (" + ", ".join(map(str, range(300))) + ")",
        " SELECT " + ", ".join(f"SUM(x + {number}) AS s{number}" for number in range(90)) + " FROM {0} a",
        " SELECT " + ", ".join(f"SUM(x) AS s{number}" for number in range(90)) + " FROM {0} a",
        " SELECT FLOOR(" + " + ".join(["x"] * 12) + ") AS k, COUNT(*) FROM {0} a GROUP BY 1",
        " SELECT AVG(s) FROM (SELECT pid, " + ", ".join(f"SUM(x * {n}) AS s{n}" for n in range(90)) + ", 1 AS s "
        "FROM {0} a GROUP BY pid) b",
        " SELECT COUNT(*) FROM {0} a JOIN {0} b ON a.pid = b.pid AND "
        + " AND ".join(["FLOOR(a.x) = FLOOR(b.x)"] * 30),
        " SELECT COUNT(*) FROM {0} a LEFT JOIN (SELECT pid, FLOOR(x) AS z FROM {0} c) b ON a.pid = b.pid AND "
        + " AND ".join(["FLOOR(a.x) = b.z"] * 30),
        " SELECT SUM(x) FROM (" + " UNION ALL ".join(["SELECT pid, x FROM {0} a"] * 14) + ") u",
        ", w AS (SELECT pid, x FROM {0} a WHERE x > 1 AND x < 2 AND y < 3) SELECT COUNT(*) FROM w w1 "
        + " ".join(f"JOIN (SELECT pid, MAX(x) AS m FROM w GROUP BY pid) m{n} ON m{n}.pid = w1.pid" for n in range(9)),
    ],
)  # fmt: skip
def test_what_is_large_when_it_is_written_out_is_refused(question):
    """Each expression is small enough, but it is used too often."""
    refuse_soon(r"too large once its subqueries are expanded (at|near) 1:", wide(question))


def test_what_is_read_a_few_times_is_not():
    bind(parse(wide(" SELECT SUM(x) AS s, AVG(y) AS m FROM wide a WHERE x > 1 AND y < 2")), DATASET)
    bind(parse(f"SELECT COUNT(*) FROM t WHERE x IN ({', '.join(map(str, range(1200)))})"), DATASET)


def test_a_reasonable_depth_is_not():
    bind(parse(nested("x * 0.5 + 1", 20)), DATASET)


@pytest.mark.parametrize("column", ["day", "n"])
def test_an_id_is_compared_with_an_id(column):
    """DuckDB would cast the id, and fail if a row's id cannot be cast. Such a failure would reveal the row."""
    with pytest.raises(sf.errors.QueryError, match="The join compares an id"):
        bind(parse(f"SELECT COUNT(*) AS n FROM t JOIN s ON t.site = s.{column}"), DATASET)


@pytest.mark.parametrize(
    "step",
    [
        "SELECT pid, x FROM {0} UNION ALL SELECT pid, x FROM {0}",
        "SELECT a.pid, a.x FROM (SELECT pid, MAX(x) AS x FROM {0} GROUP BY pid) a "
        "JOIN (SELECT pid, MAX(x) AS x FROM {0} GROUP BY pid) b ON a.pid = b.pid",
    ],
)  # fmt: skip
def test_what_is_read_twice_at_every_level_is_refused(step):
    parts = ["c0 AS (SELECT pid, x FROM t)"]
    parts += [f"c{number} AS ({step.format(f'c{number - 1}')})" for number in range(1, 17)]
    refuse_soon(r"too many|more than", f"WITH {', '.join(parts)} SELECT SUM(x) AS s FROM c16")


def test_a_name_means_what_it_means_where_it_was_written():
    inner = "WITH a AS (SELECT pid, 1 AS w FROM t), b AS (SELECT pid, w FROM a) SELECT SUM(w) AS n FROM ({}) u"
    for nested, wanted in (
        ("WITH a AS (SELECT pid, 2 AS w FROM t) SELECT w FROM b", 1.0),
        ("WITH a AS (SELECT pid, 2 AS w FROM t) SELECT w FROM a", 2.0),
        ("WITH A AS (SELECT pid, 2 AS w FROM t) SELECT w FROM a", 2.0),
    ):
        (aggregate,) = bind(parse(inner.format(nested)), DATASET).aggregates
        assert aggregate.value.upper == wanted, nested


def test_many_groups_of_many_bins_are_refused_by_name():
    """Memory would be cells times bins: the question is refused before anything is charged, and says what to do."""
    columns = {"a": sf.Integer(0, 999), "b": sf.Integer(0, 99), "x": sf.Real(0, 1)}
    data = pd.DataFrame({"a": [1], "b": [1], "x": [0.5]})
    people = sf.protect(data, name="t", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=3))
    with pytest.raises(sf.errors.InvalidParameter, match="at most 268,435,456 bins") as refused:
        people.ask("SELECT a, b, MEDIAN(x) AS m FROM t GROUP BY a, b", epsilon=1)
    assert "fewer groups" in refused.value.hint
    assert people.budget.spent.epsilon == 0
    assert people.preview("SELECT b, MEDIAN(x) AS m FROM t GROUP BY b", epsilon=1).cost
