"""Compute a recorded release again from its bytes: key by key and entry by entry, without the kernel's release."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from math import isqrt

import numpy as np

from sfumato.kernel.key_rounds import KeyRounds
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise
from sfumato.kernel.release import Released
from sfumato.lab.auditing.recorded_release import ExactIntegers, RecordedEntropy

LARGEST = 2**63 - 1  # a released integer fits 64 bits
WEIGHT = 2**16  # of the only key of a person


def find_keys_again(
    rule: KeyRounds, holdings: Sequence[tuple[int, int]], cells: int, tape: RecordedEntropy
) -> list[int]:
    """The cells that two rounds find, in plain Python: person by person and key by key."""
    first_noise, second_noise = rule.rounds
    weights = _add_weights(holdings, range(cells))
    first = {cell: weights[cell] + int(drawn) for cell, drawn in enumerate(first_noise.draw(cells, tape))}
    held = [cell for cell in range(cells) if weights[cell]]
    early = [cell for cell in held if first[cell] >= rule.early_threshold]
    again = [cell for cell in held if rule.hope <= first[cell] < rule.early_threshold]
    weights = _add_weights(holdings, again)
    second = {
        cell: weights[cell] + int(drawn) for cell, drawn in zip(again, second_noise.draw(len(again), tape), strict=True)
    }
    return sorted([*early, *(cell for cell in again if 2 * second[cell] + first[cell] >= rule.threshold)])


def _add_weights(holdings: Sequence[tuple[int, int]], cells: Collection[int]) -> dict[int, int]:
    """n of these cells weigh 1/sqrt(n) each for a person who holds them, rounded down to steps of 2**-16."""
    taken = set(cells)
    people = Counter(person for person, cell in holdings if cell in taken)
    weights = dict.fromkeys(cells, 0)
    for person, cell in holdings:
        if cell in taken:
            weights[cell] += isqrt(WEIGHT**2 // people[person])
    return weights


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
        if measured.key_rounds is not None:
            cells = find_keys_again(measured.key_rounds, exact.holdings or (), len(names), replayed)
            if {repr(names[cell]) for cell in cells} != {repr(key) for key in shown}:
                yield f"{measured.name}: the released keys are not those that the two rounds find."
                return
            if set(released.integers[measured.name]) - {measured.threshold}:
                yield f"{measured.name}: something of a key's weight is released."
            continue
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
