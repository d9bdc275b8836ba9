"""The audit of the oracle: its claim holds, and a claim that is too small is refuted."""

import pytest
from oracle_audit import PAIRS, audit_oracle


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", PAIRS)
def test_the_oracle_keeps_its_claim(neighbours):
    found = audit_oracle(neighbours, 1_000)
    assert found.verdict in ("consistent", "inconclusive")
    assert found.lower_bound <= 1


@pytest.mark.slow
def test_a_claim_that_is_too_small_is_refuted():
    """Negative control: the oracle costs epsilon = 1, and 0.1 is claimed."""
    found = audit_oracle("replace-one", 2_000, claim="0.1")
    assert found.verdict == "violated"
