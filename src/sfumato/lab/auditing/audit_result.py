"""The result of an audit: a lower bound, the event that shows it, and a verdict on the claim."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.kernel.losses import PrivacyLoss
from sfumato.lab.auditing.tested_claims import TestedClaim
from sfumato.lab.auditing.verdict_card import make_verdict_card

Verdict = Literal["consistent", "violated", "inconclusive"]
CONFIDENCE = 0.95
FAMILYWISE_ERROR = 1e-6  # the largest probability that a mechanism that keeps its claim is called "violated"


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What the samples show about the privacy loss of a mechanism.

    With 95 % confidence the loss is at least `lower_bound` (of epsilon; of rho where the claim is a rho). `verdict` is
    None without a claim. `samples` is the number of runs on each dataset; one half searched for `event`, and the other
    half had it `hits` times on the first and on the second dataset. `samples_needed` says how many runs would tell,
    where the verdict is "inconclusive".
    """

    lower_bound: float
    verdict: Verdict | None
    event: str
    hits: tuple[int, int]
    samples: int
    claim: PrivacyLoss | None
    parameter: Literal["epsilon", "rho"] = "epsilon"
    delta: float = 0.0
    confidence: float = CONFIDENCE
    samples_needed: int | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "lower_bound": self.lower_bound,
            "parameter": self.parameter,
            "delta": self.delta,
            "confidence": self.confidence,
            "verdict": self.verdict,
            "claim": None if self.claim is None else repr(self.claim),
            "event": self.event,
            "hits": list(self.hits),
            "samples": self.samples,
            "samples_needed": self.samples_needed,
            "familywise_error": FAMILYWISE_ERROR,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """The result as JSON text."""
        return json.dumps(self.to_dict())

    def __str__(self) -> str:
        letter = "ε" if self.parameter == "epsilon" else "rho"
        tested = self.samples - self.samples // 2
        lines = []
        if self.verdict is not None:
            lines.append(f"Verdict: {self.verdict} (claim: {TestedClaim.from_loss(self.claim).describe()}).")
        at = f" at δ = {self.delta:g}" if self.delta else ""
        lines += [
            f"{letter} ≥ {self.lower_bound:.4g}{at} with {100 * self.confidence:g} % confidence.",
            f"Event: {self.event}.",
            f"It happened in {self.hits[0]:,} of {tested:,} runs on the first dataset and in {self.hits[1]:,} of "
            f"{tested:,} on the second. Another {self.samples - tested:,} runs on each searched for it.",
        ]
        if self.samples_needed is not None:
            lines.append(f"About {self.samples_needed:,} samples per dataset would tell.")
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return make_verdict_card(str(self), self.verdict)
