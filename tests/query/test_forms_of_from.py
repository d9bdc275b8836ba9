"""Joins in brackets, * of a join, ORDER BY and unnamed columns in subqueries, ANY_VALUE and DISTINCT for one person."""

import pytest
from test_corpus import clinic, plain, rows_of, tables, without_noise  # noqa: F401 - fixtures

from sfumato.errors import QueryError, UnsupportedSyntax

JOINED = "patients p JOIN visits v ON p.patient_id = v.patient_id"


@pytest.mark.parametrize(
    ("sql", "written"),
    [
        ("SELECT COUNT(*) FROM patients JOIN (visits JOIN sites USING (site)) USING (patient_id)", ""),
        ("SELECT COUNT(*) FROM patients p JOIN (sites s JOIN visits v ON v.site = s.site) "
         "ON p.patient_id = v.patient_id WHERE s.region = 'inner'", ""),
        ("SELECT AVG(cost) FROM (visits)", ""),
        ("SELECT q.city, COUNT(*) FROM (patients JOIN visits USING (patient_id)) AS q WHERE q.cost > 9 GROUP BY 1", ""),
        (f"SELECT t.city, AVG(t.cost) FROM (SELECT * FROM {JOINED}) AS t GROUP BY t.city", ""),
        (f"SELECT COUNT(DISTINCT patient_id), SUM(cost) FROM (SELECT v.*, p.* FROM {JOINED}) t", ""),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY cost DESC) WHERE cost > 100", ""),
        ("WITH t AS (SELECT patient_id, cost FROM visits ORDER BY 2) SELECT AVG(cost) FROM t", ""),
        ("SELECT COUNT(*) FROM (SELECT patient_id, SUM(cost) FROM visits GROUP BY patient_id) t", ""),
        ("SELECT city, COUNT(*) FROM (SELECT patient_id, ANY_VALUE(city) AS city FROM patients GROUP BY patient_id) "
         "GROUP BY city", ""),
        ("SELECT city, SUM(n) FROM (SELECT patient_id, ANY_VALUE(city) AS city, COUNT(*) AS n FROM patients "
         "GROUP BY patient_id) GROUP BY city", ""),
        ("SELECT AVG(c) FROM (SELECT patient_id, ANY_VALUE(cost) AS c FROM visits GROUP BY patient_id)",
         "SELECT AVG(c) FROM (SELECT patient_id, MIN(cost) AS c FROM visits GROUP BY patient_id)"),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT site FROM visits)",
         "SELECT COUNT(DISTINCT site) FROM visits"),
        ("SELECT COUNT(1) AS n FROM (SELECT DISTINCT city, age > 40 AS old FROM patients WHERE age > 20) AS t",
         "SELECT COUNT(*) FROM (SELECT DISTINCT city, age > 40 FROM patients WHERE age > 20 AND city IS NOT NULL)"),
        ("WITH d AS (SELECT DISTINCT city FROM patients) SELECT COUNT(city) AS city FROM d", ""),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, site FROM visits)", ""),
        ("SELECT site, COUNT(*) FROM (SELECT DISTINCT site, patient_id FROM visits) GROUP BY site", ""),
        ("SELECT r, SUM(cost) FROM visits JOIN (SELECT site, ANY_VALUE(region) AS r FROM sites GROUP BY site) "
         "USING (site) GROUP BY r", ""),
        ("SELECT STRFTIME('%m', seen) AS m, COUNT(*) FROM visits GROUP BY m",
         "SELECT STRFTIME(seen, '%m') AS m, COUNT(*) FROM visits GROUP BY m"),
        ("SELECT AVG(TIMESTAMP_DIFF(TIMESTAMP('2025-01-01 00:00:00'), DATETIME(seen), HOUR)) FROM visits",
         "SELECT AVG(date_diff('hour', seen, TIMESTAMP '2025-01-01')) FROM visits"),
    ],
)  # fmt: skip
def test_it_means_what_plain_sql_means(sql, written, clinic, plain, without_noise):  # noqa: F811
    got = rows_of([tuple(row.values()) for row in clinic.ask(sql, epsilon=1000).rows])
    assert sorted(got, key=repr) == sorted(rows_of(plain.execute(written or sql).fetchall()), key=repr)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT COUNT(*) FROM patients p LEFT JOIN (visits v JOIN sites s ON v.site = s.site) "
         "ON p.patient_id = v.patient_id", "brackets on the right side"),
        (f"SELECT COUNT(*) FROM (SELECT * FROM {JOINED} UNION ALL SELECT * FROM {JOINED})", "A second column"),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY cost LIMIT 3)", "LIMIT"),
        ("SELECT s, COUNT(*) FROM (SELECT patient_id, ANY_VALUE(site) AS s FROM visits GROUP BY patient_id) GROUP BY s",
         "several values of this text"),
        ("SELECT SUM(1) FROM (SELECT DISTINCT city FROM patients)", "may belong to several people"),
        ("SELECT COUNT(*) FROM visits v JOIN (SELECT region, ANY_VALUE(site) AS site FROM sites GROUP BY region) s "
         "ON s.site = v.site", "rows of people"),
    ],
)  # fmt: skip
def test_what_has_another_meaning_is_refused(sql, said, clinic):  # noqa: F811
    with pytest.raises(UnsupportedSyntax, match=said):
        clinic.preview(sql, epsilon=1)


