"""Noisy statistics of arrays: sensitivity, exact sums, shares, and arrays that hold anything."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.kernel.neighbours import Neighbours
from sfumato.learning import block_sums
from sfumato.learning.array_statistics import VALUE, ArrayStatistics, add_up, bound_change, choose_noise_for
from sfumato.learning.block_sums import BlockSums
from sfumato.learning.estimator_arguments import DatasetColumns, Declared, open_source
from sfumato.learning.feature_columns import SCALE, Classes, Coded, Numeric
from sfumato.learning.noisy_statistics import Statistic, find_shape, list_quantities, read_price
from sfumato.learning.row_arrays import RowArrays, read_table
from sfumato.learning.row_cells import Below, Bins, CodeGroups, Codes, Labels, Leaf, Leaves, Nearest, OneOf, Split
from sfumato.learning.row_functions import (
    TARGET,
    Moment,
    Powers,
    Residual,
    Score,
    apply_logistic,
    compute_steps,
    grid_of,
)

FEATURES = (Numeric("a", -1.0, 3.0), Numeric("b", 0.0, 10.0), Coded("c", ("x", "y", 3)))
CLASSES, NUMBER = Classes("t", ("no", "yes")), Numeric("t", 0.0, 1.0)
TREE = Leaves(Split(Below(0, 0.5), Leaf(0), Split(OneOf(2, (0, 2)), Leaf(1), Leaf(2))))
CELLS = [
    (),
    (Labels(),),
    (Bins(0, (0.0, 1.0)),),
    (Codes(2), Labels()),
    (CodeGroups(2, (1, 0, 1)),),
    (TREE,),
    (Nearest((0, 1), ((0.0, 0.5), (1.0, -1.0))),),
]
SCORE = Score(0.3, ((Bins(1, (2.0, 7.0)), (-2.0, 0.5, 9.0)), (Codes(2), (1.0, -1.0, 3.0))), ((0, 1.5),))
FUNCTIONS = [
    None,
    Moment((0,)),
    Moment((0, 1)),
    Moment((1, 1)),
    Powers(0),
    Residual(SCORE, "logistic", 1),
    Residual(SCORE, "identity", 0, 1),
]
ANYTHING = st.one_of(
    st.floats(), st.integers(-(10**400), 10**400), st.none(), st.booleans(), st.text(max_size=3),
    st.sampled_from([Decimal("1.5"), Decimal("sNaN"), Fraction(1, 3), np.float32("nan"), [], {}, pd.NA]),
    st.sampled_from(["x", "y", 3, "yes", "no"]),
)  # fmt: skip
ROW = st.tuples(ANYTHING, ANYTHING, ANYTHING, ANYTHING)


def rows_of(rows, target=CLASSES):
    columns = []
    for place in range(4):
        column = np.empty(len(rows), object)
        column[:] = [row[place] for row in rows] if rows else []
        columns.append(column)
    table = np.stack(columns[:3], axis=1) if rows else np.empty((0, 3), object)
    return RowArrays(read_table(table), columns[3], FEATURES, target)


def measure(statistic, rows, gaussian):
    shape = find_shape(statistic, FEATURES, rows.target)
    return add_up(statistic, BlockSums(rows), shape, gaussian=gaussian), int(np.prod(shape)) != 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(ROW, max_size=6), ROW, ROW, st.sampled_from(FUNCTIONS), st.sampled_from(CELLS), st.booleans(),
    st.sampled_from(list(Neighbours)),
)  # fmt: skip
def test_no_neighbour_moves_more(rows, one, two, function, cells, gaussian, neighbours):
    statistic = Statistic(function, cells)
    first = [*rows, one]
    second = rows if neighbours is Neighbours.ADD_REMOVE else [*rows, two]
    before, several = measure(statistic, rows_of(first), gaussian)
    after, _ = measure(statistic, rows_of(second), gaussian)
    quantities = list_quantities(function, lambda _: VALUE, gaussian=gaussian)
    for quantity, here, there in zip(quantities, before, after, strict=True):
        moved = [int(a) - int(b) for a, b in zip(here, there, strict=True)]
        bound = bound_change(quantity, neighbours, several=several)
        assert sum(map(abs, moved)) <= bound.l1
        assert sum(step**2 for step in moved) <= bound.l2_squared


def test_the_bound_is_reached():
    """Negative control: half of the stated sensitivity would be too little."""
    statistic = Statistic(Moment((0,)))
    (before,), _ = measure(statistic, rows_of([(3.0, 0, "x", "yes")]), False)
    (after,), _ = measure(statistic, rows_of([(-1.0, 0, "x", "yes")]), False)
    quantity = list_quantities(statistic.value, lambda _: VALUE, gaussian=False)[0]
    assert before[0] - after[0] == 2 * SCALE == bound_change(quantity, Neighbours.REPLACE_ONE, several=False).l1
    assert before[0] == bound_change(quantity, Neighbours.ADD_REMOVE, several=False).l1


@settings(max_examples=20, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=6), ANYTHING, st.integers(0, 3))
def test_how_a_row_is_read_does_not_depend_on_other_rows(rows, other, place):
    """Sums of single rows add up to the sum of all, whatever else the arrays hold."""
    changed = [tuple(other if column == place else value for column, value in enumerate(row)) for row in rows]
    everything = [*rows, *changed]
    for function in FUNCTIONS:
        statistic = Statistic(function, (Codes(2), Labels()))
        (whole, *_), _ = measure(statistic, rows_of(everything), False)
        parts = [measure(statistic, rows_of([row]), False)[0][0] for row in everything]
        assert whole.tolist() == np.sum(parts, axis=0).tolist()


@pytest.mark.parametrize("columns", [2, 70])
def test_sums_of_blocks_are_those_of_whole_columns(columns, monkeypatch):
    """Blocks of seven rows, odd bounds, missing numbers: the integers of scaled columns, bit for bit."""
    monkeypatch.setattr(block_sums, "BLOCK_ENTRIES", 1)
    monkeypatch.setattr(block_sums, "LEAST_BLOCK", 7)
    draw = np.random.default_rng(5)
    X = draw.normal(0, 3, (50, columns))
    X[draw.random(X.shape) < 0.05] = np.nan
    X[0, 0], X[1, 0] = np.inf, -np.inf
    bounds = [(-1 / 3, 0.1), (3.0, 3.0), (1e6, 1e6 + 0.001), *[(-2.0, 5.0)] * columns][:columns]
    features = tuple(Numeric(f"x{place}", *pair) for place, pair in enumerate(bounds))
    labels = Classes("t", (0, 1))
    rows = RowArrays(read_table(X), draw.integers(0, 3, 50), features, labels)
    sums, steps = BlockSums(rows), np.stack([rows.scaled(place) for place in range(columns)]).astype(np.int64)
    chosen = np.stack([rows.labels() == place for place in (0, 1)])
    for place in range(columns):
        assert sums.sum_column(place, 2, (Labels(),), (2,)).tolist() == (chosen @ steps[place] ** 2).tolist()
        assert sums.sum_column(place, 1, (Labels(),), (2,)).tolist() == (chosen @ steps[place]).tolist()
        assert sums.sum_column(place, 1, (), ()).tolist() == [steps[place].sum()]
        assert sums.sum_product(0, place).tolist() == [steps[0] @ steps[place]]
        assert sums.sum_column(place, 2, (), ()).tolist() == [steps[place] @ steps[place]]


def test_missing_and_undeclared_values_have_a_defined_meaning():
    rows = rows_of([(np.nan, None, "z", "maybe"), (np.inf, -np.inf, 3.0, "yes")])
    assert rows.numbers(0).tolist() == [1.0, 3.0]
    assert rows.numbers(1).tolist() == [5.0, 0.0]
    assert rows.codes(2).tolist() == [-1, 2]
    assert rows.labels().tolist() == [-1, 1]
    assert rows.scaled(0).tolist() == [0, SCALE]
    assert measure(Statistic(None, (Codes(2),)), rows, False)[0][0].tolist() == [0, 0, 1]


def test_arrays_and_frames_and_lists_are_read_alike():
    frame = pd.DataFrame({"a": [0.5, 2.0], "b": [1, 20]})
    features = FEATURES[:2]
    tables = [frame, frame.to_numpy(), frame.to_numpy().tolist(), frame.astype(object)]
    found = [RowArrays(read_table(table), None, features, None) for table in tables]
    assert all(np.array_equal(rows.scaled(place), found[0].scaled(place)) for rows in found for place in (0, 1))


def test_the_shares_of_a_fit_are_at_most_one():
    source = ArrayStatistics(rows_of([]), read_price(1, 0), Neighbours.ADD_REMOVE)
    source.release([Statistic(None), Statistic(Moment((0,)), weight=3)], Fraction(3, 4))
    source.release([Statistic(None)], Fraction(1, 4))
    with pytest.raises(sf.errors.KernelFault):
        source.release([Statistic(None)], Fraction(1, 10**9))


def test_what_another_source_spent_is_not_spent_again():
    whole, rest = (
        ArrayStatistics(rows_of([]), read_price("0.01", 0), Neighbours.ADD_REMOVE, spent=Fraction(spent))
        for spent in (0, "3/4")
    )
    (one,), (four,) = (source.release([Statistic(None)], Fraction(1)) for source in (whole, rest))
    assert four.deviation == pytest.approx(4 * one.deviation, rel=1e-3)


def test_weights_share_the_budget_of_a_call():
    source = ArrayStatistics(rows_of([]), read_price("0.01", 0), Neighbours.ADD_REMOVE)
    one, three = source.release([Statistic(None), Statistic(None, weight=3)], Fraction(1))
    assert one.deviation == pytest.approx(np.sqrt(2) * 400, rel=1e-3)
    assert three.deviation == pytest.approx(np.sqrt(2) * 400 / 3, rel=1e-3)


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_released_sums_are_exact_sums_and_noise(function, delta):
    """Within 12 deviations of the exact sums, for every function and both kinds of noise."""
    rows = [(0.7, 3, "x", "yes"), (-0.2, 9, "y", "no"), (2.0, 1, 3, "yes")] * 50
    held = rows_of(rows)
    (noisy,) = ArrayStatistics(held, read_price(200, delta), Neighbours.ADD_REMOVE).release(
        [Statistic(function, (Labels(),))], Fraction(1)
    )
    column = held.scaled(0) / SCALE
    chosen = np.stack([held.labels() == label for label in (0, 1)])
    match function:
        case None:
            expected = chosen.sum(axis=1)
        case Powers():
            expected = np.stack([chosen.sum(axis=1), chosen @ column, chosen @ column**2], axis=1)
        case Moment(columns):
            expected = chosen @ np.prod([held.scaled(place) / SCALE for place in columns], axis=0)
        case _:
            expected = chosen @ (compute_steps(function, held) * 2.0 ** grid_of(function).exponent)
    assert np.all(np.abs(noisy.sums - expected) <= 12 * noisy.deviation + 1e-9)


def test_replace_one_pays_more_and_knows_the_number_of_rows():
    for neighbours, rows in ((Neighbours.ADD_REMOVE, None), (Neighbours.REPLACE_ONE, 2)):
        source = ArrayStatistics(rows_of([(1, 1, "x", "yes")] * 2), read_price(1, 0), neighbours)
        assert source.rows == rows
    quantity = list_quantities(Moment((0,)), lambda _: VALUE, gaussian=False)[0]
    loss = sf.PureDP(1)
    once, twice = (choose_noise_for(quantity, loss, one, several=True) for one in Neighbours)
    assert twice.scale == 2 * once.scale


def test_the_logistic_function_is_close_and_bounded():
    scores = np.linspace(-40, 40, 8001)
    exact = 1 / (1 + np.exp(-np.clip(scores, -12, 12)))
    assert np.max(np.abs(apply_logistic(scores) - exact)) < 2e-7
    assert 0 <= apply_logistic(scores).min() < apply_logistic(scores).max() <= 1


def open_arrays(X, y=None, predicts="classes", **declared):
    return open_source(X, y, DatasetColumns(None), Declared(epsilon=1, **declared), predicts).source


@pytest.mark.parametrize(
    ("X", "declared"),
    [
        ([[1.0]], {}),
        ([[1.0]], {"bounds": (3, 1)}),
        ([[1.0]], {"bounds": (0, np.nan)}),
        ([[1.0]], {"bounds": "ab"}),
        ([[1.0]], {"bounds": ([0, 0], [1, 1])}),
        ([1.0], {"bounds": (0, 1)}),
        (np.ma.masked_array([[1.0]]), {"bounds": (0, 1)}),
        (np.array([["a"]]), {"bounds": (0, 1)}),
        (np.array([[1j]]), {"bounds": (0, 1)}),
        (np.empty((3, 0)), {"bounds": (0, 1)}),
        ([[1.0]], {"categories": [["a"], ["b"]]}),
        ([[1.0]], {"categories": [["a", "a"]]}),
        ([[1.0]], {"bounds": (0, 1), "classes": []}),
    ],
)
def test_what_is_declared_wrongly_is_refused(X, declared):
    with pytest.raises(sf.errors.InvalidParameter):
        open_arrays(X, [0], **declared)


def test_labels_that_are_not_declared_are_found_with_noise_or_by_their_type():
    labels = np.array([0, 2] * 500)
    X = np.zeros((1000, 1))
    assert open_arrays(X, labels, bounds=(0, 1)).target.labels == (0, 2)
    assert open_arrays(X, labels == 2, bounds=(0, 1)).target.labels == (False, True)
    with pytest.raises(sf.errors.InvalidParameter, match="classes"):
        open_arrays(X, np.array(["a", "b"] * 500), bounds=(0, 1))
    source = open_arrays(X, labels, bounds=(0, 1))
    source.release([Statistic(None)], Fraction(1))  # what finding the labels left
    with pytest.raises(sf.errors.KernelFault):
        source.release([Statistic(None)], Fraction(1, 100))


def test_a_target_is_the_last_column():
    rows = rows_of([(1, 1, "x", 0.75), (1, 1, "x", 2.0)], NUMBER)
    assert rows.scaled(TARGET).tolist() == [SCALE / 2, SCALE]


@pytest.mark.parametrize("name", ["LogisticRegression", "BoostedAdditiveClassifier"])
def test_rows_with_an_undeclared_label_change_no_score(name):
    """Half of the labels are undeclared, at random. They are not read as the other class."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (20_000, 1))
    y = (rng.random(20_000) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)
    hidden = np.where(rng.random(20_000) < 0.5, 7, y)
    chances = []
    for labels in (y, hidden):
        model = getattr(sf.learning, name)(epsilon=10, bounds=(-1, 1), classes=[0, 1])
        chances.append(model.fit(X, labels).predict_proba(X)[:, 1].mean())
    assert abs(chances[0] - chances[1]) < 0.05
