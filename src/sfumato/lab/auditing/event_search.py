"""Find the events that distinguish two datasets best. The runs of the search are used for nothing else."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from sfumato.lab.auditing.output_features import Feature, Values, choose_texts, list_features
from sfumato.lab.auditing.output_parts import write_repr
from sfumato.lab.auditing.sampled_runs import BoolArray, Codes, FloatArray, IntArray, Runs, Vocabulary
from sfumato.lab.auditing.tested_claims import TestedClaim, estimate_limits

DEVIATIONS = (2.4, 5.3)  # of the limits that the search guesses: for the 95 % bound, and for a verdict
MOST_EVENTS = len(DEVIATIONS) + 1  # one for each, and one for the claim
FREQUENT = 200  # outputs, structures and texts that are tried one by one
GRID = np.linspace(0, 1, 129)
FEW = np.array([1, 2, 3, 5, 8, 15, 30, 60, 120, 250, 500])  # thresholds with so many runs beyond them
INTERVAL_ENDS = 33


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """A set of outputs, in words and as a test of runs. `likelier` is the dataset (0 or 1) where it happens more."""

    text: str
    holds: Callable[[Runs], BoolArray]
    likelier: int


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Events of one kind: how often each happened on the two datasets, and how to make the event at a place."""

    hits: tuple[FloatArray, FloatArray]
    make: Callable[[int], tuple[str, Callable[[Runs], BoolArray]]]
    complements: bool = True  # whether "not" gives other events


def find_events(runs: tuple[Runs, Runs], words: Vocabulary, claim: TestedClaim) -> list[Event]:
    """At most MOST_EVENTS events, best first: chosen among all families, in both directions, with complements.

    One part of the runs fits thresholds and scores; the other part chooses among the events.
    """
    fit = [part.select(np.arange(0, part.count, 2)) for part in runs]
    choose = (runs[0].select(np.arange(1, runs[0].count, 2)), runs[1].select(np.arange(1, runs[1].count, 2)))
    counts = choose[0].count
    best: list[tuple[float, Event] | None] = [None] * MOST_EVENTS
    for family in _list_families((fit[0], fit[1]), choose, words):
        if not family.hits[0].size:
            continue
        for negated in (False, True) if family.complements else (False,):
            hits = tuple(counts - side if negated else side for side in family.hits)
            for likelier in (0, 1):
                more, less = hits[likelier], hits[1 - likelier]
                for slot, scores in enumerate(_score(more, less, counts, claim)):
                    place = int(np.argmax(scores))
                    found = best[slot]
                    if found is None or scores[place] > found[0]:
                        best[slot] = float(scores[place]), _make_event(family, place, negated, likelier)
    events: list[Event] = []
    for chosen in best:
        if chosen is not None and chosen[1].text not in [event.text for event in events]:
            events.append(chosen[1])
    return events


def _score(more: FloatArray, less: FloatArray, counts: int, claim: TestedClaim) -> list[FloatArray]:
    """How good each event is for each of the purposes."""
    guesses = []
    for deviations in DEVIATIONS:
        low, _ = estimate_limits(more, counts, deviations)
        _, high = estimate_limits(less, counts, deviations)
        # where no bound is above zero, prefer the largest difference
        guesses.append(claim.bounds(low, high) + 1e-9 * (low - high))
    excess = guesses[1] if claim.value is None else claim.excess(more / counts, less / counts, counts)
    return [*guesses, excess]


def _make_event(family: Family, place: int, negated: bool, likelier: int) -> Event:
    text, holds = family.make(place)
    if not negated:
        return Event(text, holds, likelier)
    return Event(f"not ({text})", lambda runs: ~holds(runs), likelier)


def _list_families(fit: tuple[Runs, Runs], choose: tuple[Runs, Runs], words: Vocabulary) -> Iterator[Family]:
    yield _list_frequent_codes(
        "the output has the structure", fit, choose, lambda runs: runs.structures, words.structures
    )
    yield _list_frequent_codes("the output is exactly", fit, choose, lambda runs: runs.outputs, words.outputs)
    for path in choose_texts(*fit, words.texts):
        what = f"the text {path or 'of the output'} is"
        yield _list_frequent_codes(what, fit, choose, partial(Runs.text, path=path), words.texts)
    for feature in list_features(*fit, words.texts):
        computed = tuple(feature.compute(part) for part in choose)
        fitted = [_drop_missing(feature.compute(part)) for part in fit]
        yield _list_special_values(feature, computed)
        thresholds = _choose_thresholds(np.concatenate(fitted))
        yield from _list_threshold_families(feature, computed, thresholds)
        yield _list_equal_values(feature, computed, fitted)


def _list_frequent_codes(
    what: str,
    fit: tuple[Runs, Runs],
    choose: tuple[Runs, Runs],
    codes_of: Callable[[Runs], IntArray],
    codes: Codes,
) -> Family:
    """Events "is this output", for the outputs that the fitting runs had most often."""
    names = codes.values
    totals = sum(np.bincount(codes_of(part) + 1, minlength=len(names) + 1) for part in fit)[1:]  # type: ignore[index]
    often = np.argsort(-totals, kind="stable")[:FREQUENT]
    often = often[totals[often] > 0]
    hits = tuple(
        np.bincount(codes_of(part) + 1, minlength=len(names) + 1)[1:][often].astype(np.float64) for part in choose
    )

    def make(place: int) -> tuple[str, Callable[[Runs], BoolArray]]:
        wanted = int(often[place])
        return f"{what} {_shorten(names[wanted])}", lambda runs: codes_of(runs) == wanted

    return Family((hits[0], hits[1]), make)


