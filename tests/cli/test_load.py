"""Load reports, changed sources and the options of reading, at the command line."""

import json

import pytest
from clinic import COUNT, PATIENTS, json_of, list_options, read_refusal, run

from sfumato.catalog.catalog_file import load_catalog
from sfumato.cli import load as shown_load

MESSY = "pid,age,city,day\n" + "".join(
    f"p{index},{'41' if index % 2 else 'quarante'},{'Rome' if index % 3 else 'roma'},{index % 28 + 1:02}/12/2024\n"
    for index in range(60)
)
COLUMNS = ("age:integer:0:120", "city:category:Rome,Oslo", "day:date:2020-01-01:2025-12-31")
VALUES = ("quarante", "roma", "/12/2024", "p17")


@pytest.fixture
def folder(tmp_path):
    run("init", tmp_path)
    (tmp_path / "t.csv").write_text(MESSY)
    return tmp_path


def add(folder, *more):
    return run("-C", folder, "add", "t", "t.csv", "--unit", "pid", *list_options(COLUMNS), *more)


def test_add_shows_the_report_on_stdout_and_warnings_on_stderr(folder):
    done = add(folder)
    assert done.exit_code == 0
    assert "60 records read, 0 malformed, 0 dropped; 60 rows pinned." in done.stdout
    assert "exact, without noise. They are for the owner only" in done.stdout
    assert "Warning: t.age: 50 % of the values could not be read" in done.stderr
    assert "--date-format %d/%m/%Y" in done.stderr
    assert f"sfumato -C {folder} prepare t" in done.stderr
    assert not any(value in done.output for value in VALUES)  # stderr is not a terminal


def test_examples_are_shown_at_a_terminal_only(folder, monkeypatch):
    class Seen:
        is_terminal = True

    monkeypatch.setattr(shown_load, "to_stdout", Seen)
    done = add(folder)
    assert "'quarante'" in done.stdout
    assert "'roma'" in done.stdout
    assert "quarante" not in done.stderr


def test_json_has_the_counts_and_no_value(folder):
    done = add(folder, "--json")
    report = json_of(done)["load_report"]
    (table,) = report["tables"]
    assert table["records_read"] == 60
    assert [column["unreadable"] for column in table["columns"]] == [0, 30, 0, 60]
    assert [column["undeclared"] for column in table["columns"]] == [0, 0, 20, 0]
    assert table["people"]["share_over_max_rows"] == 0
    assert {warning["column"] for warning in table["warnings"]} == {"age", "city", "day"}
    assert done.stderr == ""
    assert not any(value in done.output for value in VALUES)


def test_strict_refuses_with_four_and_leaves_no_table(folder):
    before = (folder / "catalog.toml").read_bytes()
    told = read_refusal(add(folder, "--strict", "--json"), 4)
    assert told["error"] == "load-refused"
    assert not any(value in json.dumps(told) for value in VALUES)
    assert (folder / "catalog.toml").read_bytes() == before
    assert not list((folder / ".sfumato").glob("*"))


def test_prepare_strict_leaves_the_pinned_data(clinic):
    pinned = clinic.folder / ".sfumato" / "snapshot.duckdb"
    before = pinned.read_bytes()
    (clinic.folder / "patients.csv").write_text(PATIENTS.replace("Rome", "rome"))
    assert "strict" in read_refusal(clinic("prepare", "--strict", "--json"), 4)["message"]
    assert pinned.read_bytes() == before
    assert clinic("prepare").exit_code == 0


def test_options_of_reading_are_declared_by_add(folder):
    assert add(folder, "--encoding", "latin-1", "--delimiter", ",", "--date-format", "%d/%m/%Y").exit_code == 0
    reading = load_catalog(folder).tables["t"].reading
    assert (reading.encoding, reading.delimiter, reading.date_format) == ("latin-1", ",", "%d/%m/%Y")
    assert read_refusal(add(folder.parent / folder.name, "--decimal", "x", "--json"), 4)


def test_prepare_declares_options_of_reading_and_keeps_the_owners_text(folder):
    add(folder)
    path = folder / "catalog.toml"
    path.write_text(path.read_text() + "# mine\n")
    assert run("-C", folder, "prepare", "T", "--date-format", "%m/%d/%Y", "--decimal", ",").exit_code == 0
    assert run("-C", folder, "prepare", "t", "--date-format", "%d/%m/%Y").exit_code == 0
    reading = load_catalog(folder).tables["t"].reading
    assert (reading.date_format, reading.decimal) == ("%d/%m/%Y", ",")
    assert path.read_text().count("date_format") == 1
    assert path.read_text().endswith("# mine\n")
    assert json_of(run("-C", folder, "check", "--json"))["tables"][0]["pinned"]["declaration_changed"] is False


@pytest.mark.parametrize("arguments", [["--decimal", ","], ["patients", "--all"]])
def test_prepare_refuses_what_contradicts_itself(clinic, arguments):
    assert read_refusal(clinic("prepare", *arguments, "--json"), 2)["hint"]


def test_prepare_names_the_tables_that_there_are(clinic):
    assert "patients" in read_refusal(clinic("prepare", "patient", "--json"), 4)["hint"]


