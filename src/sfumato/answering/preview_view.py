"""A preview as users see it: the margins, the cost, and whether it fits. For previews here and behind a service."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sfumato.answers.answer import Cost
from sfumato.drawing.cards import make_card, make_note
from sfumato.drawing.pages import make_table
from sfumato.drawing.text_tables import write_text_table
from sfumato.shown_amounts import describe_weakness


class Previewed(Protocol):
    """What is shown of a preview."""

    @property
    def cost(self) -> Cost: ...
    @property
    def margins(self) -> Mapping[str, float | None]: ...
    @property
    def reasons(self) -> Mapping[str, str]: ...
    @property
    def fits(self) -> bool: ...
    @property
    def cached(self) -> bool: ...
    @property
    def confidence(self) -> float: ...
    @property
    def warnings(self) -> Sequence[str]: ...


def write_preview(preview: Previewed) -> str:
    """The preview as text."""
    warned = [f"Warning: {warning}" for warning in preview.warnings]
    table = write_text_table(_list_headings(preview), _list_rows(preview), right=[1])
    return "\n".join([table, *warned, _describe_cost(preview)])


def write_preview_html(preview: Previewed) -> str:
    """The preview as HTML."""
    return make_card(
        "Preview",
        make_table(_list_headings(preview), _list_rows(preview), [1]),
        *(make_note(f"Warning: {warning}", "flag") for warning in preview.warnings),
        make_note(_describe_cost(preview), "faint" if preview.fits else "flag"),
    )


def _list_headings(preview: Previewed) -> tuple[str, ...]:
    return "column", f"margin ({100 * preview.confidence:.4g} %)", *(("why",) if preview.reasons else ())


def _list_rows(preview: Previewed) -> list[list[str]]:
    return [
        [
            name,
            "unknown" if margin is None else f"±{margin:,.4g}",
            *((preview.reasons.get(name, ""),) if preview.reasons else ()),
        ]
        for name, margin in preview.margins.items()
    ]


def _describe_cost(preview: Previewed) -> str:
    before = "It was answered before. " if preview.cached else ""
    fits = "fits" if preview.fits else "does not fit"
    left = getattr(preview, "delta_note", "")  # a service does not send it
    said = f"Cost: {preview.cost}, which {fits} the budget. {before}Nothing was spent."
    return " ".join(filter(None, (said, describe_weakness(preview.cost.epsilon), left)))
