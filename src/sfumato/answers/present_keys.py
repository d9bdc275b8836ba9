"""SELECT DISTINCT city: which of the declared keys are shown. It is post-processing of their noisy numbers.

Undeclared keys need nothing here: the kernel releases them by a threshold.
"""

import math
from fractions import Fraction

from sfumato.answers.column_margins import assume_release
from sfumato.answers.released_values import Reading, find_linear_margin
from sfumato.kernel.certify import Certificate
from sfumato.planning.formulas import CountFormula
from sfumato.planning.planner import Planned
from sfumato.query.query import Query


def find_least_number(query: Query, planned: Planned, reading: Reading, confidence: Fraction) -> int | None:
    """The least noisy number with which a declared key is shown: with this confidence, every shown key occurs.

    A key that nobody has is shown if its noise reaches this number. The chance is shared among all keys.
    """
    formula, cells = planned.formulas[0], planned.plan.cells
    if not query.keys_alone or cells is None or not isinstance(formula, CountFormula):
        return None
    by_name = {vector.name: vector for vector in reading.measured}
    return math.floor(find_linear_margin(formula.count, by_name, 1 - (1 - confidence) / cells)) + 1


def describe_present_keys(query: Query, planned: Planned, certificate: Certificate, confidence: Fraction) -> str | None:
    """State which keys are shown, where only declared keys are asked for."""
    least = find_least_number(query, planned, assume_release(certificate, {}), confidence)
    if least is None:
        return None
    people = "people" if query.aggregates[0].function == "PEOPLE" else "rows"
    return (
        f"A declared key is shown if its noisy number of {people} is at least {least:,}: with "
        f"{100 * float(confidence):.4g} % confidence, every shown key occurs. A key with fewer than "
        f"{2 * least:,} {people} may be missing. Declared keys are public: to list all of them, read the catalog."
    )
