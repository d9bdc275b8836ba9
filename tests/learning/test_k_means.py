"""k-means: what it asks for, what it finds, hostile rows, and one charge through the curator."""

import numpy as np
import pandas as pd
import pytest
from exact_sources import ExactSource, find_largest_move, read_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.learning.k_means import KMeans, find_centres
from sfumato.learning.public_choices import PublicChoices
from sfumato.learning.row_cells import Nearest, number_cells

NUMBER = st.one_of(st.floats(), st.integers(-3, 12).map(float))
ROW = st.tuples(NUMBER, NUMBER, NUMBER)


def read(rows):
    return read_rows(np.array(rows, float).reshape(len(rows), 3), None, ([0, 0, -5], [10, 1, 5]), None)


def run(rows, noise, clusters=3):
    source = ExactSource(read(rows), noise)
    _, rounds = find_centres(source, source.features, clusters, PublicChoices(0))
    return source, rounds


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=25, deadline=None)
@given(st.lists(ROW, max_size=8), ROW, st.sampled_from([1e-9, 1.0]))
def test_one_row_moves_each_statistic_by_one(rows, row, noise):
    source, _ = run([*rows, row], noise)
    assert find_largest_move(source, read(rows)) <= 1 + 1e-12
    assert sum(source.shares) == 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_two_rows_move_a_statistic_by_two():
    """Negative control of the test above."""
    row = (10.0, 1.0, 5.0)
    source, _ = run([row, row], 1e-9)
    assert find_largest_move(source, read([])) == pytest.approx(2)


def test_the_number_of_rounds_follows_from_the_noisy_number_of_rows():
    rows = np.random.default_rng(0).random((500, 3)).tolist()
    assert [run(rows, noise)[1] for noise in (10.0, 1.0, 0.3, 0.03, 0.001)] == [0, 1, 3, 8, 20]


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_separate_clusters_are_found(delta, neighbours):
    rng = np.random.default_rng(4)
    places = np.array([[1.0, 80.0], [5.0, 20.0], [9.0, 90.0]])
    X = places[rng.integers(0, 3, 9000)] + rng.normal(0, 1, (9000, 2)) * [0.3, 3]
    settings = {"bounds": ([0, 0], [10, 100]), "neighbours": neighbours, "delta": delta, "random_state": 1}
    fitted = KMeans(3, epsilon=5, **settings).fit(X)
    found = fitted.cluster_centers_[np.argsort(fitted.cluster_centers_[:, 0])]
    np.testing.assert_allclose(found, places, atol=2.5)
    assert 10 * fitted.score(X) > KMeans(3, epsilon="0.0001", **settings).fit(X).score(X)  # negative control
    assert set(fitted.predict(places)) == {0, 1, 2}
    assert fitted.transform(places).shape == (3, 3)


def test_distances_are_in_the_units_of_the_columns():
    """The second column is 100 times as wide: it decides which centre is nearest, as in the columns' own units."""
    rng = np.random.default_rng(2)
    rows = read_rows(rng.random((200, 2)) * [1, 100], None, ([0, 0], [1, 100]), None)
    centres = rng.uniform(-1, 1, (4, 2))
    cells = Nearest((0, 1), tuple(map(tuple, centres.tolist())), (0.0001, 1.0))
    numbers = np.column_stack([rows.numbers(0), rows.numbers(1)])
    middles = np.array([0.5, 50]) + np.array([0.5, 50]) * centres
    distances = ((numbers[:, None] - middles) ** 2).sum(axis=2)
    assert np.mean(number_cells(cells, rows) == distances.argmin(axis=1)) > 0.99


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hostile_rows_cause_no_error():
    strange = np.array([[np.nan, np.inf], [-np.inf, 1e300], [0.0, 0.0]])
    for X, bounds in ((strange, (0, 1)), (strange[:0], (0, 1)), (strange, ([0, 3], [0, 3]))):
        fitted = KMeans(5, epsilon=1, bounds=bounds).fit(X)
        assert np.isfinite(fitted.cluster_centers_).all()
        assert len(fitted.predict(strange)) == 3


@pytest.mark.parametrize("wrong", [{"bounds": None}, {"n_clusters": 0}, {"n_clusters": 1001}, {"epsilon": -1}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        KMeans(**{"epsilon": 1, "bounds": (0, 1), **wrong}).fit(np.zeros((3, 2)))


def test_a_fit_through_the_curator_is_one_charge():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.integers(0, 2, 3000) * 8.0 + 1, "z": rng.random(3000)})
    columns = {"x": sf.Real(0, 10), "z": sf.Real(0, 1)}
    with sf.protect(frame, name="t", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=10)) as curator:
        fitted = KMeans(2, epsilon=4).fit(dataset=curator, features=["x", "z"])
        assert curator.budget.spent.epsilon == 4
        assert sum(entry.loss is not None for entry in curator.ledger().entries()) == 1
    assert fitted.n_iter_ > 0
    np.testing.assert_allclose(np.sort(fitted.cluster_centers_[:, 0]), [1, 9], atol=0.5)
