"""Noisy statistics through the curator: equal to those of arrays, certified for every unit, charged once."""

from decimal import Decimal
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.budget import find_largest_rho
from sfumato.kernel.certify import certify
from sfumato.kernel.neighbours import Neighbours
from sfumato.learning.array_statistics import add_up
from sfumato.learning.block_sums import BlockSums
from sfumato.learning.curator_statistics import CuratorStatistics
from sfumato.learning.estimator_arguments import DatasetColumns, Declared, open_source
from sfumato.learning.joint_sums import Group, group_statistics, list_terms
from sfumato.learning.noisy_statistics import Statistic, find_shape
from sfumato.learning.row_arrays import RowArrays, read_column, read_table
from sfumato.learning.row_cells import Below, Bins, Codes, Labels, Leaf, Leaves, Nearest, OneOf, Split
from sfumato.learning.row_functions import Moment, Powers, Residual, Score

COLUMNS = {"a": sf.Real(-1, 3), "b": sf.Integer(0, 10), "c": sf.Category(["x", "y"]), "t": sf.Boolean()}
TREE = Leaves(Split(Below(0, 0.5), Leaf(0), Split(OneOf(2, (1,)), Leaf(1), Leaf(2))))
CELLS = [
    (),
    (Labels(),),
    (Bins(0, (0.0, 1.0)),),
    (Codes(2), Labels()),
    (TREE,),
    (Nearest((0, 1), ((0.0, 0.5), (1.0, -1.0))),),
    (Nearest((0, 1), ((0.0, 0.5), (1.0, -1.0), (0.3, 0.1)), (0.3, 1.0)), TREE),
]
SCORE = Score(0.3, ((Bins(1, (2.0, 7.0)), (-2.0, 0.5, 9.0)), (Codes(2), (1.0, -1.0))), ((0, 1.5),))
FUNCTIONS = [
    None,
    Moment((0,)),
    Moment((0, 1)),
    Powers(0),
    Residual(SCORE, "logistic", 1),
    Residual(SCORE, "identity", 0, 1),
]
STATISTICS = [Statistic(function, cells) for function in FUNCTIONS for cells in CELLS]
ROW = st.tuples(
    st.one_of(st.none(), st.floats(-5, 5), st.just(np.inf)), st.one_of(st.none(), st.integers(-3, 12)),
    st.sampled_from(["x", "y", "z", None]), st.sampled_from([True, False, None]), st.integers(0, 3),
)  # fmt: skip


def frame_of(rows):
    columns = [pd.Series([row[place] for row in rows], dtype=object) for place in range(5)]
    return pd.DataFrame(dict(zip(["a", "b", "c", "t", "id"], columns, strict=True)))


def protect(frame, unit=sf.ROW, neighbours="add-remove", **budget):
    given = {"epsilon": 100, **budget}
    options = {"neighbours": neighbours} | (
        {"rows": len(frame)} if unit is sf.ROW and neighbours == "replace-one" else {}
    )
    if unit is not sf.ROW:
        options |= {"max_rows_per_unit": 2}
    columns = COLUMNS if unit is sf.ROW else {**COLUMNS, "id": sf.Id()}
    return sf.protect(
        frame[list(columns)], name="people", unit=unit, columns=columns, budget=sf.Budget(**given), **options
    )


def open_fit(curator, **declared):
    columns = DatasetColumns(curator, ["a", "b", "c"], "t")
    return open_source(None, None, columns, Declared(epsilon=10, **declared), "classes").source


def measure(curator, statistics, delta=0):
    """The exact integers of the statistics, and the certificate of each: {name: (integers, certified)}."""
    found = {}
    source = open_fit(curator, delta=delta)
    losses = source._shares.take(Fraction(1), [1] * len(statistics))
    with curator.at_desk() as desk:
        for number, (statistic, loss) in enumerate(zip(statistics, losses, strict=True)):
            plan = source._plan(desk, statistic.cells, [Group((number,), (statistic,), loss)])
            measured = desk.engine.aggregate(plan)._integers
            for part in certify(plan).measurements:
                found[part.name] = measured[part.name], part
    return found


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_the_integers_are_those_of_arrays(delta):
    """Bit for bit, for every function and partition, with NULLs and values outside their bounds."""
    rng = np.random.default_rng(3)
    rows = [
        (number, whole, letter, truth, 0)
        for number, whole, letter, truth in zip(
            np.where(rng.random(500) < 0.1, None, rng.normal(1, 2, 500)),
            np.where(rng.random(500) < 0.1, None, rng.integers(-2, 13, 500)),
            rng.choice(["x", "y", "z"], 500).tolist(),
            np.where(rng.random(500) < 0.1, None, rng.random(500) < 0.3).tolist(),
            strict=True,
        )
    ]
    frame = frame_of(rows)
    with protect(frame, delta="1e-5") as curator:
        source = open_fit(curator)
        arrays = RowArrays(
            read_table(frame[["a", "b", "c"]]), read_column(frame["t"], 500), source.features, source.target
        )
        through = measure(curator, STATISTICS, delta)
    sums = BlockSums(arrays)
    for number, statistic in enumerate(STATISTICS):
        shape = find_shape(statistic, source.features, source.target)
        for place, integers in enumerate(add_up(statistic, sums, shape, gaussian=bool(delta))):
            assert through[f"m{number}_{place}"][0].tolist() == integers.tolist(), statistic


