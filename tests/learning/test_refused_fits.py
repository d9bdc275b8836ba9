"""A fit is refused before it is charged, by what is declared alone: no answer of its own and no row decides it."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.learning.decision_lists import MOST_LISTED
from sfumato.learning.row_conditions import join_conditions

CLASSIFIERS = [
    "BoostedAdditiveClassifier", "CategoricalNB", "DecisionTreeClassifier", "GaussianNB", "LogisticRegression",
    "RandomForestClassifier",
]  # fmt: skip
OTHERS = ["BoostedAdditiveRegressor", "HistogramDensity", "KMeans", "LinearRegression", "PCA"]


def protect(frame, columns, **options):
    return sf.protect(
        frame, name="people", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=10**7, delta="0.1"), **options
    )


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.uniform(0, 1, 300) for name in "ab"} | {"y": rng.integers(0, 2, 300)})
    with protect(frame, {"a": sf.Real(0, 1), "b": sf.Real(0, 1), "y": sf.Integer(0, 1)}) as curator:
        yield curator


def fit_each_way(name, people, **price):
    """The outcome of a fit of the dataset, and of arrays: None, or the refusal. A refused fit costs nothing."""
    rng, outcomes = np.random.default_rng(2), []
    targets = {"y": "y"} if name in CLASSIFIERS or name.endswith(("Regressor", "Regression")) else {}
    columns = {"features": ["a", "b"]} | ({"target": "y"} if targets else {})
    before = people.budget.spent
    try:
        getattr(sf.learning, name)(**price).fit(dataset=people, **columns)
        outcomes.append(None)
    except InvalidParameter as refusal:
        assert people.budget.spent == before
        outcomes.append(str(refusal))
    declared = {"bounds": (0, 1)} | ({"classes": [0, 1]} if name in CLASSIFIERS else {})
    declared |= {"target_bounds": (0, 1)} if targets and name not in CLASSIFIERS else {}
    for rows in (0, 1, 60):
        X, y = rng.uniform(0, 1, (rows, 2)), rng.integers(0, 2, rows)
        try:
            getattr(sf.learning, name)(**price, **declared).fit(X, y if targets else None)
            outcomes.append(None)
        except InvalidParameter as refusal:
            outcomes.append(str(refusal))
    return outcomes


@pytest.mark.parametrize("name", CLASSIFIERS + OTHERS)
@pytest.mark.parametrize(
    "price", [{"epsilon": 3000}, {"epsilon": "1e-13"}, {"epsilon": 3000, "delta": "1e-6"}], ids=str
)
def test_noise_out_of_range_is_refused_for_all_data_or_for_none(name, price, people):
    assert len(set(fit_each_way(name, people, **price))) == 1


def test_the_outcomes_above_are_both_possible(people):
    """Negative control."""
    assert fit_each_way("DecisionTreeClassifier", people, epsilon=3000)[0] is not None
    assert fit_each_way("DecisionTreeClassifier", people, epsilon=300) == [None] * 4


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if not name.endswith("NB")])
def test_too_many_cells_are_refused_before_the_charge(name):
    values = [f"v{number}" for number in range(9000)]
    frame = pd.DataFrame({"c": values[:50], "y": range(50)})
    model = getattr(sf.learning, name)(epsilon=1, classes=list(range(120)))
    with protect(frame, {"c": sf.Category(values), "y": sf.Integer(0, 119)}) as curator:
        with pytest.raises(InvalidParameter, match="at most 1,000,000"):
            model.fit(dataset=curator, features=["c"], target="y")
        assert curator.budget.spent.epsilon == 0
    model.categories = [values]
    with pytest.raises(InvalidParameter, match="at most 1,000,000"):
        model.fit(frame[["c"]], frame["y"])


@pytest.mark.parametrize(
    ("name", "method"), [("KMeans", "fit_predict"), ("KMeans", "fit_transform"), ("PCA", "fit_transform")]
)
def test_methods_that_return_rows_are_refused_for_a_dataset(name, method, people):
    before = people.budget.spent
    with pytest.raises(InvalidParameter, match="fit\\(dataset"):
        getattr(getattr(sf.learning, name)(), method)(None, dataset=people, features=["a", "b"])
    assert people.budget.spent == before


@pytest.mark.parametrize("name", ["GaussianNB", "LinearRegression", "KMeans"])
def test_a_dataset_in_the_place_of_rows_is_refused_with_a_hint(name, people):
    """No score of a protected dataset is offered: it would have no noise."""
    declared = {"target_bounds": (0, 1)} if name == "LinearRegression" else {}
    model = getattr(sf.learning, name)(bounds=(0, 1), **declared)
    with pytest.raises(InvalidParameter, match="dataset="):
        model.fit(people, "y")
    model.fit(np.zeros((9, 2)), np.zeros(9, bool))
    with pytest.raises(InvalidParameter, match="rows of your own"):
        model.score(people, "y")


def test_the_longest_query_of_a_decision_list_can_be_asked():
    names = [f"x{number}" for number in range(MOST_LISTED)]
    frame = pd.DataFrame(np.zeros((3, MOST_LISTED + 1), int), columns=[*names, "y"])
    learner = sf.learning.DecisionList(tuple(names), "y")
    with protect(frame, {name: sf.Integer(0, 1) for name in frame}) as curator:
        label, *conditions = learner.read_conditions(curator, "people")
        twice = [condition.negate().negate() for condition in (*conditions, label)]
        curator.statistical_queries(1, 1).mean(join_conditions(twice))
    with pytest.raises(InvalidParameter, match=f"at most {MOST_LISTED}"):
        sf.learning.DecisionList((*names, "z"), "y")
