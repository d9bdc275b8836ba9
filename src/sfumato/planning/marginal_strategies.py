"""The best way to measure a set of marginals: residuals of all subsets of their keys, each with its share of a loss.

A marginal of keys T is the sum of residuals R_S over all S in T (an analysis of variance): R_S says what the keys S
change together, beyond what fewer of them say. Residuals of different S are orthogonal, and every cell of a residual
costs the same. The least total squared error has a closed form, in which every marginal is computed from the residuals
that it shares with the others; so all of them agree. With Gaussian noise it is the least error that any set of linear
queries can have (it meets the bound by singular values).

- A residual is measured as integer queries: the marginal of S times n - 1 and -1 along each key of n values
  (`make_centred`), a strategy of docs/claims/K-80.md. Divided by the numbers of values, its queries have columns of
  squared length p_S, the product of (1 - 1/n), and of length l_S in L1, the product of 2(1 - 1/n).
- With variance v_S of a query's noise, a cell of T has the variance sum over S in T of v_S p_S q, where q is the
  product of 1/n^2 over the keys of T outside S. Gaussian noise costs r^2 p_S / (2 v_S) of rho, Laplace noise
  r l_S sqrt(2/v_S) of epsilon. The best shares of the loss are proportional to p_S sqrt(c_S), or to
  (l_S^2 p_S c_S)^(1/3), where c_S is the sum of weight times cells times q over all T that contain S.

With Laplace noise, plain marginals can be better than residuals: they are compared. No data is read here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, product

import numpy as np
import numpy.typing as npt

from sfumato.kernel.strategies import Matrix

ROUNDS = 200  # of the search for the weights of margins
FEWER_ROUNDS = 40  # with Laplace noise, where two ways are compared in each
LEAST_SHARE = 1e-6  # of a loss, for a block whose marginals have margins to spare
MOST_BLOCKS = 4_096
Floats = npt.NDArray[np.float64]
Keys = tuple[int, ...]  # numbers of keys, ascending


@dataclass(frozen=True, slots=True)
class Block:
    """One measurement of a workload: a residual (`centred`), or a plain marginal; and its share of the loss."""

    keys: Keys
    centred: bool
    share: float


@dataclass(frozen=True, slots=True)
class NoiseWeights:
    """How a block's noises enter a cell of a marginal: the sums of squares and fourth powers of their weights."""

    block: int
    square: float
    fourth: float


@dataclass(frozen=True, slots=True)
class MarginalStrategy:
    """The blocks that are measured for marginals over keys of these numbers of values."""

    sizes: tuple[int, ...]
    blocks: tuple[Block, ...]
    gaussian: bool

    def find_variances(self) -> list[float]:
        """The variance of a query of each block for a loss of 1 (rho or epsilon), and people who add 1 to one cell.

        A residual's queries count in units of rows: divided by the numbers of values of its keys.
        """
        found = []
        for block in self.blocks:
            sizes = [self.sizes[key] for key in block.keys] if block.centred else []
            if self.gaussian:
                found.append(math.prod(1 - 1 / size for size in sizes) / (2 * block.share))
            else:
                found.append(2 * (math.prod(2 * (1 - 1 / size) for size in sizes) / block.share) ** 2)
        return found

    def weigh(self, marginal: Keys) -> list[NoiseWeights]:
        """The noises in one cell of a marginal. The weight of a block's cell depends on which keys the two share."""
        precisions = self.list_precisions()
        found = []
        for number, block in enumerate(self.blocks):
            if block.centred and not set(block.keys) <= set(marginal):
                continue
            inner = [keys for keys in list_subsets(block.keys) if set(keys) <= set(marginal)]
            parts = [(keys, trust) for keys in inner if (trust := precisions[keys].get(number, 0.0))]
            if parts:
                found.append(NoiseWeights(number, *self._sum_powers(block, marginal, parts)))
        return found

    def _sum_powers(self, block: Block, marginal: Keys, parts: Sequence[tuple[Keys, float]]) -> tuple[float, float]:
        square = fourth = 0.0
        for same in product((True, False), repeat=len(block.keys)):
            equal = dict(zip(block.keys, same, strict=True))
            times = math.prod(1 if equal[key] else self.sizes[key] - 1 for key in block.keys)
            weight = sum(
                trust
                * math.prod(equal[key] - 1 / self.sizes[key] for key in keys)
                / math.prod(self.sizes[key] for key in marginal if key not in keys)
                for keys, trust in parts
            )
            square += times * weight**2
            fourth += times * weight**4
        return square, fourth

    def list_precisions(self) -> dict[Keys, dict[int, float]]:
        """For each residual, how far each block is trusted: the inverse of its variance, in shares that add up to 1."""
        return {
            keys: {number: weight / sum(of_block.values()) for number, weight in of_block.items()}
            for keys, of_block in _list_precisions(self).items()
        }

    def find_cell_variances(self, marginals: Sequence[Keys]) -> Floats:
        """The variances of the cells of marginals for a loss of 1. Different residuals have uncorrelated noise."""
        precise = _list_precisions(self)
        closure = list_closure(marginals)
        variances = np.array([1 / sum(precise[keys].values()) for keys in closure])
        return np.asarray(_weigh_residuals(self.sizes, tuple(marginals), tuple(closure)) @ variances)


