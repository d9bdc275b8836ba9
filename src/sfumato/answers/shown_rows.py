"""The shown rows of an answer, and the conditions that they passed: thresholds of keys, and HAVING."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sfumato.answers.conditional_intervals import find_edges
from sfumato.answers.noise_laws import Floats, NoiseLaw, add_noises
from sfumato.answers.output_values import Objects, find_aggregates, passes
from sfumato.answers.released_values import Reading, ReleasedVector, compute_aggregate, read_linear
from sfumato.kernel.certify import BinChoice
from sfumato.planning.formulas import ChoiceFormula, CountFormula, Formula, MeanFormula, SumFormula, sums_of
from sfumato.planning.linear import Linear
from sfumato.query.query import AggregateRef, Post, PostCall

NEAR = 5.0  # standard deviations: a number that passes its condition by more is shown almost surely
BLOCK = 1 << 12  # cells whose condition is evaluated at once


@dataclass(frozen=True)
class ShownRows:
    """The released vectors of the shown cells, and the conditions that these cells passed."""

    reading: Reading
    formulas: Sequence[Formula]
    keys: Sequence[Objects]
    cells: int
    having: Post | None = None
    thresholds: tuple[tuple[str, int], ...] = ()  # of undeclared keys: the smallest noisy count that is shown
    weights: frozenset[str] = frozenset()  # vectors that are sums of weights, whose true values are never negative

    @cached_property
    def by_name(self) -> dict[str, ReleasedVector]:
        return {vector.name: vector for vector in self.reading.measured}

    @cached_property
    def aggregates(self) -> list[npt.NDArray[np.float64]]:
        return [compute_aggregate(formula, self.reading.values) for formula in self.formulas]

    @cached_property
    def condition_names(self) -> frozenset[str]:
        """The vectors that decide which cells are shown."""
        names = frozenset(name for name, _ in self.thresholds)
        return names if self.having is None else names | find_vector_names(self.having, self.formulas)

    @cached_property
    def edges(self) -> dict[str, tuple[Floats, Floats]]:
        """For each noisy vector, the range in which its cell is shown, if the other vectors stay as they are."""
        thresholds = dict(self.thresholds)
        found = {}
        for vector in self.reading.measured:
            if not isinstance(vector.noise, BinChoice):
                linear = Linear.from_vector(vector.name)
                least, most = _find_edges_along(
                    {vector.name: 1.0}, compute_values(linear, self), self, find_noise(linear, self)
                )
                found[vector.name] = (np.maximum(least, thresholds.get(vector.name, -np.inf)), most)
        return found


def find_vector_names(post: Post, formulas: Sequence[Formula]) -> frozenset[str]:
    """The names of the released vectors that an output column is computed from."""
    match post:
        case AggregateRef(index):
            formula = formulas[index]
            if isinstance(formula, ChoiceFormula):
                return frozenset({formula.chosen})
            return frozenset(name for linear in sums_of(formula) for name, _ in linear.terms)
        case PostCall(_, arguments):
            return frozenset().union(*(find_vector_names(argument, formulas) for argument in arguments))
        case _:
            return frozenset()


def compute_values(linear: Linear, shown: ShownRows) -> Floats:
    return np.broadcast_to(read_linear(linear, shown.reading.values), shown.cells)


def find_noise(linear: Linear, shown: ShownRows) -> NoiseLaw:
    parts = []
    for name, factor in linear.terms:
        vector = shown.by_name[name]
        if isinstance(vector.noise, BinChoice):
            raise AssertionError("a choice is not added up")
        parts.append((float(factor) * vector.step, vector.noise))
    return add_noises(parts)


def express_formula(formula: Formula) -> Linear | None:
    """The aggregate as a linear combination of released vectors; None if it is not one."""
    match formula:
        case CountFormula(linear) | SumFormula(linear):
            return linear
        case MeanFormula(Linear((), known), total, centre):  # the number of rows is public
            return total.times(1 / known).plus(Linear((), Fraction(centre)))
        case _:
            return None


def decides_alone(linear: Linear, shown: ShownRows) -> bool:
    """Does the value of a sum alone decide whether its cell is shown, for any noise of its vectors?

    It does if the sum has one vector (the others are independent of it), or if everything that HAVING reads of its
    vectors is a multiple of the sum. Otherwise HAVING selects on the noise of some vectors more than of others.
    """
    names = frozenset(name for name, _ in linear.terms)
    if len(names) == 1:
        return True
    if names & {name for name, _ in shown.thresholds}:
        return False
    read_too = [
        express_formula(shown.formulas[index])
        for index in (() if shown.having is None else find_aggregates(shown.having))
        if names & find_vector_names(AggregateRef(index), shown.formulas)
    ]
    return all(other is not None and _is_multiple(other, linear) for other in read_too)


def _is_multiple(one: Linear, two: Linear) -> bool:
    factors, others = dict(one.terms), dict(two.terms)
    return factors.keys() == others.keys() and len({factors[name] / others[name] for name in factors}) == 1


def find_edges_within(linear: Linear, shown: ShownRows, law: NoiseLaw) -> tuple[Floats, Floats]:
    """The range of a sum in which its cell is shown, if the other released numbers stay as they are.

    Requires: the sum decides alone.
    """
    if len(linear.terms) == 1:
        ((name, factor),) = linear.terms
        one, two = (float(factor) * edge + float(linear.constant) for edge in shown.edges[name])
        return (one, two) if factor > 0 else (two, one)
    moves = {name: 1 / (float(factor) * len(linear.terms)) for name, factor in linear.terms}
    return _find_edges_along(moves, compute_values(linear, shown), shown, law)


def _find_edges_along(
    moves: dict[str, float], values: Floats, shown: ShownRows, law: NoiseLaw
) -> tuple[Floats, Floats]:
    """The range of a value that HAVING accepts, if each of its vectors moves `moves` times as far as the value."""
    least, most = np.full(shown.cells, -np.inf), np.full(shown.cells, np.inf)
    if shown.having is None or not find_vector_names(shown.having, shown.formulas) & moves.keys():
        return least, most
    for begin in range(0, shown.cells, BLOCK):
        part = slice(begin, begin + BLOCK)
        change = _make_change(moves, values, shown)
        least[part], most[part] = find_edges(_make_condition(shown, part, change), values[part], law)
    return least, most


Change = Callable[[slice, Floats], list[npt.NDArray[np.float64]]]


def _make_change(moves: dict[str, float], values: Floats, shown: ShownRows) -> Change:
    """A function that computes the aggregates for other values of a sum."""

    def change(part: slice, tried: Floats) -> list[npt.NDArray[np.float64]]:
        vectors = {
            vector.name: vector.values[part, None]
            for vector in shown.reading.measured
            if not isinstance(vector.noise, BinChoice)
        }
        for name, times in moves.items():
            vectors[name] = vectors[name] + times * (tried - values[part, None])
        return [
            released[part, None] if isinstance(formula, ChoiceFormula) else compute_aggregate(formula, vectors)
            for released, formula in zip(shown.aggregates, shown.formulas, strict=True)
        ]

    return change


def _make_condition(shown: ShownRows, part: slice, change: Change) -> Callable[[Floats], npt.NDArray[np.bool_]]:
    keys = [key[part, None] for key in shown.keys]

    def passes_condition(tried: Floats) -> npt.NDArray[np.bool_]:
        if shown.having is None:
            return np.ones(tried.shape, bool)
        return np.broadcast_to(passes(shown.having, change(part, tried), keys), tried.shape)

    return passes_condition


def is_near_edges(values: Floats, least: Floats, most: Floats, law: NoiseLaw) -> npt.NDArray[np.bool_]:
    reach = NEAR * law.spread
    return np.asarray((values - least < reach) | (most - values < reach))


def find_near_condition(names: frozenset[str], shown: ShownRows) -> npt.NDArray[np.bool_]:
    """The cells in which one of these vectors is close to the limit of its condition."""
    near = np.zeros(shown.cells, bool)
    for name in sorted(names & shown.condition_names):
        linear = Linear.from_vector(name)
        near |= is_near_edges(compute_values(linear, shown), *shown.edges[name], find_noise(linear, shown))
    return near
