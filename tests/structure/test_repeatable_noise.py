"""Noise in tests can be repeated, and only in tests."""

import subprocess
import sys

import pytest
from repeatable_noise import DEFAULT, SEED, repeat_noise

from sfumato.kernel.entropy import SYSTEM

DRAW = "from sfumato.kernel.entropy import SYSTEM; print(SYSTEM.take(16).tobytes().hex())"


def draw():
    return SYSTEM.take(16).tobytes()


def test_a_name_repeats_its_noise_and_names_differ():
    seen = []
    for name in ("one", "two", "one"):
        repeat_noise(name)
        seen.append((draw(), draw()))
    assert seen[0] == seen[2]
    assert len({*seen[0], *seen[1]}) == 4


@pytest.mark.skipif(SEED != DEFAULT, reason="the bytes below belong to the default seed")
def test_this_test_always_draws_the_same_bytes():
    assert draw().hex() == "d20e422f56487c25264bf4243363457c"


def test_a_program_that_a_test_starts_has_noise_of_its_own():
    drawn = {subprocess.run([sys.executable, "-c", DRAW], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(drawn) == 2
