import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Scripted

import sfumato as sf
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.gaussian_dp import bound_delta, bound_root
from sfumato.kernel.mechanisms import GaussianNoise, choose_noise
from sfumato.kernel.samplers import discrete_laplace, make_geometric_coins
from sfumato.kernel.saturating_sums import LARGEST
from sfumato.lab.distributions.noise_masses import mass
from sfumato.standalone.mechanisms import additive_noise
from sfumato.standalone.mechanisms.additive_noise import choose_grid_and_noise


def on_integers(mechanism):
    """The noise for one whole number."""
    exponent, noise = choose_grid_and_noise(replace(mechanism.mechanism, of="integers"), 1)
    assert exponent == 0
    return noise


def on_grid(mechanism, size):
    """The grid's exponent, and the noise for so many reals."""
    return choose_grid_and_noise(replace(mechanism.mechanism, of="reals"), size)


def release_on_grid(mechanism, value, entropy):
    return additive_noise.release_on_grid(mechanism.mechanism, value, entropy)


EPSILONS = ["0.001", "0.1", "0.5", "1", "3", "20"]


WHOLE = {"of": "integers"}


@pytest.mark.parametrize(
    "mechanism", [sf.Laplace(1, 0.5, **WHOLE), sf.Laplace(3, "0.01", **WHOLE), sf.Gaussian(2, 0.1, **WHOLE)], ids=str
)
@pytest.mark.parametrize("value", [42, -7, [1, 2, 3], np.arange(12).reshape(3, 4)], ids=str)
def test_release_adds_exactly_the_scripted_noise(mechanism, value):
    script = bytes(SYSTEM.take(20_000))
    noise = on_integers(mechanism).draw(np.size(value), Scripted(script))
    released = release_on_grid(mechanism, value, Scripted(script))
    assert (np.asarray(released).reshape(-1) == np.asarray(value).reshape(-1) + noise).all()
    assert np.shape(released) == np.shape(value)


REAL = {"of": "reals"}
REALS = [sf.Laplace(1, 0.5, **REAL), sf.Laplace("0.25", 2), sf.Gaussian(2, 0.1, **REAL)]


@pytest.mark.parametrize("mechanism", REALS, ids=str)
@pytest.mark.parametrize("value", [0.0, 42.1, -7e5, [1.5, 2.25, 3.0]], ids=str)
def test_real_releases_are_grid_value_plus_noise(mechanism, value):
    script = bytes(SYSTEM.take(20_000))
    size = np.size(value)
    exponent, noise = on_grid(mechanism, size)
    drawn = noise.draw(size, Scripted(script))
    released = np.asarray(release_on_grid(mechanism, value, Scripted(script))).reshape(-1)
    for value_released, z, before in zip(released, drawn, np.asarray(value).reshape(-1), strict=True):
        steps = (Fraction(float(before)) / Fraction(2) ** exponent + Fraction(1, 2)).__floor__()
        assert Fraction(float(value_released)) == (steps + int(z)) * Fraction(2) ** exponent


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [1, 7])
def test_laplace_privacy_is_exact(epsilon, sensitivity):
    """For integer values `sensitivity` apart: |ln ratio| of the two laws is at most epsilon, at every output."""
    scale = on_integers(sf.Laplace(sensitivity, epsilon)).scale
    for output in range(-50, 51):
        # ln P(v -> output) - ln P(v' -> output) = (|output - v'| - |output - v|) / scale, exactly
        loss = Fraction(abs(output - sensitivity) - abs(output)) / scale
        assert abs(loss) <= Fraction(epsilon)
    assert Fraction(sensitivity) / scale == Fraction(epsilon)  # and it is tight: no budget is wasted


