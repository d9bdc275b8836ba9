"""Aggregates, margins and simulated intervals, computed from released values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from sfumato.accuracy.choice_margins import compute_bin_margin
from sfumato.accuracy.noise_margins import compute_noise_margin
from sfumato.answers.output_values import Floats, Objects, evaluate
from sfumato.answers.pair_statistics import compute_pair
from sfumato.answers.simulated_noise import WeightedNoise, imitate_noises
from sfumato.answers.unmixed_values import find_unmixing
from sfumato.errors import KernelFault
from sfumato.kernel.certify import BinChoice, Certificate, Certified
from sfumato.kernel.expressions import Scalar
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise, Noise
from sfumato.kernel.plan import Strategy
from sfumato.kernel.release import Released
from sfumato.planning.formulas import (
    BinFormula,
    ChoiceFormula,
    CountFormula,
    Formula,
    ListFormula,
    MeanFormula,
    PairFormula,
    SumFormula,
    VarianceFormula,
)
from sfumato.planning.linear import Linear
from sfumato.planning.moment_measurements import name_part
from sfumato.query.query import AggregateRef, Post, PostCall

MOST_SIMULATED = 1 << 16
OFTEN = 50  # simulated points beyond the two ends of an interval, together
MOST_AT_ONCE = 1 << 16  # values, half a megabyte: a block stays in the processor's cache


@dataclass(frozen=True, slots=True)
class ReleasedVector:
    """One released measurement, or one part of it: a value per cell, and its noise in steps of its grid."""

    name: str
    values: Floats
    noise: Noise | BinChoice | WeightedNoise
    step: float
    # where the cells' noises depend on one another: for each cell, the weights of independent noises like `noise`
    mixing: Floats | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """The released values of a question in units. All of them are noisy."""

    measured: tuple[ReleasedVector, ...]
    keys: tuple[tuple[Scalar, ...], ...] | None = None

    @classmethod
    def from_release(cls, released: Released) -> "Reading":
        """The values of one release."""
        made = []
        strategies = find_strategies(released.certificate)
        for certified in released.certificate.measurements:
            choice = isinstance(certified.noise, BinChoice)
            values = np.array(released.integers[certified.name], np.float64)
            vectors = split_parts(certified, values if choice else values * 2.0**certified.exponent)
            made += [unmix(vector, strategies.get(certified.name)) for vector in vectors]
        return cls(tuple(made), released.keys)

    @property
    def values(self) -> dict[str, Floats]:
        return {vector.name: vector.values for vector in self.measured}

    def select_cells(self, cells: Sequence[int], among: int) -> "Reading":
        """Only these cells, out of `among` cells."""
        if not among:
            return self
        chosen = [
            replace(
                vector,
                values=vector.values.reshape(among, -1)[cells].ravel(),
                mixing=None if vector.mixing is None else vector.mixing[cells],
            )
            for vector in self.measured
        ]
        keys = None if self.keys is None else tuple(self.keys[cell] for cell in cells)
        return Reading(tuple(chosen), keys)


def find_strategies(certificate: Certificate) -> dict[str, Strategy]:
    """The strategies among the measurements of a plan, by name."""
    measured = [measurement for plan in certificate.plans for measurement in plan.measurements]
    return {part.name: part.quantity for part in measured if isinstance(part.quantity, Strategy)}


def unmix(vector: ReleasedVector, strategy: Strategy | None) -> ReleasedVector:
    """The cells that the released queries of a strategy are about; any other vector itself."""
    if strategy is None or not isinstance(vector.noise, LaplaceNoise | GaussianNoise):
        return vector
    found = find_unmixing(strategy.matrices)
    cells = found.find_cells(vector.values) if vector.values.size > 1 else vector.values  # one: assumed, not released
    return replace(vector, values=cells, noise=found.find_noise(vector.noise), mixing=found.find_mixing())


def share_mixing(combined: Reading, one: Reading) -> Reading:
    """Several releases of one question, combined: their cells' noises depend on one another as those of one release."""
    pairs = zip(combined.measured, one.measured, strict=True)
    return replace(combined, measured=tuple(replace(vector, mixing=like.mixing) for vector, like in pairs))


def split_parts(certified: Certified, values: Floats) -> list[ReleasedVector]:
    """Split the values of a measurement into one vector per part, with a value per cell."""
    if isinstance(certified.noise, BinChoice):
        return [ReleasedVector(certified.name, values, certified.noise, 2.0**certified.weight_exponent)]
    if isinstance(certified.noise, BoxNoise):
        raise KernelFault("Products are read by estimators, not by answers.")
    step = 2.0**certified.exponent
    if certified.width == 1:
        return [ReleasedVector(certified.name, values, certified.noise, step)]
    parts = values.reshape(-1, certified.width).T
    return [
        ReleasedVector(name_part(certified.name, place), part, certified.noise, step)
        for place, part in enumerate(parts)
    ]


