"""The arguments of a question: what it may spend and how precise it must be. They are checked before anything else."""

from collections.abc import Mapping
from math import inf, isfinite

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.number_arguments import Number, read_positive_fraction, read_privacy_amount
from sfumato.query.dp_options import refuse_epsilon
from sfumato.query.query import Query

ONE_PRICE = "For example epsilon=0.5; or margin={'n': 20}, which takes the smallest epsilon that gives it."


def choose_loss(query: Query, epsilon: Number | None, rho: Number | None) -> PureDP | ZCDP:
    """What the question may spend: its own OPTIONS, or the argument of the call."""
    own = query.dp_options.epsilon if query.dp_options is not None else None
    if own is None:
        return _read_loss(epsilon, rho)
    if rho is not None or (
        epsilon is not None and read_privacy_amount(epsilon, "epsilon") != read_privacy_amount(own, "epsilon")
    ):
        raise InvalidParameter("epsilon", "must be the one in OPTIONS, or be left out", "another one")
    return PureDP(read_privacy_amount(own, "epsilon"))


def choose_delta(query: Query, delta: Number | None) -> Number | None:
    """The delta in the question's own OPTIONS, or the argument of the call."""
    own = query.dp_options.delta if query.dp_options is not None else None
    if own is None or delta is None:
        return own if delta is None else delta
    if read_privacy_amount(delta, "delta") != read_privacy_amount(own, "delta"):
        raise InvalidParameter("delta", "must be the one in OPTIONS, or be left out", "another one")
    return own


def read_margins(query: Query, margin: object, epsilon: object, rho: object) -> dict[str, float] | None:
    """The margins that the analyst wants; None if none are given. They exclude epsilon and rho."""
    if margin is None:
        return None
    if epsilon is not None or rho is not None:
        given = "epsilon" if epsilon is not None else "rho"
        raise InvalidParameter("margin", f"must be given alone, without {given}", "both", ONE_PRICE)
    refuse_epsilon(query.dp_options, "margin decides what is spent")
    return check_margins(margin)


def check_margins(margin: object) -> dict[str, float]:
    """A margin per column, such as {'n': 20}: finite numbers above zero."""
    if not isinstance(margin, Mapping) or not margin:
        kind = "an empty mapping" if isinstance(margin, Mapping) else describe_kind(margin)
        raise InvalidParameter("margin", "must map columns of the answer to margins", kind, "For example {'n': 20}.")
    return {_check_name(name): _check_size(size, "margin") for name, size in margin.items()}


def read_assumed_rows(assume: object) -> float | None:
    """The number of rows that a preview assumes in every group: assume={'n': 500}."""
    hint = "For example assume={'n': 500}: 500 rows in every group."
    if assume is None:
        return None
    if not isinstance(assume, Mapping) or set(assume) - {"n"}:
        kind = "another key" if isinstance(assume, Mapping) else describe_kind(assume)
        raise InvalidParameter("assume", "must be a mapping with the one key 'n'", kind, hint)
    return _check_size(assume["n"], "assume['n']") if assume else None


def refuse_assumption(count: float | None) -> None:
    """Refuse an assumed number of rows where no margin is asked for: it would change nothing."""
    if count is not None:
        hint = "Leave it out, or give margin= in place of epsilon. A preview states margins for it."
        raise InvalidParameter("assume", "must come with a margin", "no margin", hint)


def _check_name(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidParameter("margin", "must name columns by text", describe_kind(name), "For example {'n': 20}.")
    return name


def _check_size(value: object, name: str) -> float:
    try:
        number = float(read_positive_fraction(value, name))
    except OverflowError:
        number = inf
    if not isfinite(number) or number == 0:
        raise InvalidParameter(name, "must be a number that a double can hold", "one out of reach")
    return number


def _read_loss(epsilon: Number | None, rho: Number | None) -> PureDP | ZCDP:
    if (epsilon is None) == (rho is None):
        kind = "none of them" if epsilon is None else "epsilon and rho"
        raise InvalidParameter("epsilon", "must be given, or rho or margin instead", kind, ONE_PRICE)
    if rho is not None:
        return ZCDP(read_privacy_amount(rho, "rho"))
    return PureDP(read_privacy_amount(epsilon, "epsilon"))
