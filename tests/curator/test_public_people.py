"""`people = n`: the number of people in a table whose unit is an id is public, and means are divided by it."""

import math

import pandas as pd
import pytest

import sfumato as sf

GRADES = pd.DataFrame({"pupil": [f"p{index}" for index in range(200)], "grade": [index % 11 for index in range(200)]})
CLASS = GRADES.assign(late=3)
COLUMNS = {"pupil": sf.Id(), "grade": sf.Real(0, 10, nullable=False), "late": sf.Integer(0, 30)}


def school(data=CLASS, people=200, columns=COLUMNS, **options):
    given = {"neighbours": "replace-one", "budget": sf.Budget(epsilon=10_000), **options}
    return sf.protect(data, name="grades", unit="pupil", columns=columns, people=people, **given)


def test_the_mean_of_a_public_number_of_people_has_the_margin_of_the_lectures():
    """m values in [0, b], replace-one: noise Lap(b/(m epsilon)), error b/(m epsilon) ln(1/beta)."""
    with school() as curator:
        preview = curator.preview("SELECT AVG(grade) AS mean FROM grades", epsilon=1)
        assert preview.margins["mean"] == pytest.approx(10 / 200 * math.log(1 / 0.05), rel=0.01)
        answer = curator.ask("SELECT AVG(grade) AS mean FROM grades", epsilon=1_000)
        assert answer.rows[0]["mean"] == pytest.approx(GRADES["grade"].mean().clip(0, 10), abs=0.05)


def test_without_it_the_same_margin_is_wider():
    """Negative control: the mean of a private number of people."""
    with school(people=None) as curator:
        preview = curator.preview("SELECT AVG(grade) AS mean FROM grades", epsilon=1, assume={"n": 200})
        assert preview.margins["mean"] > 1.3 * 10 / 200 * math.log(1 / 0.05)


def test_the_number_of_people_is_exact_and_not_for_sale():
    with school() as curator:
        answer = curator.ask("SELECT COUNT(DISTINCT pupil) AS n, AVG(grade) AS mean FROM grades", epsilon=1)
        assert answer.rows[0]["n"] == 200
        assert len(answer.measurements) == 1
        with pytest.raises(sf.errors.SfumatoError, match="everybody knows it"):
            curator.ask("SELECT COUNT(DISTINCT pupil) AS n FROM grades", epsilon=1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(DISTINCT pupil) AS n FROM grades WHERE late > 2",
        "SELECT late > 2 AS some, COUNT(DISTINCT pupil) AS n FROM grades GROUP BY some",
        "SELECT COUNT(late) AS n FROM grades",
        "SELECT COUNT(*) AS n FROM (SELECT pupil, AVG(late) AS l FROM grades GROUP BY pupil) WHERE l > 2",
        "SELECT COUNT(*) AS n FROM (SELECT pupil, COUNT(*) AS l FROM grades WHERE late > 2 GROUP BY pupil)",
        "SELECT COUNT(*) AS n FROM grades a JOIN grades b ON a.pupil = b.pupil",
        "SELECT COUNT(*) AS n FROM (SELECT grade FROM grades UNION ALL SELECT grade FROM grades)",
    ],
)
def test_a_number_of_some_of_them_is_private(sql):
    with school() as curator:
        assert curator.preview(sql, epsilon=1).margins["n"] > 0


def test_rows_are_public_only_where_everybody_counts_for_one():
    twice = pd.concat([GRADES, GRADES.head(100)]).assign(late=3)
    with school(twice, max_rows_per_unit=2) as curator:
        assert curator.preview("SELECT COUNT(*) AS n FROM grades", epsilon=1).margins["n"] > 0
        assert "halves" in curator.preview("SELECT AVG(grade) AS m, SUM(grade) FROM grades", epsilon=1).explain()
        assert curator.preview("SELECT COUNT(DISTINCT pupil), AVG(grade) FROM grades", epsilon=1).margins
    with school(twice) as curator:  # a person with two rows counts for one: each row weighs one half
        answer = curator.ask("SELECT COUNT(*) AS n, AVG(grade) AS m, SUM(grade) AS s FROM grades", epsilon=5_000)
        assert answer.rows[0]["n"] == 200
        mean = twice.groupby("pupil")["grade"].mean().clip(0, 10).mean()
        assert answer.rows[0]["m"] == pytest.approx(mean, abs=0.01)
        assert answer.rows[0]["s"] == pytest.approx(200 * mean, abs=2)