def _shorten(value: Hashable) -> str:
    """A value of the vocabulary as text. The exact form of a number is its bits: show the number."""
    if isinstance(value, tuple):
        return ", ".join(_shorten(part) for part in value)[:200]
    if isinstance(value, bytes):
        numbers = np.frombuffer(value, np.float64).tolist() if len(value) % 8 == 0 else [value.hex()]
        return ", ".join(f"{number!r}" for number in numbers[:6])
    return (value if isinstance(value, str) else write_repr(value))[:200]


def _drop_missing(values: Values) -> FloatArray:
    column, present = values
    usable: FloatArray = column[present & ~np.isnan(column)]
    return usable


def _choose_thresholds(values: FloatArray) -> FloatArray:
    """Quantiles, and values with only a few runs beyond them on either side."""
    if not values.size:
        return values
    ordered = np.sort(values)
    few = FEW[ordered.size > FEW]
    places = np.concatenate([np.round(GRID * (ordered.size - 1)).astype(np.int64), few, ordered.size - 1 - few])
    return np.unique(ordered[places])


def _list_threshold_families(
    feature: Feature, computed: tuple[Values, ...], thresholds: FloatArray
) -> Iterator[Family]:
    """Events "at most", "more than" and "between", at all thresholds."""
    if not thresholds.size:
        return
    ordered = [np.sort(_drop_missing(values)) for values in computed]
    upto = [np.searchsorted(column, thresholds, "right").astype(np.float64) for column in ordered]

    def make_upto(place: int) -> tuple[str, Callable[[Runs], BoolArray]]:
        limit = float(thresholds[place])
        return f"{feature.text} is at most {limit!r}", _test(feature, lambda values: values <= limit)

    def make_beyond(place: int) -> tuple[str, Callable[[Runs], BoolArray]]:
        limit = float(thresholds[place])
        return f"{feature.text} is more than {limit!r}", _test(feature, lambda values: values > limit)

    yield Family((upto[0], upto[1]), make_upto, complements=False)
    yield Family((ordered[0].size - upto[0], ordered[1].size - upto[1]), make_beyond, complements=False)
    ends = np.unique(np.round(np.linspace(0, thresholds.size - 1, INTERVAL_ENDS)).astype(np.int64))
    lower, upper = np.triu_indices(ends.size, 1)
    lower, upper = ends[lower], ends[upper]

    def make_between(place: int) -> tuple[str, Callable[[Runs], BoolArray]]:
        low, high = float(thresholds[lower[place]]), float(thresholds[upper[place]])
        text = f"{feature.text} is more than {low!r} and at most {high!r}"
        return text, _test(feature, lambda values: (values > low) & (values <= high))

    yield Family((upto[0][upper] - upto[0][lower], upto[1][upper] - upto[1][lower]), make_between)


def _list_equal_values(feature: Feature, computed: tuple[Values, ...], fitted: list[FloatArray]) -> Family:
    """Events "equals", for the values that the fitting runs had most often. Equal entries have the difference 0."""
    values, counts = np.unique(np.concatenate(fitted), return_counts=True)
    often = values[np.argsort(-counts, kind="stable")[:FREQUENT]]
    hits = []
    for column in computed:
        ordered = np.sort(_drop_missing(column))
        found = np.searchsorted(ordered, often, "right") - np.searchsorted(ordered, often, "left")
        hits.append(found.astype(np.float64))

    def make(place: int) -> tuple[str, Callable[[Runs], BoolArray]]:
        wanted = float(often[place])
        return f"{feature.text} equals {wanted!r}", _test(feature, lambda found: found == wanted)

    return Family((hits[0], hits[1]), make)


def _list_special_values(feature: Feature, computed: tuple[Values, ...]) -> Family:
    """Events "is there", "is NaN", "is infinite", "is a whole number", "has a minus sign"."""
    tests: list[tuple[str, Callable[[FloatArray], BoolArray]]] = [
        ("is in the output", lambda values: np.ones(values.size, np.bool_)),
        ("is NaN", np.isnan),
        ("is infinite", np.isinf),
        ("is a whole number", lambda values: np.isfinite(values) & (values == np.floor(values))),
        ("has a minus sign", np.signbit),
    ]
    hits = [np.array([float((test(column) & present).sum()) for _, test in tests]) for column, present in computed]

    def make(place: int) -> tuple[str, Callable[[Runs], BoolArray]]:
        text, test = tests[place]
        return f"{feature.text} {text}", _test(feature, test)

    return Family((hits[0], hits[1]), make)


def _test(feature: Feature, test: Callable[[FloatArray], BoolArray]) -> Callable[[Runs], BoolArray]:
    def holds(runs: Runs) -> BoolArray:
        values, present = feature.compute(runs)
        return present & test(values)

    return holds
