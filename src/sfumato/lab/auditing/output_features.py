"""Numbers that the search computes from an output: its entries, sums, differences, low bits and likelihood scores."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise

import numpy as np

from sfumato.lab.auditing.sampled_runs import BoolArray, FloatArray, IntArray, Runs

MOST_PAIRED = 6  # entries of which all pairs are looked at; of more entries, neighbours and the first with the last
RARE = 0.01  # an entry that fewer of the runs have is not looked at on its own
BINS = 24  # of the histograms that a likelihood score is made from

Values = tuple[FloatArray, BoolArray]  # a number for each run, and which runs have one


@dataclass(frozen=True, slots=True)
class Feature:
    """A number of an output, and how to say which."""

    text: str
    compute: Callable[[Runs], Values]


def list_features(first: Runs, second: Runs) -> Iterator[Feature]:
    """The features worth looking at. `first` and `second` are runs that are used for nothing else."""
    paths = _find_common_paths(first, second)
    for path in paths:
        yield Feature(_name_entry(path), _read(path))
        yield Feature(f"the exponent of the lowest bit of {_name_entry(path)}", _find_lowest_bit(path))
    for one, two in _list_pairs(paths):
        yield Feature(f"{_name_entry(one)} minus {_name_entry(two)}", _combine(one, two, -1.0))
        yield Feature(f"{_name_entry(one)} plus {_name_entry(two)}", _combine(one, two, 1.0))
    if len(paths) > 1:
        yield Feature("the sum of all numbers", _reduce(paths, np.sum))
        yield Feature("the largest number", _reduce(paths, np.max))
        yield Feature("the smallest number", _reduce(paths, np.min))
        yield Feature("the number of numbers", _count(paths))
        yield _score_entries(first, second, paths)
    yield _score_codes("output", first, second, lambda runs: runs.outputs)
    yield _score_codes("structure", first, second, lambda runs: runs.structures)
    for path in sorted({*first.texts, *second.texts})[:8]:
        yield _score_codes(f"text at {path or 'the top'}", first, second, partial(Runs.text, path=path))


def _name_entry(path: str) -> str:
    return f"output{path}" if path.startswith(("[", ".")) else path or "the output"


def _find_common_paths(first: Runs, second: Runs) -> list[str]:
    """Entries that enough runs have, in the order in which they appear."""
    shares = {
        path: max(float(runs.number(path)[1].mean()) for runs in (first, second))
        for path in {**first.numbers, **second.numbers}
    }
    return [path for path, share in shares.items() if share >= RARE][:64]


def _list_pairs(paths: list[str]) -> list[tuple[str, str]]:
    if len(paths) <= MOST_PAIRED:
        return list(combinations(paths, 2))
    return [*pairwise(paths[:32]), (paths[0], paths[-1])]


def _read(path: str) -> Callable[[Runs], Values]:
    return lambda runs: runs.number(path)


def _combine(one: str, two: str, sign: float) -> Callable[[Runs], Values]:
    def compute(runs: Runs) -> Values:
        (left, has_left), (right, has_right) = runs.number(one), runs.number(two)
        with np.errstate(invalid="ignore", over="ignore"):
            return left + sign * right, has_left & has_right

    return compute


def _reduce(paths: list[str], reduce: Callable[..., FloatArray]) -> Callable[[Runs], Values]:
    def compute(runs: Runs) -> Values:
        columns = [runs.number(path) for path in paths]
        present = np.all([has for _, has in columns], axis=0)
        with np.errstate(invalid="ignore", over="ignore"):
            return reduce(np.array([values for values, _ in columns]), axis=0), present

    return compute


def _count(paths: list[str]) -> Callable[[Runs], Values]:
    def compute(runs: Runs) -> Values:
        found = np.sum([runs.number(path)[1] for path in paths], axis=0).astype(np.float64)
        return found, np.ones(runs.count, np.bool_)

    return compute


def _find_lowest_bit(path: str) -> Callable[[Runs], Values]:
    """The exponent e of the lowest bit: the number is an odd multiple of 2**e. It shows the lattice of a number."""

    def compute(runs: Runs) -> Values:
        values, present = runs.number(path)
        usable = present & np.isfinite(values) & (values != 0)
        mantissa, exponent = np.frexp(np.where(usable, values, 1.0))
        whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
        lowest = np.log2((whole & -whole).astype(np.float64))
        return exponent - 53 + lowest, usable

    return compute


def _score_entries(first: Runs, second: Runs, paths: list[str]) -> Feature:
    """The sum of the log-likelihood ratios of all entries, each from a histogram of the given runs."""
    tables: list[tuple[str, FloatArray, FloatArray]] = []
    for path in paths:
        columns = [values[has & np.isfinite(values)] for values, has in (first.number(path), second.number(path))]
        if min(column.size for column in columns) < 2 * BINS:
            continue
        edges = np.unique(np.quantile(np.concatenate(columns), np.linspace(0, 1, BINS + 1)[1:-1]))
        counts = [
            np.bincount(np.searchsorted(edges, column), minlength=edges.size + 1) + 0.5
            for column in columns
        ]  # fmt: skip
        tables.append((path, edges, np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())))

    def compute(runs: Runs) -> Values:
        score = np.zeros(runs.count)
        for path, edges, ratios in tables:
            values, present = runs.number(path)
            score += np.where(present & np.isfinite(values), ratios[np.searchsorted(edges, values)], 0.0)
        return score, np.ones(runs.count, np.bool_)

    return Feature("the likelihood score of all numbers (first dataset over second)", compute)


def _score_codes(what: str, first: Runs, second: Runs, codes_of: Callable[[Runs], IntArray]) -> Feature:
    """How much likelier an output (or structure, or text) was on the first dataset, in the given runs."""
    size = 2 + max(int(codes_of(runs).max(initial=0)) for runs in (first, second))
    counts = [np.bincount(codes_of(runs) + 1, minlength=size + 1) + 0.5 for runs in (first, second)]
    ratios = np.log(counts[0] / first.count) - np.log(counts[1] / second.count)

    def compute(runs: Runs) -> Values:
        codes = codes_of(runs) + 1
        known = codes < ratios.size
        return np.where(known, ratios[np.where(known, codes, 0)], 0.0), np.ones(runs.count, np.bool_)

    return Feature(f"the likelihood score of the {what} (first dataset over second)", compute)
