"""The learning curve against epsilon, its plot, and the progress bar of long fits."""

import io
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import sfumato as sf
from sfumato.learning import fit_progress
from sfumato.learning.fit_progress import FitProgress, draw_bar


def make_rows(rows):
    draw = np.random.default_rng(1)
    X = draw.uniform(-1, 1, (rows, 2))
    return X, (X[:, 0] + 0.2 * draw.normal(size=rows) > 0).astype(int)


def test_more_epsilon_gives_better_scores():
    X, y = make_rows(3_000)
    model = sf.learning.LogisticRegression(1, bounds=(-1, 1), classes=[0, 1])
    curve = sf.learning.measure_learning_curve(
        model, X[:1500], y[:1500], X[1500:], y[1500:], epsilons=["10", "0.001"], repeats=4, ceiling=0.95
    )
    assert curve.epsilons == (0.001, 10.0)
    assert [len(found) for found in curve.scores] == [4, 4]
    assert curve.means[1] > curve.means[0]
    assert curve.means[1] > 0.85
    drawn = curve.plot("accuracy").svg()
    assert "LogisticRegression: accuracy" in drawn
    assert "not private" in drawn
    assert model.epsilon == 1
    assert not hasattr(model, "coef_")


def test_a_score_of_your_own_and_wrong_arguments():
    X, y = make_rows(200)
    model = sf.learning.GaussianNB(1, bounds=(-1, 1), classes=[0, 1])
    curve = sf.learning.measure_learning_curve(model, X, y, X, y, epsilons=[1], repeats=1, score=lambda *_: 7)
    assert curve.scores == ((7.0,),)
    assert curve.plot().svg()
    for wrong in ({"epsilons": []}, {"epsilons": [0]}, {"repeats": 0}):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.learning.measure_learning_curve(model, X, y, X, y, **wrong)
    with pytest.raises(sf.errors.InvalidParameter, match="epsilon"):
        sf.learning.measure_learning_curve(LogisticRegression(), X, y, X, y)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_appears_only_for_long_fits_on_a_terminal(monkeypatch):
    for stream, pause, drawn in ((io.StringIO(), 1.4, False), (Terminal(), 0.0, False), (Terminal(), 1.4, True)):
        monkeypatch.setattr(sys, "stderr", stream)
        with draw_bar("Fitting", FitProgress()):
            time.sleep(pause)
        assert ("Fitting" in stream.getvalue()) is drawn


@pytest.mark.parametrize("through", ["arrays", "curator"])
@pytest.mark.parametrize(
    "model",
    [
        sf.learning.RandomForestClassifier(1, n_estimators=2),
        sf.learning.KMeans(2, epsilon=1),
        sf.learning.BoostedAdditiveClassifier(1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_fit_has_a_bar_on_a_terminal(model, through, monkeypatch):
    """The bar begins at once here. Its thread ends with the fit."""
    stream = Terminal()
    monkeypatch.setattr(fit_progress, "PATIENCE", -1e6)
    monkeypatch.setattr(sys, "stderr", stream)
    target = {} if isinstance(model, sf.learning.KMeans) else {"target": "t"}
    frame = pd.DataFrame({"a": [0.2, 0.7] * 50, "t": [False, True] * 50})
    if through == "arrays":
        clone(model).set_params(bounds=(0, 1)).fit(frame[["a"]], *(frame[name] for name in target.values()))
    else:
        columns = {"a": sf.Real(0, 1), "t": sf.Boolean()}
        with sf.protect(frame, name="p", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=1)) as curator:
            clone(model).fit(dataset=curator, features=["a"], **target)
    assert "Fitting" in stream.getvalue()
    assert fit_progress._ONE_BAR.acquire(blocking=False)
    fit_progress._ONE_BAR.release()
