"""Answer: tables, intervals, explanation, plots. Everything here is post-processing of released values."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from sfumato.answers.group_loss import group_of, in_words
from sfumato.answers.output_sensitivity import AsAsked
from sfumato.arguments import check_truth
from sfumato.errors import InvalidParameter
from sfumato.extras import imported
from sfumato.kernel.exact import plain
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.neighbours import Neighbours

if TYPE_CHECKING:
    import altair
    import pandas
    import polars
    import pyarrow

Row = dict[str, Any]
NOT_COVERED = (
    "Intervals cover the noise only. They do not cover the bias from clamping values to their bounds and from dropping "
    "rows over a contribution bound."
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What was spent, or is left: exact decimals that float() accepts; rho only under zCDP accounting.

    Laplace noise under zCDP accounting has both: its epsilon, and the rho that it takes from the budget.
    """

    epsilon: Decimal | None
    delta: Decimal
    rho: Decimal | None = None

    @classmethod
    def of(cls, loss: PrivacyLoss) -> "Cost":
        match loss:
            case PureDP(epsilon):
                return cls(epsilon, Decimal(0))
            case ApproxDP(epsilon, delta):
                return cls(epsilon, delta)
            case ZCDP(rho, delta):
                return cls(None, delta, rho)

    @classmethod
    def taken(cls, loss: PrivacyLoss, counted: PrivacyLoss) -> "Cost":
        """A loss as it was certified, and as a budget counts it."""
        cost = cls.of(loss)
        return replace(cost, rho=counted.rho) if isinstance(counted, ZCDP) else cost

    def as_text(self) -> dict[str, str]:
        parts = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
        return {name: plain(value) for name, value in parts.items() if value is not None}

    def __str__(self) -> str:
        shown = {"epsilon": "ε", "rho": "rho", "delta": "δ"}
        return ", ".join(
            f"{shown[name]} = {text}" for name, text in self.as_text().items() if name != "delta" or text != "0"
        )


@dataclass(frozen=True, slots=True)
class Explained:
    """One measurement: what one person can change, the noise that hides it, its share, its margin."""

    measures: str
    one_person_changes: str
    mechanism: str
    scale: str
    share: str
    margin: float
    of: str = ""  # what the margin is of, where it is not the measurement itself


class Details(Protocol):
    """What an answer computes when it is first read (make_answer.py)."""

    def intervals(self) -> list[dict[str, tuple[float, float]]]: ...
    def explained(self) -> tuple[Explained, ...]: ...
    def sentences(self) -> tuple[str, ...]: ...
    def asked(self) -> tuple[AsAsked, ...]: ...
    def warnings(self) -> tuple[str, ...]: ...
    def interval_note(self) -> str: ...
    def disclosure(self) -> dict[str, Any]: ...


DETAILS = ("intervals", "explained", "sentences", "asked", "warnings", "interval_note", "disclosure")


