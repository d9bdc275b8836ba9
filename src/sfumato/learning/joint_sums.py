"""Sums that are measured together: several statistics of one call, with one box noise for all (claim K-57).

With Laplace noise, p sums that share a price have each a noise p times as large as one alone. Box noise for all p
together has 1/√6 of that deviation, if p is large, and never more. So the statistics of a call that have the same cells
and the same weight are measured together, at the sum of their prices. That follows from what is asked for, and not from
the data. Gaussian noise needs no grouping: its price for several sums is the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.accuracy.box_margins import bound_box_deviation
from sfumato.errors import KernelFault
from sfumato.kernel.exact import sum_exactly
from sfumato.kernel.expressions import Expression
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.mechanisms import LEAST_BOX_SCALE, BoxNoise
from sfumato.kernel.plan import Factor, Products
from sfumato.learning.noisy_statistics import Noisy, Statistic
from sfumato.learning.row_cells import Floats, RowCells
from sfumato.learning.row_functions import Moment, Powers, Residual, grid_of

Term = tuple[Moment | Residual, ...]  # functions whose product a term adds up


@dataclass(frozen=True, slots=True)
class Group:
    """Statistics with the same cells that one measurement answers, and what it costs. `numbers`: places in the call."""

    numbers: tuple[int, ...]
    statistics: tuple[Statistic, ...]
    loss: PureDP | ZCDP
    terms: tuple[Term, ...] = ()  # of several statistics; without any, there is one statistic

    @property
    def cells(self) -> tuple[RowCells, ...]:
        return self.statistics[0].cells


def group_statistics(
    statistics: Sequence[Statistic], losses: Sequence[PureDP | ZCDP], *, public_rows: bool
) -> list[Group]:
    """Group the statistics of one call. `public_rows`: the number of rows needs no noise."""
    alike: dict[tuple[tuple[RowCells, ...], int], list[int]] = {}
    for number, statistic in enumerate(statistics):
        alike.setdefault((statistic.cells, statistic.weight), []).append(number)
    groups: list[Group] = []
    for (cells, _), numbers in alike.items():
        members = tuple(statistics[number] for number in numbers)
        prices = [losses[number] for number in numbers]
        whole = _add_up(prices)
        terms = dict.fromkeys(term for statistic in members for term in list_terms(statistic))
        if public_rows and not cells and any(len(term) for term in terms) and _asks_powers(members):
            terms.pop((), None)
        if whole is not None and len(members) > 1 and _fits(tuple(terms), whole):
            groups.append(Group(tuple(numbers), members, whole, tuple(terms)))
        else:
            groups += [
                Group((number,), (member,), price)
                for number, member, price in zip(numbers, members, prices, strict=True)
            ]
    return groups


def _add_up(prices: Sequence[PureDP | ZCDP]) -> PureDP | None:
    pure = [price.epsilon for price in prices if isinstance(price, PureDP)]
    return PureDP(sum_exactly(*pure)) if len(pure) == len(prices) else None


def _asks_powers(members: Sequence[Statistic]) -> bool:
    return all(isinstance(member.value, Powers) for member in members)


def _fits(terms: tuple[Term, ...], price: PureDP) -> bool:
    """Whether the grid is fine enough for box noise at this price: one row moves each term by at least 2**-exponent."""
    finest = min(sum(grid_of(function).exponent for function in term) for term in terms)
    return Fraction(price.epsilon) * max(LEAST_BOX_SCALE, len(terms)) <= Fraction(2) ** -finest


def list_terms(statistic: Statistic) -> list[Term]:
    """The sums of a statistic: of Powers those of 1, x and x²."""
    match statistic.value:
        case None:
            return [()]
        case Powers(column):
            one = Moment((column,))
            return [(), (one,), (one, one)]
        case Moment(columns):
            return [tuple(Moment((column,)) for column in columns)]
        case Residual(score, link, label, times):
            alone = Residual(score, link, label)
            return [(alone,) if times is None else (alone, Moment((times,)))]


def make_products(terms: Sequence[Term], write: Callable[[Moment | Residual], Expression]) -> Products:
    """What the kernel measures for these terms. `write` gives the expression of a function."""
    functions = list(dict.fromkeys(function for term in terms for function in term))
    factors = tuple(Factor(write(function), grid_of(function)) for function in functions)
    return Products(factors, tuple(tuple(functions.index(function) for function in term) for term in terms))


@dataclass(frozen=True, slots=True)
class DrawnTogether:
    """Released integers of all terms, cell by cell, their step, and their noise."""

    integers: Floats
    step: float
    noise: BoxNoise


def split_products(group: Group, drawn: DrawnTogether, shape: tuple[int, ...], rows: int | None) -> list[Noisy]:
    """The noisy sums of each statistic of a group, from the released integers of all. `rows`: their public number."""
    noise = drawn.noise
    columns = np.moveaxis(drawn.integers.reshape(*shape, len(group.terms)) * drawn.step, -1, 0)
    deviations = [drawn.step * bound_box_deviation(noise, unit) for unit in noise.units]
    split = []
    for statistic in group.statistics:
        found = []
        for term in list_terms(statistic):
            if term in group.terms:
                place = group.terms.index(term)
                found.append((columns[place], deviations[place]))
            elif rows is not None and not shape:
                found.append((np.array(float(rows)), 0.0))
            else:
                raise KernelFault("A group measures the terms of its statistics.")
        if isinstance(statistic.value, Powers):
            sums = np.stack([result for result, _ in found], axis=-1)
            split.append(Noisy(sums, np.array([deviation for _, deviation in found]), gaussian=False, box=noise))
        else:
            ((sums, deviation),) = found
            split.append(Noisy(sums, np.array(deviation), gaussian=False, box=noise))
    return split
