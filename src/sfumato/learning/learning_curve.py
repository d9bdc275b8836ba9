"""The score of an estimator against epsilon, for experiments on public or made-up data.

The scores are computed on the test rows without noise, and each fit has a loss of its own. Neither is safe to publish
for private data: use public data that resembles it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Band, Dots, Line, Mark, Panel, Rule
from sfumato.errors import InvalidParameter, describe_kind
from sfumato.learning.fit_progress import FitProgress, draw_bar
from sfumato.number_arguments import Number, read_privacy_amount, read_whole_number

MARGIN = 1.15  # on both sides of the axis of epsilon


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """The scores of several fits at each epsilon. `ceiling` is the score of a model that is not private, if known."""

    name: str
    epsilons: tuple[float, ...]
    scores: tuple[tuple[float, ...], ...]  # the scores of the fits at each epsilon
    ceiling: float | None = None

    @property
    def means(self) -> tuple[float, ...]:
        """The mean score at each epsilon."""
        return tuple(float(np.mean(found)) for found in self.scores)

    def plot(self, label: str = "score") -> Figure:
        """The mean score with a band from the worst to the best fit, and every fit as a dot."""
        rows = list(zip(self.epsilons, self.scores, self.means, strict=True))
        marks: list[Mark] = [
            Band(tuple((epsilon, min(found), max(found)) for epsilon, found, _ in rows), "protected", "all fits"),
            Line(tuple((epsilon, mean) for epsilon, _, mean in rows), "protected", "mean"),
            Dots(tuple((epsilon, result) for epsilon, found, _ in rows for result in found), "protected", size=2.0),
        ]
        every = [result for found in self.scores for result in found]
        if self.ceiling is not None:
            marks.append(Rule("limit", y=self.ceiling, text="not private"))
            every.append(self.ceiling)
        room = (max(every) - min(every)) * 0.12 or 0.05
        low, high = self.epsilons[0] / MARGIN, self.epsilons[-1] * MARGIN
        ticks = tuple((epsilon, f"{epsilon:g}") for epsilon in self.epsilons)
        across = Axis("ε", low, high, ticks, log=True)
        said = ", ".join(f"{mean:.3f} at ε = {epsilon:g}" for epsilon, _, mean in rows)
        panel = Panel(
            f"{self.name}: {label} against ε",
            f"Mean {label}: {said}.",
            across,
            Axis(label, min(every) - room, max(every) + room),
            tuple(marks),
        )
        caption = f"{len(self.scores[0])} fits at each ε. The scores have no noise: for public data only."
        return Figure(panel.title, (panel,), caption)


def measure_learning_curve(
    estimator: Any,  # noqa: ANN401 - any estimator with epsilon
    X: object,  # noqa: N803 - scikit-learn's name
    y: object,
    X_test: object,  # noqa: N803
    y_test: object,
    *,
    epsilons: Sequence[Number] = ("0.1", "0.3", "1", "3", "10"),
    repeats: int = 5,
    score: Callable[[Any, Any, Any], float] | None = None,
    ceiling: float | None = None,
) -> LearningCurve:
    """Fit copies of an estimator at each epsilon, and score them on test rows.

    `score(model, X_test, y_test)` defaults to the model's own `score`. The test rows are read without noise: use public
    or made-up data.
    """
    if "epsilon" not in estimator.get_params():
        rule = "must be an estimator with the parameter epsilon"
        raise InvalidParameter("estimator", rule, describe_kind(estimator))
    amounts = sorted({read_privacy_amount(epsilon, "epsilons") for epsilon in epsilons})
    if not amounts:
        raise InvalidParameter("epsilons", "must have a number at least", "none")
    fits = read_whole_number(repeats, "repeats", 1)
    found: list[list[float]] = [[] for _ in amounts]
    progress = FitProgress()
    with draw_bar("Learning curve", progress):
        for amount, scores in zip(amounts, found, strict=True):
            for _ in range(fits):
                model = clone(estimator).set_params(epsilon=amount).fit(X, y)
                reached = model.score(X_test, y_test) if score is None else score(model, X_test, y_test)
                scores.append(float(reached))
                progress.done += 1 / (len(amounts) * fits)
    return LearningCurve(
        type(estimator).__name__, tuple(map(float, amounts)), tuple(tuple(scores) for scores in found), ceiling
    )
