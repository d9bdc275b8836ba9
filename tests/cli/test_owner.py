import duckdb
import pyarrow as pa
import pytest
from clinic import COLUMNS, COUNT, PATIENTS, json_of, list_options, made, read_refusal, run
from pyarrow import parquet

import sfumato as sf
from sfumato.catalog.catalog_file import load_catalog
from sfumato.cli import owner
from sfumato.cli.owner import _suggest_type


def test_init_writes_a_catalog_that_reads_back(tmp_path):
    place = tmp_path / "new" / "clinic"
    shown = json_of(
        run("init", place, "--epsilon", "1.5", "--delta", "1e-7", "--population", "all", "--neighbours", "replace-one",
            "--json")
    )  # fmt: skip
    dataset = load_catalog(place)
    assert shown["catalog"] == str(place / "catalog.toml")
    assert (dataset.name, dataset.population, dataset.neighbours.value) == ("clinic", "all", "replace-one")
    assert dataset.budget == sf.Budget("1.5", "1e-7")
    assert "# [tables.visits]" in (place / "catalog.toml").read_text()


def test_the_example_in_the_comments_is_sound(tmp_path):
    run("init", tmp_path)
    path = tmp_path / "catalog.toml"
    text = path.read_text()
    example = text[text.index("# [tables.visits]") : text.index("#\n# Many questions on one budget")]
    path.write_text(text + "".join(line.removeprefix("# ") for line in example.splitlines(keepends=True)))
    columns = load_catalog(tmp_path).tables["visits"].columns
    assert set(columns) == {"patient_id", "age", "cost", "site", "day", "seen", "smoker"}
    assert columns["seen"] == sf.DateTime("2020-01-01T00:00:00", "2029-12-31T23:59:59")


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("BIGINT", "integer"), ("DOUBLE", "real"), ("DECIMAL(9,2)", "real"), ("BOOLEAN", "boolean"), ("DATE", "date"),
        ("TIMESTAMP", "datetime"), ("TIMESTAMP_NS", "datetime"), ("TIMESTAMP WITH TIME ZONE", "datetime"),
        ("VARCHAR", "skip"), ("TIME", "skip"),
    ],
)  # fmt: skip
def test_a_schema_suggests_types(kind, wanted):
    assert _suggest_type(kind) == wanted


def test_init_does_not_overwrite(tmp_path):
    assert run("init", tmp_path).exit_code == 0
    before = (tmp_path / "catalog.toml").read_text()
    assert "already" in read_refusal(run("init", tmp_path, "--epsilon", "9", "--json"), 4)["message"]
    assert (tmp_path / "catalog.toml").read_text() == before


@pytest.mark.parametrize("bad", [["--epsilon", "0"], ["--delta", "2"], ["--neighbours", "friends"]])
def test_init_refuses_what_no_catalog_may_say(tmp_path, bad):
    read_refusal(run("init", tmp_path / "x", *bad, "--json"), 4)
    assert not (tmp_path / "x").exists()


def test_add_declares_every_type(tmp_path):
    run("init", tmp_path)
    (tmp_path / "t.csv").write_text("pid,age,x,city,stage,b,t,d\n1,2,0.5,Rome,1,true,hi,2000-01-01\n")
    columns = [
        "age:integer:0:120", "x:real:-0.5:1e3", 'city:category:Rome,"Oslo, N"', "stage:category:1,2", "b:boolean",
        "t:text", "d:date:1900-01-01:2025-12-31",
    ]  # fmt: skip
    arguments = ["--unit", "pid", *list_options(columns), "--max-rows", "5", "--max-groups", "2", "--not-null", "age"]
    shown = json_of(run("-C", tmp_path, "add", "people", "t.csv", *arguments, "--json"))
    table = load_catalog(tmp_path).tables["people"]
    assert dict(table.columns) == {
        "pid": sf.Id(),
        "age": sf.Integer(0, 120, nullable=False),
        "x": sf.Real(-0.5, 1000),
        "city": sf.Category(["Rome", "Oslo, N"]),
        "stage": sf.Category([1, 2]),
        "b": sf.Boolean(),
        "t": sf.Text(),
        "d": sf.Date("1900-01-01", "2025-12-31"),
    }
    assert (table.unit, table.max_rows_per_unit, table.max_groups_per_unit) == ("pid", 5, 2)
    assert shown["unit"] == "pid"
    assert shown["columns"][1] == {"name": "age", "type": "integer", "nullable": False, "lower": 0, "upper": 120}
    assert shown["columns"][-1]["lower"] == "1900-01-01"


