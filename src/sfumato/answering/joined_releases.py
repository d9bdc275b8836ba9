"""Released parts of a bundle as one answer to store, and a stored bundle as its parts. Post-processing."""

from collections.abc import Sequence

from sfumato.kernel.bundle import part_name
from sfumato.kernel.certify import Certificate
from sfumato.kernel.release import Released


def join_releases(whole: Certificate, released: Sequence[Released]) -> Released:
    """The parts as one release, which is stored with the bundle's charge."""
    integers = {
        part_name(number, name): cells for number, part in enumerate(released) for name, cells in part.integers.items()
    }
    return Released(released[0].entry_number, whole, integers)


def split_release(stored: Released, certificates: Sequence[Certificate]) -> list[Released]:
    """The parts of a stored bundle."""
    return [
        Released(
            stored.entry_number,
            certificate,
            {one.name: stored.integers[part_name(number, one.name)] for one in certificate.measurements},
        )
        for number, certificate in enumerate(certificates)
    ]
