"""Choices among bins: one cell at a time, the coins that the code flips, and the exact law of permute-and-flip."""

from fractions import Fraction
from itertools import product

import mpmath
import numpy as np

from sfumato.kernel import bin_choice
from sfumato.kernel.entropy import SYSTEM

REST = 16


def make_cell(*weights):
    return np.array(weights, np.int64)


def choose_one(rule, weights):
    """The choice for one cell."""
    return rule.choose_cells(weights[np.newaxis], SYSTEM)[0]


def flips_of(rule, weights):
    """The exact exponents of each row of coins that the code flips for these weights; the floats must be near them."""
    seen = []

    def recorded(approximate, exact, entropy):
        exponents = [exact(index) for index in range(approximate.size)]
        for near, x in zip(approximate.tolist(), exponents, strict=True):
            assert abs(Fraction(near) - x) <= Fraction(1, 1 << 44) * (1 + x)
        seen.append(exponents)
        return approximate == 0

    original = bin_choice.flip_exp_neg
    bin_choice.flip_exp_neg = recorded
    try:
        rule.choose_cells(np.atleast_2d(weights), SYSTEM)
    finally:
        bin_choice.flip_exp_neg = original
    return seen


def compute_flip_law(survive):
    """P(chosen = i) of permute-and-flip, exactly: at time u of its arrival, those that came before fell tails."""
    law = []
    for i, own in enumerate(survive):
        polynomial = [Fraction(1)]  # the product of (1 - p_j u) over the others, in powers of u
        for j, other in enumerate(survive):
            if j != i:
                polynomial = [a - other * b for a, b in zip([*polynomial, 0], [0, *polynomial], strict=True)]
        law.append(own * sum(c / (power + 1) for power, c in enumerate(polynomial)))
    return law


def compute_flip_law_in_floats(exponents):
    """The same for up to 200 bins: Gauss-Legendre integrates the polynomials exactly, but for rounding."""
    nodes, masses = np.polynomial.legendre.leggauss(128)
    survive = np.exp(-np.array([float(x) for x in exponents]))
    factors = 1 - np.outer((nodes + 1) / 2, survive)
    others = factors.prod(axis=1, keepdims=True) / factors
    return survive * (masses @ others) / 2


def compute_top_law(weights, mass, k):
    """P(ordered k fullest) over three bins, when bin noise z has mass[REST + z]."""
    noise = np.arange(-REST, REST + 1)
    grids = np.meshgrid(*(weight + noise for weight in weights), indexing="ij")
    noisy = np.stack([grid.ravel() for grid in grids], axis=1)
    order = np.argsort(-noisy, axis=1, kind="stable")[:, :k]
    chance = np.einsum("i,j,k->ijk", mass, mass, mass).ravel()
    keys = order @ np.array([9, 3, 1])[:k]
    return np.bincount(keys, chance, minlength=27)


def enumerate_flips(exponents):
    """P(chosen = i) of permute-and-flip when candidate j survives with exp(-exponents[j]): all coins, all orders."""
    survive = [mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) for x in exponents]
    chosen = [mpmath.mpf(0)] * len(survive)
    for heads in product((False, True), repeat=len(survive)):
        if any(heads):
            weight = mpmath.fprod(p if head else 1 - p for p, head in zip(survive, heads, strict=True))
            for index, head in enumerate(heads):
                chosen[index] += weight / sum(heads) if head else 0
    return chosen