@pytest.mark.parametrize(("unit", "option"), [("ROW", "rows"), ("pid", "people")])
def test_add_declares_a_public_number_of_rows_or_people(tmp_path, unit, option):
    (tmp_path / "t.csv").write_text("pid,x\n1,5\n2,7\n3,1\n")
    run("init", tmp_path, "--neighbours", "replace-one")
    given = ["add", "t", "t.csv", "--unit", unit, "--column", "x:integer:1:10", "--not-null", "x"]
    wrong = read_refusal(run("-C", tmp_path, *given, f"--{option}", "4", "--json"), 4)
    assert f"another number of {option}" in wrong["message"]
    assert json_of(run("-C", tmp_path, *given, f"--{option}", "3", "--json"))[option] == 3
    assert getattr(load_catalog(tmp_path).tables["t"], option) == 3
    assert f"Public number of {option}: 3." in run("-C", tmp_path, "check").output
    found = json_of(run("-C", tmp_path, "preview", "SELECT SUM(x) AS s FROM t", "--epsilon", "1", "--json"))
    assert found["margins"]["s"] == pytest.approx(9 * 2.9957, abs=1)  # replace-one of values in [1, 10] moves by 9


@pytest.mark.parametrize(("unit", "option", "hint"), [("ROW", "people", "rows = n"), ("pid", "rows", "people = n")])
def test_rows_are_not_people(tmp_path, unit, option, hint):
    (tmp_path / "t.csv").write_text("pid,x\n1,5\n")
    run("init", tmp_path, "--neighbours", "replace-one")
    given = ["add", "t", "t.csv", "--unit", unit, "--column", "x:integer:1:10", f"--{option}", "1"]
    assert hint in read_refusal(run("-C", tmp_path, *given, "--json"), 4)["hint"]


def test_add_keeps_the_owners_comments_and_a_second_table_can_be_asked(clinic):
    assert json_of(clinic("ask", COUNT, "--epsilon", "1", "--json"))
    (clinic.folder / "rows.csv").write_text("x\n1\n2\n")
    assert clinic("add", "others", "rows.csv", "--unit", "ROW", "--column", "x:integer:0:9").exit_code == 0
    assert "# [tables.visits]" in (clinic.folder / "catalog.toml").read_text()
    asked = clinic("ask", "SELECT COUNT(*) AS n FROM others", "--epsilon", "1", "--json")
    assert abs(json_of(asked)["rows"][0]["n"] - 2) < 60
    assert json_of(clinic("ask", COUNT, "--epsilon", "1", "--json"))["cached"]


def test_what_is_pinned_stays_when_a_source_changes(clinic):
    (clinic.folder / "patients.csv").write_text(PATIENTS.splitlines()[0] + "\n")
    (clinic.folder / "rows.csv").write_text("x\n1\n")
    assert clinic("add", "others", "rows.csv", "--unit", "ROW", "--column", "x:integer:0:9").exit_code == 0
    assert abs(json_of(clinic("ask", COUNT, "--epsilon", "2", "--json"))["rows"][0]["n"] - 300) < 40


def test_a_source_seen_from_here_is_named_from_the_folder(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "p.csv").write_text(PATIENTS)
    monkeypatch.chdir(tmp_path)
    run("init", "clinic")
    added = run("-C", "clinic", "add", "patients", "data/p.csv", "--unit", "patient_id", *list_options(COLUMNS))
    assert added.exit_code == 0
    assert load_catalog(tmp_path / "clinic").tables["patients"].source == "../data/p.csv"
    assert run("-C", "clinic", "ask", COUNT, "--epsilon", "1").exit_code == 0


def test_without_a_terminal_add_says_which_columns_need_a_declaration(tmp_path):
    run("init", tmp_path)
    (tmp_path / "p.csv").write_text(PATIENTS)
    told = read_refusal(run("-C", tmp_path, "add", "p", "p.csv", "--unit", "patient_id", "--json"), 2)
    assert told["message"] == "These columns need a declaration: age, city, smoker."
    assert "--column age:" in told["hint"]
    assert not load_catalog(tmp_path).tables