def test_sums_that_are_measured_together_are_those_of_arrays():
    rng = np.random.default_rng(4)
    rows = list(
        zip(
            np.where(rng.random(300) < 0.1, None, rng.normal(1, 2, 300)),
            np.where(rng.random(300) < 0.1, None, rng.integers(-2, 13, 300)),
            rng.choice(["x", "y", "z"], 300).tolist(),
            np.where(rng.random(300) < 0.1, None, rng.random(300) < 0.3).tolist(),
            [0] * 300,
            strict=True,
        )
    )
    frame = frame_of(rows)
    with protect(frame) as curator, curator.at_desk() as desk:
        source = open_fit(curator)
        losses = source._shares.take(Fraction(1), [1] * len(STATISTICS))
        groups = group_statistics(STATISTICS, losses, public_rows=False)
        arrays = RowArrays(
            read_table(frame[["a", "b", "c"]]), read_column(frame["t"], 300), source.features, source.target
        )
        sums = BlockSums(arrays)
        assert [len(group.statistics) for group in groups] == [len(FUNCTIONS)] * len(CELLS)
        for group in groups:
            plan = source._plan(desk, group.cells, [group])
            (measured,) = certify(plan).measurements
            assert measured.loss == sf.PureDP(sum(loss.epsilon for loss in losses) / len(CELLS))
            integers = desk.engine.aggregate(plan)._integers[measured.name].reshape(-1, measured.width)
            shape = find_shape(group.statistics[0], source.features, source.target)
            for statistic in group.statistics:
                for term, exact in zip(
                    list_terms(statistic), add_up(statistic, sums, shape, gaussian=True), strict=True
                ):
                    place = group.terms.index(term)
                    products = plan.measurements[0].quantity
                    multiplier = products.find_multiplier(products.terms[place])
                    assert integers[:, place].tolist() == (exact * multiplier).tolist(), statistic


def test_rows_without_a_declared_label_add_nothing_to_residuals():
    residuals = [Statistic(Residual(SCORE, "logistic", label, times)) for label in (0, 1) for times in (None, 1)]
    with protect(frame_of([(0.5, 4, "x", None, 0)] * 7)) as unlabelled:
        found = measure(unlabelled, residuals)
    assert {name: integers.tolist() for name, (integers, _) in found.items()} == {f"m{n}_0": [0] for n in range(4)}
    with protect(frame_of([(0.5, 4, "x", True, 0)] * 7)) as labelled:  # negative control
        assert all(integers.any() for integers, _ in measure(labelled, residuals).values())


@settings(max_examples=8, deadline=None)
@given(st.lists(ROW, max_size=5), st.lists(ROW, max_size=3), st.data())
def test_no_neighbour_moves_more_than_its_certificate(rows, own, data):
    """A person enters, or replaces another, with a row or with several rows."""
    unit = data.draw(st.sampled_from([sf.ROW, "id"]))
    neighbours = data.draw(st.sampled_from([one.value for one in Neighbours]))
    statistics = data.draw(st.lists(st.sampled_from(STATISTICS), min_size=4, max_size=4))
    first = ([(*row[:4], 9) for row in own] or [ROW_OF_NOBODY]) if unit == "id" else [(own or [ROW_OF_NOBODY])[0]]
    second = [] if neighbours == "add-remove" else [ROW_OF_NOBODY]
    both = []
    for person in (first, second):
        with protect(frame_of([*rows, *person]), unit, neighbours) as curator:
            both.append(measure(curator, statistics))
    for name, (before, part) in both[0].items():
        moved = [int(one) - int(two) for one, two in zip(before, both[1][name][0], strict=True)]
        assert sum(map(abs, moved)) <= part.sensitivity.l1
        assert sum(step**2 for step in moved) <= part.sensitivity.l2_squared


ROW_OF_NOBODY = (3.0, 10, "y", False, 9)


def test_half_of_the_certificate_would_be_too_little():
    """Negative control."""
    with protect(frame_of([ROW_OF_NOBODY])) as one, protect(frame_of([])) as none:
        here, there = (measure(curator, [Statistic(Moment((0,)))])["m0_0"] for curator in (one, none))
    assert here[0][0] - there[0][0] == here[1].sensitivity.l1


def test_a_fit_is_one_charge_made_with_the_first_statistics():
    with protect(frame_of([ROW_OF_NOBODY] * 30)) as curator:
        source = open_fit(curator)
        assert curator.budget.spent.epsilon == 0
        source.release([Statistic(None), Statistic(None, (Labels(),))], Fraction(1, 2))
        assert curator.budget.spent.epsilon == 10
        source.release([Statistic(None), Statistic(None)], Fraction(1, 2))  # the same again: new noise, no charge
        assert curator.budget.spent.epsilon == 10
        assert sum(entry.loss is not None for entry in curator.ledger().entries()) == 1
        with pytest.raises(sf.errors.KernelFault):
            source.release([Statistic(None)], Fraction(1, 100))
        assert curator.ledger().verify().ok
        assert source.loss == sf.PureDP(10)


