"""`sfumato audit` and sf.lab.audit_query: whole questions, on made-up rows and throwaway ledgers."""

import json
import time

import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.cli.main import app
from sfumato.lab.auditing.broken_queries import BROKEN_QUERIES
from sfumato.lab.auditing.query_audit import audit_query

CATALOG = """
[dataset]
name = "clinic"

[budget]
epsilon = "3"
delta = "1e-6"

[tables.visits]
source = "visits.csv"
unit_column = "person"
max_rows_per_unit = 2
max_groups_per_unit = 2
columns.person = { type = "id" }
columns.cost = { type = "real", lower = -5, upper = 500 }
columns.city = { type = "category", values = ["Rome", "Oslo", "Bonn"] }
columns.job = { type = "text" }
"""
COLUMNS = {
    "person": sf.Id(),
    "cost": sf.Real(-5, 500),
    "city": sf.Category(["Rome", "Oslo", "Bonn"]),
    "job": sf.Text(),
}


@pytest.fixture
def folder(tmp_path):
    """A folder whose data would be refused if anybody read it, and that has no ledger."""
    (tmp_path / "catalog.toml").write_text(CATALOG)
    (tmp_path / "visits.csv").write_bytes(b"\x00 this is no table")
    return tmp_path


def run(folder, *arguments):
    return CliRunner().invoke(app, ["-C", str(folder), "audit", *arguments])


def dataset():
    table = Table("visits", None, "person", COLUMNS, 2, 2)
    return Dataset("clinic", [table], sf.Budget(epsilon=3, delta="1e-6"))


def test_a_question_is_audited_without_data_or_ledger(folder):
    before = sorted(path.name for path in folder.iterdir())
    begin = time.process_time()
    done = run(folder, "SELECT city, COUNT(*) AS n FROM visits GROUP BY city", "--epsilon", "1")
    assert time.process_time() - begin < 30
    assert done.exit_code == 0, done.output
    assert "Verdict: consistent" in done.output or "Verdict: inconclusive" in done.output
    assert "made up" in done.output
    assert sorted(path.name for path in folder.iterdir()) == before  # no ledger, no snapshot, no key


def test_the_json_of_a_replay(folder):
    done = run(folder, "SELECT SUM(cost) AS s FROM visits", "--replay", "--json")
    found = json.loads(done.output)
    assert found["verdict"] == "consistent"
    assert found["largest_share_of_sensitivity"] > 0.9
    assert any(pair["pair"] == "another dtype" for pair in found["pairs"])


def test_a_question_that_is_not_sql_is_refused(folder):
    done = run(folder, "SELECT cost FROM visits", "--replay")
    assert done.exit_code == 4


def test_the_measured_loss_comes_near_the_claim():
    """COUNT of one cell: the released integer has the whole claim as its loss."""
    found = audit_query(dataset(), "SELECT COUNT(*) AS n FROM visits", 1, samples=4_000, seed=5)
    assert found.verdict != "violated", found
    assert 0.3 < found.lower_bound < 1.3  # eight standard errors
    assert found.samples == 4_000
    assert json.loads(found.to_json())["claim"] == "PureDP(epsilon=1)"
    assert found.sampled
    assert found.event


@pytest.mark.parametrize("name", ["half-the-sensitivity", "rows-instead-of-people", "error-of-the-data"])
def test_an_audited_fault_is_a_violation(name):
    (broken,) = (query for query in BROKEN_QUERIES if query.name == name)
    found = audit_query(dataset(), broken.sql, 1, samples=2_000, seed=5, wrap=broken.wrap)
    assert found.verdict == "violated"
    assert found.event


def test_undeclared_keys_are_sampled_with_the_lonely_key():
    found = audit_query(lambda: dataset(), "SELECT job, COUNT(*) AS n FROM visits GROUP BY job", 1, samples=100, seed=5)
    assert found.verdict != "violated", found
    assert "key of their own" in found.sampled[0].pair
    assert found.claim == sf.ApproxDP(1, "1e-8")  # a hundredth of the delta of the budget


def test_what_is_no_dataset_is_refused():
    with pytest.raises(sf.errors.InvalidParameter, match="dataset_maker"):
        audit_query(7, "SELECT 1")
