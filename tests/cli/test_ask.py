import csv
import json

import pytest
from clinic import BY_CITY, COUNT, json_of, read_refusal
from pyarrow import parquet

import sfumato as sf


def test_ask_json_is_exactly_the_answers_dict(clinic):
    shown = json_of(clinic("ask", BY_CITY, "--epsilon", "0.5", "--json"))
    first = ["columns", "rows", "intervals", "cost", "remaining", "entry", "cached", "warnings"]
    assert list(shown) == [*first, "loss", "one_person_changes", "confidence", "interval_note"]
    assert shown["interval_note"].startswith("Intervals: 95 % confidence, for the noise only. Contribution bounds")
    assert shown["columns"] == ["city", "n", "age"]
    assert [row["city"] for row in shown["rows"]] == ["Rome", "Oslo"]
    assert shown["cost"] == {"epsilon": "0.5", "delta": "0"}
    assert shown["remaining"] == {"epsilon": "1.5", "delta": "0"}
    with sf.open(clinic.folder) as people:
        again = people.ask(BY_CITY, epsilon=0.5).to_dict()
    assert (again["rows"], again["entry"]) == (shown["rows"], shown["entry"])
    assert [interval["n"] for interval in again["intervals"]] == [interval["n"] for interval in shown["intervals"]]
    assert again["cached"]


def test_answers_are_near_the_truth(clinic):
    shown = json_of(clinic("ask", COUNT, "--epsilon", "2", "--json"))
    assert abs(shown["rows"][0]["n"] - 300) < 40  # fails once in e^-80
    low, high = shown["intervals"][0]["n"]
    assert low < high


def test_asked_again_it_is_free(clinic):
    first = json_of(clinic("ask", COUNT, "--epsilon", "1", "--json"))
    again = json_of(clinic("ask", COUNT, "--epsilon", "1", "--json"))
    assert (first["cached"], again["cached"]) == (False, True)
    assert again["rows"] == first["rows"]
    assert again["cost"]["epsilon"] == "0"
    assert "Free: answered before" in clinic("ask", COUNT, "--epsilon", "1").stdout


def test_a_margin_buys_the_least_epsilon(clinic):
    shown = json_of(clinic("ask", COUNT, "--margin", "n=20", "--json"))
    assert 0 < float(shown["cost"]["epsilon"]) < 0.2
    low, high = shown["intervals"][0]["n"]
    assert high - low <= 40


def test_piped_it_is_plain(clinic):
    shown = clinic("ask", BY_CITY, "--epsilon", "1").stdout
    lines = shown.splitlines()
    assert lines[0].split() == ["city", "n", "age"]
    assert lines[1].startswith("Rome  ")
    assert lines[-1] == (
        "Cost: ε = 1. Left: ε = 1. Intervals: 95 % confidence, for the noise only. "
        "Contribution bounds and clamping can add bias; `diagnose` estimates how much, one table at a time. "
        "Rows whose key is NULL are in no group: COALESCE in the key gives them one."
    )
    assert not set(shown) & set("\x1b│┃─━●")


def test_a_person_sees_colour_a_table_and_error_bars(clinic):
    shown = clinic("ask", BY_CITY, "--epsilon", "1", env={"FORCE_COLOR": "1", "COLUMNS": "120"}).stdout
    assert set("\x1b│┃●") <= set(shown)
    assert shown.count("●") == 2


def test_preview_is_free(clinic):
    shown = json_of(clinic("preview", BY_CITY, "--epsilon", "0.5", "--json"))
    always = {
        "cost",
        "fits",
        "margins",
        "reasons",
        "confidence",
        "margin_note",
        "one_person_changes",
        "suggestions",
        "warnings",
        "questions_left_by_delta",
    }
    assert set(shown) == always
    assert shown["cost"] == {"epsilon": "0.5", "delta": "0"}
    assert shown["fits"] is True
    assert shown["margins"]["n"] > 0
    assert shown["margins"]["age"] is None
    assert "assume" in shown["reasons"]["age"]
    assert json_of(clinic("budget", "--json"))["spent"]["epsilon"] == "0"


