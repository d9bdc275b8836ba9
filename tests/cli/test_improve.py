"""The commands upgrade, diagnose, bounds and cap, and OPTIONS in the question."""

import json

import pytest
from typer.testing import CliRunner

from sfumato.catalog.catalog_file import load_catalog
from sfumato.cli.main import app


@pytest.fixture
def clinic(tmp_path):
    rows = [f"{index // 2},{['north', 'south'][index % 2]},{20 + index % 200}" for index in range(1000)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient_id,site,cost", *rows]))
    run(tmp_path, "init", ".", "--epsilon", "99")
    run(
        tmp_path, "add", "visits", str(tmp_path / "visits.csv"), "--unit", "patient_id", "--max-rows", "2",
        "--column", "site:category:north,south", "--column", "cost:real:0:500",
    )  # fmt: skip
    return tmp_path


def run(folder, *arguments, code=0):
    result = CliRunner().invoke(app, ["-C", str(folder), *arguments])
    assert result.exit_code == code, result.output
    return result.output


COUNT = "SELECT COUNT(*) AS n FROM visits WHERE cost > 50"


def test_upgrade_pays_the_difference(clinic):
    run(clinic, "ask", COUNT, "--epsilon", "1")
    better = json.loads(run(clinic, "upgrade", COUNT, "--epsilon", "2", "--json"))
    assert better["cost"] == {"epsilon": "1", "delta": "0"}
    assert "Free" in run(clinic, "upgrade", COUNT, "--epsilon", "2")
    run(clinic, "upgrade", COUNT, code=2)


def test_diagnose_shows_shares(clinic):
    assert "of people have more rows" in run(clinic, "diagnose", COUNT, "--epsilon", "9")
    found = json.loads(run(clinic, "diagnose", "SELECT AVG(cost) AS c FROM visits", "--epsilon", "8", "--json"))
    assert found["filtered"] is None
    assert found["at_bounds"]["cost"] < 0.1


def test_bounds_are_told_and_not_declared(clinic):
    run(clinic, "preview", COUNT, "--epsilon", "1")  # opens it, and so ties it to its ledger
    before = (clinic / "catalog.toml").read_text()
    found = json.loads(run(clinic, "bounds", "cost", "--epsilon", "9", "--json"))
    assert found["lower"] <= 20
    assert 128 <= found["upper"] <= 512
    assert "Nothing was declared" in run(clinic, "bounds", "cost", "--epsilon", "7")
    assert (clinic / "catalog.toml").read_text() == before
    run(clinic, "bounds", "site", code=4)


def test_a_cap_is_told_and_not_declared(clinic):
    run(clinic, "preview", COUNT, "--epsilon", "1")
    before = (clinic / "catalog.toml").read_text()
    found = json.loads(run(clinic, "cap", "visits", "--epsilon", "9", "--json"))
    assert found["table"] == "visits"
    assert found["max_rows_per_unit"] >= 1
    assert "declare max_rows_per_unit" in run(clinic, "cap", "visits", "--epsilon", "7")
    assert (clinic / "catalog.toml").read_text() == before
    run(clinic, "cap", "nothing", code=4)


def test_an_automatic_cap_is_bought_and_written(clinic):
    path = clinic / "catalog.toml"
    run(clinic, "preview", COUNT, "--epsilon", "1")
    declared = load_catalog(clinic).table("visits").max_rows_per_unit
    path.write_text(path.read_text().replace(f"max_rows_per_unit = {declared}", 'max_rows_per_unit = "auto"'))
    assert "--declare" in run(clinic, "preview", COUNT, "--epsilon", "1", code=4)
    found = json.loads(run(clinic, "cap", "visits", "--epsilon", "2", "--declare", "--json"))
    assert load_catalog(clinic).table("visits").max_rows_per_unit == found["max_rows_per_unit"]
    assert found["cost"]["epsilon"] == "2"
    run(clinic, "preview", COUNT, "--epsilon", "1")
    run(clinic, "cap", "--declare", code=2)


def test_the_price_of_a_cap_is_shown_before_it_is_paid(clinic):
    before = json.loads(run(clinic, "budget", "--json"))
    shown = json.loads(run(clinic, "cap", "visits", "--epsilon", "0.5", "--preview", "--json"))
    assert (shown["table"], shown["cost"]) == ("visits", {"epsilon": "0.5", "delta": "0"})
    assert "0.5" in run(clinic, "cap", "visits", "--epsilon", "0.5", "--preview")
    assert json.loads(run(clinic, "budget", "--json")) == before
    paid = json.loads(run(clinic, "cap", "visits", "--epsilon", "0.5", "--json"))
    assert paid["cost"] == shown["cost"]


def test_a_question_may_name_its_own_price(clinic):
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2, privacy_unit_column=patient_id) COUNT(*) AS n FROM visits"
    )
    assert json.loads(run(clinic, "ask", sql, "--json"))["cost"]["epsilon"] == "2"
    run(clinic, "ask", sql, "--epsilon", "3", code=4)