def test_at_a_terminal_add_asks(tmp_path, monkeypatch):
    monkeypatch.setattr(owner, "is_interactive", lambda: True)
    run("init", tmp_path)
    (tmp_path / "p.csv").write_text(PATIENTS)
    typed = ["intger", "integer", "120", "0", "integer", "0", "120", "category", "Rome, Oslo", ""]
    done = run("-C", tmp_path, "add", "p", "p.csv", "--unit", "patient_id", input="\n".join(typed) + "\n")
    assert done.exit_code == 0, done.output
    assert dict(load_catalog(tmp_path).tables["p"].columns) == {
        "patient_id": sf.Id(), "age": sf.Integer(0, 120), "city": sf.Category(["Rome", "Oslo"]),
    }  # fmt: skip
    assert "There is no type intger" in done.stderr
    assert "must not exceed" in done.stderr
    assert "p17" not in done.output
    assert "Say what each column" not in done.stdout


def test_asking_takes_types_from_a_parquet_schema_and_no_values(tmp_path, monkeypatch):
    monkeypatch.setattr(owner, "is_interactive", lambda: True)
    run("init", tmp_path)
    table = pa.table({"age": [41], "pay": [7.25], "b": [True], "job": ["spy"]})
    parquet.write_table(table, tmp_path / "p.parquet")
    typed = ["", "0", "120", "", "0", "9000", "", "text"]
    done = run("-C", tmp_path, "add", "p", "p.parquet", "--unit", "ROW", input="\n".join(typed) + "\n")
    assert done.exit_code == 0, done.output
    assert dict(load_catalog(tmp_path).tables["p"].columns) == {
        "age": sf.Integer(0, 120), "pay": sf.Real(0, 9000), "b": sf.Boolean(), "job": sf.Text(),
    }  # fmt: skip
    assert not any(value in done.output for value in ("41", "7.25", "spy"))


def test_who_leaves_the_questions_leaves_no_table(tmp_path, monkeypatch):
    monkeypatch.setattr(owner, "is_interactive", lambda: True)
    run("init", tmp_path)
    (tmp_path / "p.csv").write_text(PATIENTS)
    assert run("-C", tmp_path, "add", "p", "p.csv", "--unit", "patient_id", input="integer\n").exit_code == 1
    assert not load_catalog(tmp_path).tables


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--column", "age"], 2),
        (["--column", "age:number:0:1"], 2),
        (["--column", "age:integer"], 2),
        (["--column", "age:integer:0"], 2),
        (["--column", "age:integer:a:b"], 2),
        (["--column", "age:integer:0.5:1"], 2),
        (["--column", "smoker:boolean:yes"], 2),
        (["--column", "city:category"], 2),
        (["--column", "age:integer:0:9", "--column", "age:real:0:9"], 2),
        (["--column", "age:integer:0:9", "--not-null", "pay"], 2),
        (["--column", "patient_id:id", "--not-null", "patient_id"], 2),
        (["--column", "age:integer:120:0"], 4),
        (["--column", "age:real:0:inf"], 4),
        (["--column", "city:category:Rome,Rome"], 4),
        (["--column", "d:date:1900:2000"], 4),
        (["--column", "pay:real:0:9"], 4),
    ],
)
def test_add_refuses_and_writes_nothing(tmp_path, arguments, code):
    run("init", tmp_path)
    (tmp_path / "p.csv").write_text(PATIENTS)
    before = (tmp_path / "catalog.toml").read_bytes()
    assert read_refusal(run("-C", tmp_path, "add", "p", "p.csv", "--unit", "patient_id", *arguments, "--json"), code)[
        "hint"
    ]
    assert (tmp_path / "catalog.toml").read_bytes() == before
    assert not list((tmp_path / ".sfumato").glob("*"))


