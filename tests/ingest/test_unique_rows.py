"""Repeated unique keys: what stays of a person's rows, what the owner is told, and what cannot be declared."""

import hashlib

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.catalog_file import load_catalog, write_catalog
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import CatalogError
from sfumato.ingest.declared_versions import hash_declaration

COLUMNS = {"cid": sf.Id(), "oid": sf.Id(), "day": sf.Integer(1, 9), "note": sf.Text()}
row = st.tuples(
    st.sampled_from(["p", "q"]),
    st.sampled_from(["1", "2", None]),
    st.sampled_from([1, 2, None]),
    st.sampled_from("abc"),
)


def plain(rows, keys):
    """What plain Python keeps: of a person's rows with one key, the one whose content has the least md5."""

    def content(one):
        values = [str(value) if value is not None else None for value in (one[2], one[3], one[1])]  # by column name
        text = "".join("-" if value is None else f"{len(value.encode())}:{value}" for value in values).encode()
        return hashlib.md5(text, usedforsecurity=False).hexdigest(), text

    places = {"oid": 1, "day": 2}
    for key in keys:
        kept, best = [], {}
        for one in rows:
            values = tuple(one[places[name]] for name in key)
            if None in values:
                kept.append(one)
            elif (one[0], values) not in best or content(one) < content(best[one[0], values]):
                best[one[0], values] = one
        rows = [*kept, *best.values()]
    return rows


@pytest.mark.parametrize("keys", [(("oid",),), (("oid", "day"),), (("oid",), ("day",))])
@settings(max_examples=40, deadline=None)
@given(st.lists(row, max_size=12))
def test_what_stays_is_what_plain_python_keeps(keys, rows):
    table = Table("t", None, "cid", COLUMNS, max_rows_per_unit=1, unique=keys)
    frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"oid": object, "day": float})
    engine = DuckDBEngine.of_data(table, frame)
    selected = 'SELECT __sfumato_unit, oid, day, note, __sfumato_rows, __sfumato_met FROM "t"'
    found = engine._connection.execute(selected).fetchall()
    report = engine.load_report["t"]
    engine.close()
    wanted = plain(rows, keys)
    assert sorted(map(repr, (one[:4] for one in found))) == sorted(map(repr, wanted))
    for unit in "pq":
        mine = [one for one in found if one[0] == unit]
        assert {one[4] for one in mine} <= {len(mine)}
        assert sum(one[5] for one in mine) == min(len(mine), 8)
    assert (report.rows, report.repeated, report.records_read) == (len(wanted), len(rows) - len(wanted), len(rows))


def test_the_owner_is_told():
    frame = pd.DataFrame({"cid": ["a"] * 3 + ["b"], "oid": ["1", "1", "2", "1"], "n": [1, 1, 2, 3]})
    columns = {"cid": sf.Id(), "oid": sf.Id(unique=True), "n": sf.Integer(0, 9)}
    with pytest.warns(sf.errors.LoadWarning, match="25 % of the records repeat a unique key of the same person"):
        curator = sf.protect(
            frame, name="t", unit="cid", columns=columns, budget=sf.Budget(epsilon=1), max_rows_per_unit=2
        )
    assert "1 repeating a unique key of the same person" in str(curator.load_report)
    assert curator.load_report["t"].as_json()["repeated"] == 1
    with pytest.raises(CatalogError, match="strict"):
        sf.protect(
            frame, name="t", unit="cid", columns=columns, budget=sf.Budget(epsilon=1), max_rows_per_unit=2, strict=True
        )


def test_keys_are_written_and_read_back(tmp_path):
    table = Table("t", "t.csv", "cid", COLUMNS, 2, unique=(("oid",), ("oid", "day")))
    flagged = Table("t", "t.csv", "cid", COLUMNS | {"oid": sf.Id(unique=True)}, 2, unique=(("OID", "day"), "oid"))
    assert set(flagged.unique) == set(table.unique)
    write_catalog(Dataset("shop", [table], sf.Budget(epsilon=1)), tmp_path)
    assert load_catalog(tmp_path).tables["t"] == table
    assert 'unique = [["oid"], ["oid", "day"]]' in (tmp_path / "catalog.toml").read_text()
    text = (tmp_path / "catalog.toml").read_text().replace('unique = [["oid"], ["oid", "day"]]', 'unique = ["oid"]')
    (tmp_path / "catalog.toml").write_text(
        text.replace('oid = { type = "id" }', 'oid = { type = "id", unique = true }')
    )
    assert load_catalog(tmp_path).tables["t"].unique == (("oid",),)
    assert hash_declaration(table) != hash_declaration(Table("t", "t.csv", "cid", COLUMNS, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": sf.ROW}, "only for private tables whose unit is an id"),
        ({"unique": "oid"}, "must be a list"),
        ({"unique": (3,)}, "must list columns"),
        ({"unique": ((),)}, "must list columns"),
        ({"unique": ("other",)}, "other"),
        ({"unique": ("cost",)}, "real number"),
    ],
)
def test_what_cannot_be_a_key(options, message):
    settings = {"unit": "cid", "unique": ("oid",)} | options
    columns = COLUMNS | {"cost": sf.Real(0, 1)}
    with pytest.raises(sf.errors.SfumatoError, match=message):
        Table("t", None, settings["unit"], columns, unique=settings["unique"])
