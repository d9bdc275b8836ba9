"""`sf.lab.error`: a query that is asked many times on generated data, and its errors against (Δ/ε) ln(1/β)."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa

from sfumato.catalog.budget import Budget
from sfumato.catalog.columns import Boolean, Integer
from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Dots, Line, Panel, Rule
from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.exact import write_plain
from sfumato.kernel.neighbours import ROW
from sfumato.lab.explanations.lesson_page import LessonPage, PageTable, draw_bar, save_page, write_html, write_text
from sfumato.lab.seeded_noise import seeded
from sfumato.lab.success_rate import show_share
from sfumato.number_arguments import Number, read_privacy_amount, read_whole_number
from sfumato.opening import protect

HIGHEST_SCORE = 10
BETAS = (0.5, 0.25, 0.1, 0.05, 0.01)
DATA_SEED = 2026
MOST_REPEATS = 2_000

ErrorQuery: TypeAlias = Literal["count", "sum", "average"]
_SELECT: dict[ErrorQuery, str] = {
    "count": "SELECT COUNT(*) AS answer FROM class WHERE smoker AND score < {limit}",
    "sum": "SELECT SUM(score) AS answer FROM class WHERE score < {limit}",
    "average": "SELECT SUM(score) AS answer FROM class WHERE score < {limit}",
}


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """(Δ/ε) ln(1/β), rounded up to a multiple of the answers' step, and the share of the errors beyond it.

    The share is at most β, but for chance. Without the rounding it need not be: answers are whole steps.
    """

    beta: float
    formula: float
    bound: float
    observed: float


@dataclass(frozen=True, slots=True)
class ErrorView:
    """The errors of one query, asked many times through the curator."""

    query: ErrorQuery
    sql: str
    epsilon: Decimal
    sensitivity: float
    rows: int
    errors: tuple[float, ...]
    bounds: tuple[ErrorBound, ...]

    @property
    def figure(self) -> Figure:
        return draw_error_figure(self)

    @property
    def page(self) -> LessonPage:
        return make_error_page(self)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `sfumato lab error --json`."""
        return {
            "query": self.query,
            "sql": self.sql,
            "epsilon": write_plain(self.epsilon),
            "sensitivity": self.sensitivity,
            "rows": self.rows,
            "errors": list(self.errors),
            "bounds": [
                {"beta": limit.beta, "formula": limit.formula, "bound": limit.bound, "observed": limit.observed}
                for limit in self.bounds
            ],
        }

    save = save_page
    __str__ = write_text
    __repr__ = write_text
    _repr_html_ = write_html


def error(query: str = "count", epsilon: Number = 1, rows: int = 100, repeats: int = 100) -> ErrorView:
    """Ask a query many times on a generated class of students, and compare the errors with (Δ/ε) ln(1/β).

    `query`: count (of smokers), sum or average (of scores from 0 to 10). The answers come from a real curator with a
    ledger in memory. The average has a public number of rows (replace-one).
    """
    name = check_error_query(query)
    amount, size = read_privacy_amount(epsilon, "epsilon"), read_whole_number(rows, "rows", 1)
    times = read_whole_number(repeats, "repeats", 10)
    if times > MOST_REPEATS:
        raise InvalidParameter("repeats", f"must be at most {MOST_REPEATS}", "more")
    made = seeded(DATA_SEED)
    scores, smokers = made.integers(0, HIGHEST_SCORE, size).tolist(), made.coins(Fraction(1, 4), size).tolist()
    truth = {"count": sum(smokers), "sum": sum(scores), "average": sum(scores) / size}[name]
    public = name == "average"
    curator = protect(
        pa.table({"score": scores, "smoker": smokers}),
        name="class",
        unit=ROW,
        neighbours="replace-one" if public else "add-remove",
        columns={"score": Integer(0, HIGHEST_SCORE), "smoker": Boolean()},
        budget=Budget(epsilon=amount * times),
        rows=size if public else None,
    )
    with curator:
        # The same question again would get the stored answer: every question has another condition that always holds.
        asked = [_SELECT[name].format(limit=HIGHEST_SCORE + 1 + turn) for turn in range(times)]
        answers = [curator.ask(sql, epsilon=amount) for sql in asked]
        (sensitivity,) = (column.one_person_changes for column in answers[0].sensitivities)
    if sensitivity is None:
        raise AssertionError("a count and a sum have a sensitivity")
    divisor = size if public else 1  # the number of rows is public: dividing by it is free
    errors = tuple(float(answer.rows[0]["answer"]) / divisor - truth for answer in answers)
    moved = sensitivity / divisor
    bounds = tuple(compare_errors(beta, moved / float(amount), 1 / divisor, errors) for beta in BETAS)
    return ErrorView(name, asked[0], amount, moved, size, errors, bounds)


