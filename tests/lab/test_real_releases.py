"""Faults of the release that answers take, of thresholds and of noise: an audit finds each, and flags no real one."""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import sfumato as sf
from sfumato.answering import certified_plans
from sfumato.catalog.dataset import Dataset, Table
from sfumato.kernel import keys, mechanisms, release
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.key_rounds import Holdings, KeyRounds
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.tails import find_least_tail
from sfumato.kernel.weighted_keys import WHOLE
from sfumato.lab.auditing.audit_stage import Setting, set_stage
from sfumato.lab.auditing.binomial_limits import compute_tail
from sfumato.lab.auditing.complete_answers import check_real_path
from sfumato.lab.auditing.noise_sizes import bound_small_noise, compute_upper_tail, is_too_small
from sfumato.lab.auditing.question_pairs import make_pairs
from sfumato.lab.auditing.real_releases import find_rounds_rate

COLUMNS = {"person": sf.Id(), "cost": sf.Real(-5, 500), "city": sf.Category(["Rome", "Oslo"]), "job": sf.Text()}
COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_CITY = "SELECT city, COUNT(DISTINCT person) AS n FROM visits GROUP BY city"
BY_JOB = "SELECT job, COUNT(*) AS n FROM visits GROUP BY job"


KEYS = "SELECT job FROM visits GROUP BY job"  # of a person with many rows: in two rounds


def dataset(accounting="basic", most=2):
    budget = sf.Budget(epsilon=3, delta="1e-6", accounting=accounting)
    return Dataset("clinic", [Table("visits", None, "person", COLUMNS, most, most)], budget)


def audit(sql, rho=None):
    """The faults of complete answers and real releases on one pair."""
    stage = set_stage(dataset("zcdp" if rho else "basic", 20 if sql == KEYS else 2), sql)
    with TemporaryDirectory() as folder:
        pair = next(make_pairs(stage, Path(folder), 0, 1))
        return " ".join(check_real_path(stage, sql, pair, Setting(rho=rho)))


@pytest.mark.parametrize(
    ("sql", "rho"), [(COUNT, None), (BY_CITY, None), (BY_JOB, None), (BY_CITY, "0.1"), (KEYS, None)]
)
def test_real_releases_show_no_fault(sql, rho):
    assert audit(sql, rho) == ""


RULE = KeyRounds(Decimal(1), Decimal("1e-6"), 20, Neighbours.ADD_REMOVE)


def test_a_second_round_without_noise_is_found(monkeypatch):
    def bare(rule, holdings, cells, entropy):
        found = rule.weigh_first(holdings, cells, rule.rounds[0].draw(cells, entropy))
        return rule.weigh_second(holdings, found, np.zeros(len(found.again), np.int64))

    monkeypatch.setattr(release, "find_keys", bare)
    assert "A key of" in audit(KEYS)


LATE = RULE.threshold // (3 * WHOLE)


