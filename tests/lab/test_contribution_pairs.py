"""People just above and far above their contribution bounds: faults that begin at some number of rows or groups."""

import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.sql import lowering, row_totals
from sfumato.ingest import join_cap
from sfumato.kernel.row_sources import TIMES_MET, derive_extent
from sfumato.lab.auditing.audit_stage import Setting, describe_public, set_stage
from sfumato.lab.auditing.contribution_pairs import MOST_ROWS_OF_ONE
from sfumato.lab.auditing.query_replay import ReplayResult, replay_pairs
from sfumato.lab.auditing.question_pairs import make_pairs

COLUMNS = {
    "person": sf.Id(),
    "cost": sf.Real(-500, 5),
    "city": sf.Category(["Rome", "Oslo", "Bonn", "Kyiv"]),
    "smoker": sf.Boolean(),
    "job": sf.Text(),
}
BY_CITY = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"
FILTERED = "SELECT SUM(cost) AS s FROM t WHERE city = 'Oslo' AND NOT smoker AND cost < -20"
SELF_JOIN = "SELECT COUNT(*) AS n FROM t a JOIN t b ON a.person = b.person"
PEOPLE = "SELECT city, COUNT(DISTINCT person) AS n FROM t GROUP BY city"
TWO_TABLES = "SELECT COUNT(*) AS n FROM t JOIN u ON t.person = u.person"


def declare(rows=2, groups=2, **others):
    tables = [Table("t", None, "person", COLUMNS, rows, groups), *others.values()]
    return Dataset("d", tables, sf.Budget(epsilon=3, delta="1e-6"))


def replay_above(sql, folder, dataset=None, words=("rows", "groups")):
    stage = set_stage(dataset or declare(), sql)
    pairs = [pair for pair in make_pairs(stage, folder, 0, 1) if "_per_unit" in pair.name]
    pairs = [pair for pair in pairs if any(pair.name.endswith(word) for word in words)]
    assert pairs
    return ReplayResult(sql, "duckdb", tuple(replay_pairs(stage, sql, pairs, Setting())))


def weigh_late(more):
    """`row_totals._weigh` with a fault: a person with up to `more` rows too many gets the whole weight for each row."""
    weigh = row_totals._weigh

    def weigh_wrongly(steps, plan, most_steps):
        weighed = weigh(steps, plan, most_steps)
        numerator = derive_extent(plan.source).numerator
        weighed.args["ifs"][0].this.set("expression", row_totals.lower_integer(numerator + more))
        return weighed

    return weigh_wrongly


@pytest.mark.parametrize(("sql", "more"), [(BY_CITY, 1), (FILTERED, 1), (BY_CITY, 3)])
def test_rows_just_above_the_bound_are_found(sql, more, monkeypatch, tmp_path):
    monkeypatch.setattr(row_totals, "_weigh", weigh_late(more))
    assert replay_above(sql, tmp_path, words=(f"+ {more} rows",)).verdict == "violated"


def test_rows_far_above_the_bound_are_found_in_joins(monkeypatch, tmp_path):
    """Joins read twice as many rows of a person as the plan says."""
    monkeypatch.setattr(join_cap, "TIMES_MET", 2 * TIMES_MET)
    assert replay_above(SELF_JOIN, tmp_path, words=("rows",)).verdict == "violated"


def test_one_group_too_many_is_found(monkeypatch, tmp_path):
    lower = lowering.lower_integer
    monkeypatch.setattr(lowering, "lower_integer", lambda value: lower(3 if value == 2 else value))  # of 2 groups
    assert replay_above(PEOPLE, tmp_path, words=("+ 1 groups",)).verdict == "violated"


@pytest.mark.parametrize("sql", [BY_CITY, FILTERED, SELF_JOIN, PEOPLE])
def test_correct_code_is_consistent_above_its_bounds(sql, tmp_path):
    found = replay_above(sql, tmp_path)
    assert found.verdict == "consistent", found
    assert found.share > 0.9  # the rows pass the filters


def test_each_of_two_tables_has_one_row_too_many(tmp_path):
    other = Table("u", None, "person", {"person": sf.Id(), "pay": sf.Integer(0, 9)}, 3, 2)
    found = replay_above(TWO_TABLES, tmp_path, declare(u=other))
    assert found.verdict == "consistent", found
    assert {"(in t)", "(in u)"} <= {pair.pair.split(" rows")[0][-6:] for pair in found.pairs}


def test_a_bound_of_many_rows_has_fewer_pairs(tmp_path):
    stage = set_stage(declare(MOST_ROWS_OF_ONE - 1), BY_CITY)
    names = [pair.name for pair in make_pairs(stage, tmp_path, 0, 1) if pair.name.endswith("_per_unit + 1 rows")]
    assert names == ["a person with max_rows_per_unit + 1 rows"]


def test_public_tables_without_columns(tmp_path):
    """One that the question does not use needs no columns. Of one that it uses, they are read from its source."""
    (tmp_path / "sites.csv").write_text("city,region\nRome,south\nOslo,north\nRome,middle\n")
    sites = Table("sites", "sites.csv", None, {}, public=True)
    dataset = declare(sites=sites)
    assert replay_above(BY_CITY, tmp_path, dataset, words=("+ 1 rows",)).verdict == "consistent"
    sql = "SELECT s.region, COUNT(*) AS n FROM t JOIN sites s ON t.city = s.city GROUP BY s.region"
    described = describe_public(dataset, sql, tmp_path)
    assert set(described.tables["sites"].columns) == {"city", "region"}
    assert describe_public(dataset, BY_CITY, tmp_path) is dataset
    assert replay_above(sql, tmp_path, described, words=("+ 1 rows",)).verdict == "consistent"