def check_error_query(query: object) -> ErrorQuery:
    for name in get_args(ErrorQuery):
        if query == name:
            return name  # type: ignore[no-any-return]
    raise InvalidParameter("query", f"must be one of {', '.join(get_args(ErrorQuery))}", describe_kind(query))


def compare_errors(beta: float, scale: float, step: float, errors: tuple[float, ...]) -> ErrorBound:
    """Compare errors that are multiples of a step with the bound for one β."""
    formula = scale * math.log(1 / beta)
    steps = math.ceil(formula / step)
    beyond = sum(round(abs(missed) / step) > steps for missed in errors)
    return ErrorBound(beta, formula, steps * step, beyond / len(errors))


def make_error_page(view: ErrorView) -> LessonPage:
    rows = tuple(
        (f"{100 * limit.beta:.0f} %", f"±{limit.formula:.4g}", f"±{limit.bound:.4g}", show_share(limit.observed))
        for limit in view.bounds
    )
    times = len(view.errors)
    divided = f", divided by the public number of rows, {view.rows:,}" if view.query == "average" else ""
    grows = "The error falls as the number of rows grows." if divided else "The number of rows plays no role."
    paragraphs = (
        f"Asked {times:,} times with ε = {write_plain(view.epsilon)} each: {view.sql}{divided}.",
        f"One person changes the answer by at most Δ = {view.sensitivity:g}. Laplace noise of scale Δ/ε exceeds "
        "(Δ/ε) ln(1/β) with probability β. The noise is a whole number of steps, so the bound is rounded up.",
    )
    heads = ("β", "(Δ/ε) ln(1/β)", "rounded up", "errors beyond")
    mean = sum(abs(missed) for missed in view.errors) / times
    return LessonPage(
        f"How wrong is a private {view.query}?",
        paragraphs,
        view.figure,
        _draw_histogram(view),
        (PageTable(heads, rows, (0, 1, 2, 3)),),
        (
            f"The mean size of the errors is {mean:.4g}. {grows}",
            "The answers come from the curator, with a ledger in memory. The data is generated; the noise is not "
            "seeded, so the errors differ in every run.",
        ),
    )


def _draw_histogram(view: ErrorView) -> tuple[str, ...]:
    """The errors in 15 or so ranges of equal length, as bars."""
    most = max(map(abs, view.errors))
    width = max(most / 7.5, view.sensitivity / view.rows if view.query == "average" else 1.0)
    counts: dict[int, int] = {}
    for missed in view.errors:
        place = round(missed / width)
        counts[place] = counts.get(place, 0) + 1
    tallest = max(counts.values())
    return (
        "   error  answers",
        *(
            f"{place * width:>8.3g}  {draw_bar(counts.get(place, 0) / tallest, 60)}".rstrip()
            for place in range(min(counts), max(counts) + 1)
        ),
    )


def draw_error_figure(view: ErrorView) -> Figure:
    """The errors in the order of the questions, and the share of errors beyond each distance."""
    scale, times = view.sensitivity / float(view.epsilon), len(view.errors)
    reach = max(*map(abs, view.errors), scale * math.log(1 / 0.01)) * 1.1
    within = next(bound for bound in view.bounds if bound.beta == 0.05)
    dots = Dots(tuple((turn + 1.0, missed) for turn, missed in enumerate(view.errors)), "protected", "error", size=2.5)
    rules = (
        Rule("limit", y=within.bound, text="(Δ/ε) ln(1/β), β = 5 %"),
        Rule("limit", y=-within.bound),
    )
    errors = Panel(
        f"{times:,} answers: noisy minus true",
        f"Errors scatter around zero; {show_share(within.observed)} lie beyond the dashed lines.",
        Axis("question", 0, times + 1),
        Axis("error", -reach, reach),
        (*rules, dots),
    )
    sizes = [abs(missed) for missed in view.errors]
    shares = ((size, sum(other > size for other in sizes) / times) for size in sorted(set(sizes)))
    steps = tuple((size, share) for size, share in shares if share)
    places = [reach * index / 120 for index in range(121)]
    tail = Panel(
        "Share of errors beyond a distance",
        "The observed shares follow the exponential curve of the theory, or lie below it.",
        Axis("distance", -0.02 * reach, reach),
        Axis("share, log scale", 0.5 / times, 1, log=True),
        (
            Line(tuple((x, math.exp(-x / scale)) for x in places), "limit", "exp(-distance ε/Δ)", dashed=True),
            Dots(steps, "protected", "observed", size=3),
        ),
    )
    return Figure(
        f"Errors of a private {view.query}",
        (errors, tail),
        f"Δ = {view.sensitivity:g}, ε = {write_plain(view.epsilon)}.",
    )
