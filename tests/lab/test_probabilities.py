"""Exact probabilities of every mechanism: against the code with scripted entropy, and between neighbours."""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import product

import mpmath
import numpy as np
import pytest
from bin_flips import REST, compute_top_law, enumerate_flips
from local_laws import measure_law
from scripted import Forced

import sfumato as sf
from sfumato.accuracy.crossing_margins import balance_noise
from sfumato.errors import InvalidParameter
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import enclose, find_leading_bits
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.samplers import make_geometric_coins
from sfumato.lab.distributions.enclosed import enclose_exp
from sfumato.lab.distributions.lattice_distribution import VectorDistribution
from sfumato.standalone.mechanisms.additive_noise import release_on_grid
from sfumato.standalone.mechanisms.key_release import release_keys

FINE = Fraction(1, 10**40)
FALSE_ALARM = 1e-6


def at_most(ratio, epsilon):
    return ratio.low <= enclose_exp(Fraction(epsilon)).high


def tight(ratio, epsilon, slack=FINE):
    return ratio.high >= enclose_exp(Fraction(epsilon)).low * (1 - slack)


def falls_of(mechanism, value):
    """Output -> probability, by playing every way that the eight coins of one small draw can fall through the code."""
    scale = sf.lab.probabilities(mechanism, value).noise.scale
    coins = make_geometric_coins(scale)
    heads = [Fraction(enclose(coin, 400)[0], 1 << 400) for coin in coins.coins.probabilities]

    @lru_cache(None)
    def byte(coin, level):
        return find_leading_bits(coins.coins.probabilities[coin], 8 * level + 8) & 255

    found = {}
    for fall in product((False, True), repeat=len(heads)):
        weight = math.prod(chance if head else 1 - chance for chance, head in zip(heads, fall, strict=True))
        if fall[coins.digits] and fall[coins.digits + 1]:  # nonzero with a long tail, which further coins would extend
            weight *= 1 - heads[coins.digits]
        output = release_on_grid(mechanism.mechanism, value, Forced([fall], byte))
        found[output] = found.get(output, 0) + weight
    return found


@pytest.mark.parametrize("epsilon", ["0.2", "1", "3"])
def test_laplace_is_what_the_code_draws(epsilon):
    mechanism = sf.Laplace(sensitivity=1, epsilon=epsilon)
    exact = sf.lab.probabilities(mechanism, 40)
    for output, chance in falls_of(mechanism, 40).items():
        if abs(output - 40) < 32:  # beyond, draws with more digits add to it
            assert abs(chance - exact.p(output).low) <= FINE * chance, output


@pytest.mark.parametrize(
    "mechanism",
    [sf.Laplace(1, 1), sf.Laplace(3, "0.5"), sf.Laplace(1, 1, of="reals"), sf.Laplace("0.12", "0.5")],
    ids=repr,
)
def test_laplace_neighbours_are_within_epsilon_and_reach_it(mechanism):
    first = sf.lab.probabilities(mechanism, 7)
    second = sf.lab.probabilities(mechanism, 7 + mechanism.sensitivity)
    slack = FINE if mechanism.of == "integers" else Fraction(1, 1000)  # a fine grid also pays for its rounding
    for one, other in ((first, second), (second, first)):
        ratio = one.greatest_ratio(other)
        assert at_most(ratio, mechanism.epsilon)
        assert tight(ratio, mechanism.epsilon, slack)
        assert one.delta(other, mechanism.epsilon).high == 0
        assert one.delta(other, mechanism.epsilon / 2).low > 0


def test_a_wrong_scale_fails_the_ratio_test():
    """Negative control: noise of scale 1 instead of sensitivity/epsilon, and noise of twice the scale."""
    mechanism = sf.Laplace(sensitivity=2, epsilon=1)
    first, second = sf.lab.probabilities(mechanism, 0), sf.lab.probabilities(mechanism, 2)
    wrong = [replace(side, noise=LaplaceNoise(Fraction(1))) for side in (first, second)]
    assert not at_most(wrong[0].greatest_ratio(wrong[1]), 1)
    wasteful = [replace(side, noise=LaplaceNoise(Fraction(4))) for side in (first, second)]
    assert not tight(wasteful[0].greatest_ratio(wasteful[1]), 1)


