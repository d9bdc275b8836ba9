"""How long tmlt.analytics takes for a count, a sum and a mean by key: one line for each privacy unit.

Run by bench/spark.py, in the environment of the peer, with the path of the rows. The first answer is not counted.
"""

import os
import sys
import time
import warnings

import numpy as np
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session

warnings.filterwarnings("ignore")
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # looking for another address of the machine can take minutes
ROUNDS = 3
EACH_PERSON = 10
KEYS = KeySet.from_tuples([(f"k{index:02}",) for index in range(100)], columns=["k"])


def main() -> None:
    building = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    building = building.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    building = building.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "4")
    spark = building.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    rows = spark.read.parquet(sys.argv[1])
    for unit, change in (("row", AddOneRow()), ("person", AddRowsWithID("p"))):
        frame = rows.select("k", "x") if unit == "row" else rows
        session = Session.from_dataframe(PureDPBudget(float("inf")), "t", frame, protected_change=change)

        def grouped(unit: str = unit):  # noqa: ANN202 - a builder changes as it is used: each query has its own
            start = QueryBuilder("t")
            return (start if unit == "row" else start.enforce(MaxRowsPerID(EACH_PERSON))).groupby(KEYS)

        def ask(session: Session = session, grouped=grouped) -> None:  # noqa: ANN001
            for query in (grouped().count(), grouped().sum("x", 0.0, 1.0), grouped().average("x", 0.0, 1.0)):
                session.evaluate(query, PureDPBudget(1)).collect()

        ask()
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            ask()
            times.append(time.perf_counter() - start)
        print(unit, float(np.median(times)), flush=True)


if __name__ == "__main__":
    main()
