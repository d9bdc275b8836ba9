"""The PostgreSQL engine behind a curator: opening, versions, what the server keeps, and what goes wrong with it."""

import os
import threading
import uuid

import pandas as pd
import psycopg
import pytest
from by_cell import list_by_cell

import sfumato as sf
from sfumato.catalog.catalog_file import load_catalog
from sfumato.engines.postgres.postgres_backend import PostgresBackend
from sfumato.errors import CatalogError, EngineFailed, InvalidParameter
from sfumato.query.bind import bind
from sfumato.query.parse import parse

CATALOG = """
[dataset]
name = "clinic"
{engine}
[budget]
epsilon = "1000"
delta = "1e-6"

[tables.patients]
source = "{patients}"
unit_column = "pid"
columns.age = {{ type = "integer", lower = 0, upper = 120 }}
columns.city = {{ type = "category", values = ["Rome", "Oslo"] }}

[tables.visits]
source = "{visits}"
unit_column = "pid"
max_rows_per_unit = 2
columns.visit = {{ type = "id" }}
columns.cost = {{ type = "real", lower = 0, upper = 100 }}

[tables.tests]
source = "tests.csv"
unit_through = {{ column = "visit", table = "visits" }}
max_rows_per_unit = 3
columns.level = {{ type = "real", lower = 0, upper = 10 }}

[tables.sites]
source = "sites.csv"
public = true
"""
QUESTIONS = [
    "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM patients GROUP BY city",
    "SELECT p.city, SUM(v.cost) AS s FROM patients p JOIN visits v ON p.pid = v.pid GROUP BY p.city",
    "SELECT SUM(level) AS s, COUNT(*) AS n FROM tests",
    "SELECT MEDIAN(cost) AS m FROM visits WHERE cost > 1",
]


@pytest.fixture
def place(postgres_server, tmp_path):
    """A folder whose tables are in files and in the database, and the schema for what is pinned."""
    made = f"own_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {made}")
        connection.execute(f"CREATE TABLE {made}.visits (pid int, visit text, cost numeric(8, 2))")
        rows = [(person, f"v{person}-{number}", person + number / 4) for person in range(40) for number in range(3)]
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {made}.visits VALUES (%s, %s, %s)", rows)
        lines = [f"{person},{20 + person % 60},{('Rome', 'Oslo', 'Bern')[person % 3]}" for person in range(40)]
        (tmp_path / "patients.csv").write_text("\n".join(["pid,age,city", *lines]) + "\n")
        (tmp_path / "tests.csv").write_text("visit,level\n" + "".join(f"v{n}-1,{n % 10}\n" for n in range(40)))
        (tmp_path / "sites.csv").write_text("site,beds\n1,5\n2,6\n")
        yield tmp_path, postgres_server.url, made, connection


def write_catalog(folder, made, engine=""):
    text = CATALOG.format(engine=engine, patients="patients.csv", visits=f"postgres:{made}.visits")
    (folder / "catalog.toml").write_text(text)


def measure(curator, question):
    plan = curator.desk.plan(bind(parse(question), curator.dataset), sf.PureDP(1)).plan
    curator.engine.check(plan)
    return list_by_cell(curator.engine.aggregate(plan), plan)


def tables_in(connection, schema):
    found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]).fetchall()
    return {row[0].rsplit("_", 1)[0] for row in found}, len(found)


@pytest.mark.parametrize("schema", ["side", None])
def test_a_folder_is_asked_in_the_database(place, monkeypatch, schema):
    """The same catalog and the same integers as in DuckDB, which reads the same table of the server."""
    folder, url, made, connection = place
    write_catalog(folder, made)
    monkeypatch.setenv("SFUMATO_POSTGRES", url)
    side = None if schema is None else f"side_{made}"
    with sf.open(folder) as plain, sf.open(folder, engine=sf.engines.postgres(url, schema=side)) as there:
        assert [measure(plain, question) for question in QUESTIONS] == [measure(there, one) for one in QUESTIONS]
        answered = there.ask("SELECT COUNT(*) AS n FROM visits", epsilon=50)
        assert answered.rows[0]["n"] == pytest.approx(80, abs=3)  # 40 people with 3 rows each, of which 2 count
    if side is not None:
        assert tables_in(connection, side) == ({"patients", "visits", "tests", "sites"}, 4)
        assert b"v39-2" not in (folder / ".sfumato" / "postgres.duckdb").read_bytes(), "rows are in the database only"


