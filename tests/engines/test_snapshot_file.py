"""The snapshot file is replaced completely or not at all, also while others read it, and fits one declaration only."""

import subprocess
import sys

import duckdb
import pandas as pd
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.ingest import connections, csv_files, snapshot, snapshot_file
from sfumato.ingest.connections import SEALED
from sfumato.ingest.snapshot_file import open_to_read
from sfumato.ingest.source_refusals import NotEnoughMemory

COLUMNS = {"x": sf.Integer(0, 9)}
A, B = (Table(name, f"{name}.csv", sf.ROW, COLUMNS) for name in ("a", "b"))
READER = """
import sys, duckdb
held = duckdb.connect(sys.argv[1], read_only=True)
count = lambda: print(held.execute("SELECT COUNT(*) FROM a").fetchone()[0], flush=True)
count()
input()
count()
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("x\n1\n2\n")
    return tmp_path


def counted(path, name="a"):
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0]


def versions(path, *tables):
    engine = DuckDBEngine.open(path, {table.name: table for table in tables})
    engine.close()
    return engine.versions


def test_prepare_makes_a_new_version_of_what_changed_and_keeps_the_others(folder):
    path = folder / ".sfumato" / "snapshot.duckdb"
    DuckDBEngine.prepare(path, {"a": A, "b": B}, folder)
    first = versions(path, A, B)
    (folder / "a.csv").write_text("x\n1\n2\n3\n")
    DuckDBEngine.prepare(path, {"a": A, "b": B}, folder)
    second = versions(path, A, B)
    assert counted(path) == 3
    assert first["a"] != second["a"]
    assert first["b"] == second["b"]
    DuckDBEngine.prepare(path, {"a": A, "b": B}, folder, everything=True)
    assert not set(second.values()) & set(versions(path, A, B).values())
    assert [file.name for file in path.parent.iterdir()] == ["snapshot.duckdb"]


def test_prepare_leaves_everything_or_nothing(folder):
    path = folder / "snapshot.duckdb"
    DuckDBEngine.prepare(path, {"a": A, "b": B}, folder)
    before = path.read_bytes()
    (folder / "a.csv").write_text("x\n1\n")
    (folder / "b.csv").unlink()
    with pytest.raises(sf.errors.CatalogError, match=r"tables\.b"):
        DuckDBEngine.prepare(path, {"a": A, "b": B}, folder, everything=True)
    assert path.read_bytes() == before
    assert {file.name for file in folder.iterdir()} == {"a.csv", "snapshot.duckdb"}


def test_add_keeps_what_is_pinned(folder):
    path = folder / "snapshot.duckdb"
    DuckDBEngine.add(path, {"a": A}, "a", folder)
    first = versions(path, A)
    (folder / "a.csv").unlink()
    DuckDBEngine.add(path, {"a": A, "b": B}, "b", folder)
    assert versions(path, A, B)["a"] == first["a"]
    assert counted(path, "a") == counted(path, "b") == 2


def test_add_begins_again_what_was_cut_off_and_pins_what_is_missing(folder):
    path = folder / "snapshot.duckdb"
    DuckDBEngine.add(path, {"b": B}, "b", folder)  # declared nowhere: the program ended before the catalog was written
    (folder / "b.csv").write_text("x\n1\n")
    DuckDBEngine.add(path, {"a": A, "b": B}, "b", folder)
    assert (counted(path, "a"), counted(path, "b")) == (2, 1)


def test_who_reads_keeps_the_file_that_was_opened(folder):
    path = folder / "snapshot.duckdb"
    DuckDBEngine.prepare(path, {"a": A}, folder)
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout.readline() == "2\n"
        (folder / "a.csv").write_text("x\n" * 6)
        DuckDBEngine.prepare(path, {"a": A}, folder)
        DuckDBEngine.add(path, {"a": A, "b": B}, "b", folder)
        assert reader.communicate("\n")[0] == "2\n"
    assert counted(path) == 5


def test_a_crash_before_the_end_leaves_the_old_file(folder, monkeypatch):
    path = folder / "snapshot.duckdb"
    DuckDBEngine.prepare(path, {"a": A}, folder)
    before = path.read_bytes()
    monkeypatch.setattr(snapshot_file.os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full", "x")))
    with pytest.raises(OSError, match="full"):
        DuckDBEngine.prepare(path, {"a": A}, folder, everything=True)
    assert path.read_bytes() == before


def test_the_files_mode_stays(folder):
    path = folder / "snapshot.duckdb"
    DuckDBEngine.prepare(path, {"a": A}, folder)
    path.chmod(0o600)
    DuckDBEngine.prepare(path, {"a": A}, folder, everything=True)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_table_without_a_source_is_refused(folder):
    with pytest.raises(sf.errors.CatalogError, match="has no source"):
        DuckDBEngine.prepare(folder / "s.duckdb", {"a": Table("a", None, sf.ROW, COLUMNS)}, folder)


def test_it_can_be_opened_twice_at_once(folder):
    path = folder / "snapshot.duckdb"
    DuckDBEngine.prepare(path, {"a": A}, folder)
    one, two = (DuckDBEngine.open(path, {"a": A}) for _ in range(2))
    assert one.versions == two.versions
    one.close()
    assert two._connection.execute("SELECT COUNT(*) FROM a").fetchone() == (2,)
    two.close()


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('{folder}/a.csv')",
        "SELECT * FROM '{folder}/a.csv'",
        "SELECT * FROM glob('{folder}/*')",
        "COPY a TO '{folder}/out.csv'",
        "ATTACH '{folder}/other.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "SELECT * FROM in_python",
    ],
)
def test_the_connection_can_do_nothing_else(folder, statement, in_memory):
    in_python = [1, 2]
    path = folder / "snapshot.duckdb"
    DuckDBEngine.prepare(path, {"a": A}, folder)
    engine = DuckDBEngine.of_data(A, folder / "a.csv") if in_memory else DuckDBEngine.open(path, {"a": A})
    with pytest.raises(duckdb.Error):
        engine._connection.execute(statement.format(folder=folder))
    engine.close()
    assert not (folder / "out.csv").exists()
    assert in_python


def test_a_pinned_file_cannot_be_written(folder):
    path = folder / "snapshot.duckdb"
    DuckDBEngine.prepare(path, {"a": A}, folder)
    with open_to_read(path) as connection, pytest.raises(duckdb.Error):
        connection.execute("DELETE FROM a")
    assert list(SEALED)[-1] == "lock_configuration"  # where they are set one by one, this comes last


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("small", [True, False])
def test_one_thread_reads_small_tables(folder, monkeypatch, in_memory, small):
    if not small:
        monkeypatch.setattr(connections, "ROWS_AT_ONCE", 0)
        monkeypatch.setattr(snapshot_file, "SMALL_FILE", 0)
    path = folder / "snapshot.duckdb"
    DuckDBEngine.prepare(path, {"a": A}, folder)
    engine = DuckDBEngine.of_data(A, folder / "a.csv") if in_memory else DuckDBEngine.open(path, {"a": A})
    ((threads,),) = engine._connection.execute("SELECT current_setting('threads')").fetchall()
    engine.close()
    assert threads == (1 if small else duckdb.connect().execute("SELECT current_setting('threads')").fetchall()[0][0])


def test_a_malformed_file_is_read_once(folder, monkeypatch):
    """A load is repeated only if memory was short: a file that is refused would be refused again."""
    looked = []
    separate = csv_files.separate
    monkeypatch.setattr(csv_files, "separate", lambda *given, **keys: looked.append(1) or separate(*given, **keys))
    (folder / "a.csv").write_text('x\n1\n"2\n')
    with pytest.raises(sf.errors.CatalogError, match="line 3"):
        DuckDBEngine.prepare(folder / ".sfumato" / "snapshot.duckdb", {"a": A}, folder)
    assert looked == [1]
    (folder / "a.csv").write_text("x\n1\n2\n")
    DuckDBEngine.prepare(folder / ".sfumato" / "snapshot.duckdb", {"a": A}, folder)
    assert looked == [1, 1]


def test_a_load_that_lacks_memory_begins_again_with_more(folder, monkeypatch):
    path, limits = folder / ".sfumato" / "snapshot.duckdb", []

    def pin(connection, *given):
        limits.append(connection.execute("SELECT current_setting('memory_limit')").fetchall()[0][0])
        return snapshot.pin(connection, *given)

    monkeypatch.setattr(snapshot_file, "pin", pin)
    monkeypatch.setattr(snapshot_file, "MEMORY_FOR_CSV", ("400KB", "500KB"))
    (folder / "a.csv").write_text("x\n" + "1\n" * 300_000)
    DuckDBEngine.prepare(path, {"a": A}, folder)
    assert counted(path) == 300_000
    assert len(limits) == 3
    assert all(limit.endswith("KiB") for limit in limits[:2])
    assert limits[2].endswith("GiB")


def test_a_want_of_memory_is_said():
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '500KB'")
        connection.execute("SET temp_directory = ''")
        with pytest.raises(NotEnoughMemory, match="not enough memory"):
            snapshot.pin(connection, A, pd.DataFrame({"x": range(1_000_000)}))
