"""Compare two runs on neighbouring datasets with the same noise, and with what the certificate promises."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import zip_longest
from typing import assert_never

from sfumato.answering.receipt import Receipt
from sfumato.answers.answer import Answer
from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.certify import Certificate, Certified
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PrivacyLoss, PureDP, compose
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise
from sfumato.kernel.release import Released
from sfumato.lab.auditing.choice_losses import TOLERANCE, find_choice_loss
from sfumato.lab.auditing.independent_prices import AskedPrice, check_prices, compute_gaussian_delta
from sfumato.lab.auditing.plain_reading import PinnedTables
from sfumato.lab.auditing.recomputed_release import check_release
from sfumato.lab.auditing.recorded_release import ExactIntegers, RecordedEntropy
from sfumato.lab.auditing.shown_answers import Shown
from sfumato.ledger.loss_sums import convert_loss, split_loss

Place = tuple[object, ...]  # a cell, and a place or a bin in it


@dataclass(frozen=True, slots=True)
class Recording:
    """One run of a question: what was measured, released, charged and answered, or how it failed.

    `load_refused` says that the owner's load was refused, before any question.
    """

    certificate: Certificate | None = None
    measured: tuple[ExactIntegers, ...] = ()
    released: Released | None = None
    bytes_taken: int = 0
    spent: PrivacyLoss | None = None
    answer: Answer | None = None
    error: str | None = None
    load_refused: bool = False
    asked: AskedPrice | None = None
    tape: RecordedEntropy | None = None  # the bytes of the noise
    pinned: PinnedTables | None = None  # the rows that were loaded
    receipt: Receipt | None = None
    shown: Shown = field(default_factory=dict)  # everything that the answer shows
    faults: tuple[str, ...] = ()  # of this run by itself


@dataclass(frozen=True, slots=True)
class Comparison:
    """The faults that a pair of runs shows, and the largest share of a certified sensitivity that was used.

    `used` is the sum of these shares over all measurements, weighted by their losses.
    """

    faults: tuple[str, ...]
    share: float
    used: float = 0.0


def compare_recordings(first: Recording, second: Recording, *, rows_are_fixed: bool) -> Comparison:
    """Everything that must not depend on one person, and how far the integers moved.

    `rows_are_fixed` says that the answer has one row per declared cell, whatever the noise.
    """
    if first.error != second.error:
        return Comparison((f"Errors differ: {first.error or 'none'} and {second.error or 'none'}.",), 0.0)
    if first.certificate is None or second.certificate is None or first.released is None or second.released is None:
        return Comparison((), 0.0)
    faults = [*_compare_certificates(first, second), *_check_losses(first)]
    if len(first.measured) != len(second.measured):
        return Comparison((*faults, "The number of measurements of the data differs."), 0.0)
    found = [
        compare_integers(first.certificate, before, after)
        for before, after in zip(first.measured, second.measured, strict=True)
    ]
    faults += [fault for compared in found for fault in compared.faults]
    faults += _compare_noise(first, second)
    faults += _compare_answers(first, second, rows_are_fixed=rows_are_fixed)
    share = max((compared.share for compared in found), default=0.0)
    return Comparison(tuple(faults), share, sum(compared.used for compared in found))


def compare_integers(certificate: Certificate, before: ExactIntegers, after: ExactIntegers) -> Comparison:
    """How far one unit moved the integers of each measurement, and what that makes of a private choice."""
    faults, shares, used = list[str](), [0.0], 0.0
    for measured in certificate.measurements:
        problem, share = _check_moves(measured, find_moves(measured, before, after))
        faults += problem
        shares.append(share)
        amount = float(split_loss(measured.loss)[0])
        if measured.name in before.bins and measured.name in after.bins:
            exact = _find_loss_of_choice(measured, before, after)
            if exact > amount * (1 + TOLERANCE):
                text = f"one person makes a bin e^{exact:.4g} times likelier"
                faults.append(f"{measured.name}: {text}; its certified epsilon is {amount:.4g}.")
            used += exact
        else:
            used += share * amount
    return Comparison(tuple(faults), max(shares), used)


def _compare_certificates(first: Recording, second: Recording) -> Iterator[str]:
    if first.certificate != second.certificate:
        yield "The certificates differ: scales, thresholds or losses depend on the data."
    if first.spent != second.spent:
        yield "The charges differ."


def _check_losses(run: Recording) -> Iterator[str]:
    """The noise pays for the sensitivity, the parts add up to the loss, and the ledger charged it."""
    certificate = run.certificate
    if certificate is None:
        return
    total: PrivacyLoss | None = None
    for measured in certificate.measurements:
        if not _noise_pays(measured):
            yield f"{measured.name}: the noise does not pay for the certified sensitivity."
        total = measured.loss if total is None else total.compose(measured.loss)
    if total != certificate.loss:
        yield "The losses of the measurements do not add up to the certified loss."
    if run.spent is not None and run.spent not in _list_prices(certificate, run.spent):
        yield "The ledger charged another loss than the certified one."
    if run.asked is not None and run.spent is not None:
        yield from check_prices(certificate, run.asked, run.spent)


def _list_prices(certificate: Certificate, budget: PrivacyLoss) -> list[PrivacyLoss]:
    """What a certificate may cost: its loss in the kind of the budget. In zCDP and Gaussian DP, its parts may be
    converted one by one.

    Both are sound: each part satisfies its converted loss, and such losses add up.
    """
    prices = [convert_loss(certificate.loss, budget)]
    if isinstance(budget, ZCDP | GDP):
        parts = [convert_loss(measured.loss, budget) for measured in certificate.measurements]
        prices.append(reduce(compose, parts))
    return prices


def _noise_pays(measured: Certified) -> bool:
    moved, noise = measured.sensitivity, measured.noise
    match noise:
        case LaplaceNoise(scale):
            loss = measured.loss
            return isinstance(loss, PureDP | ApproxDP) and moved.l1 <= scale * Fraction(loss.epsilon)
        case GaussianNoise(variance, rounded):
            loss = measured.loss
            if isinstance(loss, ApproxDP):  # undeclared keys by weight: their threshold is checked with the prices
                mu = math.sqrt(moved.l2_squared / variance)
                return rounded and compute_gaussian_delta(mu, float(loss.epsilon)) <= float(loss.delta)
            if rounded:
                return isinstance(loss, GDP) and moved.l2_squared <= Fraction(loss.mu_squared) * variance
            return isinstance(loss, ZCDP) and moved.l2_squared <= 2 * Fraction(loss.rho) * variance
        case BoxNoise(units, scale):
            loss = measured.loss
            return isinstance(loss, PureDP) and moved.l1 <= sum(units) * scale * Fraction(loss.epsilon)
        case QuantileChoice() | ExtremeChoice() | ModeChoice():
            return moved.l1 == noise.neighbours.people_moved * noise.reach
        case _:
            assert_never(noise)


def find_moves(measured: Certified, before: ExactIntegers, after: ExactIntegers) -> list[int]:
    """How far one unit moved each integer of a measurement. Undeclared keys are matched by key.

    A key that is on one side only has nobody on the other side. Its number of people moved from 0, and is compared.
    Its other integers are not: they are released with the key, which delta pays for, and they hold the rows of other
    people who have this key beyond their contribution bound.
    """
    one, two = (_index_places(measured, side) for side in (before, after))
    places = {**one, **two}
    if measured.threshold is None and before.keys is not None and after.keys is not None:
        shared = set(map(repr, before.keys)) & set(map(repr, after.keys))
        places = {place: steps for place, steps in places.items() if place[0] in shared}
    return [abs(one.get(place, 0) - two.get(place, 0)) for place in places]


def _find_loss_of_choice(measured: Certified, before: ExactIntegers, after: ExactIntegers) -> float:
    """The exact loss of a private choice on this pair. Of undeclared keys, those that both sides have."""
    if isinstance(measured.noise, LaplaceNoise | GaussianNoise | BoxNoise):
        return 0.0
    one, two = (
        {_name_cell(side, cell): bins for cell, bins in enumerate(side.bins[measured.name])} for side in (before, after)
    )
    shared = [name for name in one if name in two]
    return find_choice_loss(measured.noise, [one[name] for name in shared], [two[name] for name in shared])


def _index_places(measured: Certified, side: ExactIntegers) -> Mapping[Place, int]:
    if measured.name in side.bins:
        cells = side.bins[measured.name]
        return {
            (_name_cell(side, cell), bin_): weight for cell, bins in enumerate(cells) for bin_, weight in bins.items()
        }
    width = measured.width
    integers = side.integers.get(measured.name, ())
    return {(_name_cell(side, place // width), place % width): integer for place, integer in enumerate(integers)}


def _name_cell(side: ExactIntegers, cell: int) -> object:
    return cell if side.keys is None else repr(side.keys[cell])


def _check_moves(measured: Certified, moved: list[int]) -> tuple[list[str], float]:
    limits = measured.sensitivity
    total, squares = sum(moved), sum(step * step for step in moved)
    share = max(
        float(total / limits.l1) if limits.l1 else float(total > 0),
        float(squares / limits.l2_squared) ** 0.5 if limits.l2_squared else 0.0,
    )
    faults = []
    if total > limits.l1:
        faults.append(f"{measured.name} moved by {total} in L1; the certificate allows {limits.l1}.")
    if squares > limits.l2_squared:
        faults.append(f"{measured.name} moved by {squares} in squared L2; the certificate allows {limits.l2_squared}.")
    by_people = isinstance(measured.noise, LaplaceNoise)  # keys by weight have Gaussian noise, and count in L2
    if measured.threshold is not None and by_people and any(step > 1 for step in moved):
        faults.append(f"{measured.name}: one person counts more than once for a key.")
    return faults, share


def _compare_noise(first: Recording, second: Recording) -> Iterator[str]:
    """With the same bytes, the same noise must be added, in the same number of draws, whatever the data.

    Choices read as many bytes as their coins need, and undeclared keys get one draw per candidate: both are part of
    their proofs, so only additive noise on declared cells is compared.
    """
    if first.released is None or second.released is None or first.certificate is None:
        return
    certificate = first.certificate
    additive = all(isinstance(measured.noise, LaplaceNoise | GaussianNoise) for measured in certificate.measurements)
    for run in (first, second):
        if run.tape is not None and run.released is not None and run.measured:
            yield from check_release(run.released, run.measured[0], run.tape)
    if certificate.cells is None:
        yield from _check_keys(first)
        yield from _check_keys(second)
        return
    if not additive:
        return
    if first.bytes_taken != second.bytes_taken:
        yield "The number of random bytes differs: the number of noise draws depends on the data."
    for measured in certificate.measurements:
        noises = [_find_noise(measured.name, run) for run in (first, second)]
        if noises[0] != noises[1]:
            yield f"{measured.name}: the noise depends on the data."
        elif not any(noises[0]) and len(noises[0]) * _find_scale(measured) > LEAST_NOISE:
            yield f"{measured.name}: no noise was added."
        else:
            bare = [place for place, drawn in enumerate(noises[0]) if drawn == 0]
            if bare and _find_scale(measured) > LEAST_NOISE:
                yield f"{measured.name}: entry {bare[0]} got no noise."


LEAST_NOISE = 10**7  # at this scale, noise of 0 has probability below 1e-7


def _find_noise(name: str, run: Recording) -> list[int]:
    released = run.released.integers[name] if run.released is not None else ()
    exact = run.measured[0].integers[name]
    return [drawn - integer for drawn, integer in zip_longest(released, exact, fillvalue=0)]


def _find_scale(measured: Certified) -> float:
    match measured.noise:
        case LaplaceNoise(scale):
            return float(scale)
        case GaussianNoise(variance):
            return math.sqrt(variance)
        case _:
            return 0.0


def _check_keys(run: Recording) -> Iterator[str]:
    """Every released key is held by a counted person, and its noisy number reached the threshold."""
    if run.released is None or run.certificate is None:
        return
    exact = run.measured[0]
    for measured in run.certificate.measurements:
        if measured.threshold is None:
            continue
        held = dict(zip(map(repr, exact.keys or ()), exact.integers[measured.name], strict=True))
        for key, noisy in zip(run.released.keys or (), run.released.integers[measured.name], strict=True):
            if held.get(repr(key), 0) < 1:
                yield "A key was released that no counted person holds."
            if noisy < measured.threshold:
                yield "A key was released below its threshold."


def _compare_answers(first: Recording, second: Recording, *, rows_are_fixed: bool) -> Iterator[str]:
    if first.answer is None or second.answer is None:
        return
    one, two = first.answer, second.answer
    if one.columns != two.columns:
        yield "The columns of the answers differ."
        return
    if rows_are_fixed and len(one.rows) != len(two.rows):
        yield "The number of rows of the answers differs."
    for column in one.columns:
        kinds = [
            {type(row[column]).__name__ for row in answer.rows if row[column] is not None} for answer in (one, two)
        ]
        if kinds[0] and kinds[1] and kinds[0] != kinds[1]:
            yield f"{column}: the types of the values differ."
    same_release = first.released is not None and second.released is not None and (
        first.released.integers == second.released.integers and first.released.keys == second.released.keys
    )  # fmt: skip
    if same_release and one.rows != two.rows:
        yield "The answers differ though the released integers are the same."
