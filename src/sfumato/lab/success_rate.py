"""A measured success rate, and its exact (Clopper–Pearson) confidence interval."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from sfumato.errors import InvalidParameter

HALVINGS = 60  # of [0, 1]: more than the digits of a float


@dataclass(frozen=True, slots=True)
class SuccessRate:
    """`successes` of `trials` independent trials."""

    successes: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.successes <= self.trials or self.trials < 1:
            rule = f"must be between 0 and {self.trials} trials, with at least 1 trial"
            raise InvalidParameter("successes", rule, str(self.successes))

    @property
    def share(self) -> float:
        """The measured rate."""
        return self.successes / self.trials

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The two-sided Clopper–Pearson interval."""
        miss = (1 - confidence) / 2
        return self.lower_bound(miss), self.upper_bound(miss)

    def lower_bound(self, miss: float) -> float:
        """A number that exceeds the true rate with probability at most `miss`."""
        if self.successes == 0:
            return 0.0
        return _bisect(lambda rate: upper_tail(self.successes, self.trials, rate) > miss)

    def upper_bound(self, miss: float) -> float:
        """A number below the true rate with probability at most `miss`."""
        return 1.0 - SuccessRate(self.trials - self.successes, self.trials).lower_bound(miss)

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{show_share(self.share)} of {self.trials:,} ({show_share(low)} to {show_share(high)})"


def upper_tail(successes: int, trials: int, rate: float) -> float:
    """P(X >= successes) for X binomial(trials, rate), by summing the terms outward from the largest."""
    if successes <= 0:
        return 1.0
    if rate <= 0.0 or rate >= 1.0:
        return float(rate >= 1.0)
    if successes <= trials * rate:  # the tail is the larger half: sum the other one
        return 1.0 - upper_tail(trials - successes + 1, trials, 1.0 - rate)
    log_term = (
        math.lgamma(trials + 1)
        - math.lgamma(successes + 1)
        - math.lgamma(trials - successes + 1)
        + successes * math.log(rate)
        + (trials - successes) * math.log1p(-rate)
    )
    odds = rate / (1.0 - rate)
    total = term = 1.0  # relative to the first term
    for count in range(successes, trials):
        term *= (trials - count) / (count + 1) * odds
        total += term
        if term < total * 1e-17:
            break
    return min(1.0, math.exp(log_term) * total)


def show_share(share: float) -> str:
    """A share in percent, with more digits near 0 and 1."""
    percent = 100 * share
    if percent in (0, 100):
        return f"{percent:.0f} %"
    if 1 <= percent <= 99:
        return f"{percent:.1f} %"
    return f"{percent:.2g} %" if percent < 1 else f"{100 - float(f'{100 - percent:.2g}'):.6g} %"


def _bisect(is_above: Callable[[float], bool]) -> float:
    """The largest rate that is not above, to the digits of a float. `is_above` is false, then true."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_above(middle) else (middle, high)
    return low
