"""Every question of docs/sql.md is answered, and its answer without noise is that of plain DuckDB."""

import re
from pathlib import Path

import pytest
from test_corpus import CATALOG, is_ordered, make_tables, rows_of, without_noise  # noqa: F401 - a fixture

import sfumato as sf

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
QUESTIONS = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clinic")
    for name, table in make_tables().items():
        table.to_csv(folder / f"{name}.csv", index=False)
    (folder / "catalog.toml").write_text(CATALOG)
    return sf.open(str(folder))


@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_page_shows_what_is_answered(sql, clinic, without_noise):  # noqa: F811 - the fixture
    import duckdb

    plain = duckdb.connect()
    for name, table in make_tables().items():
        plain.register(name, table)
    got = rows_of([tuple(row.values()) for row in clinic.ask(sql, epsilon=1000).rows])
    wanted = rows_of(plain.execute(sql).fetchall())
    if not is_ordered(sql):
        got, wanted = sorted(got, key=repr), sorted(wanted, key=repr)
    assert got == wanted


def test_the_page_has_questions():
    assert len(QUESTIONS) >= 7