def test_the_first_of_two_columns_has_the_name(clinic, plain, without_noise):  # noqa: F811
    """As in DuckDB. The second one, of the other side, is another column."""
    inner = "SELECT * FROM visits v JOIN (SELECT site, beds AS cost FROM sites) s ON v.site = s.site"
    asked = f"SELECT SUM(cost) FROM ({inner})"
    assert clinic.ask(asked, epsilon=1000).rows[0]["sum(cost)"] == plain.execute(asked).fetchone()[0]


def test_a_dropped_id_is_no_id_of_the_first_column(clinic):  # noqa: F811
    """The person's id of the second side has the name of a site here: it must not count as the person's id."""
    inner = "SELECT a.* , b.* FROM (SELECT patient_id AS me, site FROM visits) a JOIN (SELECT patient_id AS site, "
    inner += "patient_id AS other FROM patients) b ON a.me = b.other"
    with pytest.raises(UnsupportedSyntax):
        clinic.preview(f"SELECT COUNT(*) FROM ({inner}) t JOIN patients p ON t.site = p.patient_id", epsilon=1)


def test_a_row_of_null_is_not_counted_and_the_answer_says_so(clinic):  # noqa: F811
    answer = clinic.ask("SELECT COUNT(*) FROM (SELECT DISTINCT city FROM patients)", epsilon=5)
    assert any("NULL is none" in warning for warning in answer.warnings)


MONTHS = "(SELECT DATE_TRUNC('month', seen) AS m, COUNT(*) AS n FROM visits GROUP BY m) t"


@pytest.mark.parametrize(
    ("shown", "written"),
    [
        ("TO_CHAR(m, 'YYYY-MM')", "STRFTIME(m, '%Y-%m')"),
        ("DATE_FORMAT(m, '%m/%Y')", "STRFTIME(m, '%m/%Y')"),
        ("FORMAT_DATE('%Y', m)", "STRFTIME(m, '%Y')"),
        ("STRFTIME(m, '%d.%m.%Y')", "STRFTIME(m, '%d.%m.%Y')"),
        ("n / (n - n)", "NULL"),
        ("SAFE_DIVIDE(n, 0)", "NULL"),
        ("MOD(CAST(n AS INT), 0)", "NULL"),
        ("n % (n - n)", "NULL"),
    ],
)
def test_dates_and_divisions_by_zero_over_results(shown, written, clinic, plain, without_noise):  # noqa: F811
    got = rows_of([tuple(row.values()) for row in clinic.ask(f"SELECT {shown} AS x FROM {MONTHS}", epsilon=1000).rows])
    wanted = rows_of(plain.execute(f"SELECT {written} AS x FROM {MONTHS}").fetchall())
    assert sorted(got, key=repr) == sorted(wanted, key=repr)


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("TO_CHAR(n, '999.99')", "of a number is not supported"),
        ("TO_CHAR(m, city)", "constant format|no column"),
        ("TO_CHAR(m, 'Q')", "not supported"),
        ("DATE_FORMAT(m, '%j')", "format"),
    ],
)
def test_other_formats_over_results_are_refused(shown, said, clinic):  # noqa: F811
    with pytest.raises(QueryError, match=said):
        clinic.preview(f"SELECT {shown} AS x FROM {MONTHS}", epsilon=1)
