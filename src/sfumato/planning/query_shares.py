"""How K statistical queries share one epsilon: equally, after the share of a noisy count if one is needed."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isqrt

from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import find_decimal, write_plain
from sfumato.planning.shares import round_share

COUNT_DIGITS = 1_000  # the count's share of epsilon is a whole number of thousandths


@dataclass(frozen=True, slots=True)
class QueryShares:
    """The whole epsilon, the share of each query, and the share of the count (None: the number of rows is public)."""

    k: int
    epsilon: Decimal
    query: Decimal
    count: Decimal | None

    def __str__(self) -> str:
        count = "" if self.count is None else f", of the count {write_plain(self.count)}"
        return f"epsilon {write_plain(self.epsilon)} in all, of each query {write_plain(self.query)}{count}"


def share_epsilon(k: int, epsilon: Decimal, *, counted: bool) -> QueryShares:
    """Share epsilon among K queries. A count takes 1/(1 + sqrt(K)) of it, to three digits, which is the best share.

    The shares are rounded down to 12 digits, so together they are at most epsilon.
    """
    whole = Fraction(epsilon)
    count = round_share(whole * find_count_share(k)) if counted else Fraction(0)
    query = round_share((whole - count) / k)
    return QueryShares(k, epsilon, _to_decimal(query), _to_decimal(count) if counted else None)


def find_count_share(k: int) -> Fraction:
    """The part of epsilon that a count takes beside K sums: 1/(1 + sqrt(K)), in thousandths, at least one."""
    thousandths = COUNT_DIGITS * COUNT_DIGITS // (COUNT_DIGITS + isqrt(k * COUNT_DIGITS**2))
    return Fraction(max(thousandths, 1), COUNT_DIGITS)


def _to_decimal(share: Fraction) -> Decimal:
    amount = find_decimal(share) if share > 0 else None
    if amount is None:
        raise InvalidParameter("epsilon", "must be large enough to share", "a smaller one", "Raise it.")
    return amount
