"""Broken mechanisms: each claims a loss that it does not have. An auditor must catch all of them.

The noise itself is exact wherever the fault is not the noise, so that only the described fault can be found.
`auditing/broken_queries.py` plants faults in whole queries.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, Literal

import numpy as np

from sfumato.kernel.losses import PrivacyLoss
from sfumato.lab.auditing.mechanism_audit import read_claim
from sfumato.number_arguments import Number
from sfumato.standalone.additive import Gaussian, Laplace
from sfumato.standalone.thresholded_keys import ThresholdedKeys

Category = Literal["noise", "sensitivity", "data-dependent", "selection", "accounting"]
Rows = Sequence[tuple[str, float]]  # (person, value)
GENERATOR = np.random.default_rng()


@dataclass(frozen=True, slots=True)
class BrokenMechanism:
    """A mechanism, what is wrong with it, its claim, and two neighbouring inputs that show the fault.

    With `samples` runs on each input, an audit misses the fault with probability below 1e-6.
    """

    name: str
    category: Category
    fault: str
    mechanism: Callable[[Any], object]
    first: object
    second: object
    epsilon: Number = 1
    delta: Number = 0
    samples: int = 2_000

    @property
    def claim(self) -> PrivacyLoss | None:
        """The loss that the mechanism claims and does not have."""
        return read_claim(self.epsilon, self.delta, None)


@lru_cache
def _make_laplace(scale: Number) -> Laplace:
    return Laplace(scale, 1, of="integers")


def _draw_noise(scale: Number) -> int:
    """Exact discrete Laplace noise."""
    return int(_make_laplace(scale).release(0))


def _draw_noises(scale: Number, size: int) -> list[int]:
    return [int(drawn) for drawn in _make_laplace(scale).release(np.zeros(size, np.int64))]


# ---- noise


def _count_with_little_noise(people: list[int]) -> int:
    return len(people) + int(Laplace(1, 3).release(0))


def _count_without_epsilon(people: list[int]) -> int:
    return len(people) + _draw_noise(1)  # the scale is 1 / epsilon = 4


def _release_with_bare_end(counts: list[int]) -> list[int]:
    return [count + drawn for count, drawn in zip(counts, [*_draw_noises(1, len(counts) - 1), 0], strict=True)]


def _count_with_seed(people: list[int]) -> int:
    return len(people) + round(Random(7).expovariate(1))  # noqa: S311 - the fault


def _count_twice_with_one_noise(smokers: list[bool]) -> tuple[int, int]:
    drawn = _draw_noise(2)  # each count has noise for epsilon / 2, but a forked process drew the same noise again
    return len(smokers) + drawn, sum(smokers) + drawn


def _respond_with_biased_coin(truth: bool) -> bool:
    return truth if GENERATOR.random() < 0.9 else not truth  # e / (1 + e) = 0.731 was promised


def _add_up_with_float_noise(values: list[float]) -> float:
    return sum(values) + float(GENERATOR.laplace())


# ---- sensitivity


def _add_up_with_half_the_sensitivity(values: list[int]) -> int:
    return sum(min(max(value, 0), 10) for value in values) + _draw_noise(5)


def _count_rows_by_cell(rows: Rows) -> list[int]:
    held = Counter(int(value) for _, value in rows)
    return [held[place] + drawn for place, drawn in enumerate(_draw_noises(1, 5))]


def _count_rows_as_people(rows: Rows) -> int:
    return len(rows) + _draw_noise(1)


def _release_for_added_people(counts: list[int]) -> list[int]:
    return [count + drawn for count, drawn in zip(counts, _draw_noises(1, len(counts)), strict=True)]


def _clamp_after_summing(values: list[int]) -> int:
    return min(max(sum(values), 0), 1_000) + _draw_noise(10)


def _add_up_with_nan(values: list[float]) -> float:
    total = 0.0
    for value in values:
        total += 10.0 if value > 10 else 0.0 if value < 0 else value  # both comparisons are false for NaN
    return total + _draw_noise(10)


def _add_up_and_overflow(values: list[int]) -> int:
    clamped = np.clip(np.array(values, np.int8), 0, 10)
    return int(clamped.sum(dtype=np.int8)) + _draw_noise(10)


# ---- data-dependent


def _add_up_within_own_bounds(values: list[int]) -> int:
    low, high = min(values), max(values)
    return sum(min(max(value, low), high) for value in values) + _draw_noise(max(abs(low), abs(high), 1))


def _count_found_keys(keys: list[str]) -> dict[str, int]:
    held = Counter(keys)
    return {key: held[key] + drawn for key, drawn in zip(sorted(held), _draw_noises(1, len(held)), strict=True)}


def _add_noise_to_filled_cells(counts: list[int]) -> list[int]:
    return [count + _draw_noise(1) if count else 0 for count in counts]


def _release_noisy_rows(values: list[int]) -> list[int]:
    return _draw_noises(10, len(values))


def _keep_type_of_the_data(values: list[float]) -> float:
    whole = all(float(value).is_integer() for value in values)
    noisy = sum(min(max(value, 0), 1) for value in values) + _draw_noise(1)
    return int(noisy) if whole else float(noisy)


def _average_and_fail(values: list[int]) -> float:
    return round(sum(values) / len(values)) + _draw_noise(10)


# ---- selection and thresholds


def _release_keys_with_low_threshold(held: dict[str, int]) -> dict[str, int]:
    rule = ThresholdedKeys(1, "0.05")
    noisy = {key: count + _draw_noise(1) for key, count in held.items()}
    return {key: count for key, count in noisy.items() if count >= rule.threshold - 1}


def _compare_keys_before_noise(held: dict[str, int]) -> dict[str, int]:
    rule = ThresholdedKeys(1, "0.05")
    return {key: count + _draw_noise(1) for key, count in held.items() if count >= rule.threshold}


def _compare_without_query_noise(answers: list[int]) -> list[bool]:
    threshold = 5 + _draw_noise(2)
    return [answer >= threshold for answer in answers]


def _compare_without_end(answers: list[int]) -> tuple[int, int]:
    """How many of the first half, and of the second half, were said to be above."""
    threshold, half = 5 + _draw_noise(1), len(answers) // 2
    noisy = np.array(answers) + _make_laplace(2).release(np.zeros(len(answers), np.int64))
    return int((noisy[:half] >= threshold).sum()), int((noisy[half:] >= threshold).sum())


def _choose_with_wrong_factor(scores: list[int]) -> int:
    weights = np.exp(2.0 * np.array(scores, np.float64))  # exp(epsilon u): the 2 in exp(epsilon u / 2) is forgotten
    return int(GENERATOR.choice(len(scores), p=weights / weights.sum()))


# ---- accounting


def _ask_two_for_one(people: list[bool]) -> tuple[int, int]:
    return len(people) + _draw_noise(1), sum(people) + _draw_noise(1)


def _convert_with_wrong_sign(people: list[int]) -> int:
    return len(people) + int(Gaussian(1, 8, of="integers").release(0))


WRONG_SIGN = 2 * math.sqrt(8 * math.log(100)) - 8  # epsilon = rho + 2 sqrt(rho ln(1 / delta)), with a minus
TEN, ELEVEN = list(range(10)), list(range(11))
CROWD: Rows = [(f"person {place}", place % 5) for place in range(20)]
MANY_ROWS: Rows = [*CROWD, *(("somebody", place) for place in range(5))]

BROKEN_MECHANISMS = (
    BrokenMechanism("noise-too-small", "noise", "The scale is 1/3 instead of 1.",
        _count_with_little_noise, TEN, ELEVEN),
    BrokenMechanism("scale-without-epsilon", "noise", "The scale is the sensitivity instead of sensitivity / epsilon.",
        _count_without_epsilon, TEN, ELEVEN, "0.25", samples=6_000),
    BrokenMechanism("last-coordinate", "noise", "The last entry of the vector gets no noise.",
        _release_with_bare_end, [3, 4, 5], [3, 4, 6]),
    BrokenMechanism("seeded-noise", "noise", "The generator has a fixed seed.", _count_with_seed, TEN, ELEVEN),
    BrokenMechanism("forked-noise", "noise", "Two releases share their noise, as after a fork.",
        _count_twice_with_one_noise, [True] * 5, [*[True] * 5, False]),
    BrokenMechanism("biased-coin", "noise", "The coin of the randomised response is 0.9 instead of 0.731.",
        _respond_with_biased_coin, False, True, samples=4_000),
    BrokenMechanism("float-noise", "noise", "The low bits of floating-point noise depend on the value.",
        _add_up_with_float_noise, [0.0], [1.0], samples=10_000),
    BrokenMechanism("half-the-sensitivity", "sensitivity", "The noise is for a sensitivity of 5; it is 10.",
        _add_up_with_half_the_sensitivity, [3] * 9, [*[3] * 9, 10], samples=12_000),
    BrokenMechanism("histogram-of-many-rows", "sensitivity", "A person has five rows; the noise is for one.",
        _count_rows_by_cell, CROWD, MANY_ROWS, samples=4_000),
    BrokenMechanism("rows-instead-of-people", "sensitivity", "Rows are counted, the noise is for people.",
        _count_rows_as_people, CROWD, MANY_ROWS),
    BrokenMechanism("replaced-as-added", "sensitivity", "Replacing a person moves two cells; the noise is for one.",
        _release_for_added_people, [5, 5], [4, 6], samples=8_000),
    BrokenMechanism("clamp-after-sum", "sensitivity", "The sum is clamped, not the values.",
        _clamp_after_summing, [3] * 9, [*[3] * 9, 500]),
    BrokenMechanism("nan-passes-clamp", "sensitivity", "NaN is neither below nor above a bound.",
        _add_up_with_nan, [3.0] * 9, [*[3.0] * 9, math.nan]),
    BrokenMechanism("integer-overflow", "sensitivity", "The sum wraps around at 127.",
        _add_up_and_overflow, [10] * 12, [10] * 13),
    BrokenMechanism("bounds-of-the-data", "data-dependent", "The clamping bounds and the scale come from the data.",
        _add_up_within_own_bounds, [3] * 9, [*[3] * 9, 10_000]),
    BrokenMechanism("keys-of-the-data", "data-dependent", "A key is released because somebody holds it.",
        _count_found_keys, ["a"] * 9, [*["a"] * 9, "secret"]),
    BrokenMechanism("number-of-draws", "data-dependent", "Empty cells get no noise.",
        _add_noise_to_filled_cells, [4, 0], [4, 1]),
    BrokenMechanism("output-length", "data-dependent", "There is one output per row.",
        _release_noisy_rows, TEN, ELEVEN),
    BrokenMechanism("output-type", "data-dependent", "The type of the output depends on the values.",
        _keep_type_of_the_data, [1, 0], [1, 0, 0.5]),
    BrokenMechanism("error-of-the-data", "data-dependent", "The mean of nobody raises.", _average_and_fail, [], [7]),
    BrokenMechanism("threshold-off-by-one", "selection", "The threshold of undeclared keys is one too low.",
        _release_keys_with_low_threshold, {"a": 9}, {"a": 9, "secret": 1}, delta="0.05", samples=20_000),
    BrokenMechanism("threshold-before-noise", "selection", "The count is compared with the threshold without noise.",
        _compare_keys_before_noise, {"a": 3}, {"a": 4}, delta="0.05"),
    BrokenMechanism("above-threshold-bare-queries", "selection", "Only the threshold gets noise, not the queries.",
        _compare_without_query_noise, [5, 6], [6, 5], samples=4_000),
    BrokenMechanism("above-threshold-endless", "selection", "It answers on after the first query above the threshold.",
        _compare_without_end, [4] * 120 + [6] * 120, [5] * 240, 2, samples=4_000),
    BrokenMechanism("exponential-factor", "selection", "The exponent lacks the factor 1/2.",
        _choose_with_wrong_factor, [1, *[0] * 30], [0, *[1] * 30], 2, samples=20_000),
    BrokenMechanism("forgotten-query", "accounting", "Two queries are released for the price of one.",
        _ask_two_for_one, [True] * 5, [True] * 6, samples=8_000),
    BrokenMechanism("wrong-sign", "accounting", "zCDP is converted with a minus instead of a plus.",
        _convert_with_wrong_sign, TEN, ELEVEN, round(WRONG_SIGN, 6), "0.01", samples=8_000),
)  # fmt: skip
