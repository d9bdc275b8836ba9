import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from uuid import UUID

import mpmath
import numpy as np
import pandas as pd
import pytest
from scripted import Scripted

import sfumato as sf
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.samplers import discrete_laplace
from sfumato.kernel.saturating_sums import LARGEST
from sfumato.standalone.mechanisms.key_release import release_keys

CASES = [
    (epsilon, delta, groups, neighbours)
    for epsilon in ("0.1", "1", "5")
    for delta in ("1e-3", "1e-9", "0.3")
    for groups in (1, 2, 7)
    for neighbours in ("add-remove", "replace-one")
]


def law(keys):
    """P(Z = z), by mpmath, from the mechanism's scale."""
    x = mpmath.exp(-mpmath.mpf(keys.scale.denominator) / keys.scale.numerator)
    return lambda z: (1 - x) / (1 + x) * x ** abs(z)


def passes(keys, people):
    """P(a key of so many people is released): every noise from the threshold on, term by term, then the rest."""
    mass = law(keys)
    first = keys.threshold - people
    far = max(first, 1) + 50
    x = mass(2) / mass(1)
    return mpmath.fsum(mass(z) for z in range(first, far)) + mass(far) / (1 - x)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_lonely_keys_stay_within_delta(case):
    """Up to g keys that only one person holds: the probability to release any is at most delta, and nearly that."""
    keys = sf.ThresholdedKeys(*case)
    with mpmath.workprec(300):
        one = passes(keys, 1)
        lower = passes(keys, 2)  # what the threshold would allow if it were one lower
        assert 1 - (1 - one) ** keys.max_groups_per_unit <= mpmath.mpf(case[1])
        assert one * keys.max_groups_per_unit <= mpmath.mpf(case[1])
        if keys.threshold > 2:
            assert lower * keys.max_groups_per_unit > mpmath.mpf(case[1])  # off by one would be caught


def test_equality_at_the_threshold_is_released(monkeypatch):
    keys = sf.ThresholdedKeys(1, 1e-3)
    from sfumato.standalone.mechanisms import key_release as module

    for noise, out in ((keys.threshold - 10, True), (keys.threshold - 11, False)):
        monkeypatch.setattr(module, "discrete_laplace", lambda *_, noise=noise: np.array([noise]))
        assert ("a" in keys.release({"a": 10})) is out


def outcomes(people, ratio, threshold, far):
    """The law of one key: None (not shown), each noisy count below `far`, and `far` for all from there on. Exact.

    From the largest count on, what is added up in `far` has one likelihood ratio between any two laws: adding it up
    hides nothing.
    """
    if people == 0:
        return {None: 1}
    centre = (1 - ratio) / (1 + ratio)
    shown = {count: centre * ratio ** abs(count - people) for count in range(threshold, far)}
    shown[far] = ratio ** (far - people) / (1 + ratio)
    return {None: 1 - sum(shown.values())} | shown


def excess(one, two, ratio, threshold, growth):
    """The least delta with P(S) <= growth * P'(S) + delta for every event S: the hockey-stick divergence, exactly."""
    far = max(*one, *two, threshold) + 1
    pairs = {(): (1, 1)}
    for mine, yours in zip(one, two, strict=True):
        p, q = (outcomes(people, ratio, threshold, far) for people in (mine, yours))
        pairs = {
            (*past, out): (a * p.get(out, 0), b * q.get(out, 0))
            for past, (a, b) in pairs.items()
            for out in p.keys() | q.keys()
        }
    return sum(max(a - growth * b, 0) for a, b in pairs.values())


KEYS = 4