def test_preview_for_an_assumed_count(clinic):
    shown = json_of(clinic("preview", BY_CITY, "--epsilon", "0.5", "--assume", "n=500", "--json"))
    assert 0 < shown["margins"]["age"] < 10
    assert shown["reasons"] == {}


def test_preview_says_what_does_not_fit(clinic):
    assert "does not fit" in clinic("preview", COUNT, "--epsilon", "9").stdout
    assert "which fits" in clinic("preview", COUNT, "--epsilon", "1").stdout
    assert json_of(clinic("preview", COUNT, "--epsilon", "9", "--json"))["fits"] is False


def test_explain(clinic):
    text = clinic("explain", COUNT, "--epsilon", "0.5").stdout
    assert "sensitivity 1;" in text
    shown = json_of(clinic("explain", COUNT, "--epsilon", "0.5", "--json"))
    assert set(shown) == {"cost", "loss", "asked", "measurements", "text"}
    assert shown["measurements"][0]["mechanism"] == "discrete Laplace"
    assert shown["text"].splitlines() == text.strip().splitlines()


def test_the_loss_for_a_group_of_people(clinic):
    words = "Privacy loss for a group of 4 people: ε = 2. Adding or removing them"
    assert words in clinic("explain", COUNT, "--epsilon", "0.5", "--people", "4").stdout
    shown = json_of(clinic("explain", COUNT, "--epsilon", "0.5", "--people", "4", "--json"))
    assert shown["loss"] == {"people": 4, "epsilon": "2", "delta": "0"}
    assert shown["asked"][0]["one_person_changes"] == 1
    assert words in clinic("ask", COUNT, "--epsilon", "0.5", "--people", "4").stdout
    again = json_of(clinic("ask", COUNT, "--epsilon", "0.5", "--people", "4", "--json"))
    assert again["cached"] is True
    assert again["loss"]["epsilon"] == "2"
    assert again["cost"]["epsilon"] == "0"
    assert clinic("ask", COUNT, "--epsilon", "0.5", "--people", "0").exit_code == 2


@pytest.mark.parametrize(("name", "start"), [("plot.svg", b"<svg"), ("plot.PNG", b"\x89PNG")])
def test_plots_are_saved(clinic, tmp_path, name, start):
    done = clinic("ask", BY_CITY, "--epsilon", "1", "--plot", tmp_path / name)
    assert done.exit_code == 0
    assert f"Saved {tmp_path / name}." in done.stdout
    assert (tmp_path / name).read_bytes().startswith(start)