@pytest.mark.parametrize("mechanism", [sf.Laplace(1, 1), sf.Gaussian(1, "0.5")], ids=repr)
def test_a_lattice_adds_up(mechanism):
    found = sf.lab.probabilities(mechanism, 3)
    low, high = found.range("0.999")
    listed = dict(found.items("0.999"))
    assert list(listed) == list(range(low, high + 1))
    total = sum(listed.values(), 0 * found.p(3))
    assert total.low >= Fraction("0.999")
    assert abs(total.low - found.total(low, high).low) < FINE
    running = 0 * found.p(3) + (found.cdf(low) - found.p(low))
    for outcome, chance in listed.items():
        running = running + chance
        assert abs(running.low - found.cdf(outcome).low) < FINE
        assert found.cdf(outcome + 0.5).low == found.cdf(outcome).low
    assert found.p(3.5).high == 0
    assert found.p(math.nan).high == found.p(math.inf).high == 0


def test_ends_and_large_floats_stand_for_several_steps():
    """At the end of the 64-bit range, all noise beyond comes out as the end itself."""
    end = (1 << 63) - 1
    found = sf.lab.probabilities(sf.Laplace(1, 1), end)
    assert found.p(end).low > Fraction(1, 2)
    assert abs((found.cdf(end)).low - 1) == 0
    reals = sf.lab.probabilities(sf.Laplace(1, 1, of="reals"), 1.5 * 2.0**45)  # more than 2**53 steps of the grid
    outcome = reals.output(reals.centre)
    neighbour = np.nextafter(outcome, math.inf)
    step = float(reals.step)
    assert neighbour - outcome > step
    many = round((neighbour - outcome) / step)
    assert reals.p(outcome).low > sf.lab.probabilities(sf.Laplace(1, 1, of="reals"), 0).p(0.0).low * (many - 1)
    assert reals.p(outcome + step / 4 if outcome + step / 4 != outcome else math.pi).high == 0


def test_a_vector_that_is_not_declared_whole_is_rounded_at_the_end():
    """Its noise is on a finer grid; an integer collects the steps around it, and all integers have probability 1."""
    found = sf.lab.probabilities(sf.Laplace(1, 1), [4, 5])
    assert isinstance(found, VectorDistribution)
    entry = found.entries[0]
    assert entry.exponent < 0
    total = sum((entry.p(outcome) for outcome in range(-60, 70)), 0 * entry.p(4))
    assert abs(1 - total.low) < Fraction(1, 10**20)
    assert found.p((4, 5)).low == pytest.approx(float(entry.p(4)) ** 2)
    moved = sf.lab.probabilities(sf.Laplace(1, 1), [5, 5])
    assert at_most(found.greatest_ratio(moved), 1)
    with pytest.raises(InvalidParameter):
        found.p((1,))


def test_gaussian_ratios_have_no_bound_and_delta_is_the_tight_one():
    mechanism = sf.Gaussian(1, "0.5")
    first, second = sf.lab.probabilities(mechanism, 0), sf.lab.probabilities(mechanism, 1)
    with pytest.raises(InvalidParameter, match="no bound"):
        first.greatest_ratio(second)
    exact = first.delta(second, 2)
    listed = [(first.p(z), second.p(z)) for z in range(-40, 41)]
    growth = enclose_exp(Fraction(2))
    summed = sum(max(Fraction(0), (one - growth * other).low) for one, other in listed)
    assert abs(exact.low - summed) < FINE
    claimed = mechanism.loss.to_approx("1e-6")
    assert first.delta(second, claimed.epsilon).high <= Fraction(claimed.delta)  # what the ledger would charge holds
    narrow = [replace(side, noise=GaussianNoise(Fraction(1, 4))) for side in (first, second)]
    assert narrow[0].delta(narrow[1], claimed.epsilon).low > Fraction(claimed.delta)  # negative control


