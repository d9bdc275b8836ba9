"""pipeline-dp on the tasks of bench/peers/compare.py, with its local backend."""

import sys

import pandas as pd
import pipeline_dp
from pipeline_dp import Metrics
from speed import KEYS, MOST_ROWS, run

ROWS = pd.read_parquet(sys.argv[1])


def aggregate(
    metrics: list[object], key: str, *, person: bool, public: list[str] | None, most: tuple[int, int], delta: float = 0
) -> object:
    rows = list(zip(ROWS["p"] if person else range(len(ROWS)), ROWS[key], ROWS["x"], strict=True))
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=delta)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=metrics, noise_kind=pipeline_dp.NoiseKind.LAPLACE, max_partitions_contributed=most[0],
        max_contributions_per_partition=most[1], min_value=0, max_value=1,
    )  # fmt: skip
    taken = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )  # fmt: skip
    found = engine.aggregate(rows, params, taken, public_partitions=public)
    accountant.compute_budgets()
    return list(found)


SEVERAL = [Metrics.COUNT, Metrics.SUM, Metrics.MEAN]
run(
    {
        "grouped": lambda: aggregate(SEVERAL, "k", person=False, public=KEYS, most=(1, 1)),
        "person": lambda: aggregate(SEVERAL, "k", person=True, public=KEYS, most=(1, MOST_ROWS)),
        "median": lambda: aggregate([Metrics.PERCENTILE(50)], "one", person=False, public=["all"], most=(1, 1)),
        "keys": lambda: aggregate(
            [Metrics.PRIVACY_ID_COUNT], "item", person=True, public=None, most=(MOST_ROWS, 1), delta=1e-6
        ),
        "noise": "its mechanisms are python-dp's",
    }
)