def test_an_answer_without_numbers_is_shown_before_its_plot_is_refused(clinic, tmp_path):
    sql = "SELECT city FROM patients GROUP BY city HAVING COUNT(*) > 1e6"
    done = clinic("ask", sql, "--epsilon", "1", "--plot", tmp_path / "x.svg", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["rows"] == []
    assert json.loads(done.stderr)["error"] == "plot"


def test_what_is_not_a_number_is_null(clinic, tmp_path):
    shown = json_of(clinic("ask", "SELECT COUNT(*) / 0 AS r, COUNT(*) AS n FROM patients", "--epsilon", "1", "--json"))
    assert shown["rows"][0]["r"] is None
    assert "r" not in shown["intervals"][0]  # what has no value has no interval
    plain = clinic("ask", "SELECT COUNT(*) / 0 AS r FROM patients", "--epsilon", "1", "--plot", tmp_path / "r.svg")
    assert plain.stdout.splitlines()[1].strip() == "NULL"
    assert plain.exit_code == 1
    assert "no number to plot" in plain.stderr


def test_tables_are_saved(clinic, tmp_path):
    first, second = tmp_path / "out.parquet", tmp_path / "out.csv"
    shown = json_of(clinic("ask", BY_CITY, "--epsilon", "1", "--out", first, "--json"))
    clinic("ask", BY_CITY, "--epsilon", "1", "--out", second)
    columns = ["city", "n", "n_low", "n_high", "age", "age_low", "age_high"]
    kept = parquet.read_table(first)
    assert kept.column_names == columns
    assert kept.column("n").to_pylist() == [row["n"] for row in shown["rows"]]
    with second.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == columns
    assert [float(row["n_low"]) for row in rows] == pytest.approx([interval["n"][0] for interval in shown["intervals"]])


@pytest.mark.parametrize(
    "arguments",
    [
        ["ask", COUNT],
        ["ask", COUNT, "--epsilon", "1", "--rho", "1"],
        ["ask", COUNT, "--epsilon", "1", "--margin", "n=1"],
        ["ask", COUNT, "--margin", "n"],
        ["ask", COUNT, "--margin", "n=x"],
        ["ask", COUNT, "--margin", "n=-1"],
        ["ask", COUNT, "--margin", "n=nan"],
        ["ask", COUNT, "--epsilon", "1", "--plot", "plot.pdf"],
        ["ask", COUNT, "--epsilon", "1", "--out", "rows.xlsx"],
        ["ask", COUNT, "--epsilon", "1", "--out", "no/such/folder/rows.csv"],
        ["preview", COUNT],
        ["preview", COUNT, "--epsilon", "1", "--assume", "m=5"],
        ["explain", COUNT],
    ],
)
def test_usage_is_refused_with_two_and_costs_nothing(clinic, arguments):
    told = read_refusal(clinic(*arguments, "--json"), 2)
    assert told["error"] == "usage"
    assert json_of(clinic("budget", "--json"))["spent"]["epsilon"] == "0"


def test_overspending_leaves_with_three(clinic):
    plain = clinic("ask", COUNT, "--epsilon", "2.5")
    assert plain.exit_code == 3
    assert plain.stdout == ""
    message, hint = plain.stderr.splitlines()
    assert message.startswith("Refused: This costs epsilon = 2.5")
    assert hint == "A question of at most epsilon = 2 still fits."
    assert read_refusal(clinic("ask", COUNT, "--epsilon", "2.5", "--json"), 3)["error"] == "budget-exceeded"


@pytest.mark.parametrize(
    "arguments",
    [
        ["ask", "SELECT * FROM patients", "--epsilon", "1"],
        ["ask", "SELECT COUNT(*) FROM nobody", "--epsilon", "1"],
        ["ask", "no SQL at all", "--epsilon", "1"],
        ["ask", COUNT, "--epsilon", "0"],
        ["ask", COUNT, "--epsilon", "x"],
        ["ask", COUNT, "--epsilon", "1", "--confidence", "2"],
        ["ask", COUNT, "--margin", "age=3"],
        ["ask", COUNT, "--epsilon", "1", "--analyst", "\x07"],
        ["preview", "SELECT age FROM patients", "--epsilon", "1"],
        ["explain", "SELECT age FROM patients", "--epsilon", "1"],
    ],
)
def test_what_cannot_be_answered_leaves_with_four(clinic, arguments):
    assert read_refusal(clinic(*arguments, "--json"), 4)["message"]
    plain = clinic(*arguments)
    assert plain.exit_code == 4
    assert plain.stderr.startswith("Refused: ")
    assert "Traceback" not in plain.output


def test_rho_is_for_zcdp(clinic):
    assert read_refusal(clinic("ask", COUNT, "--rho", "0.1", "--json"), 1)["error"] == "ledger-currency"


def test_what_is_unexpected_leaves_with_one_and_its_text_stays_in(clinic, monkeypatch):
    def fail(*_):
        raise RuntimeError("patient p7 has age 27")

    monkeypatch.setattr("sfumato.opening.open_folder", fail)
    result = clinic("ask", COUNT, "--epsilon", "1")
    assert result.exit_code == 1
    assert "RuntimeError" in result.stderr
    assert "p7" not in result.output


def test_a_missing_ledger_leaves_with_one(clinic):
    clinic("ask", COUNT, "--epsilon", "0.5")
    (clinic.folder / "ledger.db").unlink()
    error = read_refusal(clinic("ask", COUNT, "--epsilon", "1", "--json"), 1)
    assert error["error"] == "ledger-missing"
    assert str(clinic.folder / "ledger.db") in error["message"]
    assert "sfumato ledger restore" in error["hint"]


def test_infinity_is_not_json(capsys):
    from sfumato.cli.show import print_json

    print_json({"a": [float("inf"), float("nan"), 1.5]})
    assert json.loads(capsys.readouterr().out) == {"a": [None, None, 1.5]}


def test_a_spinner_shows_when_it_takes_long(monkeypatch):
    import io
    import time

    from rich.console import Console

    from sfumato.cli import show

    screen = io.StringIO()
    monkeypatch.setattr(show, "PATIENCE", 0.01)
    monkeypatch.setattr(show, "to_stderr", lambda: Console(file=screen, force_terminal=True))
    with show.working("Counting slowly"):
        time.sleep(0.3)
    assert "Counting slowly" in screen.getvalue()
    monkeypatch.setattr(show, "PATIENCE", 5)
    with show.working("At once"):
        pass
    assert "At once" not in screen.getvalue()
    monkeypatch.setattr(show, "PATIENCE", 0)
    monkeypatch.setattr(show, "to_stderr", lambda: Console(file=screen))
    with show.working("Piped"):
        time.sleep(0.05)
    assert "Piped" not in screen.getvalue()


def test_warnings_are_printed_and_in_json(clinic):
    sql = f"{COUNT} WHERE city = 'Roma'"
    told = "Did you mean 'Rome'?"
    for command in ("preview", "ask"):
        assert told in clinic(command, sql, "--epsilon", "0.1").stdout
        assert told in json_of(clinic(command, sql, "--epsilon", "0.1", "--json"))["warnings"][0]
        assert json_of(clinic(command, COUNT, "--epsilon", "0.1", "--json"))["warnings"] == []
    assert told in clinic("explain", sql, "--epsilon", "0.1").stdout


def test_explain_writes_a_page_with_links(clinic, tmp_path):
    page = tmp_path / "page.html"
    shown = clinic("explain", f"{COUNT} WHERE age < 3", "--epsilon", "1", "--html", str(page))
    assert shown.exit_code == 0, shown.output
    assert "[K-25, K-18, K-09]" in shown.stdout
    assert "age &lt; 3" in page.read_text()
    assert '<a href="docs/claims/K-25.md" title="sensitivity of a measurement">K-25</a>' in page.read_text()


@pytest.mark.parametrize(
    ("option", "sql"),
    [
        ("--max-rows", "SELECT COUNT(*) AS n FROM visits"),
        ("--max-groups", "SELECT site, COUNT(DISTINCT patient_id) AS n FROM visits GROUP BY site"),
    ],
)
def test_limits_of_one_question_make_its_margin_smaller(clinic, option, sql):
    rows = "".join(f"p{index // 4},{'north' if index % 2 else 'south'}\n" for index in range(4_000))
    (clinic.folder / "visits.csv").write_text(f"patient_id,site\n{rows}")
    declared = ("--unit", "patient_id", "--max-rows", "4", "--max-groups", "2", "--column", "site:category:north,south")
    assert clinic("add", "visits", "visits.csv", *declared).exit_code == 0
    wide, narrow = (
        json_of(clinic("preview", sql, "--epsilon", "0.5", *limit, "--json"))["margins"]["n"]
        for limit in ((), (option, "1"))
    )
    assert narrow < 0.6 * wide
    low, high = json_of(clinic("ask", sql, "--epsilon", "0.5", option, "1", "--json"))["intervals"][0]["n"]
    assert high - low < 1.2 * wide  # the margin is half of it
