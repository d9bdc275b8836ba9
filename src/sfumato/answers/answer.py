"""Answer: the rows, their intervals, an explanation and plots. It is computed from released values only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sfumato.answers.answer_chart import ChartData, draw_answer
from sfumato.answers.explanation import join_explanation, prepend_warnings
from sfumato.answers.group_loss import describe_loss, extend_to_group
from sfumato.answers.measurement_summary import MeasurementSummary
from sfumato.answers.output_sensitivity import ColumnSensitivity
from sfumato.answers.proofs import PROOFS, link_proofs
from sfumato.answers.shown_values import write_rows, write_rows_html
from sfumato.arguments import check_truth
from sfumato.drawing.plot import Plot
from sfumato.errors import InvalidParameter
from sfumato.extras import imported
from sfumato.kernel.exact import write_plain
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.shown_amounts import describe_weakness, write_amounts

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """A privacy loss that was spent or remains, in exact decimals that float() accepts.

    `rho` is set only under zCDP accounting, and `mu_squared` only under Gaussian-DP accounting. There, Laplace noise
    has both an epsilon and what it takes from the budget.
    """

    epsilon: Decimal | None
    delta: Decimal
    rho: Decimal | None = None
    mu_squared: Decimal | None = None

    @classmethod
    def from_loss(cls, loss: PrivacyLoss) -> "Cost":
        match loss:
            case PureDP(epsilon):
                return cls(epsilon, Decimal(0))
            case ApproxDP(epsilon, delta):
                return cls(epsilon, delta)
            case ZCDP(rho, delta):
                return cls(None, delta, rho)
            case GDP(mu_squared, delta):
                return cls(None, delta, None, mu_squared)

    @classmethod
    def from_charge(cls, loss: PrivacyLoss, counted: PrivacyLoss) -> "Cost":
        """The certified loss, with the rho or mu**2 that the budget counts for it."""
        cost = cls.from_loss(loss)
        match counted:
            case ZCDP(rho):
                return replace(cost, rho=rho, mu_squared=None)
            case GDP(mu_squared):
                return replace(cost, mu_squared=mu_squared)
            case _:
                return cost

    def as_text(self) -> dict[str, str]:
        parts = {"epsilon": self.epsilon, "rho": self.rho, "mu_squared": self.mu_squared, "delta": self.delta}
        return {name: write_plain(value) for name, value in parts.items() if value is not None}

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={text}" for name, text in self.as_text().items())
        return f"Cost({parts})"

    def __str__(self) -> str:
        return write_amounts(self.as_text())

    def describe_left(self) -> str:
        """What remains, as text. A long amount is rounded down; `str` rounds up, as what is spent needs it."""
        return write_amounts(self.as_text(), "down")


Details = Callable[[str], Any]  # computes a detail of an answer from its name


class KnownDetails:
    """The details of an answer that was pickled or copied. They hold values only, not the signing key."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __call__(self, name: str) -> Any:  # noqa: ANN401 - each detail has a type of its own
        """The detail with this name."""
        return self.values[name]