def test_add_refuses_a_missing_file_a_strange_one_and_a_table_twice(clinic):
    (clinic.folder / "x.json").write_text("{}")
    (clinic.folder / "x.parquet").write_text("no parquet")
    column = ["--unit", "ROW", "--column", "x:integer:0:1", "--json"]
    read_refusal(clinic("add", "p", "gone.csv", *column), 2)
    read_refusal(clinic("add", "p", "x.json", *column), 4)
    read_refusal(clinic("add", "p", "x.parquet", *column), 4)
    read_refusal(clinic("add", "p", "x.parquet", "--unit", "ROW", "--json"), 4)
    read_refusal(clinic("add", "Patients", "patients.csv", *column), 4)
    assert clinic("add", "p", "patients.csv").exit_code == 2  # no --unit


def test_check_shows_tables_units_and_bounds(clinic):
    shown = clinic("check").stdout
    for part in ("epsilon = 2", "Privacy unit: patient_id", "0 to 120", "Rome, Oslo"):
        assert part in shown
    described = json_of(clinic("check", "--json"))
    assert set(described) == {"name", "population", "neighbours", "budget", "tables"}
    assert described["budget"] == {"epsilon": "2", "delta": "0"}
    assert [column["type"] for column in described["tables"][0]["columns"]] == ["id", "integer", "category", "boolean"]


def test_check_leaves_with_four_when_the_catalog_is_not_sound(tmp_path):
    assert "no catalog.toml" in read_refusal(run("-C", tmp_path, "check", "--json"), 4)["message"]
    (tmp_path / "catalog.toml").write_text("[dataset]\n")
    plain = run("-C", tmp_path, "check")
    assert plain.exit_code == 4
    assert plain.stderr.startswith("Refused: ")


def test_check_looks_at_sources_that_are_not_pinned_yet(tmp_path):
    folder = made(tmp_path / "clinic")
    (folder / ".sfumato" / "snapshot.duckdb").unlink()
    assert run("-C", folder, "check").exit_code == 0
    (folder / "patients.csv").write_text("patient_id,city,smoker\n")
    assert "no column age" in read_refusal(run("-C", folder, "check", "--json"), 4)["message"]
    (folder / "patients.csv").unlink()
    assert "no source" in read_refusal(run("-C", folder, "check", "--json"), 4)["message"]


def test_add_takes_many_files_and_a_table_of_a_duckdb_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("init", "clinic")
    parts = tmp_path / "parts"
    parts.mkdir()
    head, *lines = PATIENTS.splitlines()
    for index in range(3):
        (parts / f"p{index}.csv").write_text("\n".join([head, *lines[index::3]]) + "\n")
    with duckdb.connect(str(tmp_path / "c.duckdb")) as connection:
        connection.execute("CREATE SCHEMA ward; CREATE TABLE ward.people AS SELECT * FROM read_csv('parts/*.csv')")
    folder = ["-C", "clinic"]
    unit = ["--unit", "patient_id", *list_options(COLUMNS)]
    assert run(*folder, "add", "patients", "parts/*.csv", *unit).exit_code == 0
    assert run(*folder, "add", "people", "c.duckdb::ward.people", *unit).exit_code == 0
    tables = load_catalog(tmp_path / "clinic").tables
    assert (tables["patients"].source, tables["people"].source) == ("../parts/*.csv", "../c.duckdb::ward.people")
    for name in ("patients", "people"):
        asked = json_of(run(*folder, "ask", f"SELECT COUNT(*) AS n FROM {name}", "--epsilon", "1", "--json"))
        assert abs(asked["rows"][0]["n"] - 300) < 60
    assert run(*folder, "prepare").exit_code == 0
    (tmp_path / "clinic" / ".sfumato" / "snapshot.duckdb").unlink()
    assert run(*folder, "check").exit_code == 0


