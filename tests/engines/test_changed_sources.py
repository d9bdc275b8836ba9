"""The owner's commands find the sources that changed since they were pinned, and load only those again."""

import os
import shutil

import duckdb
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.ingest import snapshot_file
from sfumato.ingest.load_report import Loading
from sfumato.ingest.snapshot_file import compare_pinned
from sfumato.ingest.source_state import SourceStatus

X = {"x": sf.Integer(0, 9)}
A, B = (Table(name, f"{name}.csv", sf.ROW, X) for name in "ab")
VISITS = Table("visits", "visits.csv", "pid", {"pid": sf.Id(), "visit": sf.Id()}, 5)
TESTS = Table(
    "tests", "tests.csv", None, {"visit": sf.Id(), "x": sf.Integer(0, 9)}, 5, unit_through=("visit", "visits")
)
FINER = Table("finer", "finer.csv", None, {"visit": sf.Id()}, 5, unit_through=("visit", "tests"))


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("x\n1\n2\n")
    (tmp_path / "visits.csv").write_text("pid,visit\np,v\n")
    (tmp_path / "tests.csv").write_text("visit,x\nv,1\n")
    (tmp_path / "finer.csv").write_text("visit\nv\n")
    return tmp_path


def prepare(folder, *tables, **options):
    return DuckDBEngine.prepare(folder / "s.duckdb", {table.name: table for table in tables}, folder, **options)


def states(folder, *tables):
    return compare_pinned(folder / "s.duckdb", {table.name: table for table in tables}, folder)


def versions(folder, *tables):
    engine = DuckDBEngine.open(folder / "s.duckdb", {table.name: table for table in tables})
    engine.close()
    return engine.versions


def test_nothing_is_read_when_nothing_has_changed(folder, monkeypatch):
    prepare(folder, A, B)
    before, first = (folder / "s.duckdb").stat(), versions(folder, A, B)
    monkeypatch.setattr(snapshot_file, "pin", lambda *_: pytest.fail("a source was read"))
    done = prepare(folder, A, B)
    assert (dict(done.read), done.kept, len(done.report)) == ({}, ("a", "b"), 0)
    after = (folder / "s.duckdb").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert versions(folder, A, B) == first


def test_content_decides_not_the_time_of_a_file(folder):
    prepare(folder, A)
    was = (folder / "a.csv").stat()
    os.utime(folder / "a.csv", ns=(1, 1))
    assert states(folder, A)["a"].source is SourceStatus.UNCHANGED
    (folder / "a.csv").write_text("x\n1\n3\n")  # of the same size, and of the same time
    os.utime(folder / "a.csv", ns=(was.st_atime_ns, was.st_mtime_ns))
    found = states(folder, A)["a"]
    assert (found.source, found.files, found.stale) == (SourceStatus.CHANGED, ("a.csv",), True)


def test_one_changed_source_gives_one_new_version(folder):
    prepare(folder, A, B)
    first = versions(folder, A, B)
    (folder / "b.csv").write_text("x\n1\n2\n3\n")
    done = prepare(folder, A, B)
    assert dict(done.read) == {"b": "b.csv changed"}
    assert done.report["b"].rows == 3
    second = versions(folder, A, B)
    assert (second["a"] == first["a"], second["b"] == first["b"]) == (True, False)


def test_a_changed_declaration_loads_that_table(folder):
    prepare(folder, A, B)
    first = versions(folder, A, B)
    wider = Table("a", "a.csv", sf.ROW, {"x": sf.Integer(0, 99)})
    assert dict(prepare(folder, wider, B).read) == {"a": "its declaration changed"}
    assert versions(folder, wider, B)["b"] == first["b"]


def test_one_table_can_be_loaded_by_name(folder):
    prepare(folder, A, B)
    first = versions(folder, A, B)
    (folder / "b.csv").write_text("x\n1\n")
    assert list(prepare(folder, A, B, only="a").read) == ["a"]
    second = versions(folder, A, B)
    assert (second["a"] != first["a"], second["b"] == first["b"]) == (True, True)
    assert states(folder, A, B)["b"].source is SourceStatus.CHANGED


def test_tables_that_reach_their_people_through_it_are_loaded_too(folder):
    tables = (FINER, TESTS, VISITS, A)
    prepare(folder, *tables)
    first = versions(folder, *tables)
    done = prepare(folder, *tables, only="visits")
    assert list(done.read) == ["visits", "tests", "finer"]
    assert versions(folder, *tables)["a"] == first["a"]
    (folder / "visits.csv").write_text("pid,visit\nq,v\n")
    assert set(prepare(folder, *tables).read) == {"visits", "tests", "finer"}
    assert set(prepare(folder, *tables, only="tests").read) == {"tests", "finer"}


def test_all_loads_everything(folder):
    prepare(folder, A, B)
    first = versions(folder, A, B)
    assert set(prepare(folder, A, B, everything=True).read) == {"a", "b"}
    assert not set(first.values()) & set(versions(folder, A, B).values())


