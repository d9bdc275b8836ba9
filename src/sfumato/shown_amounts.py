"""Amounts of privacy loss as text. A long one is rounded for display; JSON, exports and the ledger have all digits.

What is spent is rounded up and what is left is rounded down, so that no text promises more privacy or more budget than
there is.
"""

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Literal

LETTERS = {"epsilon": "ε", "rho": "rho", "mu_squared": "μ²", "delta": "δ"}
MOST_DIGITS, DIGITS = 10, 6  # an amount with more digits than MOST_DIGITS is shown with DIGITS

WEAK = 20  # from this epsilon on, an outcome can be hundreds of millions of times as likely with one person as without

Rounding = Literal["up", "down"]


def describe_weakness(epsilon: Decimal | None) -> str:
    """A sentence about an epsilon that protects hardly anybody; empty for a smaller one."""
    if epsilon is None or epsilon < WEAK:
        return ""
    return f"ε = {epsilon:f} protects hardly anybody: usual values are 0.1 to 10, and `sfumato epsilon` explains them."


def write_amounts(amounts: Mapping[str, str] | None, rounding: Rounding = "up") -> str:
    """Amounts in words: ε = 0.5, δ = 1e-6. If one is rounded, it says so."""
    shown, rounded = round_amounts(amounts, rounding)
    return f"{list_amounts(shown)} (rounded {rounding})" if rounded else list_amounts(shown)


def list_amounts(amounts: Mapping[str, str] | None) -> str:
    """Amounts in words, with all their digits. A delta of zero is left out."""
    parts = {name: text for name, text in (amounts or {}).items() if name != "delta" or text != "0"}
    return ", ".join(f"{LETTERS.get(name, name)} = {text}" for name, text in parts.items())


def round_amounts(amounts: Mapping[str, str] | None, rounding: Rounding) -> tuple[dict[str, str], bool]:
    """Amounts with few digits, and whether one of them was rounded."""
    shown = {name: _round_amount(text, rounding) for name, text in (amounts or {}).items()}
    return shown, shown != dict(amounts or {})


def _round_amount(text: str, rounding: Rounding) -> str:
    value = Decimal(text)
    if len("".join(map(str, value.as_tuple().digits)).rstrip("0")) <= MOST_DIGITS:
        return text
    direction = ROUND_CEILING if rounding == "up" else ROUND_FLOOR
    short = Context(prec=DIGITS, rounding=direction).plus(value).normalize()
    return f"{short:f}" if short.adjusted() >= -6 else f"{short:e}"
