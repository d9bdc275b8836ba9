"""What a question may spend, and how accurate it shall be: as its asker says, read and checked before anything else."""

from collections.abc import Mapping
from math import inf, isfinite

from sfumato.errors import InvalidParameter, kind_of
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.parameters import Number
from sfumato.number_arguments import positive_fraction, privacy_amount
from sfumato.query.dp_options import refuse_epsilon
from sfumato.query.query import Query

ONE_PRICE = "For example epsilon=0.5; or margin={'n': 20}, which takes the least epsilon that gives it."


def price(query: Query, epsilon: Number | None, rho: Number | None) -> PureDP | ZCDP:
    """What the question may spend: as it says itself (OPTIONS), or as its asker says."""
    own = query.dp_options.epsilon if query.dp_options is not None else None
    if own is None:
        return _loss(epsilon, rho)
    if rho is not None or (
        epsilon is not None and privacy_amount(epsilon, "epsilon") != privacy_amount(own, "epsilon")
    ):
        raise InvalidParameter("epsilon", "must be the one in OPTIONS, or be left out", "another one")
    return PureDP(privacy_amount(own, "epsilon"))


def delta_of(query: Query, delta: Number | None) -> Number | None:
    """The delta that the question says itself, or its asker."""
    own = query.dp_options.delta if query.dp_options is not None else None
    if own is None or delta is None:
        return own if delta is None else delta
    if privacy_amount(delta, "delta") != privacy_amount(own, "delta"):
        raise InvalidParameter("delta", "must be the one in OPTIONS, or be left out", "another one")
    return own


def margins_alone(query: Query, margin: object, epsilon: object, rho: object) -> dict[str, float] | None:
    """The wanted margins, where they and nothing else decide what is spent; None where none are given."""
    if margin is None:
        return None
    if epsilon is not None or rho is not None:
        given = "epsilon" if epsilon is not None else "rho"
        raise InvalidParameter("margin", f"must be given alone, without {given}", "both", ONE_PRICE)
    refuse_epsilon(query.dp_options, "margin decides what is spent")
    return margins_by_column(margin)


def margins_by_column(margin: object) -> dict[str, float]:
    """A margin for each column, such as {'n': 20}: finite numbers above zero."""
    if not isinstance(margin, Mapping) or not margin:
        kind = "an empty mapping" if isinstance(margin, Mapping) else kind_of(margin)
        raise InvalidParameter("margin", "must map columns of the answer to margins", kind, "For example {'n': 20}.")
    return {_column(name, "margin"): _size(each, "margin") for name, each in margin.items()}


def assumed_rows(assume: object) -> float | None:
    """The number of rows that a preview takes each group to have: assume={'n': 500}."""
    hint = "For example assume={'n': 500}: 500 rows in each group."
    if assume is None:
        return None
    if not isinstance(assume, Mapping) or set(assume) - {"n"}:
        kind = "another key" if isinstance(assume, Mapping) else kind_of(assume)
        raise InvalidParameter("assume", "must be a mapping with the one key 'n'", kind, hint)
    return _size(assume["n"], "assume['n']") if assume else None


def _column(name: object, parameter: str) -> str:
    if not isinstance(name, str):
        raise InvalidParameter(parameter, "must name columns by text", kind_of(name), "For example {'n': 20}.")
    return name


def _size(value: object, name: str) -> float:
    try:
        number = float(positive_fraction(value, name))
    except OverflowError:
        number = inf
    if not isfinite(number) or number == 0:
        raise InvalidParameter(name, "must be a number that a double can hold", "one out of reach")
    return number


def _loss(epsilon: Number | None, rho: Number | None) -> PureDP | ZCDP:
    if (epsilon is None) == (rho is None):
        kind = "neither" if epsilon is None else "both"
        raise InvalidParameter("epsilon", "must be given, or rho, or margin: one of them", kind, ONE_PRICE)
    if rho is not None:
        return ZCDP(privacy_amount(rho, "rho"))
    return PureDP(privacy_amount(epsilon, "epsilon"))
