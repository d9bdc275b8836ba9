"""The ends of an interval that comes from inverting a test: a number is accepted if what remains is within a margin."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.answers.noise_laws import Floats

Truths = npt.NDArray[np.bool_]
STEPS = 12
CLOSE = 1e-10  # of the distance
HALVINGS = 44
DOUBLINGS = 40


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A number `at` is accepted if slope * |at - best| <= margin(at) + spare.

    `margin` is convex: beyond a rejected number all are rejected, or the limit is accepted too, and then the interval
    goes to the limit. `steepest` is the margin's slope far out, for limits that are infinite.
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
    """The last accepted number on one side of the best, up to a limit there."""
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
    """Where the distance is what the margin allows, found by trying that distance: a few steps where noise is small."""
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
    """A number so far away that it is rejected, where there is one."""
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
