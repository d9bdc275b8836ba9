"""Release made-up integers through the path that answers take, and compare the noise with the certificate.

A replay needs recorded noise, so it has a release of its own. Here, the release is the one of every answer.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from statistics import NormalDist

from sfumato.answering.certified_plans import certify_plan
from sfumato.answering.charged_draws import charge_and_release
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.kernel.certify import Certificate, Certified
from sfumato.kernel.key_rounds import KeyRounds
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import CellKey, ExactAggregates, Released
from sfumato.kernel.weighted_keys import WHOLE
from sfumato.lab.auditing.binomial_limits import compute_tail
from sfumato.lab.auditing.choice_losses import find_marks, list_distributions
from sfumato.lab.auditing.noise_distribution import find_wrong_noise
from sfumato.lab.auditing.noise_sizes import is_too_small
from sfumato.lab.auditing.recorded_release import ExactIntegers
from sfumato.lab.auditing.throwaway_desk import require_throwaway
from sfumato.lab.distributions.noise_masses import tail_from

REAL_RELEASES = 150  # noise of half its scale is this small with probability below 1e-12
KEY_RELEASES = 40  # of ten keys of each size
MOST_PLACES = 64  # entries of a measurement that are tested one by one
MOST_DRAWN = 200_000  # noise of all entries of sampled releases together
KEYS_OF_A_KIND = 10
ALARM = 1e-10
STEPS = 2_000  # of an integral
_ROUNDING = 1e-3  # relative: far above the error of the probabilities of bins


@dataclass(frozen=True, slots=True)
class RealRelease:
    """Exact integers, and what the path of all answers released for them."""

    exact: ExactIntegers
    released: Released


class GivenIntegers:
    """An engine that measures nothing and returns given integers."""

    def __init__(self, given: ExactIntegers) -> None:
        self._given = given

    def check(self, plan: BoundedPlan) -> None:
        """Every plan is accepted: nothing is measured."""

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        return self._given.to_exact(plan)

    def close(self) -> None:
        """Nothing is open."""


def release_given(desk: Desk, plan: BoundedPlan, given: ExactIntegers, times: int) -> list[RealRelease]:
    """Charge and release these integers, each time as another plan, as `ask` does."""
    require_throwaway(desk.ledger)
    engine, releases = GivenIntegers(given), []
    for number in range(times):
        certified = certify_plan(replace(plan, repeat=plan.repeat + number + 1))
        answered = charge_and_release(engine, desk.ledger, certified, DEFAULT_ANALYST, "audit")
        releases.append(RealRelease(given, answered.released[0]))
    return releases


def check_releases(desk: Desk, plan: BoundedPlan, exact: ExactIntegers, times: int = REAL_RELEASES) -> Iterator[str]:
    """The faults of the noise that a plan's integers get. Undeclared keys: of keys of chosen sizes instead."""
    certificate = certify_plan(plan).certificate
    if certificate.cells is not None:
        if any(isinstance(measured.noise, LaplaceNoise | GaussianNoise) for measured in certificate.measurements):
            yield from find_small_noise(release_given(desk, plan, exact, times))
        return
    keys = make_keys(certificate)
    releases = release_given(desk, plan, keys, min(times, KEY_RELEASES))
    yield from find_wrong_keys(certificate, releases)
    yield from find_small_noise([_select_large(certificate, release) for release in releases])


