"""opendp on the tasks of bench/peers/compare.py: its Polars interface, and its vector mechanism for noise."""

import sys
import warnings

import numpy as np
import opendp.prelude as dp
import polars as pl
from speed import KEYS, MOST_ROWS, run

warnings.filterwarnings("ignore")
dp.enable_features("contrib", "honest-but-curious")
ROWS = pl.scan_parquet(sys.argv[1])
LENGTH = ROWS.select(pl.len()).collect().item()
VALUE = pl.col("x").fill_null(0.0).fill_nan(0.0)
ASKED = (dp.len().alias("n"), VALUE.dp.sum((0.0, 1.0)).alias("s"), VALUE.dp.mean((0.0, 1.0)).alias("a"))
PERSON = dp.unit_of(contributions=1, identifier=pl.col("p"))
MARGINS = [dp.polars.Margin(by=["k"], max_length=LENGTH, max_groups=len(KEYS))]


def open_rows(unit: object, margins: list[object], delta: float | None = None) -> dp.Context:
    loss = dp.loss_of(epsilon=1.0, delta=delta) if delta else dp.loss_of(epsilon=1.0)
    return dp.Context.compositor(data=ROWS, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1, margins=margins)


def group() -> object:
    asked = open_rows(dp.unit_of(contributions=1), MARGINS).query().group_by("k").agg(*ASKED)
    return asked.with_keys(pl.LazyFrame({"k": KEYS})).release().collect()


def group_people() -> object:
    asked = open_rows(PERSON, MARGINS).query().truncate_per_group(MOST_ROWS).group_by("k").agg(*ASKED)
    return asked.with_keys(pl.LazyFrame({"k": KEYS})).release().collect()


def find_median() -> object:
    candidates = np.linspace(0, 1, 1_001).tolist()
    margin = dp.polars.Margin(max_length=LENGTH)
    asked = open_rows(dp.unit_of(contributions=1), [margin]).query()
    return asked.select(VALUE.dp.median(candidates)).release().collect()


def find_keys() -> object:
    asked = open_rows(PERSON, [dp.polars.Margin(max_length=LENGTH)], 1e-6).query().truncate_per_group(MOST_ROWS)
    return asked.group_by("item").agg(dp.len()).release().collect()


def add_noise() -> object:
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    return dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=1.0)(np.linspace(0, 1, 1_000_000).tolist())


run({"grouped": group, "person": group_people, "median": find_median, "keys": find_keys, "noise": add_noise})
