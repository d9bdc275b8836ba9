"""A charge that is converted to the budget's loss type is never less than the loss."""

import pytest

from sfumato.errors import LedgerError
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.ledger.loss_sums import convert_loss, price


def test_a_delta_needs_a_budget_with_one():
    """A budget without a delta cannot pay for a delta. Ignoring the delta would release it without a charge."""
    for charged in (convert_loss, lambda loss, budget: price(loss, (loss,), budget)):
        with pytest.raises(LedgerError, match="no delta"):
            charged(ApproxDP(1, "1e-9"), PureDP(10))
        assert charged(ApproxDP(1, 0), PureDP(10)) == PureDP(1)
        assert charged(ApproxDP(1, "1e-9"), ApproxDP(10, "1e-6")) == ApproxDP(1, "1e-9")
        assert charged(ApproxDP(1, "1e-9"), ZCDP(10, "1e-6")).delta == ApproxDP(1, "1e-9").delta