@pytest.mark.parametrize("size", [1, 4 * LATE // 5, LATE, 2 * LATE])
def test_keys_in_two_rounds_have_the_stated_chance(size):
    """Each of many cells has so many people of its own, and noise of its own. Half the noise has another chance."""
    cells = 4_000
    held = np.repeat(np.arange(cells), size)
    holdings = Holdings(np.arange(held.size), held)
    rate = find_rounds_rate(RULE, size)

    def find_chance(times):
        found = RULE.weigh_first(holdings, cells, RULE.rounds[0].draw(cells, SYSTEM) // times)
        hits = len(RULE.weigh_second(holdings, found, RULE.rounds[1].draw(len(found.again), SYSTEM) // times))
        return min(compute_tail(hits, cells, rate), compute_tail(cells - hits, cells, 1 - rate))

    assert find_chance(1) > 1e-7
    assert size != 4 * LATE // 5 or find_chance(2) < 1e-7


def release_without_noise(exact, reservation):
    released = release.release(exact, reservation)
    return replace(released, integers={name: tuple(cells.tolist()) for name, cells in exact._integers.items()})


def test_a_release_without_noise_is_found(monkeypatch):
    """The path of `ask` only: the releases of replays and of samples stay correct."""
    monkeypatch.setattr(certified_plans, "release", release_without_noise)
    assert "smaller than certified" in audit(COUNT)


def test_a_release_with_half_of_the_noise_is_found(monkeypatch):
    def halve(exact, reservation):
        released = release.release(exact, reservation)
        halved = {
            name: tuple((noisy + integer) // 2 for noisy, integer in zip(cells, exact._integers[name], strict=True))
            for name, cells in released.integers.items()
        }
        return replace(released, integers={name: tuple(map(int, cells)) for name, cells in halved.items()})

    monkeypatch.setattr(certified_plans, "release", halve)
    assert "smaller than certified" in audit(COUNT)


def test_one_entry_without_noise_is_found(monkeypatch):
    def bare(exact, reservation):
        released = release.release(exact, reservation)
        (name, cells), *_ = released.integers.items()
        return replace(released, integers={name: (*cells[:-1], int(exact._integers[name][-1]))})

    monkeypatch.setattr(certified_plans, "release", bare)
    assert "the noise of entry" in audit(BY_CITY)


@pytest.mark.parametrize("sql", [COUNT, BY_JOB])
def test_noise_of_half_its_scale_is_found(sql, monkeypatch):
    draw = mechanisms.discrete_laplace
    monkeypatch.setattr(mechanisms, "discrete_laplace", lambda scale, *rest: draw(scale / 2, *rest))
    assert "smaller than certified" in audit(sql)


def test_a_gaussian_of_a_quarter_of_its_variance_is_found(monkeypatch):
    draw = mechanisms.discrete_gaussian
    monkeypatch.setattr(mechanisms, "discrete_gaussian", lambda variance, *rest: draw(variance / 4, *rest))
    assert "smaller than certified" in audit(BY_CITY, rho="0.1")


def test_a_threshold_that_is_compared_before_the_noise_is_found(monkeypatch):
    add = release.add_saturating

    class Undecided(np.ndarray):
        """Noisy integers that compare as the exact ones."""

        def __ge__(self, threshold):
            return self.exact >= threshold

    def compare_exact(integers, noise):
        noisy = add(integers, noise).view(Undecided)
        noisy.exact = integers
        return noisy

    monkeypatch.setattr(release, "add_saturating", compare_exact)
    assert "the noise does not decide" in audit(BY_JOB)


def test_a_key_of_nobody_is_found(monkeypatch):
    monkeypatch.setattr(release, "add_saturating", lambda integers, noise: integers + noise + 10**6)
    assert "too often" in audit(BY_JOB)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(4), Fraction(200)])
def test_small_noise_has_the_probability_that_is_bounded(scale):
    """All n values are 0: exactly P(Z = 0)^n. The bound is never below, and near it."""
    chance = 5 * math.log(math.tanh(1 / (2 * float(scale))))
    bound = bound_small_noise(LaplaceNoise(scale), [0] * 5)
    assert chance - 1e-9 <= bound <= 0.9 * chance


def test_small_gaussian_noise_has_the_probability_that_is_bounded():
    for variance in (Fraction(1, 2), Fraction(9), Fraction(10**6)):
        total = sum(math.exp(-value * value / (2 * float(variance))) for value in range(-20_000, 20_001))
        bound = bound_small_noise(GaussianNoise(variance), [0] * 5)
        assert -5 * math.log(total) - 1e-6 <= bound <= -4 * math.log(total)


def test_real_noise_is_not_too_small():
    from sfumato.kernel.entropy import SYSTEM

    for noise in (LaplaceNoise(Fraction(1, 2)), LaplaceNoise(Fraction(1000)), GaussianNoise(Fraction(50))):
        for _ in range(50):
            assert not is_too_small(noise, noise.draw(100, SYSTEM).tolist())
    assert is_too_small(LaplaceNoise(Fraction(1000)), LaplaceNoise(Fraction(450)).draw(200, SYSTEM).tolist())


def test_the_tail_is_the_one_of_the_noise():
    scale = Fraction(4)
    assert find_least_tail(scale, Fraction(1, 1000)) == next(
        k for k in range(1, 100) if compute_upper_tail(scale, k) <= Fraction(1, 1000)
    )
    chances = [float(compute_upper_tail(scale, k)) for k in range(-200, 200)]
    weights = [math.exp(-abs(k) / 4) for k in range(-1000, 1001)]
    expected = [sum(weights[k + 1000 :]) / sum(weights) for k in range(-200, 200)]
    assert np.allclose(chances, expected)
    assert keys.find_least_tail is find_least_tail
