"""The margins of an answer's columns before release, also where the answer is made from several releases."""

from fractions import Fraction

from sfumato.answers.column_margins import find_margins
from sfumato.answers.finished_answer import COMPUTED_AFTER
from sfumato.answers.window_margins import find_window_margins
from sfumato.kernel.certify import Certificate
from sfumato.planning.planner import Planned
from sfumato.query.query import Query


def find_shown_margins(
    query: Query, parts: list[tuple[Query, Planned, Certificate]], level: Fraction, count: float | None
) -> tuple[dict[str, float | None], dict[str, str]]:
    """The margins of the answer's columns. A column of several releases has the widest margin of them."""
    found = [find_margins(question, planned, certificate, level, count) for question, planned, certificate in parts]
    if query.finish is None:
        return found[0]
    margins: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    added_up = find_window_margins(*parts[0], level) if len(parts) == 1 else {}
    for name, shown in zip(query.finish.columns, query.finish.unchanged, strict=True):
        released = [(table, column) for table, column in shown if column in found[table][0]]
        if shown and not released:
            continue  # a key
        if not shown and name in added_up:
            margins[name] = added_up[name]
            continue
        known = [found[table][0][column] for table, column in released]
        margins[name] = None if not known or None in known else max(margin for margin in known if margin is not None)
        if margins[name] is None:
            why = next((found[table][1][column] for table, column in released if column in found[table][1]), None)
            reasons[name] = why or COMPUTED_AFTER
    return margins, reasons
