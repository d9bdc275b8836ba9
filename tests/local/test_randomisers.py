import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.local.mechanisms.coin_tables import UNITS

NAMES = ["rr", "krr", "subset", "oue", "sue", "olh", "hadamard"]


def made(name, k=9, epsilon=1):
    return sf.local.randomiser(name, k=2 if name == "rr" else k, epsilon=epsilon)


@pytest.mark.parametrize("name", NAMES)
def test_reports_travel_as_json(name):
    randomiser = made(name)
    reports = randomiser.randomise(np.arange(200) % randomiser.k)
    values = json.loads(json.dumps(randomiser.form.encode(reports)))
    decoded, malformed = randomiser.form.decode(values)
    assert malformed == 0
    assert decoded.dtype == reports.dtype == np.dtype(randomiser.form.dtype)
    assert np.array_equal(decoded, reports)
    single = randomiser.randomise(1)
    again, _ = randomiser.form.decode(randomiser.form.encode(np.asarray(single)))
    assert np.array_equal(again[0], single)


@pytest.mark.parametrize("name", NAMES)
def test_a_description_rebuilds_the_same_randomiser(name):
    randomiser = made(name)
    description = json.loads(json.dumps(randomiser.describe(), sort_keys=True))
    again = sf.local.rebuild(description)
    assert again == randomiser
    assert again.epsilon == randomiser.epsilon
    assert again.describe() == randomiser.describe()


def altered(description):
    yield {**description, "mechanism": "other"}
    yield {**description, "more": 1}
    for key in description:
        yield {name: value for name, value in description.items() if name != key}
    for key in set(description) - {"mechanism", "coins"}:
        for bad in (-1, 0, 1 << 40, 2.0, "3", True, None, [2]):
            yield {**description, key: bad}
    for name in description["coins"]:
        for bad in (-1, 0, UNITS, UNITS + 1, 1.5, "7", True, None):
            yield {**description, "coins": {**description["coins"], name: bad}}
    yield {**description, "coins": {**description["coins"], "another": 5}}
    yield {**description, "coins": {}}


@pytest.mark.parametrize("name", NAMES)
def test_altered_descriptions_are_refused(name):
    description = made(name).describe()
    for document in [*altered(description), None, [], "krr", {}]:
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.rebuild(document)


@pytest.mark.parametrize("name", ["rr", "krr", "subset", "olh", "hadamard"])
def test_a_table_that_favours_a_lie_is_refused(name):
    description = made(name).describe()
    (coin,) = description["coins"]
    with pytest.raises(sf.errors.InvalidParameter, match="truth more often"):
        sf.local.rebuild({**description, "coins": {coin: 1000}})


@pytest.mark.parametrize("name", NAMES)
def test_a_bolder_table_has_a_greater_epsilon(name):
    """The loss is computed from the coins, whatever the document states."""
    randomiser = made(name)
    description = randomiser.describe()
    coins = {key: units + (-1000 if key == "zero" else 1000) for key, units in description["coins"].items()}
    assert sf.local.rebuild({**description, "coins": coins}).epsilon > randomiser.epsilon


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), st.lists(json_values, max_size=8))
def test_malformed_reports_are_counted_and_never_crash(name, values):
    randomiser = made(name)
    good = randomiser.form.encode(randomiser.randomise([1, 0, 1]))
    decoded, malformed = randomiser.form.decode([*values, *good])
    assert len(decoded) + malformed == len(values) + 3
    assert len(decoded) >= 3
    randomiser.tally(decoded)


