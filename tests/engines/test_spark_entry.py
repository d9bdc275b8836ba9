"""`sf.protect` of a Spark frame, `sf.open` with Spark, and a catalog that names it: whole answers, and refusals."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_session import start_spark

import sfumato as sf
from sfumato.catalog.catalog_file import load_catalog, read_dataset
from sfumato.engines import spark as spark_package
from sfumato.errors import CatalogError, InvalidParameter, MissingExtra

CATALOG = """
[dataset]
name = "clinic"
engine = "spark"
[budget]
epsilon = "1000"
delta = "1e-3"
[tables.visits]
source = "visits.parquet"
unit_column = "pid"
max_rows_per_unit = 3
columns.cost = { type = "real", lower = 0, upper = 10 }
columns.site = { type = "integer", lower = 1, upper = 3 }
columns.kind = { type = "text" }
[tables.sites]
source = "sites.parquet"
public = true
"""
VISITS = {
    "pid": [f"p{row % 40:03}" for row in range(120)], "cost": [row % 11 / 1.0 for row in range(120)],
    "site": [row % 3 + 1 for row in range(120)], "kind": ["a", "b", "b"] * 40,
}  # fmt: skip
SITES = {"site": [1, 2, 3], "region": ["n", "s", "n"]}
JOINED = "SELECT s.region, COUNT(*) AS n FROM visits v JOIN sites s ON v.site = s.site GROUP BY s.region ORDER BY 1"


@pytest.fixture(scope="module")
def spark():
    return start_spark()


def test_a_spark_frame_is_protected_where_it_is(spark):
    frame = spark.createDataFrame(pa.table(VISITS))
    columns = {"pid": sf.Id(), "cost": sf.Real(0, 10), "kind": sf.Text()}
    curator = sf.protect(
        frame, name="visits", unit="pid", columns=columns, budget=sf.Budget(epsilon=1000, delta="1e-3"),
        max_rows_per_unit=3,
    )  # fmt: skip
    answer = curator.ask("SELECT COUNT(*) AS n, AVG(cost) AS m FROM visits", epsilon=100)
    assert answer.rows[0]["n"] == pytest.approx(120, abs=1)
    assert answer.rows[0]["m"] == pytest.approx(sum(VISITS["cost"]) / 120, abs=0.2)
    keys = curator.ask("SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind ORDER BY kind", epsilon=100, delta="1e-6")
    assert [row["kind"] for row in keys.rows] == ["a", "b"]
    assert curator.load_report["visits"].rows == 120
    curator.close()


def make_folder(path):
    (path / "catalog.toml").write_text(CATALOG)
    pq.write_table(pa.table(VISITS), path / "visits.parquet")
    pq.write_table(pa.table(SITES), path / "sites.parquet")


def test_a_folder_on_spark_keeps_its_version_until_it_is_prepared_again(spark, tmp_path):
    make_folder(tmp_path)
    curator = sf.open(tmp_path, engine=sf.engines.spark(spark))
    assert [row["region"] for row in curator.ask(JOINED, epsilon=50).rows] == ["n", "s"]
    versions = dict(curator.versions)
    curator.close()
    with sf.open(tmp_path) as again:  # the catalog names Spark: the active session is used
        assert again.versions == versions
        assert again.ask(JOINED, epsilon=50).cost.epsilon == 0  # the stored answer
        backend = sf.engines.spark(spark)
        declared = load_catalog(tmp_path).tables
        done = backend.prepare(tmp_path / ".sfumato" / "spark.duckdb", declared, tmp_path, only="visits")
        assert set(done.read) == {"visits"}
        assert again.ask(JOINED, epsilon=50).cost.epsilon > 0  # newer data
        assert again.versions["visits"] != versions["visits"]
        assert again.versions["sites"] == versions["sites"]
    stored = tmp_path / ".sfumato" / "spark"
    assert stored.is_dir()
    assert (tmp_path / ".sfumato").stat().st_mode & 0o077 == 0


def test_what_is_no_session_or_path_is_refused(spark):
    with pytest.raises(CatalogError, match="not a Spark session"):
        sf.engines.spark("local")
    with pytest.raises(InvalidParameter, match="prepared"):
        sf.engines.spark(spark, prepared=3)
    with pytest.raises(CatalogError, match="Spark finds no source nowhere"):
        sf.protect(
            "nowhere", name="t", unit=sf.ROW, columns={}, budget=sf.Budget(epsilon=1), engine=sf.engines.spark(spark)
        )


def test_without_pyspark_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtra, match=r"sfumato\[spark\]"):
        spark_package()


def test_without_java_the_refusal_names_it(tmp_path):
    script = (
        "import sfumato as sf\ntry:\n    sf.engines.spark()\nexcept sf.errors.SfumatoError as error:\n    print(error)"
    )
    settings = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=settings, capture_output=True, text=True, check=True
    )
    assert "Java 17" in done.stdout


def test_the_page_about_spark_runs(spark, tmp_path):
    """Its Python as it is, on a table of that name; and its catalog is one."""
    text = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    rows = {"patient_id": VISITS["pid"], "cost": VISITS["cost"], "site": ["north", "south"] * 60}
    spark.sql("CREATE DATABASE IF NOT EXISTS clinic")
    spark.createDataFrame(pa.table(rows)).write.mode("overwrite").saveAsTable("clinic.visits")
    (snippet,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(snippet, names)
    assert names["clinic"].ask("SELECT COUNT(*) AS n FROM visits", epsilon=1).rows[0]["n"] == pytest.approx(120, abs=60)
    names["clinic"].close()
    (catalog,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    declared = read_dataset(catalog.encode())
    assert (declared.engine, declared.tables["visits"].source) == ("spark", "clinic.visits")
