"""The first value that reaches a noisy threshold: the law of above-threshold, and of a private maximum."""

from collections.abc import Sequence
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.lab.distributions.enclosed import ONE, ZERO, Enclosed, enclose_exp

MOST_VALUES = 64


def find_first_crossing(
    values: Sequence[int], bar: int, threshold_scale: Fraction, value_scale: Fraction
) -> list[Enclosed]:
    """P(the first value that reaches the threshold is value k), for each k, and last P(none does).

    The threshold is bar + G, with geometric noise G of the threshold's scale, drawn once. A value reaches it if
    value + H >= bar + G, with fresh geometric noise H: always if value >= bar + G, and otherwise with probability
    exp(-(bar + G - value)/value_scale). Between two numbers at which a value stops to reach the threshold for certain,
    the chances are sums of powers of exp(-G), so each part of the range of G has a closed form.
    """
    if len(values) > MOST_VALUES:
        raise InvalidParameter("values", f"must be at most {MOST_VALUES} for exact probabilities", "more")
    cuts = sorted({0, *(value - bar + 1 for value in values if value >= bar)})
    law = [ZERO] * (len(values) + 1)
    for place, start in enumerate(cuts):
        length = cuts[place + 1] - start if place + 1 < len(cuts) else None
        parts = _split_by_first(values, bar + start, value_scale)
        here = (1 - enclose_exp(-1 / threshold_scale)) * enclose_exp(-start / threshold_scale)
        for k, powers in enumerate(parts):
            for power, coefficient in enumerate(powers):
                rate = 1 / threshold_scale + power / value_scale
                law[k] = law[k] + here * coefficient * _sum_geometric(rate, length)
    return [chance.clamp(0, 1) for chance in law]


def _split_by_first(values: Sequence[int], bar: int, value_scale: Fraction) -> list[list[Enclosed]]:
    """For a threshold of bar + m: P(first crossing is k) as coefficients of the powers of exp(-m/value_scale)."""
    alive = [ONE]
    parts: list[list[Enclosed]] = []
    for value in values:
        if value >= bar:  # it reaches the threshold for certain
            parts.append(alive)
            alive = []
            continue
        reaches = enclose_exp(Fraction(value - bar) / value_scale)
        parts.append([ZERO, *(coefficient * reaches for coefficient in alive)])
        alive = [stay - passed for stay, passed in zip([*alive, ZERO], parts[-1], strict=True)]
    return [*parts, alive]


def _sum_geometric(rate: Fraction, length: int | None) -> Enclosed:
    """The sum of exp(-rate m) over m = 0 .. length - 1, or over all m."""
    whole = 1 / (1 - enclose_exp(-rate))
    return whole if length is None else whole * (1 - enclose_exp(-rate * length))
