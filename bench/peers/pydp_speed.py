"""python-dp (Google's C++ library) on the tasks of bench/peers/compare.py. It has no GROUP BY: pandas groups."""

import sys

import numpy as np
import pandas as pd
from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Count, Median
from pydp.algorithms.numerical_mechanisms import LaplaceMechanism
from speed import run

PATH = sys.argv[1]


def group() -> object:
    found = {}
    for key, values in pd.read_parquet(PATH, columns=["k", "x"]).groupby("k")["x"]:
        numbers = values.tolist()
        bounds = {"lower_bound": 0, "upper_bound": 1, "dtype": "float"}
        found[key] = (
            Count(epsilon=1 / 3, dtype="float").quick_result(numbers),
            BoundedSum(epsilon=1 / 3, **bounds).quick_result(numbers),
            BoundedMean(epsilon=1 / 3, **bounds).quick_result(numbers),
        )
    return found


def find_median() -> object:
    numbers = pd.read_parquet(PATH, columns=["x"])["x"].tolist()
    return Median(epsilon=1, lower_bound=0, upper_bound=1, dtype="float").quick_result(numbers)


def add_noise() -> object:
    mechanism = LaplaceMechanism(1.0, 1.0)
    return [mechanism.add_noise(float(value)) for value in np.linspace(0, 1, 1_000_000)]


run(
    {
        "grouped": group,
        "person": "each row is a person: no contribution bounds",
        "median": find_median,
        "keys": "no private selection of keys in Python",
        "noise": add_noise,
    }
)
