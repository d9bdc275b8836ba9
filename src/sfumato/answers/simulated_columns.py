"""The columns of an answer, simulated: the released values less imitated noise, drawn anew for each row.

Windows combine rows, and the noise of different rows is independent. So each row gets its own order of the draws.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.answers.output_values import Floats, Objects, evaluate
from sfumato.answers.released_values import Reading, compute_aggregate
from sfumato.answers.simulated_noise import imitate_noises
from sfumato.kernel.certify import BinChoice
from sfumato.planning.formulas import ChoiceFormula, Formula
from sfumato.query.query import Post

MOST_VALUES = 1 << 22  # simulated values of one vector
# splitmix64, which mixes the bits of a number
STEP, FIRST, SECOND = (np.uint64(one) for one in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def simulate_columns(  # noqa: PLR0917 - its caller names what it passes
    reading: Reading, formulas: Sequence[Formula], columns: Sequence[tuple[str, Post]], keys: Sequence[Objects],
    rows: int, times: int,
) -> dict[str, npt.NDArray[Any]]:  # fmt: skip
    """The simulated values of the numeric columns: for each, an array of rows by draws. Empty: too many rows."""
    if rows * times > MOST_VALUES:
        return {}
    noisy = [vector for vector in reading.measured if not isinstance(vector.noise, BinChoice)]
    draws = imitate_noises([vector.noise for vector in noisy if not isinstance(vector.noise, BinChoice)], times)
    drawn: dict[str, Floats] = {}
    for number, (vector, noise) in enumerate(zip(noisy, draws, strict=True)):
        drawn_for = rows if vector.mixing is None else vector.mixing.shape[1]
        shuffled = noise[_order_draws(number * rows, drawn_for, times)]
        if vector.mixing is not None:  # the rows share noise
            shuffled = vector.mixing @ shuffled
        drawn[vector.name] = vector.values[:, None] - shuffled * vector.step
    aggregates = [
        None if isinstance(formula, ChoiceFormula) else compute_aggregate(formula, drawn) for formula in formulas
    ]
    found: dict[str, npt.NDArray[Any]] = {}
    here = [key[:, None] for key in keys]
    for name, post in columns:
        try:
            values = evaluate(post, aggregates, here)  # type: ignore[arg-type]  # a choice is not simulated
            found[name] = np.broadcast_to(np.asarray(values, np.float64), (rows, times))
        except (TypeError, ValueError, AttributeError):
            continue  # a text, a date or a choice
    return found


def _order_draws(first: int, rows: int, times: int) -> npt.NDArray[np.int64]:
    """A different order of the draws for each row, always the same: it is no noise of a release."""
    with np.errstate(over="ignore"):
        mixed = (np.arange(times, dtype=np.uint64)[None, :] + np.uint64(1)) * STEP
        mixed = mixed + (np.arange(first, first + rows, dtype=np.uint64)[:, None] + np.uint64(1)) * FIRST
        mixed = (mixed ^ (mixed >> np.uint64(30))) * FIRST
        mixed = (mixed ^ (mixed >> np.uint64(27))) * SECOND
    return np.argsort(mixed ^ (mixed >> np.uint64(31)), axis=1)
