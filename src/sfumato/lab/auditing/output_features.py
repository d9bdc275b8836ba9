"""Numbers that the search computes from an output: its entries, sums, differences, low bits and likelihood scores."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise

import numpy as np

from sfumato.lab.auditing.canonical_outputs import EXACT, MODULUS, REMAINDER
from sfumato.lab.auditing.sampled_runs import BoolArray, Codes, FloatArray, IntArray, Runs
from sfumato.lab.auditing.text_numbers import Reader, list_text_readers, measure_length, read_first_numeral

MOST_PAIRED = 6  # entries of which all pairs are looked at; of more entries, neighbours and the first with the last
RARE = 0.01  # an entry that fewer of the runs have is not looked at on its own
MOST_SEARCHED = 64  # entries that are searched in depth: those that differ most in the fitting runs
MOST_TEXTS = 8
MOST_DIVIDED = 8  # entries whose remainders are searched
MODULI = (2, 3, 4, 5, 8, 10, 16)
MOST_COMPARED = 32  # entries of which all pairs are compared for equality
BINS = 24  # of the histograms that a likelihood score is made from

Values = tuple[FloatArray, BoolArray]  # a number for each run, and which runs have one


@dataclass(frozen=True, slots=True)
class Feature:
    """A number of an output, and how to say which."""

    text: str
    compute: Callable[[Runs], Values]


def list_features(first: Runs, second: Runs, texts: Codes) -> Iterator[Feature]:
    """The features worth looking at. `first` and `second` are runs that are used for nothing else."""
    paths = _find_common_paths(first, second)
    for path in paths:
        yield Feature(_name_entry(path), _read(path))
        yield Feature(f"the exponent of the lowest bit of {_name_entry(path)}", _find_lowest_bit(path))
    for one, two in [*_list_pairs(paths), *_find_equal_pairs(first, second, paths)]:
        yield Feature(f"{_name_entry(one)} minus {_name_entry(two)}", _combine(one, two, -1.0))
        yield Feature(f"{_name_entry(one)} plus {_name_entry(two)}", _combine(one, two, 1.0))
    yield from _list_remainders(first, second, paths)
    if len(paths) > 1:
        yield Feature("the sum of all numbers", _reduce(paths, np.sum))
        yield Feature("the largest number", _reduce(paths, np.max))
        yield Feature("the smallest number", _reduce(paths, np.min))
        yield Feature("the number of numbers", _count(paths))
        yield _score_entries(first, second, paths)
    yield _score_codes("output", first, second, lambda runs: runs.outputs)
    yield _score_codes("structure", first, second, lambda runs: runs.structures)
    for path in choose_texts(first, second, texts):
        yield _score_codes(f"text at {path or 'the top'}", first, second, partial(Runs.text, path=path))
        for name, reader in list_text_readers(path):
            feature = Feature(f"{name} the text {path or 'of the output'}", _read_text(path, reader, texts))
            if not _is_constant(feature, first, second):
                yield feature


def choose_texts(first: Runs, second: Runs, texts: Codes) -> list[str]:
    """The texts that are searched: those that differ most between the datasets, in length, numerals or as a whole."""
    paths = sorted({*first.texts, *second.texts})
    if len(paths) <= MOST_TEXTS:
        return paths
    gaps = {}
    for path in paths:
        readers = [_read_text(path, reader, texts) for reader in (measure_length, read_first_numeral)]
        codes = [Runs.text(runs, path).astype(np.float64) for runs in (first, second)]
        sides = [(column, column >= 0) for column in codes]
        gaps[path] = max(_measure_distance(*sides), *(_measure_distance(read(first), read(second)) for read in readers))
    return sorted(sorted(paths, key=lambda path: -gaps[path])[:MOST_TEXTS])


def _name_entry(path: str) -> str:
    if path.startswith(" "):
        return f"the output{path}"
    return f"output{path}" if path.startswith(("[", ".")) else path or "the output"


def _find_common_paths(first: Runs, second: Runs) -> list[str]:
    """Entries that enough runs have, in the order in which they appear."""
    shares = {
        path: max(float(runs.number(path)[1].mean()) for runs in (first, second))
        for path in {**first.numbers, **second.numbers}
    }
    common = [path for path, share in shares.items() if share >= RARE and not path.endswith(REMAINDER)]
    if len(common) <= MOST_SEARCHED:
        return common
    far = sorted(common, key=lambda path: -_measure_distance(first.number(path), second.number(path)))[:MOST_SEARCHED]
    return [path for path in common if path in set(far)]


def _measure_distance(first: Values, second: Values) -> float:
    """The largest difference of the two distribution functions (Kolmogorov and Smirnov), and of the shares present."""
    sides = [np.sort(values[has & ~np.isnan(values)]) for values, has in (first, second)]
    shares = [side.size / max(values.size, 1) for side, (values, _) in zip(sides, (first, second), strict=True)]
    points = np.concatenate(sides)
    one, two = (np.searchsorted(side, points, "right") / max(side.size, 1) for side in sides)
    return max(abs(shares[0] - shares[1]), float(np.abs(one - two).max(initial=0.0)))


def _find_equal_pairs(first: Runs, second: Runs, paths: list[str]) -> list[tuple[str, str]]:
    """Entries that are not neighbours, and that are equal more often on one of the datasets."""
    if len(paths) <= MOST_PAIRED:
        return []
    shares = {
        (one, two): [float(np.mean(runs.number(one)[0] == runs.number(two)[0])) for runs in (first, second)]
        for one, two in combinations(paths[:MOST_COMPARED], 2)
    }
    gaps = {pair: abs(one - two) for pair, (one, two) in shares.items()}
    return [pair for pair in sorted(gaps, key=lambda pair: -gaps[pair])[:4] if gaps[pair] > RARE]


def _list_remainders(first: Runs, second: Runs, paths: list[str]) -> Iterator[Feature]:
    """Whole numbers, their pairwise sums and exact digits, modulo small numbers."""
    known = dict.fromkeys(path.removesuffix(REMAINDER) for path in first.numbers if path.endswith(REMAINDER))
    candidates = list(dict.fromkeys([*known, *paths]))
    gaps = {
        path: _measure_distance(_divide(path)(first), _divide(path)(second))
        for path in candidates
        if _divide(path)(first)[1].any()
    }
    for path in sorted(gaps, key=lambda path: -gaps[path])[:MOST_DIVIDED]:
        for modulus in MODULI:
            yield Feature(f"{_name_entry(path)} modulo {modulus}", _divide(path, modulus=modulus))
    for one, two in combinations(list(gaps)[:MOST_PAIRED], 2):
        text = f"{_name_entry(one)} plus {_name_entry(two)} modulo {MODULUS}"
        for modulus in MODULI[:3]:
            yield Feature(text.replace(str(MODULUS), str(modulus)), _divide(one, two, modulus=modulus))


def _divide(*paths: str, modulus: int = MODULUS) -> Callable[[Runs], Values]:
    """The exact remainder of a sum of whole numbers. MODULUS is a multiple of every modulus."""

    def compute(runs: Runs) -> Values:
        total, usable = np.zeros(runs.count), np.ones(runs.count, np.bool_)
        for path in paths:
            values, present = runs.number(path)
            rest, exact = runs.number(path + REMAINDER)
            small = present & (np.abs(values) <= EXACT) & (values == np.floor(values))
            total += np.where(exact, rest, np.mod(np.where(small, values, 0.0), MODULUS))
            usable &= exact | small
        return np.mod(total, modulus), usable

    return compute


def _read_text(path: str, reader: Reader, texts: Codes) -> Callable[[Runs], Values]:
    def compute(runs: Runs) -> Values:
        codes = runs.text(path)
        found = [reader(str(texts.values[code])) if code >= 0 else None for code in codes.tolist()]
        present = np.array([number is not None for number in found], np.bool_)
        return np.array([0.0 if number is None else number for number in found], np.float64), present

    return compute


def _is_constant(feature: Feature, first: Runs, second: Runs) -> bool:
    sides = [feature.compute(runs) for runs in (first, second)]
    return all(np.unique(part).size <= 1 for part in (np.concatenate(side) for side in zip(*sides, strict=True)))


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
