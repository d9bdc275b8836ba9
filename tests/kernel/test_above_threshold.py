"""Above threshold: the law of every sequence of answers, exactly; and what would break it."""

import copy
import math
import os
import pickle
import threading
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scripted import Scripted

import sfumato as sf
from sfumato.accuracy import crossing_margins
from sfumato.accuracy.crossing_margins import balance_noise
from sfumato.errors import KernelFault, QueryError, SfumatoError
from sfumato.kernel import above_threshold
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.samplers import geometric


def begin(threshold, sensitivity, epsilon, monotonic=False, queries=100):
    amounts = Fraction(sensitivity), Decimal(str(epsilon))
    noise = balance_noise(*amounts, monotonic, queries)
    return above_threshold.AboveThreshold(threshold, *amounts, monotonic, noise)


def compute_crossing_margin(sequence, confidence, queries=100):
    return crossing_margins.compute_crossing_margin(sequence, confidence, queries)


def sequence_law(values, bar, on_threshold, on_values):
    """P(first True is answer k), for each k, and last P(no True): geometric noise of these ratios, exactly.

    Term by term until bar + noise is above every value, then the rest of the series in closed form.
    """
    law = [Fraction(0)] * (len(values) + 1)
    start = max(0, max(values) - bar)
    for noise in range(start):
        alive = (1 - on_threshold) * on_threshold**noise
        for k, value in enumerate(values):
            heads = on_values ** max(0, bar + noise - value)
            law[k] += alive * heads
            alive *= 1 - heads
        law[-1] += alive
    alive = [Fraction(1)]  # in powers of on_values**noise
    parts = []
    for value in values:
        tails = on_values ** (bar - value)
        parts.append([0, *(c * tails for c in alive)])
        alive = [a - tails * b for a, b in zip([*alive, 0], [0, *alive], strict=True)]
    for k, polynomial in enumerate([*parts, alive]):
        for power, c in enumerate(polynomial):
            ratio = on_threshold * on_values**power
            law[k] += c * (1 - on_threshold) * ratio**start / (1 - ratio)
    assert sum(law) == 1
    return law


def largest_ratio(law_of, moves, length, values):
    """Over all short sequences and all their neighbours, and all outcomes."""
    worst = Fraction(0)
    laws = {}

    def law(sequence):
        if sequence not in laws:
            laws[sequence] = law_of(sequence)
        return laws[sequence]

    for sequence in product(values, repeat=length):
        for move in moves(length):
            moved = tuple(a + b for a, b in zip(sequence, move, strict=True))
            for p, q in zip(law(sequence), law(moved), strict=True):
                worst = max(worst, p / q, q / p)
    return worst


def any_move(length):
    return product((-1, 0, 1), repeat=length)


def same_way(length):
    return product((0, 1), repeat=length)


@pytest.mark.parametrize("base", [Fraction(1, 2), Fraction(9, 10)], ids=str)
@pytest.mark.parametrize("monotonic", [False, True])
def test_sequences_are_private_exactly(monotonic, base):
    """All sequences of three and all their neighbours: no outcome is more than e^epsilon times likelier.

    1/scale of both noises are multiples of one unit: with base = exp(-unit) everything is rational.
    """
    noise = balance_noise(Fraction(1), Decimal(1), monotonic, 100)
    raising, helping = 1 / noise.threshold_scale, 1 / noise.value_scale
    unit = Fraction(math.gcd(raising.numerator * helping.denominator, helping.numerator * raising.denominator))
    unit /= raising.denominator * helping.denominator
    on_threshold, on_values = base ** int(raising / unit), base ** int(helping / unit)
    shifts = 1 if monotonic else 2
    allowed = 1 / (on_threshold * on_values**shifts)  # e^epsilon, as raising + shifts * helping = 1 = epsilon
    assert raising + shifts * helping == 1
    moves = same_way if monotonic else any_move
    worst = largest_ratio(lambda values: sequence_law(values, 2, on_threshold, on_values), moves, 3, range(-1, 4))
    assert worst <= allowed
    assert math.log(worst) > 0.6 * math.log(allowed)  # negative control: six tenths of the noise would be caught


