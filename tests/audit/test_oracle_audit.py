"""The audit of the oracle: its claim holds, and a claim that is too small is refuted."""

import pytest
from oracle_audit import PAIRS, audit_oracle


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", PAIRS)
def test_the_oracle_keeps_its_claim(neighbours):
    found = audit_oracle(neighbours, 600)
    assert found.verdict in ("consistent", "inconclusive")
    assert found.lower_bound <= 1


@pytest.mark.slow
def test_a_claim_that_is_too_small_is_refuted():
    """Negative control: the oracle spends epsilon = 8, and 0.1 is claimed."""
    found = audit_oracle("replace-one", 600, claim="0.1", epsilon=8)
    assert found.verdict == "violated"
