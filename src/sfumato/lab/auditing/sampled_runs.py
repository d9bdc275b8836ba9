"""The outputs of many runs of a mechanism on one dataset, as columns that events are evaluated on."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.lab.auditing.canonical_outputs import EXACT, MODULUS, REMAINDER, Observed, observe, run_and_observe

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

BLOCK = 1_000  # runs on one dataset before the other has its turn
MOST_PATHS = 512  # numbers, and texts, that are looked at one by one; the exact output always has all of them


class Codes:
    """Numbers for outputs, structures and texts: equal ones have equal numbers, on both datasets."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.values: list[Hashable] = []

    def find(self, value: Hashable) -> int:
        """The number of a value; a new value gets the next number."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """What the numbers in the columns of both datasets stand for."""

    structures: Codes
    outputs: Codes
    texts: Codes


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Runs on one dataset. A number that an output does not have is marked absent in `present`."""

    count: int
    structures: IntArray
    outputs: IntArray
    numbers: dict[str, FloatArray]
    present: dict[str, BoolArray]
    texts: dict[str, IntArray]  # -1: absent
    unseen: frozenset[str] = frozenset()  # what the audit did not look into

    def select(self, chosen: BoolArray | IntArray) -> "Runs":
        """Some of the runs."""
        structures = self.structures[chosen]
        return Runs(
            structures.size,
            structures,
            self.outputs[chosen],
            {path: column[chosen] for path, column in self.numbers.items()},
            {path: column[chosen] for path, column in self.present.items()},
            {path: column[chosen] for path, column in self.texts.items()},
            self.unseen,
        )

    def number(self, path: str) -> tuple[FloatArray, BoolArray]:
        """The numbers at a path, and which runs have one."""
        if path not in self.numbers:
            return np.zeros(self.count), np.zeros(self.count, np.bool_)
        return self.numbers[path], self.present[path]

    def text(self, path: str) -> IntArray:
        """The texts at a path, by their number in the vocabulary."""
        return self.texts.get(path, np.full(self.count, -1, np.int64))


Batched = Callable[[object, int], object]


def sample_runs(
    mechanism: Callable[[object], object], datasets: tuple[object, object], samples: int
) -> tuple[tuple[Runs, Runs], Vocabulary]:
    """Run the mechanism `samples` times on each dataset, in turns."""
    seen: tuple[list[Observed], list[Observed]] = ([], [])
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    while len(seen[1]) < samples:
        for data, observed in zip(datasets, seen, strict=True):
            block = min(BLOCK, samples - len(observed))
            observed.extend(run_and_observe(mechanism, data).pack(known) for _ in range(block))
    if len({output.exact for side in seen for output in side}) == 1 and seen[0][0].structure == "raises TypeError":
        hint = f"The message is: {seen[0][0].texts.get('message', '')}. mechanism(data) takes one dataset."
        raise InvalidParameter("mechanism", "must accept the datasets", "the same TypeError in every run", hint)
    return collect_runs(seen)


def sample_batches(
    mechanism: Batched, datasets: tuple[object, object], samples: int
) -> tuple[tuple[Runs, Runs], Vocabulary]:
    """Call `mechanism(data, samples)` once for each dataset: it returns one output per run."""
    first, second = (_read_batch(_call_once(mechanism, data, samples), samples) for data in datasets)
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray) and _can_compare(first, second):
        return collect_arrays(first, second)
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    seen = tuple([observe(output).pack(known) for output in outputs] for outputs in (first, second))
    return collect_runs((seen[0], seen[1]))


def _call_once(mechanism: Batched, data: object, samples: int) -> object:
    """One call gives all runs, so an error would be one observation, not `samples`: it is refused."""
    try:
        return mechanism(data, samples)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        hint = "Without batch=True every run is a call of its own, and its errors are part of the output."
        raise InvalidParameter("mechanism", "must not raise with batch=True", type(error).__name__, hint) from error


def _read_batch(outputs: object, samples: int) -> Sequence[object] | npt.NDArray[np.generic]:
    scalar = isinstance(outputs, np.ndarray) and outputs.ndim == 0
    if scalar or not isinstance(outputs, list | tuple | np.ndarray) or len(outputs) != samples:
        hint = "mechanism(data, count) returns a list or an array with one output per run."
        raise InvalidParameter(
            "mechanism", f"must return {samples} outputs with batch=True", describe_kind(outputs), hint
        )
    return outputs


