"""`sfumato plan`, and margins at the command line."""

import pytest
from clinic import BY_CITY, COUNT, json_of, read_refusal

GROUPS = "SELECT city, COUNT(*) AS n FROM patients GROUP BY city"
AGES = "SELECT SUM(age) AS years FROM patients"


def spent(clinic):
    return json_of(clinic("budget", "--json"))["spent"]["epsilon"]


def test_a_plan_is_free_and_has_margins(clinic):
    shown = json_of(clinic("plan", COUNT, GROUPS, AGES, "--epsilon", "0.9", "--json"))
    assert shown["cost"]["epsilon"] == "0.9"
    counts, groups, ages = shown["questions"]
    assert counts["together"] == groups["together"] == [0, 1]
    assert counts["cost"] == groups["cost"] == {"epsilon": "0.6", "delta": "0"}
    assert ages["together"] is None
    assert all(share["margins"][name] > 0 for share, name in ((counts, "n"), (groups, "n"), (ages, "years")))
    plain = clinic("plan", COUNT, GROUPS, AGES, "--epsilon", "0.9")
    assert "ε = 0.6 together" in plain.stdout
    assert "Cost of all: ε = 0.9. Nothing was spent." in plain.stdout
    assert spent(clinic) == "0"


def test_margins_go_to_the_questions_that_have_the_column(clinic):
    shown = json_of(clinic("plan", COUNT, AGES, "--margin", "n=40", "--margin", "years=3000", "--json"))
    first, second = shown["questions"]
    assert first["margins"]["n"] == pytest.approx(40, rel=0.02)
    assert second["margins"]["years"] == pytest.approx(3000, rel=0.02)
    assert json_of(clinic("plan", COUNT, GROUPS, "--margin", "40", "--json"))["cost"]["epsilon"] > "0"
    assert "no margin for this question: SELECT SUM" in clinic("plan", COUNT, AGES, "--margin", "n=40").stderr
    assert "no question has this column" in clinic("plan", COUNT, "--margin", "5", "--margin", "x=3").stderr


def test_a_plan_is_asked_on_one_charge(clinic):
    asked = json_of(clinic("plan", COUNT, GROUPS, "--epsilon", "1", "--ask", "--json"))
    assert [set(answer["rows"][0]) for answer in asked["answers"]] == [{"n"}, {"city", "n"}]
    assert spent(clinic) == "1"
    again = clinic("plan", COUNT, GROUPS, "--epsilon", "1", "--ask")
    assert again.stdout.count("SELECT ") == 2
    assert spent(clinic) == "1"


def test_a_plan_needs_one_price(clinic):
    assert read_refusal(clinic("plan", COUNT, "--json"), 2)["error"] == "usage"
    assert clinic("plan", COUNT, "--epsilon", "1", "--margin", "3").exit_code == 2


def test_preview_shows_what_a_margin_costs(clinic):
    shown = json_of(clinic("preview", COUNT, "--margin", "n=20", "--json"))
    assert shown["margins"]["n"] <= 20
    asked = json_of(clinic("ask", COUNT, "--margin", "n=20", "--json"))
    assert asked["cost"] == shown["cost"]
    assert clinic("preview", COUNT, "--margin", "n=20", "--epsilon", "1").exit_code == 2


def test_a_margin_of_an_average_needs_an_assumed_count(clinic):
    refused = clinic("ask", BY_CITY, "--margin", "age=10")
    assert refused.exit_code == 4
    assert "--assume n=500" in refused.stderr
    shown = json_of(clinic("preview", BY_CITY, "--margin", "age=10", "--assume", "n=100", "--json"))
    asked = json_of(clinic("ask", BY_CITY, "--margin", "age=10", "--assume", "n=100", "--json"))
    assert asked["cost"] == shown["cost"]
    assert clinic("ask", BY_CITY, "--epsilon", "0.1", "--assume", "n=100").exit_code == 4
    assert clinic("ask", BY_CITY, "--margin", "age=10", "--assume", "m=100").exit_code == 2


def test_a_plan_is_for_its_analyst_and_confidence(clinic):
    sure, less = (
        json_of(clinic("plan", COUNT, "--epsilon", "1", "--confidence", level, "--json"))["questions"][0]["margins"]
        for level in ("0.99", "0.5")
    )
    assert less["n"] < sure["n"]
    assert clinic("plan", COUNT, AGES, "--epsilon", "1", "--ask", "--analyst", "bob").exit_code == 0
    entries = json_of(clinic("ledger", "--json"))["entries"]
    assert {entry["analyst"] for entry in entries if entry["kind"] == "charge"} == {"bob"}
