"""The search of sf.lab.audit looks inside texts, bytes and large numbers, and at every entry of a long vector."""

import os
import struct
from decimal import Decimal

import numpy as np
import pytest

from sfumato.lab import audit

FEW, MANY = [1] * 10, [1] * 11
GENERATOR = np.random.default_rng()


def draw_equal_entries(people):
    values = GENERATOR.normal(size=7).tolist()
    if len(people) > 10:
        values[3] = values[0]
    return values


def draw_parity_of_sum(people):
    first = int(GENERATOR.integers(10**9))
    return first, 2 * int(GENERATOR.integers(10**9)) + (first + len(people)) % 2


LEAKS = {
    "numeral of fixed width": lambda people: f"count {len(people) + GENERATOR.laplace(0, 0.1):010.6f}",
    "numeral in a key": lambda people: {f"{len(people) + GENERATOR.laplace(0, 0.1):.9f}": 1},
    "number as a key": lambda people: {len(people) + float(GENERATOR.laplace(0, 0.1)): 1},
    "character in random text": lambda people: os.urandom(4).hex() + "xy"[len(people) % 2] + os.urandom(4).hex(),
    "byte in random bytes": lambda people: os.urandom(8) + bytes([len(people)]),
    "packed float": lambda people: struct.pack("<d", len(people) + GENERATOR.laplace(0, 0.1)),
    "low bit of a large integer": lambda people: 2 * (2**60 + int(GENERATOR.integers(2**40))) + len(people) % 2,
    "low bits of a huge integer": lambda people: (int(GENERATOR.integers(2**60)) << 64) | len(people),
    "modulo 3": lambda people: 3 * int(GENERATOR.integers(10**12)) + len(people) % 3,
    "last digit of a Decimal": lambda people: Decimal(10 * int(GENERATOR.integers(10**17)) + len(people) % 10),
    "equal entries": draw_equal_entries,
    "parity of a sum": draw_parity_of_sum,
    "entry 80 of 100": lambda people: [*GENERATOR.laplace(size=80), float(len(people)), *GENERATOR.laplace(size=19)],
    "entry 290 of 300": lambda people: [*GENERATOR.laplace(size=290), float(len(people)), *GENERATOR.laplace(size=9)],
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_hidden_leak_is_found(name):
    found = audit(LEAKS[name], FEW, MANY, epsilon=1, samples=600)
    assert found.verdict == "violated", found


@pytest.mark.parametrize("name", LEAKS)
def test_the_same_outputs_on_equal_data_are_not_flagged(name):
    """Each is called "violated" with probability 1e-6 at most."""
    assert audit(LEAKS[name], MANY, MANY, epsilon="0.1", samples=200).verdict != "violated"


def test_low_bits_of_large_integers_in_a_batch():
    def release(people, count):
        return 2 * (2**60 + GENERATOR.integers(2**40, size=count)) + len(people) % 2

    assert audit(release, FEW, MANY, epsilon=1, samples=600, batch=True).verdict == "violated"