def neighbours_of(groups, neighbours):
    """Numbers of people per key, with one person more, or another one: every set of keys that a person may hold."""
    sets = [held for size in range(groups + 1) for held in combinations(range(KEYS), size)]
    for others in ((0,) * KEYS, (0, 0, 1, 2), (2, 2, 1, 3))[: 4 - groups]:

        def more(held, others=others):
            return tuple(count + (key in held) for key, count in enumerate(others))

        if neighbours == "add-remove":
            yield from (pair for held in sets for pair in ((more(held), others), (others, more(held))))
        else:
            yield from ((more(mine), more(yours)) for mine in sets for yours in sets)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("ratio", [Fraction(1, 2), Fraction(3, 4)], ids=str)
@pytest.mark.parametrize("threshold", [3, 5])
def test_delta_is_charged_once_under_either_relation(ratio, groups, neighbours, threshold):
    """K-21 in whole numbers: with e^(-1/t) = ratio, every neighbouring pair is (epsilon, delta)-close, exactly.

    delta is g times the chance that a lonely key is shown, also under replace-one, where two people's keys are lonely.
    """
    lonely = ratio ** (threshold - 1) / (1 + ratio)
    delta = groups * lonely
    growth = ratio ** -(groups * (1 if neighbours == "add-remove" else 2))  # e^epsilon, for t = g/epsilon or 2g/epsilon
    worst = max(excess(*pair, ratio, threshold, growth) for pair in neighbours_of(groups, neighbours))
    assert worst <= delta
    assert worst == 1 - (1 - lonely) ** groups  # all of one person's keys are lonely
    lower = max(excess(*pair, ratio, threshold - 1, growth) for pair in neighbours_of(groups, neighbours))
    assert lower > delta, "negative control: a threshold one lower is caught"
    assert worst > delta / 2, "negative control: half of delta would not do"


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("groups", [1, 2])
def test_epsilon_is_shared_by_all_keys_of_a_person(groups, neighbours):
    """Many people hold every key; one person's g keys move, or g and another's g. Exactly epsilon, and no less."""
    ratio, threshold = Fraction(1, 2), 12
    mine, yours = (14,) * groups + (13,) * groups, (13,) * groups + (14,) * groups
    one, two = (mine, (13,) * 2 * groups) if neighbours == "add-remove" else (mine, yours)
    growth = ratio ** -(groups * (1 if neighbours == "add-remove" else 2))
    delta = groups * ratio ** (threshold - 1) / (1 + ratio)
    assert excess(one, two, ratio, threshold, growth) <= delta
    assert excess(one, two, ratio, threshold, growth * ratio) > delta, "negative control"


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("epsilon", ["1", "3"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_key_privacy_is_enumerated(groups, epsilon, neighbours):
    """The rule's own scale, threshold and loss, on every event of the same pairs, with 100 digits."""
    keys = sf.ThresholdedKeys(epsilon, "0.01", groups, neighbours)
    with mpmath.workprec(333):
        ratio = mpmath.exp(-mpmath.mpf(keys.scale.denominator) / keys.scale.numerator)
        growth, slack = mpmath.exp(mpmath.mpf(str(keys.loss.epsilon))), mpmath.mpf(10) ** -90
        pairs = list(neighbours_of(groups, neighbours))[::3]
        worst = max(excess(*pair, ratio, keys.threshold, growth) for pair in pairs)
        assert worst <= mpmath.mpf(str(keys.loss.delta)) + slack


def test_release_is_noise_and_threshold():
    keys = sf.ThresholdedKeys(1, 1e-3, 2)
    people = {"a": 200, "b": 1, "c": 150, ("x", 1): 90, "nobody": 0}
    script = bytes(SYSTEM.take(4000))
    noise = discrete_laplace(keys.scale, 4, Scripted(script))
    expected = {
        key: count + int(z)
        for (key, count), z in zip([pair for pair in people.items() if pair[1]], noise, strict=True)
        if count + int(z) >= keys.threshold
    }
    released = release_keys(keys.rule, people, Scripted(script))
    assert released == expected
    assert list(released.values()) == sorted(released.values(), reverse=True)
    assert keys.release({}) == {}


def test_the_order_of_keys_is_not_the_datas():
    keys = sf.ThresholdedKeys(1000, 1e-3)
    assert list(keys.release({"b": 50, "a": 50, "c": 99})) == list(keys.release({"c": 99, "a": 50, "b": 50}))


def test_people_needed_to_be_seen():
    for case in CASES[::5]:
        keys = sf.ThresholdedKeys(*case)
        with mpmath.workprec(300):
            for wanted in ("0.01", "0.5", "0.6", "0.95", "0.999"):
                people = keys.people_needed(wanted)
                assert passes(keys, people) >= mpmath.mpf(wanted)
                assert people == 1 or passes(keys, people - 1) < mpmath.mpf(wanted)
    assert sf.ThresholdedKeys(1, 1e-6).margin(0.95) == sf.Laplace(1, 1).margin(0.95)


def test_what_it_costs():
    assert sf.ThresholdedKeys(1, 1e-6).loss == sf.ApproxDP(1, 1e-6)
    assert sf.ThresholdedKeys(1, 1e-6, neighbours="replace-one").loss == sf.ApproxDP(1, 1e-6)
    assert sf.ThresholdedKeys(1, 1e-6, 3, "replace-one").scale == Fraction(6)


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 1e-6),
        (1, 0),
        (1, 1),
        (1, -1),
        (1, "nan"),
        (1, 1e-6, 0),
        (1, 1e-6, 1.5),
        (1, 1e-6, 1, "swap"),
    ],
    ids=str,
)
def test_bad_parameters(arguments):
    with pytest.raises(sf.errors.InvalidParameter):
        sf.ThresholdedKeys(*arguments)


