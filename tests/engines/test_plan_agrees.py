"""A plan whose bounds or columns differ from those of the snapshot is refused before a charge."""

from dataclasses import replace

import pandas as pd
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table, replace_tables
from sfumato.curator import Curator
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Call, Column, ColumnType, Literal
from sfumato.kernel.row_sources import Derived, Join, PerUnit, PublicScan, Scan, Union
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

VISITS = Table("visits", None, "pid", {"pid": sf.Id(), "site": sf.Integer(1, 4), "cost": sf.Real(0, 9)}, 3)
HOMES = Table("homes", None, "pid", {"pid": sf.Id(), "rooms": sf.Integer(1, 9)}, 2)
SITES = Table("sites", None, None, {"site": sf.Integer(1, 4), "region": sf.Text()}, public=True)
ROWS = {
    "visits": pd.DataFrame({"pid": ["a", "b"], "site": [1, 2], "cost": [1.0, 2.0]}),
    "homes": pd.DataFrame({"pid": ["a", "b"], "rooms": [1, 2]}),
    "sites": pd.DataFrame({"site": [1, 1, 2, 3], "region": ["n", "s", "s", "s"]}),
}


@pytest.fixture(scope="module")
def engine():
    made = DuckDBEngine.of_tables({table.name: (table, ROWS[table.name]) for table in (VISITS, HOMES, SITES)})
    made.dataset = replace_tables(Dataset("clinic", [VISITS, HOMES, SITES], sf.Budget(epsilon=9)), made.tables)
    yield made
    made.close()


def planned(engine, sql):
    plan = choose_plan(bind(parse(sql), engine.dataset), sf.PureDP(1), engine.dataset, engine.versions).plan
    engine.check(plan)
    return plan


def changed(source, **changes):
    """The source with other numbers: `rows`, `met`, `times`."""
    match source:
        case Scan(max_rows=most, most_met=met):
            rows = changes.get("rows", most)
            return replace(source, max_rows=rows, most_met=None if met is None else max(rows, changes.get("met", met)))
        case Join(left, right, multiplicity=times):
            times = None if times is None else changes.get("times", times)
            return replace(source, left=changed(left, **changes), right=changed(right, **changes), multiplicity=times)
        case Derived(inner) | PerUnit(inner):
            return replace(source, source=changed(inner, **changes))
        case Union(parts):
            return replace(source, parts=tuple(changed(part, **changes) for part in parts))
        case PublicScan():
            return source


JOINED = "SELECT COUNT(*) AS n FROM homes h JOIN visits v ON h.pid = v.pid"
EACH = "SELECT SUM(c) AS s FROM (SELECT pid, COUNT(*) AS c FROM visits GROUP BY pid) x"
UNION = "SELECT SUM(x) AS s FROM (SELECT pid, rooms AS x FROM homes UNION ALL SELECT pid, cost FROM visits) u"
PUBLIC = "SELECT COUNT(*) AS n FROM visits v JOIN sites s ON v.site = s.site"
OUTER = (
    "SELECT COUNT(*) AS n FROM visits v LEFT JOIN (SELECT site AS w FROM sites WHERE region = 's') s ON v.site = s.w"
)


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("SELECT COUNT(*) AS n FROM visits", {"rows": 2}), (JOINED, {"rows": 3}), (JOINED, {"met": 9}),
        (EACH, {"rows": 2}), (UNION, {"rows": 4}), (PUBLIC, {"rows": 1}), (PUBLIC, {"times": 1}), (OUTER, {"times": 1}),
    ],
)  # fmt: skip
def test_other_numbers_are_refused(engine, sql, changes):
    plan = planned(engine, sql)
    other = replace(plan, source=changed(plan.source, **changes))
    assert other != plan
    with pytest.raises(KernelFault, match=r"(pinned|public) (weights|table)"):
        engine.check(other)
    with pytest.raises(sf.errors.EngineFailed):  # an engine that was not asked first does not measure it either
        engine.aggregate(other)


