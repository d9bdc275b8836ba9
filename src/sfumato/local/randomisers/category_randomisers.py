"""Randomisers of one category out of k: made for an epsilon, or rebuilt from their published table."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import write_plain
from sfumato.local.mechanisms.coin_tables import UNITS, bound_ratio_loss
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.randomisers.category_tables import (
    NAMES,
    CategoryTable,
    Support,
    describe_category_table,
    form_of,
    make_category_table,
    rebuild_category_table,
    support_of,
)
from sfumato.local.randomisers.report_forms import Counts, Form, Reports, check_reports, draw_in_blocks
from sfumato.local.randomisers.share_estimates import (
    Estimate,
    compute_normal_quantile,
    estimate_shares,
    variance_asked,
    variance_population,
)
from sfumato.local.randomisers.support_counts import count_supports
from sfumato.local.randomisers.tally import Tally
from sfumato.number_arguments import Number, read_positive_decimal, read_probability, read_whole_number
from sfumato.number_arrays import plain_array


@dataclass(frozen=True, slots=True)
class Randomiser:
    """A table for one of k categories, with its loss, its bulk operations and its estimates."""

    mechanism: CategoryTable

    def __post_init__(self) -> None:
        true, other = self.support
        if true <= other:
            raise InvalidParameter("table", "must report the truth more often than any other answer", "another table")

    def __repr__(self) -> str:
        return f"<{self.name} over {self.k} categories, epsilon {write_plain(self.epsilon)}>"

    @property
    def name(self) -> str:
        return self.mechanism.name

    @property
    def k(self) -> int:
        return self.mechanism.k

    @property
    def epsilon(self) -> Decimal:
        """The privacy loss of one report, computed from the table and rounded up at the thirtieth digit."""
        return bound_ratio_loss(self.mechanism.ratio)

    @property
    def form(self) -> Form:
        return form_of(self.mechanism)

    @property
    def support(self) -> Support:
        """p and q: the probability that a report supports its own category, and that it supports another given one."""
        return support_of(self.mechanism)

    def describe(self) -> dict[str, object]:
        """The published table: plain numbers and text, from which `rebuild` makes the same randomiser."""
        return describe_category_table(self.mechanism)

    @overload
    def randomise(self, values: int) -> int | Reports: ...
    @overload
    def randomise(self, values: Sequence[int] | npt.NDArray[np.integer[Any]]) -> Reports: ...
    @overload
    def randomise(self, values: object) -> int | Reports: ...
    def randomise(self, values: object) -> int | Reports:
        """Randomise the category (0 .. k-1) of one person, or of an array of people. Each person reports once."""
        flat, single = read_categories(values, self.k)
        reports = draw_in_blocks(self.mechanism.draw, flat, self.form, SYSTEM)
        return self.form.take_single(reports) if single else reports

    def tally(self, reports: object) -> Tally:
        """Count well-formed reports: their number, and how many support each category."""
        checked = check_reports(self.form, reports)
        return Tally(len(checked), count_supports(self.mechanism, checked))

    def estimate(self, reports: object, confidence: Number = "0.95", *, simultaneous: bool = False) -> Estimate:
        """Estimate the share of people in each category, from reports or from a tally of them."""
        tally = reports if isinstance(reports, Tally) else self.tally(reports)
        if tally.counts.size != self.k:
            raise InvalidParameter("tally", f"must have {self.k} counts", "another number of them")
        return estimate_shares(tally, self.support, confidence, simultaneous)

    def variance_asked(self, share: float) -> float:
        """n times the variance of an estimate for the people who were asked, for a category of this share."""
        return float(variance_asked(self.support, np.asarray(share, np.float64)))

    def variance_population(self, share: float) -> float:
        """n times the variance of an estimate for the population from which the people were drawn."""
        return float(variance_population(self.support, np.asarray(share, np.float64)))

    def margin(self, people: int, confidence: Number = "0.95", share: float | None = None) -> float:
        """The half-width of the confidence interval of a share, before collecting.

        `share` is the true share (default: 1/k). The interval covers the randomisation and the sampling of the people,
        by the normal approximation. It does not cover people who do not answer, or fake reports.
        """
        spread = self.variance_population(1 / self.k if share is None else share) / read_whole_number(
            people, "people", 1
        )
        return float(compute_normal_quantile(1 - read_probability(confidence, "confidence")) * spread**0.5)


def randomiser(
    name: str, *, k: int | None = None, epsilon: Number | None = None, truth: Number | None = None
) -> Randomiser:
    """The randomiser of this name with the most informative table over 2**32 that costs at most epsilon.

    "rr" (yes or no; truth=Fraction(3, 4) is the two-coin version), "krr", "subset", "oue", "sue", "olh", "hadamard".
    """
    if name not in NAMES:
        raise InvalidParameter("name", f"must be one of {', '.join(NAMES)}", "another name")
    if truth is not None:
        if name != "rr" or epsilon is not None:
            raise InvalidParameter("truth", "needs the name rr, and replaces epsilon", "both, or another name")
        return Randomiser(Kary(2, int(read_probability(truth, "truth") * UNITS), "rr"))
    if k is None and name != "rr":
        raise InvalidParameter("k", "must be the number of categories", "nothing")
    return Randomiser(make_category_table(name, 2 if k is None else k, read_positive_decimal(epsilon, "epsilon")))


def rebuild_categories(description: object) -> Randomiser:
    """The randomiser of a published table. A document that is not exactly such a table is refused.

    No epsilon is read from the document: `epsilon` of the result is computed from the table.
    """
    return Randomiser(rebuild_category_table(description))


def read_categories(values: object, k: int) -> tuple[Counts, bool]:
    """Read categories 0 .. k-1 as a flat array, and whether the input was a single one. False is 0, and True is 1."""
    array = plain_array(values, "values")
    if array.dtype.kind == "b" and k == 2:
        array = array.astype(np.int64)
    rule = f"must be whole numbers from 0 to {k - 1}"
    if array.dtype.kind not in "iu" and array.size:
        raise InvalidParameter("values", rule, describe_kind(values))
    if array.size and (int(array.min()) < 0 or int(array.max()) >= k):
        raise InvalidParameter("values", rule, "a number outside")
    return array.astype(np.int64, copy=False).reshape(-1), array.ndim == 0