@dataclass(frozen=True)
class Answer:
    """Rows of plain Python values, with an interval for every number.

    `cost` is what the answer took from the asker: of their own limit if they have one, else of the population's
    budget. `population_cost` is what it took from the population's budget: nothing, if it was answered before.
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
    own_remaining: Cost | None  # of the analyst's own limit, where there is one
    keys: tuple[str, ...] = field(repr=False)
    neighbours: Neighbours = field(repr=False)
    loss: PrivacyLoss = field(repr=False)  # of the releases that it shows; also where it cost nothing
    _details: Details = field(repr=False, compare=False)

    @cached_property
    def intervals(self) -> list[dict[str, tuple[float, float]]]:
        """For each row: the ends of each number's interval."""
        return self._details.intervals()

    @cached_property
    def explained(self) -> tuple[Explained, ...]:
        """What was measured, for explain()."""
        return self._details.explained()

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """What holds for the whole answer, for explain()."""
        return self._details.sentences()

    @cached_property
    def asked(self) -> tuple[AsAsked, ...]:
        """What one person can change in each column."""
        return self._details.asked()

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What the rows should be read with."""
        return self._details.warnings()

    @cached_property
    def interval_note(self) -> str:
        """What the intervals promise, in one sentence."""
        return self._details.interval_note()

    @cached_property
    def disclosure(self) -> dict[str, Any]:
        """The signed statement of what this answer promises."""
        return self._details.disclosure()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: everything computed, and without the key that signs."""
        computed = {name: getattr(self, name) for name in DETAILS}
        return {**self.__dict__, **computed, "_details": None}

    def explain(self, people: int = 1) -> str:
        """What one person can change, what was measured, the loss for a group of people, and what is not covered."""
        loss = in_words(self.loss, self.neighbours, people)
        text = explain(self.asked, self.explained, self.sentences, self.confidence, loss)
        return with_warnings(self.warnings, text)

    def price(self) -> str:
        """What it took, of whose budget, and what is left, in words."""
        own = "" if self.own_remaining is None else f" of the population's budget, {self.own_remaining} of your limit"
        left = f"Left: {self.remaining}{own}."
        if not self.cached:
            return f"Cost: {self.cost}. {left}"
        if self.cost == self.population_cost:
            return f"Free: answered before, as entry {self.entry}. {left}"
        seen = f"Answered before, as entry {self.entry}, for somebody else"
        return f"{seen}: {self.cost} of your limit, nothing of the population's budget. {left}"

    def to_dict(self, people: int = 1) -> dict[str, Any]:
        """What `ask --json` prints. `loss` is for a group of `people`; None: there is no guarantee for that many.

        For an analyst with a limit of their own it says what was taken of whose budget.
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
            "loss": loss_json(self.loss, people),
            "one_person_changes": {each.column: each.one_person_changes for each in self.asked},
            **whose,
        }

    def _table(self, intervals: bool) -> dict[str, list[Any]]:
        check_truth(intervals, "intervals")
        table: dict[str, list[Any]] = {}
        for name in self.columns:
            table[name] = [row[name] for row in self.rows]
            if intervals and any(name in row for row in self.intervals):
                for place, end in enumerate(("_low", "_high")):
                    heading = name + end
                    while heading in self.columns:  # a column that the question itself named so
                        heading += "_"
                    table[heading] = [row.get(name, (None, None))[place] for row in self.intervals]
        return table

    def to_pandas(self, intervals: bool = False) -> "pandas.DataFrame":
        """As a pandas frame; with intervals, `_low` and `_high` beside each number."""
        made: pandas.DataFrame = imported("pandas").DataFrame(self._table(intervals))
        return made

    def to_polars(self, intervals: bool = False) -> "polars.DataFrame":
        """As a polars frame."""
        made: polars.DataFrame = imported("polars").DataFrame(self._table(intervals))
        return made

    def to_arrow(self, intervals: bool = False) -> "pyarrow.Table":
        """As an Arrow table."""
        import pyarrow

        return pyarrow.table(self._table(intervals))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = []
        for row, ends in zip(self.rows, self.intervals, strict=True):
            cells = (f"<td>{html.escape(shown(row[name], ends.get(name)))}</td>" for name in self.columns)
            body.append(f"<tr>{''.join(cells)}</tr>")
        note = html.escape(with_warnings(self.warnings, f"{self.price()} {self.interval_note}".rstrip()))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table><p>{note}</p>"

    def plot(self, column: str | None = None) -> "altair.LayerChart | altair.FacetChart":
        """Bars with error bars, one for each row."""
        import altair

        measured = [name for name in self.columns if name not in self.keys]
        name = next(iter(measured), "") if column is None else column
        if not isinstance(name, str) or name not in measured:
            raise InvalidParameter("column", f"must be one of {', '.join(measured) or 'the numbers'}", "something else")
        labels = [", ".join(str(row[key]) for key in self.keys) or name for row in self.rows]
        values = [
            {"label": label, "value": row[name], "low": ends[name][0], "high": ends[name][1]}
            for label, row, ends in zip(labels, self.rows, self.intervals, strict=True)
            if name in ends
        ]
        title = " · ".join(self.keys) or None
        base = altair.Chart(altair.InlineData(values=values))
        across = altair.X(
            "label:N", sort=None, title=title, axis=altair.Axis(labelAngle=0 if len(values) < 12 else -60)
        )
        bars = base.mark_bar(color="#8aa0b8").encode(x=across, y=altair.Y("value:Q", title=name))
        rules = base.mark_rule(color="#22303c", strokeWidth=2).encode(
            x=across, y=altair.Y("low:Q", title=name), y2="high:Q"
        )
        caption = f"{round(100 * self.confidence)} % intervals of the noise; {self.cost}"
        width = max(240, 36 * len(values))
        return altair.layer(bars, rules).properties(width=width, height=260, title=altair.Title(name, subtitle=caption))


def shown(value: object, ends: tuple[float, float] | None) -> str:
    """A value with its margin, as a person reads it."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or ends is None:
        return "NULL" if value is None else str(value)
    low, high = ends
    digits = 0 if isinstance(value, int) else _digits((high - low) / 2)
    return f"{value:,.{digits}f} [{low:,.{digits}f}, {high:,.{digits}f}]"


def _digits(margin: float) -> int:
    """Two figures of the margin are worth showing."""
    return next((places for places in range(7) if margin >= 10.0 ** (1 - places)), 7) if margin > 0 else 0


def loss_json(loss: PrivacyLoss, people: int) -> dict[str, Any]:
    """The loss for a group of people; without numbers where there is no guarantee."""
    grown = group_of(loss, people)
    return {"people": people, **({} if grown is None else Cost.of(grown).as_text())}


def explain(
    asked: Sequence[AsAsked], explained: Sequence[Explained], sentences: Sequence[str], confidence: float, loss: str
) -> str:
    """The explanation as text."""
    measured = [
        f"{each.measures}: one person changes it by at most {each.one_person_changes}; {each.mechanism} noise of scale "
        f"{each.scale}; {each.share}; ±{each.margin:,.4g}{each.of} with {100 * confidence:.4g} % confidence."
        for each in explained
    ]
    return "\n".join(["Asked:", *map(str, asked), "Measured:", *measured, *sentences, loss, NOT_COVERED])


def with_warnings(warnings: Sequence[str], text: str) -> str:
    """Warnings first: they say what the rest may not be worth."""
    return "\n".join([*(f"Warning: {each}" for each in warnings), text])
