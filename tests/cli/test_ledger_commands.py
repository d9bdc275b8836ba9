import sqlite3

from clinic import COUNT, json_of, run

import sfumato as sf
from sfumato.answering.prepaid_ledger import prepay
from sfumato.answering.question_record import write_prepaid_record
from sfumato.kernel.certify import Certificate
from sfumato.kernel.losses import PureDP


def test_budget(clinic):
    clinic("ask", COUNT, "--epsilon", "0.5")
    shown = json_of(clinic("budget", "--json"))
    assert shown == {
        "population": "clinic",
        "limit": {"epsilon": "2", "delta": "0"},
        "spent": {"epsilon": "0.5", "delta": "0"},
        "remaining": {"epsilon": "1.5", "delta": "0"},
        "analysts": {},
    }
    assert clinic("budget").stdout.splitlines()[-1].split("  ")[-1] == "ε = 1.5"


def test_an_analysts_own_limit_is_shown_and_kept(clinic):
    with (clinic.folder / "catalog.toml").open("a") as file:
        file.write('\n[analysts.ann]\nepsilon = "0.5"\n')
    clinic("ask", COUNT, "--epsilon", "0.25", "--analyst", "ann")
    assert json_of(clinic("budget", "--json"))["analysts"]["ann"]["remaining"]["epsilon"] == "0.25"
    assert clinic("ask", COUNT, "--epsilon", "1", "--analyst", "ann").exit_code == 3
    assert clinic("ask", COUNT, "--epsilon", "1", "--analyst", "bob").exit_code == 4


def test_the_budgets_of_names_that_have_the_default_are_shown(clinic):
    with (clinic.folder / "catalog.toml").open("a") as file:
        file.write('\n[analysts.ann]\nepsilon = "0.5"\n[analysts.default]\nepsilon = "0.25"\n')
    clinic("ask", COUNT, "--epsilon", "0.125", "--analyst", "bob")
    shown = json_of(clinic("budget", "--json"))["analysts"]
    assert {name: budget["remaining"]["epsilon"] for name, budget in shown.items()} == {"ann": "0.5", "bob": "0.125"}


def test_ledger_lists_entries(clinic):
    clinic("ask", COUNT, "--epsilon", "0.5", "--analyst", "ann")
    shown = json_of(clinic("ledger", "--json"))
    assert [entry["kind"] for entry in shown["entries"]] == ["open", "charge", "answer"]
    assert shown["entries"][1]["analyst"] == "ann"
    assert shown["entries"][1]["loss"]["epsilon"] == "0.5"
    assert [entry["number"] for entry in json_of(clinic("ledger", "--last", "1", "--json"))["entries"]] == [3]
    lines = clinic("ledger").stdout.splitlines()
    assert lines[0].split()[:4] == ["entry", "time", "kind", "cost"]
    assert lines[3].strip() == f"ann: {COUNT}", "below its charge"
    assert len(lines) == 6
    assert clinic("ledger", "--last", "0").exit_code == 2


def test_the_list_fits_80_columns(clinic):
    """Long names, questions and amounts are shortened; --json and `ledger show` print them in full."""
    name, epsilon = "the analyst with a very long name" * 2, "0.12345678901234567890123456789"
    sql = COUNT + " WHERE " + " AND ".join(["age < 90"] * 20)
    assert clinic("ask", sql, "--epsilon", epsilon, "--analyst", name).exit_code == 0
    assert max(len(line) for line in clinic("ledger").stdout.splitlines()) <= 80
    charge = json_of(clinic("ledger", "--json"))["entries"][1]
    assert (charge["analyst"], charge["loss"]["epsilon"]) == (name, epsilon)
    assert charge["question"]["questions"][0]["sql"].count("age < 90") == 20
    assert len(charge["hash"]) == 64