def read(people):
    """How a mapping is parsed: each key in the form in which it is released, with its number of people."""
    keys, shift = sf.ThresholdedKeys(1, 1e-6), 10**6
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "sfumato.standalone.mechanisms.key_release.discrete_laplace",
            lambda scale, size, entropy: np.full(size, shift),
        )
        return {repr(key): count - shift for key, count in keys.release(people).items()}


@pytest.mark.parametrize(
    ("count", "people"),
    [
        (5, 5), (5.0, 5), (4.5, 5), (4.4, 4), (True, 1), (Decimal("5.00"), 5), (np.uint8(5), 5), (Fraction(9, 2), 5),
        (-1, None), (0, None), (-math.inf, None), (math.nan, None), (None, None), (math.inf, LARGEST),
        (10**400, LARGEST),
    ],
)  # fmt: skip
def test_no_number_of_people_is_refused(count, people):
    """Each number is parsed by its value alone; below one half it counts nobody. Other entries are not affected."""
    wanted = {} if people is None else {"'a'": min(people, LARGEST - 10**6)}
    assert read({"a": count}) == wanted
    assert read({"a": count, "b": 7, "c": 2.5}) == wanted | {"'b'": 7, "'c'": 3}


@pytest.mark.parametrize("other", [0, 1, 1.5, 2**70, True, Decimal("0.1"), math.nan])
def test_rounding_a_number_of_people_is_free(other):
    """Two numbers at most 1 apart are at most 1 apart when they are read."""
    for value in (0.4, 0.5, 3.49, 3.5, Fraction(7, 2), 2**53 - 1):
        one, two = (read({"a": people, "b": other}).get("'a'", 0) for people in (value, Fraction(value) + 1))
        assert two - one <= 1


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NEW_YORK = timezone(timedelta(hours=-5))
EQUAL = [
    ([1, 1.0, True, Decimal("1.00"), Fraction(1), np.int8(1), np.float32(1), np.bool_(True), 1 + 0j], 1),
    ([0, 0.0, -0.0, False, Decimal("-0"), np.float64(-0.0)], 0),
    ([1.5, Decimal("1.50"), Fraction(3, 2), np.float16(1.5)], 1.5),
    ([Fraction(1, 3)], Fraction(1, 3)),
    ([Decimal("0.1"), Fraction(1, 10)], Fraction(1, 10)),
    ([2**1000, Fraction(2**1000), float(2**1000), Decimal(2**1000)], 2**1000),
    (["a", np.str_("a")], "a"),
    ([b"a", np.bytes_(b"a")], b"a"),
    ([None], None),
    ([date(2026, 1, 1)], date(2026, 1, 1)),
    ([datetime(2026, 1, 1), datetime(2026, 1, 1, fold=1), pd.Timestamp("2026-01-01")], datetime(2026, 1, 1)),
    ([NOON, datetime(2026, 1, 1, 7, tzinfo=NEW_YORK)], NOON),
    ([timedelta(1), pd.Timedelta(days=1)], timedelta(1)),
    ([("a", 1, (None,)), ("a", True, (None,)), (np.str_("a"), 1.0, (None,))], ("a", 1, (None,))),
    ([()], ()),
]  # fmt: skip