def test_a_catalog_names_the_engine_and_prepare_makes_versions(place, monkeypatch):
    folder, url, made, connection = place
    side = f"side_{made}"
    monkeypatch.setenv("SFUMATO_POSTGRES", url)
    write_catalog(folder, made, f'engine = "{url.replace(":@", "@")}&schema={side}"')
    with sf.open(folder) as opened:
        engine, first = opened.engine, measure(opened, QUESTIONS[2])
        versions = dict(opened.desk.versions)
        connection.execute(f"INSERT INTO {made}.visits VALUES (7, 'new', 50)")
        assert measure(opened, QUESTIONS[2]) == first, "a changed source is not seen"
        (folder / "tests.csv").write_text("visit,level\nv1-1,3\nnew,4\n")
        backend = PostgresBackend(url, side, 60)
        done = backend.prepare(folder / ".sfumato" / "postgres.duckdb", load_catalog(folder).tables, folder)
        assert set(done.read) == {"visits", "tests"}
        assert opened.ask("SELECT COUNT(*) AS n FROM tests", epsilon=500).rows[0]["n"] == pytest.approx(2, abs=1)
        assert opened.engine is not engine
        assert {name for name, version in opened.desk.versions.items() if versions[name] != version} == {
            "visits",
            "tests",
        }
    assert tables_in(connection, side)[1] == 6, "the versions before are still there"
    # only the tests change: their people are found through visits, whose rows come back from the database
    (folder / "tests.csv").write_text("visit,level\nv1-1,3\nnew,4\nnew,5\n")
    done = backend.prepare(folder / ".sfumato" / "postgres.duckdb", load_catalog(folder).tables, folder)
    assert set(done.read) == {"tests"}
    with sf.open(folder) as opened:
        assert opened.ask("SELECT COUNT(*) AS n FROM tests", epsilon=500).rows[0]["n"] == pytest.approx(3, abs=1)
    assert tables_in(connection, side)[1] == 6, "of each table, two versions"


def test_one_table_is_protected_in_a_session(place):
    """Temporary tables: they need no schema, and end with the engine."""
    _, url, made, _ = place
    options = {
        "name": "visits", "unit": "pid", "max_rows_per_unit": 2, "budget": sf.Budget(epsilon=1000),
        "columns": {"pid": sf.Id(), "cost": sf.Real(0, 100)}, "population": f"people of {made}",
    }  # fmt: skip
    backend = sf.engines.postgres(url)
    with (
        sf.protect(f"{url.replace(':@', '@')}::{made}.visits", engine=backend, **options) as there,
        sf.protect(f"{url.replace(':@', '@')}::{made}.visits", **options) as plain,
        sf.protect(f"{url.replace(':@', '@')}::{made}.visits", engine=backend, **options) as again,
    ):
        question = "SELECT SUM(cost) AS s, COUNT(*) AS n FROM visits"
        assert measure(there, question) == measure(plain, question)
        assert there.desk.versions == again.desk.versions != plain.desk.versions
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(measure(there, question))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [answers[0]] * 8


def test_a_version_of_columns_with_signs_of_the_driver(place):
    """psycopg reads %s as the place of a value; a column may be called that."""
    _, url, made, _ = place
    options = {
        "name": "visits", "unit": sf.ROW, "budget": sf.Budget(epsilon=1000), "engine": sf.engines.postgres(url),
        "columns": {"%s": sf.Integer(0, 9), "100%": sf.Integer(0, 9)}, "population": f"people of {made}",
    }  # fmt: skip
    frames = [pd.DataFrame({"%s": [1, 2], "100%": [3, last]}) for last in (4, 4, 5)]
    versions = []
    for frame in frames:
        with sf.protect(frame, **options) as there:
            versions.append(there.desk.versions)
    assert versions[0] == versions[1] != versions[2]


def test_a_transaction_is_read_only_and_has_a_limit(place):
    folder, url, made, _ = place
    write_catalog(folder, made)
    with sf.open(folder, engine=sf.engines.postgres(url, schema=f"side_{made}", timeout_seconds=7)) as opened:
        sessions = opened.engine._sessions
        session = sessions.take()
        with sessions.read(session) as cursor:
            settings = ("transaction_read_only", "transaction_isolation", "statement_timeout")
            found = [cursor.execute(f"SHOW {name}").fetchone()[0] for name in settings]
            assert found == ["on", "repeatable read", "7s"]
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                cursor.execute(f"DELETE FROM {made}.visits")
        sessions.give_back(session)


