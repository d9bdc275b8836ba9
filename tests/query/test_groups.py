"""In how many groups one person is counted: only a declared bound leaves people out, and then explain() says so."""

import pandas as pd
import pytest
from by_cell import list_by_cell

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table, replace_tables
from sfumato.curator import Curator
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.kernel.certify import certify
from sfumato.kernel.plan import Keys, People
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.query.bind import bind
from sfumato.query.parse import parse

VISITS = Table(
    "visits", None, "pid", {"pid": sf.Id(), "cost": sf.Real(0, 50), "site": sf.Integer(1, 3), "kind": sf.Text()},
    max_rows_per_unit=3, max_groups_per_unit=2,
)  # fmt: skip
SITES = Table("sites", None, None, {"site": sf.Integer(1, 3), "region": sf.Category(["n", "s"])}, public=True)
ROWS = pd.DataFrame({"pid": [1, 2, 3, 4], "cost": [1.0] * 4, "site": [1, 1, 2, 3], "kind": ["a"] * 4})
SITE_ROWS = pd.DataFrame({"site": [1, 1, 2, 3], "region": ["n", "s", "n", "n"]})  # site 1 is in both regions
EACH = "(SELECT pid, MAX(site) AS site, COUNT(*) AS c FROM visits GROUP BY pid) e"
BY_REGION = (
    f"SELECT s.region, COUNT(DISTINCT e.pid) AS people FROM {EACH} JOIN sites s ON e.site = s.site GROUP BY s.region"
)
DROPS = "A hash selects the groups that count for a person who is in more."


@pytest.fixture(scope="module")
def clinic():
    engine = DuckDBEngine.of_tables({"visits": (VISITS, ROWS), "sites": (SITES, SITE_ROWS)})
    dataset = replace_tables(Dataset("c", [VISITS, SITES], sf.Budget(epsilon=9, delta="1e-6")), engine.tables)
    return Curator(dataset, engine, Ledger.create(None, "c", Limit(dataset.budget.loss), {}), engine.versions)


def plan_of(clinic, sql):
    return clinic.desk.plan(bind(parse(sql), clinic.dataset), sf.PureDP(1)).plan


def people(clinic, sql):
    """The exact count of people in each group."""
    plan = plan_of(clinic, sql)
    (name,) = (measurement.name for measurement in plan.measurements if isinstance(measurement.quantity, People | Keys))
    found = list_by_cell(clinic.engine.aggregate(plan), plan)
    return sorted(value for (measured, *_), value in found.items() if measured.split(".")[0] == name)


def test_one_row_for_each_person_counts_in_every_group_that_a_public_table_makes(clinic):
    """Two people of site 1 are in both regions: four in n, two in s. The count used to be halved."""
    assert people(clinic, BY_REGION) == [2, 4]
    (certified,) = certify(plan_of(clinic, BY_REGION)).measurements
    assert certified.sensitivity.l1 == 2
    assert DROPS not in clinic.preview(BY_REGION, epsilon=1).explain()


def test_a_bound_of_one_group_would_lose_people(clinic):
    """Negative control: with a bound in OPTIONS, people are left out, and explain() says so."""
    told = BY_REGION.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=1)", 1)
    assert sum(people(clinic, told)) == 4
    explained = clinic.preview(told, epsilon=1).explain()
    assert f"Contribution bound: 1 group per person. {DROPS}" in explained


@pytest.mark.parametrize(
    ("sql", "groups"),
    [
        (BY_REGION, 2),
        (BY_REGION.replace("JOIN", "LEFT JOIN"), 2),
        (f"SELECT c, COUNT(DISTINCT pid) AS n FROM {EACH} GROUP BY c", 1),
        # the public table multiplies rows, but its columns are no keys
        (f"SELECT e.c, COUNT(DISTINCT e.pid) AS n FROM {EACH} JOIN sites s ON e.site = s.site GROUP BY e.c", 1),
        ("SELECT site, COUNT(DISTINCT pid) AS n FROM visits GROUP BY site", 2),
        ("SELECT s.region, COUNT(DISTINCT v.pid) AS n FROM visits v JOIN sites s ON v.site = s.site GROUP BY 1", 2),
        ("SELECT x, COUNT(DISTINCT pid) AS n FROM (SELECT pid, MAX(site) AS x FROM visits GROUP BY pid UNION ALL "
         "SELECT pid, MIN(site) AS x FROM visits GROUP BY pid) u GROUP BY x", 2),
        (f"SELECT s.region, v.kind, COUNT(DISTINCT e.pid) AS n FROM {EACH} JOIN sites s ON e.site = s.site "
         "JOIN visits v ON e.pid = v.pid GROUP BY 1, 2", 4),
        ("SELECT r, COUNT(DISTINCT pid) AS n FROM (SELECT e.pid, s.region AS r FROM " + EACH +
         " LEFT JOIN sites s ON e.site = s.site) q GROUP BY r", 2),
    ],
)  # fmt: skip
def test_what_follows_from_a_question_and_what_tables_declare(clinic, sql, groups):
    assert plan_of(clinic, sql).max_groups_per_unit == groups


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT site, COUNT(DISTINCT pid) AS n FROM visits GROUP BY site", True),
        ("SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind", True),
        ("SELECT site, COUNT(*) AS n FROM visits GROUP BY site", False),  # rows are weighed, and none is dropped
        ("SELECT COUNT(DISTINCT pid) AS n FROM visits", False),
        (f"SELECT c, COUNT(DISTINCT pid) AS n FROM {EACH} GROUP BY c", False),
    ],
)
def test_explain_says_what_a_group_bound_drops(clinic, sql, said):
    assert (DROPS in clinic.preview(sql, epsilon=1).explain()) is said
