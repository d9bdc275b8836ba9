"""What the probabilities of one event say about a privacy parameter: a lower bound on epsilon or on rho."""

import math
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt

from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PrivacyLoss, PureDP

FloatArray = npt.NDArray[np.float64]

ORDERS = (1.01, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)  # Rényi orders


@dataclass(frozen=True, slots=True)
class TestedClaim:
    """A privacy claim, or only the parameter to measure (`value` is None).

    `p` and `q` are the probabilities of one event on the two datasets, with p the larger one.
    - (epsilon, delta): p <= e^epsilon q + delta, so epsilon >= ln((p - delta) / q). delta = 0 is pure DP.
    - rho (zCDP with its own delta): the definition bounds the Rényi divergence D_a(P || Q) <= a rho of every order
      a > 1. Whether the event happens is post-processing, so D_a(Bernoulli(p) || Bernoulli(q)) <= a rho. With delta,
      P = (1 - delta) P' + delta P'' where P' and Q' satisfy the bound. Then p' >= (p - delta) / (1 - delta) and
      q' <= q / (1 - delta), and the bound holds for p' and q'.

    Both bounds grow with p and fall with q as long as p >= q. For rho: exp((a - 1) D_a) is jointly convex and is
    smallest at p = q, hence monotone in each argument on either side of it. So the bound at (lower limit of p, upper
    limit of q) holds for all (p, q) within those limits. Every order gives a valid bound from the same limits, so the
    largest one needs no correction.
    """

    __test__ = False  # its name begins like a test's

    parameter: str  # "epsilon" or "rho"
    value: float | None
    delta: float

    @classmethod
    def from_loss(cls, loss: PrivacyLoss | None, delta: float = 0.0) -> "TestedClaim":
        """The claim that a mechanism has this loss. Without a loss: epsilon at this delta."""
        match loss:
            case None:
                return cls("epsilon", None, delta)
            case PureDP(epsilon):
                return cls("epsilon", float(epsilon), 0.0)
            case ApproxDP(epsilon, own):
                return cls("epsilon", float(epsilon), float(own))
            case ZCDP(rho, own):
                return cls("rho", float(rho), float(own))
            case GDP(mu_squared, own):  # mu-GDP implies (mu**2 / 2)-zCDP
                return cls("rho", float(mu_squared) / 2, float(own))
            case _:
                assert_never(loss)

    def bound(self, p: float, q: float) -> float:
        """The least value of the parameter with which an event can have probability >= p and <= q; at least 0."""
        return float(self.bounds(np.array([p]), np.array([q]))[0])

    def bounds(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """`bound` of many events."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.parameter == "epsilon":
                found = np.log((p - self.delta) / q)
                return np.where(p - self.delta > q, found, 0.0)
            one = np.clip((p - self.delta) / (1 - self.delta), 0.0, 1.0)
            two = np.clip(q / (1 - self.delta), 0.0, 1.0)
            best = np.zeros_like(one)
            for order in ORDERS:
                terms = (
                    order * np.log(one) + (1 - order) * np.log(two),
                    order * np.log1p(-one) + (1 - order) * np.log1p(-two),
                )
                divergence = np.logaddexp(*terms) / (order - 1)
                best = np.fmax(best, divergence / order)  # fmax: an order whose terms are 0 * inf says nothing
            return np.where(one > two, best, 0.0)

    def exceeds(self, bound: float) -> bool:
        """Is this bound above the claim? A margin covers the float error of the bound."""
        return self.value is not None and bound > self.value * (1 + 1e-9) + 1e-9

    def excess(self, p: FloatArray, q: FloatArray, runs: int) -> FloatArray:
        """How many standard errors an event is above the claim, for the search only."""
        if self.parameter == "epsilon" and self.value is not None:
            factor = math.exp(min(self.value, 300.0))
            error = np.sqrt((p * (1 - p) + factor**2 * q * (1 - q)) / runs + (1 + factor) ** 2 / runs**2)
            gap: FloatArray = (p - self.delta - factor * q) / error
            return gap
        return np.zeros_like(p) if self.value is None else self.bounds(p, q) - self.value

    def describe(self) -> str:
        """The claim as text."""
        if self.value is None:
            return f"none (δ = {self.delta:g})" if self.delta else "none"
        letter = "ε" if self.parameter == "epsilon" else "rho"
        return f"{letter} = {self.value:.6g}" + (f", δ = {self.delta:g}" if self.delta else "")


def estimate_limits(hits: FloatArray, runs: int, deviations: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's approximate lower and upper limits of many probabilities, for the search only."""
    square = deviations**2
    share = hits / runs
    middle = (share + square / (2 * runs)) / (1 + square / runs)
    half = deviations / (1 + square / runs) * np.sqrt(share * (1 - share) / runs + square / (4 * runs**2))
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
