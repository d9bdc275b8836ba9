"""Tolerances of statistical queries: how far K noisy averages are from the data's, and from the distribution's."""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from sfumato.accuracy.noise_margins import compute_laplace_margin, find_miss_per_coordinate
from sfumato.kernel.exact import enclose_log

PSI_BITS = 24  # every query is measured on a grid of 2**-24
ROUNDING = Fraction(1, 1 << (PSI_BITS + 1)) + Fraction(1, 1 << 53)  # to the grid, and of the answer to a double
SPLITS = tuple(Fraction(part, 64) for part in (1, 2, 4, 8, 16, 32, 48))  # of beta, for the noise; the rest is sampling
MOST_ROWS = 1 << 38  # sums of more rows do not fit 64 bits on the grid
_BITS = 96


@dataclass(frozen=True, slots=True)
class QueryNoise:
    """K statistical queries: one query's share of epsilon, and the count's share if the number of rows is private."""

    k: int
    share: Fraction
    count_share: Fraction | None = None


@dataclass(frozen=True, slots=True)
class QueryTargets:
    """How many functions the tolerance covers (K, or the size of a declared class), and with which probability."""

    functions: int
    beta: Fraction


def bound_noise(noise: QueryNoise, rows: int, miss: Fraction) -> Fraction:
    """A bound on the distance of all K answers from the data's averages. It holds for queries chosen adaptively.

    Claim: K-55. With probability at least 1 - miss, all K answers are within it. The number of rows is public.
    Requires: rows >= 1 and 0 < miss < 1 (caller).
    Relies on: K-11.
    Checked by: tests/learning/test_query_tolerances.py::test_the_noise_bound_is_the_exact_tail
    """
    return min(_sum_margin(noise, miss, noise.k) / rows + ROUNDING, Fraction(1))


def bound_noise_of_ratio(noise: QueryNoise, noisy_rows: int, miss: Fraction) -> Fraction:
    """The same where the number of rows is private, from its noisy count.

    Claim: K-55. With probability at least 1 - miss, all K answers are within it, over the noise of count and sums.
    Requires: noise.count_share is given and 0 < miss < 1 (caller).
    Relies on: K-11.
    Checked by: tests/learning/test_query_tolerances.py::test_the_bound_of_a_ratio_holds_in_the_worst_case
    """
    if noisy_rows <= 0:
        return Fraction(1)
    both = _sum_margin(noise, miss, noise.k + 1) + bound_count(noise, miss)
    return min(both / noisy_rows + ROUNDING, Fraction(1))


def bound_count(noise: QueryNoise, miss: Fraction) -> int:
    """How far the noisy count is from the number of rows, in the event of `bound_noise_of_ratio`.

    Claim: K-55. It is the t0 of the proof.
    Requires: noise.count_share is given and 0 < miss < 1 (caller).
    Relies on: K-11.
    Checked by: tests/learning/test_query_tolerances.py::test_the_bound_of_a_ratio_holds_in_the_worst_case
    """
    return compute_laplace_margin(1 / (noise.count_share or noise.share), find_miss_per_coordinate(miss, noise.k + 1))


def bound_sampling(functions: int, rows: int, miss: Fraction) -> Fraction:
    """A bound on the distance of the data's averages from the distribution's, for all functions of a finite class.

    Claim: K-55. Hoeffding's inequality and a union bound: it fails with probability at most miss; rounded up.
    Requires: the rows are independent draws; functions do not depend on the data; 0 < miss < 1 (caller).
    Relies on: K-01.
    Checked by: tests/learning/test_query_tolerances.py::test_the_sampling_bound_is_hoeffdings
    """
    if rows < 1:
        return Fraction(1)
    _, high = enclose_log(2 * functions / miss, _BITS)
    root = isqrt(-(-(high << _BITS) // (2 * rows))) + 1  # high << _BITS is ln(..) in units of 2**-(2 * _BITS)
    return min(Fraction(root, 1 << _BITS), Fraction(1))


def bound_error(noise: QueryNoise, targets: QueryTargets, rows: int) -> Fraction:
    """A bound on the distance of all K answers from the distribution's means. The number of rows is public.

    Claim: K-55. With probability at least 1 - beta, all K answers are within it.
    Requires: as bound_noise and bound_sampling.
    Relies on: K-01, K-11.
    Checked by: tests/learning/test_query_tolerances.py::test_the_tolerance_is_the_best_split
    """
    return min(_bound_with_split(noise, targets, rows, split) for split in SPLITS)


def bound_error_of_ratio(noise: QueryNoise, targets: QueryTargets, noisy_rows: int) -> Fraction:
    """The same where the number of rows is private, from its noisy count. Beta is split in halves.

    Claim: K-55. With probability at least 1 - beta, over data and noise, all K answers are within it.
    Requires: as bound_noise_of_ratio and bound_sampling.
    Relies on: K-01, K-11.
    Checked by: tests/learning/test_query_tolerances.py::test_the_bound_of_a_ratio_holds_in_the_worst_case
    """
    half = targets.beta / 2
    fewest = noisy_rows - bound_count(noise, half)
    noisy = bound_noise_of_ratio(noise, noisy_rows, half)
    return min(noisy + bound_sampling(targets.functions, fewest, half), Fraction(1))


def find_rows(noise: QueryNoise, targets: QueryTargets, tolerance: Fraction) -> int | None:
    """The least number of rows for which all K answers are within the tolerance; None: more than MOST_ROWS.

    Claim: K-55. bound_error is at most the tolerance at the result, and above it at one row less. Where the number of
        rows is private, bound_error_of_ratio is, at every noisy count of its event.
    Requires: as bound_error.
    Relies on: K-01, K-11.
    Checked by: tests/learning/test_query_tolerances.py::test_the_sample_size_is_the_least
    """

    def suffices(rows: int) -> bool:
        if noise.count_share is None:
            return bound_error(noise, targets, rows) <= tolerance
        return bound_error_of_ratio(noise, targets, rows - bound_count(noise, targets.beta / 2)) <= tolerance

    if not suffices(MOST_ROWS):
        return None
    low, high = 0, MOST_ROWS  # low does not suffice
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _sum_margin(noise: QueryNoise, miss: Fraction, draws: int) -> Fraction:
    """|noise| of every sum is at most this, in units of psi."""
    return Fraction(
        compute_laplace_margin((1 << PSI_BITS) / noise.share, find_miss_per_coordinate(miss, draws)), 1 << PSI_BITS
    )


def _bound_with_split(noise: QueryNoise, targets: QueryTargets, rows: int, split: Fraction) -> Fraction:
    of_noise = bound_noise(noise, rows, split * targets.beta)
    return min(of_noise + bound_sampling(targets.functions, rows, (1 - split) * targets.beta), Fraction(1))
