"""`sfumato survey`: a new survey, a device's report, the results, and every refusal with its exit code."""

import json
import socket
import time

import pytest
from clinic import json_of, read_refusal, run

from sfumato.cli.survey_results import _choose_decimals

LABELS = ("--labels", "chrome,firefox,safari,edge,other", "--epsilon", "1")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_DEVICE", str(tmp_path / "device.db"))


def survey(*arguments, **options):
    return run("survey", *arguments, **options)


def new(*arguments, name="s.json", question="Which browser do you use?"):
    return json_of(survey("new", name, question, *(arguments or LABELS), "--json"))


def test_the_whole_way(tmp_path):
    made = survey("new", "s.json", "Which browser do you use?", *LABELS, "--minimum-batch", "2", "--people", "50000")
    assert made.exit_code == 0, made.output
    for part in (
        "50,000 people. Chosen: krr",
        "computed from the table (krr)",
        "±1.37 points (95 % confidence)",
        "Wrote s.json",
    ):
        assert part in made.stdout
    assert (tmp_path / "s.json.key").stat().st_mode & 0o777 == 0o600
    key = json_of(survey("show", "s.json", "--json"))["public_key"]
    assert "The signature is valid" in survey("verify", "s.json", "--public-key", key).stdout
    assert "chrome, firefox" in survey("show", "s.json").stdout
    for person in range(3):
        done = survey("report", "s.json", "firefox", "--device", f"{person}.db", "--out", "r.jsonl")
        assert done.exit_code == 0, done.output
        assert "It cost ε = 1." in done.stdout
    again = survey("report", "s.json", "edge", "--device", "2.db", "--out", "r.jsonl")
    assert "so it cost nothing" in again.stdout
    with open("r.jsonl", "a") as file:
        file.write("nonsense\n")
    shown = json_of(survey("ingest", "s.json", "r.jsonl", "--json"))
    assert shown["received"] == {"conflict": 0, "untimely": 0, "withdrawn": 0} | {
        "accepted": 3,
        "duplicate": 1,
        "malformed": 1,
        "foreign": 0,
    }
    assert shown["periods"] == {"0": 3}
    found = survey("results", "s.json")
    assert found.exit_code == 0, found.output
    headline, labels = found.stdout.index("Local ε = 1"), found.stdout.index("With a shuffler and 3 reports")
    assert headline < found.stdout.index("chrome") < labels
    for part in (
        "unbiased",
        "95 % interval",
        "consistent",
        "1 % fake",
        "colludes neither",
        "do not cover fake reports",
    ):
        assert part in found.stdout
    shown = json_of(survey("results", "s.json", "--json", "--fakes", "5", "--simultaneous", "--confidence", "0.9"))
    assert [estimate["label"] for estimate in shown["estimates"]] == ["chrome", "firefox", "safari", "edge", "other"]
    assert shown["fakes"] == 0.05
    assert shown["confidence"] == 0.9
    for picture in ("p.svg", "p.png"):
        assert "Saved" in survey("plot", "s.json", picture).stdout
    assert (tmp_path / "p.svg").read_text().startswith("<svg")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_a_million_people_in_under_a_minute():
    new()
    started = time.perf_counter()
    shown = json_of(survey("simulate", "s.json", "--people", "1000000", "--json"))
    assert time.perf_counter() - started < 60
    assert shown["people"] == 1_000_000
    assert shown["received"]["accepted"] == 1_000_000
    for estimate, truth in zip(shown["estimates"], shown["population"], strict=True):
        assert abs(estimate["unbiased"] - truth) < 3.2 * (estimate["high"] - estimate["low"]) / 2  # six standard errors
        assert estimate["high"] - estimate["low"] < 0.01
    assert float(shown["shuffled"]["epsilon"]) < 0.01 < float(shown["epsilon"]) <= 1