@pytest.mark.parametrize("rho", ["0.01", "0.5", "2"])
def test_gaussian_divergence_is_enumerated(rho):
    """Renyi divergences of the discrete Gaussian from its shifts: at most alpha * rho, and near it."""
    mechanism = sf.Gaussian(2, rho)
    variance = on_integers(mechanism).variance
    with mpmath.workprec(200):
        v = mpmath.mpf(variance.numerator) / variance.denominator
        reach = int(20 * mpmath.sqrt(v)) + 40
        mass = {z: mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * v)) for z in range(-reach - 2, reach + 3)}
        total = mpmath.fsum(mass.values())
        for alpha in (mpmath.mpf("1.01"), 2, 5, 20):
            moment = (
                mpmath.fsum(mass[z] ** alpha * mass[z + 2] ** (1 - alpha) for z in range(-reach, reach + 1)) / total
            )
            divergence = mpmath.log(moment) / (alpha - 1)
            assert divergence <= alpha * mpmath.mpf(rho) * (1 + mpmath.mpf(10) ** -12)
            if v > 1:
                assert divergence >= alpha * mpmath.mpf(rho) * mpmath.mpf("0.99")


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999999"])
def test_margin_is_within_the_textbook_bound(epsilon, confidence):
    beta = 1 - float(confidence)
    for sensitivity in (1, 10):
        mechanism = sf.Laplace(sensitivity, epsilon)
        assert mechanism.margin(confidence) <= sensitivity / float(epsilon) * math.log(1 / beta) + 1.5
        exponent, noise = on_grid(mechanism, 1)
        step = 2.0**exponent
        paid = float(noise.scale) * step  # (sensitivity + rounding) / epsilon
        margin = sf.Laplace(sensitivity, epsilon, of="reals").margin(confidence)
        assert margin <= paid * math.log(1 / beta) + 1.5 * step
        assert margin >= sensitivity / float(epsilon) * math.log(1 / beta) * 0.999
        assert paid <= sensitivity / float(epsilon) * 1.001


def test_margins_of_vectors_hold_for_all_entries_at_once():
    mechanism = sf.Laplace(1, 0.5, of="integers")
    assert mechanism.margin(size=1) < mechanism.margin(size=10) < mechanism.margin(size=10**6)
    single = 1 - 2 * math.exp(-0.5 * (mechanism.margin(size=10) + 1)) / (1 + math.exp(-0.5))
    assert single**10 >= 0.95
    assert (1 - 2 * math.exp(-0.5 * mechanism.margin(size=10)) / (1 + math.exp(-0.5))) ** 10 < 0.95


def test_gaussian_margin_is_near_the_normal_one():
    mechanism = sf.Gaussian(1, 0.005)  # deviation 10
    assert mechanism.margin(0.95) in (19, 20)
    assert sf.Gaussian(1, 0.005, of="reals").margin(0.95) == pytest.approx(19.6, rel=2e-3)
    assert mechanism.margin(0.95, size=10) > mechanism.margin(0.95)


TINY = ["5e-324", "1e-300", "1e-50"]
VAST = ["1e308", 10**400, "1e6", 3000]


@pytest.mark.parametrize("epsilon", TINY + VAST, ids=lambda value: str(value)[:8])
def test_extreme_parameters_are_refused(epsilon):
    for make in (lambda: sf.Laplace(1, epsilon).release(42), lambda: sf.Gaussian(1, epsilon).release(42)):
        with pytest.raises(sf.errors.InvalidParameter, match=r"epsilon|rho") as caught:
            make()
        assert caught.value.hint or "between 1e-400" in caught.value.message
    with pytest.raises(sf.errors.InvalidParameter):
        sf.choose([1, 2], sensitivity=1, epsilon=epsilon)
    with pytest.raises(sf.errors.InvalidParameter):
        sf.ThresholdedKeys(epsilon, 1e-6).release({"a": 5})


@pytest.mark.parametrize("epsilon", [*TINY, "1e300", 10**400], ids=lambda value: str(value)[:8])
def test_extreme_parameters_are_refused_for_reals(epsilon):
    for make in (
        lambda: sf.Laplace(1, epsilon, of="reals").release(42.5),
        lambda: sf.Gaussian(1, epsilon, of="reals").release(42.5),
    ):
        with pytest.raises(sf.errors.InvalidParameter):
            make()


