from decimal import Decimal
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from bin_flips import enumerate_flips
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.kernel import bin_choice
from sfumato.kernel.entropy import SYSTEM
from sfumato.standalone.mechanisms.score_choice import choose_index


def exponents_of(mechanism, scores):
    """The exponents that the code really flips with, taken from its exact fallback."""
    seen = {}

    def recorded(approximate, exact, entropy):
        for index in range(approximate.size):
            seen[index] = exact(index)
            if seen[index] > 2**900:
                assert approximate[index] > 2.0**899
                continue
            assert abs(Fraction(float(approximate[index])) - seen[index]) <= Fraction(1, 1 << 44) * (1 + seen[index])
        return approximate == approximate.min()

    original, bin_choice.flip_exp_neg = bin_choice.flip_exp_neg, recorded
    try:
        choose_index(scores, mechanism.spread, SYSTEM)
    finally:
        bin_choice.flip_exp_neg = original
    return [seen[index] for index in range(len(scores))]


scores_and_moves = st.integers(2, 6).flatmap(
    lambda count: st.tuples(
        st.lists(st.integers(-5, 5), min_size=count, max_size=count),
        st.lists(st.fractions(-1, 1, max_denominator=4), min_size=count, max_size=count),
    )
)


@settings(max_examples=60, deadline=None)
@given(scores_and_moves, st.sampled_from(["0.1", "1", "4"]), st.booleans())
def test_choice_privacy_is_exact(case, epsilon, monotonic):
    """Random neighbouring scores: every candidate's probability changes by at most e^epsilon."""
    scores, moves = case
    if monotonic:
        moves = [abs(move) for move in moves]
    mechanism = sf.PrivateChoice(1, epsilon, monotonic)
    moved = [float(score + move) for score, move in zip(scores, moves, strict=True)]
    with mpmath.workprec(120):
        bound = mpmath.exp(mpmath.mpf(epsilon)) * (1 + mpmath.mpf(10) ** -25)
        one, two = enumerate_flips(exponents_of(mechanism, scores)), enumerate_flips(exponents_of(mechanism, moved))
        for p, q in zip(one, two, strict=True):
            assert p <= bound * q
            assert q <= bound * p


def test_choice_privacy_is_tight_and_can_fail():
    """Negative control: claiming monotonic for scores that are not breaks the bound."""
    with mpmath.workprec(120):
        careless = sf.PrivateChoice(1, 4, monotonic=True)
        one = enumerate_flips(exponents_of(careless, [0, 0]))
        two = enumerate_flips(exponents_of(careless, [1, -1]))
        assert max(p / q for p, q in zip(one, two, strict=True)) > mpmath.exp(4)
        honest = sf.PrivateChoice(1, 4)
        two = enumerate_flips(exponents_of(honest, [1, -1]))
        assert max(p / q for p, q in zip(one, two, strict=True)) <= mpmath.exp(4)


def test_choice_mass_is_exact():
    """An even pick among the survivors is permute-and-flip: compared with flipping in every order."""
    from itertools import permutations

    survive = [Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(1, 5)]
    in_orders = [Fraction(0)] * 4
    for order in permutations(range(4)):
        alive = Fraction(1, 24)
        for index in order:
            in_orders[index] += alive * survive[index]
            alive *= 1 - survive[index]
    evenly = [Fraction(0)] * 4
    for heads in product((False, True), repeat=4):
        weight = Fraction(1)
        for p, head in zip(survive, heads, strict=True):
            weight *= p if head else 1 - p
        for index, head in enumerate(heads):
            evenly[index] += weight / sum(heads) if head else 0
    assert in_orders == evenly
    assert sum(evenly) == 1


def test_the_pick_among_survivors_is_even(monkeypatch):
    picked = []
    monkeypatch.setattr(bin_choice, "flip_exp_neg", lambda approximate, exact, entropy: np.array([1, 0, 1, 1], bool))
    monkeypatch.setattr(bin_choice, "uniform_below", lambda bound, size, entropy: picked.append(bound) or np.array([2]))
    assert choose_index([4, 4, 4, 4], sf.PrivateChoice(1, 1).spread, SYSTEM) == 3
    assert picked == [3]


@pytest.mark.parametrize("size", [2, 10, 1000])
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.9999"])
def test_choice_margin_holds_in_the_worst_case(size, confidence):
    mechanism = sf.PrivateChoice(1, "0.5")
    margin = mechanism.margin(confidence, size=size)
    with mpmath.workprec(100):
        for slack, holds in ((0, True), (-1e-4, False)):
            p = mpmath.exp(-(margin * (1 + slack)) / mpmath.mpf(4))  # everyone else just beyond the margin
            bad = 1 - (1 - (1 - p) ** size) / (size * p)
            assert (bad <= 1 - mpmath.mpf(confidence)) is holds or margin < 1e-6  # two candidates: half is free
        assert margin <= 4 * mpmath.log(size / (1 - mpmath.mpf(confidence)))  # the exponential mechanism's bound


