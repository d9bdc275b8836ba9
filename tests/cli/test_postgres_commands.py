"""The owner's and the analyst's commands, with data and pinned rows in a PostgreSQL database."""

import uuid

import psycopg
import pytest
from clinic import json_of, list_options, run

COLUMNS = ("age:integer:0:120", "city:category:Rome,Oslo")


@pytest.fixture
def place(postgres_server, tmp_path):
    schema = f"cli_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.people (pid int, age int, city text)")
        connection.execute(
            f"INSERT INTO {schema}.people SELECT n, 20 + n % 50, (ARRAY['Rome', 'Oslo'])[1 + n % 2] "
            "FROM generate_series(1, 200) n"
        )
        url = postgres_server.url.replace(":@", "@")
        done = run("init", tmp_path / "d", "--engine", f"{url}&schema={schema}_side")
        assert done.exit_code == 0
        yield tmp_path / "d", schema, connection


def test_the_whole_way(place):
    folder, schema, connection = place
    done = run("-C", folder, "add", "people", f"postgres:{schema}.people", "--unit", "pid", *list_options(COLUMNS))
    assert done.exit_code == 0, done.output
    assert "200 rows pinned" in done.stdout
    found = connection.execute(f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}_side'").fetchone()
    assert found == (1,)
    asked = json_of(run("-C", folder, "ask", "SELECT COUNT(*) AS n FROM people", "--epsilon", "2", "--json"))
    assert asked["rows"][0]["n"] == pytest.approx(200, abs=20)
    assert "has not changed" in run("-C", folder, "check").stdout
    connection.execute(f"DELETE FROM {schema}.people WHERE pid > 100")
    assert "changed" in run("-C", folder, "check").stdout
    prepared = json_of(run("-C", folder, "prepare", "--json"))
    assert prepared["tables"][0]["loaded"]
    asked = json_of(run("-C", folder, "ask", "SELECT COUNT(*) AS n FROM people", "--epsilon", "0.9", "--json"))
    assert asked["rows"][0]["n"] == pytest.approx(100, abs=40)


def test_what_is_wrong_is_said(place):
    folder, schema, _ = place
    missing = run("-C", folder, "add", "people", f"postgres:{schema}.nobody", "--unit", "pid", *list_options(COLUMNS))
    assert f"{schema}.people" in missing.output
    column = run("-C", folder, "add", "people", f"postgres:{schema}.people", "--unit", "pid", "--column", "x:real:0:1")
    assert column.exit_code == 4
    assert "people: the source has no column x" in " ".join(column.output.split())
    unknown = run("init", folder / "other", "--engine", "oracle")
    assert "no such engine" in unknown.output
    undeclared = run("-C", folder, "add", "people", f"postgres:{schema}.people", "--unit", "pid")
    assert "age, city" in undeclared.output
