"""Released parts of a bundle as one answer to store, and a stored bundle as its parts. Post-processing."""

from collections.abc import Mapping, Sequence

from sfumato.kernel.bundle import name_bundle_part
from sfumato.kernel.certify import Certificate
from sfumato.kernel.release import CellKey, Released


def join_releases(whole: Certificate, released: Sequence[Released]) -> Released:
    """The parts as one release, which is stored with the bundle's charge.

    The number of a part stands before each of its undeclared keys.
    """
    integers = {
        name_bundle_part(number, name): cells
        for number, part in enumerate(released)
        for name, cells in part.integers.items()
    }
    named = [(number, part.keys) for number, part in enumerate(released) if part.keys is not None]
    keys = tuple((number, *key) for number, found in named for key in found) if named else None
    return Released(released[0].entry_number, whole, integers, keys)


def split_release(
    entry_number: int,
    integers: Mapping[str, tuple[int, ...]],
    certificates: Sequence[Certificate],
    keys: Sequence[CellKey] | None = None,
) -> list[Released]:
    """The parts of a stored bundle."""
    return [
        Released(
            entry_number,
            certificate,
            {measured.name: integers[name_bundle_part(number, measured.name)] for measured in certificate.measurements},
            tuple(key[1:] for key in keys or () if key[0] == number) if certificate.cells is None else None,
        )
        for number, certificate in enumerate(certificates)
    ]