def test_simulate_shows_the_truth_and_keeps_files(tmp_path):
    new("--labels", "no,yes", "--epsilon", "2")
    done = survey("simulate", "s.json", "--people", "3000", "--shares", "0.2,0.8", "--workers", "3", "--keep", "kept")
    assert done.exit_code == 0, done.output
    assert "truth" in done.stdout
    assert "of 2 intervals contain" in done.stdout
    assert "Simulated 3,000 people" in done.stdout
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert kept == [f"collected-{period}.db" for period in range(3)] + [
        f"reports-{period}.parquet" for period in range(3)
    ]
    files = [f"kept/reports-{period}.parquet" for period in range(3)]
    shown = json_of(survey("ingest", "s.json", *files, "--state", "mine.db", "--json"))
    assert shown["received"]["accepted"] == 3000
    merged = json_of(survey("ingest", "s.json", "--state", "mine.db", "--merge", "kept/collected-2.db", "--json"))
    assert merged["received"]["duplicate"] == 1000
    assert read_refusal(survey("simulate", "s.json", "--people", "10", "--shares", "1,1", "--json"), 4)
    assert read_refusal(survey("simulate", "s.json", "--people", "10", "--json"), 4)["error"] == "survey-batch"


@pytest.mark.parametrize(
    ("options", "value", "kind"),
    [
        (("--lower", "-5", "--upper", "5", "--epsilon", "2"), "-1.5", "hybrid"),
        (("--questions", "a,b,c", "--epsilon", "1"), "yes,no,yes", "questions"),
        (("--labels", "a,b,c", "--epsilon", "1", "--mechanism", "hadamard"), "b", "hadamard"),
        (("--labels", "a,b,c", "--epsilon", "1", "--every-days", "7", "--keep-epsilon", "2"), "b", "krr"),
    ],
)
def test_every_kind_of_survey(options, value, kind):
    made = new(*options, "--minimum-batch", "1", name="kind.json")
    assert made["mechanism"]["mechanism"] == kind
    assert made["margin"] > 0
    line = survey("report", "kind.json", value).stdout
    assert json.loads(line)["survey"] == made["id"]
    with open("r.jsonl", "w") as file:
        file.write(line)
    assert json_of(survey("ingest", "kind.json", "r.jsonl", "--json"))["received"]["accepted"] == 1
    assert survey("show", "kind.json").exit_code == 0
    if kind != "questions":  # one report speaks of one question
        assert survey("results", "kind.json").exit_code == 0
    done = survey("simulate", "kind.json", "--people", "2000")
    assert done.exit_code == 0, done.output


def test_labels_from_a_file_with_commas(tmp_path):
    (tmp_path / "labels.txt").write_text("yes, often\nno, never\n\n")
    made = new("--labels-from", "labels.txt", "--epsilon", "1")
    assert made["domain"]["labels"] == ["yes, often", "no, never"]
    assert json.loads(survey("report", "s.json", "no, never").stdout)["report"] in (0, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--epsilon", "1"),
        ("--epsilon", "1", "--labels", "a,b", "--lower", "0", "--upper", "1"),
        ("--epsilon", "1", "--lower", "0"),
        ("--labels", "a,b"),
        ("--epsilon", "1", "--labels", "a,b", "--labels-from", "x"),
    ],
)
def test_usage_leaves_with_two(arguments):
    assert survey("new", "s.json", "?", *arguments).exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("--epsilon", "0", "--labels", "a,b"),
        ("--epsilon", "x", "--labels", "a,b"),
        ("--epsilon", "1", "--labels", "a,a"),
        ("--epsilon", "1", "--labels", "a"),
        ("--epsilon", "1", "--lower", "1", "--upper", "0"),
        ("--epsilon", "1", "--labels", "a,b", "--mechanism", "nonsense"),
        ("--epsilon", "1", "--labels", "a,b", "--keep-epsilon", "2"),
        ("--epsilon", "1", "--labels", "a,b", "--lifetime", "0.1"),
        ("--epsilon", "1", "--labels", "a,b", "--endpoint", "http://x"),
    ],
)
def test_what_cannot_be_a_survey_leaves_with_four_and_no_file(arguments, tmp_path):
    read_refusal(survey("new", "s.json", "?", *arguments, "--json"), 4)
    assert not (tmp_path / "s.json").exists()


