"""The only place where noise is added to a dataset's exact aggregates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from sfumato.errors import KernelFault
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.bundle import bundle, certify_sequence
from sfumato.kernel.certify import BinChoice, Certificate, Certified, certify
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.expressions import Scalar
from sfumato.kernel.key_rounds import Holdings, KeyRounds
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.reservation import Reservation
from sfumato.kernel.samplers import ROWS_AT_ONCE
from sfumato.kernel.saturating_sums import add_saturating, saturate, saturate_cells

IntVector = npt.NDArray[np.int64]
CellKey = tuple[Scalar, ...]


class ExactAggregates:
    """What an engine measured: integers that only this file reads. Its repr shows none; it cannot be serialised.

    `keys` are the undeclared keys, one a cell, where the plan does not declare them; `bins` are the weights in the bins
    of each choice, for each cell; `holdings` say who holds which key, where keys are weighed in two rounds.
    """

    __slots__ = ("_bins", "_holdings", "_integers", "_keys", "plan")

    def __init__(
        self,
        plan: BoundedPlan,
        integers: Mapping[str, list[int] | IntVector],
        keys: tuple[CellKey, ...] | None = None,
        bins: dict[str, list[dict[int, int]]] | None = None,
        holdings: Holdings | None = None,
    ) -> None:
        self.plan = plan
        self._holdings = holdings
        self._keys = keys
        self._bins = bins or {}
        self._integers = {name: saturate_cells(cells) for name, cells in integers.items()}

    def __repr__(self) -> str:
        return "ExactAggregates(not shown)"

    def __reduce__(self) -> NoReturn:
        raise KernelFault("Exact aggregates cannot be copied or written out.")


@dataclass(frozen=True, slots=True)
class Released:
    """Noisy integers for each measurement, one a cell, in steps of the measurement's grid.

    `keys` are the undeclared keys that passed their threshold, one a cell.
    """

    entry_number: int
    certificate: Certificate
    integers: dict[str, tuple[int, ...]]
    keys: tuple[CellKey, ...] | None = None


def release(exact: ExactAggregates, reservation: Reservation) -> Released:
    """Add the certificate's noise to the engine's integers.

    Claim: K-28. The output satisfies the certificate's loss, which the ledger has charged; a reservation is released
        once (checked here).
    Requires: the reservation was committed, and of several reservations of one charge one release leaves (ledger).
    Relies on: K-09, K-10, K-27.
    Checked by: tests/kernel/test_release.py::test_release_adds_exactly_the_scripted_noise
    """
    return release_with(exact, reservation, SYSTEM)


def release_with(exact: ExactAggregates, reservation: Reservation, entropy: Entropy) -> Released:
    """`release` with the entropy named: tests script it.

    Claim: K-28. Every measurement of the certificate, and nothing else, comes out, each cell with its own noise.
    Requires: as release.
    Relies on: K-09, K-10, K-27.
    Checked by: tests/kernel/test_release.py::test_release_adds_exactly_the_scripted_noise
    """
    certificate = reservation.certificate
    _check_measured(exact, certificate)
    reservation.take(object())  # no other user has this object: from here on, noise is drawn
    return _add_noise(exact, certificate, reservation.entry_number, entropy)


def release_bundle(
    exact: Sequence[ExactAggregates], certificates: Sequence[Certificate], reservation: Reservation
) -> list[Released]:
    """Release the parts of a charged bundle, each with the noise of its own certificate.

    Claim: K-36. All parts together satisfy the bundle's loss. Only the very parts that were charged are released, once.
    Requires: as release.
    Relies on: K-28.
    Checked by: tests/kernel/test_bundle.py::test_a_bundle_costs_the_sum_and_releases_its_parts_only
    """
    if bundle(certificates) != reservation.certificate:
        raise KernelFault("These parts were not charged together.")
    parts = list(zip(exact, certificates, strict=True))
    for measured, certificate in parts:
        _check_measured(measured, certificate)
    reservation.take(object())
    return [_add_noise(*part, reservation.entry_number, SYSTEM) for part in parts]


def crosses(exact: ExactAggregates, watch: AboveThreshold, reservation: Reservation) -> bool:
    """Has the one count that was measured reached the sequence's threshold?

    Claim: K-36. The answers to all questions of the sequence together satisfy the loss that was charged for it.
    Requires: the charge of the sequence was committed (ledger).
    Relies on: K-25, K-34.
    Checked by: tests/kernel/test_bundle.py::test_a_sequence_is_charged_once_and_checks_every_question
    """
    certificate = certify(exact.plan)
    if reservation.certificate != certify_sequence(watch, exact.plan):
        raise KernelFault("This question was not paid for.")
    _check_measured(exact, certificate)
    (measured,), (cells,) = certificate.measurements, exact._integers.values()
    if measured.sensitivity.l1 > watch.sensitivity:
        raise KernelFault("One unit moves this count further than was declared.")
    reservation.take(watch)
    return watch.check(int(cells[0]), SYSTEM)


def _check_measured(exact: ExactAggregates, certificate: Certificate) -> None:
    """Refuse a certificate that is not of the measured plan, and aggregates that are not its cells, name for name."""
    if certify(exact.plan) != certificate:
        raise KernelFault("These aggregates belong to another plan.")
    if (exact._keys is None) != (certificate.cells is not None):
        raise KernelFault("The engine gave keys for declared ones, or none for undeclared ones.")
    cells = _count_cells(exact, certificate)
    chosen = {part.name: cells for part in certificate.measurements if isinstance(part.noise, BinChoice)}
    added = {part.name: cells * part.width for part in certificate.measurements if part.name not in chosen}
    found = [{name: len(cell) for name, cell in part.items()} for part in (exact._integers, exact._bins)]
    if found != [added, chosen] or (exact._holdings is not None) != exact.plan.holds_pairs:
        raise KernelFault("The engine measured something else than the plan, or another number of cells.")


def _count_cells(exact: ExactAggregates, certificate: Certificate) -> int:
    return certificate.cells if certificate.cells is not None else len(exact._keys or ())


def _add_noise(exact: ExactAggregates, certificate: Certificate, entry_number: int, entropy: Entropy) -> Released:
    """Draw the noise of every measurement. Undeclared keys come first: other measurements cover released keys only."""
    cells = _count_cells(exact, certificate)
    noisy: dict[str, IntVector] = {}
    released = np.arange(cells)
    for measured in sorted(certificate.measurements, key=lambda one: one.threshold is None):
        if isinstance(measured.noise, BinChoice):
            weights = [exact._bins[measured.name][cell] for cell in released]
            noisy[measured.name] = _choose_bins(measured, measured.noise, weights, entropy)
            continue
        if measured.key_rounds is not None and exact._holdings is not None:  # no weight is released
            released = find_keys(measured.key_rounds, exact._holdings, cells, entropy)
            noisy[measured.name] = np.full((len(released), 1), measured.threshold, np.int64)
            continue
        integers = exact._integers[measured.name].reshape(cells, measured.width)[released].ravel()
        drawn = add_saturating(integers, measured.noise.draw(integers.size, entropy))
        if measured.threshold is not None:  # never release a key that no counted person holds
            released = np.flatnonzero((integers > 0) & (drawn >= measured.threshold))
            drawn = drawn[released]
        noisy[measured.name] = drawn.reshape(len(released), measured.width)
    keys, order = _sort_keys(exact._keys, released)
    values = {part.name: tuple(noisy[part.name][order].ravel().tolist()) for part in certificate.measurements}
    return Released(entry_number, certificate, values, keys)


def find_keys(rule: KeyRounds, holdings: Holdings, cells: int, entropy: Entropy) -> IntVector:
    """The cells of the undeclared keys that two rounds find, with new noise in each.

    Claim: K-87. The result is (epsilon, delta)-DP. A cell that nobody holds is never in it.
    Requires: which cells there are follows from the holdings (engine).
    Relies on: K-71.
    Checked by: tests/kernel/test_key_rounds.py::test_both_rounds_are_those_of_plain_python
    """
    noise, noise_again = rule.rounds
    found = rule.weigh_first(holdings, cells, noise.draw(cells, entropy))
    return rule.weigh_second(holdings, found, noise_again.draw(len(found.again), entropy))


def _choose_bins(measured: Certified, rule: BinChoice, bins: list[dict[int, int]], entropy: Entropy) -> IntVector:
    """The chosen bins, one row a cell; as many cells at a time as fit the cache."""
    chosen: list[object] = []
    block = max(1, ROWS_AT_ONCE // rule.bins)
    for begin in range(0, len(bins), block):
        part = bins[begin : begin + block]
        weights = np.zeros((len(part), rule.bins), np.int64)
        for row, held in enumerate(part):
            weights[row, list(held)] = [saturate(weight) for weight in held.values()]
        chosen += rule.choose_cells(weights, entropy)
    return np.array(chosen, np.int64).reshape(len(bins), measured.width)  # also where no key is left


def _sort_keys(keys: tuple[CellKey, ...] | None, released: IntVector) -> tuple[tuple[CellKey, ...] | None, IntVector]:
    """The released keys in the order of their own text, which does not depend on the data's order."""
    if keys is None:
        return None, np.arange(len(released))
    order = sorted(range(len(released)), key=lambda position: repr(keys[released[position]]))
    return tuple(keys[released[position]] for position in order), np.array(order, np.int64)
