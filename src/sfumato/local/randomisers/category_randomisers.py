"""Randomisers of one category out of k: made for an epsilon, or rebuilt from their published table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.exact import plain
from sfumato.kernel.grid import plain_array
from sfumato.kernel.parameters import Number, kind_of, positive_decimal, probability_inside, whole_number
from sfumato.local.mechanisms.coin_tables import UNITS, loss_of_ratio
from sfumato.local.mechanisms.hadamard import Hadamard
from sfumato.local.mechanisms.hashing import Hashing
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.report_forms import Counts, Form, Reports, well_formed
from sfumato.local.mechanisms.subset import Subset
from sfumato.local.mechanisms.unary import Unary
from sfumato.local.randomisers.share_estimates import (
    Estimate,
    estimate_shares,
    normal_quantile,
    variance_asked,
    variance_population,
)
from sfumato.local.randomisers.tally import Tally

NAMES = ("rr", "krr", "subset", "oue", "sue", "olh", "hadamard")


class Mechanism(Protocol):
    """A published table: a report supports some categories, the true one with p and any other with q."""

    @property
    def name(self) -> str: ...
    @property
    def k(self) -> int: ...
    @property
    def ratio(self) -> Fraction:
        """The most times as likely that any report is for one category as for another."""
        ...

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """p and q: the probability that a report supports its own category, and that it supports another given one."""
        ...

    @property
    def blanket(self) -> tuple[Fraction, Fraction]:
        """The probability that a report that tells nothing supports one category, and two given ones."""
        ...

    @property
    def form(self) -> Form: ...
    def describe(self) -> dict[str, object]: ...
    def draw(self, values: Counts, entropy: Entropy) -> Reports: ...
    def supports(self, reports: Reports) -> Counts: ...


@dataclass(frozen=True, slots=True)
class Randomiser:
    """A mechanism with its loss, its bulk operations and its estimates."""

    mechanism: Mechanism

    def __post_init__(self) -> None:
        true, other = self.mechanism.support
        if true <= other:
            raise InvalidParameter("table", "must report the truth more often than anything else", "one that does not")

    def __repr__(self) -> str:
        return f"<{self.name} over {self.k} categories, epsilon {plain(self.epsilon)}>"

    @property
    def name(self) -> str:
        return self.mechanism.name

    @property
    def k(self) -> int:
        return self.mechanism.k

    @property
    def epsilon(self) -> Decimal:
        """The loss of one report: a fact of the table, rounded up at the thirtieth digit."""
        return loss_of_ratio(self.mechanism.ratio)

    @property
    def form(self) -> Form:
        return self.mechanism.form

    def describe(self) -> dict[str, object]:
        """The published table: plain numbers and text, from which `rebuild` makes the same again."""
        return self.mechanism.describe()

    @overload
    def randomise(self, values: int) -> int | Reports: ...
    @overload
    def randomise(self, values: Sequence[int] | npt.NDArray[np.integer[Any]]) -> Reports: ...
    @overload
    def randomise(self, values: object) -> int | Reports: ...
    def randomise(self, values: object) -> int | Reports:
        """Reports on categories 0 .. k-1, of one person or of an array of people. Each person reports once."""
        flat, single = read_categories(values, self.k)
        reports = self.mechanism.draw(flat, SYSTEM)
        return self.form.one(reports) if single else reports

    def tally(self, reports: object) -> Tally:
        """What a collector keeps of well-formed reports: their number, and the support of each category."""
        kept = well_formed(self.form, reports)
        return Tally(len(kept), self.mechanism.supports(kept))

    def estimate(self, reports: object, confidence: Number = "0.95", *, simultaneous: bool = False) -> Estimate:
        """The share of people in each category, from reports or from a tally of them."""
        tally = reports if isinstance(reports, Tally) else self.tally(reports)
        if tally.counts.size != self.k:
            raise InvalidParameter("tally", f"must have {self.k} counts", "another number of them")
        return estimate_shares(tally, self.mechanism.support, confidence, simultaneous)

    def variance_asked(self, share: float) -> float:
        """n times the variance of an estimate about the people who were asked, for a category of this share."""
        return float(variance_asked(self.mechanism.support, np.float64(share)))  # type: ignore[arg-type]

    def variance_population(self, share: float) -> float:
        """n times the variance about the population from which the people were drawn."""
        return float(variance_population(self.mechanism.support, np.float64(share)))  # type: ignore[arg-type]

    def margin(self, people: int, confidence: Number = "0.95", share: float | None = None) -> float:
        """Before collecting: how far a frequency will be off at most, for a category of this share (default: 1/k)."""
        spread = self.variance_population(1 / self.k if share is None else share) / whole_number(people, "people", 1)
        return float(normal_quantile(1 - probability_inside(confidence, "confidence")) * spread**0.5)


def randomiser(
    name: str, *, k: int | None = None, epsilon: Number | None = None, truth: Number | None = None
) -> Randomiser:
    """The randomiser of this name with the most telling table over 2**32 that costs at most epsilon.

    "rr" (yes or no; truth=Fraction(3, 4) is the two-coin version), "krr", "subset", "oue", "sue", "olh", "hadamard".
    """
    if name not in NAMES:
        raise InvalidParameter("name", f"must be one of {', '.join(NAMES)}", "another name")
    if truth is not None:
        if name != "rr" or epsilon is not None:
            raise InvalidParameter("truth", "goes with rr alone, and stands for epsilon", "both, or another name")
        return Randomiser(Kary(2, int(probability_inside(truth, "truth") * UNITS), "rr"))
    if k is None and name != "rr":
        raise InvalidParameter("k", "must be the number of categories", "nothing")
    exact, count = positive_decimal(epsilon, "epsilon"), 2 if k is None else k
    return Randomiser(_mechanism(name, count, exact))


def _mechanism(name: str, k: int, epsilon: Decimal) -> Mechanism:
    made: dict[str, Callable[[int, Decimal], Mechanism]] = {
        "rr": partial(Kary.for_epsilon, name="rr"),
        "krr": Kary.for_epsilon,
        "subset": Subset.for_epsilon,
        "oue": Unary.optimised,
        "sue": Unary.symmetric,
        "olh": Hashing.for_epsilon,
        "hadamard": Hadamard.for_epsilon,
    }
    return made[name](k, epsilon)


def rebuild_categories(description: object) -> Randomiser:
    """The randomiser of a published table; whatever is not exactly such a table is refused.

    Nothing that the document says about epsilon is read: `epsilon` of the result is worked out from the table.
    """
    match description:
        case {"mechanism": "rr" | "krr" as name, "k": k, "coins": {"keep": keep, **rest}, **more} if (
            not rest and not more
        ):
            return Randomiser(Kary(k, keep, name))
        case {"mechanism": "subset", "k": k, "size": size, "coins": {"include": include, **rest}, **more} if (
            not rest and not more
        ):
            return Randomiser(Subset(k, size, include))
        case {"mechanism": "oue" | "sue" as name, "k": k, "coins": {"one": one, "zero": zero, **rest}, **more} if (
            not rest and not more
        ):
            return Randomiser(Unary(k, one, zero, name))
        case {
            "mechanism": "olh",
            "k": k,
            "hash_bits": bits,
            "polynomial": polynomial,
            "coins": {"keep": keep, **rest},
            **more,
        } if not rest and not more:
            return Randomiser(Hashing(k, bits, polynomial, keep))
        case {"mechanism": "hadamard", "k": k, "coins": {"keep": keep, **rest}, **more} if not rest and not more:
            return Randomiser(Hadamard(k, keep))
    kind = "a document that is none" if isinstance(description, Mapping) else kind_of(description)
    raise InvalidParameter("description", "must be the published table of a randomiser", kind)


def read_categories(values: object, k: int) -> tuple[Counts, bool]:
    """Categories 0 .. k-1 as a flat array, and whether it was a single one. Truth values are 0 and 1."""
    array = plain_array(values, "values")
    if array.dtype.kind == "b" and k == 2:
        array = array.astype(np.int64)
    rule = f"must be whole numbers from 0 to {k - 1}"
    if array.dtype.kind not in "iu" and array.size:
        raise InvalidParameter("values", rule, kind_of(values))
    if array.size and (int(array.min()) < 0 or int(array.max()) >= k):
        raise InvalidParameter("values", rule, "a number outside")
    return array.astype(np.int64, copy=False).reshape(-1), array.ndim == 0