def test_a_survey_that_is_refused_leaves_no_key_behind(tmp_path):
    for wrong in (("--labels", "yes"), ("--labels", "a,b", "--endpoint", "http://example.org")):
        assert survey("new", "s.json", "Which?", "--epsilon", "1", *wrong).exit_code == 4
        assert list(tmp_path.iterdir()) == []
    assert survey("new", "s.json", "Which?", "--epsilon", "1", "--labels", "a,b").exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"s.json", "s.json.key"}


def test_a_new_survey_warns_of_what_devices_will_refuse():
    made = survey("new", "a.json", "Which?", "--labels", "a,b,c", "--epsilon", "6")
    assert "the default cap for one survey is ε = 4" in made.stdout
    made = survey(
        "new", "b.json", "Which?", "--labels", "a,b,c", "--epsilon", "1", "--lifetime", "9", "--every-days", "7"
    )
    assert "Devices stop at ε = 4 by default" in made.stdout
    assert "the epsilon in total allows 9 of 53 periods" in made.stdout
    assert "A device can answer in 9 of 53 periods" in made.stdout
    made = survey(
        "new", "c.json", "Which?", "--labels", "a,b,c", "--epsilon", "1", "--every-days", "7", "--keep-epsilon", "2",
        "--keep-periods", "53",
    )  # fmt: skip
    assert "the epsilon in total allows 53 of 53 periods" in made.stdout
    for warning in ("Devices", "A device"):
        assert warning not in made.stdout


def test_questions_are_compared_before_they_are_asked():
    made = survey("new", "s.json", "Which?", "--questions", "a,b,c", "--epsilon", "1", "--people", "20000")
    assert "3 yes-or-no questions, 20,000 people. Better method: sample" in made.stdout


def test_results_say_how_many_reports_wait():
    new(*LABELS, "--minimum-batch", "2")
    for person in range(3):
        survey("report", "s.json", "firefox", "--device", f"{person}.db", "--out", f"{person // 2}.jsonl")
    survey("ingest", "s.json", "0.jsonl")
    assert json_of(survey("results", "s.json", "--json"))["waiting"] == 0
    assert "Period 0: 3 reports." in survey("ingest", "s.json", "1.jsonl").stdout
    shown = json_of(survey("results", "s.json", "--json"))
    assert (shown["people"], shown["waiting"]) == (2, 1)
    assert "Not included yet: 1 report." in survey("results", "s.json").stdout


@pytest.mark.parametrize(("width", "places"), [(0.0063, 4), (0.11, 2), (0.72, 2), (7, 1), (70, 0), (0, 4), (1e-30, 12)])
def test_as_many_digits_are_shown_as_mean_something(width, places):
    assert _choose_decimals(width) == places


def test_a_survey_is_never_written_over(tmp_path):
    new()
    before = (tmp_path / "s.json").read_bytes()
    assert read_refusal(survey("new", "s.json", "?", *LABELS, "--json"), 2)["error"] == "usage"
    assert (tmp_path / "s.json").read_bytes() == before
    other = new(*LABELS, "--key", "s.json.key", name="t.json")
    assert other["public_key"] == json_of(survey("show", "s.json", "--json"))["public_key"]


def test_altered_surveys_are_refused_by_every_command(tmp_path):
    made = new()
    text = (tmp_path / "s.json").read_text()
    (tmp_path / "bad.json").write_text(text.replace("browser", "Browser"))
    for arguments in (
        ("show", "bad.json"), ("verify", "bad.json", "--public-key", made["public_key"]),
        ("report", "bad.json", "edge"), ("simulate", "bad.json"), ("ingest", "bad.json", "s.json"),
    ):  # fmt: skip
        assert read_refusal(survey(*arguments, "--json"), 4)["error"] == "survey-signature"
    assert read_refusal(survey("verify", "s.json", "--public-key", "0" * 64, "--json"), 4)["error"] == "survey-key"
    assert read_refusal(survey("show", "s.json", "--public-key", "0" * 64, "--json"), 4)["error"] == "survey-key"
    assert survey("show", "none.json").exit_code == 1
    assert not (tmp_path / "device.db").exists()


