"""The margins of running totals and other sums over released rows, before release. No data is read.

The released columns are simulated around zero, as the answer's intervals are simulated around the released values.
"""

from fractions import Fraction
from itertools import product

import numpy as np

from sfumato.answers.finished_answer import SIMULATED
from sfumato.answers.released_values import MOST_SIMULATED, OFTEN, Reading, find_strategies, split_parts, unmix
from sfumato.answers.simulated_columns import simulate_columns
from sfumato.answers.window_intervals import find_window_ends
from sfumato.kernel.certify import BinChoice, Certificate
from sfumato.planning.planner import Planned
from sfumato.query.query import KeyRef, Query

FEWEST = 4_000  # simulated draws
MOST_ROWS = 1 << 10


def find_window_margins(
    query: Query, planned: Planned, certificate: Certificate, confidence: Fraction
) -> dict[str, float]:
    """The widest margin of each column that adds up released rows along keys; other columns are left out."""
    finish, cells = query.finish, certificate.cells
    selected = query.having is not None or query.limit is not None or query.offset or query.beside
    if finish is None or not finish.keeps_rows or selected or cells is None or not 1 < cells <= MOST_ROWS:
        return {}
    if any(isinstance(certified.noise, BinChoice) for certified in certificate.measurements):
        return {}
    strategies = find_strategies(certificate)
    vectors = [
        unmix(vector, strategies.get(certified.name))
        for certified in certificate.measurements
        for vector in split_parts(certified, np.zeros(cells * certified.width))
    ]
    values = list(product(*(key.values or () for key in query.keys)))
    keys = [np.array([*(row[place] for row in values), None], object)[:-1] for place in range(len(query.keys))]
    miss = float(1 - confidence) * SIMULATED / (cells if query.together else 1)
    times = min(max(FEWEST, int(OFTEN / miss)), MOST_SIMULATED)
    noisy = [(name, post) for name, post in query.columns if not isinstance(post, KeyRef)]
    simulated = simulate_columns(Reading(tuple(vectors)), planned.formulas, noisy, keys, cells, times)
    if not simulated:
        return {}
    rows = [
        {name: row[post.index] if isinstance(post, KeyRef) else 0.0 for name, post in query.columns} for row in values
    ]
    names = [name for name, post in query.columns if isinstance(post, KeyRef)]
    ends = find_window_ends(finish, rows, simulated, names, miss)
    return {name: float((high - low).max() / 2) for name, (low, high) in ends.items()}
