"""The errors of pipeline-dp's answers: its combiners, with the budgets that its accountant gives them."""

from collections.abc import Callable, Mapping

import numpy as np
import pipeline_dp
from figures import Figure, averaged, laplace, repeated, run
from pipeline_dp import Metrics, combiners

AGE, INCOME, COST, CALLS = 100, 200_000, 500, 9


def of_pipelinedp(task: Mapping[str, object], epsilon: float, row: Callable[[str, Figure], None]) -> None:
    row("count", laplace(noise(combiner(Metrics.COUNT, epsilon))))
    row("sum", laplace(noise(combiner(Metrics.SUM, epsilon, upper=AGE))))
    row("histogram", laplace(noise(combiner(Metrics.COUNT, epsilon))))
    row("sparse_histogram", laplace(noise(combiner(Metrics.COUNT, epsilon))))
    rows = {"max_contributions": task["rows_each"]}
    row("person_count", laplace(noise(combiner(Metrics.COUNT, epsilon, **rows))))
    row("person_sum", laplace(noise(combiner(Metrics.SUM, epsilon, upper=COST, **rows))))
    for name, upper in (("ages", AGE), ("incomes", INCOME), ("calls", CALLS)):
        tables = task[name]
        of_sums = (("mean", Metrics.MEAN), ("variance", Metrics.VARIANCE)) if name != "calls" else ()
        for what, metric in (*of_sums, ("median", Metrics.PERCENTILE(50))):
            true = {"mean": np.mean, "variance": np.var, "median": np.median}[what](tables, axis=1)
            made = combiner(metric, epsilon, upper=upper)
            found = [answers(made, table, task["repetitions"] // len(tables)) for table in tables]
            row(f"{what}_{name}", repeated(np.array(found) - true[:, None]))
    unknown_keys(task, epsilon, row)


def combiner(metric, epsilon, *, upper=1, delta=0, max_contributions=None, **options):  # noqa: ANN001, ANN003, ANN201
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
    contributions = {"max_contributions": max_contributions} if max_contributions else {
        "max_partitions_contributed": 1, "max_contributions_per_partition": 1,
    }  # fmt: skip
    bounds = {} if metric == Metrics.PRIVACY_ID_COUNT else {"min_value": 0, "max_value": upper}
    params = pipeline_dp.AggregateParams(
        metrics=[metric], noise_kind=pipeline_dp.NoiseKind.LAPLACE, **contributions, **bounds, **options
    )
    made = combiners.create_compound_combiner(params, accountant)
    accountant.compute_budgets()
    return made


def noise(made: combiners.CompoundCombiner) -> float:
    """The Laplace scale that its mechanism states."""
    return made._combiners[0].get_mechanism().noise_parameter


def answers(made: combiners.CompoundCombiner, table: list[float], times: int) -> list[float]:
    total = made.create_accumulator([table[0]])
    for value in table[1:]:  # one row a person
        total = made.merge_accumulators(total, made.create_accumulator([value]))
    return [made.compute_metrics(total)[0] for _ in range(times)]


def unknown_keys(task, epsilon, row) -> None:  # noqa: ANN001
    """People counted and keys selected by the same noise, which is the best that it offers here."""
    options = {"delta": task["delta"], "post_aggregation_thresholding": True}
    made = combiner(Metrics.PRIVACY_ID_COUNT, epsilon, **options)
    released, errors = np.zeros(task["repetitions"]), []
    for people in task["keys"]:
        for at in range(task["repetitions"]):
            (found,) = made.compute_metrics((people, (people,)))
            if found is not None:
                released[at] += 1
                errors.append(found - people)
    row("keys_released", averaged(released))
    row("keys_error", repeated(np.array(errors)))


if __name__ == "__main__":
    run(of_pipelinedp)
