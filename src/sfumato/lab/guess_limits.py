"""How often any attacker can guess right about one person, given an epsilon. The limits are theorems, not measurements.

The game: one person's secret is one of k equally likely values, and all else is known to the attacker. The attacker
sees one release and names the secret. The datasets of the k values are neighbours of each other.
Let S be the sum over v of P(guess v | secret v). By (ε, δ)-DP, P(guess v | v) <= e^ε P(guess v | w) + δ for every
w != v. Adding these up over all pairs gives (k - 1) S <= e^ε (k - S) + k (k - 1) δ. The success rate is S / k.
"""

import math

from sfumato.number_arguments import Number, read_positive_decimal


def limit_guess(epsilon: Number, *, values: int = 2, delta: float = 0.0) -> float:
    """The largest success rate of any attacker who guesses a secret with `values` equally likely values."""
    grown = math.exp(min(float(read_positive_decimal(epsilon, "epsilon")), 700.0))
    return min(1.0, (grown + (values - 1) * delta) / (grown + values - 1))


def name_limit(*, values: int = 2, delta: float = 0.0) -> str:
    """The formula of `limit_guess`."""
    extra = "" if not delta else (" + δ" if values == 2 else f" + {values - 1}δ")
    above = f"(e^ε{extra})" if extra else "e^ε"
    return f"{above} / (e^ε + {values - 1})"
