"""Drawn noise against its certificate: samplers that are wrong are found, and right ones are not flagged."""

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.kernel import mechanisms, samplers
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.lab.auditing.audit_stage import Setting, set_stage
from sfumato.lab.auditing.noise_distribution import DRAWS, check_samplers, find_wrong_noise
from sfumato.lab.auditing.query_audit import audit_pairs
from sfumato.lab.auditing.question_checks import check_question
from sfumato.lab.auditing.question_pairs import make_pairs

NOISES = [
    *map(LaplaceNoise, (Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(10**9, 7), Fraction(2**55))),
    *map(GaussianNoise, (Fraction(1, 5), Fraction(1), Fraction(9, 2), Fraction(2_000), Fraction(10**15, 3))),
    *(GaussianNoise(variance, rounded=True) for variance in (Fraction(1, 5), Fraction(9, 2), Fraction(2_000))),
]
COLUMNS = {"pay": sf.Real(1_000, 9_000)}
TOTAL, COUNT = "SELECT SUM(pay) AS s FROM t", "SELECT COUNT(*) AS n FROM t"


def shrink(noise, part):
    if isinstance(noise, LaplaceNoise):
        return LaplaceNoise(noise.scale * part)
    return GaussianNoise(noise.variance * part, noise.rounded)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_right_noise_and_larger_noise_are_not_flagged(noise):
    assert list(find_wrong_noise(noise, noise.draw(DRAWS, SYSTEM))) == []
    assert list(find_wrong_noise(shrink(noise, Fraction(4, 5)), noise.draw(DRAWS, SYSTEM))) == []


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_scale_or_variance_that_is_too_small_is_found(noise):
    part = Fraction(9, 10) if isinstance(noise, LaplaceNoise) else Fraction(4, 5)
    assert list(find_wrong_noise(noise, shrink(noise, part).draw(DRAWS, SYSTEM)))


@pytest.mark.parametrize(
    ("fault", "change"),
    [
        ("more often", lambda drawn: np.where(np.abs(drawn) > 300, drawn // 4, drawn)),  # tails are cut
        ("sign", lambda drawn: np.where(np.arange(drawn.size) % 10 == 0, np.abs(drawn), drawn)),
        ("bit 0", lambda drawn: drawn * 2),
        ("again", lambda drawn: np.repeat(drawn[::2], 2)),
    ],
)
@pytest.mark.parametrize("noise", [LaplaceNoise(Fraction(100)), GaussianNoise(Fraction(10_000))], ids=str)
def test_other_distributions_are_found(fault, change, noise):
    drawn = noise.draw(DRAWS, SYSTEM)
    if fault == "more often" and isinstance(noise, GaussianNoise):
        drawn = drawn * 2 // 2
        change = lambda drawn: np.where(np.abs(drawn) > 150, drawn // 4, drawn)  # noqa: E731
    assert any(fault in found for found in find_wrong_noise(noise, change(drawn)))


def forget_one(coins, size, entropy):
    """The two-sided draw with G instead of 1 + G: too many zeros, which a large scale hides."""
    words = samplers._flip_words(coins, size, entropy)
    negative = words >> (coins.digits + 2)
    sign = (words >> (coins.digits + 1) & 1 ^ negative) - negative
    return samplers._add_tail((words & ((1 << coins.digits) - 1)) * sign, words, sign, coins, entropy)


def draw_little(variance, size, entropy):
    return samplers.draw_in_chunks(size, lambda count: samplers._draw_gaussian(variance * 7 / 10, count, entropy))


def make_stage(accounting, sql, folder):
    budget = sf.Budget(epsilon=3, delta="1e-6", accounting=accounting)
    stage = set_stage(Dataset("d", [Table("t", None, sf.ROW, COLUMNS)], budget), sql)
    return stage, list(make_pairs(stage, folder, 0, 1))[:2]


@pytest.mark.parametrize(
    ("accounting", "sql", "module", "name", "fault"),
    [
        ("basic", TOTAL, samplers, "draw_two_sided", forget_one),
        ("zcdp", COUNT, mechanisms, "discrete_gaussian", draw_little),
    ],
)
def test_a_replay_finds_a_sampler_that_is_wrong(accounting, sql, module, name, fault, monkeypatch, tmp_path):
    stage, pairs = make_stage(accounting, sql, tmp_path)
    setting = Setting(rho="0.5") if accounting == "zcdp" else Setting(epsilon=1)
    assert check_question(stage, pairs[0], setting) == ()
    monkeypatch.setattr(module, name, fault)
    assert check_question(stage, pairs[0], setting)


def test_an_audit_finds_gaussian_noise_of_too_little_variance_in_its_samples(monkeypatch, tmp_path):
    stage, pairs = make_stage("zcdp", COUNT, tmp_path)
    assert audit_pairs(stage, COUNT, pairs, Setting(rho="0.5"), 2_000, 1).verdict == "consistent"
    monkeypatch.setattr(mechanisms, "discrete_gaussian", draw_little)
    found = audit_pairs(stage, COUNT, pairs, Setting(rho="0.5"), 2_000, 1)
    assert found.verdict == "violated"
    assert any("sampled releases" in fault for fault in found.complete_faults)


def test_no_noise_is_nothing_to_check():
    assert list(check_samplers([])) == []
    assert list(find_wrong_noise(LaplaceNoise(Fraction(1)), [])) == []
