"""Principal components: what they ask for, what they find, hostile rows, and one charge through the curator."""

import numpy as np
import pandas as pd
import pytest
from exact_sources import ExactSource, find_largest_move, read_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.learning.column_spreads import measure_spreads
from sfumato.learning.principal_components import PCA, SPREAD_SHARE, measure_covariances

NUMBER = st.one_of(st.floats(), st.integers(-3, 12).map(float))
ROW = st.tuples(NUMBER, NUMBER, NUMBER)


def read(rows):
    return read_rows(np.array(rows, float).reshape(len(rows), 3), None, ([0, 0, -5], [10, 1, 5]), None)


def run(rows, noise, half=(5.0, 0.5, 5.0)):
    source = ExactSource(read(rows), noise)
    return source, measure_covariances(source, measure_spreads(source, SPREAD_SHARE), np.array(half))


@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, max_size=8), ROW, st.sampled_from([1e-9, 1.0]))
def test_one_row_moves_each_statistic_by_one(rows, row, noise):
    source, _ = run([*rows, row], noise)
    assert find_largest_move(source, read(rows)) <= 1 + 1e-12
    assert sum(source.shares) == 1


def test_two_rows_move_a_statistic_by_two():
    """Negative control of the test above."""
    row = (10.0, 1.0, 5.0)
    source, _ = run([row, row], 1e-9)
    assert find_largest_move(source, read([])) == pytest.approx(2)


def make_rows(rows):
    rng = np.random.default_rng(6)
    common = rng.normal(0, 1, rows)
    return np.column_stack([5 + common, 0.5 + 0.05 * rng.normal(0, 1, rows), common + 0.5 * rng.normal(0, 1, rows)])


def test_without_noise_the_covariances_are_those_of_the_rows():
    X = make_rows(4000).clip([0, 0, -5], [10, 1, 5])
    _, covariances = run(X.tolist(), 1e-9)
    half = np.array([5.0, 0.5, 5.0])
    np.testing.assert_allclose(covariances, np.cov((X / half).T, bias=True), atol=0.003)


def test_with_much_noise_one_pair_of_the_widest_columns_is_measured():
    source, _ = run(make_rows(200).tolist(), 100.0)
    assert [statistic.value.columns for statistic in source.asked[3:]] == [(0, 2)]


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_the_components_are_found(delta, neighbours):
    X = make_rows(20_000)
    fitted = PCA(2, epsilon=5, delta=delta, bounds=([0, 0, -5], [10, 1, 5]), neighbours=neighbours).fit(X)
    exact = np.linalg.eigh(np.cov(X.T))
    assert abs(fitted.components_[0] @ exact.eigenvectors[:, -1]) > 0.98
    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(fitted.explained_variance_[0], exact.eigenvalues[-1], rtol=0.1)
    np.testing.assert_allclose(fitted.mean_, X.mean(axis=0), atol=0.1)
    assert 0.8 < fitted.explained_variance_ratio_.sum() <= 1
    whole = PCA(epsilon=5, bounds=([0, 0, -5], [10, 1, 5])).fit(X)
    back = whole.inverse_transform(whole.transform(X))
    np.testing.assert_allclose(back, X.clip([0, 0, -5], [10, 1, 5]), atol=1e-9)


def test_hostile_rows_cause_no_error():
    strange = np.array([[np.nan, np.inf], [-np.inf, 1e300], [0.0, 0.0]])
    for X, bounds in ((strange, (0, 1)), (strange[:0], (0, 1)), (strange, ([0, 3], [0, 3]))):
        fitted = PCA(epsilon=1, bounds=bounds).fit(X)
        assert np.isfinite(fitted.components_).all()
        assert np.isfinite(fitted.transform(strange)).all()
    assert PCA(epsilon=1, bounds=(0, 1)).fit(strange[:, :1]).components_.tolist() == [[1.0]]


@pytest.mark.parametrize("wrong", [{"bounds": None}, {"n_components": 0}, {"n_components": 3}, {"epsilon": -1}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        PCA(**{"epsilon": 1, "bounds": (0, 1), **wrong}).fit(np.zeros((3, 2)))


def test_a_fit_through_the_curator_is_one_charge():
    frame = pd.DataFrame(make_rows(5000), columns=["a", "b", "c"])
    columns = {"a": sf.Real(0, 10), "b": sf.Real(0, 1), "c": sf.Real(-5, 5)}
    with sf.protect(frame, name="t", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=10)) as curator:
        fitted = PCA(1, epsilon=4).fit(dataset=curator, features=["a", "b", "c"])
        assert curator.budget.spent.epsilon == 4
        assert sum(entry.loss is not None for entry in curator.ledger().entries()) == 1
    assert fitted.get_feature_names_out().tolist() == ["pca0"]
    assert abs(fitted.components_[0] @ [0.66, 0, 0.75]) > 0.9
