"""Several tables in one folder are joined on the person, through another table, and with public tables."""

import pytest

import sfumato as sf
from sfumato.errors import UnsupportedSyntax

CATALOG = """
[dataset]
name = "clinic"

[budget]
epsilon = "900"
delta = "1e-4"

[tables.patients]
source = "patients.csv"
unit_column = "patient_id"
columns.city = { type = "category", values = ["Rome", "Oslo"] }

[tables.tests]
source = "tests.csv"
unit_through = { column = "visit_id", table = "visits" }
max_rows_per_unit = 6
columns.level = { type = "real", lower = 0, upper = 10 }

[tables.visits]
source = "visits.csv"
unit_column = "patient_id"
max_rows_per_unit = 3
columns.visit_id = { type = "id" }
columns.site = { type = "integer", lower = 1, upper = 3 }
columns.cost = { type = "real", lower = 0, upper = 100 }

[tables.sites]
source = "sites.csv"
public = true

[views.dear]
sql = "SELECT patient_id, cost, site FROM visits WHERE cost > 50"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "catalog.toml").write_text(CATALOG)
    people = range(400)
    lines = [f"{person},{['Rome', 'Oslo'][person % 2]}" for person in people]
    (tmp_path / "patients.csv").write_text("\n".join(["patient_id,city", *lines]))
    visits = [
        (f"v{person}-{number}", person, 1 + person % 3, 20 * (number + 1)) for person in people for number in range(3)
    ]
    lines = [f"{visit},{person},{site},{cost}" for visit, person, site, cost in visits]
    (tmp_path / "visits.csv").write_text("\n".join(["visit_id,patient_id,site,cost", *lines]))
    lines = [f"{visit},{index % 10}" for index, (visit, *_) in enumerate(visits)] + ["nobody,5"]
    (tmp_path / "tests.csv").write_text("\n".join(["visit_id,level", *lines]))
    (tmp_path / "sites.csv").write_text("site,region,beds\n1,north,10\n2,south,20\n3,south,2.5\n")
    return tmp_path


def test_tables_are_joined_on_the_person(folder):
    with sf.open(folder) as clinic:
        joined = "patients p JOIN visits v ON p.patient_id = v.patient_id"
        sql = f"SELECT p.city, COUNT(*) AS n, AVG(v.cost) AS c FROM {joined} GROUP BY p.city"
        for row in clinic.ask(sql, epsilon=90).rows:
            assert abs(row["n"] - 600) < 15
            assert abs(row["c"] - 40) < 1


def test_the_note_of_a_join_says_how_to_diagnose_it(folder):
    with sf.open(folder) as clinic:
        sql = "SELECT AVG(v.cost) AS c FROM patients p JOIN visits v ON p.patient_id = v.patient_id"
        assert "`diagnose` estimates how much, one table at a time." in clinic.ask(sql, epsilon=1).interval_note
        with pytest.raises(UnsupportedSyntax, match="one table") as refused:
            clinic.diagnose(sql, epsilon=1)
        assert "patients, tests, visits" in refused.value.hint
        assert clinic.diagnose("SELECT AVG(cost) AS c FROM visits", epsilon=1).at_bounds.keys() == {"cost"}


def test_rows_reach_their_person_through_another_table(folder):
    with sf.open(folder) as clinic:
        answer = clinic.ask("SELECT COUNT(*) AS n, AVG(level) AS m FROM tests", epsilon=90)
        assert abs(answer.rows[0]["n"] - 1200) < 20  # a row without a person is dropped
        assert abs(answer.rows[0]["m"] - 4.5) < 0.2
        sql = "SELECT v.site, AVG(t.level) AS m FROM visits v JOIN tests t ON v.visit_id = t.visit_id GROUP BY v.site"
        assert len(clinic.ask(sql, epsilon=90).rows) == 3
        assert "18 rows per person" in clinic.preview(sql, epsilon=1).explain()


def test_public_tables_need_no_declaration_and_give_keys(folder):
    with sf.open(folder) as clinic:
        joined = "visits v JOIN sites s ON v.site = s.site"
        sql = f"SELECT s.region, COUNT(*) AS n, SUM(s.beds) AS b FROM {joined} GROUP BY s.region"
        assert clinic.preview(sql, epsilon=1).margins["n"] == pytest.approx(
            clinic.preview("SELECT site, COUNT(*) AS n, SUM(cost) AS b FROM visits GROUP BY site", epsilon=1).margins[
                "n"
            ]
        )
        rows = {row["region"]: row for row in clinic.ask(sql, epsilon=90).rows}
        assert abs(rows["north"]["n"] - 402) < 15
        assert abs(rows["south"]["n"] - 798) < 15
        assert abs(rows["north"]["b"] - 4020) < 150


def test_a_view_is_asked_like_a_table(folder):
    with sf.open(folder) as clinic:
        assert abs(clinic.ask("SELECT COUNT(*) AS n FROM dear", epsilon=90).rows[0]["n"] - 400) < 5


def test_one_row_for_each_person(folder):
    with sf.open(folder) as clinic:
        sql = (
            "WITH each AS (SELECT patient_id, COUNT(*) AS visits, SUM(cost) AS paid FROM visits GROUP BY patient_id) "
            "SELECT visits, COUNT(*) AS n, AVG(paid) AS paid FROM each GROUP BY visits"
        )
        rows = {row["visits"]: row for row in clinic.ask(sql, epsilon=90).rows}
        assert sorted(rows) == [0, 1, 2, 3]
        assert abs(rows[3]["n"] - 400) < 3
        assert abs(rows[3]["paid"] - 120) < 2


def test_a_rehearsal_of_a_join(folder):
    with sf.open(folder) as clinic:
        sql = "SELECT s.region, COUNT(*) AS n FROM visits v JOIN sites s ON v.site = s.site GROUP BY s.region"
        assert {row["region"] for row in clinic.rehearse(sql, epsilon=1).rows} == {"north", "south"}
        sql = "SELECT COUNT(*) AS n FROM visits v JOIN tests t ON v.visit_id = t.visit_id"
        assert len(clinic.rehearse(sql, epsilon=1).rows) == 1
        assert clinic.budget.spent.epsilon == 0


def test_a_public_number_of_people_who_are_reached_through_another_table(folder):
    text = CATALOG.replace('name = "clinic"', 'name = "clinic"\nneighbours = "replace-one"')
    through = text.replace("max_rows_per_unit = 6", "max_rows_per_unit = 6\npeople = 400")
    (folder / "catalog.toml").write_text(through)
    with sf.open(folder) as clinic:
        sql = "SELECT COUNT(DISTINCT patient_id) AS n, AVG(cost) AS c FROM visits"
        assert clinic.preview(sql, epsilon=1).margins["n"] > 0  # only the number in tests is declared
        (made_up,) = clinic.rehearse("SELECT AVG(level) AS l FROM tests", epsilon=1).rows
        assert 0 <= made_up["l"] <= 10
    (folder / "catalog.toml").write_text(through.replace("people = 400", "people = 399"))
    with pytest.raises(sf.errors.CatalogError):
        sf.open(folder)


def test_a_row_that_belongs_to_two_people_is_refused(folder):
    with (folder / "visits.csv").open("a") as file:
        file.write("\nv0-0,399,1,5")
    with pytest.raises(sf.errors.CatalogError, match="two people") as refused:
        sf.open(folder)
    assert "v0-0" not in str(refused.value)


def test_the_declared_number_of_rows_must_be_there(tmp_path):
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    about = {"name": "t", "unit": sf.ROW, "columns": {"x": sf.Integer(0, 9)}, "budget": sf.Budget(epsilon=1)}
    sf.protect(tmp_path / "t.csv", neighbours="replace-one", rows=2, **about).close()
    with pytest.raises(sf.errors.CatalogError, match="number of rows"):
        sf.protect(tmp_path / "t.csv", neighbours="replace-one", rows=3, **about)