def test_a_refused_option_changes_nothing(clinic):
    before = (clinic.folder / "catalog.toml").read_bytes()
    read_refusal(clinic("prepare", "patients", "--encoding", "klingon", "--json"), 4)
    assert (clinic.folder / "catalog.toml").read_bytes() == before


def test_check_says_which_file_has_changed(clinic):
    assert "The source has not changed since it was pinned." in clinic("check").stdout
    (clinic.folder / "patients.csv").write_text(PATIENTS + "x,1,Rome,true\n")
    shown = clinic("check")
    assert shown.exit_code == 0
    assert "Since it was pinned, patients.csv changed." in shown.stdout
    assert "sfumato prepare" in shown.stdout
    assert json_of(clinic("check", "--json"))["tables"][0]["pinned"] == {
        "pinned": True, "declaration_changed": False, "source": "changed", "changed_files": ["patients.csv"],
    }  # fmt: skip
    assert clinic("prepare").exit_code == 0
    assert json_of(clinic("check", "--json"))["tables"][0]["pinned"]["source"] == "unchanged"


def test_check_works_where_sources_are_gone_or_a_declaration_changed(clinic):
    (clinic.folder / "patients.csv").unlink()
    shown = clinic("check")
    assert shown.exit_code == 0
    assert "Its source is missing" in shown.stdout
    assert json_of(clinic("check", "--json"))["tables"][0]["pinned"]["source"] == "gone"
    kept = clinic("prepare")
    assert "its source is missing: the pinned data stays" in kept.stdout
    path = clinic.folder / "catalog.toml"
    path.write_text(path.read_text().replace("upper = 120", "upper = 99"))
    assert "its declaration changed" in clinic("check").stdout


def test_prepare_with_nothing_to_do_keeps_stored_answers_free(clinic):
    json_of(clinic("ask", COUNT, "--epsilon", "1", "--json"))
    assert "No source and no declaration has changed" in clinic("prepare").stdout
    assert json_of(clinic("ask", COUNT, "--epsilon", "1", "--json"))["cached"]
    (clinic.folder / "other.csv").write_text("x\n1\n")
    clinic("add", "other", "other.csv", "--unit", "ROW", "--column", "x:integer:0:9")
    (clinic.folder / "other.csv").write_text("x\n1\n2\n")
    assert json_of(clinic("prepare", "--json"))["tables"][1]["why"] == "other.csv changed"
    assert json_of(clinic("ask", COUNT, "--epsilon", "1", "--json"))["cached"]


def test_an_answer_does_not_look_at_the_source(clinic, monkeypatch):
    """An analyst cannot learn from an answer that a source has changed."""
    before = clinic("ask", COUNT, "--epsilon", "0.5", "--json")
    source = clinic.folder / "patients.csv"
    source.write_text("changed")
    after = clinic("ask", COUNT, "--epsilon", "0.5", "--json")
    assert json_of(after)["rows"] == json_of(before)["rows"]
    source.unlink()
    assert clinic("ask", COUNT.replace("COUNT(*)", "COUNT(age)"), "--epsilon", "0.5").exit_code == 0


def test_a_first_question_that_loads_tells_what_the_load_lost(folder):
    add(folder)
    for as_json in (False, True):
        (folder / ".sfumato" / "snapshot.duckdb").unlink()
        more = ["--json"] if as_json else []
        done = run("-C", folder, "preview", "SELECT COUNT(*) AS n FROM t", "--epsilon", "1", *more)
        assert done.exit_code == 0
        lines = done.stderr.splitlines()
        told = [json.loads(line)["warning"] for line in lines] if as_json else lines
        assert any("t.age: 50 % of the values could not be read" in warning for warning in told)
        assert not any(value in done.output for value in VALUES)
        again = run("-C", folder, "preview", "SELECT COUNT(*) AS n FROM t", "--epsilon", "1", *more)
        assert again.stderr == ""


def test_a_source_of_one_column_suggests_the_delimiter(tmp_path):
    run("init", tmp_path)
    (tmp_path / "t.csv").write_text("pid^age\n1^2\n")
    unit = ["--unit", "pid", "--column", "age:integer:0:120"]
    told = read_refusal(run("-C", tmp_path, "add", "t", "t.csv", *unit, "--json"), 4)
    assert "--delimiter" in told["hint"]
    assert run("-C", tmp_path, "add", "t", "t.csv", *unit, "--delimiter", "^").exit_code == 0


def test_line_breaks_in_quotes_are_declared_at_the_command_line(folder):
    (folder / "u.csv").write_text('pid,note\n1,"a\n2,b\n3,c\n1,d"\n')
    declare = ("-C", folder, "add", "u", "u.csv", "--unit", "pid", "--column", "note:text")
    told = read_refusal(run(*declare, "--json"), 4)
    assert "line 2: a quoted field holds line 3" in told["message"]
    assert "--quoted-newlines" in told["hint"]
    assert run(*declare, "--on-error", "skip", "--no-quoted-newlines").exit_code == 0
    assert load_catalog(folder).table("u").reading.quoted_newlines is False
    done = run("-C", folder, "prepare", "u", "--quoted-newlines", "--on-error", "refuse", "--json")
    assert json_of(done)["load_report"]["tables"][0]["records_read"] == 1
    assert load_catalog(folder).table("u").reading.quoted_newlines is True