def test_a_multiplicity_of_what_is_compared_counts(engine):
    """The multiplicity must be at least that of the pinned table's join column. A larger one only costs accuracy."""
    plan = planned(engine, PUBLIC)
    assert plan.source.multiplicity == 2
    engine.check(replace(plan, source=changed(plan.source, times=7)))
    site, region = plan.source.on[0][1], Column("t2.region", ColumnType.TEXT)
    text = Literal("s")
    by_region = replace(plan, source=replace(plan.source, on=((text, region),)))
    with pytest.raises(KernelFault):
        engine.check(by_region)  # three sites are in one region
    engine.check(replace(plan, source=replace(by_region.source, multiplicity=3)))
    engine.check(replace(plan, source=replace(plan.source, on=(*plan.source.on, (text, region)))))  # the better of two
    computed = Call("neg", (site,))
    with pytest.raises(KernelFault, match="no column"):
        engine.check(replace(plan, source=replace(plan.source, on=((plan.source.on[0][0], computed),))))


def test_tables_are_what_they_are(engine):
    plan = planned(engine, "SELECT COUNT(*) AS n FROM visits")
    for source in (Scan("sites", "1", 1), Scan("nowhere", "1", 1)):
        with pytest.raises(KernelFault):
            engine.check(replace(plan, source=source))
    public = planned(engine, PUBLIC)
    with pytest.raises(KernelFault):
        engine.check(replace(public, source=replace(public.source, right=PublicScan("homes", "1", "t2."))))


def test_nothing_is_charged(engine, monkeypatch):
    ledger = Ledger.create(None, engine.dataset.population, Limit(engine.dataset.budget.loss), {})
    curator = Curator(engine.dataset, engine, ledger, engine.versions)
    sites = replace(engine.tables["sites"], multiplicities=(("site", 1),))
    wrong = replace_tables(engine.dataset, {**engine.dataset.tables, "sites": sites})
    monkeypatch.setattr(curator, "desk", replace(curator.desk, dataset=wrong))
    with pytest.raises(KernelFault):
        curator.ask(PUBLIC, epsilon=1)
    assert curator.budget.spent.epsilon == 0


@pytest.mark.parametrize("sql", ["SELECT AVG(cost) AS c FROM visits", "SELECT SUM(cost) AS c FROM visits"])
def test_a_plan_that_knows_of_no_nulls_is_refused(engine, sql):
    plan = planned(engine, sql)
    (measurement,) = plan.measurements
    value = replace(measurement.quantity.value, nullable=False)
    forged = replace(plan, measurements=(replace(measurement, quantity=replace(measurement.quantity, value=value)),))
    with pytest.raises(KernelFault, match="NULL"):
        engine.check(forged)


def test_public_tables_that_make_too_many_rows_are_refused(engine):
    times = "SELECT COUNT(*) AS n FROM visits v" + "".join(
        f" JOIN sites s{index} ON v.site = s{index}.site" for index in range(17)
    )
    with pytest.raises(sf.errors.UnsupportedSyntax, match="could turn one row into more than"):
        planned(engine, times)
    planned(engine, times.split(" JOIN sites s16")[0])
    half = " ".join(f"JOIN sites s{index} ON v.site = s{index}.site" for index in range(9))
    both = f"SELECT v.pid, v.site FROM visits v {half}"
    with pytest.raises(sf.errors.UnsupportedSyntax, match="could turn one row into more than"):
        planned(engine, f"SELECT COUNT(*) AS n FROM ({both}) a JOIN ({both}) b ON a.pid = b.pid")


def test_a_unique_key_that_was_not_declared_is_refused(engine):
    plan = planned(engine, "SELECT COUNT(*) AS n FROM visits")
    with pytest.raises(KernelFault, match="unique key"):
        engine.check(replace(plan, source=replace(plan.source, unique=(("site",),))))
