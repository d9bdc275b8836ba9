import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from bounded_plans import AGE, PLAN, SUM
from scripted import Exhausted, Scripted

import sfumato as sf
from sfumato.errors import KernelFault
from sfumato.kernel.certify import certify
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.expressions import Literal
from sfumato.kernel.key_rounds import Holdings
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.neighbours import ROW, PrivacyUnit
from sfumato.kernel.plan import Key, Keys, Measurement, WeightedKeys
from sfumato.kernel.release import ExactAggregates, release, release_with
from sfumato.kernel.reservation import Reservation

CELLS = replace(PLAN, keys=(Key(AGE, (1, 2, 3)),))
CERTIFICATE = certify(CELLS)
EXACT = {"n": [10, 0, 5], "s": [300, 0, 2**80]}


def test_release_adds_exactly_the_scripted_noise():
    script = bytes(SYSTEM.take(4000))
    released = release_with(ExactAggregates(CELLS, EXACT), Reservation(7, CERTIFICATE), Scripted(script))
    source = Scripted(script)
    for measurement in CERTIFICATE.measurements:
        noise = measurement.noise.draw(3, source)
        held = [min(value, 2**63 - 1) for value in EXACT[measurement.name]]
        expected = [max(-(2**63 - 1), min(2**63 - 1, value + int(z))) for value, z in zip(held, noise, strict=True)]
        assert list(released.integers[measurement.name]) == expected
    assert released.entry_number == 7


@pytest.mark.parametrize(
    "exact",
    [
        ExactAggregates(replace(CELLS, filters=(Literal(True),)), EXACT),
        ExactAggregates(CELLS, {"n": EXACT["n"]}),
        ExactAggregates(CELLS, EXACT | {"more": [1, 2, 3]}),
        ExactAggregates(CELLS, EXACT | {"n": [1, 2]}),
    ],
    ids=["plan", "fewer", "more", "cells"],
)
def test_aggregates_of_something_else_are_refused(exact):
    reservation = Reservation(7, CERTIFICATE)
    with pytest.raises(KernelFault):
        release(exact, reservation)
    assert release(ExactAggregates(CELLS, EXACT), reservation), "no noise was drawn: it is still to be used"


def test_a_certificate_that_the_kernel_did_not_derive_is_refused():
    """Noise, loss and cells are those of the measured plan, whatever was charged."""
    n, s = CERTIFICATE.measurements
    narrow = replace(s, noise=LaplaceNoise(s.noise.scale / 2))
    for changes in ({"measurements": (n, narrow)}, {"measurements": (n,)}, {"loss": sf.PureDP("0.1")}, {"cells": 1}):
        with pytest.raises(KernelFault, match="another plan"):
            release(ExactAggregates(CELLS, EXACT), Reservation(7, replace(CERTIFICATE, **changes)))
    renamed = replace(CERTIFICATE, plan_digest="any", answer_key="any")
    assert release(ExactAggregates(CELLS, EXACT), Reservation(7, renamed)), "names for the ledger are no part of it"


def test_exact_aggregates_do_not_leave():
    exact = ExactAggregates(CELLS, EXACT)
    assert "300" not in repr(exact) + str(exact)
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(KernelFault):
            way(exact)
    with pytest.raises(TypeError):
        vars(exact)


def test_a_release_is_not_the_truth():
    exact = {"n": [1000] * 3, "s": [5000] * 3}
    plan = CELLS
    released = {release(ExactAggregates(plan, exact), Reservation(7, CERTIFICATE)).integers["s"] for _ in range(10)}
    assert len(released) == 10


def test_a_reservation_is_released_once():
    reservation = Reservation(7, CERTIFICATE)
    exact = ExactAggregates(CELLS, EXACT)
    release(exact, reservation)
    for _ in range(2):
        with pytest.raises(KernelFault, match="pays for one release"):
            release(exact, reservation)
    assert release(exact, Reservation(7, CERTIFICATE)), "another one is the ledger's to give"


def test_a_reservation_whose_noise_failed_is_used_up():
    reservation, exact = Reservation(7, CERTIFICATE), ExactAggregates(CELLS, EXACT)
    with pytest.raises(Exhausted):
        release_with(exact, reservation, Scripted(b""))
    with pytest.raises(KernelFault, match="pays for one release"):
        release(exact, reservation)


def test_of_many_threads_one_releases():
    for _ in range(30):
        reservation, together = Reservation(7, CERTIFICATE), threading.Barrier(8)

        def once(reservation=reservation, together=together):
            together.wait()
            try:
                return release(ExactAggregates(CELLS, EXACT), reservation)
            except KernelFault:
                return None

        with ThreadPoolExecutor(8) as pool:
            done = [future.result() for future in [pool.submit(once) for _ in range(8)]]
        assert sum(outcome is not None for outcome in done) == 1


