"""Checks of the columns and grids that a learner is made with. They are declared, and never taken from the data."""

import math
from collections.abc import Sequence
from itertools import pairwise

from sfumato.errors import InvalidParameter, describe_kind

MOST_FEATURES = 1_000
MOST_VALUES = 100_000


def check_names(features: Sequence[str], target: str) -> tuple[str, ...]:
    """The names of features: at least one, each once, and without the target."""
    if isinstance(features, str) or not isinstance(features, Sequence) or not features:
        raise InvalidParameter("features", "must be a list of columns, at least one", describe_kind(features))
    if not all(isinstance(name, str) for name in (*features, target)):
        raise InvalidParameter("features and target", "must be names of columns", "something else")
    names = [name.casefold() for name in (*features, target)]
    if len(set(names)) != len(names) or len(names) > MOST_FEATURES:
        rule = f"must be different columns, at most {MOST_FEATURES}"
        raise InvalidParameter("features and target", rule, "one of them twice, or more")
    return tuple(features)


def check_grid(grid: Sequence[float], least: int = 2) -> tuple[float, ...]:
    """The thresholds that a rule may use: finite numbers, in increasing order."""
    if isinstance(grid, str) or not isinstance(grid, Sequence):
        raise InvalidParameter("grid", "must be a list of numbers", describe_kind(grid))
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in grid)
    if not numbers or not all(math.isfinite(value) for value in grid):
        raise InvalidParameter("grid", "must have finite numbers only", "something else")
    values = tuple(float(value) for value in grid)
    if any(one >= two for one, two in pairwise(values)):
        raise InvalidParameter("grid", "must be in increasing order, each value once", "another order")
    if not least <= len(values) <= MOST_VALUES:
        raise InvalidParameter("grid", f"must have from {least} to {MOST_VALUES:,} values", "another number of them")
    return values
