"""Warnings about an answer: divisors near zero, and no undeclared key that passed its threshold."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sfumato.answers.key_threshold import describe_key_threshold
from sfumato.answers.present_keys import describe_present_keys
from sfumato.answers.released_values import Reading, find_linear_margin, read_linear
from sfumato.kernel.certify import Certificate
from sfumato.planning.formulas import CountFormula, MeanFormula, PairFormula, SumFormula, VarianceFormula, sums_of
from sfumato.planning.linear import Linear
from sfumato.planning.planner import Planned
from sfumato.query.query import AggregateRef, Post, PostCall, Query

MOST_NAMED = 3
NO_KEY = "No undeclared key reached the threshold."
MORE_KEYS = (
    "A larger epsilon or delta lowers the threshold. Coarser keys have more people. Declared keys need no threshold."
)
FEW_ROWS = (
    "the divisor, a noisy number of rows, is not further from zero than its margin. There may be no rows at all, and "
    "the value may be noise only."
)
SMALL_TOTAL = (
    "the noisy divisor is not further from zero than its margin. The true divisor may be zero, and the value may be "
    "noise only."
)


def find_cautions(
    query: Query, planned: Planned, certificate: Certificate, shown: Reading, labels: Sequence[str],
    *, cells: int, confidence: Fraction,
) -> tuple[str, ...]:  # fmt: skip
    """Find the warnings about the question and the shown rows. `labels` names these; `cells` were released."""
    said = list(query.cautions)
    present = describe_present_keys(query, planned, certificate, confidence)
    if present is not None:
        said.append(present)
    if not cells:
        said.append(f"{NO_KEY} {describe_key_threshold(planned, certificate)} {MORE_KEYS}")
    by_name = {vector.name: vector for vector in shown.measured}
    for name, post in query.columns if labels else ():
        counts, totals = _find_count_divisors(post, planned), _find_total_divisors(post, planned)
        for divisors, why in ((counts, FEW_ROWS), (totals, SMALL_TOTAL)):
            near = np.zeros(len(labels), bool)
            for divisor in divisors:
                if divisor.terms:
                    found = np.broadcast_to(read_linear(divisor, shown.values), len(labels))
                    found = found if divisors is counts else np.abs(found)
                    near |= found <= find_linear_margin(divisor, by_name, confidence)
            if near.any():
                where = [labels[place] for place in np.flatnonzero(near).tolist()]
                said.append(_describe_near_zero(name, where, len(labels), why))
    return tuple(said)


def _describe_near_zero(name: str, labels: list[str], rows: int, why: str) -> str:
    if rows == 1 and labels == [""]:
        where = ""
    else:
        more = f" and {len(labels) - MOST_NAMED:,} more" if len(labels) > MOST_NAMED else ""
        where = f" for {', '.join(labels[:MOST_NAMED])}{more}"
    return f"{name}{where}: {why}"


def _find_count_divisors(post: Post, planned: Planned) -> list[Linear]:
    """The noisy counts that an output divides by."""
    match post:
        case AggregateRef(index):
            formula = planned.formulas[index]
            return [formula.count] if isinstance(formula, MeanFormula | VarianceFormula | PairFormula) else []
        case PostCall("/", (over, AggregateRef(index))) if isinstance(planned.formulas[index], CountFormula):
            return [*_find_count_divisors(over, planned), *sums_of(planned.formulas[index])]
        case PostCall(_, arguments):
            return [count for argument in arguments for count in _find_count_divisors(argument, planned)]
        case _:
            return []


def _find_total_divisors(post: Post, planned: Planned) -> list[Linear]:
    """The noisy sums that an output divides by; for an average, the sum of the averaged values."""
    match post:
        case PostCall("/", (over, AggregateRef(index))):
            formula = planned.formulas[index]
            found = _find_total_divisors(over, planned)
            if isinstance(formula, MeanFormula):  # its total is a sum of values minus a centre
                return [*found, formula.total.plus(formula.count, Fraction(formula.centre))]
            return [*found, formula.total] if isinstance(formula, SumFormula) else found
        case PostCall(_, arguments):
            return [total for argument in arguments for total in _find_total_divisors(argument, planned)]
        case _:
            return []
