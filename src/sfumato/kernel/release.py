"""The only place where noise meets data."""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from sfumato.errors import KernelFault
from sfumato.kernel.certify import BinChoice, Certificate, Certified, Reservation
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.expressions import Scalar
from sfumato.kernel.grid import add_saturating, saturate

IntVector = npt.NDArray[np.int64]
CellKey = tuple[Scalar, ...]
MOST_AT_ONCE = 1 << 22


class ExactAggregates:
    """What an engine measured: integers that only `release` may read. It shows nothing and cannot be serialised.

    `keys` are those that the data names, one a cell, where the plan does not declare them; `bins` are the weights in
    the bins of each choice, for each cell.
    """

    __slots__ = ("_bins", "_integers", "_keys", "plan_digest")

    def __init__(
        self,
        plan_digest: str,
        integers: dict[str, list[int]],
        keys: tuple[CellKey, ...] | None = None,
        bins: dict[str, list[dict[int, int]]] | None = None,
    ) -> None:
        self.plan_digest = plan_digest
        self._keys = keys
        self._bins = bins or {}
        self._integers = {
            name: np.array([saturate(int(each)) for each in cells], np.int64) for name, cells in integers.items()
        }

    def __repr__(self) -> str:
        return "ExactAggregates(not shown)"

    def __reduce__(self) -> NoReturn:
        raise KernelFault("Exact aggregates cannot be copied or written out.")


@dataclass(frozen=True, slots=True)
class Released:
    """Noisy integers for each measurement, one a cell, in steps of the measurement's grid.

    `keys` names the cells where the data does: those alone that passed their threshold.
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
    Proof: docs/claims/K-28.md
    Checked by: tests/kernel/test_release.py::test_release_adds_exactly_the_scripted_noise
    """
    return release_with(exact, reservation, SYSTEM)


def release_with(exact: ExactAggregates, reservation: Reservation, entropy: Entropy) -> Released:
    """`release` with the entropy named: tests script it.

    Claim: K-28. Every measurement of the certificate, and nothing else, comes out, each cell with its own noise.
    Requires: as release.
    Relies on: K-09, K-10, K-27.
    Proof: docs/claims/K-28.md
    Checked by: tests/kernel/test_release.py::test_release_adds_exactly_the_scripted_noise
    """
    certificate = reservation.certificate
    if exact.plan_digest != certificate.plan_digest:
        raise KernelFault("These aggregates belong to another plan.")
    added = {each.name for each in certificate.measurements if not isinstance(each.noise, BinChoice)}
    chosen = {each.name for each in certificate.measurements} - added
    if set(exact._integers) != added or set(exact._bins) != chosen:
        raise KernelFault("The engine measured something else than the plan.")
    if (exact._keys is None) != (certificate.cells is not None):
        raise KernelFault("The engine named keys that the plan declares, or none where it does not.")
    cells = certificate.cells if certificate.cells is not None else len(exact._keys or ())
    sizes = {name: len(each) for name, each in exact._integers.items()}
    sizes |= {name: len(each) for name, each in exact._bins.items()}
    if sizes != {each.name: cells * (1 if each.name in chosen else each.width) for each in certificate.measurements}:
        raise KernelFault("The engine measured another number of cells.")
    reservation.take(object())  # nobody else's: from here on, noise is drawn
    noisy: dict[str, IntVector] = {}
    kept = np.arange(cells)
    for each in sorted(certificate.measurements, key=lambda one: one.threshold is None):  # keys first
        if isinstance(each.noise, BinChoice):
            noisy[each.name] = _chosen(each, each.noise, [exact._bins[each.name][cell] for cell in kept], entropy)
            continue
        integers = exact._integers[each.name].reshape(cells, each.width)[kept].ravel()
        drawn = add_saturating(integers, each.noise.draw(integers.size, entropy))
        if each.threshold is not None:
            kept = np.flatnonzero((integers > 0) & (drawn >= each.threshold))  # nobody's keys are nothing of the data
            drawn = drawn[kept]
        noisy[each.name] = drawn.reshape(len(kept), each.width)
    names, order = _named(exact._keys, kept)
    released = {each.name: tuple(noisy[each.name][order].ravel().tolist()) for each in certificate.measurements}
    return Released(reservation.entry_number, certificate, released, names)


def _chosen(each: Certified, rule: BinChoice, bins: list[dict[int, int]], entropy: Entropy) -> IntVector:
    """The chosen bins, one row a cell; a few cells at a time, since most bins are empty."""
    found: list[object] = []
    block = max(1, MOST_AT_ONCE // rule.bins)
    for begin in range(0, len(bins), block):
        part = bins[begin : begin + block]
        weights = np.zeros((len(part), rule.bins), np.int64)
        for row, held in enumerate(part):
            weights[row, list(held)] = [saturate(weight) for weight in held.values()]
        found += rule.choose_cells(weights, entropy)
    return np.array(found, np.int64).reshape(len(bins), each.width)  # also where no key is left


def _named(keys: tuple[CellKey, ...] | None, kept: IntVector) -> tuple[tuple[CellKey, ...] | None, IntVector]:
    """The released keys in an order that says nothing of the data's, and where each stands among the kept."""
    if keys is None:
        return None, np.arange(len(kept))
    order = sorted(range(len(kept)), key=lambda index: repr(keys[kept[index]]))
    return tuple(keys[kept[index]] for index in order), np.array(order, np.int64)
