"""TPC-H at scale 0.01, and curators of it: the catalog is the one that docs/tpch.md shows."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from tpch_questions import CATALOG, MeasuredOnce

import sfumato as sf
from sfumato.curator import Curator
from sfumato.ledger.ledger import Ledger, Limit

TABLES = ("customer", "orders", "lineitem", "supplier", "part", "nation", "region")


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The benchmark's tables. Line items use the same name for the order's id as orders."""
    program = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent)) or shutil.which("tpchgen-cli")
    if program is None:
        pytest.fail("tpchgen-cli is not installed; it comes with pip install 'sfumato[test]'")
    folder = tmp_path_factory.mktemp("tpch")
    subprocess.run([program, "parquet", "-s", "0.01", f"--output-dir={folder}"], check=True, capture_output=True)
    lines = f"SELECT l_orderkey AS o_orderkey, * EXCLUDE (l_orderkey) FROM '{folder / 'lineitem.parquet'}'"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({lines}) TO '{folder / 'renamed.parquet'}'")
    (folder / "renamed.parquet").replace(folder / "lineitem.parquet")
    return folder


@pytest.fixture(scope="session")
def plain(files):
    """The same tables for plain SQL."""
    with duckdb.connect() as connection:
        for name in TABLES:
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{files / name}.parquet'")
        yield connection


@pytest.fixture(scope="session")
def tpch(files):
    yield from _opened(files, CATALOG)


@pytest.fixture(scope="session")
def tight(files, tmp_path_factory):
    """The same data with tight bounds: ten orders, forty lines, and prices up to 50,000."""
    catalog = CATALOG
    for declared, tighter in (("_unit = 40", "_unit = 10"), ("_unit = 160", "_unit = 40"), ("105000", "50000")):
        assert declared in catalog
        catalog = catalog.replace(declared, tighter)
    folder = tmp_path_factory.mktemp("tight")
    for name in TABLES:
        (folder / f"{name}.parquet").symlink_to(files / f"{name}.parquet")
    yield from _opened(folder, catalog)


def _opened(folder, catalog):
    """A curator that measures each question only once and has an unlimited budget."""
    (folder / "catalog.toml").write_text(re.sub(r'epsilon = "\d+"', 'epsilon = "1e12"', catalog))
    with sf.open(folder) as opened:
        books = Ledger.create(None, opened.dataset.population, Limit(opened.dataset.budget.loss), {})
        yield Curator(opened.dataset, MeasuredOnce(opened.engine), books, opened.versions)
