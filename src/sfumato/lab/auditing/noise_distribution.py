"""Does drawn noise have the certified distribution? Counts of events are compared with their exact probabilities."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise, Noise
from sfumato.lab.auditing.binomial_limits import compute_tail
from sfumato.lab.auditing.noise_sizes import is_too_small
from sfumato.lab.distributions.enclosed import enclose_exp
from sfumato.lab.distributions.noise_masses import mass, tail_from

DRAWS = 20_000
TOGETHER = 140_000  # draws of one call: a fault may begin after 2**15 or 2**16 of them
ALARM = 1e-11  # of one event: ten thousand events of correct noise raise a false alarm with probability below 1e-6
WIDTHS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)  # in scales or deviations
MOST_BITS = 40
MOST_EQUAL = 3  # of wide noise: more equal draws have probability below 1e-12
_LEAST_FOR_PARITY = 4  # from this variance on, a Gaussian draw is even with probability 1/2, to within 1e-8
_FINE = 50  # a bit is low if its place is worth less than this part of the scale
_ROUNDING = 1e-7
LONG_TAILS = (Fraction(16), Fraction(2**12), Fraction(2**28))  # where a draw often goes beyond its binary digits

Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class NoiseEvents:
    """Events of one draw with limits of their probabilities."""

    within: tuple[tuple[int, float], ...]  # k, and the most that P(|Z| <= k) can be
    bits: tuple[tuple[int, float], ...]  # low bits of |Z| - 1, given that Z is not 0: the place and P(the bit is 1)
    equal: float  # the most that P(two draws are equal) can be


def find_wrong_noise(noise: Noise, drawn: Sequence[int] | Values) -> Iterator[str]:
    """What is wrong with independent draws: too small, too often near 0, of one sign, with biased bits, or repeated.

    Noise that is larger than certified is not a fault.
    """
    values = np.array(drawn, object)
    if not values.size:
        return
    if is_too_small(noise, values.tolist()):
        yield "the noise is smaller than certified"
    events, sizes = list_events(noise), np.abs(values)
    for most, rate in events.within:
        if compute_tail(int((sizes <= most).sum()), values.size, rate) < ALARM:
            yield f"noise within ±{most} is drawn more often than certified"
            break
    there = sizes[sizes > 0] - 1
    if _is_unlikely(int((values > 0).sum()), there.size, 0.5):
        yield "noise of one sign is drawn more often than of the other"
    for place, rate in events.bits if there.size else ():
        if _is_unlikely(int(((there >> place) & 1).sum()), there.size, rate):
            yield f"bit {place} of the noise is biased"
            break
    halves = values[: values.size // 2 * 2].reshape(-1, 2)
    if compute_tail(int((halves[:, 0] == halves[:, 1]).sum()), len(halves), events.equal) < ALARM:
        yield "noise is drawn again"


def check_samplers(noises: Sequence[Noise], tested: set[Noise] | None = None) -> Iterator[str]:
    """Draw each kind of noise of a certificate, and compare. The same sampler is also tested at small scales.

    At the scale of a sum, a fault near 0 is too rare to be seen. Noise in `tested` is not drawn again, and what is
    drawn is added.
    """
    known = set[Noise]() if tested is None else tested
    narrow = dict.fromkeys(small for noise in noises for small in (noise, *_list_small(noise)) if small not in known)
    wide = dict.fromkeys(made for made in map(_make_wide, noises) if made not in known)
    known.update(narrow, wide)
    for noise in narrow:
        for fault in find_wrong_noise(noise, noise.draw(DRAWS, SYSTEM)):
            yield f"{_describe(noise)}: {fault}."
    for noise in wide:
        drawn = noise.draw(TOGETHER, SYSTEM)
        for fault in find_wrong_noise(noise, drawn[-DRAWS:]):
            yield f"{_describe(noise)}: of the last of {TOGETHER:,} draws, {fault}."
        both = np.concatenate([np.array(part, object) for part in (drawn, noise.draw(TOGETHER, SYSTEM))])
        if len(np.unique(both)) < 2 * TOGETHER - MOST_EQUAL:
            yield f"{_describe(noise)}: some of twice {TOGETHER:,} draws are drawn again."


def _is_unlikely(hits: int, trials: int, rate: float) -> bool:
    above = compute_tail(hits, trials, rate + _ROUNDING)
    return min(above, compute_tail(trials - hits, trials, 1 - rate + _ROUNDING)) < ALARM


@lru_cache(maxsize=256)
def list_events(noise: Noise) -> NoiseEvents:
    """The events of a noise. Their probabilities depend on no sampler of the kernel."""
    width = find_width(noise)
    places = sorted({int(times * width) for times in WIDTHS})
    within = tuple((most, float(1 - 2 * tail_from(noise, most + 1).low) + _ROUNDING) for most in places)
    equal = float(mass(noise, 0).high) + _ROUNDING  # the most likely value
    return NoiseEvents(within, tuple(_list_bits(noise)), equal)


def find_width(noise: Noise) -> float:
    """The scale of Laplace noise, the standard deviation of Gaussian noise."""
    return float(noise.scale) if isinstance(noise, LaplaceNoise) else float(noise.variance) ** 0.5


def _list_bits(noise: Noise) -> Iterator[tuple[int, float]]:
    """Bits of G = |Z| - 1 that a larger scale leaves as they are. They are 1 about half of the time.

    For Laplace noise, with x = exp(-1/scale), bit i is 1 with probability x^(2^i) / (1 + x^(2^i)).
    """
    match noise:
        case LaplaceNoise(scale):
            for place in range(MOST_BITS):
                if 1 << place <= scale / _FINE:
                    power = enclose_exp(-(1 << place) / scale)
                    yield place, float((power / (1 + power)).high)
        case GaussianNoise(variance):
            if variance >= _LEAST_FOR_PARITY:
                zero = float(mass(noise, 0).high)
                yield 0, (0.5 - zero) / (1 - zero)  # |Z| - 1 is odd if Z is even and not 0


def _list_small(noise: Noise) -> tuple[Noise, ...]:
    if isinstance(noise, LaplaceNoise):
        return tuple(LaplaceNoise(scale) for scale in (Fraction(1), Fraction(7, 2), *LONG_TAILS))
    return GaussianNoise(Fraction(1), noise.rounded), GaussianNoise(Fraction(9, 2), noise.rounded)


def _make_wide(noise: Noise) -> Noise:
    """Noise so wide that two of all draws are equal once in ten thousand runs of an audit."""
    return (
        LaplaceNoise(Fraction(2**46))
        if isinstance(noise, LaplaceNoise)
        else GaussianNoise(Fraction(2**92), noise.rounded)
    )


def _describe(noise: Noise) -> str:
    kind = "Laplace noise of scale" if isinstance(noise, LaplaceNoise) else "Gaussian noise of standard deviation"
    return f"{kind} {find_width(noise):.6g}"
