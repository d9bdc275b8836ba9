import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scripted import Scripted

import sfumato as sf
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.keys import release_keys
from sfumato.kernel.samplers import discrete_laplace

CASES = [
    (epsilon, delta, groups, neighbours)
    for epsilon in ("0.1", "1", "5")
    for delta in ("1e-3", "1e-9", "0.3")
    for groups in (1, 2, 7)
    for neighbours in ("add-remove", "replace-one")
]


def law(keys):
    """P(Z = z), by mpmath, from the mechanism's scale."""
    x = mpmath.exp(-mpmath.mpf(keys.scale.denominator) / keys.scale.numerator)
    return lambda z: (1 - x) / (1 + x) * x ** abs(z)


def passes(keys, people):
    """P(a key of so many people is released): every noise from the threshold on, term by term, then the rest."""
    mass = law(keys)
    first = keys.threshold - people
    far = max(first, 1) + 50
    x = mass(2) / mass(1)
    return mpmath.fsum(mass(z) for z in range(first, far)) + mass(far) / (1 - x)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_lonely_keys_stay_within_delta(case):
    """Up to g keys that one person alone holds: the chance that any comes out is at most delta, and nearly it."""
    keys = sf.ThresholdedKeys(*case)
    with mpmath.workprec(300):
        one = passes(keys, 1)
        lower = passes(keys, 2)  # what the threshold would allow if it were one lower
        assert 1 - (1 - one) ** keys.max_groups_per_unit <= mpmath.mpf(case[1])
        assert one * keys.max_groups_per_unit <= mpmath.mpf(case[1])
        if keys.threshold > 2:
            assert lower * keys.max_groups_per_unit > mpmath.mpf(case[1])  # off by one would be caught


def test_equality_at_the_threshold_is_released(monkeypatch):
    keys = sf.ThresholdedKeys(1, 1e-3)
    from sfumato.kernel import keys as module

    for noise, out in ((keys.threshold - 10, True), (keys.threshold - 11, False)):
        monkeypatch.setattr(module, "discrete_laplace", lambda *_, noise=noise: np.array([noise]))
        assert ("a" in keys.release({"a": 10})) is out


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("epsilon", ["1", "3"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_key_privacy_is_enumerated(groups, epsilon, neighbours):
    """(epsilon, delta) both ways, exactly, on every event of worst-case neighbours: the hockey-stick divergence."""
    keys = sf.ThresholdedKeys(epsilon, "0.01", groups, neighbours)
    with mpmath.workprec(80):
        exact = law(keys)
        reach = range(-60, 61)
        mass = {z: float(exact(z)) for z in reach}.__getitem__

        def of_key(people):
            """The law of one key's outcome: None (not shown), or the noisy count."""
            if people == 0:
                return {None: 1.0}
            shown = {people + z: mass(z) for z in reach if people + z >= keys.threshold}
            return {None: 1 - math.fsum(shown.values())} | shown

        def joint(counts):
            law_ = {(): 1.0}
            for people in counts:
                outcomes = of_key(people)
                law_ = {(*past, out): p * q for past, p in law_.items() for out, q in outcomes.items()}
            return law_

        if neighbours == "add-remove":
            pairs = (
                [((1, 5), (0, 5)), ((1, 1), (0, 0)), ((6, 5), (5, 4))] if groups == 2 else [((1,), (0,)), ((5,), (4,))]
            )
        else:
            pairs = [((1, 0), (0, 1)), ((5, 1), (4, 2))] if groups == 1 else [((1, 0), (0, 1)), ((4, 5), (5, 4))]
        loss = keys.loss
        for one, two in pairs:
            for first, second in ((one, two), (two, one)):
                p, q = joint(first), joint(second)
                growth = math.exp(loss.epsilon)
                excess = math.fsum(max(mass_ - growth * q.get(out, 0), 0) for out, mass_ in p.items())
                assert excess <= float(loss.delta) + 1e-4  # noise beyond 60 is left out


def test_release_is_noise_and_threshold():
    keys = sf.ThresholdedKeys(1, 1e-3, 2)
    people = {"a": 200, "b": 1, "c": 150, ("x", 1): 90, "nobody": 0}
    script = bytes(SYSTEM.take(4000))
    noise = discrete_laplace(keys.scale, 4, Scripted(script))
    expected = {
        key: count + int(z)
        for (key, count), z in zip([pair for pair in people.items() if pair[1]], noise, strict=True)
        if count + int(z) >= keys.threshold
    }
    released = release_keys(keys, people, Scripted(script))
    assert released == expected
    assert list(released.values()) == sorted(released.values(), reverse=True)
    assert keys.release({}) == {}


def test_the_order_of_keys_is_not_the_datas():
    keys = sf.ThresholdedKeys(1000, 1e-3)
    assert list(keys.release({"b": 50, "a": 50, "c": 99})) == list(keys.release({"c": 99, "a": 50, "b": 50}))


def test_people_needed_to_be_seen():
    for case in CASES[::5]:
        keys = sf.ThresholdedKeys(*case)
        with mpmath.workprec(300):
            for wanted in ("0.01", "0.5", "0.6", "0.95", "0.999"):
                people = keys.people_needed(wanted)
                assert passes(keys, people) >= mpmath.mpf(wanted)
                assert people == 1 or passes(keys, people - 1) < mpmath.mpf(wanted)
    assert sf.ThresholdedKeys(1, 1e-6).margin(0.95) == sf.Laplace(1, 1).margin(0.95)


def test_what_it_costs():
    assert sf.ThresholdedKeys(1, 1e-6).loss == sf.ApproxDP(1, 1e-6)
    assert sf.ThresholdedKeys(1, 1e-6, neighbours="replace-one").loss == sf.ApproxDP(1, 2e-6)
    assert sf.ThresholdedKeys(1, 1e-6, 3, "replace-one").scale == Fraction(6)


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 1e-6),
        (1, 0),
        (1, 1),
        (1, -1),
        (1, "nan"),
        (1, 1e-6, 0),
        (1, 1e-6, 1.5),
        (1, 1e-6, 1, "swap"),
        (1, 0.6, 1, "replace-one"),
    ],
    ids=str,
)
def test_bad_parameters(arguments):
    with pytest.raises(sf.errors.InvalidParameter):
        sf.ThresholdedKeys(*arguments)


@pytest.mark.parametrize("people", [{"a": 1.5}, {"a": float("nan")}, {"a": None}, {"a": True}], ids=str)
def test_bad_counts(people):
    with pytest.raises(sf.errors.InvalidParameter):
        sf.ThresholdedKeys(1, 1e-6).release(people)


def test_equal_keys_that_look_different_are_refused():
    from decimal import Decimal

    for key in (True, 1.0, -0.0, Decimal("7.0"), float("nan"), np.int64(1), np.str_("a"), ("a", 1.5), frozenset("a")):
        with pytest.raises(sf.errors.InvalidParameter, match="another kind of key"):
            sf.ThresholdedKeys(1, 1e-6).release({key: 500})
    from datetime import date

    keys = {"a": 500, b"a": 500, 7: 500, None: 500, date(2026, 1, 1): 500, ("a", 1): 500}
    assert set(sf.ThresholdedKeys(1, 1e-6).release(keys)) == set(keys)


@pytest.mark.parametrize("people", [None, [("a", 5)], {"a": [1, 2]}, {"a": -1}, {"a": [1000]}], ids=str)
def test_bad_mappings(people):
    with pytest.raises(sf.errors.InvalidParameter, match="people_per_key"):
        sf.ThresholdedKeys(1, 1e-6).release(people)