@pytest.mark.parametrize("epsilon", ["1e-10", "1e-15", "1e-18", 1000])
def test_wide_but_carried_parameters_answer(epsilon):
    noisy = [sf.Laplace(1, epsilon).release(42) for _ in range(20)]
    assert all(isinstance(value, int) and abs(value) <= LARGEST for value in noisy)
    if epsilon != 1000:
        assert len(set(noisy)) > 15


def test_a_real_release_is_never_exact_however_large_epsilon():
    for epsilon in (100, 10**4, 10**6):
        assert len({sf.Laplace(1, epsilon, of="reals").release(0.5) for _ in range(30)}) > 20


@pytest.mark.parametrize("name", ["sensitivity", "epsilon"])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "x", None, True], ids=str)
def test_bad_parameters_are_named(name, bad):
    arguments = {"sensitivity": 1, "epsilon": 1} | {name: bad}
    with pytest.raises(sf.errors.SfumatoError, match=name):
        sf.Laplace(**arguments)
    gaussian = {"sensitivity": 1, "rho": 1} | {"rho" if name == "epsilon" else name: bad}
    with pytest.raises(sf.errors.SfumatoError, match="rho" if name == "epsilon" else name):
        sf.Gaussian(**gaussian)


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, "x", None, float("nan")], ids=str)
def test_bad_confidences(confidence):
    for mechanism in (sf.Laplace(1, 1), sf.Gaussian(1, 1)):
        with pytest.raises(sf.errors.InvalidParameter, match="confidence"):
            mechanism.margin(confidence)
    for of in (str, int, "whole", "Integers", 5):
        for make in (lambda of=of: sf.Laplace(1, 1, of=of), lambda of=of: sf.Gaussian(1, 1, of=of)):
            with pytest.raises(sf.errors.InvalidParameter, match="of must be 'integers' or 'reals'"):
                make()
    with pytest.raises(sf.errors.InvalidParameter, match="size"):
        sf.Laplace(1, 1).margin(size=0)


def test_saturation_never_raises():
    mechanism = sf.Laplace(1 << 40, "0.000001")
    for value in (LARGEST, -LARGEST):
        assert all(abs(mechanism.release(value)) <= LARGEST for _ in range(50))
    assert {mechanism.release(LARGEST) for _ in range(50)} >= {LARGEST}