def test_one_row_for_each_person_has_that_number_of_rows():
    twice = pd.concat([GRADES, GRADES.head(100)]).assign(late=3)
    per_pupil = "(SELECT pupil, SUM(grade) AS total FROM grades GROUP BY pupil)"
    with school(twice, max_rows_per_unit=2) as curator:
        preview = curator.preview(f"SELECT AVG(total) AS m FROM {per_pupil}", epsilon=1)
        assert preview.margins["m"] == pytest.approx(20 / 200 * math.log(1 / 0.05), rel=0.01)
        answer = curator.ask(f"SELECT AVG(total) AS m, COUNT(*) AS n FROM {per_pupil}", epsilon=1_000)
        assert answer.rows[0]["n"] == 200
        mean = twice.groupby("pupil")["grade"].sum().clip(0, 20).mean()
        assert answer.rows[0]["m"] == pytest.approx(mean, abs=0.2)


def test_squares_of_a_public_number_of_people():
    with school() as curator:
        answer = curator.ask("SELECT VARIANCE(grade) AS v, STDDEV(grade) AS d FROM grades", epsilon=5_000)
        assert answer.rows[0]["v"] == pytest.approx(GRADES["grade"].clip(0, 10).var(), rel=0.02)
        assert answer.rows[0]["d"] == pytest.approx(GRADES["grade"].clip(0, 10).std(), rel=0.02)
    with school(budget=sf.Budget(rho=10_000, accounting="zcdp")) as curator:
        answer = curator.ask("SELECT AVG(grade) AS m, VARIANCE(grade) AS v FROM grades", rho=5_000)
        assert answer.rows[0]["v"] == pytest.approx(GRADES["grade"].clip(0, 10).var(), rel=0.02)


def test_the_declared_number_of_people_must_be_there():
    school().close()
    for wrong in (199, 201):
        with pytest.raises(sf.errors.CatalogError, match="another number of people") as refused:
            school(people=wrong)
        assert "200" not in str(refused.value)  # the load error is no way to learn the number
    nobody = pd.concat([GRADES, pd.DataFrame({"pupil": [None], "grade": [3]})]).assign(late=3)
    school(nobody).close()  # a row without an id belongs to no person


def test_it_is_a_promise_about_replace_one():
    with pytest.raises(sf.errors.CatalogError, match="people makes the number of people public"):
        school(neighbours="add-remove")


def test_a_rehearsal_has_made_up_people():
    with school() as curator:
        answer = curator.rehearse("SELECT COUNT(DISTINCT pupil) AS n, AVG(grade) AS m FROM grades", epsilon=1)
        assert 0 <= answer.rows[0]["m"] <= 10


def test_a_changed_number_of_people_is_pinned_anew(tmp_path):
    GRADES.to_csv(tmp_path / "grades.csv", index=False)
    catalog = (
        '[dataset]\nname = "school"\nneighbours = "replace-one"\n[budget]\nepsilon = "9"\n[tables.grades]\n'
        'source = "grades.csv"\nunit_column = "pupil"\npeople = 200\n'
        'columns.grade = { type = "real", lower = 0, upper = 10, nullable = false }\n'
    )
    (tmp_path / "catalog.toml").write_text(catalog)
    sf.open(tmp_path).close()
    (tmp_path / "catalog.toml").write_text((tmp_path / "catalog.toml").read_text().replace("= 200", "= 100"))
    with pytest.raises(sf.errors.CatalogError, match="not pinned as it is declared"):
        sf.open(tmp_path)
