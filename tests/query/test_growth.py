"""Questions that grow when they are written out: refused quickly, before any charge."""

import time

import pytest

import sfumato as sf
from sfumato.catalog.model import Dataset, Table
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


@pytest.mark.parametrize(("step", "times"), [("x * x", 14), ("x * x", 40), ("x + 1", 150), ("(x + x) * (x - x)", 20)])
def test_what_doubles_is_refused(step, times):
    begun = time.process_time()
    with pytest.raises(sf.errors.QueryError, match="too many parts"):
        bind(parse(nested(step, times)), DATASET)
    assert time.process_time() - begun < 5


def test_a_reasonable_depth_is_not():
    bind(parse(nested("x * 0.5 + 1", 20)), DATASET)


@pytest.mark.parametrize("column", ["day", "n"])
def test_an_id_is_compared_with_an_id(column):
    """DuckDB would cast the id, and fail where a row's id cannot be cast: an outcome that tells of the row."""
    with pytest.raises(sf.errors.QueryError, match="An id is compared"):
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
    begun = time.process_time()
    with pytest.raises(sf.errors.QueryError, match="too many"):
        bind(parse(f"WITH {', '.join(parts)} SELECT SUM(x) AS s FROM c16"), DATASET)
    assert time.process_time() - begun < 5


def test_a_name_means_what_it_means_where_it_was_written():
    inner = "WITH a AS (SELECT pid, 1 AS w FROM t), b AS (SELECT pid, w FROM a) SELECT SUM(w) AS n FROM ({}) u"
    for nested, wanted in (
        ("WITH a AS (SELECT pid, 2 AS w FROM t) SELECT w FROM b", 1.0),
        ("WITH a AS (SELECT pid, 2 AS w FROM t) SELECT w FROM a", 2.0),
        ("WITH A AS (SELECT pid, 2 AS w FROM t) SELECT w FROM a", 2.0),
    ):
        (aggregate,) = bind(parse(inner.format(nested)), DATASET).aggregates
        assert aggregate.value.upper == wanted, nested
