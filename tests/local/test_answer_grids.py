"""Histograms, quantiles, variances and cross-tabs: exact second moments, and intervals with the stated coverage."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.local.randomisers.answer_grids import CrossTab, NumberBins
from sfumato.local.randomisers.weighted_estimates import estimate_weighted, find_pair_supports

ROUNDS, PEOPLE = 300, 4000


def enumerate_supports(table):
    """The probability of each support set, given that the answer is category 0."""
    k, (true, other) = table.k, table.support
    match table.name:
        case "krr":
            yield from (({place}, true if place == 0 else other) for place in range(k))
        case "oue" | "sue":
            for bits in product((0, 1), repeat=k):
                chance = Fraction(1)
                for place, bit in enumerate(bits):
                    rate = true if place == 0 else other
                    chance *= rate if bit else 1 - rate
                yield {place for place, bit in enumerate(bits) if bit}, chance
        case "subset":
            size = table.mechanism.size
            for chosen in combinations(range(k), size):
                own = 0 in chosen
                number = len(list(combinations(range(k - 1), size - 1 if own else size)))
                yield set(chosen), (true if own else 1 - true) / number


@pytest.mark.parametrize("name", ["krr", "oue", "sue", "subset"])
@pytest.mark.parametrize("k", [3, 5, 8])
def test_pairs_are_supported_as_often_as_is_said(name, k):
    """Exact fractions, by enumeration of every support set."""
    table = sf.local.randomiser(name, k=k, epsilon="0.5")
    laws = list(enumerate_supports(table))
    assert sum(chance for _, chance in laws) == 1
    own = sum(chance for places, chance in laws if {0, 1} <= places)
    others = sum(chance for places, chance in laws if {1, 2} <= places)
    assert find_pair_supports(table) == (own, others)


@pytest.mark.parametrize("name", ["olh", "hadamard"])
def test_tables_without_exact_pairs_are_refused(name):
    with pytest.raises(InvalidParameter, match="subset"):
        find_pair_supports(sf.local.randomiser(name, k=8, epsilon=1))


@pytest.mark.parametrize("name", ["krr", "oue", "subset"])
def test_intervals_cover_the_truth(name):
    """95 % of 300: fewer than 265 or all of 300 has probability below 1e-6 (and means a wrong scale)."""
    generator = np.random.default_rng(7)
    table = sf.local.randomiser(name, k=12, epsilon=2)
    shares = np.arange(1, 13) / 78
    weights = np.linspace(-1, 3, 12)
    step = (np.arange(12) < 8).astype(float)
    inside = {"weights": 0, "step": 0}
    for _ in range(ROUNDS):
        tally = table.tally(table.randomise(generator.choice(12, PEOPLE, p=shares)))
        for kind, given in (("weights", weights), ("step", step)):
            found = estimate_weighted(table, tally, given)
            inside[kind] += found.low <= shares @ given <= found.high
    assert all(265 <= count < 300 for count in inside.values()), inside


def test_bins_give_means_variances_and_quantiles():
    bins = NumberBins(0, 24, 24)
    assert bins.labels[:2] == ["0 to 1", "1 to 2"]
    assert [bins.place(number) for number in (-3, 0, 0.99, 1, 23.5, 24, 99)] == [0, 0, 0, 1, 23, 23, 23]
    table = sf.local.randomiser("subset", k=24, epsilon=3)
    numbers = np.clip(np.random.default_rng(3).normal(8, 2, 60_000), 0, 24)
    tally = table.tally(table.randomise(np.array([bins.place(number) for number in numbers])))
    mean, variance = bins.mean(table, tally, "0.999999"), bins.variance(table, tally, "0.999999")
    middles = np.floor(numbers) + 0.5
    assert mean.low < middles.mean() < mean.high < mean.low + 1
    assert variance.low < middles.var() < variance.high < variance.low + 8
    median = bins.quantile(table, tally, "0.5", "0.999999")
    assert median.low <= 8 <= median.high
    assert median.high - median.low <= 3
    late = bins.quantile(table, tally, "0.9", "0.999999")
    assert late.low <= np.quantile(numbers, 0.9) <= late.high
    assert median.high <= late.high
    for wrong in ((0, 0, 5), (0, 1, 1), (0, np.inf, 5), (0, 1, 1001)):
        with pytest.raises(InvalidParameter):
            NumberBins(*wrong)
    with pytest.raises(InvalidParameter):
        bins.place(np.nan)


def test_cross_tabs_give_cells_margins_and_dependence():
    tab = CrossTab(("cat", "dog"), ("town", "land", "sea"))
    assert tab.labels[4] == "dog / land"
    assert tab.place("dog", "land") == 4
    table = sf.local.randomiser("subset", k=6, epsilon=3)
    shares = np.array([0.3, 0.1, 0.1, 0.05, 0.25, 0.2])
    answers = np.random.default_rng(5).choice(6, 80_000, p=shares)
    tally = table.tally(table.randomise(answers))
    sure = "0.999999"
    for found, true in (
        (tab.cell(table, tally, "cat", "town", sure), 0.3),
        (tab.row(table, tally, "cat", sure), 0.5),
        (tab.column(table, tally, "land", sure), 0.35),
        (tab.dependence(table, tally, "cat", "town", sure), 0.3 - 0.5 * 0.35),
        (tab.dependence(table, tally, "dog", "town", sure), 0.05 - 0.5 * 0.35),
    ):
        assert found.low < true < found.high < found.low + 0.2
    with pytest.raises(InvalidParameter):
        tab.place("cow", "land")
    with pytest.raises(InvalidParameter):
        CrossTab(("a",), ("b", "c"))