@pytest.mark.parametrize("monotonic", [False, True])
def test_the_bound_is_nearly_reached(monotonic):
    """Many values that just miss and move one way, and a last one that does not move, or moves the other way."""
    noise = balance_noise(Fraction(1), Decimal(1), monotonic, 100)
    raising, helping = float(1 / noise.threshold_scale), float(1 / noise.value_scale)

    def first_true_is_last(count, early, last):
        bar = np.arange(4000)
        mass = -math.expm1(-raising) * np.exp(-raising * bar)
        with np.errstate(divide="ignore"):  # ln 0 where heads is certain
            tails = count * np.log1p(-np.exp(-helping * np.maximum(bar - early, 0)))
        return (mass * np.exp(tails) * np.exp(-helping * np.maximum(bar - last, 0))).sum()

    before = first_true_is_last(10**6, 0, 0)
    after = first_true_is_last(10**6, 1, 0 if monotonic else -1)
    assert 0.98 < math.log(before / after) <= 1 + 1e-9
    # negative control: the monotonic noise on values that move both ways
    if monotonic:
        assert math.log(before / first_true_is_last(10**6, 1, -1)) > 1.3


def test_what_would_break_it_is_caught():
    """A bare threshold, fresh noise on it for every answer, or one noise for all values: each exceeds e^epsilon."""
    x = Fraction(1, 2)
    allowed = 1 / (x * x**2)
    length, bar = 6, 4
    still, moved = (0,) * (length - 1) + (1,), (1,) * (length - 1) + (0,)

    def bare(values):
        alive, law = Fraction(1), []
        for value in values:
            heads = x ** max(0, bar - value)
            law.append(alive * heads)
            alive *= 1 - heads
        return [*law, alive]

    def fresh(values):
        """Noise on the threshold is drawn again for every answer."""
        alive, law = Fraction(1), []
        for value in values:
            heads = sequence_law([value], bar, x, x)[0]
            law.append(alive * heads)
            alive *= 1 - heads
        return [*law, alive]

    def reused(values):
        """One noise for all values: the answers depend on threshold noise - value noise, Z, alone."""
        far = 60
        law = [Fraction(0)] * (len(values) + 1)
        for z in range(-far, far):
            mass = (1 - x) / (1 + x) * x ** abs(z)
            law[next((k for k, value in enumerate(values) if value >= bar + z), len(values))] += mass
        return law

    def worst(law_of, one, two):
        pairs = list(zip(law_of(one), law_of(two), strict=True))
        return max(math.inf if not (p and q) else max(p / q, q / p) for p, q in pairs if p or q)

    assert worst(lambda values: sequence_law(values, bar, x, x), still, moved) <= allowed
    assert worst(reused, still, moved) == math.inf
    long, longer = (0,) * 300, (1,) * 299 + (0,)
    assert worst(bare, long, longer) > allowed
    assert worst(fresh, long, longer) > allowed
    assert math.log(worst(bare, long, longer)) > 10


def test_answers_follow_the_scripted_noise():
    """The threshold's noise is drawn once, a value's noise each time, and both are what the sampler gives."""
    script = bytes(SYSTEM.take(6000))
    for values in ([-100, -100, 40, 10_000], [0] * 30 + [10_000]):
        sequence, source, twin = begin(20, 2, "0.5"), Scripted(script), Scripted(script)
        noise = sequence.noise
        bar = 20 + noise.rise + int(geometric(noise.threshold_scale, 1, twin)[0])
        for value in values:
            expected = value + int(geometric(noise.value_scale, 1, twin)[0]) >= bar
            assert sequence.check(value, source) is expected
            assert source.left.size == twin.left.size
            if expected:
                break
        assert sequence.finished


def test_both_noises_count_and_equality_is_above(monkeypatch):
    """The first draw raises the threshold for all answers; each further draw raises one value. Exact to one step."""
    drawn = iter([])
    monkeypatch.setattr(above_threshold, "geometric", lambda scale, size, entropy: np.array([next(drawn)]))
    rise = begin(10, 1, 1).noise.rise
    sequence, drawn = begin(10, 1, 1), iter([7, 0, 3, 0, 3])
    assert [sequence.check(10 + rise + more, SYSTEM) for more in (6, 3, 6, 4)] == [False, False, False, True]
    assert next(drawn, None) is None
    asked = []
    monkeypatch.setattr(above_threshold, "geometric", lambda *of: asked.append(of[0]) or np.zeros(1, np.int64))
    sequence = begin(10, 1, 1)
    assert [sequence.check(-99, SYSTEM), sequence.check(-99, SYSTEM)] == [False, False]
    assert asked == [sequence.noise.threshold_scale, sequence.noise.value_scale, sequence.noise.value_scale]


