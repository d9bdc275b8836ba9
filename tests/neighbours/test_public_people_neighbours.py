"""Frames with a public number of people that differ in one person: no measurement changes by more than is certified."""

import pandas as pd
import pytest
from examples import SLOW, count_examples
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.kernel.certify import certify
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

COLUMNS = {"id": sf.Id(), "x": sf.Real(-1, 10, nullable=False), "y": sf.Integer(1, 10, nullable=False)}
QUESTIONS = [
    "SELECT AVG(x) AS m, SUM(y) AS s FROM t",
    "SELECT AVG(y) AS m, COUNT(*) AS n, COUNT(DISTINCT id) AS p FROM t",
    "SELECT VARIANCE(y) AS v, AVG(y) AS m FROM t",
    "SELECT AVG(total) AS m FROM (SELECT id, SUM(x) AS total FROM t GROUP BY id)",
]
numbers = st.one_of(
    st.none(), st.sampled_from([-1.0, 10.0, 1.0, 4.5, 4.499999, float("nan"), 1e300]), st.floats(-3, 12)
)
records = st.fixed_dictionaries({"x": numbers, "y": numbers})
PURE = sf.PureDP(1)
owned = st.lists(records, min_size=1, max_size=12)


def frame(owners):
    found = [{"id": f"p{index}", **row} for index, mine in enumerate(owners) for row in mine]
    return pd.DataFrame(found, columns=list(COLUMNS)).astype({"x": float, "y": float})


def planned(question, people, loss=PURE):
    table = Table("t", None, "id", COLUMNS, people=people)
    dataset = Dataset("t", [table], sf.Budget(epsilon=100), neighbours="replace-one")
    return choose_plan(bind(parse(question), dataset), loss, dataset, {"t": "1"}).plan, table


def measured(owners, plan, table):
    engine = DuckDBEngine.of_data(table, frame(owners))
    try:
        return engine.aggregate(plan)._integers
    finally:
        engine.close()


@pytest.mark.parametrize("loss", [PURE, sf.ZCDP(1)], ids=["pure", "zcdp"])
@pytest.mark.parametrize("question", QUESTIONS)
@settings(max_examples=count_examples(15), deadline=None, suppress_health_check=SLOW)
@given(st.lists(owned, max_size=3), owned, owned)
def test_no_replaced_person_moves_more(question, loss, others, mine, yours):
    plan, table = planned(question, len(others) + 1, loss)
    before, after = (measured([*others, person], plan, table) for person in (mine, yours))
    for measurement in certify(plan).measurements:
        moved = [abs(int(a) - int(b)) for a, b in zip(before[measurement.name], after[measurement.name], strict=True)]
        assert sum(moved) <= measurement.sensitivity.l1, (question, measurement.name)
        assert sum(step * step for step in moved) <= measurement.sensitivity.l2_squared, (question, measurement.name)


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_from_one_bound_to_the_other_is_the_whole_of_it(rows):
    """Negative control: the certified span is reached, so a smaller one would be noticed."""
    plan, table = planned("SELECT AVG(y) AS m FROM t", 1)
    (measurement,) = certify(plan).measurements
    low, high = (measured([[{"x": 0.0, "y": end}] * rows], plan, table)[measurement.name] for end in (1, 10))
    moved = abs(int(high[0]) - int(low[0]))
    assert moved <= measurement.sensitivity.l1 == 9 / 2.0**measurement.exponent
    assert measurement.sensitivity.l1 - moved <= 2 * rows
