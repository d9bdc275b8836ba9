"""The exact distribution of a randomiser, measured from the code: the units of every coin, then every draw."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
from scripted import Scripted

from sfumato.local.mechanisms.coin_tables import UNITS

HEADS, TAILS = 0, UNITS - 1


def join_words(*values):
    return b"".join(int(value).to_bytes(4, "little") for value in values)


def units_of(happens):
    """How many of 2**32 words make `happens` true: all below some word, and no other."""
    if not happens(HEADS):
        return 0
    low, high = 0, UNITS  # true of low, and not (or outside) of high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if happens(middle) else (low, middle)
    return high


def draw_one(mechanism, value, script):
    report = mechanism.draw(np.array([value]), Scripted(script))
    return key(report[0])


def key(report):
    return bytes(report) if isinstance(report, np.ndarray) else int(report)


def array_of(mechanism, keys):
    if isinstance(keys[0], bytes):
        return np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), -1)
    return np.array(keys)


def measure_law(mechanism, value):
    """Report -> probability, exactly."""
    return LAWS[mechanism.name](mechanism, value)


def add(total, report, weight):
    total[report] = total.get(report, Fraction(0)) + weight


def kary_law(mechanism, value):
    steps = range(mechanism.k - 1)
    tail = (lambda byte: b"") if mechanism.k == 2 else (lambda byte: bytes([byte]))
    keep = units_of(lambda word: draw_one(mechanism, value, join_words(word) + tail(0)) == value)
    total = {}
    for coin, units in ((HEADS, keep), (TAILS, UNITS - keep)):
        for step in steps:
            report = draw_one(mechanism, value, join_words(coin) + tail(step))
            add(total, report, Fraction(units, UNITS * len(steps)))
    return total


def unary_law(mechanism, value):
    k = mechanism.k

    def bit(place, word):
        row = [TAILS] * k
        row[place] = word
        return draw_one(mechanism, value, join_words(*row))[place // 8] >> place % 8 & 1

    units = [units_of(lambda word, place=place: bit(place, word)) for place in range(k)]
    total = {}
    for heads in product((True, False), repeat=k):
        report = draw_one(mechanism, value, join_words(*(HEADS if is_head else TAILS for is_head in heads)))
        weight = Fraction(1)
        for is_head, unit in zip(heads, units, strict=True):
            weight *= Fraction(unit if is_head else UNITS - unit, UNITS)
        add(total, report, weight)
    return total


def subset_law(mechanism, value):
    rows = list(permutations(range(mechanism.k - 1)))  # even sets need only the order of the words: claim K-42
    include = units_of(lambda word: draw_one(mechanism, value, join_words(word, *rows[0]))[value // 8] >> value % 8 & 1)
    total = {}
    for coin, units in ((HEADS, include), (TAILS, UNITS - include)):
        for row in rows:
            add(total, draw_one(mechanism, value, join_words(coin, *row)), Fraction(units, UNITS * len(rows)))
    return total


def hashing_law(mechanism, value):
    steps = range(mechanism.buckets - 1)
    tail = (lambda byte: b"") if mechanism.buckets == 2 else (lambda byte: bytes([byte]))
    some_seed = 1
    true = draw_one(mechanism, value, join_words(HEADS, some_seed) + tail(0))
    keep = units_of(lambda word: draw_one(mechanism, value, join_words(word, some_seed) + tail(0)) == true)
    total = {}
    for coin, units in ((HEADS, keep), (TAILS, UNITS - keep)):
        for seed in range(1 << mechanism.seed_bits):
            for step in steps:
                report = draw_one(mechanism, value, join_words(coin, seed) + tail(step))
                add(total, report, Fraction(units, (UNITS << mechanism.seed_bits) * len(steps)))
    return total


def hadamard_law(mechanism, value):
    true = draw_one(mechanism, value, join_words(HEADS, 3))
    keep = units_of(lambda word: draw_one(mechanism, value, join_words(word, 3)) == true)
    total = {}
    for coin, units in ((HEADS, keep), (TAILS, UNITS - keep)):
        for column in range(mechanism.columns):
            report = draw_one(mechanism, value, join_words(coin, column))
            add(total, report, Fraction(units, UNITS * mechanism.columns))
    return total


LAWS = {
    "rr": kary_law,
    "krr": kary_law,
    "oue": unary_law,
    "sue": unary_law,
    "subset": subset_law,
    "olh": hashing_law,
    "hadamard": hadamard_law,
}
