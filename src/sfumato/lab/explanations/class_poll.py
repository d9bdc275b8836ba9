"""`sf.lab.randomized_response`: a class poll without a trusted curator, and the error that this costs."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Dots, Line, Panel, Rule
from sfumato.errors import InvalidParameter
from sfumato.lab.distributions.mechanism_distributions import probabilities
from sfumato.lab.explanations.lesson_page import LessonPage, PageTable, save_page, write_html, write_text
from sfumato.lab.seeded_noise import SeededNoise, seeded
from sfumato.local.randomisers.randomized_response import RandomizedResponse, ShareEstimate
from sfumato.number_arguments import Number, read_probability, read_whole_number
from sfumato.standalone.additive import Laplace

SIZES = (25, 100, 400, 1_600, 6_400)
MOST_STUDENTS = 100_000
TWO_COINS = Fraction(3, 4)


@dataclass(frozen=True, slots=True)
class PollError:
    """The root mean square error of the number of yes, in a class of this size: both models, measured and in theory."""

    students: int
    local: float
    local_theory: float
    central: float
    central_theory: float


@dataclass(frozen=True, slots=True)
class PollView:
    """One poll of a class, and the errors of polls in classes of several sizes."""

    students: int
    true_yes: int
    response: RandomizedResponse
    truth: float  # the probability that a report is true
    reported_yes: int
    estimate: ShareEstimate
    central_yes: int
    errors: tuple[PollError, ...]
    repeats: int
    seed: int | None

    @property
    def estimated_yes(self) -> float:
        return self.students * self.estimate.value

    @property
    def figure(self) -> Figure:
        return draw_poll_figure(self)

    @property
    def page(self) -> LessonPage:
        return make_poll_page(self)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `sfumato lab randomized-response --json`."""
        return {
            "students": self.students,
            "epsilon": float(self.response.loss.epsilon),
            "truth": self.truth,
            "seed": self.seed,
            "true_yes": self.true_yes,
            "reported_yes": self.reported_yes,
            "estimated_yes": self.estimated_yes,
            "interval": [self.students * self.estimate.low, self.students * self.estimate.high],
            "central_yes": self.central_yes,
            "repeats": self.repeats,
            "errors": [
                {
                    "students": measured.students,
                    "local": measured.local,
                    "local_theory": measured.local_theory,
                    "central": measured.central,
                    "central_theory": measured.central_theory,
                }
                for measured in self.errors
            ],
        }

    save = save_page
    __str__ = write_text
    __repr__ = write_text
    _repr_html_ = write_html


def randomized_response(
    students: int = 100,
    share: Number = "0.3",
    epsilon: Number | None = None,
    repeats: int = 200,
    seed: int | None = None,
) -> PollView:
    """Poll a class: each student flips coins and reports. Compare the error with that of a trusted curator.

    Without an epsilon, the coins are the two fair coins of the lecture: the truth with probability 3/4, ε = ln 3.
    `share` is the true share of yes. A seed fixes all coins and noise: for slides.
    """
    size = read_whole_number(students, "students", 2)
    if size > MOST_STUDENTS:
        raise InvalidParameter("students", f"must be at most {MOST_STUDENTS}", "more")
    times = read_whole_number(repeats, "repeats", 10)
    chosen = RandomizedResponse(truth=TWO_COINS) if epsilon is None else RandomizedResponse(epsilon)
    source = None if seed is None else seeded(seed)
    yes = round(size * read_probability(share, "share"))
    models = _Models(chosen, Laplace(1, chosen.loss.epsilon, of="integers"), source)
    reports = models.randomise(np.arange(size) < yes)
    truth = float(probabilities(chosen, True).p(True))
    return PollView(
        size,
        yes,
        chosen,
        truth,
        int(reports.sum()),
        chosen.estimate(reports),
        int(models.add_noise(np.array([yes]))[0]),
        tuple(_measure(models, truth, count, times) for count in SIZES),
        times,
        seed,
    )


