"""Watches of a count: their charge, their noise, and how often they say True, compared with exact probabilities."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.watch import Watch, begin_watch, plan_count
from sfumato.catalog.dataset import Table
from sfumato.errors import SfumatoError
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.losses import PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import ExactAggregates
from sfumato.lab.auditing.binomial_limits import compute_tail
from sfumato.lab.auditing.independent_prices import covers_losses
from sfumato.lab.auditing.independent_sensitivities import find_least
from sfumato.lab.auditing.plain_reading import PinnedTables
from sfumato.lab.auditing.throwaway_desk import make_throwaway_ledger, require_throwaway
from sfumato.lab.distributions.crossings import find_first_crossing
from sfumato.ledger.ledger import Ledger

WATCHES = 150
ABOVE = 50  # the threshold, in people or rows
EPSILON = Decimal(1)
QUESTIONS = 3  # of each watch
SEQUENCES = 1_500
SAME_VALUES = 8
ALARM = 1e-9
_ROUNDING = 1e-9


class GivenCounts:
    """An engine that gives a count, and notes how often it is read."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.count = 0
        self.times = 0

    def check(self, plan: BoundedPlan) -> None:
        """Every plan is accepted."""

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        self.times += 1
        return ExactAggregates(plan, {plan.measurements[0].name: [self.count]})

    def close(self) -> None:
        """Nothing is open."""


def check_watch(desk: Desk, sql: str, tables: Mapping[str, Table], pinned: PinnedTables) -> Iterator[str]:
    """The faults of a watch of this question. A question that no watch takes has none."""
    require_throwaway(desk.ledger)
    try:
        plan = plan_count(desk, sql).plan
    except SfumatoError:
        return
    with make_throwaway_ledger(desk.dataset.population, desk.ledger.totals().limit) as ledger:
        counts = GivenCounts(ledger)
        here = replace(desk, ledger=ledger, engine=counts)
        watch = _begin(here, sql)
        if counts.times:
            yield "A watch reads the data before its first question."
        if not covers_losses(ledger.totals().spent, [PureDP(EPSILON)]):
            yield "A watch is charged less than its epsilon."
        yield from _check_scales(plan, watch, tables, pinned)
        values = list_values(watch.sequence)
        firsts = Counter(_find_first(_begin(here, sql), counts, sql) for _ in range(WATCHES))
        yield from _compare(watch.sequence, values, firsts)
        yield from _check_sequences(watch.sequence)
        yield from _check_end(here, counts, sql)


def _begin(desk: Desk, sql: str) -> Watch:
    return begin_watch(lambda: nullcontext(desk), sql, ABOVE, EPSILON, QUESTIONS, DEFAULT_ANALYST)


def _check_scales(plan: BoundedPlan, watch: Watch, tables: Mapping[str, Table], pinned: PinnedTables) -> Iterator[str]:
    """One person moves the threshold once, and each value once; under replace-one, values may move both ways."""
    moved = find_least(plan, plan.measurements[0].quantity, tables, pinned).l1
    noise, sides = watch.sequence.noise, 1 if plan.unit.neighbours is Neighbours.ADD_REMOVE else 2
    if moved / noise.threshold_scale + sides * moved / noise.value_scale > Fraction(EPSILON):
        yield "The noise of a watch does not pay for what one unit moves."


def list_values(sequence: AboveThreshold) -> list[int]:
    """Counts in steps, around the threshold: each is above it with a probability that is neither small nor large."""
    noise = sequence.noise
    bar = sequence.threshold + noise.rise
    return [bar - int(noise.value_scale), bar, bar + int(noise.threshold_scale / 2)]


def _find_first(watch: Watch, counts: GivenCounts, sql: str) -> int:
    """The place of the first True, or the number of questions."""
    values = list_values(watch.sequence)
    for place, counts.count in enumerate(values):
        if watch.ask(sql):
            return place
    return len(values)


def _check_sequences(like: AboveThreshold) -> Iterator[str]:
    """Many sequences of equal values, without a ledger: they show whether the threshold has one noise for all."""
    values = [like.threshold + like.noise.rise] * SAME_VALUES
    firsts: Counter[int] = Counter()
    for _ in range(SEQUENCES):
        sequence = AboveThreshold(like.threshold, like.sensitivity, like.epsilon, like.monotonic, like.noise)
        firsts[next((place for place, value in enumerate(values) if sequence.check(value, SYSTEM)), SAME_VALUES)] += 1
    yield from _compare(like, values, firsts)


def _compare(sequence: AboveThreshold, values: list[int], firsts: Counter[int]) -> Iterator[str]:
    bar, runs = sequence.threshold + sequence.noise.rise, firsts.total()
    law = find_first_crossing(values, bar, sequence.noise.threshold_scale, sequence.noise.value_scale)
    for place, chance in enumerate(law):
        hits = firsts[place]
        above = compute_tail(hits, runs, min(1.0, float(chance.high) + _ROUNDING))
        below = compute_tail(runs - hits, runs, min(1.0, 1 - float(chance.low) + _ROUNDING))
        if min(above, below) < ALARM:
            text = f"question {place + 1}" if place < len(values) else "none"
            yield f"A watch says True first at {text} with another probability than certified: {hits} of {runs}."


def _check_end(desk: Desk, counts: GivenCounts, sql: str) -> Iterator[str]:
    """A watch that said True says nothing more."""
    watch = _begin(desk, sql)
    counts.count = list_values(watch.sequence)[-1] + 10**9 * int(watch.sequence.sensitivity)
    if not watch.ask(sql):
        yield "A watch says False of a count far above its threshold."
        return
    with suppress(SfumatoError):
        watch.ask(sql)
        yield "A watch goes on after it said True."