def test_choice_finds_the_best_and_sometimes_not():
    scores = np.zeros(1000)
    scores[123] = 500
    assert sf.choose(scores, sensitivity=1, epsilon=1) == 123
    assert len({sf.choose([0, 0, 0, 0], sensitivity=1, epsilon=1) for _ in range(200)}) == 4
    assert sf.choose([7], sensitivity=1, epsilon=1) == 0
    assert sf.choose([1e308, -1e308], sensitivity=1, epsilon=1) == 0
    assert sf.PrivateChoice(1, 1).margin(size=1) == 0


@pytest.mark.parametrize("scores", [[], np.array([]), ["a"], None, ["x", 1], [[1, 2]], [[1], [1, 2]], 5], ids=str)
def test_bad_scores(scores):
    """An argument that is not a list of numbers is refused, because of its type and shape alone."""
    with pytest.raises(sf.errors.InvalidParameter):
        sf.choose(scores, sensitivity=1, epsilon=1)


def test_scores_as_far_apart_as_they_may_be():
    """No range of valid scores is refused: a refusal would distinguish neighbours."""
    largest = 2**63 - 1
    assert sf.choose([largest, -largest], sensitivity=1, epsilon=1) == 0
    assert sf.choose([-largest, largest - 1, largest], sensitivity=1, epsilon=100) in (1, 2)
    assert exponents_of(sf.PrivateChoice(1, 2), [largest, -largest, largest - 3]) == [0, 2 * largest, 3]


ODD = [
    float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 10**400, -(10**400), True, 0, -0.0, 2**63, -(2**63),
    Fraction(1, 3), Decimal("-1e9999"), Decimal("NaN"), Decimal("1e-9999"), np.float16("inf"), np.uint64(2**64 - 1),
    np.longdouble(2) ** 2000,
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_no_score_is_refused(odd):
    """Whatever one person does to a score, a choice is made, and it equals the choice for the score as parsed."""
    for scores in ([odd, 5, 7.5], [odd, 2**53 + 1, 1], [odd, 3], np.array([odd, 3], object), [odd, odd], [odd]):
        assert 0 <= sf.choose(scores, sensitivity=1, epsilon="0.01") < len(scores)
        first, *_ = exponents_of(sf.PrivateChoice(1, 2), scores)
        assert first >= 0
    read = {"nan": 0, "inf": largest_double, "-inf": -largest_double}.get(str(odd).lower())
    if read is not None:
        assert exponents_of(sf.PrivateChoice(1, 2), [odd, 5]) == exponents_of(sf.PrivateChoice(1, 2), [read, 5])


largest_double = int(np.finfo(np.float64).max)


def test_the_type_of_a_score_never_matters():
    mechanism = sf.PrivateChoice(1, 2)
    wanted = exponents_of(mechanism, [2**53 + 1, 3, 1])
    for scores in (
        [2**53 + 1, 3.0, True], np.array([2**53 + 1, 3, 1], np.uint64), [Fraction(2**53 + 1), Decimal("3.00"), 1],
        np.array([2**53 + 1, 3, 1], object), (np.longdouble(2**53 + 1), 3, 1),
    ):  # fmt: skip
        assert exponents_of(mechanism, scores) == wanted
    assert wanted == [0, 2**53 - 2, 2**53]


def test_held_scores_move_no_further_than_scores():
    """Two scores within the sensitivity stay within it after clamping to the largest double."""
    edge = Fraction(largest_double)
    for one, two in ((edge - 1, edge), (edge, edge + 1), (edge + 5, edge + 6), (-edge - 1, -edge)):
        low, high = (exponents_of(sf.PrivateChoice(1, 2), [score, 0, Fraction(1, 2)])[1] for score in (one, two))
        assert abs(low - high) <= 1


def test_margins_hold_at_any_confidence():
    """P(bad) = 1 - (1 - (1-p)^k)/(kp) cancels in doubles: checked with 80 digits."""
    with mpmath.workprec(300):
        for nines in (3, 6, 7, 10, 15, 20, 40):
            for size in (2, 1000):
                margin = sf.PrivateChoice(1, 1).margin("0." + "9" * nines, size=size)
                p = mpmath.exp(-mpmath.mpf(margin) / 2)
                bad = 1 - (1 - (1 - p) ** size) / (size * p)
                assert bad <= mpmath.mpf(10) ** -nines
                assert bad >= mpmath.mpf(10) ** -nines * (1 - mpmath.mpf(10) ** -2)


def test_bad_choice_parameters():
    with pytest.raises(sf.errors.InvalidParameter, match="monotonic"):
        sf.PrivateChoice(1, 1, monotonic="yes")
    assert repr(sf.PrivateChoice(1, 0.5)) == "PrivateChoice(sensitivity=1, epsilon=0.5, monotonic=False)"
    assert sf.PrivateChoice(1, 0.5).loss == sf.PureDP(0.5)
