"""A real Spark for the tests: one local session for all tests of a process, small and quiet."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from functools import cache

import pandas as pd
import pyarrow as pa
import pytest

from sfumato.ingest.canonical import spell_value

LEAST_JAVA = 17
INSTALL = "Install it: sudo apt-get install openjdk-17-jre-headless."
# compiling Java takes longer than small tables do; `make test-slow` compiles, as clusters do
CODEGEN = os.environ.get("SFUMATO_SPARK_CODEGEN", "false")
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",  # tiny tables: planning again takes longer than it saves
    "spark.sql.execution.arrow.maxRecordsPerBatch": "7",  # many small batches: their borders must not matter
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.codegen.wholeStage": CODEGEN,
    "spark.sql.codegen.factoryMode": "FALLBACK" if CODEGEN == "true" else "NO_CODEGEN",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
}


def find_java():
    """The version of Java, or None."""
    try:
        found = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    version = found.split('"')[1].split(".")[0]
    return int(version) if version.isdigit() else None


def require_java():
    """Skip the test where Java 17 or newer is missing, and say so; under CI, fail."""
    if (find_java() or 0) < LEAST_JAVA:
        missing = f"*** Java {LEAST_JAVA} or newer is missing, so the engine on Spark is NOT TESTED. {INSTALL} ***"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)


def make_warehouse():
    """A folder of this process for the tables that Spark manages: another run must not find them."""
    folder = tempfile.mkdtemp(prefix="sfumato-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def start_spark():
    """The session. Python's own interpreter runs the executors' code."""
    require_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas' version
        from pyspark.sql import SparkSession

        building = SparkSession.builder.master("local[2]").appName("sfumato tests")
        for name, value in {**SETTINGS, "spark.sql.warehouse.dir": make_warehouse()}.items():
            building = building.config(name, value)
        session = building.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def to_spark(rows):
    """A pandas frame as an Arrow table and its schema for Spark: objects are texts, as a CSV file would have them."""
    columns = {}
    for name in rows.columns:
        values = [None if pd.isna(value) else value for value in rows[name]]
        if rows[name].dtype == object or str(rows[name].dtype) == "str":
            texts = [None if value is None else spell_value(value) for value in values]
            columns[name] = pa.array(texts, pa.string())
        else:
            columns[name] = pa.array(rows[name], from_pandas=False)
    table = pa.table(columns)
    kinds = {"double": "DOUBLE", "int64": "BIGINT", "string": "STRING", "bool": "BOOLEAN"}
    return table, ", ".join(f"`{field.name}` {kinds[str(field.type)]}" for field in table.schema)