def test_failures_after_the_charge_say_nothing(place):
    folder, url, made, connection = place
    write_catalog(folder, made)
    side = f"side_{made}"
    with sf.open(folder, engine=sf.engines.postgres(url, schema=side)) as opened:
        plan = opened.desk.plan(bind(parse(QUESTIONS[0]), opened.dataset), sf.PureDP(1)).plan
        opened.engine.check(plan)
        connection.execute(f"DROP SCHEMA {side} CASCADE")
        with pytest.raises(EngineFailed) as caught:
            opened.engine.aggregate(plan)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None
        with pytest.raises(CatalogError, match="not in the database any more") as caught:
            opened.ask(QUESTIONS[0], epsilon=1)
        assert "prepare --all" in caught.value.hint
        assert opened.budget.spent.epsilon == 0


def test_a_lost_connection_is_replaced_before_the_charge(place):
    folder, url, made, connection = place
    write_catalog(folder, made)
    with sf.open(folder, engine=sf.engines.postgres(url, schema=f"side_{made}")) as opened:
        opened.ask(QUESTIONS[0], epsilon=1)
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        connection.execute(f"{ended} AND backend_type = 'client backend'")
        assert opened.ask(QUESTIONS[0], epsilon=2).rows
        spent = opened.budget.spent.epsilon
        opened.engine._sessions._url = "postgresql://127.0.0.1:1/none"
        opened.engine._sessions.close()
        with pytest.raises(CatalogError, match="cannot be reached"):
            opened.ask(QUESTIONS[0], epsilon=4)
        assert opened.budget.spent.epsilon == spent, "nothing was charged"


def test_a_child_process_opens_its_own_connection(place):
    folder, url, made, _ = place
    write_catalog(folder, made)
    with sf.open(folder, engine=sf.engines.postgres(url, schema=f"side_{made}")) as opened:
        sessions, parent = opened.engine._sessions, opened.engine._sessions._idle[0]
        sessions._process = os.getpid() + 1  # as a forked child sees it
        mine = sessions.take()
        assert mine is not parent
        mine.close()
        parent.close()


def test_who_may_not_make_a_schema_is_told_what_to_do(place, postgres_server):
    folder, url, made, connection = place
    write_catalog(folder, made)
    role = f"reader_{uuid.uuid4().hex[:12]}"
    connection.execute(f"CREATE ROLE {role} LOGIN")
    connection.execute(f"GRANT USAGE ON SCHEMA {made} TO {role}")
    connection.execute(f"GRANT SELECT ON {made}.visits TO {role}")
    theirs = url.replace("postgres:@", f"{role}@")
    with pytest.raises(CatalogError, match="may not make the schema") as caught:
        sf.open(folder, engine=sf.engines.postgres(theirs, schema=f"side_{made}"))
    assert "AUTHORIZATION" in caught.value.hint
    with sf.open(folder, engine=sf.engines.postgres(theirs, schema=None)) as opened:
        assert opened.ask("SELECT COUNT(*) AS n FROM patients", epsilon=100).rows[0]["n"] == pytest.approx(40, abs=2)


def test_arguments_are_checked():
    for options in (
        {"url": 3},
        {"schema": "a b"},
        {"schema": "pg_x"},
        {"timeout_seconds": 0},
        {"timeout_seconds": "9"},
    ):
        with pytest.raises(InvalidParameter):
            sf.engines.postgres(**options)
    with pytest.raises(InvalidParameter, match="engine"):
        sf.open("nowhere", engine="postgres")


@pytest.mark.parametrize(
    ("engine", "message"),
    [("oracle", "no such engine"), ("postgresql://ann:secret@host/db", "must not have a password")],
)
def test_a_wrong_engine_in_a_catalog_is_refused(place, engine, message):
    folder, _, made, _ = place
    write_catalog(folder, made, f'engine = "{engine}"')
    with pytest.raises(CatalogError, match=message) as caught:
        sf.open(folder)
    assert "secret" not in str(caught.value)


def test_a_text_that_the_server_cannot_hold_is_refused(place):
    folder, url, made, _ = place
    write_catalog(folder, made)
    rows = [{"note": "a\0secret"}]
    with pytest.raises(CatalogError, match=r"cannot be stored in PostgreSQL.*U\+0000") as caught:
        sf.protect(
            pd.DataFrame(rows), name="t", unit=sf.ROW, columns={"note": sf.Text()},
            budget=sf.Budget(epsilon=1), engine=sf.engines.postgres(url),
        )  # fmt: skip
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