@pytest.mark.parametrize("scores", [[3, 9, 4], [0, 0, 0.5, 2], [5]], ids=str)
@pytest.mark.parametrize("monotonic", [True, False])
def test_choices_are_enumerated(scores, monotonic):
    mechanism = sf.PrivateChoice(1, "1.5", monotonic)
    found = sf.lab.probabilities(mechanism, scores)
    assert found.outcomes == tuple(range(len(scores)))
    with mpmath.workprec(300):
        best = max(map(Fraction, scores))
        truth = enumerate_flips([(best - Fraction(score)) / mechanism.spread for score in scores])
        for chance, exact in zip(found.masses, truth, strict=True):
            assert mpmath.mpf(chance.low.numerator) / chance.low.denominator <= exact
            assert exact <= mpmath.mpf(chance.high.numerator) / chance.high.denominator
            assert chance.width < FINE
    assert found.total.low <= 1 <= found.total.high


def test_choices_of_neighbours():
    """Tight for two candidates; scores that are declared monotonic and are not break the bound (negative control)."""
    far = sf.lab.probabilities(sf.PrivateChoice(1, 1), [30, 0]).greatest_ratio(
        sf.lab.probabilities(sf.PrivateChoice(1, 1), [29, 1])
    )
    assert at_most(far, 1)
    back = sf.lab.probabilities(sf.PrivateChoice(1, 1), [29, 1]).greatest_ratio(
        sf.lab.probabilities(sf.PrivateChoice(1, 1), [30, 0])
    )
    assert at_most(back, 1)
    assert tight(back, 1, Fraction(1, 1000))
    careless = sf.PrivateChoice(1, 1, monotonic=True)
    wrong = sf.lab.probabilities(careless, [29, 1]).greatest_ratio(sf.lab.probabilities(careless, [30, 0]))
    assert not at_most(wrong, 1)


def begin(monotonic):
    noise = balance_noise(Fraction(1), Decimal(1), monotonic, 100)
    return AboveThreshold(10, Fraction(1), Decimal(1), monotonic, noise)


def crossing_by_sums(sequence, values):
    """The threshold's noise term by term, with floats."""
    noise = sequence.noise
    raised = np.arange(20_000)
    alive = -np.expm1(-float(1 / noise.threshold_scale)) * np.exp(-raised * float(1 / noise.threshold_scale))
    law = []
    for value in values:
        short = np.maximum(sequence.threshold + noise.rise + raised - value, 0)
        heads = np.exp(-short * float(1 / noise.value_scale))
        law.append((alive * heads).sum())
        alive = alive * (1 - heads)
    return [*law, alive.sum()]


@pytest.mark.parametrize("values", [[0], [30, 2, 50, 11], [100] * 3, [-5, -5, 5000]], ids=str)
@pytest.mark.parametrize("monotonic", [True, False])
def test_sequences_are_summed(values, monotonic):
    sequence = begin(monotonic)
    found = sf.lab.probabilities(sequence, values)
    assert found.outcomes == (*range(len(values)), None)
    assert [float(chance) for chance in found.masses] == pytest.approx(crossing_by_sums(sequence, values), abs=1e-12)
    assert found.total.low <= 1 <= found.total.high
    assert found.total.width < FINE


@pytest.mark.parametrize("monotonic", [True, False])
def test_sequences_of_neighbours(monotonic):
    sequence = begin(monotonic)
    before, after = [20] * 40 + [20], [21] * 40 + ([20] if monotonic else [19])
    first, second = (sf.lab.probabilities(sequence, values) for values in (before, after))
    worst = max(first.greatest_ratio(second).low, second.greatest_ratio(first).low)
    assert worst <= enclose_exp(Fraction(1)).high
    assert worst > enclose_exp(Fraction(1, 2)).low  # half of the noise would be caught
    loud = replace(sequence.noise, value_scale=sequence.noise.value_scale / 8)
    with pytest.raises(sf.errors.KernelFault):  # the kernel refuses noise that is too small
        AboveThreshold(10, Fraction(1), Decimal(1), monotonic, loud)


