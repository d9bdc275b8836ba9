"""The analysts' own limits: one for each name that the catalog lists, and perhaps a default for every other name."""

from collections.abc import Mapping
from functools import lru_cache

from sfumato.catalog.analysts import DEFAULT, find_analyst
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.spending import convert_sublimit, refuse_over_limit


class Sublimits:
    """Limits on what each analyst learns. A name that is not listed has the default limit, or none if there is none."""

    def __init__(self, declared: Mapping[str, PrivacyLoss]) -> None:
        self._declared = dict(declared)
        self._find = lru_cache(maxsize=1024)(lambda name: find_analyst(name, self._declared.keys() - {DEFAULT}))

    def names(self) -> list[str]:
        """The declared names."""
        return [name for name in self._declared if name != DEFAULT]

    def find_listed(self, analyst: str) -> str | None:
        """The declared spelling of a name."""
        return self._find(analyst)

    def find(self, analyst: str, budget: PrivacyLoss) -> PrivacyLoss | None:
        """The analyst's own limit, in the kind of the budget; None if they have none."""
        name = self.find_listed(analyst)
        declared = self._declared.get(DEFAULT if name is None else name)
        return None if declared is None else convert_sublimit(declared, budget)

    def check(self, budget: PrivacyLoss) -> None:
        """Refuse limits that do not count what the budget counts."""
        for limit in self._declared.values():
            convert_sublimit(limit, budget)

    def refuse_over_limit(
        self, charge: PrivacyLoss, own: PrivacyLoss, analyst: str, budget: PrivacyLoss, shares: tuple[PrivacyLoss, ...]
    ) -> None:
        """Refuse a charge that does not fit under the analyst's own limit, after what they have spent."""
        limit = self.find(analyst, budget)
        if limit is not None:
            refuse_over_limit(charge, own, limit, "this analyst's own limit", shares)

    def agree(self, other: Mapping[str, PrivacyLoss]) -> bool:
        """Whether these are the same limits."""
        return self._declared == dict(other)
