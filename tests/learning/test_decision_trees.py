"""Trees and forests: what they ask for, what they learn, hostile rows, and one charge through the curator."""

import numpy as np
import pandas as pd
import pytest
from exact_sources import ExactSource, find_largest_move, read_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.learning import noisy_trees
from sfumato.learning.decision_trees import DecisionTreeClassifier, RandomForestClassifier
from sfumato.learning.feature_columns import Classes
from sfumato.learning.noisy_statistics import Noisy
from sfumato.learning.noisy_trees import TreeSettings, grow_trees, predict_shares, smooth_leaves
from sfumato.learning.public_choices import PublicChoices
from sfumato.learning.row_cells import Below, Bins, Codes, OneOf
from sfumato.learning.tree_tests import choose_tests, cut_feature, draw_tests, write_cells

BOTH = (DecisionTreeClassifier, RandomForestClassifier)
LABELS = Classes("y", ("no", "yes"))
NUMBER = st.one_of(st.floats(), st.integers(-3, 12).map(float))
ROW = st.tuples(NUMBER, NUMBER, st.sampled_from(["a", "b", "c", "z", None]), st.sampled_from(["no", "yes", "?"]))


def read(rows):
    table = np.array([list(row[:3]) for row in rows], object).reshape(len(rows), 3)
    return read_rows(table, np.array([row[3] for row in rows], object), (0, 10), LABELS, {2: ["a", "b", "c"]})


@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, max_size=12), ROW, st.sampled_from([1e-6, 1.0]), st.booleans())
def test_one_row_moves_each_statistic_by_one(rows, row, noise, forest):
    """Whatever the tests are: chosen from counts (little noise) or at random. The shares add up to the whole price."""
    source = ExactSource(read([*rows, row]), noise)
    grow_trees(source, TreeSettings(4, 5, 8, random_tests=forest), PublicChoices(1))
    assert find_largest_move(source, read(rows)) <= 1
    assert sum(source.shares) == 1


def test_two_rows_move_a_statistic_by_two():
    """Negative control of the test above."""
    row = (1.0, 1.0, "a", "yes")
    source = ExactSource(read([row, row]))
    grow_trees(source, TreeSettings(4, 5, 8, random_tests=True), PublicChoices(1))
    assert find_largest_move(source, read([])) == 2


def test_the_best_cut_is_chosen_first_and_then_what_it_leaves():
    """x below 3 is class 0, x from 3 to 6 is class 1, and above it is class 0 again; z says nothing."""
    edges = tuple(float(edge) for edge in range(1, 10))
    x = np.zeros((10, 2))
    x[:3, 0], x[3:6, 1], x[6:, 0] = 1000, 1000, 1000
    z = np.full((10, 2), 500.0)
    columns = [cut_feature(Bins(0, edges), noisy(x)), cut_feature(Bins(1, edges), noisy(z))]
    tests = choose_tests(columns, 4, None)
    assert set(tests) == {Below(0, 3.0), Below(0, 6.0)}


def test_categories_are_cut_by_their_classes():
    counts = np.array([[900.0, 100], [100, 900], [880, 120], [90, 910]])
    (test,) = choose_tests([cut_feature(Codes(0), noisy(counts))], 1, None)
    assert test in (OneOf(0, (0, 2)), OneOf(0, (1, 3)))


def noisy(sums):
    return Noisy(np.asarray(sums), np.array(1.0), False)


def test_noise_alone_gives_no_test():
    rng = np.random.default_rng(0)
    columns = [
        cut_feature(
            Bins(place, tuple(map(float, range(1, 10)))), Noisy(rng.laplace(0, 100, (10, 3)), np.array(141.0), False)
        )
        for place in range(20)
    ]
    assert len(choose_tests(columns, 8, None)) <= 1


def test_random_tests_need_no_data():
    features = read([]).features
    assert draw_tests(features, 5, PublicChoices(3)) == draw_tests(features, 5, PublicChoices(3))
    assert draw_tests(features, 5, PublicChoices(3)) != draw_tests(features, 5, PublicChoices(4))


def test_a_leaf_in_the_noise_takes_the_shares_above_it():
    sums = np.array([[1000.0, 0.0], [3.0, 0.0]])
    strong, weak = smooth_leaves(Noisy(sums, np.array(0.01), False)), smooth_leaves(Noisy(sums, np.array(100.0), False))
    assert strong[1, 0] > 0.85
    assert abs(weak[1, 0] - weak[0, 0]) < 0.25
    np.testing.assert_allclose(weak.sum(axis=1), 1)


def test_a_leaf_whose_shares_are_noise_stays_near_the_node_above():
    """Two leaves: the small one has 50 rows, and each of its counts a noise of 20."""
    sums = np.array([[900.0, 300.0], [10.0, 40.0]])
    loose, near = (smooth_leaves(Noisy(sums, np.array(20.0), False), step) for step in (np.inf, 0.15))
    root = smooth_leaves(Noisy(sums.sum(axis=0), np.array(20.0), False))[0]
    assert loose[1, 1] > 0.5 > near[1, 1]
    assert abs(near[1, 1] - root[1]) < abs(loose[1, 1] - root[1]) / 3
    np.testing.assert_allclose(near[0], loose[0], atol=0.01)  # a leaf that stands out keeps its shares
    clear = [smooth_leaves(Noisy(sums * 100, np.array(20.0), False), step) for step in (np.inf, 0.15)]
    np.testing.assert_allclose(clear[0], clear[1], atol=1e-3)


