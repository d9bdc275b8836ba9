"""Compute a recorded release again from its bytes: key by key and entry by entry, without the kernel's release."""

from collections.abc import Iterator

import numpy as np

from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise
from sfumato.kernel.release import Released
from sfumato.lab.auditing.recorded_release import ExactIntegers, RecordedEntropy

LARGEST = 2**63 - 1  # a released integer fits 64 bits


def check_release(released: Released, exact: ExactIntegers, tape: RecordedEntropy) -> Iterator[str]:
    """The faults of a release: every integer is an exact one plus a new draw of the certified noise.

    Undeclared keys are drawn first. A key is released if a counted person holds it and its noisy number of people
    reaches the threshold. A private choice reads as many bytes as its coins need, so what follows it is not computed.
    """
    replayed = tape.copy()
    names: list[object] = list(range(released.certificate.cells or 0)) if exact.keys is None else list(exact.keys)
    cells = list(range(len(names)))
    shown: list[object] = names if released.keys is None else list(released.keys)
    for measured in sorted(released.certificate.measurements, key=lambda one: one.threshold is None):
        if not isinstance(measured.noise, LaplaceNoise | GaussianNoise | BoxNoise):
            return
        width = measured.width
        before = np.array(exact.integers[measured.name], object).reshape(-1, width)[cells]
        drawn = np.array(measured.noise.draw(before.size, replayed), object).reshape(before.shape)
        noisy = np.maximum(np.minimum(before + drawn, LARGEST), -LARGEST)
        if measured.threshold is not None:
            passing = [row for row in range(len(cells)) if before[row, 0] > 0 and noisy[row, 0] >= measured.threshold]
            cells, noisy = [cells[row] for row in passing], noisy[passing]
            if {repr(names[cell]) for cell in cells} != {repr(key) for key in shown}:
                yield f"{measured.name}: the released keys are not those whose noisy number reaches the threshold."
                return
        found = np.array(released.integers[measured.name], object).reshape(-1, width)
        places = {repr(key): row for row, key in enumerate(shown)}
        if len(found) != len(cells) or any(
            found[places[repr(names[cell])]].tolist() != noisy[row].tolist() for row, cell in enumerate(cells)
        ):
            yield f"{measured.name}: a released integer is not the exact one plus the certified noise."