def test_a_source_that_is_gone_stays_pinned(folder):
    prepare(folder, A, B)
    first = versions(folder, A, B)
    (folder / "a.csv").unlink()
    (folder / "b.csv").write_text("x\n1\n")
    found = states(folder, A, B)["a"]
    assert (found.source, found.stale) == (SourceStatus.GONE, False)
    done = prepare(folder, A, B)
    assert (list(done.read), done.gone) == (["b"], ("a",))
    assert versions(folder, A, B)["a"] == first["a"]


def test_files_that_come_and_go_are_named(folder):
    (folder / "parts").mkdir()
    for name in ("1", "2"):
        (folder / "parts" / f"{name}.csv").write_text("x\n1\n")
    many = Table("many", "parts/*.csv", sf.ROW, X)
    prepare(folder, many)
    (folder / "parts" / "1.csv").unlink()
    (folder / "parts" / "3.csv").write_text("x\n1\n")
    assert states(folder, many)["many"].files == ("parts/1.csv", "parts/3.csv")


def test_a_database_counts_what_it_has_not_merged_and_which_table_is_named(folder):
    with duckdb.connect(str(folder / "c.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x; CREATE TABLE u AS SELECT 2 AS x")
    t, u = (Table("t", f"c.duckdb::{name}", sf.ROW, X) for name in "tu")
    prepare(folder, t)
    assert not states(folder, t)["t"].stale
    assert states(folder, u)["t"].stale
    (folder / "c.duckdb.wal").write_bytes(b"not merged")
    assert states(folder, t)["t"].files == ("c.duckdb.wal",)


def test_a_copied_folder_is_unchanged(folder, tmp_path_factory):
    prepare(folder, A)
    copy = tmp_path_factory.mktemp("copy") / "folder"
    shutil.copytree(folder, copy)
    assert states(copy, A)["a"].source is SourceStatus.UNCHANGED


def test_what_the_catalog_no_longer_declares_is_removed(folder):
    prepare(folder, A, B)
    assert prepare(folder, A).removed == ("b",)
    with duckdb.connect(str(folder / "s.duckdb"), read_only=True) as connection:
        names = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        kept = connection.execute("SELECT name FROM __sfumato_sources").fetchall()
    assert "b" not in names
    assert kept == [("a",)]


def test_a_damaged_or_foreign_snapshot_is_made_anew(folder):
    (folder / "s.duckdb").write_bytes(b"no database")
    assert not states(folder, A)["a"].pinned
    assert list(prepare(folder, A).read) == ["a"]
    with duckdb.connect(str(folder / "s.duckdb")) as connection:
        connection.execute("DROP TABLE __sfumato_sources")
    assert list(prepare(folder, A).read) == ["a"]


def test_strict_leaves_the_pinned_data_in_place(folder):
    prepare(folder, A, B)
    before = (folder / "s.duckdb").read_bytes()
    (folder / "a.csv").write_text("x\none\n")
    with pytest.raises(sf.errors.CatalogError, match="strict"):
        prepare(folder, A, B, loading=Loading(strict=True))
    assert (folder / "s.duckdb").read_bytes() == before
    assert prepare(folder, A, B).report.problems


def test_a_source_that_changes_while_it_is_read_is_refused(folder, monkeypatch):
    pin = snapshot_file.pin

    def meanwhile(connection, table, *rest):
        report = pin(connection, table, *rest)
        (folder / "a.csv").write_text("x\n1\n2\n3\n")
        return report

    monkeypatch.setattr(snapshot_file, "pin", meanwhile)
    with pytest.raises(sf.errors.CatalogError, match="changed while it was read"):
        prepare(folder, A)
    assert not (folder / "s.duckdb").exists()


def test_the_file_does_not_grow_with_every_load(folder):
    pd.DataFrame({"x": range(200_000)}).to_csv(folder / "a.csv", index=False)
    prepare(folder, A, B)
    sizes = []
    for _ in range(6):
        prepare(folder, A, B, only="a")
        sizes.append((folder / "s.duckdb").stat().st_size)
    assert sizes[-1] < 2 * sizes[0]


@settings(max_examples=15, deadline=None)
@given(st.sets(st.sampled_from(["visits", "tests", "finer", "a", "b"])))
def test_any_set_of_changed_sources_loads_exactly_what_depends_on_them(tmp_path_factory, changed):
    folder = tmp_path_factory.mktemp("many")
    content = {
        "a": "x\n1\n", "b": "x\n1\n", "visits": "pid,visit\np,v\n", "tests": "visit,x\nv,1\n", "finer": "visit\nv\n",
    }  # fmt: skip
    for name, text in content.items():
        (folder / f"{name}.csv").write_text(text)
    tables = (A, B, FINER, TESTS, VISITS)
    prepare(folder, *tables)
    first = versions(folder, *tables)
    for name in changed:
        (folder / f"{name}.csv").write_text(content[name] + content[name].splitlines()[1] + "\n")
    reached = {"visits": {"tests", "finer"}, "tests": {"finer"}}
    wanted = changed.union(*(reached.get(name, set()) for name in changed))
    assert set(prepare(folder, *tables).read) == wanted
    second = versions(folder, *tables)
    assert {name for name in first if first[name] != second[name]} == wanted
