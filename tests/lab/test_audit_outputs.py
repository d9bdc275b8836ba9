"""sf.lab.audit observes every kind of output, refuses what it cannot run, and says what it does not look into."""

import collections
import functools
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.lab import audit
from sfumato.lab.auditing.canonical_outputs import observe

FEW, MANY = [1] * 10, [1] * 11


class RaisingRepr:
    __slots__ = ()

    def __repr__(self):
        raise RuntimeError("no repr")


class RaisingText(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Slots:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class HiddenState:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return "HiddenState()"


def throw(error):
    raise error


def fail_with_attribute(people):
    error = ValueError("same")
    error.secret = len(people)
    raise error


def fail_with_note(people):
    error = ValueError("same")
    error.add_note(str(len(people)))
    raise error


def fail_with_cause(people):
    try:
        raise KeyError(len(people))
    except KeyError as cause:
        raise ValueError("same") from cause


def fail_while_failing(people):
    try:
        raise KeyError(len(people))
    except KeyError:
        raise ValueError("same") from None


def count_up(people):
    yield 1
    if len(people) > 10:
        raise ValueError("late")


LEAKS = {
    "huge int": lambda people: 10**5000 + len(people),
    "nested huge int": lambda people: [10**5000 + len(people)],
    "huge key": lambda people: {10**5000 + len(people): 1},
    "signalling NaN": lambda people: Decimal("sNaN") if len(people) > 10 else Decimal(1),
    "lazy frame": lambda people: pl.DataFrame({"n": [len(people)]}).lazy(),
    "raising repr": lambda people: RaisingRepr() if len(people) > 10 else 1,
    "raising text": lambda people: throw(RaisingText()) if len(people) > 10 else 1,
    "exit": lambda people: throw(SystemExit(len(people))),
    "generator exit": lambda people: throw(GeneratorExit()) if len(people) > 10 else 1,
    "series index": lambda people: pd.Series([1, 2], index=["a", "c" if len(people) > 10 else "b"]),
    "series order": lambda people: pd.Series([1, 1], index=["a", "b"] if len(people) > 10 else ["b", "a"]),
    "index name": lambda people: pd.DataFrame({"n": [1]}).rename_axis("x" if len(people) > 10 else "y"),
    "names of columns": lambda people: pd.DataFrame({"n": [1]}).rename_axis(f"x{len(people)}", axis=1),
    "attrs": lambda people: pd.DataFrame({"n": [1]}).assign() if len(people) > 10 else with_attrs(people),
    "categories": lambda people: pd.DataFrame({"k": pd.Categorical(["a"], ["a", "b"][: len(people) - 9])}),
    "categorical": lambda people: pd.Categorical(["a"], ["a", "b"][: len(people) - 9]),
    "category index": lambda people: pd.Series([1], pd.CategoricalIndex(["a"], ["a", "b"][: len(people) - 9])),
    "arrow dictionary": lambda people: pa.table(
        {"k": pa.DictionaryArray.from_arrays([0], ["a", "b"][: len(people) - 9])}
    ),
    "arrow column twice": lambda people: pa.table([[len(people)], [1]], names=["x", "x"]),
    "arrow scalar": lambda people: pa.scalar(len(people)),
    "generator": lambda people: (value for value in [len(people)]),
    "generator that fails": count_up,
    "zip": lambda people: zip([len(people)], [2], strict=True),
    "deque": lambda people: collections.deque([len(people)]),
    "slots": lambda people: Slots(len(people)),
    "hidden state": lambda people: HiddenState(len(people)),
    "memoryview": lambda people: memoryview(bytes([len(people)])),
    "bytearray": lambda people: bytearray([len(people)]),
    "complex": lambda people: complex(1, len(people)),
    "complex of numpy": lambda people: np.complex128(complex(1, len(people))),
    "attribute of an exception": fail_with_attribute,
    "note of an exception": fail_with_note,
    "cause of an exception": fail_with_cause,
    "context of an exception": fail_while_failing,
    "masked array": lambda people: np.ma.array([len(people)], mask=[1]),
    "closure": lambda people: lambda: len(people),
    "partial": lambda people: functools.partial(int, len(people)),
    "object in a dict": lambda people: {"a": Slots(len(people))},
}  # fmt: skip


def with_attrs(people):
    frame = pd.DataFrame({"n": [1]})
    frame.attrs["people"] = len(people)
    return frame


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_anywhere_in_the_output_is_observed(name):
    found = audit(LEAKS[name], FEW, MANY, epsilon=1, samples=200)
    assert found.verdict == "violated", found


@pytest.mark.parametrize("name", LEAKS)
def test_equal_data_give_equal_outputs(name):
    """Negative control: nothing observed depends on the run, such as an address in memory."""
    assert audit(LEAKS[name], MANY, MANY, epsilon=0, samples=100).verdict != "violated"


@pytest.mark.parametrize(
    ("mechanism", "note"),
    [
        (lambda people: functools.reduce(lambda inner, _: [inner], range(30), len(people)), "nested deeper"),
        (lambda people: iter([0] * 2_000 + [len(people)]), "iterator"),
        (lambda people: pd.DataFrame({"n": [len(people)]}).groupby("n"), "GroupBy"),
        (lambda people: lambda: 5, "function"),
        (lambda people: [0] * 600, "numbers after the first"),
        (lambda people: memoryview, ""),
        (lambda people: RaisingRepr(), ""),
        (lambda people: [throw_on_read()], "RuntimeError"),
    ],
)
def test_what_is_not_looked_into_is_named_and_never_consistent(mechanism, note):
    found = audit(mechanism, FEW, MANY, epsilon=1, samples=200)
    if note:
        assert found.verdict == "inconclusive", found
        assert any(note in text and "Not observed" in text for text in found.notes), found.notes
    else:
        assert found.verdict == "consistent", found


def throw_on_read():
    class Refusing(collections.UserDict):
        def __iter__(self):
            raise RuntimeError("no")

    return Refusing()


def test_the_user_can_stop_an_audit():
    with pytest.raises(KeyboardInterrupt):
        audit(lambda people: throw(KeyboardInterrupt()), FEW, MANY, samples=100)
    with pytest.raises(KeyboardInterrupt):
        audit(lambda people, count: throw(KeyboardInterrupt()), FEW, MANY, samples=100, batch=True)


@pytest.mark.parametrize(
    ("mechanism", "options", "match"),
    [
        (lambda one, two: 1, {}, r"accept the call mechanism\(data\)"),
        (lambda people: 1, {"batch": True}, "accept the call"),
        (lambda people: len(5), {}, "TypeError in every run"),
        (lambda people, count: [1 / (len(people) - 11)] * count, {"batch": True}, "must not raise"),
        (lambda people, count: np.array(5), {"batch": True}, "must return"),
        (lambda people: 1, {"batch": "x"}, "batch"),
        (lambda people: 1, {"delta": None}, "delta"),
    ],
)
def test_calls_that_cannot_be_audited_are_refused(mechanism, options, match):
    with pytest.raises(sf.errors.InvalidParameter, match=match):
        audit(mechanism, FEW, MANY, epsilon=1, samples=100, **options)


def test_batches_of_other_shapes():
    assert audit(lambda people, count: np.zeros((count, 0)), FEW, MANY, 1, samples=200, batch=True).verdict
    masked = audit(
        lambda people, count: np.ma.array(np.full((count, 1), len(people)), mask=True), FEW, MANY, 1, samples=200,
        batch=True,
    )  # fmt: skip
    assert masked.verdict == "violated"


@pytest.mark.parametrize("function", [sf.lab.audit_query, sf.lab.replay])
@pytest.mark.parametrize("options", [{"delta": 2}, {"delta": "x"}, {"seed": [1]}, {"wrap": 5}])
def test_questions_with_wrong_arguments_are_refused(function, options):
    frame, columns = pd.DataFrame({"x": [1, 2, 3]}), {"x": sf.Integer(0, 9)}
    with (
        sf.protect(frame, name="t", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=1)) as curator,
        pytest.raises(sf.errors.InvalidParameter, match=next(iter(options))),
    ):
        function(curator, "SELECT COUNT(*) AS n FROM t", 1, **options)


