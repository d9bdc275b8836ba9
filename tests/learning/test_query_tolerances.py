"""The tolerances of statistical queries, against the exact tails. Claim K-55."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import pytest

from sfumato.accuracy.query_tolerances import (
    PSI_BITS,
    ROUNDING,
    SPLITS,
    QueryNoise,
    QueryTargets,
    bound_count,
    bound_error,
    bound_error_of_ratio,
    bound_noise,
    bound_noise_of_ratio,
    bound_sampling,
    find_rows,
)

BETA = Fraction(1, 20)
NOISE = QueryNoise(3, Fraction(1, 10))
COUNTED = QueryNoise(4, Fraction(1, 5), Fraction(1, 3))


def tail(steps, scale):
    """P(|Z| > steps) of discrete Laplace noise."""
    return 2 * math.exp(-(steps + 1) / scale) / (1 + math.exp(-1 / scale))


def test_the_noise_bound_is_the_exact_tail():
    """All K hold together with exactly 1 - beta, and a thousandth less does not."""
    rows, scale = 50, 10 * 2**PSI_BITS
    bound = bound_noise(NOISE, rows, BETA)
    steps = (bound - ROUNDING) * rows * 2**PSI_BITS
    assert steps.denominator == 1
    assert (1 - tail(int(steps), scale)) ** 3 >= 1 - BETA
    assert (1 - tail(int(steps) - 10, scale)) ** 3 < 1 - BETA
    assert (1 - tail(int(float(steps) * 0.999), scale)) ** 3 < 1 - BETA


def test_the_noise_bound_is_close_to_the_formula_of_the_lectures():
    """K/(epsilon m) ln(K/beta), with epsilon = K * share."""
    bound = bound_noise(NOISE, 10_000, BETA)
    assert float(bound) == pytest.approx(10 / 10_000 * math.log(3 / 0.05), rel=0.02)
    assert bound <= 10 / 10_000 * math.log(3 / 0.05) * (1 + 1e-9) + 2 * ROUNDING


def test_the_bound_of_a_ratio_holds_in_the_worst_case():
    """Every corner of the event, for numbers of rows and sums of every size."""
    far = bound_count(COUNTED, BETA)
    miss = 1 - (1 - 0.05) ** (1 / 5)  # of each of the 4 sums and the count
    assert tail(far, 3) <= miss < tail(far - 1, 3)
    reach = 5 * math.log(1 / miss) * (1 - 1e-6)  # |noise| of a sum, in units of psi: not taken from the bound
    tight = 0.0
    for rows, moved, noise in product((1, 5, 40, 200, 5_000), (-far, 0, far), (-reach, 0, reach)):
        noisy = rows + moved
        bound = float(bound_noise_of_ratio(COUNTED, noisy, BETA))
        for total in (0, rows / 3, rows):
            answer = min(max((total + noise) / max(noisy, 1), 0), 1)
            assert abs(answer - total / rows) <= bound + 1e-12
            tight = max(tight, abs(answer - total / rows) / bound)
    assert tight > 0.6  # negative control: a bound that is much smaller would fail
    assert bound_noise_of_ratio(COUNTED, 0, BETA) == bound_noise_of_ratio(COUNTED, -3, BETA) == 1
    assert bound_error_of_ratio(COUNTED, QueryTargets(4, BETA), far) == 1


def test_the_sampling_bound_is_hoeffdings():
    for functions, rows in ((1, 10), (7, 1000), (3**50, 10**6)):
        exact = math.sqrt((math.log(2 / 0.05) + math.log(functions)) / (2 * rows))
        found = float(bound_sampling(functions, rows, BETA))
        assert exact * (1 - 1e-14) <= found <= exact * (1 + 1e-9) or found == 1
    assert bound_sampling(1, 0, BETA) == 1


def test_the_sampling_bound_holds_for_a_fair_coin():
    rows = 60
    most = float(bound_sampling(1, rows, BETA))
    beyond = sum(math.comb(rows, heads) for heads in range(rows + 1) if abs(heads / rows - 0.5) > most) / 2**rows
    assert beyond <= 0.05
    smaller = most * 0.6  # negative control
    assert (
        sum(math.comb(rows, heads) for heads in range(rows + 1) if abs(heads / rows - 0.5) > smaller) / 2**rows > 0.05
    )


def test_the_tolerance_is_the_best_split():
    targets = QueryTargets(3, BETA)
    found = bound_error(NOISE, targets, 5_000)
    parts = [bound_noise(NOISE, 5_000, split * BETA) + bound_sampling(3, 5_000, (1 - split) * BETA) for split in SPLITS]
    assert found == min(parts)
    assert found < max(parts)
    assert all(0 < split < 1 for split in SPLITS)


@pytest.mark.parametrize("noise", [NOISE, COUNTED], ids=["public rows", "private rows"])
def test_the_sample_size_is_the_least(noise):
    targets, tolerance = QueryTargets(noise.k, BETA), Fraction(1, 20)
    rows = find_rows(noise, targets, tolerance)

    def bound(held):
        if noise.count_share is None:
            return bound_error(noise, targets, held)
        return bound_error_of_ratio(noise, targets, held - bound_count(noise, BETA / 2))

    assert bound(rows) <= tolerance < bound(rows - 1)
    assert find_rows(noise, targets, ROUNDING) is None


EXTREMES = list(product((1, 7, 10**6), ("0.001", "1", "100"), ("1e-12", "0.05", "0.999"), (1, 50, 10**9)))


def test_the_bounds_agree_with_60_digits():
    """K, epsilon, beta and m from one extreme to the other, with arithmetic that shares no code with the bounds."""
    compared = 0
    with mpmath.workdps(60):
        for k, epsilon, beta, rows in EXTREMES:
            share, miss = Fraction(epsilon) / k, Fraction(beta)
            x = mpmath.exp(-mpmath.mpf(epsilon) / k / 2**PSI_BITS)
            bound = bound_noise(QueryNoise(k, share), rows, miss)
            if bound < 1:
                steps = (bound - ROUNDING) * rows * 2**PSI_BITS
                assert steps.denominator == 1
                holds = [
                    mpmath.log1p(-2 * x ** (int(steps) + 1 - less) / (1 + x)) * k >= mpmath.log1p(-mpmath.mpf(beta))
                    for less in (0, 1)
                ]
                assert holds == [True, False], (k, epsilon, beta, rows)  # and no integer below it suffices
                compared += 1
            for functions in (k, 3**1000):
                exact = mpmath.sqrt(mpmath.log(2 * functions / mpmath.mpf(beta)) / (2 * rows))
                found = bound_sampling(functions, rows, miss)
                near = mpmath.mpf(found.numerator) / found.denominator
                assert exact <= near <= exact + mpmath.mpf(2) ** -90 or (found == 1 and exact >= 1)
    assert compared > len(EXTREMES) // 3


def test_the_tail_is_that_of_the_noise():
    """The formula of the tail that these tests use, against the sum of the law that the samplers draw from (K-03)."""
    for scale, steps in ((0.7, 0), (3.0, 4), (10.0, 25)):
        x = math.exp(-1 / scale)
        beyond = sum(2 * x**value * (1 - x) / (1 + x) for value in range(steps + 1, steps + 2_000))
        assert tail(steps, scale) == pytest.approx(beyond, rel=1e-12)


@pytest.mark.parametrize("total", [0, 60, 150])
def test_the_law_of_a_ratio_misses_at_most_as_often_as_stated(total):
    """One query and its count, enumerated: the probability that the answer is farther off than the stated bound."""
    rows, share, count_share, miss = 150, Fraction(1, 3), Fraction(1, 4), Fraction(1, 10)
    noise = QueryNoise(1, share, count_share)

    def law(scale, reach):
        x = math.exp(-1 / scale)
        return {value: (1 - x) / (1 + x) * x ** abs(value) for value in range(-reach, reach + 1)}

    of_count = law(float(1 / count_share), 140)
    of_sum = law(float(1 / share) * 8, 1_000)  # on a grid of eighths: the margin is that of a finer grid, so larger
    missed = {1: 0.0, 0.25: 0.0}
    for moved, likely in of_count.items():
        noisy = rows + moved
        bound = float(bound_noise_of_ratio(noise, noisy, miss))
        for value, chance in of_sum.items():
            answer = min(max((total + value / 8) / max(noisy, 1), 0), 1)
            for factor in missed:
                if abs(answer - total / rows) > factor * bound:
                    missed[factor] += likely * chance
    assert missed[1] <= miss
    assert missed[0.25] > max(miss / 2, 3 * missed[1])  # negative control: a quarter of it is missed more often
