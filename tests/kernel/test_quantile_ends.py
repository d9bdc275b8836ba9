"""Intervals of quantiles (K-83): laws are worked out from the exponents that the code really flips with."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from bin_flips import compute_flip_law_in_floats, flips_of, make_cell

from sfumato.errors import KernelFault
from sfumato.kernel.bin_choice import QuantileChoice
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.neighbours import Neighbours

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE
HALF, NINTH, QUARTERS = (Fraction(1, 2),), (Fraction(9, 10),), (Fraction(1, 4), Fraction(3, 4))
MISS = Fraction(1, 40)


def make_choice(fractions, bins=3, epsilon="1", neighbours=ADD, several=False, reach=1):
    return QuantileChoice(fractions, bins, reach, neighbours, several, Decimal(epsilon), MISS)


def list_laws(choice, weights):
    """The law of each end, from the exponents that are flipped with."""
    return [compute_flip_law_in_floats(row).tolist() for row in flips_of(choice, weights)]


def list_small_laws(choice, weights):
    """The same for three bins: p times the integral of (1 - q u)(1 - r u)."""
    laws = []
    for row in flips_of(choice, weights):
        survive = [math.exp(-float(step)) for step in row]
        others = [[one for at, one in enumerate(survive) if at != place] for place in range(3)]
        laws.append([p * (1 - (q + r) / 2 + q * r / 3) for p, (q, r) in zip(survive, others, strict=True)])
    return laws


@pytest.mark.parametrize("neighbours", [ADD, REPLACE], ids=str)
@pytest.mark.parametrize("fractions", [HALF, NINTH, QUARTERS], ids=str)
@pytest.mark.parametrize("epsilon", ["0.5", "3"])
def test_the_loss_of_all_ends_is_at_most_epsilon(fractions, neighbours, epsilon):
    """All small neighbours of one cell: the product of the worst ratios is at most e^epsilon, and nearly reaches it."""
    choice = make_choice(fractions, epsilon=epsilon, neighbours=neighbours)
    laws = {weights: list_small_laws(choice, make_cell(*weights)) for weights in product(range(5), repeat=3)}
    worst = 0.0
    for one, first in laws.items():
        for two in _list_neighbours(one, neighbours):
            if two not in laws:
                continue
            ratios = [max(p / q for p, q in zip(a, b, strict=True)) for a, b in zip(first, laws[two], strict=True)]
            worst = max(worst, sum(math.log(ratio) for ratio in ratios))
    assert worst <= float(epsilon) * (1 + 1e-9)
    assert worst > float(epsilon) / 8  # negative control: a far narrower spread would be caught


def _list_neighbours(weights, neighbours):
    for place in range(3):
        added = tuple(weight + (at == place) for at, weight in enumerate(weights))
        yield added
        if neighbours is REPLACE:
            for other in range(3):
                if added[other]:
                    yield tuple(weight - (at == other) for at, weight in enumerate(added))


@pytest.mark.parametrize("fractions", [HALF, NINTH, QUARTERS], ids=str)
@pytest.mark.parametrize(
    "weights",
    [[0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 1], [500, 0, 0, 0, 0, 500], [1, 1, 1, 1, 1, 1], [40, 30, 20, 10, 5, 1],
     [0, 7, 0, 0, 0, 0], [9, 0, 0, 0, 0, 1], [0, 0, 90, 10, 0, 0]],
    ids=str,
)  # fmt: skip
def test_ends_are_seldom_on_the_wrong_side(fractions, weights):
    """For every content of the cell, also one with fewer rows than the pad. The probabilities are computed."""
    choice = make_choice(fractions, bins=6, epsilon="0.7")
    laws = list_laws(choice, make_cell(*weights))
    upto = np.cumsum(weights)
    for place, fraction in enumerate(fractions):
        rank = fraction * int(upto[-1])
        first = next(b for b in range(6) if upto[b] >= rank and weights[b])
        last = max(b for b in range(6) if upto[b] - weights[b] <= rank and weights[b])
        low, high = laws[2 * place], laws[2 * place + 1]
        assert sum(low[first + 1 :]) <= MISS
        assert sum(high[:last]) <= MISS


def test_the_bound_on_the_wrong_side_is_nearly_reached():
    """The padded rank lies between two bins, and all others are empty: two thirds of the pad would miss too often."""
    choice = make_choice(HALF, bins=60, epsilon="0.7")
    pad = choice.pads[0][0]
    empty = [0] * 57

    def miss(between):
        return sum(list_laws(choice, make_cell(500 - between, between, *empty, 500))[0][2:])

    assert MISS / 3 < miss(pad) <= MISS
    assert miss(pad * 2 // 3) <= MISS  # the weight lies elsewhere, so the pad is not used up

    class Careless(QuantileChoice):
        """A pad that is too small."""

        @property
        def pads(self):
            return ((pad * 2 // 3, 0), (0, pad * 2 // 3))

    careless = Careless(HALF, 60, 1, ADD, False, Decimal("0.7"), MISS)
    between = pad * 2 // 3
    law = list_laws(careless, make_cell(500 - between, between, *empty, 500))[0]
    assert sum(law[2:]) > MISS  # negative control


def test_ends_of_one_fraction_come_in_pairs():
    weights = np.zeros((4, 50), np.int64)
    weights[:, 20:30] = 1000
    choice = QuantileChoice(QUARTERS, 50, 1, ADD, True, Decimal(2), MISS)
    for cell in choice.choose_cells(weights, SYSTEM):
        assert len(cell) == 4
        assert cell[0] <= 22 <= cell[1]
        assert cell[2] <= 27 <= cell[3]


def test_pads_do_not_overflow():
    """Weights near the end of int64 are padded as Python integers."""
    weights = np.full((1, 2), 2**62, np.int64)
    choice = QuantileChoice(HALF, 2, 1, ADD, False, Decimal("1e-6"), MISS)
    assert choice.choose_cells(weights, SYSTEM)[0] in {(0, 0), (0, 1), (1, 1), (1, 0)}


@pytest.mark.parametrize("miss", [Fraction(0), Fraction(1), Fraction(-1, 2)])
def test_a_miss_is_a_probability(miss):
    with pytest.raises(KernelFault, match="between 0 and 1"):
        QuantileChoice(HALF, 3, 1, ADD, False, Decimal(1), miss)
