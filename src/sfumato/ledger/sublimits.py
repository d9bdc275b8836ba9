"""What single analysts may learn: a limit for each listed name, however it is spelled, and one for the others."""

from collections.abc import Mapping
from functools import lru_cache

from sfumato.catalog.analysts import DEFAULT, find_analyst
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.loss_sums import convert_sublimit, refuse_over_limit


class Sublimits:
    """Limits on what each analyst learns. A name that is not listed has the default, of its own, or no limit."""

    def __init__(self, declared: Mapping[str, PrivacyLoss]) -> None:
        self._declared = dict(declared)
        self._find = lru_cache(maxsize=1024)(lambda name: find_analyst(name, self._declared.keys() - {DEFAULT}))

    def names(self) -> list[str]:
        """The declared names."""
        return [each for each in self._declared if each != DEFAULT]

    def listed(self, analyst: str) -> str | None:
        """The declared spelling of a name."""
        return self._find(analyst)

    def of(self, analyst: str, budget: PrivacyLoss) -> PrivacyLoss | None:
        """The analyst's own limit, in the budget's currency; None: they have none."""
        name = self.listed(analyst)
        declared = self._declared.get(DEFAULT if name is None else name)
        return None if declared is None else convert_sublimit(declared, budget)

    def check(self, budget: PrivacyLoss) -> None:
        """Refuse limits that do not count what the budget counts."""
        for each in self._declared.values():
            convert_sublimit(each, budget)

    def refuse_over_limit(
        self, charge: PrivacyLoss, own: PrivacyLoss, analyst: str, budget: PrivacyLoss, shares: tuple[PrivacyLoss, ...]
    ) -> None:
        """Refuse what does not fit the analyst's own limit, after what they have learned."""
        limit = self.of(analyst, budget)
        if limit is not None:
            refuse_over_limit(charge, own, limit, "this analyst's own limit", shares)

    def agree(self, other: Mapping[str, PrivacyLoss]) -> bool:
        """Whether these are the same limits."""
        return self._declared == dict(other)