def test_a_reservation_is_not_multiplied():
    """No copy, no changed twin, no subclass, and no fork pays for a second release."""
    reservation = Reservation(7, CERTIFICATE)
    for way in (pickle.dumps, copy.copy, copy.deepcopy, lambda secret: copy.deepcopy([secret])):
        with pytest.raises(KernelFault):
            way(reservation)
    with pytest.raises(TypeError):
        replace(reservation, entry_number=8)
    with pytest.raises(TypeError):
        vars(reservation)
    for change in (
        lambda: setattr(reservation, "certificate", None),
        lambda: setattr(reservation, "_taken_by", None),
        lambda: delattr(reservation, "_taken_by"),
        lambda: type("Free", (Reservation,), {}),
    ):
        with pytest.raises(KernelFault):
            change()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.getpid", lambda: -1)
        with pytest.raises(KernelFault, match="process"):
            release(ExactAggregates(CELLS, EXACT), reservation)
    assert release(ExactAggregates(CELLS, EXACT), reservation)
    assert "taken=True" in repr(reservation)


UNNAMED = replace(
    PLAN,
    keys=(Key(AGE, None),),
    measurements=(Measurement("keys", Keys(), sf.ApproxDP(1, "1e-3")), replace(SUM, name="s")),
)


def shown(people, noise, plan=UNNAMED, sums=None):
    """Keys 0, 1, … with so many people: those that a release shows when their noise is this."""
    exact = ExactAggregates(
        plan,
        {"keys": people, "s": sums or [0] * len(people)},
        tuple((number,) for number in range(len(people))),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "sfumato.kernel.mechanisms.discrete_laplace", lambda _, size, __: np.array(noise[:size], np.int64)
        )
        released = release(exact, Reservation(1, certify(plan)))
    return {key: count for (key,), count in zip(released.keys, released.integers["keys"], strict=True)}


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_lonely_key_is_shown_with_at_most_delta(neighbours):
    """By every noise that shows a key of one person: their probabilities add up to at most delta, and to nearly it."""
    plan = replace(UNNAMED, unit=PrivacyUnit("people", ROW, neighbours))
    keys, _ = certify(plan).measurements
    showing = [z for z in range(-5, 200) if shown([1], [z], plan)]
    assert showing == list(range(showing[0], 200))
    with mpmath.workprec(200):
        ratio = mpmath.exp(-mpmath.mpf(keys.noise.scale.denominator) / keys.noise.scale.numerator)
        chance, one_more = (ratio**first / (1 + ratio) for first in (showing[0], showing[0] - 1))
        assert chance <= mpmath.mpf("1e-3") < one_more
    assert shown([1], [showing[0]], plan) == {0: 1 + showing[0]}


def test_a_key_that_nobody_counts_for_is_never_shown():
    """The key is a candidate only because of rows beyond somebody's bound: no noise may release it."""
    for noise in (0, 10**6, 2**62):
        assert shown([0, 500], [noise, 0]) == {1: 500}
        assert shown([0], [noise]) == {}


def test_nothing_else_of_a_hidden_key_comes_out():
    sums = [7, 10**12, 9]
    exact = ExactAggregates(UNNAMED, {"keys": [1, 900, 0], "s": sums}, (("a",), ("b",), ("c",)))
    released = release(exact, Reservation(1, certify(UNNAMED)))
    assert released.keys == (("b",),)
    assert abs(released.integers["s"][0] - sums[1]) < 10**9, "it is that of the key beside it"
    assert {name: len(cells) for name, cells in released.integers.items()} == {"keys": 1, "s": 1}


def test_keys_in_two_rounds_need_their_holders():
    """Holders without two rounds are refused, and so are two rounds without holders. No weight is released."""
    crowd = Holdings(np.arange(400), np.arange(400) % 2)
    weigh = Measurement("k", WeightedKeys(2), sf.ApproxDP(1, "1e-5"))
    plan = replace(PLAN, unit=PrivacyUnit("t", "id"), keys=(Key(AGE, None),), measurements=(weigh,))
    once = replace(plan, measurements=(replace(weigh, quantity=WeightedKeys(1)),))
    keys = ((1,), (2,), (3,))
    for wrong, held in ((plan, None), (once, crowd)):
        exact = ExactAggregates(wrong, {"k": [9, 9, 0]}, keys, holdings=held)
        with pytest.raises(KernelFault):
            release(exact, Reservation(7, certify(wrong)))
    certificate = certify(plan)
    exact = ExactAggregates(plan, {"k": [9, 9, 0]}, keys, holdings=crowd)
    released = release(exact, Reservation(7, certificate))
    assert released.keys == ((1,), (2,))
    assert released.integers == {"k": (certificate.measurements[0].threshold,) * 2}
