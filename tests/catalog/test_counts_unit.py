"""A counts table in the catalog: it is written, read back and pickled as the same table."""

import pickle
from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.catalog.catalog_file import load_catalog, write_catalog
from sfumato.catalog.counts_unit import ONE_PERSON, Counts, read_unit
from sfumato.catalog.dataset import Dataset, Table
from sfumato.errors import CatalogError
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit

HEAD = '[dataset]\nname = "d"\n[budget]\nepsilon = "1"\n[tables.t]\n'
COLUMNS = {"type": sf.Category(["a", "b"])}


@pytest.mark.parametrize("most", [None, 500])
def test_a_counts_table_reads_back(tmp_path, most):
    columns = COLUMNS if most is None else COLUMNS | {"n": sf.Integer(0, most)}
    table = Table("t", "t.csv", ROW, columns, count_column="n")
    dataset = Dataset("d", [table], sf.Budget(epsilon=1))
    assert (table.columns["n"], table.most_count, table.unit) == (ONE_PERSON, most, ROW)
    assert dataset.unit("t") == PrivacyUnit("t", ROW, Neighbours.ADD_REMOVE)
    write_catalog(dataset, tmp_path)
    text = (tmp_path / "catalog.toml").read_text()
    assert 'unit = "counts"\ncount_column = "n"\n' in text
    assert ('columns.n = { type = "integer", lower = 0, upper = 500 }' in text) is (most is not None)
    assert load_catalog(tmp_path) == dataset
    assert pickle.loads(pickle.dumps(table)) == table
    assert replace(table, source="u.csv").most_count == most
    assert table != Table("t", "t.csv", ROW, table.columns)


def test_the_count_column_has_its_declared_spelling():
    table = Table("t", None, ROW, {"People": sf.Integer(0, 9), **COLUMNS}, count_column="people")
    assert (table.count_column, list(table.columns), table.most_count) == ("People", ["People", "type"], 9)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('unit = "counts"', 'unit = "counts" and count_column need each other'),
        ('unit = "row"\ncount_column = "n"', "need each other"),
        ('unit_column = "id"\ncount_column = "n"', "need each other"),
        ('public = true\ncount_column = "n"', "need each other"),
        ('unit = "counts"\ncount_column = 5', "count_column"),
        ('unit = "counts"\ncount_column = ""', "count_column"),
        ('unit = "counts"\ncount_column = "n"\npublic = true', "public"),
        ('unit = "counts"\ncount_column = "n"\nmax_rows_per_unit = 2', "must be 1"),
        ('unit = "counts"\ncount_column = "n"\npeople = 5', "rows = n"),
        ('unit = "counts"\ncount_column = "n"\nunit_column = "id"', "contradict"),
        ('unit = "counts"\ncount_column = "n"\ncolumns.n = { type = "real", lower = 0, upper = 9 }', "count column n"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, lines, message):
    (tmp_path / "catalog.toml").write_text(HEAD + lines + "\n")
    with pytest.raises(CatalogError) as refusal:
        load_catalog(tmp_path)
    assert message in str(refusal.value)


def test_a_unit_is_read_from_a_text():
    assert read_unit("COUNTS(n)") == Counts("n") == sf.COUNTS("n")
    assert read_unit("COUNTS( number of people )") == Counts("number of people")
    assert (read_unit("ROW"), read_unit("id"), read_unit("COUNTS")) == (ROW, "id", "COUNTS")
    with pytest.raises(CatalogError):
        read_unit("COUNTS( )")


def test_counts_is_a_public_name():
    assert "COUNTS" in dir(sf)
    assert sf.COUNTS("n").column == "n"
    for bad in (5, None, sf.COUNTS):
        with pytest.raises(CatalogError, match=r"ROW or COUNTS\(column\)"):
            sf.protect("t.csv", name="t", unit=bad, columns=COLUMNS, budget=sf.Budget(epsilon=1))
