"""Ranges of aggregates that follow from the catalog, and ranges of output columns that follow from those."""

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from sfumato.answers.output_values import round_half_away
from sfumato.kernel.expressions import Literal
from sfumato.planning.formulas import (
    BinFormula,
    CountFormula,
    Formula,
    ListFormula,
    MeanFormula,
    PairFormula,
    SumFormula,
    VarianceFormula,
    list_possible_values,
)
from sfumato.planning.linear import Linear
from sfumato.query.query import AggregateRef, KeyRef, Post, PostCall

Floats = npt.NDArray[np.float64]
Ends = tuple[Floats, Floats]
EVERYWHERE = (np.asarray(-math.inf), np.asarray(math.inf))
MOST_TRIED = 9  # counts within the count's range at which a variance is evaluated


def bound_formula(formula: Formula) -> Ends:
    """The range of an aggregate that follows from the catalog."""
    lower, upper = list_possible_values(formula)
    return np.asarray(lower), np.asarray(upper)


def clip_ends(ends: Ends, within: Ends) -> Ends:
    """Clip an interval to a range. An interval outside the range becomes its nearest end."""
    return np.clip(ends[0], *within), np.clip(ends[1], *within)


def bound_from_components(formula: Formula, components: Mapping[str, Ends]) -> Ends:
    """The range of an aggregate while each of its released vectors is within its ends."""
    match formula:
        case CountFormula(linear) | SumFormula(linear):
            found = bound_linear(linear, components)
        case MeanFormula(count, total, centre):
            low, high = _divide(bound_linear(total, components), _raise_to(bound_linear(count, components), 1))
            found = (low + centre, high + centre)
        case VarianceFormula(count, total, squares):
            found = _bound_variances(*(bound_linear(linear, components) for linear in (count, total, squares)))
            found = clip_ends(found, (np.asarray(0.0), np.asarray(math.inf)))
            if formula.root:
                found = (np.sqrt(found[0]), np.sqrt(found[1]))
        case PairFormula():
            return bound_formula(formula)
        case BinFormula() | ListFormula():
            return EVERYWHERE
        case _:
            assert_never(formula)
    return clip_ends(found, bound_formula(formula))


def bound_linear(linear: Linear, components: Mapping[str, Ends]) -> Ends:
    low = high = np.asarray(float(linear.constant))
    for name, factor in linear.terms:
        one, two = (float(factor) * end for end in components[name])
        low, high = low + np.minimum(one, two), high + np.maximum(one, two)
    return low, high


def bound_post(post: Post, aggregates: Sequence[Ends], keys: Sequence[npt.NDArray[Any]]) -> Ends:
    """The range of an output column while each aggregate is within its ends."""
    match post:
        case AggregateRef(index):
            return aggregates[index]
        case Literal(value) if isinstance(value, (bool, str)) or value is None:
            return EVERYWHERE
        case Literal(value):
            return np.asarray(float(value)), np.asarray(float(value))  # type: ignore[arg-type]  # a number
        case KeyRef(index):
            return _bound_key(keys[index])
        case PostCall("round", (inner, Literal(int(digits)))):
            low, high = bound_post(inner, aggregates, keys)
            return round_half_away(np.array(low), digits), round_half_away(np.array(high), digits)
        case PostCall(function, arguments):
            with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
                return _apply(function, [bound_post(argument, aggregates, keys) for argument in arguments])


def _bound_key(values: npt.NDArray[Any]) -> Ends:
    try:
        numbers = np.array([math.nan if value is None else value for value in values.ravel()], np.float64)
    except (TypeError, ValueError):
        return EVERYWHERE
    return np.nan_to_num(numbers, nan=-math.inf), np.nan_to_num(numbers, nan=math.inf)


def _apply(function: str, ends: Sequence[Ends]) -> Ends:  # noqa: PLR0911, PLR0912 - one return a function
    low, high = ends[0]
    match function:
        case "neg":
            return -high, -low
        case "abs":
            inside = (low <= 0) & (high >= 0)
            return np.where(inside, 0, np.minimum(abs(low), abs(high))), np.maximum(abs(low), abs(high))
        case "+":
            return low + ends[1][0], high + ends[1][1]
        case "-":
            return low - ends[1][1], high - ends[1][0]
        case "*":
            return _multiply(ends[0], ends[1])
        case "/":
            return _divide(ends[0], ends[1])
        case "floor" | "ceil" | "exp":
            rounded = {"floor": np.floor, "ceil": np.ceil, "exp": np.exp}[function]
            return rounded(low), rounded(high)
        case "integer":
            return np.rint(low), np.rint(high)
        case "sqrt" | "ln":  # of a negative number they are NULL
            rising = np.sqrt if function == "sqrt" else np.log
            return rising(np.maximum(low, 0)), rising(np.maximum(high, 0))
        case "greatest" | "least":
            pick = np.maximum if function == "greatest" else np.minimum
            return reduce(pick, [one for one, _ in ends]), reduce(pick, [two for _, two in ends])
        case "coalesce":
            return reduce(np.minimum, [one for one, _ in ends]), reduce(np.maximum, [two for _, two in ends])
        case "variance of all" | "stddev of all":
            few, many = (1 - 1 / np.maximum(end, 2) for end in ends[1])
            if function == "stddev of all":
                few, many = np.sqrt(few), np.sqrt(many)
            return low * few, high * many
        case _:
            return EVERYWHERE


def _multiply(one: Ends, two: Ends) -> Ends:
    with np.errstate(invalid="ignore"):
        corners = np.array(np.broadcast_arrays(*(left * right for left in one for right in two)))
    corners = np.where(np.isnan(corners), 0, corners)  # zero times infinity
    return corners.min(axis=0), corners.max(axis=0)


def _divide(one: Ends, two: Ends) -> Ends:
    """The range of a quotient; infinite if the divisor may be zero."""
    with np.errstate(divide="ignore"):
        low, high = _multiply(one, (1 / two[1], 1 / two[0]))
    zero = (two[0] <= 0) & (two[1] >= 0)
    return np.where(zero, -math.inf, low), np.where(zero, math.inf, high)


def _raise_to(ends: Ends, least: float) -> Ends:
    return np.maximum(ends[0], least), np.maximum(ends[1], least)


def _bound_variances(count: Ends, total: Ends, squares: Ends) -> Ends:
    few, many = _raise_to(count, 2)
    straddles = (total[0] <= 0) & (total[1] >= 0)
    near = np.where(straddles, 0, np.minimum(abs(total[0]), abs(total[1])))
    far = np.maximum(abs(total[0]), abs(total[1]))
    tried = [few + (np.minimum(many, 1e300) - few) * place for place in np.linspace(0, 1, MOST_TRIED)]
    with np.errstate(invalid="ignore", over="ignore"):
        low = np.min([(squares[0] - far**2 / rows) / (rows - 1) for rows in tried], axis=0)
        high = np.max([(squares[1] - near**2 / rows) / (rows - 1) for rows in tried], axis=0)
    return low, high
