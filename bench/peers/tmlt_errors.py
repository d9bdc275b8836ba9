"""The errors of tmlt.analytics's answers: the noise that its Session states for a compiled query.

Its answers run on Spark at seconds each, so that means, variances and keys are repeated here from its stated noise
and its own formulas, and medians from its mechanism's distribution, which real calls must agree with.
"""

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
import pandas as pd
from figures import (
    Figure,
    Floats,
    averaged,
    discrete_laplace,
    draw_discrete,
    interval_median,
    laplace,
    must_agree,
    repeated,
    run,
)
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session
from tmlt.core.domains.numpy_domains import NumpyFloatDomain, NumpyIntegerDomain
from tmlt.core.domains.pandas_domains import PandasSeriesDomain
from tmlt.core.domains.spark_domains import SparkDataFrameDomain, SparkStringColumnDescriptor
from tmlt.core.measurements.aggregations import create_partition_selection_measurement
from tmlt.core.measurements.pandas_measurements.series import NoisyQuantile
from tmlt.core.measures import PureDP

warnings.filterwarnings("ignore")
os.environ["PYSPARK_PYTHON"] = sys.executable
REAL_CALLS = {"ages": 300, "incomes": 60, "calls": 300}
Stated = list[tuple[str, float]]


def spark() -> SparkSession:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


FRAME = spark().createDataFrame(pd.DataFrame({"k": ["a"], "age": [1], "income": [1.5], "person": [1]}))
KEYS = KeySet.from_tuples([("a",)], columns=["k"])


def grouped():  # noqa: ANN201
    return QueryBuilder("t").groupby(KEYS)  # a builder changes as it is used: each query has its own


def stated(query, epsilon: float, protected=None) -> Stated:  # noqa: ANN001
    """The kind and scale of each noise that the Session compiles a query to."""
    session = Session.from_dataframe(PureDPBudget(float("inf")), "t", FRAME, protected_change=protected or AddOneRow())
    found = session._noise_info(query, PureDPBudget(epsilon))
    return [(noise["noise_mechanism"].name, float(noise["noise_parameter"])) for noise in found]


def plain(noises: Stated) -> Figure:
    ((kind, scale),) = noises
    return discrete_laplace(scale) if kind == "GEOMETRIC" else laplace(scale)


def drawn(noises: Stated, size: tuple[int, ...]) -> list[Floats]:
    generator = np.random.default_rng()
    return [
        draw_discrete(scale, size, generator) if kind == "GEOMETRIC" else generator.laplace(0, scale, size)
        for kind, scale in noises
    ]


def of_tmlt(task: Mapping[str, object], epsilon: float, row: Callable[[str, Figure], None]) -> None:
    row("count", plain(stated(grouped().count(), epsilon)))
    row("sum", plain(stated(grouped().sum("age", 0, 100), epsilon)))
    row("histogram", plain(stated(grouped().count(), epsilon)))
    row("sparse_histogram", plain(stated(grouped().count(), epsilon)))
    bounded, person = QueryBuilder("t").enforce(MaxRowsPerID(task["rows_each"])).groupby(KEYS), AddRowsWithID("person")
    row("person_count", plain(stated(bounded.count(), epsilon, person)))
    row("person_sum", plain(stated(bounded.sum("income", 0, 500), epsilon, person)))
    for name, column, upper in (("ages", "age", 100), ("incomes", "income", 200_000)):
        tables = np.array(task[name], float)
        size = (len(tables), task["repetitions"] // len(tables))
        noises = stated(grouped().average(column, 0, upper), epsilon)
        row(f"mean_{name}", repeated(means(tables, upper, drawn(noises, size)) - tables.mean(axis=1)[:, None]))
        noises = stated(grouped().variance(column, 0, upper), epsilon)
        true = tables.var(axis=1, ddof=1)[:, None]
        row(f"variance_{name}", repeated(variances(tables, upper, drawn(noises, size)) - true))
        row(f"median_{name}", median(name, tables, upper, epsilon))
    row("median_calls", median("calls", np.array(task["calls"], float), 9, epsilon))
    unknown_keys(task, epsilon, row)


def means(tables: Floats, upper: float, noise: list[Floats]) -> Floats:
    of_sum, of_count = noise
    total = (tables - upper / 2).sum(axis=1)[:, None] + of_sum
    return total / np.maximum(tables.shape[1] + of_count, 1) + upper / 2


def variances(tables: Floats, upper: float, noise: list[Floats]) -> Floats:
    """Sums of x and of its square, each minus the midpoint of its bounds; clamped to [0, upper**2 / 4]."""
    of_sum, of_squares, of_count = noise
    count = tables.shape[1] + of_count
    total = (tables - upper / 2).sum(axis=1)[:, None] + of_sum
    squares = (tables**2 - upper**2 / 2).sum(axis=1)[:, None] + of_squares
    more = count / (count - 1)
    found = squares / (count - 1) + upper**2 / 2 * more - (total / count + upper / 2) ** 2 * more
    return np.clip(found, 0, upper**2 / 4)


def median(name: str, tables: Floats, upper: float, epsilon: float) -> Figure:
    whole = name != "incomes"
    domain = PandasSeriesDomain(NumpyIntegerDomain() if whole else NumpyFloatDomain())
    choose = NoisyQuantile(domain, PureDP(), 0.5, 0, upper, Fraction(str(epsilon)))
    first = pd.Series(tables[0]).astype(int if whole else float)
    real = np.array([choose(first) for _ in range(REAL_CALLS[name])]) - np.median(first)
    must_agree(interval_median([first], upper, epsilon), repeated(real), "tmlt, median")
    return interval_median(tables, upper, epsilon)  # of a rank's sensitivity 1/2


def unknown_keys(task, epsilon, row) -> None:  # noqa: ANN001
    """Half of epsilon, and delta, for the keys; the other half for counting the people of those that come out."""
    domain = SparkDataFrameDomain({"k": SparkStringColumnDescriptor()})
    half, delta = Fraction(str(epsilon)) / 2, Fraction(str(task["delta"]))
    selection = create_partition_selection_measurement(domain, half, delta)
    alpha = selection.alpha.to_float(round_up=True)
    people, generator = np.array(task["keys"]), np.random.default_rng()
    size = (task["repetitions"], people.size)
    chosen = people + draw_discrete(alpha, size, generator) >= selection.threshold
    noises = stated(grouped().count(), epsilon / 2)
    row("keys_released", averaged(chosen.sum(axis=1)))
    row("keys_error", repeated(drawn(noises, size)[0][chosen]))


if __name__ == "__main__":
    run(of_tmlt)