FORMS = [
    int, float, np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32, np.float64, np.longdouble, np.array,
    Decimal, Fraction, str,
]  # fmt: skip
MECHANISMS = [
    sf.Laplace(1, 0.5), sf.Laplace("0.25", 2), sf.Laplace(1, 0.5, of="reals"), sf.Laplace("1.5", 1, of="integers"),
    sf.Gaussian(2, 0.1), sf.Gaussian("0.3", 0.1), sf.Gaussian(2, 0.1, of="reals"), sf.Laplace(1, 0.5, of="integers"),
]  # fmt: skip


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_type_of_a_value_never_matters(mechanism):
    """With the same bytes of entropy, 2 and 2.0 give the same answer of the same type, alone or in any array."""
    script = bytes(SYSTEM.take(30_000))

    def release(value):
        return release_on_grid(mechanism, value, Scripted(script))

    kind = int if mechanism.of == "integers" else float
    wanted = release(2)
    assert type(wanted) is kind
    for form in FORMS[:-1]:
        released = release(form(2))
        assert (released, type(released)) == (wanted, kind), form
    assert release(True) == release(1) == release(np.bool_(True)) == release(Decimal("1.00"))
    rows = release([[2, 3, 120], [0, 1, 2]])
    assert rows.dtype == (np.int64 if kind is int else np.float64)
    dtypes = ["i1", "u1", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "O"]
    arrays = [np.array([[2, 3, 120], [0, 1, 2]], dtype) for dtype in dtypes]
    mixed = [[2.0, np.int16(3), Decimal(120)], (False, True, Fraction(2))]
    for other in (*arrays, [[2.0, 3, 120], [0, 1, 2]], mixed):
        released = release(other)
        assert released.dtype == rows.dtype
        assert released.tolist() == rows.tolist()
    large = [2**61 + 255, 0, 1]
    for other in ([2**61 + 255, 0.0, 1], np.array(large, np.uint64), np.array(large, object)):
        assert release(other).tolist() == release(large).tolist()
    assert release([]).dtype == release(np.array([], "f4")).dtype == rows.dtype


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_no_number_is_refused(mechanism):
    """A refusal would distinguish neighbours: NaN counts as 0, and values beyond the grid are clamped to its ends."""
    odd = [
        math.nan, math.inf, -math.inf, 1e308, -5e-324, 2.5, -0.5, 2**63, -(2**63), 10**400, Decimal("-1e99999"),
        Decimal("1e-99999"), Decimal("NaN"), Decimal("Infinity"), Fraction(1, 3), np.float16("nan"),
        np.longdouble("inf"), None, pd.NA,
    ]  # fmt: skip
    kind = int if mechanism.of == "integers" else float
    for value in odd:
        assert type(mechanism.release(value)) is kind
        for many in ([value, 1, 2.5], np.array([value, 1, 2.5], object)):
            assert mechanism.release(many).shape == (3,)
    script = bytes(SYSTEM.take(30_000))
    for one, two in ((math.nan, 0), (math.inf, 10**400), (-(10**400), -math.inf), (Decimal("1e-99999"), 0.0)):
        for pair in ((one, two), ([one, 7], [two, 7.0])):
            assert np.all(
                release_on_grid(mechanism, pair[0], Scripted(script))
                == release_on_grid(mechanism, pair[1], Scripted(script))
            )


def test_losses_and_shapes():
    assert sf.Laplace(1, 1).loss == sf.PureDP(1)
    assert sf.Gaussian(1, "0.5").loss == sf.ZCDP("0.5")
    assert sf.Laplace(1, 1).release(np.ones((2, 2), np.float32)).shape == (2, 2)
    assert sf.Laplace(1, 1).release([]).shape == (0,)


@pytest.mark.parametrize("mechanism", [sf.Laplace(1, 0.5), sf.Gaussian(2, 0.1)], ids=str)
def test_a_vector_not_declared_whole_pays_for_its_rounding(mechanism):
    """It gets the noise of reals, and the result is rounded to whole numbers."""
    script = bytes(SYSTEM.take(20_000))
    reals = release_on_grid(replaced(mechanism, "reals"), [1.5, 2, -3.25], Scripted(script))
    whole = release_on_grid(mechanism, [1.5, 2, -3.25], Scripted(script))
    assert whole.tolist() == [math.floor(real + 0.5) for real in reals.tolist()]
    assert mechanism.margin(size=3) == math.floor(replaced(mechanism, "reals").margin(size=3) + 0.5)


def replaced(mechanism, of):
    spent = mechanism.epsilon if isinstance(mechanism, sf.Laplace) else mechanism.rho
    return type(mechanism)(mechanism.sensitivity, spent, of=of)


@given(st.decimals("0.001", "100", places=3), st.decimals("0.001", "100", places=3))
def test_margin_falls_with_epsilon_and_rises_with_sensitivity(one, two):
    small, large = sorted((one, two))
    assert sf.Laplace(1, small).margin() >= sf.Laplace(1, large).margin()
    assert sf.Laplace(small, 1, of="reals").margin() <= sf.Laplace(large, 1, of="reals").margin()


