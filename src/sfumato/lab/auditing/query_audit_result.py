"""The result of the audit of one question."""

import json
from dataclasses import dataclass
from typing import Any

from sfumato.kernel.losses import PrivacyLoss
from sfumato.lab.auditing.audit_result import CONFIDENCE, AuditResult, Verdict
from sfumato.lab.auditing.query_replay import MADE_UP, NOT_SEARCHED, ReplayResult
from sfumato.lab.auditing.tested_claims import TestedClaim
from sfumato.lab.auditing.verdict_card import make_verdict_card


@dataclass(frozen=True, slots=True)
class SampledPair:
    """The audit of repeated releases on one pair of datasets."""

    pair: str
    result: AuditResult


@dataclass(frozen=True, slots=True)
class QueryAuditResult:
    """What an audit of one question found.

    `replayed` compares exact integers, `sampled` measures epsilon (or rho) from repeated releases, and
    `complete_faults` are differences between complete answers. The lower bounds of all sampled pairs hold together.
    """

    sql: str
    claim: PrivacyLoss
    replayed: ReplayResult
    sampled: tuple[SampledPair, ...]
    complete_runs: int
    complete_faults: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Violated if anything shows a fault; inconclusive if some samples cannot tell."""
        verdicts = [self.replayed.verdict, *(sampled.result.verdict for sampled in self.sampled)]
        if "violated" in verdicts or self.complete_faults:
            return "violated"
        return "inconclusive" if "inconclusive" in verdicts or not self.sampled else "consistent"

    @property
    def lower_bound(self) -> float:
        """With 95 % confidence, the loss is at least this."""
        return max((sampled.result.lower_bound for sampled in self.sampled), default=0.0)

    @property
    def confidence(self) -> float:
        return CONFIDENCE

    @property
    def samples(self) -> int:
        """The number of releases on each dataset of a sampled pair."""
        return max((sampled.result.samples for sampled in self.sampled), default=0)

    @property
    def event(self) -> str:
        """The event behind the lower bound, or the first fault."""
        faults = (*self.replayed.faults, *self.complete_faults)
        if faults:
            return faults[0]
        best = max(self.sampled, key=lambda sampled: sampled.result.lower_bound, default=None)
        return "" if best is None else f"{best.pair}: {best.result.event}"

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "sql": self.sql,
            "verdict": self.verdict,
            "claim": repr(self.claim),
            "lower_bound": self.lower_bound,
            "confidence": self.confidence,
            "samples": self.samples,
            "event": self.event,
            "replay": self.replayed.to_dict(),
            "sampled": [{"pair": sampled.pair, **sampled.result.to_dict()} for sampled in self.sampled],
            "complete_runs": self.complete_runs,
            "complete_faults": list(self.complete_faults),
            "not_searched": [NOT_SEARCHED],
            "data": MADE_UP,
        }

    def to_json(self) -> str:
        """The result as JSON text."""
        return json.dumps(self.to_dict())

    def __str__(self) -> str:
        claim = TestedClaim.from_loss(self.claim)
        letter = "ε" if claim.parameter == "epsilon" else "rho"
        share = f"{100 * self.replayed.share:.0f} %"
        lines = [
            f"Verdict: {self.verdict} (claim: {claim.describe()}).",
            f"{letter} ≥ {self.lower_bound:.4g} with {100 * self.confidence:g} % confidence, from "
            f"{self.samples:,} releases on each dataset.",
            f"Replay of {len(self.replayed.pairs)} pairs of neighbouring datasets: {self.replayed.verdict}; one person "
            f"moved an integer by at most {share} of its certified sensitivity.",
            f"Complete answers: {2 * self.complete_runs} compared.",
            *(f"Sampled: {sampled.pair}: {sampled.result.event}." for sampled in self.sampled),
            *(
                f"{sampled.pair}: about {sampled.result.samples_needed:,} samples would tell."
                for sampled in self.sampled
                if sampled.result.samples_needed is not None
            ),
            *self.replayed.faults,
            *self.complete_faults,
            MADE_UP,
            NOT_SEARCHED,
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return make_verdict_card(str(self), self.verdict)
