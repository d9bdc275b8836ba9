"""The search of sf.lab.audit looks inside texts, bytes and large numbers, and at every entry of a long vector."""

import os
import re
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


SIGNALLING = (0x7FF0_0000_0000_0001).to_bytes(8, "little")


@pytest.mark.parametrize("read", [bytes, np.frombuffer])
def test_a_signalling_nan_is_an_output_like_others(read):
    found = audit(lambda people: read(SIGNALLING + bytes([len(people) % 2] * 8)), FEW, MANY, epsilon=1, samples=200)
    assert found.lower_bound >= 0


def test_low_bits_of_large_integers_in_a_batch():
    def release(people, count):
        return 2 * (2**60 + GENERATOR.integers(2**40, size=count)) + len(people) % 2

    assert audit(release, FEW, MANY, epsilon=1, samples=600, batch=True).verdict == "violated"


generator = np.random.default_rng(11)


def test_the_texts_that_differ_most_are_searched():
    """Twelve texts, and only the last of them shows the data. A note says that not all were searched."""

    def list_words(data):
        words = [f"word {generator.integers(10**9)}" for _ in range(12)]
        return [*words[:-1], f"count {generator.laplace(len(data), 0.05):.3f}"]

    found = audit(list_words, ["ann"], ["ann", "bob"], epsilon=1, samples=2_000)
    assert found.verdict == "violated"
    assert "[11]" in found.event
    assert any("Of 12 texts, the 8 that differ most" in note for note in found.notes)


def test_parts_of_texts_and_numbers_that_are_not_searched_are_noted():
    long = audit(lambda data: "x" * 40 + str(generator.integers(3)), [1], [1, 2], epsilon=1, samples=400)
    assert any("long texts" in note for note in long.notes)
    many = audit(lambda data: generator.integers(3, size=70).tolist(), [1], [1, 2], epsilon=1, samples=400)
    assert any("Of 70 numbers, the 64 that differ most" in note for note in many.notes)
    few = audit(lambda data: [int(generator.integers(3)), "yes"], [1], [1, 2], epsilon=1, samples=400)
    assert few.notes == ()


def test_columns_are_chosen_by_the_runs_that_search():
    """Outputs with more paths than columns: the runs that test must not choose what is tested."""
    from sfumato.lab.auditing.canonical_outputs import observe
    from sfumato.lab.auditing.sampled_runs import MOST_PATHS, collect_runs

    sides = tuple([observe({f"{side}-{run}-{place}": 1 for place in range(100)}) for run in range(40)] for side in "ab")
    (first, second), _ = collect_runs(sides)
    assert list(first.numbers) == list(second.numbers)
    assert len(first.numbers) == MOST_PATHS
    runs_of_columns = {re.match(r"\['([ab])-(\d+)-", path) for path in first.numbers} - {None}
    chosen = {(found[1], int(found[2])) for found in runs_of_columns}
    assert {side for side, _ in chosen} == {"a", "b"}  # both datasets choose
    assert all(run < 20 for _, run in chosen)  # the runs from 20 on test


def test_observed_runs_are_small():
    """300 numbers a run: eight bytes each, and shared paths."""
    import tracemalloc

    from sfumato.lab.auditing.canonical_outputs import observe

    known = {}
    tracemalloc.start()
    runs = [observe(generator.laplace(size=300).tolist()).pack(known) for _ in range(100)]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(known) == 1
    assert size / len(runs) < 5_000
    assert dict(runs[0].numbers.items()).keys() == {f"[{place}]" for place in range(300)}
    assert len({run.exact for run in runs}) == len(runs)
