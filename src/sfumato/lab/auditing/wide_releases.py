"""Release made-up integers of every size in very many cells, and compute the release again from its bytes.

Faults of the release that depend on the value of an integer, on the number of cells or on the order of keys need no
dataset that reaches them: here, the engine gives the integers.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import isqrt

from sfumato.answering.certified_plans import certify_plan, replace_shares
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.kernel.bin_choice import OVERSHOOT, ExtremeChoice
from sfumato.kernel.certify import BinChoice, Certificate, Certified
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.key_rounds import KeyRounds
from sfumato.kernel.losses import ApproxDP
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise
from sfumato.kernel.plan import BoundedPlan, Curve, Key, Strategy, WeightedKeys
from sfumato.kernel.release import CellKey, Released
from sfumato.lab.auditing.binomial_limits import compute_tail
from sfumato.lab.auditing.noise_distribution import ALARM, find_wrong_noise
from sfumato.lab.auditing.real_releases import GivenIntegers, list_sizes, release_given
from sfumato.lab.auditing.recomputed_release import WEIGHT, check_release
from sfumato.lab.auditing.recorded_release import ExactIntegers, RecordedEntropy, release_recorded

CELLS = 40_000  # more than 2**15
MOST_BINS = 2_000_000  # of all cells of a choice together
SMALLEST = 60  # at least so many cells of a choice
LOOSE = "0.2"  # a delta
SLOW = 2_000  # as so many bins
RARE = 1e-12  # the chance of a bin that all weight is far from
TAIL = 4_000  # cells at the end that are looked at by themselves
_EDGE = tuple(sign * (2**power + more) for power in range(62) for more in (-1, 0, 1) for sign in (1, -1))
VALUES = (*range(2_001), *(-value for value in range(1, 301)), *_EDGE)


def check_wide_release(desk: Desk, plan: BoundedPlan) -> Iterator[str]:
    """The faults of a release in many cells: of declared ones, or of undeclared keys in two orders."""
    if plan.cells is None:
        yield from _check_keys(desk, plan)
        return
    wide = widen(plan)
    if wide is None:
        return
    certificate = certify_plan(wide).certificate
    given = give_integers(certificate, wide.cells or 0)
    released, tape = _release(desk, wide, given)
    yield from (f"in {wide.cells} cells, {fault}" for fault in check_release(released, given, tape))
    for measured in certificate.measurements:
        if isinstance(measured.noise, LaplaceNoise | GaussianNoise):
            yield from _check_noise(measured, given, released)
        elif isinstance(measured.noise, BinChoice):
            yield from _check_choices(measured, given, released)
    yield from _check_real_path(desk, wide, given)


def _check_real_path(desk: Desk, wide: BoundedPlan, given: ExactIntegers) -> Iterator[str]:
    """Two releases as answers get them, without recorded noise: each has noise as certified, and noise of its own."""
    releases = release_given(desk, wide, given, 2)
    for measured in releases[0].released.certificate.measurements:
        if isinstance(measured.noise, LaplaceNoise | GaussianNoise):
            for release in releases:
                yield from (
                    f"as answers are released, {fault}" for fault in _check_noise(measured, given, release.released)
                )
            one, two = (release.released.integers[measured.name] for release in releases)
            if one == two:
                yield f"{measured.name}: two releases have the same noise."


def widen(plan: BoundedPlan) -> BoundedPlan | None:
    """The same measurements over very many declared cells; without curves, which have one cell."""
    kept = tuple(
        replace(measurement, quantity=measurement.quantity.part)
        if isinstance(measurement.quantity, Strategy)
        else measurement  # has a fixed size
        for measurement in plan.measurements
        if not isinstance(measurement.quantity, Curve)
    )
    if not kept:
        return None
    plan = replace(plan, measurements=kept)
    most = max((_count_bins(measured) for measured in certify_plan(plan).certificate.measurements), default=1)
    cells = CELLS if most == 1 else max(SMALLEST, min(CELLS, MOST_BINS // most))
    return replace(plan, keys=(Key(Column("wide", ColumnType.INTEGER), tuple(range(cells))),))


def _count_bins(measured: Certified) -> int:
    """The work of a cell: the bins of a choice, and box noise, which is drawn cell by cell."""
    match measured.noise:
        case LaplaceNoise() | GaussianNoise():
            return 1
        case BoxNoise():
            return SLOW
        case choice:
            return choice.bins


def give_integers(certificate: Certificate, cells: int, keys: tuple[CellKey, ...] | None = None) -> ExactIntegers:
    """Integers of every size. In a choice, all weight is in one bin: that bin is chosen."""
    integers, bins, holdings = {}, {}, None
    for measured in certificate.measurements:
        if isinstance(measured.noise, BinChoice):
            weight = 2**40 * measured.noise.reach
            bins[measured.name] = tuple({_place_bin(measured, cell): min(weight, 2**60)} for cell in range(cells))
        elif measured.key_rounds is not None:
            holdings = give_holdings(measured.key_rounds, cells)
            held = Counter(person for person, _ in holdings)
            weights = Counter[int]()
            for person, cell in holdings:
                weights[cell] += isqrt(WEIGHT**2 // held[person])
            integers[measured.name] = tuple(weights[cell] for cell in range(cells))
        elif measured.threshold is not None:
            sizes = (*list_sizes(measured, measured.threshold), *range(2, 9))
            integers[measured.name] = tuple(sizes[cell % len(sizes)] for cell in range(cells))
        else:
            size = cells * measured.width
            integers[measured.name] = tuple(VALUES[place % len(VALUES)] for place in range(size))
    return ExactIntegers(integers, keys, bins, holdings)


def give_holdings(rule: KeyRounds, cells: int) -> tuple[tuple[int, int], ...]:
    """People who hold one key, two, or as many as they may; keys near each threshold, and keys that nobody holds."""
    near = [rule.early_threshold, rule.hope, rule.threshold // 3]  # twice the second weight plus the first
    held, person = [], 0
    for cell in range(0, cells, 3):
        needed = near[cell // 3 % len(near)] * (cell % 5) // (3 * WEIGHT)
        for _ in range(1 + min(needed, 200)):
            held += [(person, cell), *([(person, cell + 1)] if cell % 2 and cell + 1 < cells else [])]
            person += 1
    most = range(0, cells, 3)[: rule.max_groups_per_unit]
    return (*held, *((person, cell) for cell in most))


def _place_bin(measured: Certified, cell: int) -> int:
    return 7 * cell % _count_bins(measured)


def _release(desk: Desk, plan: BoundedPlan, given: ExactIntegers) -> tuple[Released, RecordedEntropy]:
    tape = RecordedEntropy()
    answered = release_recorded(replace(desk, engine=GivenIntegers(given)), certify_plan(plan), DEFAULT_ANALYST, tape)
    return answered.released[0], tape


def _check_noise(measured: Certified, given: ExactIntegers, released: Released) -> Iterator[str]:
    """The noise of all cells, and of the last ones by themselves."""
    noise = measured.noise
    exact, noisy = given.integers[measured.name], released.integers[measured.name]
    inside = [after - before for before, after in zip(exact, noisy, strict=True) if abs(before) < 2**50]
    if isinstance(noise, LaplaceNoise | GaussianNoise):
        for drawn, where in ((inside, "cells"), (inside[-TAIL:], "last cells")):
            yield from (f"{measured.name}: of many {where}, {fault}." for fault in find_wrong_noise(noise, drawn))


def _check_choices(measured: Certified, given: ExactIntegers, released: Released) -> Iterator[str]:
    """An extreme is beyond all weight in one of a hundred cells; no other choice misses the only bin with weight."""
    chosen, width, cells = released.integers[measured.name], measured.width, len(given.bins[measured.name])
    missed = sum(_place_bin(measured, cell) not in chosen[cell * width : (cell + 1) * width] for cell in range(cells))
    rate = float(OVERSHOOT) if isinstance(measured.noise, ExtremeChoice) else RARE
    if missed and compute_tail(missed, cells, rate) < ALARM:
        yield f"{measured.name}: in {missed} of {cells} cells, a bin is chosen that all weight is far from."


def _check_keys(desk: Desk, plan: BoundedPlan) -> Iterator[str]:
    """Undeclared keys in one order, and in the other: which are released follows from the bytes, their order does not.

    The order of released keys must not be that in which the engine found them.
    """
    plan = _loosen(plan)
    certificate = certify_plan(plan).certificate
    most = max(_count_bins(measured) for measured in certificate.measurements)
    cells = CELLS if most == 1 else max(SMALLEST, min(CELLS, MOST_BINS // most))
    names = tuple((*(f"key {7_919 * place % cells:06}" for _ in plan.keys),) for place in range(cells))
    orders = []
    for number, keys in enumerate((names, names[::-1])):
        given = give_integers(certificate, cells, keys)
        if number:
            given = ExactIntegers(
                {name: _reverse(values, cells) for name, values in given.integers.items()},
                keys,
                {name: held[::-1] for name, held in given.bins.items()},
                given.holdings and tuple((person, cells - 1 - cell) for person, cell in given.holdings),
            )
        again = replace(plan, repeat=plan.repeat + 1_000 + number)
        released, tape = _release(desk, again, given)
        yield from (f"of {cells} keys, {fault}" for fault in check_release(released, given, tape))
        orders.append(released.keys or ())
    both = set(orders[0]) & set(orders[1])
    if [key for key in orders[0] if key in both] != [key for key in orders[1] if key in both]:
        yield "The order of the released keys is that of the data."


def _loosen(plan: BoundedPlan) -> BoundedPlan:
    """The same plan with a delta at which noise alone often reaches the threshold: of a key that nobody holds, too.

    Keys by weight take a small delta only: where it is close to epsilon, their noise takes minutes to find.
    """
    weighted = any(isinstance(measurement.quantity, WeightedKeys) for measurement in plan.measurements)
    losses = [
        ApproxDP(loss.epsilon, loss.epsilon / 1000 if weighted else LOOSE) if isinstance(loss, ApproxDP) else loss
        for loss in (measurement.loss for measurement in plan.measurements)
    ]
    return replace_shares(plan, losses)


def _reverse(values: tuple[int, ...], cells: int) -> tuple[int, ...]:
    width = len(values) // cells
    return tuple(value for cell in range(cells - 1, -1, -1) for value in values[cell * width : (cell + 1) * width])