def test_the_prepaid_ledger_refuses_what_the_shares_would_let_through():
    with protect(frame_of([ROW_OF_NOBODY])) as curator:
        source = open_fit(curator)
        source.release([Statistic(None)], Fraction(1))
        source._shares.spent = Fraction(0)
        with pytest.raises(sf.errors.BudgetExceeded):
            source.release([Statistic(None)], Fraction(1, 1000))


@pytest.mark.parametrize(
    ("budget", "loss"), [({"delta": "1e-6"}, sf.ApproxDP), ({"delta": "1e-6", "accounting": "zcdp"}, sf.ZCDP)]
)
def test_gaussian_noise_is_charged_as_the_budget_counts(budget, loss):
    with protect(frame_of([ROW_OF_NOBODY] * 30), **budget) as curator:
        source = open_fit(curator, delta="1e-7")
        (noisy,) = source.release([Statistic(Moment((0,)), (Labels(),))], Fraction(1))
        assert noisy.gaussian
        assert isinstance(source.loss, loss)
    with protect(frame_of([ROW_OF_NOBODY])) as curator, pytest.raises(sf.errors.InvalidParameter, match="delta"):
        open_fit(curator, delta="1e-7")


def test_what_does_not_fit_is_refused_before_data_is_read():
    with protect(frame_of([ROW_OF_NOBODY]), epsilon=1) as curator:
        source = open_fit(curator)
        with (
            patch.object(type(curator.engine), "aggregate", side_effect=AssertionError),
            pytest.raises(sf.errors.BudgetExceeded),
        ):
            source.release([Statistic(None)], Fraction(1))
        assert curator.budget.spent.epsilon == 0


def test_a_person_with_many_rows_is_protected_by_the_certificate():
    with protect(frame_of([ROW_OF_NOBODY] * 40), "id") as curator:
        measured = measure(curator, [Statistic(None), Statistic(Powers(0))])
        assert measured["m0_0"][0][0] <= 2 << 16  # two rows of weight 1, in steps of 2**-16
        noisy = open_fit(curator).release([Statistic(None), Statistic(Powers(0))], Fraction(1))
    assert abs(noisy[0].sums - 2) < 30
    assert noisy[1].sums.shape == (3,)


@pytest.mark.parametrize(
    ("columns", "declared"),
    [
        ({"features": ["a"]}, {}),
        ({"features": "a", "target": "t"}, {}),
        ({"features": [], "target": "t"}, {}),
        ({"features": ["a", "A"], "target": "t"}, {}),
        ({"features": ["a", "t"], "target": "t"}, {}),
        ({"features": ["a"], "target": "a2"}, {}),
        ({"features": ["a"], "target": "t"}, {"bounds": (0, 1)}),
        ({"features": ["b"], "target": "a"}, {}),
        ({"features": ["a"], "target": "t", "table": "other"}, {}),
    ],
)
def test_wrong_columns_are_refused_and_cost_nothing(columns, declared):
    with protect(frame_of([ROW_OF_NOBODY])) as curator:
        with pytest.raises(sf.errors.SfumatoError):
            open_source(None, None, DatasetColumns(curator, **columns), Declared(epsilon=1, **declared), "classes")
        assert curator.budget.spent.epsilon == 0


def test_classes_of_a_column_of_numbers():
    with protect(frame_of([ROW_OF_NOBODY])) as curator:
        for classes, labels in ((None, tuple(range(11))), ([0, 1], (0, 1))):
            columns = DatasetColumns(curator, ["a"], "b")
            source = open_source(None, None, columns, Declared(epsilon=1, classes=classes), "classes").source
            assert isinstance(source, CuratorStatistics)
            assert source.target.labels == labels


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("GaussianNB", "t"), ("CategoricalNB", "t"), ("LogisticRegression", "t"), ("DecisionTreeClassifier", "t"),
        ("RandomForestClassifier", "t"), ("KMeans", None), ("PCA", None),
    ],
)  # fmt: skip
def test_a_budget_in_rho_is_charged_the_largest_rho_that_implies_epsilon_and_delta(name, target):
    """Laplace noise at the same epsilon would be charged 19 times as much."""
    rows = [(float(row % 3), row % 11, "x", row % 2 == 0, 0) for row in range(60)]
    with protect(frame_of(rows), epsilon=2, delta="1e-6", accounting="zcdp") as curator:
        model = getattr(sf.learning, name)(epsilon=1, delta="1e-6")
        columns = {} if target is None else {"target": target}
        model.fit(dataset=curator, features=["a", "b"], **columns)
        assert isinstance(model.loss_, sf.ZCDP)
        assert float(model.loss_.rho) == pytest.approx(float(find_largest_rho(Decimal(1), Decimal("1e-6"))))
        assert curator.budget.spent.rho == model.loss_.rho
