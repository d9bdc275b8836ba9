"""The statistical-query oracle: K averages of functions of a row, chosen one after another, on one charge.

Everything together costs epsilon, which is charged with the first query, before data is read (prepaid_ledger.py).
"""

import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.accuracy.noise_margins import round_up_to_float
from sfumato.accuracy.query_tolerances import (
    MOST_ROWS,
    PSI_BITS,
    QueryNoise,
    QueryTargets,
    bound_error,
    bound_error_of_ratio,
    bound_noise,
    bound_noise_of_ratio,
)
from sfumato.answering.certified_plans import certify_plan
from sfumato.answering.desk import AtDesk, Desk
from sfumato.answering.private_tables import choose_private_table
from sfumato.answering.psi_expressions import Psi, bind_psi, plan_sums
from sfumato.answering.question_record import write_prepaid_record
from sfumato.answering.receipt import compute_cost
from sfumato.answering.reported_prepayment import prepay_and_report
from sfumato.answers.answer import Cost
from sfumato.catalog.dataset import Dataset
from sfumato.errors import InvalidParameter, KernelFault, QueryError, describe_kind
from sfumato.kernel.losses import PureDP
from sfumato.kernel.neighbours import ROW, Neighbours
from sfumato.kernel.plan import BoundedPlan, Count, Measurement
from sfumato.ledger.ledger import Ledger
from sfumato.number_arguments import Number, read_privacy_amount, read_probability, read_whole_number
from sfumato.planning.query_shares import QueryShares, share_epsilon

MOST_QUERIES = 1_000_000
MOST_IN_ONE_SCAN = 500
MOST_RECORDED = 10_000  # letters of queries in the ledger's record
COUNT = "rows"


class ClampWarning(UserWarning):
    """The bounds of a query allow values outside 0 to 1. Such values are clamped."""


@dataclass(frozen=True, slots=True)
class OracleSettings:
    """What was asked for, before anything is charged. All of it is public."""

    table: str
    rows: int | None  # the public number of rows; None: it is private, and counted with noise
    shares: QueryShares
    beta: Fraction
    functions: int  # how many functions the tolerance covers
    psi_class: Mapping[Psi, str] | None  # the class as it was listed
    analyst: str

    @property
    def noise(self) -> QueryNoise:
        """The shares of epsilon, as the tolerances need them."""
        count = self.shares.count
        return QueryNoise(self.shares.k, Fraction(self.shares.query), None if count is None else Fraction(count))


@dataclass(frozen=True, slots=True)
class Begun:
    """What exists once the charge is made: the prepaid ledger, its cost, the data's versions and the noisy count."""

    ledger: Ledger
    cost: Cost
    versions: dict[str, str]
    noisy_rows: int | None


