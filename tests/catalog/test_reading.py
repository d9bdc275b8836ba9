"""How a source is read is declared in the catalog, checked there, and part of what a snapshot was made from."""

import pandas as pd
import pytest

import sfumato as sf
from sfumato.catalog.catalog_file import load_catalog
from sfumato.catalog.dataset import Dataset, Table
from sfumato.catalog.text_format import TextFormat
from sfumato.errors import CatalogError
from sfumato.ingest.declared_versions import hash_declaration

FRAME = pd.DataFrame({"x": [1]})
CATALOG = """
[dataset]
name = "d"
neighbours = "replace-one"
[budget]
epsilon = 1
[tables.t]
source = "t.csv"
unit = "row"
columns.x = { type = "integer", lower = 0, upper = 9 }
"""


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("encoding", "klingon", "encoding 'klingon' is not known"),
        ("encoding", "iso-2022-jp", "is not known"),  # it has a state: one record can change how the next is decoded
        ("encoding", 5, "encoding must be text"),
        ("delimiter", "", "delimiter must be one plain character"),
        ("delimiter", '"', "delimiter must be one plain character"),
        ("delimiter", "ab", "delimiter must be one plain character"),
        ("delimiter", "\n", "delimiter must be one plain character"),
        ("delimiter", "\u00e9", "delimiter must be one plain character"),
        ("delimiter", "5", "must not be a letter, a digit"),
        ("decimal", ";", 'decimal must be "." or ","'),
        ("date_format", "%d/%m", "must hold a year, a month and a day"),
        ("date_format", "%Q", "which is not known"),
        ("date_format", "%d%d%m%Y", "uses a part twice"),
        ("on_error", "ignore", 'on_error must be "refuse" or "skip"'),
        ("on_error", "skip", "needs records that end at every line break"),
        ("quoted_newlines", "no", "quoted_newlines must be true or false"),
    ],
)
def test_what_cannot_be_read_so_is_refused(key, value, rule):
    with pytest.raises(CatalogError) as caught:
        TextFormat(**{key: value})
    assert rule in caught.value.message
    with pytest.raises(CatalogError) as caught:
        sf.protect(FRAME, name="t", unit=sf.ROW, columns={}, budget=sf.Budget(1), **{key: value})
    assert rule in caught.value.message


def test_skipping_is_offered_only_where_a_record_is_a_line():
    assert TextFormat(on_error="skip", quoted_newlines=False).on_error == "skip"
    for declared in (None, True):
        with pytest.raises(CatalogError) as caught:
            TextFormat(on_error="skip", quoted_newlines=declared)
        assert "quoted_newlines = false" in caught.value.hint


@pytest.mark.parametrize(
    "line",
    [
        "rows = 3",
        'encoding = "latin-1"',
        'delimiter = ";"',
        'decimal = ","',
        'date_format = "%d/%m/%Y"',
        "quoted_newlines = false",
        "quoted_newlines = true",
        'source = "other.csv"',
    ],
)
def test_a_declaration_edited_after_pinning_is_refused(tmp_path, line):
    """Among them `rows`: the digest did not contain it, and after an edit AVG was 0.0 instead of 4.5."""
    (tmp_path / "t.csv").write_text("x\n4\n5\n")
    (tmp_path / "catalog.toml").write_text(CATALOG)
    sf.open(tmp_path).close()
    ledger_id = next(line for line in (tmp_path / "catalog.toml").read_text().splitlines() if "ledger_id" in line)
    edited = CATALOG.replace("[budget]", f"{ledger_id}\n[budget]")
    if line.startswith("source"):
        edited = edited.replace('source = "t.csv"', line)
    else:
        edited = edited.replace('unit = "row"', f'unit = "row"\n{line}')
    (tmp_path / "catalog.toml").write_text(edited)
    with pytest.raises(CatalogError, match="not pinned as it is declared now") as caught:
        sf.open(tmp_path)
    assert "sfumato prepare" in caught.value.hint


def test_the_digest_changes_with_every_key():
    """A snapshot that skipped malformed records is not used for a declaration that refuses them."""
    declared = {"x": sf.Integer(0, 9)}
    plain = hash_declaration(Table("t", "t.csv", sf.ROW, declared, reading=TextFormat(quoted_newlines=False)))
    skip = TextFormat(on_error="skip", quoted_newlines=False)
    assert hash_declaration(Table("t", "t.csv", sf.ROW, declared, reading=skip)) != plain
    digests = {
        hash_declaration(Table("t", "t.csv", sf.ROW, declared, reading=TextFormat(quoted_newlines=quoted)))
        for quoted in (None, True, False)
    }
    assert len(digests) == 3
    assert plain in digests  # the same declaration opens the snapshot


def test_every_key_is_read_from_the_catalog(tmp_path):
    keys = 'encoding = "latin-1"\ndelimiter = "\\t"\ndecimal = ","\ndate_format = "%d.%m.%Y"\n'
    keys += 'on_error = "skip"\nquoted_newlines = false\n'
    catalog = CATALOG.replace("replace-one", "add-remove").replace('unit = "row"\n', f'unit = "row"\n{keys}')
    (tmp_path / "catalog.toml").write_text(catalog)
    assert load_catalog(tmp_path).table("t").reading == TextFormat("latin-1", "\t", ",", "%d.%m.%Y", "skip", False)


SKIP = TextFormat(on_error="skip", quoted_newlines=False)
COLUMNS = {"x": sf.Integer(0, 9, nullable=False)}


@pytest.mark.parametrize("count_column", [None, "n"], ids=["row", "counts"])
def test_records_are_not_skipped_where_a_replaced_row_must_stay(count_column):
    """A malformed record in place of another would remove a row, and a sum would move by more than its span."""
    table = Table("t", "t.csv", sf.ROW, COLUMNS, reading=SKIP, count_column=count_column)
    with pytest.raises(CatalogError, match="not allowed with replace-one"):
        Dataset("d", [table], sf.Budget(epsilon=1), neighbours="replace-one")
    Dataset("d", [table], sf.Budget(epsilon=1), neighbours="add-remove")


def test_records_of_people_and_of_public_tables_may_be_skipped():
    """A person may have no rows, and a public table is nobody's."""
    people = Table("t", "t.csv", "id", {"id": sf.Id(), **COLUMNS}, reading=SKIP)
    public = Table("p", "p.csv", None, {}, public=True, reading=SKIP)
    made = Dataset("d", [people, public], sf.Budget(epsilon=1), neighbours="replace-one")
    assert made.tables["t"].reading == SKIP
