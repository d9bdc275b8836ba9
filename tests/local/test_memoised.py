"""Two stages: the loss of one report, the loss of all reports together, and the collector's estimates."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from local_laws import HEADS, TAILS, draw_one, join_words, measure_law, units_of
from scipy import stats
from scripted import Scripted

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.local.mechanisms.coin_tables import UNITS, bound_ratio_loss
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.two_stage import TwoStage
from sfumato.local.mechanisms.unary import Unary
from sfumato.local.randomisers.category_tables import support_of
from sfumato.local.randomisers.two_stage_randomisers import memoise

FALSE_ALARM = 1e-6
TWO, ONE = sf.PureDP(2).epsilon, sf.PureDP(1).epsilon
STAGED = [("rr", 2), ("krr", 3), ("krr", 4), ("oue", 2), ("oue", 3), ("sue", 3)]


def made(name, k, longitudinal=TWO, epsilon=ONE):
    return memoise(name, k=k, longitudinal_epsilon=longitudinal, epsilon=epsilon)


def again_law(staged, kept):
    """The law of a report on a permanent one, measured from the code."""
    if isinstance(staged.instantaneous, Kary):
        return measure_law(staged.instantaneous, kept)
    row = np.frombuffer(kept, np.uint8).reshape(1, -1)

    def report(coins):
        return bytes(staged.draw_again(row, Scripted(join_words(*coins)))[0])

    def bit(place, word):
        coins = [TAILS] * staged.k
        coins[place] = word
        return report(coins)[place // 8] >> place % 8 & 1

    units = [units_of(lambda word, place=place: bit(place, word)) for place in range(staged.k)]
    total = {}
    for heads in product((True, False), repeat=staged.k):
        weight = Fraction(1)
        for is_head, unit in zip(heads, units, strict=True):
            weight *= Fraction(unit if is_head else UNITS - unit, UNITS)
        key = report([HEADS if is_head else TAILS for is_head in heads])
        total[key] = total.get(key, 0) + weight
    return total


def whole_law(staged, value, reports):
    """The distribution of this many reports on one permanent report."""
    total = {}
    for kept, weight in measure_law(staged.permanent, value).items():
        fresh = again_law(staged, kept)
        for drawn in product(fresh, repeat=reports):
            share = weight
            for report in drawn:
                share *= fresh[report]
            total[drawn] = total.get(drawn, 0) + share
    return total


def greatest_ratio(laws):
    return max(one[report] / other[report] for one in laws for other in laws for report in one)


@pytest.mark.parametrize(("name", "k"), STAGED)
def test_all_reports_together_cost_no_more_than_the_permanent_one(name, k):
    table = made(name, k)
    staged = table.mechanism
    single = [whole_law(staged, value, 1) for value in range(k)]
    assert all(sum(chances.values()) == 1 for chances in single)
    assert greatest_ratio(single) == staged.ratio  # tight
    assert table.epsilon == bound_ratio_loss(staged.ratio) <= 1
    pairs = greatest_ratio([whole_law(staged, value, 2) for value in range(k)])
    assert staged.ratio < pairs <= staged.permanent.ratio
    assert bound_ratio_loss(staged.permanent.ratio) <= 2


@pytest.mark.parametrize("name", ["rr", "krr"])
def test_many_reports_come_close_to_the_permanent_bound_and_never_above(name):
    staged = made(name, 2).mechanism
    ratios = [greatest_ratio([whole_law(staged, value, reports) for value in range(2)]) for reports in (1, 3, 6)]
    assert ratios[0] < ratios[1] < ratios[2] <= staged.permanent.ratio
    assert ratios[2] > staged.permanent.ratio * Fraction(9, 10)


@pytest.mark.parametrize(("name", "k"), STAGED)
def test_supports_are_those_of_both_stages(name, k):
    staged = made(name, k).mechanism
    true, other = support_of(staged)
    for value in range(k):
        drawn = whole_law(staged, value, 1)
        for category in range(k):
            supporting = sum(
                weight
                for (report,), weight in drawn.items()
                if (report == category if isinstance(report, int) else report[category // 8] >> category % 8 & 1)
            )
            assert supporting == (true if category == value else other)


@pytest.mark.parametrize(("name", "k"), [*STAGED, ("krr", 100), ("sue", 100), ("oue", 100)])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "1.9"])
def test_the_fresh_coin_is_the_boldest_that_fits(name, k, epsilon):
    table = made(name, k, epsilon=sf.PureDP(epsilon).epsilon)
    assert table.epsilon <= sf.PureDP(epsilon).epsilon
    fresh = table.mechanism.instantaneous
    bolder = (
        Kary(k, fresh.keep + 1, name) if isinstance(fresh, Kary) else Unary(k, fresh.one + 1, fresh.zero - 1, "sue")
    )
    assert bound_ratio_loss(TwoStage(table.mechanism.permanent, bolder).ratio) > sf.PureDP(epsilon).epsilon


def test_bulk_draws_are_two_draws():
    staged = made("sue", 9).mechanism
    script = bytes(range(256)) * 20
    values = np.array([3])
    source = Scripted(script)
    both = staged.draw(values, source)
    again = Scripted(script)
    kept = staged.permanent.draw(values, again)
    np.testing.assert_array_equal(both, staged.draw_again(kept, again))
    assert source.left.size == again.left.size == len(script) - 2 * 4 * 9


@pytest.mark.parametrize(("name", "k"), [("krr", 10), ("sue", 20), ("oue", 20)])
def test_intervals_cover_as_often_as_they_say(name, k):
    """People drawn from a population, each with a permanent report, and one report of each collected."""
    table, surveys, people = made(name, k), 1500, 1000
    shares = np.array([0.5, 0.2, 0.1, *[0.2 / (k - 3)] * (k - 3)])
    generator = np.random.default_rng(5)
    covered = narrow = 0
    for _ in range(surveys):
        values = generator.choice(k, people, p=shares)
        estimate = table.estimate(table.randomise(values))
        covered += estimate.low[1] <= shares[1] <= estimate.high[1]
        narrow += abs(estimate.frequency[1] - shares[1]) <= 0.8 * (estimate.high[1] - estimate.low[1]) / 2
    assert stats.binomtest(int(covered), surveys, 0.95).pvalue > FALSE_ALARM
    assert stats.binomtest(int(narrow), surveys, 0.95).pvalue < FALSE_ALARM


def test_only_what_fits_together_is_staged():
    with pytest.raises(InvalidParameter):
        TwoStage(Kary(3, 1 << 31), Kary(4, 1 << 31))
    with pytest.raises(InvalidParameter):
        TwoStage(Kary(3, 1 << 31), Unary(3, 3 << 30, 1 << 30, "sue"))
    with pytest.raises(InvalidParameter):
        sf.local.Randomiser(TwoStage(Kary(2, 3 << 30), Kary(2, 1 << 30)))  # reports the opposite answer more often
    for name, long, short in (("olh", TWO, ONE), ("krr", ONE, TWO), ("krr", ONE, ONE)):
        with pytest.raises(InvalidParameter):
            made(name, 3, long, short)


def test_the_description_shows_both_tables_and_shuffling_knows_them():
    table = made("sue", 5)
    assert set(table.describe()) == {"mechanism", "permanent", "instantaneous"}
    assert draw_one(table.mechanism.permanent, 1, join_words(*[HEADS] * 5)) == b"\x1f"
    bound = sf.local.bound_shuffling(table, 10_000)
    assert bound.specific
    assert bound.epsilon < table.epsilon / 4
