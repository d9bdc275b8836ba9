"""`sf.lab.epsilon`: what a privacy loss means for odds and beliefs, on both sides."""

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Band, Line, Mark, Panel, Points, Rule
from sfumato.kernel.exact import write_plain
from sfumato.kernel.losses import PureDP
from sfumato.lab.explanations.lesson_page import LessonPage, PageTable, save_page, write_html, write_text
from sfumato.lab.success_rate import show_share
from sfumato.number_arguments import Number

PRIORS = (0.01, 0.1, 0.5, 0.9)
SMALL = 0.25  # up to here, 1 + epsilon is within 3 % of e**epsilon
_MOST = Decimal(700)  # above, floats overflow


@dataclass(frozen=True, slots=True)
class Belief:
    """A guess about one person before an answer, and the range in which it can be afterwards."""

    prior: float
    least: float
    most: float
    group_least: float
    group_most: float


@dataclass(frozen=True, slots=True)
class EpsilonMeaning:
    """A privacy loss for one person, and for a group of people."""

    loss: PureDP
    people: int
    group: PureDP
    beliefs: tuple[Belief, ...]

    @property
    def epsilon(self) -> Decimal:
        return self.loss.epsilon

    @property
    def factors(self) -> tuple[float, float]:
        """e**-epsilon and e**epsilon: the odds change by a factor between them."""
        return compute_factor(-self.epsilon), compute_factor(self.epsilon)

    @property
    def figure(self) -> Figure:
        return draw_epsilon_figure(self)

    @property
    def page(self) -> LessonPage:
        return make_epsilon_page(self)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `sfumato epsilon --json`."""
        least, most = self.factors
        return {
            "epsilon": str(self.epsilon),
            "people": self.people,
            "factors": [least, most],
            "approximation": [1 - float(self.epsilon), 1 + float(self.epsilon)],
            "guesses": [
                {
                    "prior": belief.prior,
                    "one_person": belief.most,
                    "group": belief.group_most,
                    "one_person_least": belief.least,
                    "group_least": belief.group_least,
                }
                for belief in self.beliefs
            ],
        }

    save = save_page
    __str__ = write_text
    __repr__ = write_text
    _repr_html_ = write_html


def epsilon(value: Number, people: int = 4) -> EpsilonMeaning:
    """What this epsilon means: the odds of any guess about one person change by a factor from e**-ε to e**ε."""
    loss = PureDP(value)
    group = loss.group(people)
    beliefs = tuple(
        Belief(
            prior,
            update_belief(prior, -loss.epsilon),
            update_belief(prior, loss.epsilon),
            update_belief(prior, -group.epsilon),
            update_belief(prior, group.epsilon),
        )
        for prior in PRIORS
    )
    return EpsilonMeaning(loss, people, group, beliefs)


def update_belief(prior: float, epsilon: Decimal) -> float:
    """The belief after the odds were multiplied by e**epsilon, by Bayes' rule."""
    return prior / (prior + (1 - prior) * compute_factor(-epsilon))


def compute_factor(epsilon: Decimal) -> float:
    """e**epsilon, for exponents that floats can hold."""
    return math.exp(max(min(epsilon, _MOST), -_MOST))


def show_factor(epsilon: Decimal) -> str:
    if abs(epsilon) <= _MOST:
        return f"{compute_factor(epsilon):,.4g}"
    return "astronomically many" if epsilon > 0 else "nearly 0"


def make_epsilon_page(meaning: EpsilonMeaning) -> LessonPage:
    amount, people = write_plain(meaning.epsilon), meaning.people
    low, high = (show_factor(value) for value in (-meaning.epsilon, meaning.epsilon))
    paragraphs = (
        f"With epsilon {amount}, every answer is between e^-ε = {low} and e^ε = {high} times as likely with your data "
        f"as without it. The odds of any guess about you change by a factor in this range. For a group of {people}: "
        f"from {show_factor(-meaning.group.epsilon)} to {show_factor(meaning.group.epsilon)}.",
    )
    rows = tuple(
        (
            show_share(belief.prior),
            f"{show_share(belief.least)} to {show_share(belief.most)}",
            f"{show_share(belief.group_least)} to {show_share(belief.group_most)}",
        )
        for belief in meaning.beliefs
    )
    heads = ("a guess about you that was", "becomes", f"about all {people} of your group")
    return LessonPage(
        f"What epsilon {amount} means",
        paragraphs,
        meaning.figure,
        _draw_beliefs(meaning),
        (PageTable(heads, rows, (0, 1, 2)), tabulate_approximation(meaning)),
        (_judge_approximation(meaning),),
    )


def tabulate_approximation(meaning: EpsilonMeaning) -> PageTable:
    """e**-ε and e**ε next to 1 - ε and 1 + ε, for this epsilon and a small one."""
    shown = [meaning.epsilon, *(value for value in (Decimal("0.1"), Decimal("0.01")) if value < meaning.epsilon)]
    rows = tuple(
        (write_plain(value), show_factor(-value), f"{1 - value:,.4g}", show_factor(value), f"{1 + value:,.4g}")
        for value in shown
    )
    return PageTable(("ε", "e^-ε", "1 - ε", "e^ε", "1 + ε"), rows, (0, 1, 2, 3, 4))