def test_nothing_is_drawn_from_a_sequence():
    sequence = begin(True)
    sf.lab.probabilities(sequence, [100, 100])
    assert not sequence.finished
    assert sequence._bar is None


BINS = [0, 3, 9, 2]


@pytest.mark.parametrize(
    "choice",
    [
        QuantileChoice((Fraction(1, 2),), 4, 1, Neighbours.ADD_REMOVE, False, Decimal(1)),
        QuantileChoice((Fraction(1, 4), Fraction(3, 4)), 4, 1, Neighbours.REPLACE_ONE, False, Decimal(2)),
        ExtremeChoice(True, 4, 1, Neighbours.ADD_REMOVE, Decimal(1)),
        ExtremeChoice(False, 4, 1, Neighbours.REPLACE_ONE, Decimal(2)),
        ModeChoice(1, 4, 1, Neighbours.ADD_REMOVE, Decimal(1)),
        ModeChoice(2, 4, 1, Neighbours.ADD_REMOVE, Decimal(1)),
        ModeChoice(4, 4, 1, Neighbours.REPLACE_ONE, Decimal(2)),
    ],
    ids=lambda choice: type(choice).__name__,
)
def test_bins_are_what_the_code_chooses(choice):
    """Sampled against the exact law: for each bin, within the bound of a binomial share at FALSE_ALARM."""
    found = sf.lab.probabilities(choice, BINS)
    assert found.total.low <= 1 <= found.total.high
    rows = 20_000
    drawn = choice.choose_cells(np.tile(np.array(BINS, np.int64), (rows, 1)), SYSTEM)
    bound = math.sqrt(math.log(2 * len(found) / FALSE_ALARM) / (2 * rows))
    for outcome, chance in found.items():
        assert abs(drawn.count(outcome) / rows - float(chance)) < bound, outcome
    fuller = sf.lab.probabilities(choice, [0, 3, 10, 2])
    assert at_most(found.greatest_ratio(fuller), choice.epsilon)
    assert at_most(fuller.greatest_ratio(found), choice.epsilon)
    quiet = replace(choice, epsilon=8 * choice.epsilon)  # negative control: an eighth of the noise
    one, other = sf.lab.probabilities(quiet, [0, 3, 3, 2]), sf.lab.probabilities(quiet, [0, 3, 4, 2])
    worst = max(one.greatest_ratio(other).low, other.greatest_ratio(one).low)
    assert worst > enclose_exp(Fraction(choice.epsilon)).high


@pytest.mark.parametrize("k", [2, 3])
def test_fullest_bins_are_enumerated(k):
    """All noisy weights of three bins within REST steps, ordered as the code orders them."""
    choice = ModeChoice(k, 3, 1, Neighbours.ADD_REMOVE, Decimal(2))
    mass = np.array([float(sf.lab.probabilities(LaplaceNoise(choice.spread), 0).p(z)) for z in range(-REST, REST + 1)])
    truth = compute_top_law((2, 3, 3), mass, k)
    found = sf.lab.probabilities(choice, [2, 3, 3])
    assert len(found) == 6
    for outcome, chance in found.items():
        assert float(chance) == pytest.approx(truth[np.array(outcome) @ np.array([9, 3, 1])[:k]], rel=1e-4)
        assert chance.width < Fraction(1, 10**9)
    assert found.total.low <= 1 <= found.total.high


def test_too_many_bins_are_refused():
    with pytest.raises(InvalidParameter, match="k=1"):
        sf.lab.probabilities(ModeChoice(5, 60, 1, Neighbours.ADD_REMOVE, Decimal("0.1")), [1] * 60)
    with pytest.raises(InvalidParameter):
        sf.lab.probabilities(ModeChoice(1, 4, 1, Neighbours.ADD_REMOVE, Decimal(1)), [1, 2])


