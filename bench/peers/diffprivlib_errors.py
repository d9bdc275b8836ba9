"""The errors of diffprivlib's answers. It assumes that the number of people is public."""

import warnings
from collections.abc import Callable, Mapping

import numpy as np
from diffprivlib import tools
from figures import Figure, discrete_laplace, held_at_zero, interval_median, laplace, must_agree, repeated, run

warnings.filterwarnings("ignore")
REAL_CALLS = 1_000


def of_diffprivlib(task: Mapping[str, object], epsilon: float, row: Callable[[str, Figure], None]) -> None:
    people, times = len(task["ages"][0]), task["repetitions"] // len(task["ages"])
    row("count", discrete_laplace(1 / epsilon))
    row("sum", discrete_laplace(100 / epsilon))
    row("mean_known", laplace(100 / people / epsilon))
    row("histogram", discrete_laplace(1 / epsilon))
    row("sparse_histogram", held_at_zero(task["sparse_histogram"], 1 / epsilon))
    for name, upper in (("ages", 100), ("incomes", 200_000), ("calls", 9)):
        tables = [np.array(table, float) for table in task[name]]
        if name != "calls":
            errors = [
                [tools.var(table, epsilon=epsilon, bounds=(0, upper)) - table.var() for _ in range(times)]
                for table in tables
            ]
            row(f"variance_known_{name}", repeated(np.array(errors)))
        figure = interval_median(tables, upper, epsilon / 2)  # of a rank's sensitivity 1
        real = [tools.median(tables[0], epsilon=epsilon, bounds=(0, upper)) for _ in range(REAL_CALLS)]
        first = interval_median(tables[:1], upper, epsilon / 2)
        must_agree(first, repeated(np.array(real) - np.median(tables[0])), "diffprivlib, median")
        row(f"median_{name}", figure)
    check_plain(task, epsilon, people)


def check_plain(task: Mapping[str, object], epsilon: float, people: int) -> None:
    """The scales above are those of its documentation; real calls must agree."""
    ages = np.array(task["ages"][0])
    cases = (
        ("count", ages >= 40, tools.count_nonzero, {}, discrete_laplace(1 / epsilon)),
        ("sum", ages, tools.sum, {"bounds": (0, 100), "dtype": int}, discrete_laplace(100 / epsilon)),
        ("mean", ages, tools.mean, {"bounds": (0, 100)}, laplace(100 / people / epsilon)),
    )
    for what, values, ask, options, figure in cases:
        true = values.mean() if what == "mean" else values.sum()
        real = np.array([ask(values, epsilon=epsilon, **options) for _ in range(REAL_CALLS)], float) - true
        must_agree(figure, repeated(real), f"diffprivlib, {what}")


if __name__ == "__main__":
    run(of_diffprivlib)
