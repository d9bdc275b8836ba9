"""The errors of Sfumato's answers: real releases, of the plan that `preview` explains.

Each repetition is what `ask` does (plan, certificate, the engine's integers, the kernel's release, the formulas), but
for the ledger, which would have to be charged each time. Where the answer is one number plus noise, the scale is read
from the certificate instead.
"""

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from figures import Figure, Floats, averaged, discrete_variance, repeated, run

import sfumato as sf
from sfumato.answers.output_values import evaluate
from sfumato.answers.released_values import Reading, compute_aggregate
from sfumato.kernel.certify import Certified, certify
from sfumato.kernel.losses import PureDP
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.release import Released, release
from sfumato.kernel.reservation import Reservation
from sfumato.query.bind import bind
from sfumato.query.parse import parse

AGE, INCOME = sf.Integer(0, 100, nullable=False), sf.Real(0, 200_000, nullable=False)
KINDS = {"ages": AGE, "incomes": INCOME, "calls": sf.Integer(0, 9, nullable=False)}
OF_A_COLUMN = {
    "mean": "SELECT AVG(x) AS a FROM t",
    "variance": "SELECT VARIANCE(x) AS a FROM t",
    "median": "SELECT MEDIAN(x) AS a FROM t",
}
BY_SITE = {
    "count": "SELECT site, COUNT(*) AS a FROM t GROUP BY site",
    "sum": "SELECT site, SUM(cost) AS a FROM t GROUP BY site",
}
BUDGET = sf.Budget(epsilon=10, delta="0.001")


class Asked:
    """One question at one price, to be released many times."""

    def __init__(self, curator: sf.Curator, sql: str, epsilon: float, delta: float | None = None) -> None:
        self.query = bind(parse(sql), curator.dataset)
        self.planned = curator.desk.plan(self.query, PureDP(epsilon), delta)
        self.certificate = certify(self.planned.plan)
        self.exact = curator.engine.aggregate(self.planned.plan)
        preview = curator.preview(sql, epsilon=epsilon, delta=delta)
        shown = [measurement.scale for measurement in preview.measurements]
        mine = [scale_of(measurement) for measurement in self.certificate.measurements]
        if not np.allclose([float(scale) for scale in shown], mine, rtol=1e-3):
            raise SystemExit(f"preview explains the scales {shown}, not {mine}")

    def noise(self) -> float:
        """The deviation of the one noise that is added, in the question's own unit."""
        (only,) = self.certificate.measurements
        return math.sqrt(discrete_variance(float(only.noise.scale))) * 2.0**only.exponent

    def releases(self, times: int) -> Iterator[Released]:
        return (release(self.exact, Reservation(at, self.certificate)) for at in range(times))

    def values(self, times: int) -> Floats:
        """The last output column: a row for each release, a column for each cell."""
        readings = [Reading.from_release(result).values for result in self.releases(times)]
        together = {name: np.concatenate([reading[name] for reading in readings]) for name in readings[0]}
        aggregates = [compute_aggregate(formula, together) for formula in self.planned.formulas]
        _, post = self.query.columns[-1]
        return np.asarray(evaluate(post, aggregates, []), float).reshape(times, -1)


def scale_of(measurement: Certified) -> float:
    match measurement.noise:
        case LaplaceNoise(scale):
            return float(scale) * 2.0**measurement.exponent
        case choice:
            return float(choice.spread) * 2.0**measurement.weight_exponent


def protect(columns: Mapping[str, tuple[object, list]], unit: object = sf.ROW, **options: object) -> sf.Curator:
    data = pa.table({name: values for name, (_, values) in columns.items()})
    declared = {name: kind for name, (kind, _) in columns.items()}
    return sf.protect(data, name="t", unit=unit, columns=declared, budget=BUDGET, **options)


