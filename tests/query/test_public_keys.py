"""Groups by columns of public tables: their values and combinations are known, and are those of plain SQL."""

import duckdb
import pandas as pd
import pytest
from test_corpus import without_noise  # noqa: F401 - a fixture

import sfumato as sf
from sfumato.errors import UnsupportedSyntax

CATALOG = """
[dataset]
name = "clinic"
[budget]
epsilon = "1000000"
[tables.visits]
source = "visits.csv"
unit_column = "id"
max_rows_per_unit = 2
max_groups_per_unit = 2
columns.id = { type = "id" }
columns.site = { type = "category", values = ["a", "b", "c", "d"] }
columns.cost = { type = "integer", lower = 0, upper = 50 }
[tables.sites]
source = "sites.csv"
public = true
columns.site = { type = "category", values = ["a", "b", "c"] }
columns.region = { type = "category", values = ["in", "out"] }
columns.beds = { type = "integer", lower = 0, upper = 1000 }
columns.town = { type = "text" }
columns.note = { type = "text" }
"""
SITES = pd.DataFrame(
    {"site": ["a", "b", "c"], "region": ["in", "in", "out"], "beds": [10, 20, 30], "town": ["Z", "Y", "Z"],
     "note": ["x", None, "z"]}
)  # fmt: skip
VISITS = pd.DataFrame({"id": [n // 2 for n in range(120)], "site": ["a", "b", "b", "d"] * 30, "cost": range(120)})
VISITS["cost"] %= 50


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clinic")
    VISITS.to_csv(folder / "visits.csv", index=False)
    SITES.to_csv(folder / "sites.csv", index=False)
    (folder / "catalog.toml").write_text(CATALOG)
    plain = duckdb.connect()
    for name in ("visits", "sites"):
        plain.execute(f"CREATE TABLE {name} AS SELECT * FROM '{folder / name}.csv'")
    with sf.open(str(folder)) as opened:
        yield opened, plain


INNER = "FROM visits v JOIN sites s ON v.site = s.site"
KEPT = "FROM sites s LEFT JOIN visits v ON v.site = s.site"


@pytest.mark.parametrize(
    ("sql", "empty"),
    [  # the groups that nobody is in, which plain SQL does not have after an inner join
        (f"SELECT s.site, s.region, s.beds, COUNT(*) {INNER} GROUP BY s.site, s.region, s.beds", [("c", "out", 30, 0)]),
        (f"SELECT v.site, s.beds, SUM(v.cost) {INNER} GROUP BY v.site, s.beds", [("c", 30, 0)]),
        (f"SELECT s.town, COUNT(*) {INNER} GROUP BY s.town", []),
        (f"SELECT s.beds, COUNT(*) {INNER} WHERE s.beds > 10 GROUP BY s.beds", [(30, 0)]),
        (f"SELECT s.town, s.region, COUNT(*) {INNER} GROUP BY 1, 2", [("Z", "out", 0)]),
        (f"SELECT s.town, COUNT(v.cost) {KEPT} GROUP BY s.town ORDER BY 2 DESC LIMIT 1", []),
        (f"SELECT s.site, COUNT(v.id) {KEPT} GROUP BY s.site", []),
        (f"SELECT s.site, COUNT(DISTINCT v.id) {KEPT} AND v.cost > 3 WHERE s.beds < 30 GROUP BY s.site", []),
        (f"SELECT s.region, COALESCE(SUM(v.cost * s.beds), 0) {KEPT} GROUP BY s.region", []),
        (f"SELECT s.site, SUM(CASE WHEN v.cost > 30 THEN 1 ELSE 0 END) AS n {KEPT} GROUP BY s.site", []),
        (f"SELECT s.site, COUNT(v.id) {KEPT} WHERE v.cost > 10 GROUP BY s.site", [("c", 0)]),
        ("SELECT s.site, COUNT(v.id) FROM visits v RIGHT JOIN sites s USING (site) GROUP BY s.site", []),
    ],
)
def test_its_groups_are_those_of_the_public_rows(sql, empty, clinic, without_noise):  # noqa: F811
    data, plain = clinic
    got = [tuple(row.values()) for row in data.ask(sql, epsilon=1000).rows]
    wanted = [*plain.execute(sql).fetchall(), *empty]
    assert sorted(got) == sorted(wanted)


def test_the_private_side_may_have_values_that_the_public_table_lacks(clinic, without_noise):  # noqa: F811
    """After LEFT JOIN the private rows without a partner stay, so their keys do too."""
    asked = "SELECT v.site, COUNT(*) AS n FROM visits v LEFT JOIN sites s ON v.site = s.site GROUP BY v.site"
    found = {row["site"]: row["n"] for row in clinic[0].ask(asked, epsilon=1000).rows}
    assert found == {"a": 30, "b": 60, "c": 0, "d": 30}


@pytest.mark.parametrize(
    "selected",
    ["COUNT(*)", "COUNT(s.site)", "COUNT(COALESCE(v.cost, 0))", "SUM(CASE WHEN v.cost IS NULL THEN 1 END)",
     "AVG(CASE WHEN v.cost > 3 THEN 1 ELSE 0 END)", "SUM(s.beds)", "COUNT(CASE WHEN v.cost > 3 THEN 1 ELSE 0 END)"],
)  # fmt: skip
def test_a_row_that_belongs_to_nobody_is_never_counted(selected, clinic):
    """Plain SQL counts the site that nobody visited: an answer without it would be wrong."""
    with pytest.raises(UnsupportedSyntax, match="belong to nobody"):
        clinic[0].preview(f"SELECT s.site, {selected} {KEPT} GROUP BY s.site", epsilon=1)


@pytest.mark.parametrize("condition", ["v.id IS NULL", "v.cost IS NULL OR v.cost > 3", "COALESCE(v.cost, 0) < 3"])
def test_a_condition_that_looks_for_them_is_refused(condition, clinic):
    with pytest.raises(UnsupportedSyntax, match="belong to nobody"):
        clinic[0].preview(f"SELECT s.site, COUNT(v.id) {KEPT} WHERE {condition} GROUP BY s.site", epsilon=1)


def test_using_names_the_public_column(clinic):
    asked = "SELECT site, COUNT(site) FROM sites s LEFT JOIN visits v USING (site) GROUP BY site"
    with pytest.raises(UnsupportedSyntax, match="belong to nobody"):
        clinic[0].preview(asked, epsilon=1)


def test_the_key_of_a_public_table_decides_its_other_columns(clinic, without_noise):  # noqa: F811
    data, plain = clinic
    asked = f"SELECT s.town, s.beds * 2 AS more, COUNT(*) AS n {INNER} GROUP BY s.site ORDER BY s.beds"
    written = (
        f"SELECT s.town, s.beds * 2 AS more, COUNT(*) AS n {INNER} GROUP BY s.site, s.town, s.beds ORDER BY s.beds"
    )
    got = [tuple(row.values()) for row in data.ask(asked, epsilon=1000).rows]
    assert got == [*plain.execute(written).fetchall(), ("Z", 60, 0)]
    one = data.ask(f"SELECT s.site, ANY_VALUE(s.region) AS r, COUNT(*) AS n {INNER} GROUP BY s.site", epsilon=1000)
    assert [tuple(row.values()) for row in one.rows] == [("a", "in", 30), ("b", "in", 60), ("c", "out", 0)]


@pytest.mark.parametrize("column", ["s.note", "v.cost"])
def test_a_column_that_may_be_null_or_is_private_is_not_decided(column, clinic):
    """A NULL key is in no group, so the group of site b would be lost."""
    with pytest.raises(UnsupportedSyntax, match="neither in GROUP BY"):
        clinic[0].preview(f"SELECT s.site, {column}, COUNT(*) {INNER} GROUP BY s.site", epsilon=1)


def test_a_key_that_several_public_rows_have_decides_nothing(clinic):
    with pytest.raises(UnsupportedSyntax, match="neither in GROUP BY"):
        clinic[0].preview(f"SELECT s.region, s.beds, COUNT(*) {INNER} GROUP BY s.region", epsilon=1)
