"""Counts tables at the command line and in folders: add, check, prepare, joins with public tables, stored answers."""

import pytest
from clinic import json_of, read_refusal, run

import sfumato as sf
from sfumato.catalog.catalog_file import load_catalog

COUNTS = "disease,n\nflu,812\ngout,40\nmumps,x\n"
ADD = ("add", "sick", "sick.csv", "--unit", "COUNTS(n)", "--column", "disease:category:flu,gout,mumps")
TOTAL = "SELECT disease, SUM(n) AS people FROM sick GROUP BY disease"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sick.csv").write_text(COUNTS)
    assert run("init", tmp_path, "--epsilon", "5000", "--delta", "0").exit_code == 0
    return tmp_path


def test_add_check_and_ask(folder):
    added = run("-C", folder, *ADD)
    assert added.exit_code == 0, added.output
    assert "Privacy unit: each unit of n is one person." in added.output
    assert "3 records read, 0 malformed, 1 dropped (1 whose n is not a count: 1 unreadable); 852 rows" in added.output
    assert "33.3 % of the records stand for no people" in added.output
    table = load_catalog(folder).tables["sick"]
    assert (table.count_column, table.columns["n"]) == ("n", sf.Integer(0, 1, nullable=False))
    assert "Privacy unit: each unit of n is one person." in run("-C", folder, "check").output
    shown = json_of(run("-C", folder, "check", "--json"))["tables"][0]
    assert (shown["unit"], shown["count_column"]) == ("COUNTS(n)", "n")
    asked = json_of(run("-C", folder, "ask", TOTAL, "--epsilon", "500", "--json"))
    assert [row["people"] for row in asked["rows"]] == [812, 40, 0]
    assert "each unit of n is one person" in run("-C", folder, "explain", TOTAL, "--epsilon", "1").output


def test_strict_and_json(folder):
    message = read_refusal(run("-C", folder, *ADD, "--strict", "--json"), 4)["message"]
    assert "stand for no people" in message
    report = json_of(run("-C", folder, *ADD, "--json"))["load_report"]["tables"][0]
    assert (report["records_read"], report["rows"], report["counts"]["unreadable"]) == (3, 852, 1)


def test_add_names_the_columns_that_need_a_declaration(folder):
    """The count column is not among them."""
    message = read_refusal(run("-C", folder, *ADD[:5], "--json"), 2)["message"]
    assert "disease" in message
    assert ", n" not in message


def test_another_unit_is_another_version(folder):
    """Pinned data and stored answers of another unit are not used."""
    (folder / "sick.csv").write_text("disease,n,m\nflu,812,3\ngout,40,4\n")
    run("-C", folder, *ADD)
    first = json_of(run("-C", folder, "ask", TOTAL, "--epsilon", "500", "--json"))
    assert json_of(run("-C", folder, "ask", TOTAL, "--epsilon", "500", "--json"))["cached"]
    path = folder / "catalog.toml"
    path.write_text(path.read_text().replace('count_column = "n"', 'count_column = "m"'))
    stale = run("-C", folder, "ask", TOTAL.replace("SUM(n)", "SUM(m)"), "--epsilon", "500")
    assert stale.exit_code != 0
    assert "sfumato prepare" in stale.output
    assert "its declaration changed" in run("-C", folder, "check").output
    assert run("-C", folder, "prepare").exit_code == 0
    second = json_of(run("-C", folder, "ask", TOTAL.replace("SUM(n)", "SUM(m)"), "--epsilon", "500", "--json"))
    assert not second["cached"]
    found = [[row["people"] for row in asked["rows"]] for asked in (first, second)]
    assert found == [[812, 40, 0], [3, 4, 0]]


def test_a_changed_count_is_a_changed_source(folder):
    run("-C", folder, *ADD)
    (folder / "sick.csv").write_text(COUNTS.replace("40", "41").replace("x", "9"))
    assert "sick.csv changed" in run("-C", folder, "check").output
    assert run("-C", folder, "prepare").exit_code == 0
    asked = json_of(run("-C", folder, "ask", TOTAL, "--epsilon", "500", "--json"))
    assert [row["people"] for row in asked["rows"]] == [812, 41, 9]


def test_counts_meet_public_tables(folder):
    run("-C", folder, *ADD)
    (folder / "kinds.csv").write_text("disease,catching\nflu,yes\ngout,no\nmumps,yes\n")
    with (folder / "catalog.toml").open("a") as file:
        file.write('\n[tables.kinds]\nsource = "kinds.csv"\npublic = true\n')
    assert run("-C", folder, "prepare").exit_code == 0
    joined = "SELECT k.catching, SUM(s.n) AS people FROM sick s JOIN kinds k ON s.disease = k.disease GROUP BY 1"
    rows = json_of(run("-C", folder, "ask", joined, "--epsilon", "500", "--json"))["rows"]
    assert {row["catching"]: row["people"] for row in rows} == {"no": 40, "yes": 812}
    wrong = joined.replace(" GROUP", " WHERE s.n > 5 GROUP")
    assert (
        "1 for each person" in read_refusal(run("-C", folder, "ask", wrong, "--epsilon", "1", "--json"), 4)["message"]
    )


def test_a_largest_count_is_declared_as_a_column(folder):
    added = run("-C", folder, *ADD, "--column", "n:integer:0:100")
    assert "Counts above 100 are clamped." in added.output
    assert load_catalog(folder).tables["sick"].most_count == 100
    asked = json_of(run("-C", folder, "ask", TOTAL, "--epsilon", "500", "--json"))
    assert [row["people"] for row in asked["rows"]] == [100, 40, 0]


@pytest.mark.parametrize("unit", ["COUNTS()", "COUNTS(", "counts(n)", "COUNTS(m)"])
def test_wrong_units_are_refused(folder, unit):
    read_refusal(run("-C", folder, *ADD[:4], unit, *ADD[5:], "--json"), 4)
    assert not load_catalog(folder).tables