def test_caps_and_answers_are_checked(tmp_path):
    new(*LABELS, "--every-days", "1")
    assert read_refusal(survey("report", "s.json", "edge", "--cap", "0.5", "--json"), 4)["error"] == "survey-cap"
    told = read_refusal(survey("report", "s.json", "lynx", "--json"), 4)
    assert "lynx" not in json.dumps(told)
    from sfumato.local.survey.device import Device

    Device(tmp_path / "device.db").set_caps(lifetime="0.5")
    assert read_refusal(survey("report", "s.json", "edge", "--json"), 3)["error"] == "budget-exceeded"
    new("--lower", "0", "--upper", "1", "--epsilon", "1", name="n.json")
    assert read_refusal(survey("report", "n.json", "x", "--json"), 2)
    new("--questions", "a,b", "--epsilon", "1", name="q.json")
    assert read_refusal(survey("report", "q.json", "yes,maybe", "--json"), 2)
    assert read_refusal(survey("report", "q.json", "yes", "--json"), 4)


def test_results_wait_for_enough_reports():
    new()
    assert read_refusal(survey("results", "s.json", "--json"), 2)
    with open("r.jsonl", "w") as file:
        file.write(survey("report", "s.json", "edge").stdout)
    survey("ingest", "s.json", "r.jsonl")
    assert "shown from 1,000 reports on" in survey("ingest", "s.json", "r.jsonl").stdout
    assert read_refusal(survey("results", "s.json", "--json"), 4)["error"] == "survey-batch"
    assert read_refusal(survey("plot", "s.json", "p.svg", "--json"), 4)["error"] == "survey-batch"
    assert read_refusal(survey("plot", "s.json", "p.pdf", "--json"), 2)
    assert read_refusal(survey("ingest", "s.json", "--json"), 2)
    assert read_refusal(survey("ingest", "s.json", "none.jsonl", "--json"), 2)
    assert read_refusal(survey("results", "s.json", "--fakes", "100", "--json"), 2)


def test_help_names_every_command():
    shown = survey("--help").output
    for name in ("new", "show", "verify", "simulate", "report", "ingest", "results", "plot"):
        assert f" {name} " in shown
    assert " survey " in run("--help").output


def test_a_survey_with_a_delta_says_what_it_costs_and_that_devices_refuse_it():
    noisy = ("--lower", "0", "--upper", "24", "--mechanism", "gaussian", "--epsilon", "2", "--delta", "1e-5")
    made = survey("new", "hours.json", "How long?", *noisy, "--minimum-batch", "10")
    assert "Devices refuse this survey by default" in made.stdout
    refused = survey("report", "hours.json", "8")
    assert refused.exit_code != 0
    assert "your cap on delta" in refused.output
    shown = survey("simulate", "hours.json", "--people", "2000")
    assert "and δ = 0.00000999" in shown.stdout
    assert "no smaller loss than the local one" in shown.stdout


def test_words_are_asked_reported_and_found():
    asked = ("--words", "5", "--alphabet", "abcdefghijklmnopqrstuvwxyz", "--epsilon", "4", "--minimum-batch", "9")
    made = survey("new", "word.json", "Which word?", *asked)
    assert "a word is found if about" in made.stdout
    said = survey("report", "word.json", "pizzeria")
    assert json.loads(said.stdout.splitlines()[-1])["period"] == 0
    assert "What is reported: pizze" in said.output
    found = survey("simulate", "word.json", "--people", "20000", "--shares", "0.7,0.3")
    assert "0.7" in found.stdout
    assert "of 2 intervals contain the true value." in found.stdout
    assert "may be frequent too" in found.stdout
    assert survey("report", "word.json", "Pizza", "--device", "other.db").exit_code != 0


def test_a_port_that_is_used_is_refused_before_any_address_is_printed():
    new()
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = str(used.getsockname()[1])
        for command in (("serve", "s.json"), ("relay", "http://localhost:9/reports")):
            done = survey(*command, "--port", port)
            assert done.exit_code == 2
            assert "cannot be used" in done.output
            assert "http://localhost:" not in done.stdout
