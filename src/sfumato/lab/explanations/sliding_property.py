"""`sf.lab.mechanism`: the distributions of one mechanism for two neighbours, and their ratio (the sliding property)."""

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, Literal

from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Bars, Dots, Line, Mark, Panel, Rule
from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import write_plain
from sfumato.kernel.losses import ZCDP
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.lab.distributions.lattice_distribution import LatticeDistribution
from sfumato.lab.distributions.mechanism_distributions import probabilities
from sfumato.lab.explanations.lesson_page import LessonPage, PageTable, draw_bar, save_page, write_html, write_text
from sfumato.number_arguments import Number, read_positive_decimal, read_positive_fraction, read_probability
from sfumato.standalone.additive import Gaussian, Laplace

CELLS = 41  # the most outputs, or ranges of outputs, in the discrete view
POINTS = 241  # of a curve
_RHO_DIGITS = 4

Kind = Literal["laplace", "gaussian"]


@dataclass(frozen=True, slots=True)
class OutputCell:
    """An output, or all outputs from low up to high, with its probability for each neighbour."""

    low: float
    high: float
    first: float
    second: float

    @property
    def ratio(self) -> float:
        """How many times as likely the output is for the first neighbour."""
        return self.first / self.second if self.second else math.inf

    @property
    def label(self) -> str:
        return f"{self.low:,g}" if self.low == self.high else f"{self.low:,g} to {self.high:,g}"


