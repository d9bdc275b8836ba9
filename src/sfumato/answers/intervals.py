"""Intervals of output columns: what is read from released numbers, given that they are shown. It sees no data."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.answers.conditional_intervals import ends_given
from sfumato.answers.output_values import Objects, evaluate
from sfumato.answers.possible_ranges import EVERYWHERE, Ends, cut, image, of_components, possible
from sfumato.answers.ratio_intervals import ratio_ends
from sfumato.answers.released_values import linear_margin, margin_of, simulated
from sfumato.answers.shown_rows import (
    Shown,
    decides_alone,
    edges_within,
    linear_of,
    names_in,
    near_condition,
    near_edges,
    noise_of,
    values_of,
)
from sfumato.answers.simulated_noise import WeightedNoise
from sfumato.answers.variance_intervals import Sums, variance_ends
from sfumato.kernel.certify import BinChoice
from sfumato.kernel.expressions import Literal
from sfumato.kernel.mechanisms import Noise
from sfumato.planning.formulas import (
    ChoiceFormula,
    CountFormula,
    Formula,
    MeanFormula,
    SumFormula,
    VarianceFormula,
    sums_of,
)
from sfumato.planning.linear import Linear
from sfumato.query.query import AggregateRef, KeyRef, Post, PostCall

SURE = 3.0  # standard deviations: a count that is further from zero can be simulated
SIMULATED = Fraction(9, 10)  # of what may be missed: noise around released values is not quite that around true ones
CLOSE = 4.0  # a divisor whose interval ends at most this factor apart can be simulated
MOST_WEIGHT = Fraction(10) ** 200
NUMBERS = ("neg", "abs", "round", "+", "-", "*", "/")


def column_ends(post: Post, shown: Shown, miss: Fraction) -> Ends:
    """An interval of one output column for each cell; it misses with probability `miss` at most, given it is shown."""
    leaves = _leaves(post, shown.formulas)
    if not leaves:
        known = np.broadcast_to(evaluate(post, shown.aggregates, shown.keys).astype(np.float64), shown.cells)
        return known, known
    if len(leaves) == 1:
        leaf = leaves[0]
        found = _leaf_ends(leaf, shown, miss)
        if leaf != post:
            found = image(_with_hole(post, leaf), [found], shown.keys)
    else:
        found = _ends_of_several(post, shown, miss)
    low, high = cut(found, possible_of(post, shown.formulas, shown.keys))
    return np.broadcast_to(low, shown.cells), np.broadcast_to(high, shown.cells)


def has_interval(post: Post, formulas: Sequence[Formula]) -> bool:
    """Is a column a number that is read from aggregates? A key, a choice and a truth have no interval."""
    match post:
        case AggregateRef(index):
            return not isinstance(formulas[index], ChoiceFormula)
        case PostCall(function, arguments):
            numbers = [each for each in arguments if not isinstance(each, (Literal, KeyRef))]
            return function in NUMBERS and bool(numbers) and all(has_interval(each, formulas) for each in numbers)
        case _:
            return False


def as_linear(post: Post, formulas: Sequence[Formula]) -> Linear | None:
    """A column that is a sum of released vectors, each times a number."""
    match post:
        case AggregateRef(index):
            return linear_of(formulas[index])
        case Literal(value) if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            return Linear((), Fraction(value)) if abs(value) < float("inf") else None
        case PostCall("neg", (inner,)):
            found = as_linear(inner, formulas)
            return None if found is None else found.times(Fraction(-1))
        case PostCall("+" | "-" | "*" | "/" as function, (left, right)):
            one, two = as_linear(left, formulas), as_linear(right, formulas)
            found = None if one is None or two is None else _combined(function, one, two)
            return found if found is not None and _within_floats(found) else None
        case _:
            return None


def _combined(function: str, one: Linear, two: Linear) -> Linear | None:
    match function:
        case "+":
            return one.plus(two)
        case "-":
            return one.plus(two, -1)
        case "*" if not two.terms:
            return one.times(two.constant)
        case "*" if not one.terms:
            return two.times(one.constant)
        case "/" if not two.terms and two.constant:
            return one.times(1 / two.constant)
        case _:
            return None


def _within_floats(linear: Linear) -> bool:
    """Are its weights doubles, with room for what they are multiplied with?"""
    weights = [abs(factor) for _, factor in linear.terms]
    return abs(linear.constant) < MOST_WEIGHT and all(1 / MOST_WEIGHT < each < MOST_WEIGHT for each in weights)


def _as_ratio(post: Post, formulas: Sequence[Formula]) -> tuple[Linear, Linear, float, tuple[float, float]] | None:
    """A column that is a quotient of two such sums, plus a number; and where it can be."""
    match post:
        case AggregateRef(index):
            mean = formulas[index]
            if isinstance(mean, MeanFormula):
                low, high = (float(end) for end in possible(mean))
                return mean.total, mean.count, mean.centre, (low - mean.centre, high - mean.centre)
        case PostCall("/", (left, right)):
            top, bottom = as_linear(left, formulas), as_linear(right, formulas)
            if top is not None and bottom is not None:
                return top, bottom, 0.0, _as_mean(left, right, formulas)
    return None


def _as_mean(top: Post, bottom: Post, formulas: Sequence[Formula]) -> tuple[float, float]:
    """Between which numbers a quotient is: a sum's value has bounds, if the rows that it adds up are all counted."""
    if not isinstance(top, AggregateRef) or not isinstance(bottom, AggregateRef):
        return -np.inf, np.inf
    total, count = formulas[top.index], formulas[bottom.index]
    if isinstance(total, SumFormula) and isinstance(count, CountFormula):
        lower, upper = total.value.lower, total.value.upper
        same = count.value is not None and count.value.expression == total.value.expression
        if lower is not None and upper is not None:
            if same or (count.all_rows and not total.value.nullable):
                return lower, upper
            if count.all_rows:  # rows where the value is NULL add nothing
                return min(lower, 0.0), max(upper, 0.0)
    return -np.inf, np.inf