def test_mechanisms_read_well():
    assert repr(sf.Laplace(sensitivity=1, epsilon=0.5)) == "Laplace(sensitivity=1, epsilon=0.5)"
    assert repr(sf.Gaussian(Fraction(1, 3), Decimal("1e-9"))) == "Gaussian(sensitivity=1/3, rho=1e-9)"
    assert sf.Laplace(1, 0.5) == sf.Laplace("1", "0.50")
    assert repr(sf.Laplace(1, 0.5, of="reals")) == "Laplace(sensitivity=1, epsilon=0.5, of='reals')"
    assert repr(sf.Gaussian(1, 0.5, of="integers")) == "Gaussian(sensitivity=1, rho=0.5, of='integers')"
    assert repr(sf.Laplace("0.5", 1, of="reals")) == "Laplace(sensitivity=0.5, epsilon=1)"


@pytest.mark.parametrize(
    "scale", [Fraction(7), *(Fraction(1 << bits) for bits in (11, 19, 27, 35, 43, 51, 59))], ids=str
)
def test_one_draw_is_a_row_of_many(scale):
    """A single draw is computed with Python integers, many with numpy's, in words of 1 to 8 bytes: the same result."""
    width = make_geometric_coins(scale).digits + 3
    compared = set()
    for _ in range(200):
        row = bytes(SYSTEM.take(width))
        alone = Scripted(row + bytes([255] * 40))
        one = discrete_laplace(scale, 1, alone)
        if alone.left.size == 40:  # no byte was tied, and there was no tail
            many = discrete_laplace(scale, 3, Scripted(row * 3))
            assert many.tolist() == one.tolist() * 3
            compared.add(int(one[0]))
    assert min(compared) < 0 < max(compared)


def test_one_value_is_released_as_in_a_vector_of_one():
    for value in (5, -3, 2.25, -0.1):
        for mechanism in (sf.Laplace(1, 0.5), sf.Gaussian(1, 0.5), sf.Laplace("0.01", 2)):
            script = bytes(SYSTEM.take(4000))
            alone = release_on_grid(mechanism, value, Scripted(script))
            assert alone == release_on_grid(mechanism, [value], Scripted(script))[0]


def test_margins_at_any_confidence_and_size():
    for mechanism in (sf.Laplace(1, 1), sf.Gaussian(1, 1)):
        assert mechanism.margin("0." + "9" * 60, size=2) > mechanism.margin("0." + "9" * 20, size=2)
        assert mechanism.margin(size=np.int16(40)) == mechanism.margin(size=40)


def test_errors_and_mechanisms_cross_processes():
    import copy
    import pickle

    with pytest.raises(sf.errors.InvalidParameter) as caught:
        sf.Laplace(0, 1)
    for twin in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value), copy.deepcopy(caught.value)):
        assert type(twin) is sf.errors.InvalidParameter
        assert (str(twin), twin.parameter, twin.hint) == (str(caught.value), caught.value.parameter, caught.value.hint)
    for thing in (
        sf.Laplace(1, 0.5),
        sf.PrivateChoice(1, 2),
        sf.ThresholdedKeys(1, 1e-6),
        sf.ZCDP(1),
        sf.RandomizedResponse(1),
    ):
        assert pickle.loads(pickle.dumps(thing)) == thing == copy.deepcopy(thing)
        assert hash(pickle.loads(pickle.dumps(thing))) == hash(thing)


def test_rounded_noise_pays_for_the_sensitivity():
    """The divergence of a count that moves by its sensitivity, summed over all outputs, is that of mu-GDP at most."""
    loss = sf.GDP("0.5")
    noise = choose_noise(Fraction(3), Fraction(9), loss)
    assert noise == GaussianNoise(Fraction(18), rounded=True)
    here, there = ([float(mass(noise, at - moved)) for at in range(-60, 61)] for moved in (0, 3))
    for epsilon in (0.0, 0.2, 0.7, 2.0):
        found = sum(max(p - math.exp(epsilon) * q, 0) for p, q in zip(here, there, strict=True))
        allowed = float(bound_delta(bound_root(Fraction("0.5")), Fraction(epsilon)))
        assert 0.9 * allowed <= found <= allowed + 1e-12
