"""What intervals promise, in words: for the noise alone, given that a row is shown, and for which rows together."""

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.answers.intervals import has_interval
from sfumato.answers.shown_rows import names_in
from sfumato.kernel.certify import Certificate
from sfumato.planning.planner import Planned
from sfumato.query.query import Query

CUT = "No interval goes beyond what the catalog makes possible: counts begin at 0, averages stay within the bounds."


@dataclass(frozen=True, slots=True)
class IntervalTerms:
    """Columns whose intervals hold for all rows together, and those that are conditional on being shown, and why."""

    together: tuple[str, ...] = ()
    by_having: tuple[str, ...] = ()
    by_threshold: tuple[str, ...] = ()

    def note(self, confidence: float) -> str:
        """One sentence below an answer."""
        level = f"{100 * confidence:.4g} %"
        rows = f" (for all rows together: {', '.join(self.together)})" if self.together else ""
        return (
            f"Intervals: {level} confidence{rows}, for the noise only. "
            "Values clamped to bounds and rows over a contribution bound are not covered."
        )

    def sentences(self, confidence: float) -> tuple[str, ...]:
        """For the explanation."""
        level = f"{100 * confidence:.4g} %"
        said = [CUT]
        if self.by_threshold:
            said.append(
                f"An undeclared key is shown only if its noise is high enough to pass the threshold. The intervals of "
                f"{_listed(self.by_threshold)} hold with {level} confidence given that the key is shown: the lower end "
                "of a key near the threshold is small, because its true number of people may be far below."
            )
        if self.by_having:
            said.append(
                f"HAVING selects rows by their noise. The intervals of {_listed(self.by_having)} hold with {level} "
                "confidence given that the row is shown. For a row near the limit of HAVING one end may be far away "
                "or infinite, or the interval may be everything that is possible: it is widest where a column and "
                "HAVING read different aggregates of the same released numbers."
            )
        if self.together:
            said.append(
                f"Rows are sorted by noisy numbers, and the first row is partly first because of its noise. So the "
                f"intervals of {_listed(self.together)} are wider: all rows hold together with {level} confidence, "
                "and so does the row that is read first. Without ORDER BY each group's interval is narrower, and "
                f"holds with {level} confidence by itself."
            )
        return tuple(said)


def interval_terms(query: Query, planned: Planned, certificate: Certificate) -> IntervalTerms:
    """What the intervals of a question's columns are conditional on."""
    reads = {
        name: names_in(post, planned.formulas) for name, post in query.columns if has_interval(post, planned.formulas)
    }
    sorts = frozenset[str]().union(*(names_in(term.by, planned.formulas) for term in query.order))
    having = names_in(query.having, planned.formulas) if query.having is not None else frozenset[str]()
    keys = frozenset(each.name for each in certificate.measurements if each.threshold is not None)
    one_cell = certificate.cells == 1
    return IntervalTerms(
        () if one_cell else tuple(name for name, names in reads.items() if names & sorts),
        tuple(name for name, names in reads.items() if names & having),
        tuple(name for name, names in reads.items() if names & keys),
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
