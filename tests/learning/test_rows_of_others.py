"""One row's value, type or absence never decides how other rows are read, nor whether a fit is refused."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.learning import BoostedAdditiveClassifier
from sfumato.learning.feature_columns import SCALE, Numeric
from sfumato.learning.row_arrays import RowArrays, read_codes, read_column, read_floats, read_table, scale_column
from sfumato.learning.row_cells import NO_CELL


class Hostile(Fraction):
    """A number whose own conversions fail."""

    def __float__(self) -> float:
        raise RuntimeError("secret")

    def __hash__(self) -> int:
        raise ValueError("secret")


ENTRIES = ([1, 1], None, (1,), "x", [], [[1]], np.array([1]), np.array(1), memoryview(bytearray(b"x")), Hostile(1))
SPELLINGS = [pytest.param(entry, id=f"{number}") for number, entry in enumerate(ENTRIES)]


@pytest.mark.parametrize("entry", SPELLINGS)
def test_a_list_of_labels_is_read_entry_by_entry(entry: object) -> None:
    codes = read_codes(read_column([[1], [0], entry, 1], 4), (0, 1))
    assert codes[[0, 1, 3]].tolist() == [1, 0, 1]


@pytest.mark.parametrize("entry", SPELLINGS)
def test_a_list_of_rows_is_read_cell_by_cell(entry: object) -> None:
    table = read_table([[1, 2], [entry, 4], [5, 6]])
    assert read_floats(table.columns[0], "x")[::2].tolist() == [1, 5]
    assert read_codes(table.columns[0], (1, "x"))[::2].tolist() == [0, NO_CELL]
    assert [column.tolist()[::2] for column in table.columns] == [[1, 5], [2, 6]]


def list_series(values: list[object]) -> list[object]:
    """One column of truth values or whole numbers, in each kind of nullable column."""
    whole = isinstance(values[0], int) and not isinstance(values[0], bool)
    types = ("Int64", "int64[pyarrow]") if whole else ("boolean", "bool[pyarrow]")
    frames = [pd.Series(values, dtype=name) for name in types]
    arrow = [pa.array(values), pa.chunked_array([values]), pa.table({"y": values})]
    return [*frames, frames[0].to_frame(), pl.Series(values), pl.DataFrame({"y": values}), *arrow]


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize("labels", [[True, False], [1, 0]], ids=["boolean", "whole"])
def test_a_missing_label_refuses_no_fit_and_changes_no_classes(place: int, labels: list[object]) -> None:
    fitted = []
    for values in (labels * 2000, [*labels * 1999, labels[0], None]):
        model = BoostedAdditiveClassifier(epsilon=8, bounds=(0, 1)).fit(np.zeros((4000, 1)), list_series(values)[place])
        fitted.append(model.classes_)
    assert fitted[0].dtype == fitted[1].dtype
    assert all(set(labels) <= set(classes.tolist()) for classes in fitted)  # noise may add a whole number


LISTED_FROM_DATA = {
    "pandas": lambda values: pd.Series(values).astype("category"),
    "pandas.Categorical": pd.Categorical,
    "polars": lambda values: pl.Series(values, dtype=pl.Categorical),
    "arrow": lambda values: pa.array(values).dictionary_encode(),
}


@pytest.mark.parametrize("kind", LISTED_FROM_DATA)
def test_categories_of_a_column_never_become_classes(kind: str) -> None:
    y = LISTED_FROM_DATA[kind](["flu", "healthy"] * 50 + ["rare disease"])
    X = np.zeros((101, 1))
    with pytest.raises(InvalidParameter, match="declared") as refused:
        BoostedAdditiveClassifier(bounds=(0, 1)).fit(X, y)
    assert "classes=" in str(refused.value)
    assert "rare" not in str(refused.value)
    model = BoostedAdditiveClassifier(bounds=(0, 1), classes=["flu", "healthy"]).fit(X, y)
    assert model.classes_.tolist() == ["flu", "healthy"]


def test_an_enum_declares_its_classes() -> None:
    for labels in (["b", "a", None], ["a", "a", "a"]):
        y = pl.Series(labels, dtype=pl.Enum(["a", "b", "c"]))
        assert BoostedAdditiveClassifier(bounds=(0, 1)).fit(np.zeros((3, 1)), y).classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_categories_of_a_feature_are_never_taken_from_its_column(kind: str) -> None:
    column = LISTED_FROM_DATA[kind](["x", "y"] * 50)
    X = pd.DataFrame({"a": column}) if kind == "pandas" else pl.DataFrame({"a": column})
    y = [0, 1] * 50
    with pytest.raises(InvalidParameter, match="bounds"):
        BoostedAdditiveClassifier(classes=[0, 1]).fit(X, y)
    model = sf.learning.CategoricalNB(100, classes=[0, 1], categories={"a": ["y", "z"]}).fit(X, y)
    assert model.feature_log_prob_[0].shape == (2, 2)


@pytest.mark.parametrize("entry", [None, "x", 0.5, [1]], ids=repr)
def test_one_label_of_another_kind_refuses_no_fit_of_pandas_truth_values(entry: object) -> None:
    y = pd.Series([True, False] * 500 + [entry], dtype=object)
    classes = BoostedAdditiveClassifier(epsilon=8, bounds=(0, 1)).fit(np.zeros((1001, 1)), y).classes_.tolist()
    assert {0, 1} <= set(classes)


def test_labels_that_do_not_stand_out_are_reported() -> None:
    X = np.zeros((1000, 1))
    with pytest.warns(sf.learning.LabelWarning, match="classes="):
        BoostedAdditiveClassifier(epsilon=8, bounds=(0, 1)).fit(X, np.array(["no", "yes"] * 500, object))


@pytest.mark.parametrize("classes", [["0", "1", 2], [0, 1], [False, True]], ids=repr)
def test_labels_of_another_kind_than_the_column_are_refused(classes: list[object]) -> None:
    frame = pd.DataFrame({"a": [0.0, 1.0], "t": ["0", "x"]})
    columns = {"a": sf.Real(0, 1), "t": sf.Text()}
    with sf.protect(frame, name="p", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=1)) as curator:
        with pytest.raises(InvalidParameter, match="texts"):
            BoostedAdditiveClassifier(epsilon=1, classes=classes).fit(dataset=curator, features=["a"], target="t")
        assert curator.budget.spent.epsilon == 0


@pytest.mark.parametrize("lower", [0.0, 1.0, -16305556057.71619, 1777503.0841939535, 2.0**53 - 2])
@pytest.mark.parametrize("ulps", [1, 3, 100, 1 << 14, 1 << 21, 1 << 40])
def test_scaled_steps_stay_within_the_scale(lower: float, ulps: int) -> None:
    upper = lower + ulps * float(np.spacing(lower))
    try:
        feature = Numeric("x", lower, upper)
    except InvalidParameter:
        return  # too narrow, or beyond 2**53
    steps = scale_column(np.array([lower, upper, feature.middle]), feature)
    assert np.abs(steps).max() <= SCALE
    assert steps[:2].tolist() == pytest.approx([-SCALE, SCALE], abs=1)


def test_bounds_that_are_nearly_equal_are_refused() -> None:
    for lower, upper in (
        (9007199254740990.0, 9007199254740991.0),
        (0.0, 1e-305),
        (1777503.0841939535, 1777503.0842015827),
    ):
        with pytest.raises(InvalidParameter, match="further apart"):
            Numeric("x", lower, upper)
    assert Numeric("x", 5.0, 5.0).steps_per_unit == 0


COLUMNS = {
    "texts": (["a\0", "a", "b"], ("a", "b")),
    "wide": ([2**53 + 1, 2**53, 1], (2**53, "x")),
    "whole": ([2, 1, 0], (0, 1, 2)),
    "truths": ([True, False, True], (False, True)),
    "numbers": ([0.5, 1.0, 2.0], (1.0, 2)),
}


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, pa.table], ids=["polars", "pandas", "arrow"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_missing_entry_of_a_frame_changes_no_other(kind: str, make: type) -> None:
    values, declared = COLUMNS[kind]
    whole, missing = (read_table(make({"a": [*values, last]})).columns[0] for last in (values[-1], None))
    assert read_codes(whole, declared)[:3].tolist() == read_codes(missing, declared)[:3].tolist()
    assert read_codes(missing, declared)[3] == NO_CELL


@pytest.mark.parametrize("last", ["2", None])
def test_a_text_column_is_refused_by_its_type_where_numbers_are_declared(last: str | None) -> None:
    with pytest.raises(InvalidParameter, match="must be numbers"):
        RowArrays(read_table(pl.DataFrame({"a": ["1", last]})), None, (Numeric("a", 0, 1),), None)


def test_no_value_of_a_row_causes_a_warning() -> None:
    """Warnings are errors here. A number beyond a double, and signalling NaNs, are read without one."""
    wide = np.full((20, 1), 0.5, np.longdouble)
    wide[0] = np.longdouble("1e4000")
    single = np.full((20, 1), 0.5, np.float32)
    single.view(np.uint32)[0] = 0x7F800001
    double = np.full((20, 1), 0.5)
    double.view(np.uint64)[0] = 0x7FF0000000000001
    frames = [pd.DataFrame({"a": single[:, 0]}), pl.DataFrame({"a": single[:, 0]}), pa.table({"a": single[:, 0]})]
    y = np.arange(20) % 2
    for X in (wide, single, double, single.astype(object), *frames):
        for model in (
            sf.learning.GaussianNB(bounds=(0, 1), classes=[0, 1]),
            sf.learning.CategoricalNB(categories=[[0.5, 1]], classes=[0, 1]),
        ):
            model.fit(X, y).predict(X)
        sf.learning.LinearRegression(bounds=(0, 1), target_bounds=(0, 1)).fit(X, y)
        sf.learning.BoostedAdditiveClassifier(bounds=(0, 1), classes=[0, 1]).fit(X, y)


@pytest.mark.parametrize(
    "values", [(2**53, 2**53 + 1), (-(2**60), -(2**60) - 1), (0, 10**400), (2**63, 2**64 - 1)], ids=str
)
def test_large_whole_numbers_stay_different(values: tuple[int, int]) -> None:
    entries = [*values, values[0], 5]
    kinds = [object] + ([np.int64] if max(map(abs, values)) < 2**63 else [np.uint64] if max(values) < 2**64 else [])
    for kind in kinds:
        assert read_codes(np.array(entries, kind), values).tolist() == [0, 1, 0, NO_CELL]
    assert read_codes(np.array([0, 5]), values).tolist() == [0 if 0 in values else NO_CELL, NO_CELL]
    model = sf.learning.GaussianNB(bounds=(0, 1), classes=[*values, -1]).fit(np.zeros((2, 1)), [0, 0])
    assert model.classes_.tolist() == [*values, -1]


def test_a_large_number_is_not_read_as_a_declared_one() -> None:
    assert read_codes(np.array([2**53 + 1, 2**53 - 1, 2**62]), (2**53 - 1, 0)).tolist() == [NO_CELL, 0, NO_CELL]