@dataclass(frozen=True)
class Answer:
    """Rows of plain Python values, with a confidence interval for every number.

    `cost` is the loss that was charged to the analyst: to the analyst's own limit if there is one, otherwise to the
    population's budget. `population_cost` is the loss that was charged to the population's budget: zero for a stored
    answer. The details (`intervals` to `disclosure`) are computed when they are first read.
    """

    columns: tuple[str, ...]
    rows: list[Row]
    confidence: float
    cost: Cost
    remaining: Cost
    entry: int
    cached: bool
    head: str
    population_cost: Cost
    own_remaining: Cost | None  # of the analyst's own limit; None without one
    keys: tuple[str, ...] = field(repr=False)
    neighbours: Neighbours = field(repr=False)
    loss: PrivacyLoss = field(repr=False)  # of all releases that the answer shows, also if the answer was free
    _details: Details = field(repr=False, compare=False)
    rehearsed: bool = field(default=False, repr=False)  # on made-up rows: nothing was spent
    # The details. They are fields for `asdict`; `_compute_later` makes them properties.
    # For each row, the two ends of each number's confidence interval:
    intervals: list[dict[str, tuple[float, float]]] = field(init=False, repr=False, compare=False)
    # The measurements, and sentences about the whole answer, for explain():
    measurements: tuple[MeasurementSummary, ...] = field(init=False, repr=False, compare=False)
    sentences: tuple[str, ...] = field(init=False, repr=False, compare=False)
    # How much one person can change each column:
    sensitivities: tuple[ColumnSensitivity, ...] = field(init=False, repr=False, compare=False)
    # Reasons to distrust some of the rows:
    warnings: tuple[str, ...] = field(init=False, repr=False, compare=False)
    # The confidence of the intervals and what they do not cover; empty if the answer has no interval:
    interval_note: str = field(init=False, repr=False, compare=False)
    # The signed statement of what this answer promises:
    disclosure: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: compute everything now, so that the signing key is not copied."""
        computed = {name: getattr(self, name) for name in DETAILS}
        return {**self.__dict__, **computed, "_details": KnownDetails(computed)}

    def explain(self, people: int = 1) -> str:
        """How the answer was made: sensitivities, noise, bounds, the loss for a group of people, and what intervals
        do not cover."""
        loss = describe_loss(self.loss, self.neighbours, people)
        text = join_explanation(self.sensitivities, self.measurements, self.sentences, self.confidence, loss)
        return prepend_warnings(self.warnings, text)

    def explain_html(self, people: int = 1, proofs: str = PROOFS) -> str:
        """The text of explain() as a piece of HTML, with a link to each proof in the folder or address `proofs`."""
        return link_proofs(self.explain(people), proofs)

    def price(self) -> str:
        """The cost, the budget that was charged, and what remains, as text."""
        if self.rehearsed:
            return f"Rehearsed on made-up rows with {self.cost}: no number is about the data. Nothing was spent."
        own = ""
        if self.own_remaining is not None:
            own = f" of the population's budget, {self.own_remaining.describe_left()} of your limit"
        left = f"Left: {self.remaining.describe_left()}{own}."
        if not self.cached:
            return f"Cost: {self.cost}. {left} {describe_weakness(self.cost.epsilon)}".rstrip()
        if self.cost == self.population_cost:
            return f"Free: answered before, as entry {self.entry}. {left}"
        stored = f"Answered before for another analyst, as entry {self.entry}"
        return f"{stored}. Cost: {self.cost} of your limit, 0 of the population's budget. {left}"

    def to_dict(self, people: int = 1) -> dict[str, Any]:
        """The JSON of `ask --json`. `loss` is for a group of `people`, without numbers if there is no guarantee.

        For an analyst with an own limit it also has the costs and remainders of both budgets.
        """
        whose: dict[str, Any] = {}
        if self.own_remaining is not None:
            whose = {
                "population_cost": self.population_cost.as_text(),
                "own_remaining": self.own_remaining.as_text(),
            }
        return {
            "columns": list(self.columns),
            "rows": self.rows,
            "intervals": [{name: list(ends) for name, ends in row.items()} for row in self.intervals],
            "cost": self.cost.as_text(),
            "remaining": self.remaining.as_text(),
            "entry": self.entry,
            "cached": self.cached,
            "warnings": list(self.warnings),
            "loss": write_loss_json(self.loss, people),
            "one_person_changes": {output.column: output.one_person_changes for output in self.sensitivities},
            "confidence": self.confidence,
            "interval_note": self.interval_note,
            **whose,
        }

    def _make_table(self, intervals: bool) -> dict[str, list[Any]]:
        check_truth(intervals, "intervals")
        table: dict[str, list[Any]] = {}
        for name in self.columns:
            table[name] = [row[name] for row in self.rows]
            if intervals and any(name in row for row in self.intervals):
                for place, end in enumerate(("_low", "_high")):
                    heading = name + end
                    while heading in self.columns:  # the question has a column of this name
                        heading += "_"
                    table[heading] = [row.get(name, (None, None))[place] for row in self.intervals]
        return table

    def to_pandas(self, intervals: bool = False) -> "pandas.DataFrame":
        """A pandas frame. With `intervals`, each number has two more columns: `_low` and `_high`."""
        made: pandas.DataFrame = imported("pandas").DataFrame(self._make_table(intervals))
        return made

    def to_polars(self, intervals: bool = False) -> "polars.DataFrame":
        """A polars frame, like to_pandas."""
        made: polars.DataFrame = imported("polars").DataFrame(self._make_table(intervals))
        return made

    def to_arrow(self, intervals: bool = False) -> "pyarrow.Table":
        """An Arrow table, like to_pandas."""
        import pyarrow

        return pyarrow.table(self._make_table(intervals))

    def __repr__(self) -> str:
        warned = (f"Warning: {warning}" for warning in self.warnings)
        return write_rows(self.columns, self.rows, self.intervals, [*warned, self.price(), self.interval_note])

    def _repr_html_(self) -> str:
        note = f"{self.price()} {self.interval_note}".rstrip()
        return write_rows_html(self.columns, self.rows, self.intervals, self.warnings, note)

    def plot(self, column: str | Sequence[str] | None = None) -> Plot:
        """Draw columns with their confidence intervals: one of them, some, or all numbers of the answer.

        Dates become a time series, bins a histogram, and a second key has colours.
        """
        measured = [name for name in self.columns if name not in self.keys]
        numbers = [name for name in measured if any(isinstance(row[name], (int, float)) for row in self.rows)]
        given: list[object] = list(column) if isinstance(column, (list, tuple)) else [column]
        wanted = (
            (numbers or measured[:1])
            if column is None
            else [name for name in given if isinstance(name, str) and name in measured]
        )
        if not wanted or (column is not None and len(wanted) < len(given)):
            rule = f"must be one of {', '.join(measured) or 'the numbers'}, or a list of them"
            raise InvalidParameter("column", rule, "something else")
        bare = [name for name in wanted if not any(name in ends for ends in self.intervals)]
        level = f"{100 * self.confidence:.4g} % confidence intervals; {self.cost}"
        covered = "Intervals cover the noise, not the bias from contribution bounds and clamping (see diagnose)."
        notes = [
            "Rehearsed on made-up rows." if self.rehearsed else "",
            *([level, covered] if len(bare) < len(wanted) else [str(self.cost)]),
            f"No interval in value: {', '.join(bare)}." if bare else "",
        ]
        caption = "\n".join(note for note in notes if note)
        return draw_answer(ChartData(self.rows, self.intervals, self.keys, caption), wanted)


def _compute_later(name: str) -> None:
    """Let a detail of an answer be computed when it is first read. For `asdict` and `replace` it is a field."""
    detail = cached_property(lambda answer: answer._details(name))
    detail.__set_name__(Answer, name)
    setattr(Answer, name, detail)


DETAILS = tuple(part.name for part in fields(Answer) if not part.init)
for _name in DETAILS:
    _compute_later(_name)


def write_loss_json(loss: PrivacyLoss, people: int) -> dict[str, Any]:
    """The loss for a group of people as JSON, without numbers if there is no guarantee."""
    grown = extend_to_group(loss, people)
    return {"people": people, **({} if grown is None else Cost.from_loss(grown).as_text())}