def test_keys_come_out_as_the_rule_says():
    keys = sf.ThresholdedKeys(1, "1e-4")
    found = sf.lab.probabilities(keys, {"Rome": 12, "Oslo": 1, "nobody": 0})
    noisy = {n: found.p({"Rome": n}) for n in range(keys.threshold, keys.threshold + 40)}
    seen = sum(noisy.values(), 0 * found.p({}))
    alone = found.released("Rome") * (1 - found.released("Oslo"))
    assert abs(seen.low - alone.low) < Fraction(1, 10**12)
    assert found.released("nobody").high == found.p({"elsewhere": 50}).high == 0
    assert found.p({"Rome": keys.threshold - 1}).high == 0
    shares = [bool(release_keys(keys.rule, {"Rome": 12}, SYSTEM)) for _ in range(4000)]
    assert abs(sum(shares) / 4000 - float(found.released("Rome"))) < math.sqrt(math.log(2 / FALSE_ALARM) / 8000)


def test_keys_of_neighbours_stay_within_delta():
    keys = sf.ThresholdedKeys(1, "1e-4")
    for one, other in (({"a": 1}, {}), ({"a": 9}, {"a": 8}), ({"a": 8}, {"a": 9}), ({}, {"a": 1})):
        first, second = sf.lab.probabilities(keys, one), sf.lab.probabilities(keys, other)
        assert first.delta(second, 1).high <= Fraction(keys.delta), (one, other)
    lonely = sf.lab.probabilities(keys, {"a": 1}).delta(sf.lab.probabilities(keys, {}), 1)
    assert lonely.low > Fraction(keys.delta) / 3  # a threshold that is one lower would not hold
    lower = sf.lab.probabilities(keys, {"a": 2}).released("a")  # one more person is a threshold that is one lower
    assert lower.low > Fraction(keys.delta)


@pytest.mark.parametrize("name", ["rr", "krr", "subset", "oue", "sue", "olh", "hadamard"])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_reports_on_categories_are_the_measured_laws(name, epsilon):
    """Equal as Fractions to the law that is measured from the code with scripted words."""
    randomiser = sf.local.randomiser(name, k=2 if name == "rr" else 4, epsilon=epsilon)
    laws = [sf.lab.probabilities(randomiser, value) for value in range(randomiser.k)]
    for value, found in enumerate(laws):
        measured = measure_law(randomiser.mechanism, value)
        assert {outcome: chance.low for outcome, chance in found.items() if chance.low} == measured
        assert found.exact
        assert found.total.low == 1
    worst = max(one.greatest_ratio(other).low for one in laws for other in laws)
    assert worst == max(randomiser.mechanism.ratio, 1 / randomiser.mechanism.ratio)  # tight
    assert at_most(laws[0].greatest_ratio(laws[1]), epsilon)
    assert sf.lab.report_probability(randomiser, 0, laws[0].outcomes[1]) == laws[0].masses[1]


def test_a_wrong_table_is_noticed():
    """Negative control: the coin of another epsilon gives other probabilities than the code."""
    right, wrong = (sf.local.randomiser("krr", k=4, epsilon=epsilon) for epsilon in ("1", "1.1"))
    found = sf.lab.probabilities(wrong, 0)
    assert {outcome: chance.low for outcome, chance in found.items()} != measure_law(right.mechanism, 0)
    assert not at_most(found.greatest_ratio(sf.lab.probabilities(wrong, 1)), 1)


