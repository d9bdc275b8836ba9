"""The scores of rows under a fitted additive model, and the chances of classes that follow from them."""

from typing import Any

import numpy as np

from sfumato.learning.additive_model import AdditiveModel
from sfumato.learning.estimator_arguments import read_rows
from sfumato.learning.row_cells import Floats
from sfumato.learning.row_functions import apply_logistic, compute_score


def score_rows(estimator: Any, X: object) -> Floats:  # noqa: ANN401, N803 - any estimator with a model
    """The scores of each row: rows x scores."""
    rows = read_rows(estimator, X)
    model: AdditiveModel = estimator._model
    return np.stack([compute_score(model.score(number), rows) for number in range(len(model.intercepts))], axis=1)


def find_chances(scores: Floats, classes: int, *, joint: bool = False) -> Floats:
    """P(class | row), one column for each class. Joint scores are compared with each other, others with the rest."""
    if joint:
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Floats = raised / raised.sum(axis=1, keepdims=True)
        return shares
    chances = apply_logistic(scores)
    if classes == 1:
        return np.ones_like(chances)
    if classes == 2:
        return np.hstack([1 - chances, chances])
    shares = chances / chances.sum(axis=1, keepdims=True)
    return shares
