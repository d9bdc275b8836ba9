"""The audit catches every broken mechanism, and no real one."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.lab.auditing.real_mechanisms import REAL_MECHANISMS
from sfumato.lab.broken_mechanisms import BROKEN_MECHANISMS

CATEGORIES = {"noise", "sensitivity", "data-dependent", "selection", "accounting"}


@pytest.mark.parametrize("broken", BROKEN_MECHANISMS, ids=lambda broken: broken.name)
def test_every_broken_mechanism_is_caught(broken):
    """Each `samples` is large enough that chance hides the fault with probability below 1e-6."""
    found = sf.lab.audit(
        broken.mechanism, broken.first, broken.second, broken.epsilon, broken.delta, samples=broken.samples
    )
    assert found.verdict == "violated", found
    assert found.claim == broken.claim


def test_the_list_is_long_and_complete():
    assert len(BROKEN_MECHANISMS) >= 20
    assert len({broken.name for broken in BROKEN_MECHANISMS}) == len(BROKEN_MECHANISMS)
    assert {broken.category for broken in BROKEN_MECHANISMS} == CATEGORIES
    assert all(broken.fault.endswith(".") for broken in BROKEN_MECHANISMS)


@pytest.mark.parametrize("real", REAL_MECHANISMS, ids=lambda real: real.name)
def test_no_real_mechanism_is_flagged(real):
    """Each is called "violated" with probability 1e-6 at most: tests/lab/test_audit_limits.py enumerates it."""
    found = real.audit(samples=2_000)
    assert found.verdict != "violated", found


def test_repaired_mechanisms_are_not_flagged():
    """Negative controls of the negative controls: the same inputs with the right noise pass."""

    def count(people, runs):
        return sf.Laplace(1, 1).release(np.full(runs, len(people)))

    def histogram(counts, runs):
        noisy = sf.Laplace(2, 1, of="integers").release(np.zeros((runs, 2), np.int64))
        return noisy + np.array(counts)

    assert sf.lab.audit(count, range(10), range(11), 1, samples=8_000, batch=True).verdict != "violated"
    assert sf.lab.audit(histogram, [5, 5], [4, 6], 1, samples=8_000, batch=True).verdict != "violated"