def _leaves(post: Post, formulas: Sequence[Formula]) -> list[Post]:
    """The parts of a column whose intervals are found as a whole, each as often as it occurs."""
    if not names_in(post, formulas):
        return []
    if isinstance(post, AggregateRef) or as_linear(post, formulas) or _as_ratio(post, formulas):
        return [post]
    return [leaf for each in post.arguments for leaf in _leaves(each, formulas)] if isinstance(post, PostCall) else []


def _with_hole(post: Post, leaf: Post) -> Post:
    """The column as a function of its only leaf."""
    if post == leaf:
        return AggregateRef(0)
    if isinstance(post, PostCall):
        return PostCall(post.function, tuple(_with_hole(each, leaf) for each in post.arguments))
    return post


def possible_of(post: Post, formulas: Sequence[Formula], keys: Sequence[Objects] = ()) -> Ends:
    """Between which numbers a column can be, by the catalog."""
    return image(post, [possible(each) for each in formulas], keys)


def _leaf_ends(leaf: Post, shown: Shown, miss: Fraction) -> Ends:
    names = names_in(leaf, shown.formulas)
    linear = as_linear(leaf, shown.formulas)
    if linear is not None:
        return _linear_ends(leaf, linear, shown, miss)
    near = near_condition(names, shown)
    if not near.any():
        return _free_ends(leaf, shown, miss)
    boxed = _boxed(leaf, names, shown, miss)
    ratio = _as_ratio(leaf, shown.formulas)
    if ratio is not None:
        boxed = cut(boxed, (np.asarray(ratio[3][0] + ratio[2]), np.asarray(ratio[3][1] + ratio[2])))
    if near.all():
        return boxed
    found = _free_ends(leaf, shown, miss)
    return np.where(near, boxed[0], found[0]), np.where(near, boxed[1], found[1])


def _free_ends(leaf: Post, shown: Shown, miss: Fraction) -> Ends:
    """Of a mean, a ratio or a variance whose parts would be shown in any case."""
    ratio = _as_ratio(leaf, shown.formulas)
    if ratio is not None:
        top, bottom, centre, within = ratio
        names, noises = _noises(names_in(leaf, shown.formulas), shown)
        weights = (_weights(top, names, shown), _weights(bottom, names, shown))
        low, high = ratio_ends(values_of(top, shown), values_of(bottom, shown), weights, noises, miss, within)
        return low + centre, high + centre
    if not isinstance(leaf, AggregateRef):
        raise AssertionError("a leaf is linear, a ratio or an aggregate")
    formula = shown.formulas[leaf.index]
    if not isinstance(formula, VarianceFormula):
        raise AssertionError("an aggregate that is neither linear nor a ratio is a variance")
    return _variance_ends(formula, shown, miss)


def _variance_ends(formula: VarianceFormula, shown: Shown, miss: Fraction) -> Ends:
    count, total, squares = formula.count, formula.total, formula.squares
    names, noises = _noises({name for each in (count, total, squares) for name, _ in each.terms}, shown)
    weights = [_weights(each, names, shown) for each in (count, total, squares)]
    rows = None if count.terms else float(count.constant)
    sums = Sums(weights[0], weights[1], weights[2], -formula.reach, formula.reach, rows)
    values = [values_of(each, shown) for each in (count, total, squares)]
    low, high = variance_ends(values[0], values[1], values[2], sums, noises, miss)
    low, high = (np.maximum(each, 0) for each in (low, high))
    return (np.sqrt(low), np.sqrt(high)) if formula.root else (low, high)