def test_after_the_first_true_it_refuses():
    sequence = begin(1000, 1, 1)
    assert [sequence.check(0, SYSTEM), sequence.check(5000, SYSTEM)] == [False, True]
    with pytest.raises(QueryError, match="finished") as refused:
        sequence.check(0, SYSTEM)
    assert refused.value.code == "sequence-finished"


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("queries", [1, 30, 10**6])
def test_the_split_spends_epsilon_and_no_more(monotonic, queries):
    for sensitivity, epsilon in ((Fraction(1), Decimal(1)), (Fraction(7, 3), Decimal("0.37"))):
        noise = balance_noise(sensitivity, epsilon, monotonic, queries)
        shifts = 1 if monotonic else 2
        assert sensitivity / noise.threshold_scale + shifts * sensitivity / noise.value_scale == Fraction(epsilon)


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("queries", [1, 30, 1000])
def test_the_split_is_about_the_best(monotonic, queries):
    """Every other split, in steps of 5 %, with its own best rise: none has a margin that is 3 % smaller."""
    chosen = begin(0, 1, "0.01", monotonic, queries)
    own = compute_crossing_margin(chosen, "0.95", queries)
    shifts = 1 if monotonic else 2
    for percent in range(5, 100, 5):
        scales = 10_000 / Fraction(percent), shifts * 10_000 / Fraction(100 - percent)
        for rise in range(chosen.noise.rise - 400, chosen.noise.rise + 401, 40):
            other = above_threshold.CrossingNoise(*scales, rise)
            sequence = above_threshold.AboveThreshold(0, Fraction(1), Decimal("0.01"), monotonic, other)
            assert compute_crossing_margin(sequence, "0.95", queries) > own * 0.97


@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.9999"])
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("queries", [1, 20, 3000])
def test_margin_holds(confidence, monotonic, queries):
    """Values just outside the margin, on either side: the chance of a wrong answer, by summing over the noise."""
    sequence = begin(0, 1, "0.2", monotonic, 50)
    margin = compute_crossing_margin(sequence, confidence, queries)
    rise = sequence.noise.rise
    raising, helping = float(1 / sequence.noise.threshold_scale), float(1 / sequence.noise.value_scale)
    noise = np.arange(6000)
    mass = -math.expm1(-raising) * np.exp(-raising * noise)

    def heads(value):
        return np.exp(-helping * np.maximum(rise + noise - value, 0))

    def some_heads(value, count):
        with np.errstate(divide="ignore"):  # ln 0 where heads is certain
            return -np.expm1(count * np.log1p(-heads(value)))

    def some_tails(value, count):
        return 1 - heads(value) ** count

    def wrong(margin):
        """An adversary asks low values first, and one high value last."""
        early = some_heads(-margin - 1, queries)
        return (mass * early).sum(), (mass * some_tails(margin + 1, queries)).sum()

    assert sum(wrong(margin)) <= (1 - float(confidence)) * (1 + 1e-6)
    if queries > 1 and confidence != "0.5":
        assert sum(wrong(math.floor(margin * 0.9))) > 1 - float(confidence)


def test_margin_beats_the_textbook():
    """Dwork and Roth: 8 (ln k + ln(2/b))/epsilon for k questions with Laplace noise."""
    for queries in (1, 100, 10_000):
        textbook = 8 * (math.log(queries) + math.log(2 / 0.05))
        assert compute_crossing_margin(begin(1000, 1, 1, queries=queries), "0.95", queries) < textbook / 2.8
        assert (
            compute_crossing_margin(begin(1000, 1, 1, monotonic=True, queries=queries), "0.95", queries) < textbook / 4
        )
    assert compute_crossing_margin(begin(0, 1, "0.001"), "0." + "9" * 300) > 10**5


def test_signups_that_grow():
    sequence = begin(1000, 1, 1, monotonic=True, queries=365)
    margin = compute_crossing_margin(sequence, "0.999999999", 365)
    day = next(day for day in range(365) if sequence.check(10 * day, SYSTEM))
    assert abs(10 * day - 1000) <= margin + 10