def _can_compare(first: npt.NDArray[np.generic], second: npt.NDArray[np.generic]) -> bool:
    """Can both arrays be read as columns: numbers of one type and one shape?"""
    plain = type(first) is np.ndarray and type(second) is np.ndarray and first.size > 0
    simple = first.dtype.kind in "biuf" and first.dtype.itemsize <= 8  # longer floats have bits without a meaning
    return plain and simple and first.dtype == second.dtype and first.shape[1:] == second.shape[1:]


def collect_arrays(
    first: npt.NDArray[np.generic], second: npt.NDArray[np.generic]
) -> tuple[tuple[Runs, Runs], Vocabulary]:
    """Columns of two arrays of one type, with one row per run."""
    words = Vocabulary(Codes(), Codes(), Codes())
    words.structures.find(f"{first.dtype}, shape {first.shape[1:]}")
    both = np.ascontiguousarray(np.concatenate([first, second]).reshape(len(first) + len(second), -1))
    bits = both.view(np.dtype((np.void, both.dtype.itemsize * both.shape[1]))).reshape(-1)
    _, places, outputs = np.unique(bits, return_index=True, return_inverse=True)
    for place in places:
        words.outputs.find(both[place].tobytes())
    paths = [""] if first.ndim == 1 else [f"[{place}]" for place in range(both.shape[1])]
    numbers = {path: both[:, place].astype(np.float64) for place, path in enumerate(paths)}
    if first.dtype.kind in "iu":
        for place, path in enumerate(paths):
            if np.abs(numbers[path]).max() >= EXACT:
                numbers[path + REMAINDER] = (both[:, place] % MODULUS).astype(np.float64)
    whole = Runs(
        len(both),
        np.zeros(len(both), np.int64),
        outputs.reshape(-1).astype(np.int64),
        numbers,
        {path: np.ones(len(both), np.bool_) for path in numbers},
        {},
    )
    on_first = np.arange(len(both)) < len(first)
    return (whole.select(on_first), whole.select(~on_first)), words


@dataclass(frozen=True, slots=True)
class Columns:
    """The paths that become columns, of both datasets."""

    numbers: tuple[str, ...]
    texts: tuple[str, ...]


def collect_runs(seen: tuple[list[Observed], list[Observed]]) -> tuple[tuple[Runs, Runs], Vocabulary]:
    """Columns of observed outputs. The runs that search choose the columns: the runs that test must not."""
    words = Vocabulary(Codes(), Codes(), Codes())
    columns = _choose_columns(seen)
    return (_collect(seen[0], words, columns), _collect(seen[1], words, columns)), words


def _choose_columns(seen: tuple[list[Observed], list[Observed]]) -> Columns:
    """The first paths of the searching runs, those of the two datasets in turns."""
    numbers: dict[str, None] = {}
    texts: dict[str, None] = {}
    for pair in zip(*(side[: count_searched(len(side))] for side in seen), strict=True):
        for output in pair:
            numbers.update(dict.fromkeys(output.numbers))
            texts.update(dict.fromkeys(output.texts))
        if len(numbers) >= MOST_PATHS and len(texts) >= MOST_PATHS:
            break
    return Columns(tuple(numbers)[:MOST_PATHS], tuple(texts)[:MOST_PATHS])


def count_searched(samples: int) -> int:
    """How many of the runs, from the first on, search for events. The others test them, and choose nothing."""
    return samples // 2


def _collect(observed: list[Observed], words: Vocabulary, columns: Columns) -> Runs:
    count = len(observed)
    numbers = {path: np.zeros(count) for path in columns.numbers}
    present = {path: np.zeros(count, np.bool_) for path in columns.numbers}
    texts = {path: np.full(count, -1, np.int64) for path in columns.texts}
    skipped: set[str] = set()
    structures, outputs = np.empty(count, np.int64), np.empty(count, np.int64)
    for row, output in enumerate(observed):
        structures[row] = words.structures.find(output.structure)
        outputs[row] = words.outputs.find(output.exact)
        for path, number in output.numbers.items():
            if path in numbers:
                numbers[path][row], present[path][row] = number, True
            elif len(numbers) == MOST_PATHS:
                skipped.add(f"numbers after the first {MOST_PATHS} of an output, one by one")
        for path, text in output.texts.items():
            if path in texts:
                texts[path][row] = words.texts.find(text)
            elif len(texts) == MOST_PATHS:
                skipped.add(f"texts after the first {MOST_PATHS} of an output, one by one")
    unseen = frozenset(skipped).union(*(output.unseen for output in observed))
    return Runs(count, structures, outputs, numbers, present, texts, unseen)
