"""diffprivlib on the tasks of bench/peers/compare.py. It has no GROUP BY: pandas makes the groups."""

import sys
import warnings

import numpy as np
import pandas as pd
from diffprivlib import mechanisms, tools
from speed import run

warnings.filterwarnings("ignore")
PATH = sys.argv[1]
BOUNDS = (0, 1)


def group() -> object:
    found = {}
    for key, values in pd.read_parquet(PATH, columns=["k", "x"]).groupby("k")["x"]:
        numbers = values.to_numpy()
        found[key] = (
            tools.count_nonzero(np.ones(len(numbers)), epsilon=1 / 3),
            tools.sum(numbers, epsilon=1 / 3, bounds=BOUNDS),
            tools.mean(numbers, epsilon=1 / 3, bounds=BOUNDS),
        )
    return found


def find_median() -> object:
    return tools.median(pd.read_parquet(PATH, columns=["x"])["x"].to_numpy(), epsilon=1, bounds=BOUNDS)


def add_noise() -> object:
    mechanism = mechanisms.Laplace(epsilon=1, sensitivity=1)
    return [mechanism.randomise(value) for value in np.linspace(0, 1, 1_000_000)]


NO_UNIT = "each row is a person: no contribution bounds"
run(
    {
        "grouped": group,
        "person": NO_UNIT,
        "median": find_median,
        "keys": "no private selection of keys",
        "noise": add_noise,
    }
)
