"""The smallest epsilon that gives the margins an analyst wants, found by planning. It reads no data."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from sfumato.answering.ask_together import plan_together
from sfumato.answering.desk import Desk
from sfumato.answering.shown_margins import find_shown_margins
from sfumato.answers.released_values import round_up_to_three_digits
from sfumato.errors import InvalidParameter, MissingBounds
from sfumato.kernel.certify import Certificate, certify
from sfumato.kernel.losses import PureDP
from sfumato.planning.planner import Planned
from sfumato.query.query import Query

MARGIN_HINT = "Then the smallest epsilon is the one for groups of so many rows."
SMALLEST, LARGEST = 1e-9, 500.0
BISECTIONS = 60


def find_least_epsilon(
    desk: Desk, query: Query, wanted: Mapping[str, float], confidence: Fraction, count: float | None = None
) -> PureDP:
    """The smallest epsilon, to three digits, at which every named column has the wanted margin in every group.

    `count` is the assumed number of rows in each group, for margins that depend on it (AVG).
    """

    def is_enough(epsilon: str) -> bool:
        try:
            parts = _plan_parts(desk, query, PureDP(epsilon), confidence)
        except InvalidParameter:
            return False
        margins, reasons = find_shown_margins(query, parts, confidence, count)
        for name, most in wanted.items():
            if name not in margins:
                raise InvalidParameter(
                    "margin", f"must name one of these columns: {', '.join(margins)}", "another name"
                )
            found = margins[name]
            if found is None:
                raise MissingBounds("margin", f"{name}: {reasons[name]}", MARGIN_HINT)
            if not most > 0 or found > most:
                return False
        return True

    found = bisect_epsilon(is_enough)
    if found is None:
        kind = f"a margin that would need an epsilon above {LARGEST:g}"
        raise InvalidParameter("margin", "must be reachable", kind, "Ask for a wider one.")
    return PureDP(found)


def _plan_parts(
    desk: Desk, query: Query, loss: PureDP, confidence: Fraction
) -> list[tuple[Query, Planned, Certificate]]:
    """The plans of a question. Several of them share the loss."""
    if not query.beside:
        planned = desk.plan(query, loss)
        return [(query, planned, certify(planned.plan))]
    asked, together = plan_together(desk, query, loss, confidence, None)
    return [
        (question.query, question.planned, made) for question, made in zip(asked, together.certificates, strict=True)
    ]


def bisect_epsilon(is_enough: Callable[[str], bool]) -> str | None:
    """The smallest epsilon, to three digits, that is enough; None if the largest is not."""
    low, high = SMALLEST, LARGEST
    if not is_enough(round_up_to_three_digits(high)):
        return None
    for _ in range(BISECTIONS):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if is_enough(round_up_to_three_digits(middle)) else (middle, high)
    return round_up_to_three_digits(high)