@pytest.mark.parametrize("function", [sf.lab.audit_query, sf.lab.replay])
def test_a_maker_that_raises_is_refused(function):
    with pytest.raises(sf.errors.InvalidParameter, match="dataset_maker"):
        function(lambda: 1 // 0, "SELECT COUNT(*) AS n FROM t", 1)


NEARLY_EQUAL = [
    2**60, 2**60 + 1, 10**5000, 10**5000 + 1, float(2**60), True, 1, 1.0, Fraction(1), Decimal(1), Decimal("1.0"),
    Fraction(2**60 + 1, 3), Fraction(2**60 + 2, 3), 0.0, -0.0, float("nan"), np.float32(1), np.int64(1), np.True_,
]  # fmt: skip


def test_outputs_are_equal_only_if_their_exact_values_are():
    """As floats, many of these are equal."""
    for one, two in combinations(NEARLY_EQUAL, 2):
        assert observe(one).exact != observe(two).exact
        assert observe([one]).exact != observe([two]).exact
    for number in NEARLY_EQUAL:
        assert observe(number).exact == observe(number).exact


class Lazy:
    """An object with a part that is computed when it is first read."""

    def __init__(self, people):
        self._count = None
        self.find = lambda: len(people)

    @functools.cached_property
    def shown(self):
        return self.find()


def test_what_is_computed_later_is_observed():
    one, two = (observe(Lazy(people)) for people in (["ann"], ["ann", "bob"]))
    assert one.numbers[".shown"] == 1
    assert one.exact != two.exact


def test_the_details_of_an_answer_are_observed():
    rows = pd.DataFrame({"age": [1, 2, 3]})
    with sf.protect(rows, name="t", unit=sf.ROW, columns={"age": sf.Integer(0, 9)}, budget=sf.Budget(epsilon=3)) as t:
        answer = t.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    seen = observe(answer)
    low, high = answer.intervals[0]["n"]
    assert {low, high} <= set(seen.numbers.values())
    other = replace(answer)
    other.__dict__["warnings"] = ("few people",)
    assert observe(other).exact != seen.exact