def test_equal_keys_come_out_alike():
    """The output does not show which key came first, and different keys have different outputs."""
    seen = set()
    for forms, wanted in EQUAL:
        for key in forms:
            assert key == wanted
            assert read({key: 3}) == {repr(wanted): 3}, key
        seen.add(repr(wanted))
    assert len(seen) == len(EQUAL)
    together = {forms[-1]: number for number, (forms, _) in enumerate(EQUAL, 1)}
    assert read(together) == {repr(wanted): number for number, (_, wanted) in enumerate(EQUAL, 1)}


def nested(depth):
    key = ()
    for _ in range(depth):
        key = (key,)
    return key


@pytest.mark.parametrize(
    "key",
    [
        math.nan, math.inf, Decimal("NaN"), Decimal("1e999999"), Decimal("1e-999999"), 10**5000, 10**500,
        Fraction(1, 10**500), Decimal(10**500), 1 + 1j, frozenset("a"), object(), nested(25), nested(400),
        (1, math.nan), pd.Timestamp(1), pd.Timedelta(1), pd.NaT, pd.NA, np.datetime64("2026-01-01"),
        np.timedelta64(1, "s"), range(3), int, UUID(int=5), datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    ],
    ids=lambda key: type(key).__name__,
)  # fmt: skip
def test_no_key_is_refused(key):
    """A key without one canonical form is never released, and does not affect the other keys."""
    rest = {"a": 500, 7: 500, ("b", None): 500}
    assert read({**rest, key: 500}) == read(rest)


@pytest.mark.parametrize(
    "key", ["x" * 10**6, "\ud800", "\0", 2**1200 - 1, nested(19), ""], ids=lambda key: str(len(repr(key)))
)
def test_large_and_odd_keys_come_out(key):
    rest = {"a": 500, 7: 500, ("b", None): 500}
    assert read({**rest, key: 400}) == read(rest) | {repr(key): 400}


def test_the_order_is_that_of_the_noisy_counts_and_then_of_the_keys():
    many = [form for forms, form in EQUAL] + [2, -1, 0.5, "b", b"b", ("a",), ("a", 1)]
    keys = sf.ThresholdedKeys(1000, 1e-3)
    orders = []
    for order in (many, many[::-1]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "sfumato.standalone.mechanisms.key_release.discrete_laplace",
                lambda scale, size, entropy: np.full(size, 10),
            )
            orders.append(list(keys.release(dict.fromkeys(order, 50) | {"last": 49})))
    assert orders[0] == orders[1]
    assert orders[0][-1] == "last"


@pytest.mark.parametrize("people", [None, [("a", 5)], {"a": [1, 2]}, {"a": [1000]}, {"a": "5"}], ids=str)
def test_bad_mappings(people):
    """An argument that does not map keys to single numbers is refused, because of its type alone."""
    with pytest.raises(sf.errors.InvalidParameter, match="people_per_key"):
        sf.ThresholdedKeys(1, 1e-6).release(people)
