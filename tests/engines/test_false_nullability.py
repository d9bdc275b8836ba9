"""A plan that wrongly says "never NULL" of a joined column cannot move a row's halves beyond its certificate."""

from dataclasses import replace

import pandas as pd
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table, replace_tables
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.kernel.certify import certify
from sfumato.kernel.neighbours import ROW
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

ROWS = Table("t", None, ROW, {"k": sf.Integer(0, 9)})
PUBLIC = Table("pub", None, None, {}, public=True)
LOOKED_UP = pd.DataFrame({"k": [1, 2], "v": [1000, 1010]})
JOINED = "SELECT AVG(v) AS a FROM t LEFT JOIN pub ON t.k = pub.k"
UNITED = "SELECT AVG(v) AS a FROM (SELECT v FROM t LEFT JOIN pub ON t.k = pub.k UNION ALL SELECT k AS v FROM t) u"
DERIVED = "SELECT AVG(v) AS a FROM (SELECT v FROM t LEFT JOIN pub ON t.k = pub.k WHERE t.k > 0) u"


def say_never_null(plan):
    """The plan, with every value of a sum declared as never NULL."""
    changed = []
    for measurement in plan.measurements:
        quantity = measurement.quantity
        changed.append(replace(measurement, quantity=replace(quantity, value=replace(quantity.value, nullable=False))))
    return replace(plan, measurements=tuple(changed))


@pytest.mark.parametrize("question", [JOINED, UNITED, DERIVED])
def test_an_unmatched_row_moves_the_halves_within_the_certificate(question):
    engines = []
    for keys in ([1, 2], [1, 2, 9]):
        engines.append(DuckDBEngine.of_tables({"t": (ROWS, pd.DataFrame({"k": keys})), "pub": (PUBLIC, LOOKED_UP)}))
    dataset = Dataset("d", [ROWS, PUBLIC], sf.Budget(epsilon=100), neighbours="add-remove")
    dataset = replace_tables(dataset, engines[0].tables)
    plan = choose_plan(bind(parse(question), dataset), sf.PureDP(1), dataset, engines[0].versions).plan
    false_plan = say_never_null(plan)
    assert false_plan != plan
    before, after = (one.aggregate(false_plan)._integers for one in engines)
    for measurement in certify(false_plan).measurements:
        moved = abs(before[measurement.name] - after[measurement.name]).sum()
        assert moved <= measurement.sensitivity.l1