def test_exact_responses_reach_their_epsilon():
    for epsilon in ("0.1", "1", "5"):
        coin = sf.RandomizedResponse(epsilon)
        yes, no = sf.lab.probabilities(coin, True), sf.lab.probabilities(coin, False)
        assert at_most(yes.greatest_ratio(no), epsilon)
        assert tight(yes.greatest_ratio(no), epsilon)
        many = sf.KaryResponse(5, epsilon)
        assert tight(sf.lab.probabilities(many, 3).greatest_ratio(sf.lab.probabilities(many, 0)), epsilon)
    two_coins = sf.lab.probabilities(sf.RandomizedResponse(truth=Fraction(3, 4)), True)
    assert two_coins.exact
    assert two_coins.p(True).low == Fraction(3, 4)
    assert two_coins.p("maybe").high == 0


@pytest.mark.parametrize("name", ["duchi", "piecewise", "hybrid", "laplace"])
def test_reports_on_numbers_are_unbiased_and_private(name):
    from sfumato.local.randomisers.mean_values import list_report_numbers

    randomiser = sf.local.mean_randomiser(name, lower=0, upper=8, epsilon=1)
    numbers = list_report_numbers(randomiser.table)
    laws = []
    for value in (0, 3, 8):
        found = sf.lab.probabilities(randomiser, value)
        assert found.exact
        assert found.total.low == 1
        mean = sum(chance.low * number for chance, number in zip(found.masses, numbers, strict=True))
        assert mean == Fraction(value, 8)  # what a report stands for is unbiased, exactly
        laws.append(found)
    for one, other in product(laws, laws):
        assert at_most(one.greatest_ratio(other), 1)
    drawn = np.bincount(randomiser.randomise(np.full(20_000, 3.0)), minlength=len(laws[1])) / 20_000
    bound = math.sqrt(math.log(2 / FALSE_ALARM) / 40_000)
    assert np.abs(np.cumsum(drawn) - np.cumsum([float(chance) for chance in laws[1].masses])).max() < bound


@pytest.mark.parametrize("method", ["split", "sample"])
def test_reports_on_questions(method):
    asked = sf.local.questions(3, 1, method)
    first, second = sf.lab.probabilities(asked, [1, 0, 1]), sf.lab.probabilities(asked, [0, 1, 0])
    assert first.exact
    assert first.total.low == 1
    assert at_most(first.greatest_ratio(second), 1)
    assert tight(first.greatest_ratio(second), 1, Fraction(1, 10**6))


def test_memoised_and_long_reports():
    staged = sf.local.memoise("oue", k=3, longitudinal_epsilon=Decimal(2), epsilon=Decimal(1))
    first, second = sf.lab.probabilities(staged, 0), sf.lab.probabilities(staged, 2)
    assert first.total.low == 1
    assert first.greatest_ratio(second).low == staged.mechanism.ratio
    wide = sf.local.randomiser("oue", k=64, epsilon=1)
    with pytest.raises(InvalidParameter, match="report_probability"):
        sf.lab.probabilities(wide, 0)
    report = wide.randomise(5)
    assert 0 < sf.lab.report_probability(wide, 5, report).low < 1


def test_reports_of_heavy_hitters_add_up():
    """For one group and seed, the reports with all hashes have the probability of that group and seed."""
    hitters = sf.local.heavy_hitters(length=2, epsilon=1)
    report = np.array(hitters.randomise("ab"))
    total = Fraction(0)
    worst = Fraction(0)
    for hashed in range(1 << hitters.hash_bits):
        report[1] = hashed
        here, there = (sf.lab.report_probability(hitters, word, report).low for word in ("ab", "zz"))
        total += here
        worst = max(worst, here / there)
    assert total == Fraction(1, len(hitters.lengths) << hitters.hash_bits * hitters.lengths[report[0]])
    assert worst <= enclose_exp(Fraction(hitters.epsilon)).high
    with pytest.raises(InvalidParameter, match="report_probability"):
        sf.lab.probabilities(hitters, "ab")


@pytest.mark.parametrize("thing", [None, 3, "Laplace", sf.PureDP(1)], ids=str)
def test_what_is_no_mechanism_is_refused(thing):
    with pytest.raises(InvalidParameter, match="mechanism"):
        sf.lab.probabilities(thing, 1)
