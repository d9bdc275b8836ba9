"""Random neighbouring tables with dates: one person changes no more than is certified, and the engines agree."""

from datetime import date, datetime
from functools import cache

import pandas as pd
import pytest
from by_cell import list_by_cell
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

VISITS = Table(
    "visits", None, "pid",
    {
        "pid": sf.Id(), "born": sf.Date("1968-02-27", "1972-03-02"), "cost": sf.Real(-5, 50),
        "seen": sf.DateTime("1969-12-01T00:00:00", "2020-03-01T12:00:00", nullable=False),
    },
    max_rows_per_unit=3, max_groups_per_unit=2,
)  # fmt: skip
QUESTIONS = [
    "SELECT DATE_TRUNC('month', born) AS m, COUNT(*) AS n, SUM(cost) AS s, COUNT(DISTINCT pid) AS p FROM visits "
    "GROUP BY m",
    "SELECT EXTRACT(dow FROM seen) AS d, AVG(DATE_DIFF('day', born, seen)) AS a FROM visits "
    "WHERE DATE_TRUNC('year', seen) < '2020-01-01' GROUP BY d",
    "SELECT SUM(DATE_DIFF('hour', TIMESTAMP '2000-01-01 00:00:00', seen)) AS s, MEDIAN(YEAR(born)) AS m, "
    "MODE(DATE_TRUNC('quarter', born)) AS q, MAX(HOUR(seen)) AS h FROM visits WHERE seen <> born",
    "SELECT DATE_TRUNC('minute', seen) AS t, COUNT(*) AS n, SUM(MINUTE(seen)) AS s FROM visits GROUP BY t",
]  # fmt: skip

days = st.one_of(
    st.none(),
    st.sampled_from(["1968-02-29", "1969-12-31", "1970-01-01", "0001-01-01", "9999-12-31", "1970-02-30", "x"]),
)
moments = st.one_of(
    st.sampled_from([
        None, "infinity", "nonsense", "1969-12-31 23:59:59.999999", "1970-01-01", "2020-02-29T00:00:00.000001",
        "2020-02-29T23:59:59-05:00", "2020-02-29 00:00:01", "2500-01-01",
    ]),
    st.datetimes(datetime(1960, 1, 1), datetime(2030, 1, 1)).map(str),
)  # fmt: skip
visits = st.fixed_dictionaries({"born": days, "seen": moments, "cost": st.floats(-60, 60)})
people = st.lists(st.lists(visits, max_size=5), max_size=3)


@cache
def planned(question, neighbours):
    dataset = Dataset("clinic", [VISITS], sf.Budget(epsilon=9, delta=1e-6), neighbours=neighbours)
    return choose_plan(bind(parse(question), dataset), sf.PureDP(1), dataset, {"visits": "1"}).plan


CHECKED = set()


def measured(owners, plan):
    """The integers that both engines measure: every nonzero one, under (measurement, cell, bin or part)."""
    rows = [{"pid": f"p{name}", **row} for name, mine in owners for row in mine]
    frame = pd.DataFrame(rows, columns=list(VISITS.columns)).astype({"cost": float, "born": object, "seen": object})
    duck = DuckDBEngine.of_data(VISITS, frame)
    try:
        if plan not in CHECKED:  # it is bound against empty tables, whatever the data
            duck.check(plan)
            CHECKED.add(plan)
        names = [row[0] for row in duck._connection.execute("DESCRIBE visits").fetchall()]
        held = [dict(zip(names, row, strict=True)) for row in duck._connection.execute("FROM visits").fetchall()]
        found, wanted = (
            list_by_cell(engine.aggregate(plan), plan) for engine in (duck, ReferenceEngine({"visits": held}))
        )
    finally:
        duck.close()
    assert found == wanted, "engines differ"
    return found


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@settings(max_examples=count_examples(6), deadline=None, suppress_health_check=SLOW)
@given(others=people, mine=st.lists(visits, min_size=1, max_size=5), yours=st.lists(visits, max_size=5))
def test_nobody_moves_more_than_is_certified(question, neighbours, others, mine, yours):
    rest = list(enumerate(others))
    without = rest if neighbours == "add-remove" else [*rest, (98, yours)]
    plan = planned(question, neighbours)
    before, after = measured([*rest, (99, mine)], plan), measured(without, plan)
    lonely = {where[1] for where in before.keys() ^ after.keys() if where[0].startswith("keys")}
    moved = {}
    for where in before.keys() | after.keys():
        if where[1] in lonely and not where[0].startswith("keys"):
            continue  # without the person, nobody holds the key; with the person, delta covers its release
        moved.setdefault(where[0], []).append(abs(before.get(where, 0) - after.get(where, 0)))
    for measurement in certify(plan).measurements:
        assert sum(moved.get(measurement.name, [])) <= measurement.sensitivity.l1, (question, measurement.name)
        assert sum(step**2 for step in moved.get(measurement.name, [])) <= measurement.sensitivity.l2_squared, (
            measurement.name
        )


def test_a_bound_that_is_too_small_is_seen():
    """Negative control: one person, far from the midpoint, changes a sum of hours by nearly what is certified."""
    plan = planned(
        "SELECT SUM(DATE_DIFF('hour', TIMESTAMP '1968-01-01 00:00:00', seen)) AS s FROM visits", "add-remove"
    )
    (certified,) = certify(plan).measurements
    mine = [{"born": date(1900, 1, 1).isoformat(), "seen": "infinity", "cost": 0.0}] * 3
    (moved,) = measured([(1, mine)], plan).values()
    assert certified.sensitivity.l1 * 0.99 < moved <= certified.sensitivity.l1
