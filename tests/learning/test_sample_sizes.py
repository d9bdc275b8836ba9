"""The sample-size calculator and its inverses."""

import json
import math

import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.accuracy.query_tolerances import ROUNDING
from sfumato.cli.main import app
from sfumato.learning import find_beta, find_epsilon, find_queries, find_tolerance, sample_size


@pytest.mark.parametrize(
    ("k", "tolerance", "beta", "epsilon"),
    [(1, 0.1, 0.05, 1), (10, 0.05, 0.05, 1), (100, 0.01, 0.001, "0.1"), (16, 0.02, 0.5, 8), (1000, 0.3, 0.01, "0.5")],
)
def test_it_is_never_above_the_formula_of_the_proof(k, tolerance, beta, epsilon):
    """max{(2K/(epsilon tau)) ln(2K/beta), (2/tau^2) ln(4K/beta)} + 1. The formula of the lectures has the sum."""
    rest = tolerance - 2 * float(ROUNDING)
    noise = 2 * k / (float(epsilon) * rest) * math.log(2 * k / beta)
    stated = max(noise, 2 / rest**2 * math.log(4 * k / beta)) + 1
    found = sample_size(k, str(tolerance), str(beta), epsilon)
    assert found <= stated
    assert found > 0.2 * stated  # negative control: it is no other quantity


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("class_size", [None, 3**20])
def test_the_inverses_agree(neighbours, class_size):
    options = {"neighbours": neighbours, "class_size": class_size}
    rows = sample_size(12, "0.05", "0.1", 1, **options)
    assert find_tolerance(12, rows, "0.1", 1, **options) <= 0.05 < find_tolerance(12, rows - 1, "0.1", 1, **options)
    epsilon = find_epsilon(12, "0.05", "0.1", rows, **options)
    assert float(epsilon) == pytest.approx(1, rel=0.01)
    assert find_tolerance(12, rows, "0.1", epsilon, **options) <= 0.05
    assert find_queries("0.05", "0.1", 1, rows, **options) == 12
    beta = find_beta(12, "0.05", rows, 1, **options)
    assert beta <= 0.1 * 1.03
    assert find_tolerance(12, rows, str(beta), 1, **options) <= 0.05


def test_a_larger_class_and_private_rows_need_more():
    plain = sample_size(12, "0.05", "0.1", 1)
    assert sample_size(12, "0.05", "0.1", 1, class_size=10**6) > plain
    assert sample_size(12, "0.05", "0.1", 1, neighbours="add-remove") > plain
    assert find_queries("0.001", "0.1", 1, 10) == 0
    assert find_beta(12, "0.001", 10, 1) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0}, {"tolerance": 0}, {"tolerance": 1}, {"beta": 0}, {"epsilon": -1}, {"class_size": 0},
        {"neighbours": "other"}, {"tolerance": "1e-8"}, {"class_size": 1.5},
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(wrong):
    given = {"k": 3, "tolerance": "0.1", "beta": "0.1", "epsilon": 1, **wrong}
    with pytest.raises(sf.errors.InvalidParameter):
        sample_size(**given)


def plan(*arguments, code=0):
    done = CliRunner().invoke(app, ["learn", "plan", *arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_the_command_computes_the_missing_one():
    known = {"k": "10", "tolerance": "0.05", "epsilon": "1", "rows": "5000"}
    for missing in known:
        given = [part for name, value in known.items() if name != missing for part in (f"--{name}", value)]
        found = json.loads(plan(*given, "--json"))
        assert found["found"] == missing
        assert plan(*given).startswith("queries (K) = " if missing == "k" else f"{missing} = ")
        assert plan(*(part.replace("--k", "--queries") for part in given)) == plan(*given)
    assert json.loads(plan("--k", "10", "--tolerance", "0.05", "--epsilon", "1", "--json"))["rows"] == sample_size(
        10, "0.05", "0.05", 1
    )


@pytest.mark.parametrize(
    "name", ["monotone-conjunction", "conjunction", "threshold", "interval", "stump", "decision-list"]
)
def test_the_command_states_guarantees(name):
    size = "--grid-values" if name in ("threshold", "interval") else "--features"
    given = ("--learner", name, size, "4", "--alpha", "0.2", "--epsilon", "1")
    public = json.loads(plan(*given, "--json"))["rows"]
    assert public > 100
    assert "m = " in plan(*given)
    private = json.loads(plan(*given, "--json", "--neighbours", "add-remove"))["rows"]
    assert private > public
    other = "--features" if size == "--grid-values" else "--grid-values"
    assert f"takes no {other}" in plan(*given, other, "3", code=2)
    assert "computes --rows" in plan(*given, "--rows", "3", code=2)


def test_the_command_refuses_what_it_cannot_use():
    assert "1 of four are given" in plan("--k", "3", code=2)
    plan("--k", "0", "--tolerance", "0.1", "--epsilon", "1", code=2)
    assert "--alpha belongs to a --learner" in plan("--alpha", "0.1", code=2)
    assert "Not even one query" in plan("--tolerance", "0.001", "--epsilon", "1", "--rows", "50")
    assert "says nothing" in plan("--k", "100", "--epsilon", "1", "--rows", "5")
    plan("--k", "3", "--tolerance", "0.1", "--epsilon", "1", "--rows", "3", code=2)
    plan("--learner", "stump", "--epsilon", "1", code=2)
    plan("--k", "3", "--tolerance", "2", "--epsilon", "1", code=4)