def find_small_noise(releases: Sequence[RealRelease]) -> Iterator[str]:
    """Noise that is not as certified: of one entry over all releases too small, or of all entries together."""
    entries_each = max(1, sum(map(len, releases[0].released.integers.values()))) if releases else 1
    releases = releases[: max(REAL_RELEASES, MOST_DRAWN // entries_each)]
    for measured in releases[0].released.certificate.measurements if releases else ():
        noise = measured.noise
        if not isinstance(noise, LaplaceNoise | GaussianNoise) or measured.key_rounds is not None:
            continue  # weights that are compared twice are not released
        drawn = [_subtract(measured.name, release) for release in releases]
        entries = [list(entry) for entry in zip(*drawn, strict=False)]
        for fault in find_wrong_noise(noise, [value for row in drawn for value in row]):
            yield f"{measured.name}: of released integers, {fault}."
        for place, entry in enumerate(entries[:MOST_PLACES]):
            if len(entries) > 1 and is_too_small(noise, entry):
                yield f"{measured.name}: the noise of entry {place} is smaller than certified."


def find_wrong_choices(releases: Sequence[RealRelease]) -> Iterator[str]:
    """Bins that are chosen more or less often than the weights, the spread and the target give, cell by cell.

    All releases have the same weights. Several fractions, and several fullest bins, are not compared.
    """
    for measured in releases[0].released.certificate.measurements if releases else ():
        choice = measured.noise
        if isinstance(choice, LaplaceNoise | GaussianNoise | BoxNoise) or measured.width > 1:
            continue
        for cell, held in enumerate(releases[0].exact.bins[measured.name][:MOST_PLACES]):
            (chances,) = list_distributions(choice, held, find_marks(choice, held, held))
            drawn = Counter(release.released.integers[measured.name][cell] for release in releases)
            for place, chance in zip(chances.bins, chances.chances.tolist(), strict=True):
                hits, rest = drawn[place], len(releases) - drawn[place]
                often = compute_tail(hits, len(releases), chance * (1 + _ROUNDING))
                if min(often, compute_tail(rest, len(releases), 1 - chance * (1 - _ROUNDING))) < ALARM:
                    text = f"bin {place} of cell {cell} is chosen with another probability than certified"
                    yield f"{measured.name}: {text}."
                    break


def _subtract(name: str, release: RealRelease) -> list[int]:
    exact = release.exact.integers[name]
    return [noisy - integer for noisy, integer in zip(release.released.integers[name], exact, strict=True)]


def make_keys(certificate: Certificate) -> ExactIntegers:
    """Undeclared keys that nobody holds, one person, one person too few, just enough people, and very many."""
    keys = _find_key_measurement(certificate)
    sizes = [size for size in list_sizes(keys, keys.threshold or 0) for _ in range(KEYS_OF_A_KIND)]
    held = [size * _weigh_person(keys) for size in sizes]
    integers = {
        measured.name: tuple(held) if measured is keys else (0,) * (len(sizes) * measured.width)
        for measured in certificate.measurements
        if isinstance(measured.noise, LaplaceNoise | GaussianNoise)
    }
    bins: dict[str, tuple[dict[int, int], ...]] = {
        measured.name: tuple({} for _ in sizes)
        for measured in certificate.measurements
        if measured.name not in integers
    }
    names = tuple((f"key {place:04}",) for place in range(len(sizes)))
    holders = count()  # each holds one key
    pairs = tuple((next(holders), cell) for cell, size in enumerate(sizes) for _ in range(size))
    return ExactIntegers(integers, names, bins, None if keys.key_rounds is None else pairs)


def _weigh_person(keys: Certified) -> int:
    """What a person who holds one key adds to it."""
    return 1 if keys.key_rounds is None else WHOLE


def list_sizes(keys: Certified, threshold: int) -> tuple[int, ...]:
    """How many people hold the made-up keys."""
    if keys.key_rounds is not None:  # fewer than both rounds need, just enough, and so many that the key is sure
        late, early = threshold // (3 * WHOLE), keys.key_rounds.early_threshold // WHOLE
        return (0, 1, 4 * late // 5, late, early + _find_margin(keys) // WHOLE + 1)
    return (0, 1, threshold - 1, threshold, threshold + _find_margin(keys))


def _find_margin(keys: Certified) -> int:
    """So many people above the threshold that the key is always released: noise is below it once in e^100 times."""
    match keys.noise:
        case LaplaceNoise(scale):
            return int(100 * scale) + 100
        case GaussianNoise(variance):
            return int(15 * math.sqrt(variance)) + 100
        case _:
            return 0


def _find_key_measurement(certificate: Certificate) -> Certified:
    return next(measured for measured in certificate.measurements if measured.threshold is not None)


def find_wrong_keys(certificate: Certificate, releases: Sequence[RealRelease]) -> Iterator[str]:
    """Keys that are released more or less often than P(noise >= threshold - people), by number of people."""
    keys = _find_key_measurement(certificate)
    threshold = keys.threshold or 0
    for size in sorted(set(list_sizes(keys, threshold))):
        hits = trials = 0
        weight = size * _weigh_person(keys)
        for release in releases:
            held = [
                key
                for key, people in zip(release.exact.keys or (), release.exact.integers[keys.name], strict=True)
                if people == weight
            ]
            shown = set(release.released.keys or ())
            trials += len(held)
            hits += sum(key in shown for key in held)
        rate = _find_rate(keys, size) if size else 0.0
        if hits and compute_tail(hits, trials, rate) < ALARM:
            yield f"A key of {size} people was released {hits} of {trials} times: too often for its threshold."
        elif trials - hits and compute_tail(trials - hits, trials, 1 - rate) < ALARM:
            yield f"A key of {size} people was released {hits} of {trials} times: the noise does not decide."


def _find_rate(keys: Certified, size: int) -> float:
    """The probability with which a key is released that so many people hold, who hold no other."""
    noise = keys.noise
    if keys.key_rounds is not None:
        return find_rounds_rate(keys.key_rounds, size)
    return (
        float(tail_from(noise, (keys.threshold or 0) - size))
        if isinstance(noise, LaplaceNoise | GaussianNoise)
        else 0.0
    )


def find_rounds_rate(rule: KeyRounds, size: int) -> float:
    """The same for keys in two rounds, by Simpson's rule over the noise of the first. Steps are far below the noise."""
    first, second = (NormalDist(0, math.sqrt(noise.variance)) for noise in rule.rounds)
    weight = size * WHOLE
    early, hope = rule.early_threshold - weight, min(rule.hope, rule.early_threshold) - weight
    low, high = max(hope, -10 * first.stdev), min(max(early, hope), 10 * first.stdev)
    rate = 1 - first.cdf(early)
    if low >= high:
        return rate
    step = (high - low) / STEPS
    for place in range(STEPS + 1):
        drawn = low + place * step
        needed = (rule.threshold - 3 * weight - drawn) / 2  # of the second: twice it, and the first, are compared
        share = 1 if place in (0, STEPS) else 4 if place % 2 else 2
        rate += step / 3 * share * first.pdf(drawn) * (1 - second.cdf(needed))
    return rate


def _select_large(certificate: Certificate, release: RealRelease) -> RealRelease:
    """The keys that every release has: their noise is not selected by the threshold."""
    keys = _find_key_measurement(certificate)
    large = list_sizes(keys, keys.threshold or 0)[-1] * _weigh_person(keys)
    sizes = release.exact.integers[keys.name]
    wanted = [key for key, people in zip(release.exact.keys or (), sizes, strict=True) if people == large]
    before = {key: place for place, key in enumerate(release.exact.keys or ())}
    after = {key: place for place, key in enumerate(release.released.keys or ())}
    chosen = [key for key in wanted if key in after]
    exact, noisy = {}, {}
    for measured in certificate.measurements:
        if measured.name in release.exact.integers and measured.key_rounds is None:
            exact[measured.name] = _pick(release.exact.integers[measured.name], before, chosen, measured.width)
            noisy[measured.name] = _pick(release.released.integers[measured.name], after, chosen, measured.width)
    return RealRelease(ExactIntegers(exact, None, {}), replace(release.released, integers=noisy, keys=None))


def _pick(cells: Sequence[int], places: dict[CellKey, int], chosen: Sequence[CellKey], width: int) -> tuple[int, ...]:
    return tuple(cells[places[key] * width + step] for key in chosen for step in range(width))
