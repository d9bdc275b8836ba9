import copy
import pickle
from dataclasses import replace

import pytest
from scripted import Scripted
from test_plan import AGE, PLAN

from sfumato.errors import KernelFault
from sfumato.kernel.certify import Reservation, certify
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.plan import Key, digest
from sfumato.kernel.release import ExactAggregates, release, release_with

CELLS = replace(PLAN, keys=(Key(AGE, (1, 2, 3)),))
RESERVATION = Reservation(7, certify(CELLS))
EXACT = {"n": [10, 0, 5], "s": [300, 0, 2**80]}


def test_release_adds_exactly_the_scripted_noise():
    script = bytes(SYSTEM.take(4000))
    released = release_with(ExactAggregates(digest(CELLS), EXACT), RESERVATION, Scripted(script))
    source = Scripted(script)
    for each in RESERVATION.certificate.measurements:
        noise = each.noise.draw(3, source)
        held = [min(value, 2**63 - 1) for value in EXACT[each.name]]
        expected = [max(-(2**63 - 1), min(2**63 - 1, value + int(z))) for value, z in zip(held, noise, strict=True)]
        assert list(released.integers[each.name]) == expected
    assert released.entry_number == 7


@pytest.mark.parametrize(
    "exact",
    [
        ExactAggregates("another plan", EXACT),
        ExactAggregates(digest(CELLS), {"n": EXACT["n"]}),
        ExactAggregates(digest(CELLS), EXACT | {"more": [1, 2, 3]}),
        ExactAggregates(digest(CELLS), EXACT | {"n": [1, 2]}),
    ],
    ids=["plan", "fewer", "more", "cells"],
)
def test_aggregates_of_something_else_are_refused(exact):
    with pytest.raises(KernelFault):
        release(exact, RESERVATION)


def test_exact_aggregates_do_not_leave():
    exact = ExactAggregates(digest(CELLS), EXACT)
    assert "300" not in repr(exact) + str(exact)
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(KernelFault):
            way(exact)
    with pytest.raises(TypeError):
        vars(exact)


def test_a_release_is_not_the_truth():
    exact = {"n": [1000] * 3, "s": [5000] * 3}
    released = {release(ExactAggregates(digest(CELLS), exact), RESERVATION).integers["s"] for _ in range(10)}
    assert len(released) == 10
