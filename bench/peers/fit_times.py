"""The time of `fit` beside the model that is not private, on arrays and through the curator.

Only estimators whose statistics come from one scan have a limit. On arrays, both fit the same arrays. Through the
curator, Sfumato fits a protected file; the model that is not private reads the same file and then fits. PCA scans a
protected file twice: which products it measures follows from the noisy variances. On arrays it adds up all in one pass.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from peers.learning_sets import Floats, draw_million
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import CategoricalNB, GaussianNB

import sfumato as sf

LIMIT = 1.5
ROUNDS = 5
CODES = 8
Work = Callable[[], object]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Fit:
    model: str
    where: str
    ours: float
    plain: float
    scans: int = 1

    @property
    def ratio(self) -> float:
        return self.ours / self.plain


@dataclass(frozen=True)
class Pair:
    """The same model, private and not, and the columns that it reads."""

    name: str
    settings: dict[str, object]
    plain: Callable[[], Any]
    columns: tuple[str, ...]
    target: str | None
    scans: int = 1  # of a protected file


def measure_fits(rows: int, clock: Clock = time.perf_counter) -> Iterator[Fit]:
    classified, measured = draw_million(rows)
    numbers = {f"x{place}": np.ascontiguousarray(column) for place, column in enumerate(classified.features.T)}
    codes = {f"c{place}": np.digitize(numbers[f"x{place}"], np.linspace(-0.6, 0.6, CODES - 1)) for place in range(10)}
    table = {**numbers, **codes, "label": classified.target.astype(np.int64), "number": measured.target}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(pa.table(table), path)
        for pair in list_pairs():
            yield measure_on_arrays(pair, table, clock)
            yield measure_through_curator(pair, path, clock)


def list_pairs() -> list[Pair]:
    numbers, codes = tuple(f"x{place}" for place in range(10)), tuple(f"c{place}" for place in range(10))
    coded = {"categories": [list(range(CODES))] * 10, "classes": [0, 1]}
    return [
        Pair("GaussianNB", {"bounds": (-1, 1), "classes": [0, 1]}, GaussianNB, numbers, "label"),
        Pair("CategoricalNB", coded, CategoricalNB, codes, "label"),
        Pair("LinearRegression", {"bounds": (-1, 1), "target_bounds": (-1, 1)}, LinearRegression, numbers, "number"),
        Pair("PCA", {"bounds": (-1, 1), "n_components": 3}, lambda: PCA(3), numbers, None, 2),
        Pair("HistogramDensity", {"bounds": (-1, 1), "bins": 40}, PlainHistogram, ("x0",), None),
    ]


class PlainHistogram:
    def fit(self, features: Floats) -> "PlainHistogram":
        self.counts_ = np.histogramdd(features, 40, [(-1, 1)] * features.shape[1])[0]
        return self


def measure_on_arrays(pair: Pair, table: dict[str, Floats], clock: Clock) -> Fit:
    features = np.column_stack([table[name] for name in pair.columns])
    given = (features,) if pair.target is None else (features, table[pair.target])
    ours = getattr(sf.learning, pair.name)(epsilon=1, **pair.settings)
    taken = time_in_turns(lambda: ours.fit(*given), lambda: pair.plain().fit(*given), clock)
    return Fit(pair.name, "arrays", *taken)


def measure_through_curator(pair: Pair, path: Path, clock: Clock) -> Fit:
    """A file that was protected before: its first preparation is paid once, and not by `fit`."""
    columns = {f"x{place}": sf.Real(-1, 1, nullable=False) for place in range(10)}
    columns |= {f"c{place}": sf.Category(list(range(CODES)), nullable=False) for place in range(10)}
    columns |= {"label": sf.Category([0, 1], nullable=False), "number": sf.Real(-1, 1, nullable=False)}
    budget = sf.Budget(epsilon=1000)
    kept = {name: value for name, value in pair.settings.items() if name in ("n_components", "bins")}
    estimator = getattr(sf.learning, pair.name)(epsilon=1, **kept)
    with sf.protect(path, name="t", unit=sf.ROW, columns=columns, budget=budget) as curator:
        named = {"features": list(pair.columns)} | ({"target": pair.target} if pair.target else {})
        taken = time_in_turns(lambda: estimator.fit(dataset=curator, **named), lambda: read_and_fit(pair, path), clock)
        return Fit(pair.name, "curator", *taken, scans=pair.scans)


def read_and_fit(pair: Pair, path: Path) -> object:
    wanted = [*pair.columns, *([pair.target] if pair.target else [])]
    table = pq.read_table(path, columns=wanted)
    features = np.column_stack([table[name].to_numpy() for name in pair.columns])
    return pair.plain().fit(features, *([table[pair.target].to_numpy()] if pair.target else []))


def time_in_turns(ours: Work, plain: Work, clock: Clock) -> tuple[float, float]:
    """Median times of the two, taken in turns, so that a busy machine slows both alike."""
    ours()
    plain()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for work, taken in zip((ours, plain), times, strict=True):
            begun = clock()
            work()
            taken.append(clock() - begun)
    return float(np.median(times[0])), float(np.median(times[1]))
