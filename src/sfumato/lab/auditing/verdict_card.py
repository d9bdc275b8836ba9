"""The result of an audit in a notebook: its verdict as the heading, and a line for each finding."""

from sfumato.drawing.cards import make_card, make_note


def make_verdict_card(text: str, verdict: str | None) -> str:
    """The text of a result as HTML. A violation is flagged."""
    first, *others = text.splitlines()
    return make_card("Audit", make_note(first, "flag" if verdict == "violated" else "plain"), *map(make_note, others))
