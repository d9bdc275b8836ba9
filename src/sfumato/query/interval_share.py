"""interval_share: the share of a quantile's loss that pays for its interval in value."""

from dataclasses import replace
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.number_arguments import Number, read_probability
from sfumato.query.query import QuantileIntervals, Query


def add_quantile_intervals(query: Query, share: Number | None, confidence: Fraction) -> Query:
    """The question with intervals of its quantiles, which hold with this confidence. None: without them."""
    if share is None:
        return query
    part = read_probability(share, "interval_share")
    if not any(_has_quantile(asked_query) for asked_query in (query, *query.beside)):
        hint = "Leave it out: it pays for intervals of MEDIAN and other quantiles of numbers."
        raise InvalidParameter("interval_share", "must be given with a quantile of a number", "none", hint)
    wanted = QuantileIntervals(part, 1 - confidence)
    beside = tuple(replace(asked_beside, quantile_intervals=wanted) for asked_beside in query.beside)
    return replace(query, quantile_intervals=wanted, beside=beside)


def _has_quantile(query: Query) -> bool:
    return any(aggregate.function == "QUANTILE" and aggregate.since is None for aggregate in query.aggregates)
