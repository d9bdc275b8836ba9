"""The budget: a limit on privacy loss."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Literal

from sfumato.catalog.catalog_errors import build_catalog_error, name_place, show_value
from sfumato.catalog.columns import freeze
from sfumato.kernel.exact import sum_exactly
from sfumato.kernel.gaussian_dp import bound_delta, bound_root
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PureDP
from sfumato.number_arguments import Number, read_privacy_amount

ACCOUNTING = {"basic": None, "zcdp": "rho", "gdp": "mu"}  # and what a limit may be given in, besides epsilon


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """A limit on privacy loss: epsilon and perhaps delta.

    Under zcdp accounting: rho, or epsilon and delta converted to rho. Under gdp accounting: mu, or epsilon and delta
    converted to mu. A delta beside rho or mu is for undeclared keys.
    """

    epsilon: Decimal | None
    delta: Decimal
    accounting: Literal["basic", "zcdp", "gdp"]
    rho: Decimal | None
    mu: Decimal | None

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number = 0,
        accounting: str = "basic",
        rho: Number | None = None,
        mu: Number | None = None,
    ) -> None:
        if not isinstance(accounting, str) or accounting not in ACCOUNTING:
            raise build_catalog_error(f"accounting must be 'basic', 'zcdp' or 'gdp'; got {show_value(accounting)}.")
        own = ACCOUNTING[accounting]
        for name, value, kind in (("rho", rho, "zcdp"), ("mu", mu, "gdp")):
            if value is not None and name != own:
                takes = "epsilon" if own is None else f"epsilon or {own}"
                hint = f'Give epsilon, or say accounting = "{kind}".'
                raise build_catalog_error(f"{accounting} accounting takes {takes}, not {name}.", hint)
        amount = mu if rho is None else rho
        if own is None and epsilon is None:
            raise build_catalog_error("basic accounting takes epsilon.", 'For example: epsilon = "3".')
        if (epsilon is None) == (amount is None):
            raise build_catalog_error(
                f"{accounting} accounting takes either {own}, or epsilon and delta.", "Give one of the two."
            )
        with name_place(""):
            freeze(
                self,
                epsilon=None if epsilon is None else read_privacy_amount(epsilon, "epsilon"),
                delta=_read_delta(delta),
                accounting=accounting,
                rho=None if rho is None else read_privacy_amount(rho, "rho"),
                mu=None if mu is None else read_privacy_amount(mu, "mu"),
            )
            if amount is None and accounting != "basic" and not self.delta:
                raise build_catalog_error(
                    f"{accounting} accounting of an epsilon needs a delta above zero.", 'For example: delta = "1e-6".'
                )
            _ = self.loss  # refuses a limit that cannot be converted

    @property
    def loss(self) -> PureDP | ApproxDP | ZCDP | GDP:
        """The limit as a loss. Under zcdp and gdp accounting, epsilon and delta are converted, rounded down."""
        if self.mu is not None:
            return GDP(sum_exactly(Fraction(self.mu) ** 2), self.delta)
        if self.rho is not None or self.epsilon is None:
            return ZCDP(self.rho or 0, self.delta)
        if self.accounting == "zcdp":
            return ZCDP(find_largest_rho(self.epsilon, self.delta))
        if self.accounting == "gdp":
            return GDP(find_largest_mu_squared(self.epsilon, self.delta))
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)


def _read_delta(value: Number) -> Decimal:
    delta = ApproxDP(0, value).delta
    return read_privacy_amount(delta, "delta") if delta else delta


@cache
def find_largest_rho(epsilon: Decimal, delta: Decimal) -> Decimal:
    """The largest rho of six digits that implies (epsilon, delta). Every candidate is tested, so none is too large."""

    def fits(rho: Decimal) -> bool:
        return ZCDP(rho).to_approx(delta).epsilon <= epsilon

    return ZCDP(_find_largest(fits, epsilon.adjusted(), "rho")).rho


@cache
def find_largest_mu_squared(epsilon: Decimal, delta: Decimal) -> Decimal:
    """The largest mu**2 of six digits that implies (epsilon, delta). Every candidate is tested."""

    def fits(mu_squared: Decimal) -> bool:
        return bound_delta(bound_root(Fraction(mu_squared)), Fraction(epsilon)) <= Fraction(delta)

    return GDP(_find_largest(fits, epsilon.adjusted(), "mu")).mu_squared


def _find_largest(fits: Callable[[Decimal], bool], power: int, name: str) -> Decimal:
    """The largest number of six digits that fits; a smaller number fits where a larger one does."""
    while fits(Decimal(f"1e{power + 1}")):
        power += 1
    while not fits(Decimal(f"1e{power}")):
        power -= 1
        if power < -1000:
            raise build_catalog_error(
                f"no {name} is small enough for this epsilon and delta.", f"Give {name} itself, or a larger delta."
            )
    low, high = 100_000, 1_000_000  # with power - 5: the first fits, the second does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(Decimal(f"{middle}e{power - 5}")) else (low, middle)
    return Decimal(f"{low}e{power - 5}")