def test_ledger_shows_the_question(clinic):
    clinic("ask", COUNT, "--epsilon", "0.5", "--analyst", "ann")
    clinic("ask", COUNT + " WHERE age > 30 AND " + " AND ".join(["age < 90"] * 20), "--margin", "n=20")
    entries = json_of(clinic("ledger", "--json"))["entries"]
    asked = [entry["question"] for entry in entries if entry["kind"] == "charge"]
    assert asked[0]["questions"] == [{"sql": COUNT, "columns": ["n"]}]
    assert asked[1]["questions"][0]["margin"] == {"n": 20}
    assert [entry["question"] for entry in entries if entry["kind"] != "charge"] == [None] * (len(entries) - 2)
    lines = clinic("ledger").stdout.splitlines()
    assert any(line.endswith(COUNT) for line in lines)
    assert any(line.endswith("…") for line in lines), "a long one is cut short"
    number = next(str(entry["number"]) for entry in entries if entry["kind"] == "charge" and "margin" in str(entry))
    shown = clinic("ledger", "show", number).stdout
    assert "wanted: ±20 of n" in shown
    assert shown.count("age < 90") == 20
    assert json_of(clinic("ledger", "show", number, "--json"))["question"] == asked[1]
    assert clinic("ledger", "show", "999").exit_code == 4


def test_ledger_verify(clinic):
    clinic("ask", COUNT, "--epsilon", "0.5")
    assert clinic("ledger", "verify").stdout.startswith("All entries are correct. 3 entries")
    shown = json_of(clinic("ledger", "verify", "--json"))
    assert (shown["ok"], shown["entries"], shown["first_broken"]) == (True, 3, None)
    assert shown["head"] == json_of(clinic("ledger", "--json"))["entries"][-1]["hash"]


def test_an_altered_ledger_leaves_with_one(clinic):
    clinic("ask", COUNT, "--epsilon", "0.5", "--analyst", "ann")
    with sqlite3.connect(clinic.folder / "ledger.db") as database:
        (name,) = next(database.execute("SELECT name FROM sqlite_master WHERE sql LIKE '%analyst_spent%'"))
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{trigger}"')
        database.execute(f"UPDATE {name} SET analyst = 'bob' WHERE number = 2")
    database.close()
    result = clinic("ledger", "verify")
    assert result.exit_code == 1
    assert "ntry 2" in result.output
    assert clinic("ledger", "verify", "--json").exit_code == 1


def test_without_a_dataset_all_leave_with_four(tmp_path):
    for arguments in (["budget"], ["ledger"], ["ledger", "verify"], ["ask", COUNT, "--epsilon", "1"]):
        result = run("-C", tmp_path, *arguments)
        assert result.exit_code == 4
        assert "sfumato init" in result.stderr


def test_a_prepaid_charge_does_not_look_like_a_failed_one(clinic):
    with sf.open(clinic.folder) as opened:
        record = write_prepaid_record("10 statistical queries", table="patients")
        prepay(opened.ledger(), "ann", PureDP("0.5"), PureDP("0.5"), record)[0].close()
        certificate = Certificate(
            (), opened.ledger().population, 0, (), PureDP("0.25"), plan_digest="0" * 64, answer_key="0" * 64
        )
        opened.ledger().void(opened.ledger().reserve("bob", certificate))  # negative control: a charge that failed
    assert clinic("ask", COUNT, "--epsilon", "0.125").exit_code == 0
    entries = json_of(clinic("ledger", "--json"))["entries"]
    outcomes = [entry["outcome"] for entry in entries]
    assert outcomes == [None, None, "prepaid", None, "failed", None, "answered"]
    lines = clinic("ledger").stdout.splitlines()
    assert any("ann: prepaid for 10 statistical queries; table patients" in line for line in lines)
    kinds = [line.split()[3] for line in lines[1:] if line.split()[0].isdigit()]
    assert kinds == ["open", "charge", "prepaid", "charge", "failed", "charge", "answer"]
    assert "prepaid for 10 statistical queries; table patients" in clinic("ledger", "show", "2").stdout
    assert "the process that paid gives the answers" in " ".join(clinic("ledger", "show", "3").stdout.split())
    assert "the charge is spent" in " ".join(clinic("ledger", "show", "5").stdout.split())
