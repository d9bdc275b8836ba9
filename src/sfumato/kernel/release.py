"""The only place where noise meets data."""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from sfumato.errors import KernelFault
from sfumato.kernel.certify import Certificate, Reservation
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.grid import add_saturating, saturate

IntVector = npt.NDArray[np.int64]


class ExactAggregates:
    """What an engine measured: integers that only `release` may read. It shows nothing and cannot be serialised."""

    __slots__ = ("_integers", "plan_digest")

    def __init__(self, plan_digest: str, integers: dict[str, list[int]]) -> None:
        self.plan_digest = plan_digest
        self._integers = {
            name: np.array([saturate(int(each)) for each in cells], np.int64) for name, cells in integers.items()
        }

    def __repr__(self) -> str:
        return "ExactAggregates(not shown)"

    def __reduce__(self) -> NoReturn:
        raise KernelFault("Exact aggregates cannot be copied or written out.")


@dataclass(frozen=True, slots=True)
class Released:
    """Noisy integers for each measurement, one a cell, in steps of the measurement's grid."""

    entry_number: int
    certificate: Certificate
    integers: dict[str, tuple[int, ...]]


def release(exact: ExactAggregates, reservation: Reservation) -> Released:
    """Add the certificate's noise to the engine's integers.

    Claim: K-28. The output satisfies the certificate's loss, which the ledger has charged.
    Requires: the reservation was committed (ledger); it is released once, or its stored answer is returned (ledger).
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
    if set(exact._integers) != {each.name for each in certificate.measurements}:
        raise KernelFault("The engine measured something else than the plan.")
    noisy = {}
    for each in certificate.measurements:
        cells = exact._integers[each.name]
        if cells.shape != (certificate.cells,):
            raise KernelFault("The engine measured another number of cells.")
        noisy[each.name] = tuple(add_saturating(cells, each.noise.draw(cells.size, entropy)).tolist())
    return Released(reservation.entry_number, certificate, noisy)
