"""sf.lab.audit: its power on correct mechanisms, and what it observes of an output."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.lab import audit
from sfumato.lab.auditing.canonical_outputs import observe, run_and_observe

# Failure probabilities: a correct mechanism is "violated" with probability 1e-6 at most, by design (enumerated in
# test_audit_limits.py). The bounds that are asserted here are ten standard errors away.


class Plain:
    """An object that says nothing in its repr, and that holds itself."""

    def __init__(self, data=0):
        self.data = [data]
        self.itself = self


def laplace_batch(scale_of=1):
    mechanism = sf.Laplace(sensitivity=1, epsilon=scale_of, of="integers")
    return lambda data, count: mechanism.release(np.full(count, data))


def test_the_bound_on_a_correct_laplace_is_at_least_nine_tenths():
    found = audit(laplace_batch(), 0, 1, epsilon=1, samples=200_000, batch=True)
    assert 0.9 <= found.lower_bound <= 1.02
    assert found.verdict != "violated"
    assert found.samples == 200_000
    assert found.confidence == 0.95


def test_the_plain_path_gives_the_same():
    found = audit(sf.Laplace(sensitivity=1, epsilon=1).release, 0, 1, epsilon=1, samples=4_000)
    assert 0.4 <= found.lower_bound <= 1.2
    assert found.verdict != "violated"


def test_too_little_noise_is_a_violation():
    found = audit(laplace_batch(2), 0, 1, epsilon=1, samples=20_000, batch=True)
    assert found.verdict == "violated"
    assert found.lower_bound > 1
    assert "the output" in found.event


def test_claims_in_delta_and_rho():
    gaussian = sf.Gaussian(sensitivity=1, rho="0.5", of="integers")

    def release(data, count):
        return gaussian.release(np.full(count, data))

    assert audit(release, 0, 1, rho="0.5", samples=20_000, batch=True).verdict == "consistent"
    assert audit(release, 0, 1, rho="0.1", samples=20_000, batch=True).verdict == "violated"
    approximate = sf.ZCDP("0.5").to_approx("1e-5")
    honest = audit(release, 0, 1, approximate.epsilon, approximate.delta, samples=20_000, batch=True)
    assert honest.verdict == "consistent"
    assert honest.delta == 1e-5
    assert audit(release, 0, 1, 1, "1e-5", samples=20_000, batch=True).verdict == "violated"


def test_events_are_tested_on_other_runs():
    """Only the searched half of the runs differs between the datasets: the tested half shows no loss."""

    def release(data, count):
        first, second = np.random.default_rng(data).integers(0, 50, (2, count // 2))
        return np.concatenate([first * (1 + data), second])

    assert audit(release, 0, 1, samples=2_000, batch=True).lower_bound < 0.5


def test_few_samples_are_inconclusive_and_it_says_how_many_would_do():
    found = audit(lambda data: data, 0, 1, epsilon=1, samples=60)
    assert found.verdict == "inconclusive"
    enough = audit(lambda data: data, 0, 1, epsilon=1, samples=found.samples_needed)
    assert enough.verdict == "violated"


def test_weak_evidence_is_inconclusive():
    """A ratio of 4 where e is claimed: enough for a 95 % bound above the claim, too little for a verdict."""

    def release(data, count):
        outputs = np.arange(count) % 10 < (4 if data else 1)
        return np.random.default_rng(0).permutation(outputs)

    found = audit(release, 0, 1, epsilon=1, samples=3_000, batch=True)
    assert found.lower_bound > 1
    assert found.verdict == "inconclusive"
    assert 3_000 < found.samples_needed < 30_000
    assert audit(release, 0, 1, epsilon=1, samples=2 * found.samples_needed, batch=True).verdict == "violated"


def test_without_a_claim_there_is_only_a_bound():
    found = audit(laplace_batch(), 0, 1, samples=2_000, batch=True)
    assert found.verdict is None
    assert found.claim is None
    assert "Verdict" not in str(found)
    assert found.lower_bound > 0


def test_a_claim_of_no_loss():
    assert audit(lambda data: 5, 0, 1, epsilon=0, samples=2_000).verdict == "consistent"
    assert audit(laplace_batch(), 0, 1, epsilon=0, samples=20_000, batch=True).verdict == "violated"


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data: [0.0] * (3 + data),  # length
        lambda data: 1.0 if data else 1,  # type
        lambda data: math.nan if data else 1.0,
        lambda data: np.float32(1) if data else np.float64(1),
        lambda data: "yes" if data else "no",
        lambda data: {"a": 1, "b": data},
        lambda data: 0.0 if data else -0.0,
        lambda data: (1, 2) if data else [1, 2],
        lambda data: 1 // (1 - data),  # exception
        lambda data: [].pop() if data else {}["x"],  # type of the exception
        lambda data: int("x" * (1 + data)),  # its message
        lambda data: pd.DataFrame({"x": [1, 2 + data]}),
        lambda data: pd.DataFrame({"x": pd.Series([1], dtype="int32" if data else "int64")}),
        lambda data: pl.DataFrame({"x" if data else "y": [1]}),
        lambda data: pd.DataFrame([[1, 2 + data]], columns=["x", "x"]),
        lambda data: pd.Series([1.0, 2.0 + data * 1e-15]),
        lambda data: pl.Series([1 + data]),
        lambda data: pa.array([1, None] if data else [1, 2]),
        lambda data: SimpleNamespace(x=[data]),
        lambda data: Plain(data),
        lambda data: {1, 2, 3 + data},
        lambda data: int if data else float,
        lambda data: 2**200 + data,  # equal as floats
        lambda data: [2**200 + data],
        lambda data: np.zeros((2, 3)) if data else np.zeros((3, 2)),
        lambda data: None if data else (),
    ],
)  # fmt: skip
def test_everything_observable_is_observed(mechanism):
    found = audit(mechanism, 0, 1, epsilon=1, samples=400)
    assert found.verdict == "violated", found
    assert found.notes  # it says that there is no noise


def test_outputs_that_look_alike_are_equal():
    assert observe(Plain()) == observe(Plain())  # addresses in memory are not compared
    assert observe([1, {"a": math.nan}]).exact == observe([1, {"a": math.nan}]).exact
    assert observe(True).exact != observe(1).exact
    assert run_and_observe(lambda data: 1 / data, 0).structure == "raises ZeroDivisionError"


def test_an_answer_is_an_output():
    frame, columns = pd.DataFrame({"x": [1, 2, 3]}), {"x": sf.Integer(0, 9)}
    with sf.protect(frame, name="t", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=1)) as curator:
        answer = curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    observed = observe(answer)
    assert observed.numbers[".rows[0]['n']"] == answer.rows[0]["n"]
    assert observed.texts[".columns[0]"] == "n"


def test_noise_of_floats_shows_in_the_low_bits():
    generator = np.random.default_rng()
    found = audit(lambda data, count: data + generator.laplace(size=count), 0.0, 1.0, 1, samples=20_000, batch=True)
    assert found.verdict == "violated"
    assert "lowest bit" in found.event


def test_equal_entries_are_seen():
    """Two releases with the same noise: each is private, their difference is exact."""
    generator = np.random.default_rng()

    def release(data, count):
        noise = np.rint(generator.laplace(0, 4, count))
        return np.stack([10 + noise, 10 + data + noise], axis=1)

    found = audit(release, 0, 1, epsilon=1, samples=4_000, batch=True)
    assert found.verdict == "violated"
    assert "minus" in found.event or "plus" in found.event


def test_repeated_noise_is_noted():
    calls = iter(range(10**9))
    found = audit(lambda data: (next(calls) // 50) % 7, 0, 1, samples=2_000)
    assert any("repeat" in note for note in found.notes)


def test_the_result_as_json_and_text():
    found = audit(laplace_batch(), 0, 1, epsilon=1, samples=2_000, batch=True)
    parsed = json.loads(found.to_json())
    assert parsed["lower_bound"] == found.lower_bound
    assert parsed["claim"] == "PureDP(epsilon=1)"
    assert "Verdict" in repr(found)
    assert "95 % confidence" in str(found)


def test_wrong_arguments_are_refused():
    with pytest.raises(sf.errors.InvalidParameter, match="samples"):
        audit(int, 0, 1, samples=3)
    with pytest.raises(sf.errors.InvalidParameter, match="callable"):
        audit(7, 0, 1)
    with pytest.raises(sf.errors.InvalidParameter, match="rho"):
        audit(int, 0, 1, epsilon=1, rho=1)
    with pytest.raises(sf.errors.InvalidParameter, match="batch=True"):
        audit(lambda data, count: [1], 0, 1, samples=100, batch=True)
    with pytest.raises(sf.errors.InvalidParameter, match="delta"):
        audit(int, 0, 1, delta=2)