@pytest.mark.parametrize("name", NAMES)
def test_malformed_arrays_are_sifted_and_refused_by_tally(name):
    randomiser = made(name)
    reports = randomiser.randomise([0, 1, 1, 0])
    spoilt = reports.copy()
    if reports.ndim == 1:
        spoilt[1] = randomiser.form.count
    else:
        spoilt[1, -1] = 255  # bits beyond the last category
    kept, malformed = randomiser.form.sift(spoilt)
    assert malformed == 1
    assert np.array_equal(kept, np.delete(reports, 1, axis=0))
    with pytest.raises(sf.errors.InvalidParameter, match="1 malformed"):
        randomiser.tally(spoilt)
    for strange in (np.zeros((2, 3, 4)), ["a", "b"], np.array([0.5]), 3.5, np.zeros((4, 50), np.uint8) + 1.0):
        kept, malformed = randomiser.form.sift(strange)
        assert len(kept) == 0
        assert malformed >= 1
    assert len(randomiser.form.sift(np.empty((0, *reports.shape[1:]), reports.dtype))[0]) == 0


def test_a_subset_of_another_size_is_malformed():
    randomiser = made("subset", k=16, epsilon=1)
    size = randomiser.mechanism.size
    for ones in (size - 1, size + 1, 0, 16):
        assert randomiser.form.decode([((1 << ones) - 1).to_bytes(2, "little").hex()])[1] == 1
    assert randomiser.form.decode([((1 << size) - 1).to_bytes(2, "little").hex()])[1] == 0


def test_bits_of_a_report_are_where_the_form_says():
    randomiser = sf.local.randomiser("oue", k=20, epsilon=1)
    row = np.zeros((1, 3), np.uint8)
    row[0, 13 // 8] |= 1 << 13 % 8
    assert randomiser.tally(row).counts.tolist() == [int(place == 13) for place in range(20)]


def test_kinds_in_and_out():
    assert type(made("krr").randomise(3)) is int
    assert made("oue").randomise(3).shape == (2,)
    assert made("krr").randomise([]).shape == (0,)
    assert made("oue").randomise([]).shape == (0, 2)
    assert made("rr").randomise([True, False]).dtype == np.int64
    assert made("krr").randomise(np.arange(9, dtype=np.uint8)).dtype == np.int64
    assert repr(made("krr")).startswith("<krr over 9 categories, epsilon 0.99999")


@pytest.mark.parametrize("bad", [-1, 9, 0.5, "a", None, True, [0, 9], 10**30, [[1], [1, 2]]], ids=str)
def test_bad_values(bad):
    with pytest.raises(sf.errors.InvalidParameter):
        made("krr").randomise(bad)


def test_bad_requests():
    for k in (1, 0, 2.5, "3", True, (1 << 20) + 1):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.randomiser("krr", k=k, epsilon=1)
    with pytest.raises(sf.errors.InvalidParameter, match="olh"):
        sf.local.randomiser("laplace", k=3, epsilon=1)
    for name in NAMES:
        for epsilon in (0, -1, "x", None, float("nan"), 60, 1e-12):
            with pytest.raises(sf.errors.InvalidParameter, match="epsilon"):
                made(name, epsilon=epsilon)
    with pytest.raises(sf.errors.InvalidParameter, match="2 for rr"):
        sf.local.randomiser("rr", k=3, epsilon=1)
    with pytest.raises(sf.errors.InvalidParameter, match="number of categories"):
        sf.local.randomiser("krr", epsilon=1)
    for name, truth, epsilon in (
        ("krr", 0.7, None),
        ("rr", 0.7, 1),
        ("rr", 0.5, None),
        ("rr", 0.3, None),
        ("rr", 1, None),
    ):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.randomiser(name, truth=truth, epsilon=epsilon)


@pytest.mark.parametrize("name", NAMES)
def test_epsilon_is_never_above_what_was_asked(name):
    from decimal import Decimal

    for asked in ("0.001", "0.1", "0.33333333333333333333333333333333333333", "1", "2.718281828", "10"):
        assert made(name, epsilon=asked).epsilon <= Decimal(asked)


def test_many_categories():
    for name in ("krr", "olh", "hadamard"):
        randomiser = sf.local.randomiser(name, k=1 << 16, epsilon=2)
        estimate = randomiser.estimate(randomiser.randomise(np.arange(2000)))
        assert estimate.frequency.size == 1 << 16