def test_one_tree_of_chosen_tests_is_careful_and_a_forest_is_not(monkeypatch):
    rows = read([(float(x), float(10 - x), "abc"[x % 3], "yes" if x > 5 else "no") for x in range(10)] * 30)
    steps = []
    monkeypatch.setattr(noisy_trees, "smooth_leaves", lambda noisy, step: steps.append(step) or smooth_leaves(noisy))
    for least, random_tests in ((1, False), (1, True), (10**9, False)):
        grow_trees(ExactSource(rows, 1e-6), TreeSettings(3, 1, least, random_tests=random_tests), PublicChoices(0))
    assert steps == [noisy_trees.USUAL_STEP, np.inf, np.inf]


def test_the_leaves_of_a_tree_are_the_cells_that_were_counted():
    rows = read([(float(x), float(10 - x), "abc"[x % 3], "yes" if x > 5 else "no") for x in range(10)] * 30)
    source = ExactSource(rows, 1e-6)
    (tree,) = grow_trees(source, TreeSettings(6, 1, 1, random_tests=False), PublicChoices(0))
    assert [write_cells(test) for test in tree.tests] == list(source.asked[-1].cells[:-1])
    assert (predict_shares([tree], rows)[:, 1] > 0.5).tolist() == (rows.numbers(0) > 5).tolist()


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_separable_rule_is_learned(model, delta, neighbours):
    rng = np.random.default_rng(5)
    X = rng.random((4000, 3))
    y = np.where(X[:, 1] > 0.4, "yes", "no")
    settings = {"bounds": (0, 1), "classes": ["no", "yes"], "random_state": 0}
    fitted = model(epsilon=5, delta=delta, neighbours=neighbours, **settings).fit(X[:3000], y[:3000])
    assert fitted.score(X[3000:], y[3000:]) > 0.9
    noisy = [model(epsilon="0.0001", **settings).fit(X[:3000], y[:3000]).score(X[3000:], y[3000:]) for _ in range(20)]
    assert np.mean(noisy) < 0.8  # negative control: noise alone is right by luck, at most


@pytest.mark.parametrize("model", BOTH)
def test_hostile_rows_cause_no_error(model):
    settings = {"epsilon": 1, "bounds": (0, 1), "categories": {1: ["a", "b"]}, "classes": ["no", "yes"]}
    strange = np.array([[np.nan, "a"], [np.inf, None], ["text", 3], [1e400, "zz"], [True, "b"]], object)
    for X, y in (
        (strange, np.array(["no", "?", None, 3, "yes"], object)),
        (strange[:0], np.array([], object)),
        (strange, np.array(["no"] * 5, object)),
    ):
        fitted = model(**settings).fit(X, y)
        assert set(fitted.predict(strange)) <= {"no", "yes"}
        assert np.isfinite(fitted.predict_proba(strange)).all()
        assert len(fitted.predict(strange[:0])) == 0


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize(
    "wrong", [{"bounds": None}, {"max_depth": 0}, {"max_depth": 13}, {"epsilon": 0}, {"random_state": "x"}]
)
def test_wrong_settings_are_refused(model, wrong):
    settings = {"epsilon": 1, "bounds": (0, 1), "classes": [0, 1], **wrong}
    with pytest.raises(InvalidParameter):
        model(**settings).fit(np.zeros((3, 2)), np.zeros(3))


@pytest.mark.parametrize("model", BOTH)
def test_a_fit_through_the_curator_is_one_charge(model):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.random(2000), "c": rng.choice(["a", "b", "c"], 2000), "z": rng.integers(0, 9, 2000)})
    frame["t"] = (frame["x"] > 0.4) & (frame["c"] != "b")
    columns = {"x": sf.Real(0, 1), "c": sf.Category(["a", "b", "c"]), "z": sf.Integer(0, 9), "t": sf.Boolean()}
    with sf.protect(frame, name="t", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=10)) as curator:
        fitted = model(epsilon=4, random_state=2).fit(dataset=curator, features=["x", "c", "z"], target="t")
        assert curator.budget.spent.epsilon == 4
        assert sum(entry.loss is not None for entry in curator.ledger().entries()) == 1
    assert fitted.score(frame[["x", "c", "z"]], frame["t"]) > 0.85
    assert list(fitted.feature_names_in_) == ["x", "c", "z"]


def test_the_structure_is_new_in_each_fit_unless_a_seed_is_given():
    """Few rows: the tests are random. They follow from the seed alone, and the noise does not."""
    X, y = np.random.default_rng(3).random((30, 4)), np.array([0, 1] * 15)
    settings = {"epsilon": "0.1", "bounds": (0, 1), "classes": [0, 1]}

    def list_tests(random_state):
        return [DecisionTreeClassifier(**settings, random_state=random_state).fit(X, y).trees_[0] for _ in range(4)]

    assert len({tree.tests[:2] for tree in list_tests(None)}) == 4
    seeded = list_tests(7)
    assert len({tree.tests[:2] for tree in seeded}) == 1  # their number follows from a noisy count
    assert len({tree.shares.tobytes() for tree in seeded}) == 4


def test_a_public_number_of_rows_is_not_measured():
    X, y = np.random.default_rng(3).random((500, 2)), np.array(["no", "yes"] * 250)
    for rows, counted in ((None, 1), (500, 0)):
        source = ExactSource(read_rows(X, y, (0, 1), LABELS), noise=0.1, rows=rows, count_noise=0.1)
        grow_trees(source, TreeSettings(3, 1, 8, random_tests=False), PublicChoices(1))
        assert sum(not statistic.cells for statistic in source.asked) == counted
        assert sum(source.shares) == 1


def test_rows_with_other_columns_are_refused_by_the_name_of_the_estimator():
    fitted = RandomForestClassifier(bounds=(0, 1), classes=[0, 1]).fit([[0.5, 0.5]], [1])
    with pytest.raises(sf.errors.InvalidParameter, match="RandomForestClassifier is expecting 2 features"):
        fitted.predict([[0.5]])
