"""What a learner guarantees, and the one way to fit a learner on a protected dataset."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from sfumato.accuracy.noise_margins import round_up_to_float
from sfumato.answering.desk import DEFAULT_ANALYST
from sfumato.answers.answer import Cost
from sfumato.curator import Curator
from sfumato.errors import InvalidParameter, describe_kind
from sfumato.learning.hypotheses import Hypothesis
from sfumato.learning.row_conditions import Condition
from sfumato.learning.sample_sizes import REPLACE_ONE, sample_size
from sfumato.number_arguments import Number, read_privacy_amount, read_probability


@dataclass(frozen=True, slots=True)
class Guarantee:
    """With m rows or more, the error is at most alpha with probability 1 - beta, and everything costs epsilon.

    It holds if the rows are independent draws and some rule of the learner's class gives every label.
    """

    alpha: float
    beta: float
    epsilon: Decimal
    k: int  # statistical queries
    tolerance: float  # of each query, all together
    m: int  # rows
    class_size: int  # of the functions that may be asked

    def __str__(self) -> str:
        return (
            f"K = {self.k:,} queries within ±{self.tolerance:.4g}: m = {self.m:,} rows for an error of at most "
            f"{self.alpha:g} with probability {1 - self.beta:g} at ε = {self.epsilon}"
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted rule. `alpha` bounds its error with probability 1 - beta, by the tolerance of the queries."""

    hypothesis: Hypothesis
    alpha: float
    beta: float
    tolerance: float
    queries: int  # that were asked, at most K
    cost: Cost

    @property
    def sql(self) -> str:
        """The rule as an SQL condition."""
        return self.hypothesis.sql

    def __str__(self) -> str:
        return f"{self.hypothesis} (error <= {self.alpha:.4g} with probability {1 - self.beta:g}; {self.cost})"

    __repr__ = __str__


class Oracle(Protocol):
    """What a learner needs of the oracle."""

    def means(self, psis: Sequence[str]) -> list[float]:
        """The averages of several expressions."""
        ...


class Learner(Protocol):
    """A learner that asks statistical queries. Its error is at most `error_factor` times their tolerance."""

    @property
    def target(self) -> str: ...
    @property
    def k(self) -> int: ...
    @property
    def class_size(self) -> int: ...
    @property
    def error_factor(self) -> int: ...

    def read_conditions(self, curator: Curator, table: str) -> tuple[Condition, ...]:
        """The conditions on a row that it needs: the label first."""
        ...

    def learn(self, oracle: Oracle, tolerance: float, conditions: Sequence[Condition]) -> Hypothesis:
        """Ask queries that are within the tolerance, and choose a rule."""
        ...


def guarantee_error(
    learner: Learner, alpha: Number, beta: Number, epsilon: Number, neighbours: str = REPLACE_ONE
) -> Guarantee:
    """K, the tolerance and m for an error of at most alpha with probability 1 - beta."""
    wanted, miss = read_probability(alpha, "alpha"), read_probability(beta, "beta")
    tolerance = wanted / learner.error_factor
    rows = sample_size(learner.k, tolerance, miss, epsilon, class_size=learner.class_size, neighbours=neighbours)
    amount = read_privacy_amount(epsilon, "epsilon")
    return Guarantee(float(wanted), float(miss), amount, learner.k, float(tolerance), rows, learner.class_size)


def fit_learner(
    learner: Learner,
    dataset: Curator,
    epsilon: Number,
    beta: Number = "0.05",
    alpha: Number | None = None,
    *,
    table: str | None = None,
    analyst: str = DEFAULT_ANALYST,
) -> Fitted:
    """Fit through the oracle of a protected dataset. With an alpha, too few rows are refused before anything is spent.

    Without an alpha, the result states the alpha that the tolerance of the queries gives.
    """
    if not isinstance(dataset, Curator):
        raise InvalidParameter("dataset", "must be what sf.protect or sf.open returns", describe_kind(dataset))
    oracle = dataset.statistical_queries(
        learner.k, epsilon, beta, table=table, class_size=learner.class_size, analyst=analyst
    )
    settings = oracle.settings
    conditions = learner.read_conditions(dataset, settings.table)
    if alpha is not None:
        _refuse_few_rows(guarantee_error(learner, alpha, beta, epsilon), settings.rows)
    oracle.begin()
    tolerance = oracle.tolerance
    hypothesis = learner.learn(oracle, tolerance, conditions)
    reached = min(Fraction(tolerance) * learner.error_factor, Fraction(1))
    asked = learner.k - oracle.remaining
    return Fitted(hypothesis, round_up_to_float(reached), float(settings.beta), tolerance, asked, oracle.begin())


def _refuse_few_rows(wanted: Guarantee, rows: int | None) -> None:
    if rows is None:
        hint = "Leave alpha out: the fitted rule states the alpha that it reaches. Or declare replace-one and rows = n."
        raise InvalidParameter("alpha", "needs a public number of rows", "a private one (add-remove)", hint)
    if rows < wanted.m:
        hint = "Raise alpha, beta or epsilon, use more rows, or leave alpha out to get what these rows give."
        kind = f"{rows:,} rows"
        raise InvalidParameter("alpha", f"needs {wanted.m:,} rows at this beta and epsilon", kind, hint)
