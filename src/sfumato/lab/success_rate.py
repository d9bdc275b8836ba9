"""A measured success rate, and its exact (Clopper–Pearson) confidence interval."""

from dataclasses import dataclass

from sfumato.errors import InvalidParameter
from sfumato.lab.auditing.binomial_limits import find_lower_limit, find_upper_limit


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
        return find_lower_limit(self.successes, self.trials, miss)

    def upper_bound(self, miss: float) -> float:
        """A number below the true rate with probability at most `miss`."""
        return find_upper_limit(self.successes, self.trials, miss)

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{show_share(self.share)} of {self.trials:,} ({show_share(low)} to {show_share(high)})"


def show_share(share: float) -> str:
    """A share in percent, with more digits near 0 and 1."""
    percent = 100 * share
    if percent in (0, 100):
        return f"{percent:.0f} %"
    if 1 <= percent <= 99:
        return f"{percent:.1f} %"
    return f"{percent:.2g} %" if percent < 1 else f"{100 - float(f'{100 - percent:.2g}'):.6g} %"