class StatisticalOracle:
    """Answers at most K statistical queries. Make one with `Curator.statistical_queries`."""

    def __init__(self, at_desk: AtDesk, settings: OracleSettings) -> None:
        self.settings = settings
        self._at_desk = at_desk
        self._lock = threading.Lock()  # one query at a time: an answer is stored before the next query is counted
        self._begun: Begun | None = None
        self._answers: dict[Psi, float] = {}
        self._unfinished: list[tuple[Psi, ...]] = []  # batches that may be charged and have no answer here

    def mean(self, psi: str) -> float:
        """The average of an SQL expression with values from 0 to 1, with noise. It uses one of the K queries.

        A query that was answered before uses none: the same answer is returned.
        """
        return self._ask([psi])[0]

    def means(self, psis: Sequence[str]) -> list[float]:
        """Several averages with one scan of the data (one scan for each 500). More than are left: none is asked."""
        if isinstance(psis, str) or not isinstance(psis, Sequence):
            raise InvalidParameter("psis", "must be a list of SQL expressions", describe_kind(psis))
        return self._ask(psis)

    def begin(self) -> Cost:
        """Charge epsilon for all K queries now, unless it is charged; the first query does it otherwise.

        Where the number of rows is private, this also counts them with noise, so that the tolerances are known.
        """
        with self._lock, self._at_desk() as desk:
            self._begin(desk)
            return self._require_begun().cost

    def _ask(self, psis: Sequence[str]) -> list[float]:
        with self._lock, self._at_desk() as desk:
            if self._begun is not None and dict(desk.versions) != self._begun.versions:
                hint = "Begin another oracle; it costs its own epsilon."
                raise QueryError("oracle-stale", "The data was prepared again since this oracle began.", hint)
            bound = [bind_psi(psi, desk.dataset, self.settings.table) for psi in psis]
            self._refuse_outside_class(bound)
            self._finish_paid(desk, bound)
            new = [psi for psi in dict.fromkeys(bound) if psi not in self._answers]
            if len(new) > self.remaining:
                raise self._finished_error(len(new))
            for psi in new:
                if psi.caution is not None:
                    warnings.warn(psi.caution, ClampWarning, stacklevel=3)
            for first in range(0, len(new), MOST_IN_ONE_SCAN):
                self._answer(desk, tuple(new[first : first + MOST_IN_ONE_SCAN]))
            return [self._answers[psi] for psi in bound]

    @property
    def remaining(self) -> int:
        """How many queries can still be asked."""
        shares, begun = self.settings.shares, self._begun
        if begun is None:
            return shares.k
        left = begun.ledger.totals().remaining
        if not isinstance(left, PureDP):
            return 0
        uncounted = shares.count if shares.count is not None and begun.noisy_rows is None else 0
        return max(int((left.epsilon - uncounted) // shares.query), 0)

    @property
    def cost(self) -> Cost | None:
        """What was charged for all K queries; None before the first query."""
        return None if self._begun is None else self._begun.cost

    @property
    def noise_scale(self) -> float:
        """The scale of the Laplace noise of one average: K/(epsilon m). Needs the number of rows, public or noisy."""
        return 1.0 / (float(self.settings.shares.query) * max(self._find_rows(), 1))

    @property
    def noisy_rows(self) -> int | None:
        """The noisy number of rows; None if the number is public, or before the first query."""
        return None if self._begun is None else self._begun.noisy_rows

    @property
    def empirical_tolerance(self) -> float:
        """With probability 1 - beta, all K answers are this close to the averages over the data.

        It holds for every way to choose the queries, also from earlier answers. docs/claims/K-55.md has the proof.
        """
        settings, rows = self.settings, self._find_rows()
        bound = bound_noise if settings.rows is not None else bound_noise_of_ratio
        return round_up_to_float(bound(settings.noise, rows, settings.beta))

    @property
    def tolerance(self) -> float:
        """With probability 1 - beta, all K answers are this close to the means over the distribution of the rows.

        It holds if the rows are independent draws, and the queries are fixed in advance or taken from the declared
        class. It does not hold for queries that are chosen without a class from anything that was computed from these
        rows: earlier answers of this oracle, of another one, or of `ask`.
        """
        settings, rows = self.settings, self._find_rows()
        bound = bound_error if settings.rows is not None else bound_error_of_ratio
        return round_up_to_float(bound(settings.noise, QueryTargets(settings.functions, settings.beta), rows))

    def _find_rows(self) -> int:
        if self.settings.rows is not None:
            return self.settings.rows
        if self._begun is None or self._begun.noisy_rows is None:
            message = "The number of rows is private, so the tolerance is known when they are counted."
            raise QueryError(
                "oracle-not-begun", message, "Call begin(), or ask a query first. learning.find_tolerance plans ahead."
            )
        return self._begun.noisy_rows

    def _refuse_outside_class(self, bound: Sequence[Psi]) -> None:
        psi_class, most = self.settings.psi_class, self.settings.functions
        if psi_class is not None and not psi_class.keys() >= set(bound):
            hint = "The tolerance covers the declared psi_class only. Begin another oracle with a larger class."
            raise QueryError("oracle-class", "This query is not in the oracle's class.", hint)
        if most < self.settings.shares.k and len(self._answers.keys() | set(bound)) > most:
            message = f"The declared class has {most:,} functions, and this would be more different queries."
            raise QueryError("oracle-class", message, "Begin another oracle with the class_size that you need.")

    def _finished_error(self, wanted: int) -> QueryError:
        left = self.remaining
        message = f"The oracle has {left} of {self.settings.shares.k} queries left, and {wanted} are asked."
        hint = "Ask fewer." if left else "Begin another oracle; it costs its own epsilon."
        return QueryError("oracle-finished", message, hint)

    def _finish_paid(self, desk: Desk, bound: Sequence[Psi]) -> None:
        """Finish what was stopped after its charge: the count, and batches that are asked again."""
        if self._begun is None:
            return
        self._begin(desk)
        for psis in [batch for batch in self._unfinished if not set(batch).isdisjoint(bound)]:
            self._unfinished.remove(psis)
            certificate = certify_plan(self._plan(desk, psis)).certificate
            if self._begun.ledger.quote(self.settings.analyst, certificate).taken.population == PureDP(0):
                self._answer(desk, psis)

    def _plan(self, desk: Desk, psis: Sequence[Psi]) -> BoundedPlan:
        share = PureDP(self.settings.shares.query)
        measurements = tuple(psi.measure(f"psi{number}", share) for number, psi in enumerate(psis))
        return plan_sums(desk, self.settings.table, measurements)

    def _answer(self, desk: Desk, psis: tuple[Psi, ...]) -> None:
        plan = self._plan(desk, psis)
        desk.engine.check(plan)  # before the charge of the whole: a query that cannot run costs nothing
        self._begin(desk)
        self._unfinished.append(psis)
        measured = self._measure(desk, plan)
        rows = max(self._find_rows(), 1)
        for psi, measurement in zip(psis, plan.measurements, strict=True):
            mean = Fraction(measured[measurement.name], rows << PSI_BITS)
            self._answers[psi] = float(min(max(mean, Fraction(0)), Fraction(1)))
        self._unfinished.remove(psis)

    def _begin(self, desk: Desk) -> None:
        """Charge the population's ledger, once. Count the rows where their number is private."""
        settings = self.settings
        if self._begun is None:
            shares, whole = settings.shares, PureDP(settings.shares.epsilon)
            record = write_prepaid_record(
                f"{shares.k} statistical queries",
                table=settings.table,
                shares=str(shares),
                psi=_describe_class(settings),
            )
            ledger, taken = prepay_and_report(desk.ledger, desk.admit(settings.analyst), whole, whole, record)
            weakref.finalize(self, ledger.close)
            self._begun = Begun(ledger, compute_cost(taken), dict(desk.versions), None)
        count = settings.shares.count
        if count is not None and self._begun.noisy_rows is None:
            plan = plan_sums(desk, settings.table, (Measurement(COUNT, Count(None), PureDP(count)),))
            self._begun = replace(self._begun, noisy_rows=self._measure(desk, plan)[COUNT])

    def _measure(self, desk: Desk, plan: BoundedPlan) -> dict[str, int]:
        """Charge the prepaid ledger, measure, and add noise. What the prepaid ledger has stored is not paid again."""
        prepaid = replace(desk, ledger=self._require_begun().ledger)
        answered = prepaid.answer(certify_plan(plan), self.settings.analyst, str)
        return {name: integers[0] for name, integers in answered.released[0].integers.items()}

    def _require_begun(self) -> Begun:
        if self._begun is None:
            raise KernelFault("An oracle answers after its charge.")
        return self._begun


def begin_oracle(  # noqa: PLR0917 - its caller names what it passes
    at_desk: AtDesk,
    k: int,
    epsilon: Number,
    beta: Number,
    table: str | None,
    psi_class: Sequence[str] | None,
    class_size: int | None,
    analyst: str,
) -> StatisticalOracle:
    """An oracle for K statistical queries. Nothing is charged before the first of them."""
    with at_desk() as desk:
        dataset = desk.dataset
        name = _choose_table(dataset, table)
        rows = _find_public_rows(dataset, name)
        counted = dataset.neighbours is Neighbours.ADD_REMOVE
        queries = read_queries(k)
        shares = share_epsilon(queries, read_privacy_amount(epsilon, "epsilon"), counted=counted)
        chosen = _read_class(psi_class, lambda psi: bind_psi(psi, dataset, name))
        if chosen is not None and class_size is not None:
            raise InvalidParameter("class_size", "must not be given with psi_class", "both", "Give one of them.")
        functions = read_class_size(class_size, queries) if chosen is None else len(chosen)
        miss = read_probability(beta, "beta")
        settings = OracleSettings(name, rows, shares, miss, functions, chosen, desk.admit(analyst))
        return StatisticalOracle(at_desk, settings)


def read_class_size(class_size: int | None, queries: int) -> int:
    """How many functions a tolerance covers: those of the declared class, or the queries, fixed in advance."""
    if class_size is None:
        return queries
    if isinstance(class_size, bool) or not isinstance(class_size, int):
        raise InvalidParameter("class_size", "must be a whole number, 1 or above", describe_kind(class_size))
    if class_size < 1:
        raise InvalidParameter("class_size", "must be a whole number, 1 or above", "a smaller number")
    return class_size  # it may have thousands of digits: only its logarithm is used


def read_queries(k: int) -> int:
    """K: from 1 to a million."""
    queries = read_whole_number(k, "k", 1)
    if queries > MOST_QUERIES:
        raise InvalidParameter("k", f"must be at most {MOST_QUERIES:,}", "a larger number")
    return queries


def _read_class(psi_class: Sequence[str] | None, bind: Callable[[str], Psi]) -> Mapping[Psi, str] | None:
    if psi_class is None:
        return None
    if isinstance(psi_class, str) or not isinstance(psi_class, Sequence) or not psi_class:
        raise InvalidParameter("psi_class", "must be a list of SQL expressions, at least one", describe_kind(psi_class))
    return {bind(psi): psi for psi in psi_class}


def _describe_class(settings: OracleSettings) -> str:
    """The queries as far as they are known when the charge is made. They are the analyst's, and public."""
    if settings.psi_class is None:
        return "chosen later, not recorded"
    written = "; ".join(settings.psi_class.values())
    return (
        written if len(written) <= MOST_RECORDED else f"from a class of {len(settings.psi_class):,}, too long to record"
    )


def _choose_table(dataset: Dataset, table: str | None) -> str:
    declared = choose_private_table(dataset, table, "Compute the average directly: it costs nothing.")
    if declared.unit is not ROW:
        kind = "a table in which one person may have several rows"
        hint = (
            "The tolerance needs independent rows, and the rows of one person are not. Load a table with one row for "
            "each person and unit=ROW; or ask AVG with `ask`, which bounds what one person contributes."
        )
        raise InvalidParameter("table", "must have the row as its unit", kind, hint)
    return declared.name


def _find_public_rows(dataset: Dataset, table: str) -> int | None:
    rows = dataset.table(table).rows
    if dataset.neighbours is Neighbours.ADD_REMOVE:
        return None
    if rows is None:
        hint = "Declare rows = n: with replace-one the number of rows is public. Or use add-remove neighbours."
        raise InvalidParameter("rows", "must be declared for statistical queries with replace-one", "nothing", hint)
    if rows > MOST_ROWS:
        raise InvalidParameter("rows", f"must be at most {MOST_ROWS:,} for statistical queries", "a larger number")
    return rows
