"""The data sets of `bench/learn.py`. Features are scaled to [-1, 1] with declared bounds; codes stay codes.

Every library gets the same scaled arrays and the same declared bounds. Where a data set's own description publishes
the range of each column (breast cancer, wine, iris, digits, diabetes), the bounds are that range. The other bounds are
written here. Rows are in a random order, because some libraries split the rows by position.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn import datasets

Floats = npt.NDArray[np.float64]
TEST_SHARE = 0.2
MILLION = 1_000_000
ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_TARGET = "income>50K"
LINEAR = ("plain", "friedman", "alike columns", "wide bounds", "heavy tails")
SURVEYS = {  # of statsmodels: the module, the target, its bounds, and the features with theirs
    "election 1996": ("anes96", "PID", (0, 6), {
        "TVnews": (0, 7), "selfLR": (1, 7), "ClinLR": (1, 7), "DoleLR": (1, 7), "age": (18, 100), "educ": (1, 7),
        "income": (1, 24), "vote": (0, 1),
    }),
    "marriages": ("fair", "yrs_married", (0, 25), {
        "age": (15, 45), "rate_marriage": (1, 5), "children": (0, 6), "religious": (1, 4), "educ": (9, 20),
        "affairs": (0, 10),
    }),
    "food spending": ("engel", "foodexp", (0, 2500), {"income": (0, 5000)}),
    "school districts": ("star98", "LOWINC", (0, 100), {
        "PERASIAN": (0, 100), "PERBLACK": (0, 100), "PERHISP": (0, 100), "AVYRSEXP": (5, 25), "PERSPENK": (2, 10),
        "PTRATIO": (10, 35), "PCTAF": (0, 100),
    }),
    "travel time": ("modechoice", "invt", (0, 1500), {
        "ttme": (0, 100), "invc": (0, 200), "gc": (0, 300), "hinc": (0, 100), "psize": (1, 10),
    }),
}  # fmt: skip


@dataclass(frozen=True)
class LearningSet:
    """Scaled features, or codes in the columns of `codes`. The target: classes 0 to k - 1, or a number in [-1, 1]."""

    name: str
    features: Floats
    target: Floats
    classes: int = 0
    codes: dict[int, int] = field(default_factory=dict)  # a column's place and its number of codes

    def describe(self) -> dict[str, object]:
        return {"name": self.name, "classes": self.classes, "codes": self.codes}


Load = Callable[[], LearningSet]


def draw_tests(name: str, rows: int, seeds: int) -> npt.NDArray[np.bool_]:
    """For each seed, which rows are held out. The first seeds are the same for every number of seeds."""
    held_out = np.zeros((seeds, rows), bool)
    for seed in range(seeds):
        order = np.random.default_rng([seed, *name.encode()]).permutation(rows)
        held_out[seed, order[: round(TEST_SHARE * rows)]] = True
    return held_out


def scale(values: Floats, lower: Floats | float, upper: Floats | float) -> Floats:
    """Clamp to the declared bounds and scale to [-1, 1]. A column with equal bounds becomes 0."""
    lower, upper = np.broadcast_arrays(np.asarray(lower, float), np.asarray(upper, float))
    width = np.where(upper > lower, upper - lower, 1)
    return np.where(upper > lower, 2 * (np.clip(values, lower, upper) - lower) / width - 1, 0.0)


def shuffle(made: LearningSet) -> LearningSet:
    order = np.random.default_rng(list(made.name.encode())).permutation(len(made.target))
    return LearningSet(made.name, made.features[order], made.target[order], made.classes, made.codes)


def read_adult(folder: Path) -> LearningSet:
    """The census extract: a code for each column. Six columns have codes in order of size; they are read as numbers."""
    sizes = json.loads((folder / "adult-domain.json").read_text())
    with (folder / "adult.csv").open() as file:
        names = file.readline().strip().split(",")
        rows = np.loadtxt(file, delimiter=",", dtype=np.int64)
    features = [name for name in names if name != ADULT_TARGET]
    columns = {name: rows[:, place].astype(float) for place, name in enumerate(names)}
    scaled = [scale(columns[name], 0, sizes[name] - 1) if name in ADULT_NUMBERS else columns[name] for name in features]
    codes = {place: sizes[name] for place, name in enumerate(features) if name not in ADULT_NUMBERS}
    return shuffle(LearningSet("adult", np.column_stack(scaled), columns[ADULT_TARGET], 2, codes))


def load_bundled(name: str, load: Callable[[], object]) -> LearningSet:
    """A set of scikit-learn whose description publishes the range of every column."""
    found = load()
    features = np.asarray(found.data, float)
    published = (0.0, 16.0) if name == "digits" else (features.min(axis=0), features.max(axis=0))
    target = np.asarray(found.target, float)
    if name == "diabetes":
        return shuffle(LearningSet(name, scale(features, *published), scale(target, 25, 346)))
    return shuffle(LearningSet(name, scale(features, *published), target, len(found.target_names)))


def load_rand() -> tuple[LearningSet, LearningSet]:
    """The RAND health insurance experiment: was there any visit to a doctor, and how many visits (clamped at 20)?"""
    from statsmodels.datasets import randhie  # noqa: PLC0415

    frame = randhie.load_pandas().data
    bounds = {
        "lncoins": (0, 4.7), "idp": (0, 1), "lpi": (0, 7.2), "fmde": (0, 8.3), "physlm": (0, 1), "disea": (0, 60),
        "hlthg": (0, 1), "hlthf": (0, 1), "hlthp": (0, 1),
    }  # fmt: skip
    features = scale_columns(frame, bounds)
    visits = frame["mdvis"].to_numpy(float)
    return (
        shuffle(LearningSet("rand any visit", features, (visits > 0).astype(float), 2)),
        shuffle(LearningSet("rand visits", features, scale(visits, 0, 20))),
    )


def scale_columns(frame: object, bounds: dict[str, tuple[float, float]]) -> Floats:
    return np.column_stack([scale(frame[name].to_numpy(float), *ends) for name, ends in bounds.items()])


def draw_million(rows: int) -> tuple[LearningSet, LearningSet]:
    """A synthetic set of 10 features: classes from a smooth score, and the score itself plus noise."""
    generator = np.random.default_rng(12)
    features = np.clip(generator.standard_normal((rows, 10)) / 4, -1, 1)
    features[:, 1] = np.clip(0.7 * features[:, 0] + 0.7 * features[:, 1], -1, 1)
    score = features @ np.array([3, -2, 2, -1, 1, 0.5, -0.5, 0, 0, 0]) + np.sin(6 * features[:, 5])
    labels = (generator.random(rows) < 1 / (1 + np.exp(-3 * score))).astype(float)
    numbers = np.clip((score + 0.5 * generator.standard_normal(rows)) / 4, -1, 1)
    return LearningSet("million", features, labels, 2), LearningSet("million", features, numbers)


def list_classified(rows: int = MILLION) -> dict[str, Load]:
    """The sets with classes, each loaded when it is wanted."""
    return {
        "breast cancer": lambda: load_bundled("breast cancer", datasets.load_breast_cancer),
        "wine": lambda: load_bundled("wine", datasets.load_wine),
        "digits": lambda: load_bundled("digits", datasets.load_digits),
        "iris": lambda: load_bundled("iris", datasets.load_iris),
        "rand any visit": lambda: load_rand()[0],
        "million": lambda: draw_million(rows)[0],
    }


def list_measured(rows: int = MILLION) -> dict[str, Load]:
    """The sets of linear regression, each loaded when it is wanted."""
    return {
        "diabetes": lambda: load_bundled("diabetes", datasets.load_diabetes),
        "rand visits": lambda: load_rand()[1],
        **{name: lambda name=name: load_survey(name) for name in SURVEYS},
        "cell area": load_cell_area,
        **{name: lambda name=name: draw_linear()[name] for name in LINEAR},
        "million": lambda: draw_million(rows)[1],
    }


def load_survey(name: str) -> LearningSet:
    """A set of statsmodels whose target is a number."""
    from statsmodels import datasets as surveys  # noqa: PLC0415

    module, target, target_bounds, bounds = SURVEYS[name]
    frame = getattr(surveys, module).load_pandas().data
    return shuffle(
        LearningSet(name, scale_columns(frame, bounds), scale(frame[target].to_numpy(float), *target_bounds))
    )


def load_cell_area() -> LearningSet:
    """The largest area of the cells of a tumour from ten averages."""
    cells = datasets.load_breast_cancer()
    return shuffle(LearningSet("cell area", load_scaled(cells.data[:, :10]), scale(cells.data[:, 23], 0, 4500)))


def load_scaled(features: Floats) -> Floats:
    return scale(features, features.min(axis=0), features.max(axis=0))


def draw_linear() -> dict[str, LearningSet]:
    """Synthetic sets that are hard in one way each."""
    generator = np.random.default_rng(5)
    made = {}

    def add(name: str, features: Floats, target: Floats, bound: float) -> None:
        made[name] = LearningSet(name, np.clip(features, -1, 1), scale(target, -bound, bound))

    plain = generator.uniform(-1, 1, (10_000, 5))
    add("plain", plain, plain @ [1, -1, 0.5, 0, 0] + 0.5 * generator.standard_normal(10_000), 4)
    friedman = generator.uniform(0, 1, (10_000, 10))
    wave = 10 * np.sin(np.pi * friedman[:, 0] * friedman[:, 1]) + 20 * (friedman[:, 2] - 0.5) ** 2
    add("friedman", 2 * friedman - 1, wave + 10 * friedman[:, 3] + 5 * friedman[:, 4] - 14, 18)
    common = generator.standard_normal((20_000, 1)) / 4
    alike = 0.95 * common + 0.1 * generator.standard_normal((20_000, 20))
    add("alike columns", alike, alike.sum(axis=1) + generator.standard_normal(20_000), 25)
    narrow = generator.standard_normal((20_000, 5)) / 20
    add("wide bounds", narrow, narrow @ [2, -1, 1, 0, 0] + 0.05 * generator.standard_normal(20_000), 1)
    tails = generator.uniform(-1, 1, (5_000, 8))
    add("heavy tails", tails, tails @ [2, 1, -1, 1, 0, 0, 0, 0] + 0.4 * generator.standard_t(3, 5_000), 8)
    return made