@dataclass(frozen=True, slots=True)
class MechanismView:
    """A mechanism on two neighbours whose true values are 0 and `sensitivity`."""

    mechanism: Laplace | Gaussian
    epsilon: Decimal
    delta: Decimal | None
    first: LatticeDistribution
    second: LatticeDistribution
    cells: tuple[OutputCell, ...]

    @property
    def kind(self) -> Kind:
        return "laplace" if isinstance(self.mechanism, Laplace) else "gaussian"

    @property
    def sensitivity(self) -> Fraction:
        return self.mechanism.sensitivity

    @property
    def deviation(self) -> float:
        """The scale of the Laplace noise, or the standard deviation of the Gaussian noise."""
        noise = self.first.noise
        size = float(noise.scale) if isinstance(noise, LaplaceNoise) else math.sqrt(noise.variance)
        return size * float(self.first.step)

    @property
    def greatest_ratio(self) -> float:
        """Of all outputs (Laplace), or infinite (Gaussian: outputs far away have a ratio above every bound)."""
        return float(self.first.greatest_ratio(self.second)) if self.kind == "laplace" else math.inf

    @property
    def exact_delta(self) -> float:
        """The probability that is left where the ratio exceeds e**epsilon, exactly: 0 for Laplace noise."""
        return float(self.first.delta(self.second, self.epsilon))

    @property
    def figure(self) -> Figure:
        return draw_figure(self)

    @property
    def page(self) -> LessonPage:
        return make_mechanism_page(self)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `sfumato lab mechanism --json`."""
        return {
            "mechanism": self.kind,
            "epsilon": write_plain(self.epsilon),
            "delta": None if self.delta is None else write_plain(self.delta),
            "sensitivity": write_plain(self.sensitivity),
            "deviation": self.deviation,
            "greatest_ratio": self.greatest_ratio,
            "bound": math.exp(self.epsilon),
            "exact_delta": self.exact_delta,
            "outputs": [
                {"low": cell.low, "high": cell.high, "first": cell.first, "second": cell.second, "ratio": cell.ratio}
                for cell in self.cells
            ],
        }

    save = save_page
    __str__ = write_text
    __repr__ = write_text
    _repr_html_ = write_html


def mechanism(epsilon: Number = 1, sensitivity: Number = 1, delta: Number | None = None) -> MechanismView:
    """Two neighbours with the true values 0 and `sensitivity`: the curves of their outputs, and the ratio.

    Laplace noise, or Gaussian noise if a delta is given. The probabilities are those of sf.Laplace and sf.Gaussian.
    """
    amount = read_positive_decimal(epsilon, "epsilon")
    if not Decimal("0.01") <= amount <= 10:
        raise InvalidParameter("epsilon", "must lie between 0.01 and 10 for a picture", "another number")
    moved = read_positive_fraction(sensitivity, "sensitivity")
    chosen: Laplace | Gaussian
    if delta is None:
        small, chosen = None, Laplace(moved, amount)
    else:
        read_probability(delta, "delta")
        small = read_positive_decimal(delta, "delta")
        chosen = Gaussian(moved, find_rho(amount, small))
    first, second = probabilities(chosen, 0), probabilities(chosen, moved)
    return MechanismView(chosen, amount, small, first, second, cut_cells(first, second))


def find_rho(epsilon: Decimal, delta: Decimal) -> Decimal:
    """The greatest rho, to four digits, whose zCDP loss the ledger converts to at most (epsilon, delta)."""
    low, high = 0.0, float(epsilon) + 1
    for _ in range(60):
        middle = (low + high) / 2
        fits = ZCDP(repr(middle)).to_approx(delta).epsilon <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return Context(prec=_RHO_DIGITS, rounding=ROUND_FLOOR).create_decimal_from_float(low)


def cut_cells(first: LatticeDistribution, second: LatticeDistribution) -> tuple[OutputCell, ...]:
    """The outputs that matter, one by one where they are few, otherwise in ranges of equal length."""
    share = "0.995" if first.loss_is_bounded else "0.9995"
    low, high = (Fraction(end) for end in (first.range(share)[0], second.range(share)[1]))
    if first.step == 1 and high - low < CELLS - 4:
        low, high = low - 2, high + 2  # little noise has only one or two likely outputs
        outputs = [float(value) for value in range(int(low), int(high) + 1)]
        return tuple(OutputCell(x, x, float(first.p(x)), float(second.p(x))) for x in outputs)
    width = _round_up((high - low) / (CELLS - 1), whole=first.of == "integers")
    cells = []
    for number in range(math.floor(low / width), math.ceil(high / width)):
        start, end = float(number * width), float((number + 1) * width)
        inside = start, math.nextafter(end, -math.inf)
        cells.append(OutputCell(start, end, float(first.total(*inside)), float(second.total(*inside))))
    return tuple(cells)


def _round_up(width: Fraction, *, whole: bool) -> Fraction:
    """At least so wide: 1, 2 or 5 times a power of ten, and a whole number where integers come out."""
    power = Fraction(10) ** math.floor(math.log10(width))
    rounded = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= width)
    return Fraction(math.ceil(rounded)) if whole else rounded


def make_mechanism_page(view: MechanismView) -> LessonPage:
    epsilon, bound = write_plain(view.epsilon), math.exp(view.epsilon)
    if view.kind == "laplace":
        noise = f"Laplace noise of scale Δ/ε = {view.deviation:.4g}"
        finding = (
            f"Sliding a curve by Δ changes its height nowhere by more than the factor e^ε = {bound:.4g}. The greatest "
            f"ratio of the two distributions is {view.greatest_ratio:.6g}, and outputs left of both centres reach it."
        )
    else:
        noise = (
            f"Gaussian noise of standard deviation {view.deviation:.4g} (rho = {write_plain(view.mechanism.loss.rho)})"  # type: ignore[union-attr]
        )
        finding = (
            "The ratio grows without bound, so the Gaussian mechanism is not ε-DP for any ε. The first distribution "
            f"exceeds e^ε = {bound:.4g} times the second by {view.exact_delta:.3g} in total: the least δ for ε = "
            f"{epsilon}. The ledger charges δ = {write_plain(view.delta or Decimal(0))}, by a simpler formula that is "
            "never below it."
        )
    paragraphs = (
        f"Two neighbours have the true values 0 and Δ = {write_plain(view.sensitivity)}. Both get {noise}.",
        finding,
    )
    return LessonPage(
        f"One mechanism, two neighbours: {view.kind.capitalize()}, ε = {epsilon}",
        paragraphs,
        view.figure,
        _draw_cells(view),
        (_tabulate(view),),
        ("The discrete view has the exact probabilities of the mechanism; the curves are the textbook's densities.",),
    )


def _draw_cells(view: MechanismView) -> tuple[str, ...]:
    """Bars for both neighbours side by side, and the ratio."""
    shown = _choose_rows(view.cells, 21)
    most = max(max(cell.first, cell.second) for cell in shown)
    wide = max(len("output"), *(len(cell.label) for cell in shown))
    bar = (80 - wide - 12) // 2
    heading = f"{'output':>{wide}}  {'value 0':<{bar}} {f'value {write_plain(view.sensitivity)}':<{bar}}  ratio"
    lines = [
        f"{cell.label:>{wide}}  {draw_bar(cell.first / most, bar):<{bar}} {draw_bar(cell.second / most, bar):<{bar}} "
        f"{cell.ratio:>6.3g}"
        for cell in shown
    ]
    return heading, *lines


def _choose_rows(cells: tuple[OutputCell, ...], most: int) -> tuple[OutputCell, ...]:
    """The cells in the middle."""
    extra = max(len(cells) - most, 0)
    return cells[extra // 2 : len(cells) - (extra - extra // 2)]


def _tabulate(view: MechanismView) -> PageTable:
    rows = tuple((cell.label, f"{cell.first:.6f}", f"{cell.second:.6f}", f"{cell.ratio:.4g}") for cell in view.cells)
    heads = ("output", "P if the value is 0", f"P if the value is {write_plain(view.sensitivity)}", "ratio")
    return PageTable(heads, rows, (1, 2, 3), "All probabilities", folded=True)


def draw_figure(view: MechanismView) -> Figure:
    moved, bound = float(view.sensitivity), math.exp(view.epsilon)
    low, high = view.cells[0].low, view.cells[-1].high
    places = [low + (high - low) * index / (POINTS - 1) for index in range(POINTS)]
    across = Axis("output", low, high)
    names = "value 0", f"value {write_plain(view.sensitivity)}"
    curves = [tuple((x, _density(view, x - centre)) for x in places) for centre in (0.0, moved)]
    tallest = _density(view, 0.0)
    continuous = Panel(
        "Continuous: the same curve, slid by Δ",
        "Two equal curves, one shifted to the right by the sensitivity.",
        across,
        Axis("density", 0, tallest * 1.08),
        (
            *_mark_excess(view),
            Line(curves[0], "first", names[0]),
            Line(curves[1], "second", names[1]),
        ),
    )
    return Figure(
        f"{view.kind.capitalize()} mechanism, ε = {write_plain(view.epsilon)}, Δ = {write_plain(view.sensitivity)}",
        (continuous, _draw_discrete(view, across, names), _draw_ratio(view, across, places, bound)),
        f"Every output is at most e^ε = {bound:.4g} times as likely for one neighbour as for the other."
        if view.kind == "laplace"
        else f"Left of the upright line the ratio exceeds e^ε = {bound:.4g}. The excess there sums to δ = "
        f"{view.exact_delta:.3g}.",
    )


def _mark_excess(view: MechanismView) -> tuple[Mark, ...]:
    """Where the ratio of two normal densities is e**epsilon. To the left, it is greater."""
    if view.kind == "laplace":
        return ()
    moved = float(view.sensitivity)
    return (Rule("naive", x=moved / 2 - view.deviation**2 * float(view.epsilon) / moved, text="ratio e^ε"),)


def _draw_discrete(view: MechanismView, across: Axis, names: tuple[str, str]) -> Panel:
    single = all(cell.low == cell.high for cell in view.cells)
    width = (float(view.first.step) if single else view.cells[0].high - view.cells[0].low) * 0.42
    middles = [(cell.low + cell.high) / 2 for cell in view.cells]
    most = max(max(cell.first, cell.second) for cell in view.cells)
    edge = width / 0.42
    return Panel(
        "Discrete: exact probabilities" if single else "Discrete: probabilities of ranges",
        "Bars of two distributions on the grid of the mechanism.",
        Axis(across.label, across.low - edge, across.high + edge),
        Axis("probability", 0, most * 1.08),
        (
            Bars(
                tuple((x - width, x, cell.first) for x, cell in zip(middles, view.cells, strict=True)),
                "first",
                names[0],
            ),
            Bars(
                tuple((x, x + width, cell.second) for x, cell in zip(middles, view.cells, strict=True)),
                "second",
                names[1],
            ),
        ),
    )


def _draw_ratio(view: MechanismView, across: Axis, places: list[float], bound: float) -> Panel:
    moved = float(view.sensitivity)
    curve = tuple((x, math.exp(_log_density(view, x) - _log_density(view, x - moved))) for x in places)
    reach = max(bound**1.6, max(max(ratio, 1 / ratio) for _, ratio in curve) * 1.2)
    dots = tuple(((cell.low + cell.high) / 2, cell.ratio) for cell in view.cells if 1 / reach < cell.ratio < reach)
    ticks = [(1.0, "1"), (bound, f"{bound:.3g}"), (1 / bound, f"{1 / bound:.3g}")]
    return Panel(
        "Ratio: value 0 against the other value",
        "The ratio falls from e^ε to e^-ε." if view.kind == "laplace" else "The ratio falls along a straight line.",
        across,
        Axis("ratio, log scale", 1 / reach, reach, tuple(ticks), log=True),
        (
            Rule("limit", y=bound, text="e^ε"),
            Rule("limit", y=1 / bound, text="e^-ε"),
            Line(curve, "protected", "of the densities"),
            Dots(dots, "plain", "of the exact probabilities", size=2.5),
            *_mark_excess(view),
        ),
    )


def _density(view: MechanismView, distance: float) -> float:
    size = view.deviation
    scale = 2 * size if view.kind == "laplace" else size * math.sqrt(2 * math.pi)
    return math.exp(_log_density(view, distance)) / scale


def _log_density(view: MechanismView, distance: float) -> float:
    """Up to a constant."""
    ratio = distance / view.deviation
    return -abs(ratio) if view.kind == "laplace" else -ratio * ratio / 2
