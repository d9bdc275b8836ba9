"""Intervals of least-squares coefficients that follow from the noise of sums and products.

Let S and c be the covariances of the scaled columns with each other and with the target, and S' = S + E, c' = c + e the
noisy ones. The least-squares coefficients b solve S b = c. So c' - S' b = e - E b, and with G the inverse of S'

    G c' - b = G (e - E b).

The right side is a sum of independent noises with known deviations, up to products of two noises; b in it is replaced
by G c'. G depends on the noise too. As long as the noise is small beside the smallest eigenvalue of S', the margin is
widened by their ratio. Otherwise the noise does not bound the coefficients, and the intervals are infinite.

The codes of a column are 0-1 columns that add up to 1, so only differences of their coefficients are determined: the
coefficients of a column's codes add up to 0 here (`directions` spans such coefficients).
"""

from dataclasses import dataclass

import numpy as np

from sfumato.extras import imported
from sfumato.learning.row_cells import Floats
from sfumato.number_arguments import Number, read_probability

WIDENING = 1.0  # of a margin, by the ratio of the noise to the smallest eigenvalue
LARGEST_RATIO = 0.8  # of that ratio: beyond it, the noise does not bound the coefficients
BETWEEN = 1.02  # a combination of box noises has quantiles of at most so many times those of the laws below


@dataclass(frozen=True, slots=True)
class NoisyGram:
    """Noisy means of scaled columns, of the target and of their products, and the deviations of their noise.

    `own` is true for a column of 0 and 1: its mean is the mean of its square, with the same noise.
    """

    means: Floats
    target_mean: float
    squares: Floats
    products: Floats  # of the columns with the target
    mean_noise: Floats
    target_noise: float
    square_noise: Floats
    product_noise: Floats
    row_noise: float  # of the number of rows, in relation to it
    own: np.ndarray[tuple[int], np.dtype[np.bool_]]
    directions: Floats  # columns x directions in which coefficients are determined
    gaussian: bool


def bound_coefficients(gram: NoisyGram, confidence: Number) -> tuple[Floats, Floats]:
    """Bounds of each least-squares coefficient of the scaled columns, with this confidence for each of them."""
    columns = len(gram.means)
    if not gram.directions.shape[1]:
        return np.full(columns, -np.inf), np.full(columns, np.inf)
    covariance = gram.squares - np.outer(gram.means, gram.means)
    inner = gram.directions.T @ covariance @ gram.directions
    least = float(np.linalg.eigvalsh(inner)[0])
    ratio = _estimate_norm(gram) / least if least > 0 else np.inf
    if ratio >= LARGEST_RATIO:
        return np.full(columns, -np.inf), np.full(columns, np.inf)
    inverse = gram.directions @ np.linalg.solve(inner, gram.directions.T)
    found = inverse @ (gram.products - gram.means * gram.target_mean)
    margin = _find_quantile(confidence, gaussian=gram.gaussian) * np.sqrt(_find_variances(gram, inverse, found))
    margin *= 1 + WIDENING * ratio / (1 - ratio)
    margin[~np.any(gram.directions, axis=1)] = np.inf  # a column that nothing determines
    return found - margin, found + margin


def _estimate_norm(gram: NoisyGram) -> float:
    """About how far noise moves an eigenvalue of the covariance matrix, at most."""
    size = gram.directions.shape[1]
    return 2 * float(
        np.sqrt(size * np.mean(gram.square_noise**2) + np.sum(gram.means**2) * np.mean(gram.mean_noise**2))
    )


def _find_variances(gram: NoisyGram, inverse: Floats, found: Floats) -> Floats:
    """The variance of inverse @ (e - E b): the square of what each independent noise is multiplied by."""
    shift = inverse @ gram.means  # what the noise of the target's mean is multiplied by
    left = gram.target_mean - float(gram.means @ found)
    pairs = gram.square_noise**2
    diagonal = np.diag(pairs).copy()
    pairs = pairs - np.diag(diagonal)
    scaled = inverse * found
    variances: Floats = inverse**2 @ (gram.product_noise**2 + pairs @ found**2) + np.sum(
        (scaled @ pairs) * scaled, axis=1
    )
    of_means = np.outer(shift, found) - inverse * left
    of_squares = -scaled
    own = gram.own
    together = np.where(own, of_means + of_squares, 0.0)
    alone = np.where(own, 0.0, of_squares) ** 2 @ diagonal + np.where(own, 0.0, of_means) ** 2 @ gram.mean_noise**2
    variances = variances + alone + together**2 @ diagonal
    variances += shift**2 * (gram.target_noise**2 + (left * gram.row_noise) ** 2)
    return variances


def _find_quantile(confidence: Number, *, gaussian: bool) -> float:
    """|noise| is at most so many deviations.

    A combination of box noises lies between three laws, depending on how many noises and how many terms there are: a
    normal one (many terms), a Laplace one (one noise of one term) and a uniform one (one noise of many terms).
    """
    sure = float(read_probability(confidence, "confidence"))
    normal = float(imported("scipy.stats", "learn").norm.isf((1 - sure) / 2))
    if gaussian:
        return normal
    return BETWEEN * max(normal, float(np.sqrt(0.5) * -np.log1p(-sure)), float(np.sqrt(3.0) * sure))