@lru_cache(maxsize=16)
def _list_precisions(strategy: MarginalStrategy) -> dict[Keys, dict[int, float]]:
    """For each residual, the inverse of the variance that each block has for it."""
    variances = strategy.find_variances()
    precise: dict[Keys, dict[int, float]] = {}
    for number, block in enumerate(strategy.blocks):
        for keys in (block.keys,) if block.centred else list_subsets(block.keys):
            added = math.prod(strategy.sizes[key] for key in block.keys if key not in keys)  # cells are added up
            precise.setdefault(keys, {})[number] = 1 / (variances[number] * added)
    return precise


@lru_cache(maxsize=16)
def _weigh_residuals(sizes: tuple[int, ...], marginals: tuple[Keys, ...], closure: tuple[Keys, ...]) -> Floats:
    """What the variance of each residual adds to that of a cell of each marginal: p_S q, or 0 for others."""
    places = {keys: place for place, keys in enumerate(closure)}
    found = np.zeros((len(marginals), len(closure)))
    for row, marginal in enumerate(marginals):
        for keys in list_subsets(marginal):
            spread = math.prod(sizes[key] for key in marginal if key not in keys)
            found[row, places[keys]] = _square_columns(sizes, keys) / spread**2
    return found


def _square_columns(sizes: tuple[int, ...], keys: Keys) -> float:
    """p_S: the squared length of a residual's columns."""
    return math.prod(1 - 1 / sizes[key] for key in keys)


def list_subsets(keys: Keys) -> list[Keys]:
    """All subsets, the empty one first."""
    return list(chain.from_iterable(combinations(keys, size) for size in range(len(keys) + 1)))


def list_closure(marginals: Sequence[Keys]) -> list[Keys]:
    """All subsets of the marginals, each once."""
    found = {keys for marginal in marginals for keys in list_subsets(marginal)}
    return sorted(found, key=lambda keys: (len(keys), keys))


def choose_marginal_strategy(
    sizes: tuple[int, ...], marginals: Sequence[Keys], weights: Sequence[float], *, gaussian: bool
) -> MarginalStrategy:
    """The blocks and shares with the least sum of weight times squared error, over all cells of all marginals."""
    cells = np.array([_count_cells(sizes, keys) for keys in marginals])
    wanted = np.asarray(weights) * cells
    residuals = _share_residuals(sizes, marginals, wanted, gaussian=gaussian)
    if gaussian:
        return residuals
    plain = _share_plainly(sizes, marginals, wanted)
    return min((residuals, plain), key=lambda strategy: float(wanted @ strategy.find_cell_variances(marginals)))


def _share_residuals(
    sizes: tuple[int, ...], marginals: Sequence[Keys], wanted: Floats, *, gaussian: bool
) -> MarginalStrategy:
    closure = list_closure(marginals)
    errors = wanted @ _weigh_residuals(sizes, tuple(marginals), tuple(closure))  # p_S c_S
    squares = np.array([_square_columns(sizes, keys) for keys in closure])
    lengths = np.array([2.0 ** len(keys) for keys in closure]) * squares
    amounts = np.sqrt(squares * errors) if gaussian else np.cbrt(lengths**2 * errors)
    return _make_strategy(sizes, closure, amounts, centred=True, gaussian=gaussian)


def _share_plainly(sizes: tuple[int, ...], marginals: Sequence[Keys], wanted: Floats) -> MarginalStrategy:
    once = sorted(set(marginals), key=lambda keys: (len(keys), keys))
    amounts = np.zeros(len(once))
    for keys, amount in zip(marginals, wanted, strict=True):
        amounts[once.index(keys)] += amount
    return _make_strategy(sizes, once, np.cbrt(amounts), centred=False, gaussian=False)


def _make_strategy(
    sizes: tuple[int, ...], all_keys: Sequence[Keys], amounts: Floats, *, centred: bool, gaussian: bool
) -> MarginalStrategy:
    floored = np.maximum(amounts / amounts.sum(), LEAST_SHARE)
    shares = (floored / floored.sum()).tolist()
    blocks = tuple(Block(keys, centred and bool(keys), share) for keys, share in zip(all_keys, shares, strict=True))
    return MarginalStrategy(sizes, blocks, gaussian)


def meet_variances(
    sizes: tuple[int, ...], marginals: Sequence[Keys], targets: Sequence[float], *, gaussian: bool
) -> MarginalStrategy:
    """The blocks and shares with which all variances reach multiples of their targets that are as small as possible."""
    cells = np.array([_count_cells(sizes, keys) for keys in marginals])
    weights = 1 / (np.asarray(targets) * cells)
    best: tuple[float, MarginalStrategy] | None = None
    for _ in range(ROUNDS if gaussian else FEWER_ROUNDS):
        strategy = choose_marginal_strategy(sizes, marginals, weights.tolist(), gaussian=gaussian)
        ratios = strategy.find_cell_variances(marginals) / np.asarray(targets)
        if best is None or ratios.max() < best[0]:
            best = (float(ratios.max()), strategy)
        weights = weights * (ratios / ratios.max())
    if best is None:
        raise AssertionError("a workload has marginals")
    return best[1]


def _count_cells(sizes: tuple[int, ...], keys: Keys) -> int:
    return math.prod(sizes[key] for key in keys)


def make_centred(size: int) -> Matrix:
    """n - 1 on the diagonal, -1 elsewhere: n times the difference of each value from the mean of all."""
    return tuple(tuple(size * (row == column) - 1 for column in range(size)) for row in range(size))
