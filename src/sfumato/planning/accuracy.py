"""Values and intervals from released integers: post-processing, and so free."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.kernel.certify import Certificate, Certified
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.mechanisms import GaussianNoise, Noise
from sfumato.kernel.plan import Literal
from sfumato.kernel.tails import per_coordinate
from sfumato.planning.planner import Formula
from sfumato.query.query import AggregateRef, KeyRef, Post, PostCall

Floats = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]
MOST_SIMULATED = 100_000
LEAST_SIMULATIONS = 400
MOST_SIMULATIONS = 4_000
SMOOTH = 100.0


def in_units(certificate: Certificate, integers: Mapping[str, Sequence[int]]) -> dict[str, Floats]:
    """Released integers as numbers: steps times the grid."""
    return {
        each.name: np.array(integers[each.name], np.float64) * 2.0**each.exponent for each in certificate.measurements
    }


def aggregate_values(formula: Formula, measured: Mapping[str, Floats]) -> Floats:
    """An aggregate, for each cell. AVG is never NULL and never leaves its bounds."""
    match formula:
        case Formula("COUNT", count=str(count)):
            return measured[count]
        case Formula("SUM", total=str(total)):
            return measured[total]
        case Formula("AVG", total=str(total), count=str(count)):
            mean = formula.centre + measured[total] / np.maximum(measured[count], 1)
            return np.clip(mean, formula.lower, formula.upper)
        case Formula("VARIANCE" | "STDDEV" as function, str(total), str(count), str(squares)):
            people = np.maximum(measured[count], 2)
            variance = (measured[squares] - measured[total] ** 2 / people) / (people - 1)
            held = np.clip(variance, 0, formula.upper)
            deviation: Floats = np.sqrt(held)
            return deviation if function == "STDDEV" else held
    raise AssertionError("every formula is one of these")


def evaluate(post: Post, aggregates: Sequence[Floats], keys: Sequence[Objects]) -> npt.NDArray[Any]:
    """An output column: arithmetic over aggregates and keys, with NaN where it has no value."""
    match post:
        case AggregateRef(index):
            return aggregates[index]
        case KeyRef(index):
            return keys[index]
        case Literal(value):
            return np.asarray(value)
        case PostCall("round", (inner, Literal(digits))):
            return np.round(evaluate(inner, aggregates, keys).astype(np.float64), int(digits))  # type: ignore[arg-type]
        case PostCall(function, arguments):
            values = [evaluate(each, aggregates, keys) for each in arguments]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                return _apply(function, values)


def _apply(function: str, values: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    one = values[0]
    if len(values) == 1:
        return {"neg": np.negative, "abs": np.abs, "not": np.logical_not}[function](one)  # type: ignore[no-any-return]
    if function == "/":
        quotient = np.divide(one.astype(np.float64), values[1].astype(np.float64))
        return np.where(np.isfinite(quotient), quotient, np.nan)
    table = {
        "+": np.add, "-": np.subtract, "*": np.multiply, "=": np.equal, "<>": np.not_equal, "<": np.less,
        "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "and": np.logical_and, "or": np.logical_or,
    }  # fmt: skip
    return table[function](one, values[1])  # type: ignore[no-any-return]


def margin_of(each: Certified, confidence: Fraction) -> float:
    """|noise| of one cell of one measurement is at most this, with the stated probability: exact."""
    return each.noise.margin(per_coordinate(1 - confidence, 1)) * 2.0**each.exponent


def simulated(  # noqa: PLR0917 - what was released, what is wanted of it
    certificate: Certificate, measured: Mapping[str, Floats], formulas: Sequence[Formula], posts: Sequence[Post],
    keys: Sequence[Objects], confidence: Fraction,
) -> list[tuple[Floats, Floats]]:  # fmt: skip
    """Intervals of output columns, by drawing the known noise again around the released values."""
    cells = certificate.cells
    times = max(LEAST_SIMULATIONS, min(MOST_SIMULATIONS, MOST_SIMULATED // max(cells, 1)))
    drawn = {}
    for each in certificate.measurements:
        noise = _noise_again(each.noise, times * cells).reshape(times, cells)
        drawn[each.name] = measured[each.name] - noise * 2.0**each.exponent
    aggregates = [aggregate_values(formula, drawn) for formula in formulas]
    miss = float(1 - confidence)
    intervals = []
    for post in posts:
        values = np.broadcast_to(evaluate(post, aggregates, keys).astype(np.float64), (times, cells))
        with np.errstate(invalid="ignore"):
            low = np.quantile(values, miss / 2, axis=0, method="lower")
            high = np.quantile(values, 1 - miss / 2, axis=0, method="higher")
        intervals.append((low, high))
    return intervals


def _noise_again(noise: Noise, size: int) -> Floats:
    """Noise like that of the release, for intervals only: exact where steps show, else its continuous likeness."""
    spread = math.sqrt(noise.variance) if isinstance(noise, GaussianNoise) else float(noise.scale)
    if spread < SMOOTH:
        return np.asarray(noise.draw(size, SYSTEM), np.float64)
    uniform = (SYSTEM.take(8 * size).view("<u8") >> np.uint64(11)) * 2.0**-53 + 2.0**-54
    if isinstance(noise, GaussianNoise):
        angle = (SYSTEM.take(8 * size).view("<u8") >> np.uint64(11)) * (2.0**-53 * 2 * math.pi)
        normal: Floats = spread * np.sqrt(-2 * np.log(uniform)) * np.cos(angle)
        return normal
    centred = uniform - 0.5
    laplace: Floats = -spread * np.sign(centred) * np.log1p(-2 * np.abs(centred))
    return laplace


def plain_measurement(post: Post, formulas: Sequence[Formula]) -> str | None:
    """The measurement that an output column is, where it is one: its margin is then exact."""
    if isinstance(post, AggregateRef):
        formula = formulas[post.index]
        if formula.function == "COUNT":
            return formula.count
        if formula.function == "SUM":
            return formula.total
    return None


def three_digits_up(value: float) -> str:
    """A decimal of three digits, not below the value."""
    exponent = math.floor(math.log10(value)) - 2
    digits = math.ceil(value / 10.0**exponent * (1 - 1e-12))
    return f"{digits}e{exponent}"
