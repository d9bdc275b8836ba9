"""The conditions of confidence intervals, as text: on which rows they depend, and what they do not cover."""

from dataclasses import dataclass

from sfumato.answers.intervals import has_interval
from sfumato.answers.released_values import depends_on_choice
from sfumato.answers.shown_rows import find_vector_names
from sfumato.kernel.certify import Certificate
from sfumato.planning.planner import Planned
from sfumato.query.query import Query

BIAS = "Contribution bounds and clamping can add bias; `diagnose` estimates how much, one table at a time."
CUT = "Intervals end at the limits that the catalog implies, such as 0 for a count or the bounds for an average."


@dataclass(frozen=True, slots=True)
class IntervalTerms:
    """Which columns have intervals that hold for all rows together, or only given that the row is shown."""

    together: tuple[str, ...] = ()
    by_having: tuple[str, ...] = ()
    by_threshold: tuple[str, ...] = ()

    def write_note(self, confidence: float) -> str:
        """The line below an answer."""
        level = f"{100 * confidence:.4g} %"
        rows = f" (for all rows together: {', '.join(self.together)})" if self.together else ""
        widened = tuple(dict.fromkeys((*self.by_threshold, *self.by_having, *self.together)))
        wider = (
            f" Widened, because noise decides which rows are shown or first: {', '.join(widened)}." if widened else ""
        )
        return f"Intervals: {level} confidence{rows}, for the noise only.{wider} {BIAS}"

    def write_sentences(self, confidence: float) -> tuple[str, ...]:
        """The sentences of explain() about intervals."""
        level = f"{100 * confidence:.4g} %"
        said = [CUT]
        if self.by_threshold:
            said.append(
                "An undeclared key is shown only if its noisy number of people reaches the threshold, so the noise of "
                f"a shown key tends to be positive. The intervals of {', '.join(self.by_threshold)} account for this: "
                f"given that a key is shown, they hold with {level} confidence. Near the threshold they reach far down."
            )
        if self.by_having:
            said.append(
                f"HAVING selects rows by noisy values. The intervals of {', '.join(self.by_having)} account for this: "
                f"given that a row is shown, they hold with {level} confidence. For a row near the limit of HAVING, an "
                "end of the interval may be far away or infinite. If the column and HAVING use different aggregates "
                "of one measurement, the interval of such a row may be the whole possible range."
            )
        if self.together:
            said.append(
                "ORDER BY sorts by noisy values, so a row may come first because of its noise. The intervals of "
                f"{', '.join(self.together)} account for this: with {level} confidence they hold for all rows at once. "
                f"Without ORDER BY they are narrower, and each holds with {level} confidence by itself."
            )
        return tuple(said)


def find_interval_terms(query: Query, planned: Planned, certificate: Certificate) -> IntervalTerms:
    """Find the conditions of the intervals of a question's columns."""
    reads = {
        name: find_vector_names(post, planned.formulas)
        for name, post in query.columns
        if has_interval(post, planned.formulas) and not depends_on_choice(post, planned.formulas)
    }  # the ends of a quantile have coins of their own, by which no row is selected
    sorts = frozenset[str]().union(*(find_vector_names(term.by, planned.formulas) for term in query.order))
    having = find_vector_names(query.having, planned.formulas) if query.having is not None else frozenset[str]()
    keys = frozenset(certified.name for certified in certificate.measurements if certified.threshold is not None)
    one_cell = certificate.cells == 1
    return IntervalTerms(
        () if one_cell else tuple(name for name, names in reads.items() if names & sorts),
        tuple(name for name, names in reads.items() if names & having),
        tuple(name for name, names in reads.items() if names & keys),
    )
