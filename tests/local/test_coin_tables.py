from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import comb

import mpmath
import numpy as np
import pytest
from scripted import Exhausted, Scripted

import sfumato as sf
from sfumato.kernel.entropy import SYSTEM
from sfumato.local.mechanisms.coin_tables import (
    UNITS,
    bound_ratio_loss,
    bound_rows_loss,
    draw_rows,
    draw_uniform_subsets,
    flip_rows,
    flip_units,
)
from sfumato.local.randomisers.coin_search import find_greatest_coin

COINS = [1, 2, 255, 256, 0x0100_0000, 0x8000_0000, 0x9ABC_DEF0, 0xC000_0000, UNITS - 256, UNITS - 2, UNITS - 1]


def words(*values):
    return Scripted(b"".join(value.to_bytes(4, "little") for value in values))


def enumerated_heads(flip):
    """How many of all 2**32 words fall heads, by trying every byte of each place, most telling first.

    A byte decides where the least and the greatest word that begin with it fall alike; one byte at most does not.
    """
    prefix, heads = 0, 0
    for place in (24, 16, 8, 0):
        open_bytes = []
        for byte in range(256):
            least = prefix | byte << place
            first, last = flip(words(least)), flip(words(least + (1 << place) - 1))
            assert first or not last, "a greater word is never likelier to be heads"
            if first and last:
                heads += 1 << place
            elif first:
                open_bytes.append(byte)
        if not open_bytes:
            return heads
        assert len(open_bytes) == 1
        prefix |= open_bytes[0] << place
    raise AssertionError("a single word cannot fall both ways")


@pytest.mark.parametrize("units", [0, *COINS, UNITS])
def test_coins_are_exact(units):
    assert enumerated_heads(lambda entropy: flip_units(units, 1, entropy)[0]) == units
    assert enumerated_heads(lambda entropy: flip_units(np.array([units]), 1, entropy)[0]) == units
    assert enumerated_heads(lambda entropy: flip_rows(np.array([0]), units, 7, 1, entropy)[0, 0]) == units
    pair = np.array([1])
    assert enumerated_heads(
        lambda entropy: flip_rows(pair, 9, units, 2, Scripted([*entropy.left, 0, 0, 0, 0]))[0, 0]
    ) == (units)


def test_each_coin_reads_its_own_word():
    script = words(5, 6, 7, 8)
    assert flip_units(7, 4, script).tolist() == [True, True, False, False]
    assert script.left.size == 0
    assert flip_units(np.array([6, 6, 8, 8]), 4, words(5, 6, 7, 8)).tolist() == [True, False, True, False]
    assert flip_rows(np.array([1, 0]), 10, 6, 2, words(5, 9, 10, 6)).tolist() == [[True, True], [False, False]]
    assert flip_units(7, 0, Scripted([])).shape == (0,)


@pytest.mark.parametrize("units", [-1, UNITS + 1])
def test_no_coin_is_outside_its_range(units):
    with pytest.raises(sf.errors.KernelFault):
        flip_units(units, 1, SYSTEM)
    with pytest.raises(sf.errors.KernelFault):
        flip_units(np.array([0, units]), 2, SYSTEM)
    for one, zero in ((units, 5), (5, units)):
        with pytest.raises(sf.errors.KernelFault):
            flip_rows(np.array([0]), one, zero, 3, SYSTEM)


