"""The ends of an interval that inverts a test: it contains the numbers whose residual is within a margin."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.answers.noise_laws import Floats

Truths = npt.NDArray[np.bool_]
STEPS = 12
CLOSE = 1e-10  # relative change at which the iteration stops
HALVINGS = 44
DOUBLINGS = 40


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A number `at` is accepted if slope * |at - best| <= margin(at) + spare.

    `margin` is convex, so either all numbers beyond a rejected one are rejected, or the limit is accepted. In the
    second case the interval ends at the limit. `steepest` is the slope of the margin at infinity, for infinite limits.
    """

    best: Floats
    slope: Floats  # >= 0
    spare: Floats
    margin: Callable[[Floats], Floats]
    steepest: float

    def accepts(self, at: Floats) -> Truths:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.slope * np.abs(at - self.best) <= self.margin(at) + self.spare)


def find_last_accepted(test: Acceptance, limit: Floats, sign: float) -> Floats:
    """Find the last accepted number between `best` and a limit on one side of it."""
    infinite = np.isinf(limit)
    near_limit = np.where(infinite, test.best, limit)
    endless = np.where(infinite, test.slope <= test.steepest, test.accepts(near_limit))
    found, settled = _iterate_distance(test, sign)
    inside = sign * (np.where(infinite, np.inf, near_limit) - found) >= 0
    if bool((endless | (settled & inside)).all()):
        return np.where(endless, limit, found)
    out = np.where(infinite, _find_rejected(test, sign), near_limit)
    endless = endless | test.accepts(out)
    return np.where(endless, limit, np.where(settled & inside, found, _bisect_end(test, out)))


def _iterate_distance(test: Acceptance, sign: float) -> tuple[Floats, Truths]:
    """Iterate distance = margin(distance) to a fixed point. It takes few steps if the noise is small."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        distance = np.maximum(test.margin(test.best) + test.spare, 0) / test.slope
        for _ in range(STEPS):
            before = distance
            distance = np.maximum(test.margin(test.best + sign * before) + test.spare, 0) / test.slope
            settled = np.asarray(np.abs(distance - before) <= CLOSE * distance)
            if bool(settled.all()):
                break
    return np.where(settled, test.best + sign * distance, test.best), settled


def _find_rejected(test: Acceptance, sign: float) -> Floats:
    """Find a number that is rejected, by doubling the distance."""
    distance = np.maximum(test.margin(test.best), np.abs(test.best)) + 1e-300
    for _ in range(DOUBLINGS):
        distance = np.where(test.accepts(test.best + sign * distance), 2 * distance, distance)
    return np.asarray(test.best + sign * distance)


def _bisect_end(test: Acceptance, out: Floats) -> Floats:
    inside = test.best
    for _ in range(HALVINGS):
        middle = (inside + out) / 2
        met = test.accepts(middle)
        inside, out = np.where(met, middle, inside), np.where(met, out, middle)
    return out
