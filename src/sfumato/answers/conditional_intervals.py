"""Confidence intervals of released numbers, given that they are shown: a threshold or HAVING drops the others."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sfumato.answers.noise_laws import Floats, NoiseLaw

Truths = npt.NDArray[np.bool_]
FAR = 12.0  # standard deviations: a condition that fails only beyond this distance changes no interval
FURTHEST = 30.0  # standard deviations: an end beyond this distance counts as infinite
COARSE = 8  # points per standard deviation at which a condition is evaluated
HALVINGS = 48


def find_conditional_ends(
    values: Floats, least: Floats, most: Floats, law: NoiseLaw, miss: float
) -> tuple[Floats, Floats]:
    """Find the intervals of numbers that are shown only if least <= released <= most.

    The interval contains each true value t that passes this test: given that t's release is shown, a release at least
    as far from t as this one has a probability above `miss`. So, given that a number is shown, its interval misses
    with a probability of at most `miss`. Let Z be the noise, r = |released - t| and D = P(shown). On the low side the
    probability is (P(r <= Z <= most - t) + P(least - t <= Z <= -r)) / D. Both terms fall as t falls: the first because
    Z is log-concave, the second because its numerator loses only what D loses too. So the set is an interval, and
    bisection finds its ends. An end may be infinite: Laplace noise is memoryless, so a number just above `least` gives
    no lower limit for the true value.
    """
    below, above = values - least, most - values
    low = values - _find_reach(below, above, law, miss)
    return low, values + _find_reach(above, below, law, miss)


def _find_reach(behind: Floats, ahead: Floats, law: NoiseLaw, miss: float) -> Floats:
    """The distance up to which true values on the side of `behind` are accepted; infinite if all are."""
    step = law.step or law.spread * 2.0**-HALVINGS
    far = np.ceil(FURTHEST * law.spread / step)

    def accepts(steps: Floats) -> Truths:
        away = steps * step
        beyond = law.compute_tail_beyond(ahead + away)
        forward = law.compute_tail_from(away) - beyond
        backward = np.where(behind >= 2 * away, law.compute_tail_from(away) - law.compute_tail_beyond(behind - away), 0)
        return np.asarray(
            np.maximum(forward, 0) + np.maximum(backward, 0) > miss * (law.compute_tail_from(away - behind) - beyond)
        )

    near, out = np.zeros_like(behind), np.full_like(behind, far)
    endless = accepts(out)
    while bool((out - near > 1).any()):
        middle = np.floor((near + out) / 2)
        inside = accepts(middle)
        near, out = np.where(inside, middle, near), np.where(inside, out, middle)
    return np.where(endless, np.inf, near * step)


def find_edges(passes: Callable[[Floats], Truths], values: Floats, law: NoiseLaw) -> tuple[Floats, Floats]:
    """Find the range around each value in which a condition holds; an end that is far away is infinite.

    `passes` takes several candidates per value and returns which of them would be shown.
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
