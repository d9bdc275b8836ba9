"""Parities are refused: no oracle for statistical queries can learn them."""

from collections.abc import Sequence
from typing import NoReturn

from sfumato.errors import QueryError

REASON = (
    "Parities cannot be learned from statistical queries: any two different parities agree on half of all rows, so "
    "each answer of a tolerance that fewer than exponentially many rows can give rules out almost none of the 2^d "
    "parities (Kearns 1998, Blum et al. 1994)."
)


class Parity:
    """The class of parities. To make one is refused, with the reason."""

    def __init__(self, features: Sequence[str], target: str) -> NoReturn:
        hint = (
            "Parities are privately learnable by other means, which are not offered here: a private learner that is "
            "not based on statistical queries (Kasiviswanathan et al. 2008). Use another class."
        )
        raise QueryError("not-sq-learnable", REASON, hint)