def of_sfumato(task: Mapping[str, object], epsilon: float, row: Callable[[str, Figure], None]) -> None:
    scale = {"error": None, "how": "scale"}
    with protect({"age": (AGE, task["ages"][0])}) as people:
        counted = "SELECT COUNT(*) AS n FROM t WHERE age >= 40"
        row("count", {"value": Asked(people, counted, epsilon).noise(), **scale})
        row("sum", {"value": Asked(people, "SELECT SUM(age) AS s FROM t", epsilon).noise(), **scale})
    rows = len(task["ages"][0])
    with protect({"age": (AGE, task["ages"][0])}, neighbours="replace-one", rows=rows) as people:
        mean = Asked(people, "SELECT AVG(age) AS a FROM t", epsilon)
        row("mean_known", {"value": mean.noise() / rows, **scale})
    for what in ("mean", "variance", "median"):
        for name in ("ages", "incomes"):
            row(f"{what}_{name}", in_tables(task, what, name, epsilon))
    row("median_calls", in_tables(task, "median", "calls", epsilon))
    for name in ("ages", "incomes"):
        known = in_tables(task, "variance", name, epsilon, neighbours="replace-one", rows=rows)
        row(f"variance_known_{name}", known)
    for name in ("histogram", "sparse_histogram"):
        row(name, histogram(task[name], epsilon, task["repetitions"]))
    of_people(task, epsilon, row)
    unknown_keys(task, epsilon, row)


def in_tables(task: Mapping[str, object], what: str, name: str, epsilon: float, **options: object) -> Figure:
    """The error in each of the tables, an equal number of times."""
    kind, tables = KINDS[name], task[name]
    errors = []
    for table in tables:
        true = {"mean": np.mean, "variance": lambda x: np.var(x, ddof=1), "median": np.median}[what](table)
        with protect({"x": (kind, table)}, **options) as people:
            asked = Asked(people, OF_A_COLUMN[what], epsilon)
            errors.append(asked.values(task["repetitions"] // len(tables)) - true)
    return repeated(np.array(errors))


def histogram(counts: list[int], epsilon: float, times: int) -> Figure:
    """Plain counts; where some are small, held at zero or above, as peers do: the analyst's own post-processing."""
    names = [f"k{index}" for index in range(len(counts))]
    held = [name for name, count in zip(names, counts, strict=True) for _ in range(count)]
    with protect({"k": (sf.Category(names), held)}) as people:
        if min(counts) > 0:
            asked = Asked(people, "SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon)
            return {"value": asked.noise(), "error": None, "how": "scale"}
        sql = "SELECT k, (COUNT(*) + ABS(COUNT(*))) / 2 AS n FROM t GROUP BY k"
        return repeated(Asked(people, sql, epsilon).values(times // 10) - np.array(counts))  # 100 errors each


def of_people(task: Mapping[str, object], epsilon: float, row: Callable[[str, Figure], None]) -> None:
    """Counts and sums by site, compared with the true values before contribution bounds."""
    visits = task["visits"]
    sites = sorted(set(visits["site"]))
    columns = {
        "person": (sf.Id(), visits["person"]),
        "site": (sf.Category(sites), visits["site"]),
        "cost": (sf.Real(0, 500, nullable=False), visits["cost"]),
    }
    where, cost = np.array(visits["site"]), np.array(visits["cost"])
    true = {
        "count": np.array([(where == site).sum() for site in sites]),
        "sum": np.array([cost[where == site].sum() for site in sites]),
    }
    with protect(columns, "person", max_rows_per_unit=task["rows_each"], max_groups_per_unit=len(sites)) as people:
        for what, sql in BY_SITE.items():
            asked = Asked(people, sql, epsilon)
            errors = asked.values(task["repetitions"] // len(sites)) - true[what]
            row(f"person_{what}", repeated(errors))


def unknown_keys(task: Mapping[str, object], epsilon: float, row: Callable[[str, Figure], None]) -> None:
    people_of = {f"k{index}": people for index, people in enumerate(task["keys"])}
    held = [name for name, people in people_of.items() for _ in range(people)]
    released, errors = [], []
    with protect({"k": (sf.Text(), held)}) as people:
        asked = Asked(people, "SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon, task["delta"])
        (name,) = (measurement.name for measurement in asked.certificate.measurements)
        for result in asked.releases(task["repetitions"]):
            released.append(len(result.keys))
            errors += [n - people_of[key] for (key,), n in zip(result.keys, result.integers[name], strict=True)]
    row("keys_released", averaged(np.array(released)))
    row("keys_error", repeated(np.array(errors)))


if __name__ == "__main__":
    run(of_sfumato)