@dataclass(frozen=True, slots=True)
class _Models:
    """Both models: coins of each student, or noise of a trusted curator. Without a source, both are unseeded."""

    response: RandomizedResponse
    central: Laplace
    source: SeededNoise | None

    def randomise(self, answers: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        if self.source is None:
            return self.response.randomise(answers)
        return np.asarray(self.source.release(self.response, answers))

    def add_noise(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        released = self.central.release(values) if self.source is None else self.source.release(self.central, values)
        return np.asarray(released)


def _measure(models: _Models, truth: float, size: int, times: int) -> PollError:
    """Repeat a poll of a class of this size, with three in ten who say yes."""
    yes = round(0.3 * size)
    answers = np.tile(np.arange(size) < yes, times)
    reported = models.randomise(answers).reshape(times, size).sum(axis=1)
    estimated = (reported - size * (1 - truth)) / (2 * truth - 1)
    noise = models.add_noise(np.zeros(times, np.int64))
    ratio = math.exp(-float(models.central.epsilon))
    return PollError(
        size,
        float(np.sqrt(np.mean((estimated - yes) ** 2))),
        math.sqrt(size * truth * (1 - truth)) / (2 * truth - 1),
        float(np.sqrt(np.mean(noise.astype(np.float64) ** 2))),
        math.sqrt(2 * ratio) / (1 - ratio),
    )


def make_poll_page(view: PollView) -> LessonPage:
    coins = (
        "flips two coins: heads on the first, tell the truth; otherwise the second coin answers"
        if view.truth == float(TWO_COINS)
        else f"tells the truth with probability {view.truth:.4g}, and otherwise the opposite"
    )
    low, high = (view.students * end for end in (view.estimate.low, view.estimate.high))
    lie = 1 - view.truth
    paragraphs = (
        f"{view.students:,} students answer yes or no. Each {coins} (ε = {float(view.response.loss.epsilon):.4g}). "
        "Nobody has to trust the teacher.",
        f"{view.reported_yes:,} reports say yes. The estimate is (reports - {lie:.3g} n) / {2 * view.truth - 1:.3g} = "
        f"{view.estimated_yes:.1f}, with a 95 % confidence interval from {low:.1f} to {high:.1f}. In truth, "
        f"{view.true_yes:,} said yes. A trusted curator with the same ε would have answered {view.central_yes:,}.",
    )
    rows = tuple(
        (
            f"{measured.students:,}",
            f"{measured.local:.2f}",
            f"{measured.local_theory:.2f}",
            f"{measured.central:.2f}",
            f"{measured.central_theory:.2f}",
        )
        for measured in view.errors
    )
    heads = ("students", "local error", "theory", "central error", "theory")
    first = view.errors[0].local_theory / math.sqrt(view.errors[0].students)
    title = f"Root mean square error of the count of yes, over {view.repeats:,} polls"
    return LessonPage(
        f"A class poll by randomised response: {view.students:,} students",
        paragraphs,
        view.figure,
        (),
        (PageTable(heads, rows, (0, 1, 2, 3, 4), title),),
        (
            f"Without a curator, the error of the count grows as {first:.3g} √n. With a curator it does not grow. "
            "Four times as many students double the first error, and leave the second as it is.",
            "The data is generated. A seed fixes all coins, for slides; without one they come from the system.",
        ),
    )


def draw_poll_figure(view: PollView) -> Figure:
    """The errors against the size of the class, and the share that they are of the class."""
    ends = (SIZES[0] * 0.7, SIZES[-1] * 1.4)
    ticks = tuple((float(size), f"{size:,}") for size in SIZES)
    slope = view.errors[0].local_theory / math.sqrt(SIZES[0])
    level = view.errors[0].central_theory
    most = slope * math.sqrt(ends[1]) * 1.6
    counts = Panel(
        "Error of the count of yes",
        "The local error grows with the square root of the class; the central error stays the same.",
        Axis("students, log scale", *ends, ticks, log=True),
        Axis("error, log scale", min(level, 1.0) * 0.4, most, log=True),
        (
            Line(tuple((x, slope * math.sqrt(x)) for x in ends), "naive", f"{slope:.3g} √n", dashed=True),
            Dots(
                tuple((float(measured.students), measured.local) for measured in view.errors), "naive", "local", size=4
            ),
            Line(tuple((x, level) for x in ends), "protected", f"{level:.3g}", dashed=True),
            Dots(
                tuple((float(measured.students), measured.central) for measured in view.errors),
                "protected",
                "central",
                size=4,
            ),
        ),
    )
    yes, estimated = float(view.true_yes), view.estimated_yes
    low, high = (view.students * end for end in (view.estimate.low, view.estimate.high))
    left, right = min(low, yes, view.central_yes), max(high, yes, view.central_yes)
    room = (right - left) * 0.15 or 1.0
    poll = Panel(
        f"This poll of {view.students:,} students",
        f"True count {view.true_yes}; local estimate {estimated:.1f}; central answer {view.central_yes}.",
        Axis("number of yes", left - room, right + room),
        Axis("", 0, 3, ((2.0, "local"), (1.0, "central"))),
        (
            Rule("limit", x=yes, text="truth"),
            Line(((low, 2.0), (high, 2.0)), "naive", "95 % interval"),
            Dots(((estimated, 2.0),), "naive", "local estimate", size=5),
            Dots(((float(view.central_yes), 1.0),), "protected", "central answer", size=5),
        ),
        height=150,
    )
    return Figure(
        "A class poll by randomised response", (counts, poll), f"Both have ε = {float(view.response.loss.epsilon):.4g}."
    )
