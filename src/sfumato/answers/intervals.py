"""Confidence intervals of output columns, given that their rows are shown. They use released values only."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.answers.conditional_intervals import find_conditional_ends
from sfumato.answers.output_values import Objects, evaluate
from sfumato.answers.possible_ranges import (
    EVERYWHERE,
    Ends,
    bound_formula,
    bound_from_components,
    bound_post,
    clip_ends,
)
from sfumato.answers.quantile_intervals import find_quantile_ends
from sfumato.answers.ratio_intervals import find_ratio_ends
from sfumato.answers.released_values import depends_on_choice, find_linear_margin, find_margin, simulate_ends
from sfumato.answers.shown_rows import (
    ShownRows,
    compute_values,
    decides_alone,
    express_formula,
    find_edges_within,
    find_near_condition,
    find_noise,
    find_vector_names,
    is_near_edges,
)
from sfumato.answers.simulated_noise import WeightedNoise
from sfumato.answers.variance_intervals import Sums, find_variance_ends
from sfumato.kernel.certify import BinChoice
from sfumato.kernel.expressions import Literal
from sfumato.kernel.mechanisms import Noise
from sfumato.planning.formulas import (
    BinFormula,
    ChoiceFormula,
    CountFormula,
    Formula,
    MeanFormula,
    PairFormula,
    SumFormula,
    VarianceFormula,
    sums_of,
)
from sfumato.planning.linear import Linear
from sfumato.query.query import AggregateRef, KeyRef, Post, PostCall

SURE = 3.0  # standard deviations: a divisor count must be at least this far from zero to be simulated
SIMULATED = Fraction(9, 10)  # of `miss`: simulating around released instead of true values costs some confidence
CLOSE = 4.0  # the largest ratio of the ends of a divisor's interval for which it can be simulated
MOST_WEIGHT = Fraction(10) ** 60  # its fourth power, times that of a scale, is still a double
NUMBERS = (
    "neg", "abs", "round", "+", "-", "*", "/", "floor", "ceil", "sqrt", "ln", "exp", "integer", "greatest", "least",
    "coalesce", "variance of all", "stddev of all",
)  # fmt: skip


def find_column_ends(post: Post, shown: ShownRows, miss: Fraction) -> Ends:
    """Find the interval of one output column per cell. Given that the cell is shown, it misses with at most `miss`."""
    leaves = _find_leaves(post, shown.formulas)
    if not leaves:
        known = np.broadcast_to(evaluate(post, shown.aggregates, shown.keys).astype(np.float64), shown.cells)
        return known, known
    if len(leaves) == 1:
        leaf = leaves[0]
        found = _find_leaf_ends(leaf, shown, miss)
        if leaf != post:
            found = bound_post(_replace_leaf(post, leaf), [found], shown.keys)
    else:
        found = _find_ends_of_several(post, shown, miss)
    low, high = clip_ends(found, bound_column(post, shown.formulas, shown.keys))
    return np.broadcast_to(low, shown.cells), np.broadcast_to(high, shown.cells)


def has_interval(post: Post, formulas: Sequence[Formula]) -> bool:
    """Is the column a number that is computed from noisy aggregates? Keys, choices and conditions have no interval."""
    match post:
        case AggregateRef(index):
            formula = formulas[index]
            return bool(formula.ends) if isinstance(formula, BinFormula) else not isinstance(formula, ChoiceFormula)
        case PostCall(function, arguments):
            numbers = [argument for argument in arguments if not isinstance(argument, (Literal, KeyRef))]
            if depends_on_choice(post, formulas) and len(_find_leaves(post, formulas)) > 1:
                return False  # the interval of a quantile and other intervals do not share their chance of a miss
            return function in NUMBERS and bool(numbers) and all(has_interval(number, formulas) for number in numbers)
        case _:
            return False


def express_as_linear(post: Post, formulas: Sequence[Formula]) -> Linear | None:
    """The column as a linear combination of released vectors; None if it is not one."""
    match post:
        case AggregateRef(index):
            return express_formula(formulas[index])
        case Literal(value) if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            return Linear((), Fraction(value)) if abs(value) < float("inf") else None
        case PostCall("neg", (inner,)):
            found = express_as_linear(inner, formulas)
            return None if found is None else found.times(Fraction(-1))
        case PostCall("+" | "-" | "*" | "/" as function, (left, right)):
            one, two = express_as_linear(left, formulas), express_as_linear(right, formulas)
            found = None if one is None or two is None else _combine(function, one, two)
            return found if found is not None and _fits_floats(found) else None
        case _:
            return None


def _combine(function: str, one: Linear, two: Linear) -> Linear | None:
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


def _fits_floats(linear: Linear) -> bool:
    """Are the weights far enough from overflow and underflow of a double?"""
    weights = [abs(factor) for _, factor in linear.terms]
    return abs(linear.constant) < MOST_WEIGHT and all(1 / MOST_WEIGHT < weight < MOST_WEIGHT for weight in weights)


def _express_as_ratio(
    post: Post, formulas: Sequence[Formula]
) -> tuple[Linear, Linear, float, tuple[float, float]] | None:
    """The column as a ratio of two linear combinations plus a constant, and its range; None if it is not one."""
    match post:
        case AggregateRef(index):
            mean = formulas[index]
            if isinstance(mean, MeanFormula):
                low, high = (float(end) for end in bound_formula(mean))
                return mean.total, mean.count, mean.centre, (low - mean.centre, high - mean.centre)
        case PostCall("/", (left, right)):
            top, bottom = express_as_linear(left, formulas), express_as_linear(right, formulas)
            if top is not None and bottom is not None:
                return top, bottom, 0.0, _bound_ratio(left, right, formulas)
    return None


def _bound_ratio(top: Post, bottom: Post, formulas: Sequence[Formula]) -> tuple[float, float]:
    """The possible range of a ratio: that of the summed value, if the divisor counts all rows of the sum."""
    if not isinstance(top, AggregateRef) or not isinstance(bottom, AggregateRef):
        return -np.inf, np.inf
    total, count = formulas[top.index], formulas[bottom.index]
    if isinstance(total, SumFormula) and isinstance(count, CountFormula) and not total.different:
        lower, upper = total.value.lower, total.value.upper
        same = count.value is not None and count.value.expression == total.value.expression
        if lower is not None and upper is not None:
            if same or (count.all_rows and not total.value.nullable):
                return lower, upper
            if count.all_rows:  # rows where the value is NULL add nothing
                return min(lower, 0.0), max(upper, 0.0)
    return -np.inf, np.inf


def _find_leaves(post: Post, formulas: Sequence[Formula]) -> list[Post]:
    """The parts of a column whose intervals are found as a whole. A part that occurs twice is listed twice."""
    if not find_vector_names(post, formulas):
        return []
    if isinstance(post, AggregateRef) or express_as_linear(post, formulas) or _express_as_ratio(post, formulas):
        return [post]
    return (
        [leaf for argument in post.arguments for leaf in _find_leaves(argument, formulas)]
        if isinstance(post, PostCall)
        else []
    )


def _replace_leaf(post: Post, leaf: Post) -> Post:
    """Replace the only leaf of a column by its first aggregate."""
    if post == leaf:
        return AggregateRef(0)
    if isinstance(post, PostCall):
        return PostCall(post.function, tuple(_replace_leaf(argument, leaf) for argument in post.arguments))
    return post


def bound_column(post: Post, formulas: Sequence[Formula], keys: Sequence[Objects] = ()) -> Ends:
    """The range of a column that follows from the catalog."""
    return bound_post(post, [bound_formula(formula) for formula in formulas], keys)


def _find_leaf_ends(leaf: Post, shown: ShownRows, miss: Fraction) -> Ends:
    names = find_vector_names(leaf, shown.formulas)
    if isinstance(leaf, AggregateRef) and isinstance(shown.formulas[leaf.index], BinFormula):
        return find_quantile_ends(shown.formulas[leaf.index], shown)
    linear = express_as_linear(leaf, shown.formulas)
    if linear is not None:
        return _find_linear_ends(leaf, linear, shown, miss)
    near = find_near_condition(names, shown)
    if not near.any():
        return _find_free_ends(leaf, shown, miss)
    boxed = _box_ends(leaf, names, shown, miss)
    ratio = _express_as_ratio(leaf, shown.formulas)
    if ratio is not None:
        boxed = clip_ends(boxed, (np.asarray(ratio[3][0] + ratio[2]), np.asarray(ratio[3][1] + ratio[2])))
    if near.all():
        return boxed
    found = _find_free_ends(leaf, shown, miss)
    return np.where(near, boxed[0], found[0]), np.where(near, boxed[1], found[1])


def _find_free_ends(leaf: Post, shown: ShownRows, miss: Fraction) -> Ends:
    """Find the interval of a mean, ratio or variance whose cells are far from the limits of their conditions."""
    ratio = _express_as_ratio(leaf, shown.formulas)
    if ratio is not None:
        top, bottom, centre, within = ratio
        names, noises = _list_noises(find_vector_names(leaf, shown.formulas), shown)
        weights = (_list_weights(top, names, shown), _list_weights(bottom, names, shown))
        low, high = find_ratio_ends(
            compute_values(top, shown), compute_values(bottom, shown), weights, noises, miss, within
        )
        return low + centre, high + centre
    if not isinstance(leaf, AggregateRef):
        raise AssertionError("a leaf is linear, a ratio or an aggregate")
    formula = shown.formulas[leaf.index]
    if isinstance(formula, PairFormula):
        return _find_pair_ends(leaf, formula, shown, miss)
    if not isinstance(formula, VarianceFormula):
        raise AssertionError("an aggregate that is neither linear nor a ratio is a variance or of two values")
    return _find_variance_ends(formula, shown, miss)


def _find_pair_ends(leaf: AggregateRef, formula: PairFormula, shown: ShownRows, miss: Fraction) -> Ends:
    """Simulate a statistic of two values where its divisors are far from 0; elsewhere, all that is possible."""
    formulas, first = [*shown.formulas, *formula.divisors], len(shown.formulas)
    posts = [leaf, *(AggregateRef(first + place) for place in range(len(formula.divisors)))]
    ends = simulate_ends(shown.reading, formulas, posts, shown.keys, 1 - miss * SIMULATED)
    (low, high), divisors = ends[0], ends[1:]
    unsure = _find_unsure_cells(leaf, shown, miss) | np.isnan(low) | np.isnan(high)
    for least, most in divisors:
        unsure = unsure | ~(least > 0) | (most > CLOSE * least)
    lowest, highest = formula.range
    return np.where(unsure, lowest, low), np.where(unsure, highest, high)


def _find_variance_ends(formula: VarianceFormula, shown: ShownRows, miss: Fraction) -> Ends:
    count, total, squares = formula.count, formula.total, formula.squares
    names, noises = _list_noises({name for linear in (count, total, squares) for name, _ in linear.terms}, shown)
    weights = [_list_weights(linear, names, shown) for linear in (count, total, squares)]
    rows = None if count.terms else float(count.constant)
    sums = Sums(weights[0], weights[1], weights[2], -formula.reach, formula.reach, rows)
    values = [compute_values(linear, shown) for linear in (count, total, squares)]
    low, high = find_variance_ends(values[0], values[1], values[2], sums, noises, miss)
    low, high = (np.maximum(ends, 0) for ends in (low, high))
    return (np.sqrt(low), np.sqrt(high)) if formula.root else (low, high)


def _list_noises(
    names: frozenset[str] | set[str], shown: ShownRows
) -> tuple[list[str], tuple[Noise | WeightedNoise, ...]]:
    order = sorted(names)
    found = [shown.by_name[name].noise for name in order]
    return order, tuple(noise for noise in found if not isinstance(noise, BinChoice))


def _list_weights(linear: Linear, names: Sequence[str], shown: ShownRows) -> tuple[float, ...]:
    factors = dict(linear.terms)
    return tuple(float(factors.get(name, 0)) * shown.by_name[name].step for name in names)


def _find_linear_ends(leaf: Post, linear: Linear, shown: ShownRows, miss: Fraction) -> Ends:
    values = compute_values(linear, shown)
    within = bound_column(leaf, shown.formulas, shown.keys)
    margin = find_linear_margin(linear, shown.by_name, 1 - miss)
    nearest = np.clip(values, *within)  # an impossible value gets the interval of the nearest possible one
    found = clip_ends((nearest - margin, nearest + margin), within)
    names = frozenset(name for name, _ in linear.terms)
    if not names & shown.condition_names:
        return found
    if not decides_alone(linear, shown):
        near = find_near_condition(names, shown)
        boxed = clip_ends(_box_ends(leaf, names, shown, miss), within)
        return np.where(near, boxed[0], found[0]), np.where(near, boxed[1], found[1])
    law = find_noise(linear, shown)
    least, most = find_edges_within(linear, shown, law)
    near = is_near_edges(values, least, most, law)
    given = find_conditional_ends(values[near], least[near], most[near], law, float(miss))
    low, high = (np.array(np.broadcast_to(ends, shown.cells)) for ends in found)
    low[near], high[near] = clip_ends(given, within)
    return low, high


def _box_ends(post: Post, names: frozenset[str], shown: ShownRows, miss: Fraction) -> Ends:
    """The range of a column while each vector is in its own interval. The intervals share `miss`."""
    components: dict[str, Ends] = {}
    thresholds = dict(shown.thresholds)
    for name in names:
        vector = shown.by_name[name]
        if isinstance(vector.noise, BinChoice):
            return EVERYWHERE
        linear = Linear.from_vector(name)
        share = miss / len(names)
        law = find_noise(linear, shown)
        values = compute_values(linear, shown)
        margin = find_margin(vector, 1 - share)
        components[name] = (values - margin, values + margin)
        if name in shown.condition_names:
            components[name] = find_conditional_ends(values, *shown.edges[name], law, float(share))
        if name in shown.weights:
            components[name] = clip_ends(components[name], (np.asarray(0.0), np.asarray(np.inf)))
        if name in thresholds:
            components[name] = clip_ends(components[name], (np.asarray(1.0), np.asarray(np.inf)))
    return bound_post(
        post,
        [
            bound_from_components(formula, components) if _reads(formula, components) else EVERYWHERE
            for formula in shown.formulas
        ],
        shown.keys,
    )


def _reads(formula: Formula, components: dict[str, Ends]) -> bool:
    sums = sums_of(formula)
    return bool(sums) and all(name in components for linear in sums for name, _ in linear.terms)


def _find_ends_of_several(post: Post, shown: ShownRows, miss: Fraction) -> Ends:
    """Find the interval of an expression of several parts: simulated if divisors are far from 0, else from ranges."""
    names = find_vector_names(post, shown.formulas)
    unsure = find_near_condition(names, shown) | _find_unsure_cells(post, shown, miss)
    if unsure.all():
        return _box_ends(post, names, shown, miss)
    ((low, high),) = simulate_ends(shown.reading, shown.formulas, [post], shown.keys, 1 - miss * SIMULATED)
    if not unsure.any():
        return low, high
    boxed = _box_ends(post, names, shown, miss)
    return np.where(unsure, boxed[0], low), np.where(unsure, boxed[1], high)


def _find_unsure_cells(post: Post, shown: ShownRows, miss: Fraction) -> npt.NDArray[np.bool_]:
    """The cells in which a divisor may be near zero, so that simulation around released values is not valid."""
    unsure = np.zeros(shown.cells, bool)
    match post:
        case AggregateRef(index):
            formula = shown.formulas[index]
            if isinstance(formula, MeanFormula | VarianceFormula | PairFormula) and formula.count.terms:
                return np.asarray(compute_values(formula.count, shown) < SURE * find_noise(formula.count, shown).spread)
        case PostCall(function, arguments):
            for argument in arguments:
                unsure |= _find_unsure_cells(argument, shown, miss)
            if function == "/":
                low, high = _box_ends(arguments[1], find_vector_names(arguments[1], shown.formulas), shown, miss)
                near, far = np.minimum(abs(low), abs(high)), np.maximum(abs(low), abs(high))
                unsure |= ((low <= 0) & (high >= 0)) | (far > CLOSE * near)
    return unsure
