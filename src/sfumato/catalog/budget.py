"""The budget: a limit on privacy loss."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Literal

from sfumato.catalog.catalog_errors import build_catalog_error, name_place, show_value
from sfumato.catalog.columns import freeze
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.number_arguments import Number, read_privacy_amount


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """A limit on privacy loss: epsilon and perhaps delta. Under zcdp accounting: rho, or both converted to rho."""

    epsilon: Decimal | None
    delta: Decimal
    accounting: Literal["basic", "zcdp"]
    rho: Decimal | None

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number = 0,
        accounting: str = "basic",
        rho: Number | None = None,
    ) -> None:
        if not isinstance(accounting, str) or accounting not in ("basic", "zcdp"):
            raise build_catalog_error(f"accounting must be 'basic' or 'zcdp'; got {show_value(accounting)}.")
        if accounting == "basic" and (epsilon is None or rho is not None):
            raise build_catalog_error(
                "basic accounting takes epsilon, not rho.", 'Give epsilon, or say accounting = "zcdp".'
            )
        if (epsilon is None) == (rho is None):
            raise build_catalog_error("zcdp accounting takes either rho, or epsilon and delta.", "Give one of the two.")
        with name_place(""):
            freeze(
                self,
                epsilon=None if epsilon is None else read_privacy_amount(epsilon, "epsilon"),
                delta=_read_delta(delta),
                accounting=accounting,
                rho=None if rho is None else read_privacy_amount(rho, "rho"),
            )
            if rho is None and accounting == "zcdp" and not self.delta:
                raise build_catalog_error(
                    "zcdp accounting of an epsilon needs a delta above zero.", 'For example: delta = "1e-6".'
                )
            _ = self.loss  # refuses a limit that cannot be converted

    @property
    def loss(self) -> PureDP | ApproxDP | ZCDP:
        """The limit as a loss. Under zcdp accounting, epsilon and delta are converted to rho, rounded down."""
        if self.epsilon is None:
            return ZCDP(self.rho or 0, self.delta)
        if self.accounting == "zcdp":
            return ZCDP(find_largest_rho(self.epsilon, self.delta))
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)


def _read_delta(value: Number) -> Decimal:
    delta = ApproxDP(0, value).delta
    return read_privacy_amount(delta, "delta") if delta else delta


@cache
def find_largest_rho(epsilon: Decimal, delta: Decimal) -> Decimal:
    """The largest rho of six digits that implies (epsilon, delta). Every candidate is tested, so none is too large."""

    def fits(digits: int, power: int) -> bool:
        return ZCDP(Decimal(f"{digits}e{power}")).to_approx(delta).epsilon <= epsilon

    power = epsilon.adjusted()
    while fits(1, power + 1):
        power += 1
    while not fits(1, power):
        power -= 1
        if power < -1000:
            raise build_catalog_error(
                "no rho is small enough for this epsilon and delta.", "Give rho itself, or a larger delta."
            )
    low, high = 100_000, 1_000_000  # with power - 5: the first fits, the second does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle, power - 5) else (low, middle)
    return ZCDP(Decimal(f"{low}e{power - 5}")).rho
