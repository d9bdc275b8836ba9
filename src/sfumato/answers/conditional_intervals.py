"""Intervals of released numbers, given that they are shown: a threshold or HAVING lets only some of them through."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sfumato.answers.noise_laws import Floats, NoiseLaw

Truths = npt.NDArray[np.bool_]
FAR = 12.0  # standard deviations: a condition that begins to fail beyond them changes no interval
FURTHEST = 30.0  # standard deviations: an end that is beyond them is nowhere
COARSE = 8  # points of each standard deviation at which a condition is tried
HALVINGS = 48


def find_conditional_ends(
    values: Floats, least: Floats, most: Floats, law: NoiseLaw, miss: float
) -> tuple[Floats, Floats]:
    """Intervals of numbers of which it is known that they are shown, since least <= released <= most.

    The set of truths t such that, of all releases of t that are shown, those at least as far from t as this one have
    a probability above `miss`. Given that a number is shown, its interval misses with probability at most `miss`.
    Going away from the released number that probability falls, so the set is an interval, found by halving:
    with Z = the noise, r = |released - t| and D = P(shown), it is, on the low side,
    (P(r <= Z <= most - t) + P(least - t <= Z <= -r)) / D. Both shares fall as t falls: the first since Z is
    log-concave, the second since what leaves its numerator also leaves D. An end may be infinite: Laplace noise has
    no memory, so a number just above `least` does not say how far below the truth is.
    """
    below, above = values - least, most - values
    low = values - _find_reach(below, above, law, miss)
    return low, values + _find_reach(above, below, law, miss)


def _find_reach(behind: Floats, ahead: Floats, law: NoiseLaw, miss: float) -> Floats:
    """How far towards `behind` truths are accepted; infinite if there is no end to it."""
    step = law.step or law.spread * 2.0**-HALVINGS
    far = np.ceil(FURTHEST * law.spread / step)

    def accepted(steps: Floats) -> Truths:
        away = steps * step
        beyond = law.compute_tail_beyond(ahead + away)
        forward = law.compute_tail_from(away) - beyond
        backward = np.where(behind >= 2 * away, law.compute_tail_from(away) - law.compute_tail_beyond(behind - away), 0)
        return np.asarray(
            np.maximum(forward, 0) + np.maximum(backward, 0) > miss * (law.compute_tail_from(away - behind) - beyond)
        )

    near, out = np.zeros_like(behind), np.full_like(behind, far)
    endless = accepted(out)
    while bool((out - near > 1).any()):
        middle = np.floor((near + out) / 2)
        inside = accepted(middle)
        near, out = np.where(inside, middle, near), np.where(inside, out, middle)
    return np.where(endless, np.inf, near * step)


def find_edges(passes: Callable[[Floats], Truths], values: Floats, law: NoiseLaw) -> tuple[Floats, Floats]:
    """The ends of the stretch around each value in which a condition holds; infinite where it is far away.

    `passes` takes candidates, several for each value, and says which would be shown.
    """
    step = law.step
    points = min(np.ceil(FAR * law.spread / step), FAR * COARSE) if step else FAR * COARSE
    fine = step if step and points < FAR * COARSE else law.spread / COARSE
    offsets = np.arange(1, points + 1) * fine
    ends = []
    for sign in (-1.0, 1.0):
        held = passes(values[:, None] + sign * offsets)
        fails = ~held
        any_fails = fails.any(axis=1)
        first = np.where(any_fails, fails.argmax(axis=1), 0)
        inside, outside = first * fine, (first + 1) * fine
        halvings = 0 if fine == step else 20
        for _ in range(halvings):
            middle = (inside + outside) / 2
            met = passes((values + sign * middle)[:, None])[:, 0]
            inside, outside = np.where(met, middle, inside), np.where(met, outside, middle)
        ends.append(np.where(any_fails, values + sign * inside, sign * np.inf))
    return ends[0], ends[1]
