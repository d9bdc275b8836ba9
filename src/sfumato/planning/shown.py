"""What an answer shows, and the conditions that its cells have passed: thresholds of keys, and HAVING."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sfumato.kernel.certify import BinChoice
from sfumato.planning.accuracy import Measured, Reading, aggregate_values, read
from sfumato.planning.given_shown import edges_of
from sfumato.planning.moments import Linear
from sfumato.planning.noise_laws import Floats, NoiseLaw, law_of
from sfumato.planning.outputs import Objects, passes
from sfumato.planning.planner import Formula
from sfumato.query.query import AggregateRef, Post, PostCall

NEAR = 5.0  # standard deviations: a number that is further inside of its condition would be shown in any case
BLOCK = 1 << 12  # cells whose condition is tried at once
CHOSEN = ("CHOICE", "MODE", "TOP_K")


@dataclass(frozen=True)
class Shown:
    """What an answer shows: released vectors, and the conditions that its cells have passed."""

    reading: Reading
    formulas: Sequence[Formula]
    keys: Sequence[Objects]
    cells: int
    having: Post | None = None
    thresholds: tuple[tuple[str, int], ...] = ()  # of undeclared keys: the least released number of people

    @cached_property
    def by_name(self) -> dict[str, Measured]:
        return {each.name: each for each in self.reading.measured}

    @cached_property
    def aggregates(self) -> list[npt.NDArray[np.float64]]:
        return [aggregate_values(formula, self.reading.values) for formula in self.formulas]

    @cached_property
    def conditioned(self) -> frozenset[str]:
        """The vectors that decide which cells are shown."""
        names = frozenset(name for name, _ in self.thresholds)
        return names if self.having is None else names | names_in(self.having, self.formulas)


def names_in(post: Post, formulas: Sequence[Formula]) -> frozenset[str]:
    """The released vectors that an output column is read from."""
    match post:
        case AggregateRef(index):
            formula = formulas[index]
            linears = (formula.count, formula.total, formula.squares)
            names = {name for each in linears if each is not None for name, _ in each.terms}
            return frozenset(names | ({formula.chosen} if formula.chosen is not None else set()))
        case PostCall(_, arguments):
            return frozenset().union(*(names_in(each, formulas) for each in arguments))
        case _:
            return frozenset()


def values_of(linear: Linear, shown: Shown) -> Floats:
    return np.broadcast_to(read(linear, shown.reading.values), shown.cells)


def noise_of(linear: Linear, shown: Shown) -> NoiseLaw:
    parts = []
    for name, factor in linear.terms:
        each = shown.by_name[name]
        if isinstance(each.noise, BinChoice):
            raise AssertionError("a choice is not added up")
        parts.append((float(factor) * each.step, each.noise))
    return law_of(parts)


def edges_within(leaf: Post, linear: Linear, shown: Shown, law: NoiseLaw) -> tuple[Floats, Floats]:
    """Between which values a sum is shown, the other released numbers being as they are."""
    values = values_of(linear, shown)
    least, most = np.full(shown.cells, -np.inf), np.full(shown.cells, np.inf)
    if shown.having is not None and names_in(shown.having, shown.formulas) & {name for name, _ in linear.terms}:
        if len(linear.terms) == 1:
            ((name, factor),) = linear.terms
            change = _changed_vector(name, float(factor), float(linear.constant), shown)
        else:
            change = _changed_aggregate(leaf, shown)
        for begin in range(0, shown.cells, BLOCK):
            part = slice(begin, begin + BLOCK)
            least[part], most[part] = edges_of(_passes(shown, part, change), values[part], law)
    for name, threshold in shown.thresholds:
        for bounded, times in linear.terms:
            bound = float(times) * threshold + float(linear.constant)
            if bounded == name and times > 0:
                least = np.maximum(least, bound)
            elif bounded == name:
                most = np.minimum(most, bound)
    return least, most


Change = Callable[[slice, Floats], list[npt.NDArray[np.float64]]]


def _changed_vector(name: str, factor: float, constant: float, shown: Shown) -> Change:
    """The aggregates, if a column of one vector had other values."""

    def change(part: slice, tried: Floats) -> list[npt.NDArray[np.float64]]:
        vectors = {
            each.name: each.values[part, None]
            for each in shown.reading.measured
            if not isinstance(each.noise, BinChoice)
        }
        vectors[name] = (tried - constant) / factor
        return [
            shown.aggregates[index][part, None] if formula.function in CHOSEN else aggregate_values(formula, vectors)
            for index, formula in enumerate(shown.formulas)
        ]

    return change


def _changed_aggregate(leaf: Post, shown: Shown) -> Change:
    """The aggregates, if one of them had other values."""

    def change(part: slice, tried: Floats) -> list[npt.NDArray[np.float64]]:
        return [
            tried if leaf == AggregateRef(index) else np.broadcast_to(each, shown.cells)[part, None]
            for index, each in enumerate(shown.aggregates)
        ]

    return change


def _passes(shown: Shown, part: slice, change: Change) -> Callable[[Floats], npt.NDArray[np.bool_]]:
    keys = [key[part, None] for key in shown.keys]

    def passing(tried: Floats) -> npt.NDArray[np.bool_]:
        if shown.having is None:
            return np.ones(tried.shape, bool)
        return np.broadcast_to(passes(shown.having, change(part, tried), keys), tried.shape)

    return passing


def near_edges(values: Floats, least: Floats, most: Floats, law: NoiseLaw) -> npt.NDArray[np.bool_]:
    reach = NEAR * law.spread
    return np.asarray((values - least < reach) | (most - values < reach))


def near_condition(names: frozenset[str], shown: Shown) -> npt.NDArray[np.bool_]:
    """The cells in which one of these vectors might as well not have been shown."""
    near = np.zeros(shown.cells, bool)
    for name in sorted(names & shown.conditioned):
        linear = Linear.of(name)
        law = noise_of(linear, shown)
        near |= near_edges(values_of(linear, shown), *edges_within(AggregateRef(-1), linear, shown, law), law)
    return near
