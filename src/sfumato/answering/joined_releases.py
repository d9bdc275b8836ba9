"""Released parts of a bundle as one answer to store, and a stored bundle as its parts. Post-processing."""

from collections.abc import Mapping, Sequence

from sfumato.kernel.bundle import name_bundle_part
from sfumato.kernel.certify import Certificate
from sfumato.kernel.release import Released


def join_releases(whole: Certificate, released: Sequence[Released]) -> Released:
    """The parts as one release, which is stored with the bundle's charge."""
    integers = {
        name_bundle_part(number, name): cells
        for number, part in enumerate(released)
        for name, cells in part.integers.items()
    }
    return Released(released[0].entry_number, whole, integers)


def split_release(
    entry_number: int, integers: Mapping[str, tuple[int, ...]], certificates: Sequence[Certificate]
) -> list[Released]:
    """The parts of a stored bundle."""
    return [
        Released(
            entry_number,
            certificate,
            {measured.name: integers[name_bundle_part(number, measured.name)] for measured in certificate.measurements},
        )
        for number, certificate in enumerate(certificates)
    ]