def _noises(names: frozenset[str] | set[str], shown: Shown) -> tuple[list[str], tuple[Noise | WeightedNoise, ...]]:
    order = sorted(names)
    found = [shown.by_name[name].noise for name in order]
    return order, tuple(each for each in found if not isinstance(each, BinChoice))


def _weights(linear: Linear, names: Sequence[str], shown: Shown) -> tuple[float, ...]:
    factors = dict(linear.terms)
    return tuple(float(factors.get(name, 0)) * shown.by_name[name].step for name in names)


def _linear_ends(leaf: Post, linear: Linear, shown: Shown, miss: Fraction) -> Ends:
    values = values_of(linear, shown)
    within = possible_of(leaf, shown.formulas, shown.keys)
    margin = linear_margin(linear, shown.by_name, 1 - miss)
    nearest = np.clip(values, *within)  # a number that cannot be true has the interval of the nearest that can
    found = cut((nearest - margin, nearest + margin), within)
    names = frozenset(name for name, _ in linear.terms)
    if not names & shown.conditioned:
        return found
    if not decides_alone(linear, shown):
        near = near_condition(names, shown)
        boxed = cut(_boxed(leaf, names, shown, miss), within)
        return np.where(near, boxed[0], found[0]), np.where(near, boxed[1], found[1])
    law = noise_of(linear, shown)
    least, most = edges_within(linear, shown, law)
    near = near_edges(values, least, most, law)
    given = ends_given(values[near], least[near], most[near], law, float(miss))
    low, high = (np.array(np.broadcast_to(each, shown.cells)) for each in found)
    low[near], high[near] = cut(given, within)
    return low, high


def _boxed(post: Post, names: frozenset[str], shown: Shown, miss: Fraction) -> Ends:
    """All values of a column while each vector is in its own interval: they share the probability to miss."""
    components: dict[str, Ends] = {}
    thresholds = dict(shown.thresholds)
    for name in names:
        each = shown.by_name[name]
        if isinstance(each.noise, BinChoice):
            return EVERYWHERE
        linear = Linear.from_vector(name)
        share = miss / len(names)
        law = noise_of(linear, shown)
        values = values_of(linear, shown)
        margin = margin_of(each, 1 - share)
        components[name] = (values - margin, values + margin)
        if name in shown.conditioned:
            components[name] = ends_given(values, *shown.edges[name], law, float(share))
        if name in shown.weights:
            components[name] = cut(components[name], (np.asarray(0.0), np.asarray(np.inf)))
        if name in thresholds:
            components[name] = cut(components[name], (np.asarray(1.0), np.asarray(np.inf)))
    return image(
        post,
        [of_components(each, components) if _reads(each, components) else EVERYWHERE for each in shown.formulas],
        shown.keys,
    )


def _reads(formula: Formula, components: dict[str, Ends]) -> bool:
    sums = sums_of(formula)
    return bool(sums) and all(name in components for linear in sums for name, _ in linear.terms)


def _ends_of_several(post: Post, shown: Shown, miss: Fraction) -> Ends:
    """Of what is computed from several numbers: simulated where they are sure, else from the interval of each."""
    names = names_in(post, shown.formulas)
    unsure = near_condition(names, shown) | _unsure(post, shown, miss)
    if unsure.all():
        return _boxed(post, names, shown, miss)
    ((low, high),) = simulated(shown.reading, shown.formulas, [post], shown.keys, 1 - miss * SIMULATED)
    if not unsure.any():
        return low, high
    boxed = _boxed(post, names, shown, miss)
    return np.where(unsure, boxed[0], low), np.where(unsure, boxed[1], high)


def _unsure(post: Post, shown: Shown, miss: Fraction) -> npt.NDArray[np.bool_]:
    """The cells in which a divisor may be near zero: there noise around the released values is no guide."""
    unsure = np.zeros(shown.cells, bool)
    match post:
        case AggregateRef(index):
            formula = shown.formulas[index]
            if isinstance(formula, MeanFormula | VarianceFormula) and formula.count.terms:
                return np.asarray(values_of(formula.count, shown) < SURE * noise_of(formula.count, shown).spread)
        case PostCall(function, arguments):
            for each in arguments:
                unsure |= _unsure(each, shown, miss)
            if function == "/":
                low, high = _boxed(arguments[1], names_in(arguments[1], shown.formulas), shown, miss)
                near, far = np.minimum(abs(low), abs(high)), np.maximum(abs(low), abs(high))
                unsure |= ((low <= 0) & (high >= 0)) | (far > CLOSE * near)
    return unsure
