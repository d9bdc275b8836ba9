"""`sfumato add --public` and `sfumato add --replace`."""

import pytest
from clinic import BY_CITY, COLUMNS, COUNT, json_of, list_options, read_refusal

PATIENTS = ("add", "patients", "patients.csv", "--unit", "patient_id")


@pytest.fixture
def cities(clinic):
    (clinic.folder / "cities.csv").write_text("city,country\nRome,Italy\nOslo,Norway\n")
    return clinic


def test_a_public_table_needs_no_unit_and_no_columns(cities):
    added = cities("add", "cities", "cities.csv", "--public")
    assert added.exit_code == 0, added.output
    assert "Added cities: Public table." in added.stdout
    assert "Its columns are read from its source." in cities("check").stdout
    sql = "SELECT c.country, COUNT(*) AS n FROM patients p JOIN cities c ON p.city = c.city GROUP BY c.country"
    asked = json_of(cities("ask", sql, "--epsilon", "1", "--json"))
    assert {row["country"] for row in asked["rows"]} == {"Italy", "Norway"}


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ((), "Whose rows are these?"), (("--public", "--unit", "ROW"), "exclude each other"),
        (("--public", "--column", "city:text"), "Leave --column out."),
    ],
)  # fmt: skip
def test_whose_rows_they_are_is_said_once(cities, options, part):
    refused = cities("add", "cities", "cities.csv", *options)
    assert refused.exit_code == 2
    assert part in refused.stderr
    assert "cities" not in (cities.folder / "catalog.toml").read_text()


def test_a_table_is_replaced_in_its_place(cities):
    assert cities("add", "cities", "cities.csv", "--public").exit_code == 0
    path = cities.folder / "catalog.toml"
    path.write_text(path.read_text().replace("[tables.cities]", "# about nobody\n[tables.cities]"))
    before = path.read_text()
    assert json_of(cities("ask", COUNT, "--epsilon", "1", "--json"))["cost"]["epsilon"] == "1"
    (cities.folder / "patients.csv").write_text("patient_id,age,city,smoker\np1,30,Rome,true\n")
    columns = list_options(["age:integer:18:90", *COLUMNS[1:]])
    replaced = cities(*PATIENTS, *columns, "--replace")
    assert replaced.exit_code == 0, replaced.output
    assert "Replaced patients" in replaced.stdout
    ledger = json_of(cities("budget", "--json"))
    assert ledger["spent"]["epsilon"] == "1"  # what was spent stays spent
    new = [line for line in path.read_text().splitlines() if not line.startswith("ledger_id")]
    age = '\ncolumns.age = {{ type = "integer", lower = {}, upper = {} }}'
    assert "\n".join(new) == before.replace(age.format(0, 120), age.format(18, 90)).rstrip()
    asked = json_of(cities("ask", COUNT, "--epsilon", "1", "--json"))  # the data is new, so nothing is stored about it
    assert asked["cached"] is False
    assert asked["rows"][0]["n"] < 50


def test_replace_is_for_a_table_that_is_there(clinic):
    refused = clinic("add", "patient", "patients.csv", "--unit", "patient_id", *list_options(COLUMNS), "--replace")
    assert refused.exit_code == 4
    assert "Did you mean patients?" in refused.stderr
    twice = clinic(*PATIENTS, *list_options(COLUMNS))
    assert twice.exit_code == 4
    assert "--replace" in twice.stderr


def test_replace_does_not_publish_a_private_table(clinic):
    refused = clinic("add", "patients", "patients.csv", "--public", "--replace")
    assert refused.exit_code == 4
    assert "does not make it public" in refused.stderr
    assert clinic("ask", BY_CITY, "--epsilon", "1").exit_code == 0


def test_a_replacement_that_does_not_load_changes_nothing(clinic):
    before = (clinic.folder / "catalog.toml").read_bytes()
    refused = clinic(*PATIENTS, "--column", "height:integer:0:300", "--replace")
    assert refused.exit_code == 4
    assert (clinic.folder / "catalog.toml").read_bytes() == before
    assert clinic("ask", BY_CITY, "--epsilon", "1").exit_code == 0


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("patiens.csv", "Did you mean patients.csv? Look in {folder} and in {here}."),
        ("vists.csv", "Did you mean visits.csv? Look in {folder} and in {here}."),  # it is in the current folder
        ("data/patiens.csv", "Did you mean data/patients.csv? Look in {folder}/data and in {here}/data."),
        ("data", "It is a folder: name its files, as data/*.csv."),
        ("something.csv", "Look in {folder} and in {here}."),
    ],
)
def test_a_missing_file_is_refused_with_the_nearest_name(clinic, tmp_path, monkeypatch, source, hint):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    (here / "visits.csv").write_text("id\n1\n")
    (clinic.folder / "data").mkdir()
    (clinic.folder / "data" / "patients.csv").write_text("id\n1\n")
    told = read_refusal(clinic("add", "visits", source, "--unit", "id", "--json"), 2)
    assert told["message"] == f"There is no file {source}."
    assert told["hint"] == hint.format(folder=clinic.folder, here=here)