def compute_aggregate(formula: Formula, measured: Mapping[str, Floats]) -> npt.NDArray[Any]:
    """Compute an aggregate per cell. AVG is never NULL and stays within its bounds."""
    match formula:
        case CountFormula(linear) | SumFormula(linear):
            return read_linear(linear, measured)
        case MeanFormula(count, total, centre, lower, upper):
            mean = centre + read_linear(total, measured) / np.maximum(read_linear(count, measured), 1)
            return np.clip(mean, lower, upper)
        case VarianceFormula(count, total, squares):
            people = np.maximum(read_linear(count, measured), 2)
            variance = (read_linear(squares, measured) - read_linear(total, measured) ** 2 / people) / (people - 1)
            held = np.clip(variance, 0, formula.cap)
            deviation: Floats = np.sqrt(held)
            return deviation if formula.root else held
        case PairFormula():
            return compute_pair(formula, lambda linear: read_linear(linear, measured))
        case BinFormula(chosen, place, width, first, step, largest, since):
            bins = measured[chosen].reshape(-1, width)[:, place]
            return add_to_moment(since, np.minimum(first + bins * step, largest or 0.0))
        case ListFormula(chosen, values, width, several):
            rows = measured[chosen].astype(int).reshape(-1, width).tolist()
            found = np.empty(len(rows), object)
            found[:] = [[values[number] for number in row] if several else values[row[0]] for row in rows]
            return found
        case _:
            assert_never(formula)


def add_to_moment(since: Scalar, numbers: Floats) -> npt.NDArray[Any]:
    """Dates or datetimes, from days or minutes; numbers stay numbers."""
    if not isinstance(since, date):
        return numbers
    made = np.empty(numbers.shape, object)
    unit = timedelta(minutes=1) if isinstance(since, datetime) else timedelta(days=1)
    made[:] = [since + round(number) * unit for number in numbers.tolist()]
    return made


def read_linear(linear: Linear, measured: Mapping[str, Floats]) -> Floats:
    made: Floats = np.asarray(float(linear.constant))
    for name, factor in linear.terms:
        term = measured[name] if factor == 1 else float(factor) * measured[name]
        made = made + term if linear.constant or made.ndim else term
    return made


def find_margin(vector: ReleasedVector, confidence: Fraction) -> float:
    """The margin of one vector: |noise| of a cell is at most this with the stated probability. Exact for one release.

    For a choice it is in rows: the distance of the chosen rank from the wanted rank.
    """
    match vector.noise:
        case LaplaceNoise() | GaussianNoise():
            return compute_noise_margin(vector.noise, 1 - confidence) * vector.step
        case WeightedNoise():
            return vector.noise.margin(1 - confidence) * vector.step
        case choice:
            return compute_bin_margin(choice, confidence) * vector.step


def find_linear_margin(linear: Linear, by_name: Mapping[str, ReleasedVector], confidence: Fraction) -> float:
    """The margin of a linear combination: |noise| is at most this with the stated probability. Exact for one vector."""
    if not linear.terms:
        return 0.0
    if len(linear.terms) == 1:
        ((name, factor),) = linear.terms
        return abs(float(factor)) * find_margin(by_name[name], confidence)
    parts: list[tuple[float, Noise]] = []
    for name, factor in linear.terms:
        vector = by_name[name]
        match vector.noise:
            case WeightedNoise(several):
                parts += [(float(factor) * vector.step * weight, noise) for weight, noise in several]
            case LaplaceNoise() | GaussianNoise():
                parts.append((float(factor) * vector.step, vector.noise))
    return WeightedNoise(tuple(parts)).margin(1 - confidence)


def depends_on_choice(post: Post, formulas: Sequence[Formula]) -> bool:
    """Does an output column depend on a choice? Its margin is then in rank, not in value."""
    match post:
        case AggregateRef(index):
            return isinstance(formulas[index], ChoiceFormula)
        case PostCall(_, arguments):
            return any(depends_on_choice(argument, formulas) for argument in arguments)
        case _:
            return False


def simulate_ends(
    reading: Reading, formulas: Sequence[Formula], posts: Sequence[Post],
    keys: Sequence[Objects], confidence: Fraction,
) -> list[tuple[Floats, Floats]]:  # fmt: skip
    """Find intervals of output columns by simulating the noise around the released values."""
    noisy = [vector for vector in reading.measured if not isinstance(vector.noise, BinChoice)]
    cells = max((vector.values.size for vector in noisy), default=1)
    miss = float(1 - confidence)
    times = min(max(1_000 if cells > 16 else 4_000, int(OFTEN / miss)), MOST_SIMULATED)
    noise = imitate_noises(tuple(vector.noise for vector in noisy if not isinstance(vector.noise, BinChoice)), times)
    low, high = (np.empty((len(posts), cells)) for _ in range(2))
    block = max(1, MOST_AT_ONCE // times)
    edge = min(int(miss / 2 * times), times // 2)
    for begin in range(0, cells, block):
        part = slice(begin, begin + block)
        drawn = {
            vector.name: vector.values[part, None] - drawn_noise[None, :] * vector.step
            for vector, drawn_noise in zip(noisy, noise, strict=True)
        }
        aggregates = [
            np.asarray(0.0) if isinstance(formula, ChoiceFormula) else compute_aggregate(formula, drawn)
            for formula in formulas
        ]
        here = [key[part, None] for key in keys]
        for index, post in enumerate(posts):
            shape = (min(block, cells - begin), times)
            values = np.broadcast_to(evaluate(post, aggregates, here).astype(np.float64), shape)
            ordered = np.sort(values, axis=1)  # faster than np.partition; NaN counts as the largest
            low[index, part], high[index, part] = ordered[:, edge], ordered[:, -1 - edge]
    return list(zip(low, high, strict=True))


def round_up_to_three_digits(value: float) -> str:
    """Round up to three digits, as a decimal text."""
    exponent = math.floor(math.log10(value)) - 2
    digits = math.ceil(value / 10.0**exponent * (1 - 1e-12))
    return f"{digits}e{exponent}"
