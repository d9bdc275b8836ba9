"""tmlt.analytics on the tasks of bench/peers/compare.py, on a local Spark with two threads."""

import os
import sys
import warnings

from pyspark.sql import SparkSession
from speed import KEYS, MOST_ROWS, run
from tmlt.analytics import (
    AddOneRow,
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

warnings.filterwarnings("ignore")
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # looking for another address of the machine can take minutes
SESSIONS: dict[str, Session] = {}


def open_rows(columns: list[str], change: object, budget: object) -> Session:
    building = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    building = building.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    building = building.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "4")
    spark = building.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return Session.from_dataframe(
        budget, "t", spark.read.parquet(sys.argv[1]).select(*columns), protected_change=change
    )  # fmt: skip


def group(columns: list[str], change: object, *, person: bool) -> None:
    if not SESSIONS:
        SESSIONS["t"] = open_rows(columns, change, PureDPBudget(float("inf")))
    keys = KeySet.from_tuples([(key,) for key in KEYS], columns=["k"])

    def start():  # noqa: ANN202 - a builder changes as it is used
        begun = QueryBuilder("t")
        return (begun.enforce(MaxRowsPerID(MOST_ROWS)) if person else begun).groupby(keys)

    for query in (start().count(), start().sum("x", 0.0, 1.0), start().average("x", 0.0, 1.0)):
        SESSIONS["t"].evaluate(query, PureDPBudget(1)).collect()


def find_median() -> None:
    if not SESSIONS:
        SESSIONS["t"] = open_rows(["x"], AddOneRow(), PureDPBudget(float("inf")))
    SESSIONS["t"].evaluate(QueryBuilder("t").median("x", 0.0, 1.0), PureDPBudget(1)).collect()


def find_keys() -> None:
    budget = ApproxDPBudget(1, 1e-6)
    if not SESSIONS:
        SESSIONS["t"] = open_rows(["p", "item"], AddRowsWithID("p"), ApproxDPBudget(float("inf"), 1))
    asked = QueryBuilder("t").enforce(MaxRowsPerID(MOST_ROWS)).get_groups(["item"])
    SESSIONS["t"].evaluate(asked, budget).collect()


run(
    {
        "grouped": lambda: group(["k", "x"], AddOneRow(), person=False),
        "person": lambda: group(["k", "x", "p"], AddRowsWithID("p"), person=True),
        "median": find_median,
        "keys": find_keys,
        "noise": "no mechanism for values of one's own in its interface",
    }
)