def test_nothing_secret_is_shown_or_copied():
    sequence = begin(1000, Fraction(1, 2), "0.5", monotonic=True)
    sequence.check(-(10**6), SYSTEM)
    assert repr(sequence) == (
        "AboveThreshold(threshold=1000, sensitivity=Fraction(1, 2), epsilon=Decimal('0.5'), monotonic=True, "
        f"noise={sequence.noise}, finished=False)"
    )
    for attempt in (
        lambda: copy.copy(sequence),
        lambda: copy.deepcopy(sequence),
        lambda: pickle.dumps(sequence),
        lambda: pickle.dumps(sequence, protocol=0),
        lambda: sequence.__reduce__(),
        lambda: sequence.__getstate__(),
        lambda: setattr(sequence, "finished", False),
        lambda: delattr(sequence, "_bar"),
    ):
        with pytest.raises(KernelFault):
            attempt()
    assert not hasattr(sequence, "__dict__")
    assert sequence.loss == sf.PureDP("0.5")


def test_one_process_and_one_question_at_a_time(monkeypatch):
    sequence = begin(10**6, 1, 1)
    sequence.check(0, SYSTEM)

    class Slow:
        def take(self, count):
            reached.set()
            assert leave.wait(10)
            return SYSTEM.take(count)

    reached, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=sequence.check, args=(0, Slow()))
    thread.start()
    assert reached.wait(10)
    with pytest.raises(QueryError, match="another question"):
        sequence.check(0, SYSTEM)
    leave.set()
    thread.join()
    assert sequence.check(0, SYSTEM) is False
    elsewhere = os.getpid() + 1
    monkeypatch.setattr(above_threshold.os, "getpid", lambda: elsewhere)
    with pytest.raises(KernelFault, match="process"):
        sequence.check(0, SYSTEM)


def test_an_answer_that_failed_can_be_asked_again():
    sequence = begin(0, 1, 1)

    class Broken:
        def take(self, count):
            raise OSError("no entropy")

    with pytest.raises(OSError, match="no entropy"):
        sequence.check(10**6, Broken())
    assert sequence.check(10**6, SYSTEM)


@pytest.mark.parametrize("value", [1.5, "7", None, np.float64(2)], ids=str)
def test_values_are_whole(value):
    with pytest.raises(TypeError):
        begin(0, 1, 1).check(value, SYSTEM)
    with pytest.raises(TypeError):
        begin(value, 1, 1)


def test_bad_parameters_of_a_sequence():
    assert begin(0, 1, 1).check(np.int64(10**9), SYSTEM)
    good = {"threshold": 0, "sensitivity": Fraction(1), "epsilon": Decimal(1), "monotonic": False}
    noise = balance_noise(Fraction(1), Decimal(1), False, 100)
    for wrong, why in (
        ({"sensitivity": Fraction(0)}, "above zero"),
        ({"epsilon": Decimal(0)}, "above zero"),
        ({"monotonic": 1}, "above zero"),
        ({"noise": replace(noise, value_scale=Fraction(1, 10**9))}, "^epsilon "),
    ):
        with pytest.raises(SfumatoError, match=why):
            above_threshold.AboveThreshold(**{**good, "noise": noise, **wrong})


@pytest.mark.parametrize("monotonic", [False, True])
def test_noise_that_does_not_pay_is_refused(monotonic):
    """The split is chosen outside the kernel, so it is checked: slightly less noise of either kind is refused."""
    noise = balance_noise(Fraction(7, 3), Decimal("0.37"), monotonic, 30)
    above_threshold.AboveThreshold(0, Fraction(7, 3), Decimal("0.37"), monotonic, noise)
    for name in ("threshold_scale", "value_scale"):
        less = replace(noise, **{name: getattr(noise, name) * Fraction(10**9 - 1, 10**9)})
        with pytest.raises(KernelFault, match="does not pay"):
            above_threshold.AboveThreshold(0, Fraction(7, 3), Decimal("0.37"), monotonic, less)
    if monotonic:
        with pytest.raises(KernelFault, match="does not pay"):
            above_threshold.AboveThreshold(0, Fraction(7, 3), Decimal("0.37"), False, noise)
