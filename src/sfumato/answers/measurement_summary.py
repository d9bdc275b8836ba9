"""What a measurement is, in words and numbers: what it measures, its sensitivity, noise, loss and margin."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, prod
from typing import assert_never

from sfumato.accuracy.choice_margins import compute_even_bin_margin
from sfumato.accuracy.noise_margins import compute_noise_margin
from sfumato.answers.column_margins import assume_release
from sfumato.answers.proofs import (
    find_claims,
)
from sfumato.answers.released_values import (
    Reading,
    ReleasedVector,
    find_margin,
)
from sfumato.errors import KernelFault
from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.certify import BinChoice, Certificate, Certified
from sfumato.kernel.exact import write_plain
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PureDP
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise, Noise
from sfumato.kernel.plan import (
    BoundedPlan,
    Count,
    Curve,
    Distinct,
    DistinctSum,
    Extreme,
    Halves,
    Keys,
    Measurement,
    Mode,
    People,
    Pivot,
    Products,
    Quantiles,
    Quantity,
    Split,
    Strategy,
    Sum,
    Thirds,
    WeightedKeys,
    take_part,
)
from sfumato.kernel.released_steps import count_bins
from sfumato.kernel.strategies import bound_columns
from sfumato.planning.moment_measurements import name_vectors
from sfumato.planning.planner import Planned
from sfumato.shown_amounts import write_amounts


@dataclass(frozen=True, slots=True)
class MeasurementSummary:
    """One measurement: its sensitivity, its noise, its share of the cost, and its margin."""

    measures: str
    one_person_changes: str
    mechanism: str
    scale: str
    share: str
    margin: float
    of: str = ""  # what the margin refers to, if not to the measurement's own value
    claims: tuple[str, ...] = ()  # whose proofs are in docs/claims


def summarise_measurements(
    planned: Planned, certificate: Certificate, confidence: Fraction, reading: Reading | None = None
) -> tuple[MeasurementSummary, ...]:
    released = (reading or assume_release(certificate, {})).measured
    return tuple(
        _summarise_measurement(measurement, certified, released, confidence)
        for measurement, certified in zip(planned.plan.measurements, certificate.measurements, strict=True)
    )


def _summarise_measurement(
    measurement: Measurement, certified: Certified, released: Sequence[ReleasedVector], confidence: Fraction
) -> MeasurementSummary:
    share = _write_share(certified)
    as_released = next(part for part in released if part.name in name_vectors(measurement))
    margin = find_margin(as_released, confidence)
    if isinstance(certified.noise, BinChoice):
        grid = Fraction(2) ** certified.weight_exponent
        moved, spread = certified.sensitivity.l1 * grid, float(certified.noise.spread * grid)
        return MeasurementSummary(
            f"{certified.name} ({_describe(measurement.quantity)})",
            f"{float(moved):g}",
            _name_choice(certified.noise),
            f"{spread:g}",
            share,
            margin,
            _describe_rank_margin(certified.noise, grid, confidence),
            find_claims(measurement.quantity, certified),
        )
    if isinstance(certified.noise, BoxNoise):
        raise KernelFault("Products are read by estimators, not by answers.")
    step = Fraction(2) ** certified.exponent
    if isinstance(measurement.quantity, Strategy):  # in units of its longest column
        _, longest, _ = bound_columns(measurement.quantity.matrices)
        step /= isqrt(longest)
    laplace = isinstance(certified.noise, LaplaceNoise)
    size = (
        certified.noise.scale * step
        if isinstance(certified.noise, LaplaceNoise)
        else certified.noise.variance * step**2
    )
    return MeasurementSummary(
        f"{certified.name} ({_describe(measurement.quantity)})",
        f"{float(certified.sensitivity.l1 * step):g}",
        _name_noise(certified.noise),
        f"{float(size) if laplace else float(size) ** 0.5:g}",
        share,
        margin,
        _name_margin(measurement.quantity),
        find_claims(measurement.quantity, certified),
    )


def _name_choice(choice: BinChoice) -> str:
    match choice:
        case QuantileChoice() | ModeChoice(k=1):
            return "permute-and-flip"
        case ExtremeChoice():
            return "noisy-threshold"
        case ModeChoice():
            return "discrete Laplace"
        case _:
            assert_never(choice)


def describe_block(plan: BoundedPlan, certified: Certified, step: float, confidence: Fraction) -> MeasurementSummary:
    """One of the measurements of marginals. `step` is what a step of its integers is worth."""
    quantity, cells = plan.measurements[0].quantity, plan.cells or 1
    keys = f"by {len(plan.keys)} {'key' if len(plan.keys) == 1 else 'keys'}" if plan.keys else "in all"
    what = "differences from the mean along each key" if isinstance(quantity, Strategy) else "cells"
    whole = f"{_describe(take_part(quantity))} {keys}" + (f": {cells:,} {what}" if plan.keys else "")
    return _describe_queries(plan, certified, step, confidence, whole)


def describe_pieces(plan: BoundedPlan, certified: Certified, step: float, confidence: Fraction) -> MeasurementSummary:
    """The measurement of ranges, in units of its longest column."""
    quantity = plan.measurements[0].quantity
    longest = bound_columns(quantity.matrices)[1] if isinstance(quantity, Strategy) else 1
    whole = f"{_describe(take_part(quantity))}, as {plan.cells:,} weighted sums of pieces of the ranges"
    return _describe_queries(plan, certified, step / isqrt(longest), confidence, whole)


def _describe_queries(
    plan: BoundedPlan, certified: Certified, step: float, confidence: Fraction, whole: str
) -> MeasurementSummary:
    noise = certified.noise
    if not isinstance(noise, LaplaceNoise | GaussianNoise):
        raise AssertionError("a block has additive noise")
    size = float(noise.scale) if isinstance(noise, LaplaceNoise) else float(noise.variance) ** 0.5
    return MeasurementSummary(
        f"{certified.name} ({whole})",
        f"{float(certified.sensitivity.l1) * step:g}",
        _name_noise(noise),
        f"{size * step:g}",
        _write_share(certified),
        compute_noise_margin(noise, 1 - confidence) * step,
        " in each" if plan.keys else "",
        find_claims(plan.measurements[0].quantity, certified),
    )


def _write_share(certified: Certified) -> str:
    match certified.loss:
        case ZCDP(rho):
            return write_amounts({"rho": write_plain(rho)})
        case GDP(mu_squared):
            return write_amounts({"mu_squared": write_plain(mu_squared)})
        case PureDP(epsilon) | ApproxDP(epsilon):
            return write_amounts({"epsilon": write_plain(epsilon)})


def _name_margin(quantity: Quantity) -> str:
    """What the margin of a measurement refers to."""
    if isinstance(quantity, Strategy):
        return " in a group"
    return " in each part" if isinstance(quantity, Split | Pivot) else ""


def _name_noise(noise: Noise) -> str:
    if isinstance(noise, LaplaceNoise):
        return "discrete Laplace"
    return "rounded Gaussian" if noise.rounded else "discrete Gaussian"


def _describe_rank_margin(choice: BinChoice, grid: Fraction, confidence: Fraction) -> str:
    if not isinstance(choice, QuantileChoice):
        return " rows of rank"
    if choice.miss is not None:
        return f" rows of rank for each end, which is on the wrong side with probability {float(choice.miss):g} at most"
    even = compute_even_bin_margin(choice, confidence) * float(grid)
    return f" rows of rank for any data, ±{even:,.4g} if values are spread evenly between the bounds"


def _describe(quantity: Quantity) -> str:  # noqa: PLR0911, PLR0912 - one return a quantity
    match quantity:
        case Count():
            return "number of rows"
        case Sum():
            return "sum"
        case People():
            return "number of people"
        case Keys():
            return "number of people per undeclared key"
        case WeightedKeys():
            return "weight of each undeclared key"
        case Pivot(part, conditions):
            return f"{_describe(part)}, for {len(conditions)} disjoint conditions"
        case Strategy(part, matrices):
            queries = prod(map(len, matrices))
            return f"{_describe(part)}, as {queries:,} weighted sums of groups"
        case Distinct(keys):
            return "number of different values" if len(keys) == 1 else "number of different combinations of values"
        case DistinctSum():
            return "sum of different values"
        case Halves():
            return "count and sum together"
        case Thirds():
            return "count, sum and squares together"
        case Curve():
            return "sum and squares together"
        case Products():
            return "sums of products together"
        case Quantiles(fractions=fractions):
            names = ", ".join(f"{float(fraction):g}" for fraction in fractions)
            if quantity.miss is not None:
                return f"intervals of the {'quantile' if len(fractions) == 1 else 'quantiles'} {names}"
            return f"{'quantile' if len(fractions) == 1 else 'quantiles'} {names}, {_describe_bins(quantity)}"
        case Extreme(largest=largest):
            return f"{'maximum' if largest else 'minimum'}, {_describe_bins(quantity)}"
        case Mode():
            return f"most frequent, chosen from {count_bins(quantity):,} declared values"
        case _:
            assert_never(quantity)


def _describe_bins(choice: Quantiles | Extreme) -> str:
    return f"chosen from {count_bins(choice):,} public bins of width {2.0**choice.grid.exponent:g}"