def test_rows_are_drawn_exactly():
    """The first and the last word of every column: the words between them are as many as the entry says."""
    table = np.array([[1, UNITS - 4, 3, 0], [UNITS // 4, 0, UNITS // 2, UNITS // 4]])
    for row, entries in enumerate(table.tolist()):
        start = 0
        for column, entry in enumerate(entries):
            if entry:
                script = words(start, start + entry - 1)
                assert draw_rows(table, np.array([row, row]), script).tolist() == [column, column]
            start += entry
        assert start == UNITS
    assert draw_rows(table, np.array([1, 0, 1]), words(0, UNITS - 1, UNITS - 1)).tolist() == [0, 2, 3]
    for broken in ([[1, 2]], [[UNITS + 1, -1]]):
        with pytest.raises(sf.errors.KernelFault):
            draw_rows(np.array(broken), np.array([0]), SYSTEM)


def decided_sets(places, chosen, fewer, kinds, draw):
    """The drawn sets if each word of a row is one of 0 .. kinds - 1, without rows that are drawn again."""
    seen = {}
    for row in product(range(kinds), repeat=places):
        try:
            drawn = tuple(draw(places, chosen, np.array([fewer]), words(*row))[0].tolist())
        except Exhausted:
            continue
        seen[drawn] = seen.get(drawn, 0) + 1
    return seen


@pytest.mark.parametrize(("places", "chosen"), [(1, 1), (2, 1), (3, 1), (3, 2), (3, 3), (4, 2), (5, 2)])
def test_subsets_are_even(places, chosen):
    """The places are symmetric for all words, so every set is drawn equally often, including ties."""
    for fewer in (False, True):
        size = chosen - fewer
        seen = decided_sets(places, chosen, fewer, 5, draw_uniform_subsets)
        assert len(seen) == comb(places, size)
        assert all(sum(row) == size for row in seen)
        assert len(set(seen.values())) == 1


def test_ties_broken_by_place_would_be_noticed():
    def by_place(places, chosen, fewer, entropy):
        order = np.argsort(entropy.take(4 * places).view("<u4"), kind="stable")
        return (np.isin(np.arange(places), order[:chosen]))[None]

    assert len(set(decided_sets(4, 2, False, 5, by_place).values())) > 1


def test_a_tied_row_is_drawn_again_and_only_it():
    script = words(1, 1, 2, 7, 8, 9, 3, 1, 2)
    subsets = draw_uniform_subsets(3, 1, np.array([False, True]), script)
    assert subsets.tolist() == [[False, True, False], [False, False, False]]
    assert script.left.size == 0
    for chosen in (0, 4):
        with pytest.raises(sf.errors.KernelFault):
            draw_uniform_subsets(3, chosen, np.array([False]), SYSTEM)


@pytest.mark.parametrize(
    "ratio", [Fraction(3), Fraction(1, 3), Fraction(1), Fraction(UNITS - 1), 1 + Fraction(1, UNITS)]
)
def test_losses_are_rounded_up(ratio):
    with mpmath.workprec(400):
        exact = abs(mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator))
        loss = mpmath.mpf(str(bound_ratio_loss(ratio)))
        assert exact <= loss <= exact * (1 + mpmath.mpf(10) ** -28) + mpmath.mpf(10) ** -70
    high, low = max(ratio, 1 / ratio), UNITS // 7
    if (low * high).denominator == 1 and 2 * low * high < UNITS:
        table = [[int(low * high), UNITS - int(low * high)], [low, UNITS - low]]
        assert bound_rows_loss(table) == bound_ratio_loss(high)
    for zero in ([[0, UNITS], [1, UNITS - 1]], [[UNITS, 0]]):
        with pytest.raises(sf.errors.InvalidParameter, match="zero entry"):
            bound_rows_loss(zero)
    for broken in ([[5, 6]], [[1, UNITS - 1], [UNITS - 2, 1, 1]]):
        with pytest.raises(sf.errors.InvalidParameter, match="sum to"):
            bound_rows_loss(broken)
    with pytest.raises(sf.errors.InvalidParameter, match="zero entry"):
        bound_ratio_loss(Fraction(0))


def test_a_coarse_logarithm_is_still_never_below(monkeypatch):
    monkeypatch.setattr("sfumato.local.mechanisms.coin_tables._BITS", 6)
    for ratio in (Fraction(3), Fraction(101, 100), Fraction(UNITS - 1)):
        with mpmath.workprec(200):
            assert mpmath.mpf(str(bound_ratio_loss.__wrapped__(ratio))) >= mpmath.log(ratio.numerator) - mpmath.log(
                ratio.denominator
            )


def binary(coin):
    return Fraction(coin, UNITS - coin)


@pytest.mark.parametrize("epsilon", ["1e-9", "0.001", "0.1", "1", "1.09861228866810969", "5", "20", "22.18"])
def test_the_greatest_coin_is_affordable_and_the_next_is_not(epsilon):
    coin = find_greatest_coin(binary, Decimal(epsilon))
    assert bound_ratio_loss(binary(coin)) <= Decimal(epsilon)
    assert binary(coin) > 1
    if coin < UNITS - 1:
        assert bound_ratio_loss(binary(coin + 1)) > Decimal(epsilon)
    with mpmath.workprec(200):
        growth = mpmath.exp(mpmath.mpf(epsilon))
        assert coin == int(UNITS * growth / (growth + 1))


def test_a_coin_of_three_quarters_needs_ln_three():
    three = bound_ratio_loss(Fraction(3))
    assert find_greatest_coin(binary, three) == 3 * UNITS // 4
    assert find_greatest_coin(binary, Decimal("1.09861228866810969139524523692")) == 3 * UNITS // 4 - 1


def test_epsilons_that_no_table_carries():
    with pytest.raises(sf.errors.InvalidParameter, match=r"at most 22\.180709 here"):
        find_greatest_coin(binary, Decimal("22.2"))
    for tiny in ("1e-10", "1e-300"):
        with pytest.raises(sf.errors.InvalidParameter, match="one unit"):
            find_greatest_coin(binary, Decimal(tiny))
