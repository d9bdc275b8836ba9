"""A preview as JSON for another process, and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.answering.preview import Preview
from sfumato.answering.preview_view import write_preview, write_preview_html
from sfumato.answers.answer import Cost
from sfumato.remote.answer_wire import SUMMARY, Wire, list_fields, read_cost


@dataclass(frozen=True, slots=True)
class RemotePreview:
    """What a question would cost and how wide its answer's intervals would be, as the service computed it."""

    cost: Cost
    population_cost: Cost
    margins: dict[str, float | None]
    reasons: dict[str, str]
    fits: bool
    cached: bool
    confidence: float
    warnings: tuple[str, ...]
    one_person_changes: dict[str, float | None]
    suggestions: tuple[str, ...]
    explanation: str

    def __repr__(self) -> str:
        return write_preview(self)

    def _repr_html_(self) -> str:
        return write_preview_html(self)

    def explain(self) -> str:
        """How the answer would be made."""
        return self.explanation


def write_preview_wire(preview: Preview) -> Wire:
    """The JSON of a preview, for `write_json`."""
    return {
        "cost": preview.cost.as_text(),
        "population_cost": preview.population_cost.as_text(),
        "margins": preview.margins,
        "reasons": preview.reasons,
        "fits": preview.fits,
        "cached": preview.cached,
        "confidence": preview.confidence,
        "warnings": list(preview.warnings),
        "one_person_changes": {
            sensitivity.column: sensitivity.one_person_changes for sensitivity in preview.sensitivities
        },
        "measurements": [list_fields(measurement, SUMMARY) for measurement in preview.measurements],
        "suggestions": [str(suggestion) for suggestion in preview.suggestions],
        "explanation": preview.explain(),
    }


def read_preview_wire(wire: Mapping[str, Any]) -> RemotePreview:
    """The preview that `write_preview_wire` wrote."""
    return RemotePreview(
        cost=read_cost(wire["cost"]),
        population_cost=read_cost(wire["population_cost"]),
        margins=dict(wire["margins"]),
        reasons=dict(wire["reasons"]),
        fits=wire["fits"],
        cached=wire["cached"],
        confidence=wire["confidence"],
        warnings=tuple(wire["warnings"]),
        one_person_changes=dict(wire["one_person_changes"]),
        suggestions=tuple(wire["suggestions"]),
        explanation=wire["explanation"],
    )