def _judge_approximation(meaning: EpsilonMeaning) -> str:
    amount = write_plain(meaning.epsilon)
    if meaning.epsilon <= Decimal(str(SMALL)):
        return f"For an epsilon as small as {amount}, e^ε is nearly 1 + ε, and e^-ε is nearly 1 - ε."
    return f"1 ± ε approximates e^±ε for small epsilons only. For ε = {amount}, both factors are larger than 1 ± ε."


def _draw_beliefs(meaning: EpsilonMeaning) -> tuple[str, ...]:
    """For each prior, the range of beliefs as a bar from 0 to 1, with the prior marked."""
    lines = [f"{'':>7} 0 %{'belief about you':^54}100 %"]
    for belief in meaning.beliefs:
        cells = ["·"] * 61
        for place in range(round(60 * belief.least), round(60 * belief.most) + 1):
            cells[place] = "═"
        cells[round(60 * belief.prior)] = "●"
        lines.append(f"{100 * belief.prior:>4.0f} %  {''.join(cells)}")
    lines.append(f"{'':>7} ● before the answer, ═ possible after it")
    return tuple(lines)


def draw_epsilon_figure(meaning: EpsilonMeaning) -> Figure:
    """Beliefs, odds, and the approximation."""
    return Figure(
        f"What epsilon {write_plain(meaning.epsilon)} means",
        (_draw_belief_panel(meaning), _draw_odds_panel(meaning), _draw_approximation_panel(meaning)),
        "A guess can move within the bands; the same for its odds; and how well 1 ± ε approximates e^±ε.",
    )


def _draw_belief_panel(meaning: EpsilonMeaning) -> Panel:
    priors = [index / 200 for index in range(201)]

    def band(amount: Decimal) -> tuple[tuple[float, float, float], ...]:
        return tuple((prior, update_belief(prior, -amount), update_belief(prior, amount)) for prior in priors)

    one = band(meaning.epsilon)
    return Panel(
        "Belief after any answer",
        "Bands around the diagonal: the belief after an answer, for each belief before it.",
        Axis("belief before", 0, 1),
        Axis("belief after", 0, 1),
        (
            Band(band(meaning.group.epsilon), "second", f"group of {meaning.people}"),
            Band(one, "protected", "one person"),
            Line(tuple((prior, high) for prior, _, high in one), "protected"),
            Line(tuple((prior, low) for prior, low, _ in one), "protected"),
            Line(((0, 0), (1, 1)), "limit", "no change", dashed=True),
        ),
    )


def _draw_odds_panel(meaning: EpsilonMeaning) -> Panel:
    low, high = meaning.factors
    ends = (0.01, 100.0)
    marks: list[Mark] = [
        Band(tuple((odds, max(odds * low, 1e-6), min(odds * high, 1e6)) for odds in ends), "protected", "one person"),
        Line(tuple((odds, min(odds * high, 1e6)) for odds in ends), "protected"),
        Line(tuple((odds, max(odds * low, 1e-6)) for odds in ends), "protected"),
        Line(tuple((odds, odds) for odds in ends), "limit", "no change", dashed=True),
    ]
    ticks = tuple((10.0**power, f"{10.0**power:,g}") for power in range(-2, 3))
    return Panel(
        f"Odds after: times {low:.3g} to {high:.3g}",
        "On log scales, the odds after an answer lie in a band of constant width.",
        Axis("odds before", *ends, ticks, log=True),
        Axis(
            "odds after",
            1e-3,
            1e3,
            tuple((10.0**power, f"{10.0**power:,g}") for power in (-3, -2, -1, 0, 1, 2, 3)),
            log=True,
        ),
        tuple(marks),
    )


def _draw_approximation_panel(meaning: EpsilonMeaning) -> Panel:
    here = min(float(meaning.epsilon), 3.0)
    most = max(1.0, here * 1.15)
    places = [most * index / 100 for index in range(101)]

    def curve(sign: int) -> Points:
        return tuple((x, math.exp(sign * x)) for x in places)

    marks = (
        Line(curve(1), "protected", "e^ε and e^-ε"),
        Line(curve(-1), "protected"),
        Line(((0, 1), (most, 1 + most)), "naive", "1 + ε and 1 - ε", dashed=True),
        Line(((0, 1), (min(most, 1.0), 1 - min(most, 1.0))), "naive", dashed=True),
        Rule("limit", x=here, text=f"ε = {write_plain(meaning.epsilon)}")
        if here == float(meaning.epsilon)
        else Rule("limit", y=1),
    )
    return Panel(
        "For small ε, e^±ε is nearly 1 ± ε",
        "Two curves and their tangents at zero.",
        Axis("ε", 0, most),
        Axis("factor", 0, math.exp(most) * 1.05),
        marks,
    )
