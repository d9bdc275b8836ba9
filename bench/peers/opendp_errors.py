"""The errors of opendp's answers: its Polars interface, with its own scales, thresholds and scores."""

import warnings
from collections.abc import Callable, Mapping

import numpy as np
import opendp.prelude as dp
import polars as pl
from figures import (
    Figure,
    averaged,
    discrete_laplace,
    draw_discrete,
    held_at_zero,
    laplace,
    must_agree,
    repeated,
    run,
)

warnings.filterwarnings("ignore")
dp.enable_features("contrib", "honest-but-curious")
AGE, INCOME, COST, CALLS = (0, 100), (0.0, 200_000.0), (0.0, 500.0), (0, 9)
BLOCKS = 5
REAL_CALLS = 300


def of_opendp(task: Mapping[str, object], epsilon: float, row: Callable[[str, Figure], None]) -> None:
    ages, incomes, people = task["ages"], task["incomes"], len(task["ages"][0])
    table = pl.LazyFrame({"age": ages[0], "income": incomes[0], "k": ["a"] * people, "person": [0] * people})
    whole = [dp.polars.Margin(max_length=people)]
    age, income = pl.col("age").fill_null(0), pl.col("income").fill_null(0.0).fill_nan(0.0)
    row("count", discrete_laplace(*scales(table, epsilon, dp.len(signed=True))))
    row("sum", discrete_laplace(*scales(table, epsilon, age.dp.sum(AGE), margins=whole)))
    generator = np.random.default_rng()
    for name, column, bounds, tables in (("ages", age, AGE, ages), ("incomes", income, INCOME, incomes)):
        of_sum, of_count = scales(table, epsilon, column.dp.mean(bounds), margins=whole)
        draw = draw_discrete if name == "ages" else lambda scale, size, source: source.laplace(0, scale, size)
        size = (len(tables), task["repetitions"] // len(tables))
        sums = np.sum(tables, axis=1)[:, None] + draw(of_sum, size, generator)
        means = sums / np.maximum(people + draw_discrete(of_count, size, generator), 1)
        row(f"mean_{name}", repeated(np.clip(means, *bounds) - np.mean(tables, axis=1)[:, None]))
        row(f"median_{name}", median(task, tables, bounds, epsilon, people))
    row("median_calls", median(task, task["calls"], CALLS, epsilon, people))
    for name, make, bounds in (
        ("mean_known", dp.t.make_mean, AGE),
        ("variance_known_ages", dp.t.make_variance, AGE),
        ("variance_known_incomes", dp.t.make_variance, INCOME),
    ):
        domain = dp.vector_domain(dp.atom_domain(bounds=tuple(map(float, bounds)), nan=False), size=people)
        row(name, laplace(make(domain, dp.symmetric_distance()).map(2) / epsilon))  # one replaced: one out, one in
    keys = [dp.polars.Margin(by=["k"], invariant="keys", max_length=people, max_groups=100)]
    row("histogram", discrete_laplace(*scales(table, epsilon, dp.len(signed=True), by="k", margins=keys)))
    row(
        "sparse_histogram",
        held_at_zero(task["sparse_histogram"], *scales(table, epsilon, dp.len(), by="k", margins=keys)),
    )
    person = dp.unit_of(contributions=task["rows_each"])
    cost = income.dp.sum(COST)
    of_count = scales(table, epsilon, dp.len(signed=True), by="k", margins=keys, unit=person)
    row("person_count", discrete_laplace(*of_count))
    row("person_sum", laplace(*scales(table, epsilon, cost, by="k", margins=keys, unit=person)))
    unknown_keys(task, epsilon, row)


def query(table, epsilon, expression, *, by=None, margins=(), unit=None, delta=None):  # noqa: ANN001, ANN201
    context = dp.Context.compositor(
        data=table,
        privacy_unit=unit or dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=epsilon, delta=delta) if delta else dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        margins=list(margins),
    )
    asked = context.query()
    return asked.group_by(by).agg(expression) if by else asked.select(expression)


def scales(*arguments: object, **options: object) -> list[float]:
    """The noise scales that opendp itself states for a query."""
    return query(*arguments, **options).summarize()["scale"].to_list()


def median(task, tables, bounds, epsilon, people) -> Figure:  # noqa: ANN001
    """Its own scores and scale; the noise, which it says is exponential on each score, from numpy.

    The whole of opendp draws thousands of exact exponentials a second: too few for repetitions. Some real calls must
    agree.
    """
    kind = int if isinstance(bounds[1], int) else float
    candidates = [kind(candidate) for candidate in (range(bounds[1] + 1) if kind is int else task["income_bins"])]
    domain = dp.vector_domain(dp.atom_domain(T=kind) if kind is int else dp.atom_domain(T=kind, nan=False))
    scored = dp.t.make_quantile_score_candidates(domain, dp.symmetric_distance(), candidates, 0.5)
    frame = pl.LazyFrame({"x": tables[0]})
    expression = pl.col("x").fill_null(kind(0)) if kind is int else pl.col("x").fill_null(0.0).fill_nan(0.0)
    margins = [dp.polars.Margin(max_length=people)]
    (scale,) = scales(frame, epsilon, expression.dp.median(candidates), margins=margins)
    choose = dp.m.make_private_quantile(
        domain, dp.symmetric_distance(), dp.max_divergence(), candidates=candidates, alpha=0.5, scale=1 / epsilon
    )
    if not np.isclose(choose.map(1), epsilon):
        raise SystemExit("opendp's median is scaled in another way")
    generator, values, errors = np.random.default_rng(), np.array(candidates, float), []
    for table in tables:
        scores = np.array(scored([kind(value) for value in table]), float)
        noisy = generator.exponential(scale, (task["repetitions"] // len(tables), scores.size)) - scores
        errors.append(values[noisy.argmax(axis=1)] - np.median(table))
    figure = repeated(np.array(errors))
    first, calls = [kind(value) for value in tables[0]], REAL_CALLS if kind is int else REAL_CALLS // 3
    real = repeated(np.array([choose(first) for _ in range(calls)], float) - np.median(first))
    must_agree(repeated(errors[0]), real, "opendp, median")
    return figure


def unknown_keys(task, epsilon, row) -> None:  # noqa: ANN001
    """Real releases: many copies of the same keys, under other names, in each."""
    sizes = np.array(task["keys"])
    copies = task["repetitions"] // BLOCKS
    names = np.arange(copies * sizes.size)
    people = np.tile(sizes, copies)
    frame = pl.LazyFrame({"k": np.repeat(names, people)})
    released, errors = [], []
    for _ in range(BLOCKS):
        asked = query(frame, epsilon, dp.len(signed=True), by="k", delta=task["delta"])
        found = asked.release().collect()
        keys = found["k"].to_numpy()
        released.append(np.bincount(keys // sizes.size, minlength=copies))
        errors.append(found["len"].to_numpy() - people[keys])
    row("keys_released", averaged(np.concatenate(released)))
    row("keys_error", repeated(np.concatenate(errors)))


if __name__ == "__main__":
    run(of_opendp)
