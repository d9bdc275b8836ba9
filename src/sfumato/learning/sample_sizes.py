"""The sample size of K statistical queries, and its inverses. They read no data and cost nothing.

m rows are enough for K queries within tolerance tau, all together with probability 1 - beta, at epsilon in all. The
bounds are those of docs/claims/K-55.md.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from sfumato.accuracy.noise_margins import round_up_to_float
from sfumato.accuracy.query_tolerances import (
    MOST_ROWS,
    QueryNoise,
    QueryTargets,
    bound_count,
    bound_error,
    bound_error_of_ratio,
    find_rows,
)
from sfumato.answering.least_epsilon import LARGEST, bisect_epsilon
from sfumato.answering.statistical_oracle import MOST_QUERIES, read_class_size, read_queries
from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import round_up
from sfumato.kernel.neighbours import Neighbours
from sfumato.number_arguments import Number, read_privacy_amount, read_probability, read_whole_number
from sfumato.planning.query_shares import share_epsilon

REPLACE_ONE = Neighbours.REPLACE_ONE.value
SMALLEST_BETA = Fraction(1, 10**12)
RAISE = "Raise the tolerance, beta or epsilon, or ask fewer queries."


def sample_size(
    k: int,
    tolerance: Number,
    beta: Number,
    epsilon: Number,
    *,
    class_size: int | None = None,
    neighbours: str = REPLACE_ONE,
) -> int:
    """The least number of rows for K queries within the tolerance, all together with probability 1 - beta.

    The queries are fixed in advance, or come from a declared class of `class_size` functions. With `add-remove` the
    number of rows is private, and a noisy count takes a part of epsilon.
    """
    wanted = read_probability(tolerance, "tolerance")
    queries = read_queries(k)
    targets = QueryTargets(read_class_size(class_size, queries), read_probability(beta, "beta"))
    rows = find_rows(_make_noise(queries, epsilon, neighbours), targets, wanted)
    if rows is None:
        kind = f"one that no sample of up to {MOST_ROWS:,} rows gives"
        raise InvalidParameter("tolerance", "must be reachable", kind, RAISE)
    return rows


def find_tolerance(
    k: int,
    rows: int,
    beta: Number,
    epsilon: Number,
    *,
    class_size: int | None = None,
    neighbours: str = REPLACE_ONE,
) -> float:
    """The tolerance that this many rows give. It is 1, which says nothing, for too few rows."""
    queries = read_queries(k)
    targets = QueryTargets(read_class_size(class_size, queries), read_probability(beta, "beta"))
    return round_up_to_float(_bound(_make_noise(queries, epsilon, neighbours), targets, _read_rows(rows)))


def find_epsilon(
    k: int,
    tolerance: Number,
    beta: Number,
    rows: int,
    *,
    class_size: int | None = None,
    neighbours: str = REPLACE_ONE,
) -> Decimal:
    """The smallest epsilon, to three digits, for K queries within the tolerance on this many rows."""
    wanted, queries, held = read_probability(tolerance, "tolerance"), read_queries(k), _read_rows(rows)
    targets = QueryTargets(read_class_size(class_size, queries), read_probability(beta, "beta"))
    found = bisect_epsilon(lambda epsilon: _bound(_make_noise(queries, epsilon, neighbours), targets, held) <= wanted)
    if found is None:
        kind = f"one that no epsilon up to {LARGEST:g} gives on so few rows"
        raise InvalidParameter("tolerance", "must be reachable", kind, "Raise the tolerance, or use more rows.")
    return Decimal(found)


def find_queries(
    tolerance: Number,
    beta: Number,
    epsilon: Number,
    rows: int,
    *,
    class_size: int | None = None,
    neighbours: str = REPLACE_ONE,
) -> int:
    """The largest K for which all K queries are within the tolerance on this many rows; 0 if not even one is."""
    wanted, held, miss = read_probability(tolerance, "tolerance"), _read_rows(rows), read_probability(beta, "beta")

    def suffices(queries: int) -> bool:
        targets = QueryTargets(read_class_size(class_size, queries), miss)
        return _bound(_make_noise(queries, epsilon, neighbours), targets, held) <= wanted

    return _bisect(suffices, 0, MOST_QUERIES + 1)


def find_beta(
    k: int,
    tolerance: Number,
    rows: int,
    epsilon: Number,
    *,
    class_size: int | None = None,
    neighbours: str = REPLACE_ONE,
) -> float:
    """The smallest beta, at least 1e-12, for K queries within the tolerance on this many rows; 1 if there is none."""
    wanted, queries, held = read_probability(tolerance, "tolerance"), read_queries(k), _read_rows(rows)
    noise, functions = _make_noise(queries, epsilon, neighbours), read_class_size(class_size, queries)
    parts = 1_000  # beta = 1e-12 ** (part / parts): steps of 2.8 per cent

    def to_beta(part: int) -> Fraction:
        return max(Fraction(round_up(Fraction(float(SMALLEST_BETA) ** (part / parts)))), SMALLEST_BETA)

    def suffices(part: int) -> bool:
        return part == 0 or _bound(noise, QueryTargets(functions, to_beta(part)), held) <= wanted

    best = _bisect(suffices, 0, parts + 1)
    return float(to_beta(best)) if best else 1.0


def _bisect(suffices: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number from `low` to below `high` that suffices, where smaller ones suffice too."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if suffices(middle) else (low, middle)
    return low


def _bound(noise: QueryNoise, targets: QueryTargets, rows: int) -> Fraction:
    if noise.count_share is None:
        return bound_error(noise, targets, rows)
    return bound_error_of_ratio(noise, targets, rows - bound_count(noise, targets.beta / 2))


def _make_noise(queries: int, epsilon: Number, neighbours: str) -> QueryNoise:
    counted = Neighbours.read(neighbours) is Neighbours.ADD_REMOVE
    shares = share_epsilon(queries, read_privacy_amount(epsilon, "epsilon"), counted=counted)
    return QueryNoise(queries, Fraction(shares.query), None if shares.count is None else Fraction(shares.count))


def _read_rows(rows: int) -> int:
    held = read_whole_number(rows, "rows", 1)
    if held > MOST_ROWS:
        raise InvalidParameter("rows", f"must be at most {MOST_ROWS:,}", "a larger number")
    return held