def test_add_asks_about_the_columns_of_a_duckdb_table_and_shows_no_value(tmp_path, monkeypatch):
    monkeypatch.setattr(owner, "is_interactive", lambda: True)
    run("init", tmp_path)
    with duckdb.connect(str(tmp_path / "c.duckdb")) as connection:
        connection.execute("CREATE TABLE p AS SELECT 41 AS age, 7.25::DECIMAL(9, 2) AS pay, true AS b, 'spy' AS job")
    typed = ["", "0", "120", "", "0", "9000", "", "text"]
    done = run("-C", tmp_path, "add", "p", "c.duckdb", "--unit", "ROW", input="\n".join(typed) + "\n")
    assert done.exit_code == 0, done.output
    assert dict(load_catalog(tmp_path).tables["p"].columns) == {
        "age": sf.Integer(0, 120), "pay": sf.Real(0, 9000), "b": sf.Boolean(), "job": sf.Text(),
    }  # fmt: skip
    assert not any(value in done.output for value in ("41", "7.25", "spy"))


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("gone/*.csv", 2, "no file gone/*.csv"),
        ("gone.duckdb::t", 2, "no file gone.duckdb::t"),
        ("c.duckdb::u", 4, "has no table main.u"),
        ("c.duckdb", 4, "has no table main.p"),
    ],
)
def test_add_says_what_is_wrong_with_a_source(tmp_path, source, code, message):
    run("init", tmp_path)
    with duckdb.connect(str(tmp_path / "c.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    for more in (["--column", "x:integer:0:1"], []):
        told = read_refusal(run("-C", tmp_path, "add", "p", source, "--unit", "ROW", *more, "--json"), code)
        assert message in told["message"]
        assert told["hint"]
    assert not load_catalog(tmp_path).tables


def test_prepare_makes_a_new_version_of_a_changed_source(clinic):
    first = json_of(clinic("ask", COUNT, "--epsilon", "1", "--json"))
    (clinic.folder / "patients.csv").write_text("".join(PATIENTS.splitlines(keepends=True)[:51]))
    assert json_of(clinic("ask", COUNT, "--epsilon", "1", "--json"))["cached"]
    shown = clinic("prepare")
    assert shown.exit_code == 0, shown.output
    assert "patients.csv" in shown.stdout
    assert "patients.csv changed" in shown.stdout
    assert "no longer reused" in shown.stdout
    assert "stays spent" in shown.stdout
    assert "50 records read" in shown.stdout
    assert "for the owner only" in shown.stdout
    spent = json_of(clinic("budget", "--json"))
    again = json_of(clinic("ask", COUNT, "--epsilon", "1", "--json"))
    assert not again["cached"]
    assert again["entry"] != first["entry"]
    assert abs(again["rows"][0]["n"] - 50) < 40
    assert spent["spent"]["epsilon"] == "1"
    assert json_of(clinic("budget", "--json"))["spent"]["epsilon"] == "2"


def test_prepare_mends_a_changed_declaration_and_says_the_bounds_as_json(clinic):
    path = clinic.folder / "catalog.toml"
    path.write_text(path.read_text().replace("upper = 120", "upper = 99"))
    told = read_refusal(clinic("ask", COUNT, "--epsilon", "1", "--json"), 4)
    assert "sfumato prepare" in told["hint"]
    shown = json_of(clinic("prepare", "--json"))
    assert shown["tables"] == [
        {
            "name": "patients",
            "source": "patients.csv",
            "public": False,
            "unit": "patient_id",
            "max_rows_per_unit": 1,
            "max_groups_per_unit": 1,
            "loaded": True,
            "why": "its declaration changed",
            "source_gone": False,
        }
    ]
    assert shown["load_report"]["tables"][0]["rows"] == 300
    assert clinic("ask", COUNT, "--epsilon", "1").exit_code == 0


def test_prepare_pins_everything_or_nothing(clinic):
    pinned = clinic.folder / ".sfumato" / "snapshot.duckdb"
    before = pinned.read_bytes()
    (clinic.folder / "patients.csv").write_text("patient_id,city,smoker\n")
    assert "no column age" in read_refusal(clinic("prepare", "--json"), 4)["message"]
    (clinic.folder / "patients.csv").unlink()
    assert "no source" in read_refusal(clinic("prepare", "--all", "--json"), 4)["message"]
    assert "no source" in read_refusal(clinic("prepare", "patients", "--json"), 4)["message"]
    assert pinned.read_bytes() == before
    assert not list(pinned.parent.glob("new-*"))
    assert clinic("ask", COUNT, "--epsilon", "1").exit_code == 0


def test_prepare_needs_a_table(tmp_path):
    run("init", tmp_path)
    assert "no table" in read_refusal(run("-C", tmp_path, "prepare", "--json"), 4)["message"]
    assert not (tmp_path / ".sfumato").exists()
