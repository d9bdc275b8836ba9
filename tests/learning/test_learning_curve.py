"""The learning curve against epsilon, its plot, and the progress bar of long fits."""

import io
import sys
import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import sfumato as sf
from sfumato.learning.fit_progress import follow_steps


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
    for stream, pause, drawn in ((io.StringIO(), 0.7, False), (Terminal(), 0.0, False), (Terminal(), 0.7, True)):
        monkeypatch.setattr(sys, "stderr", stream)
        assert [step for step in follow_steps("Fitting", range(2), 2) if time.sleep(pause) is None] == [0, 1]
        assert ("Fitting" in stream.getvalue()) is drawn
