"""Seeded noise repeats itself, has the mechanism's law, and cannot reach a curator or a ledger."""

import ast
import inspect
import math
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import sfumato as sf
from sfumato.curator import Curator
from sfumato.errors import SfumatoError
from sfumato.standalone.mechanisms.additive_noise import release_on_grid

SOURCE = Path(__file__).parents[2] / "src" / "sfumato"
FALSE_ALARM = 1e-6


@pytest.mark.parametrize(
    ("mechanism", "value"),
    [
        (sf.Laplace(1, 1), 42),
        (sf.Laplace("0.5", 1), [1.5, 2.5]),
        (sf.Gaussian(1, "0.5"), 42),
        (sf.PrivateChoice(1, 1), [3, 9, 4]),
        (sf.ThresholdedKeys(1, "1e-4"), {"Rome": 30, "Oslo": 1}),
        (sf.RandomizedResponse(1), [True, False, True]),
        (sf.KaryResponse(5, 1), 3),
        (sf.local.randomiser("oue", k=3, epsilon=1), 2),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_the_same_seed_gives_the_same_draws(mechanism, value):
    first, second, other = sf.lab.seeded(7), sf.lab.seeded(7), sf.lab.seeded(8)
    draws = [[repr(source.release(mechanism, value)) for _ in range(25)] for source in (first, second, other)]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]
    assert len(set(draws[0])) > 1  # it does not repeat one draw


def test_numbers_on_a_slide_stay():
    """These are in the lessons: another sequence of bytes would change every slide."""
    source = sf.lab.seeded(1)
    assert [source.release(sf.Laplace(1, 1), 42) for _ in range(6)] == SLIDE
    assert source.draws == 6


SLIDE = [42, 44, 42, 41, 41, 43]


def test_draws_have_the_mechanisms_law():
    mechanism, source = sf.Laplace(1, 1), sf.lab.seeded(3)
    exact = sf.lab.probabilities(mechanism, 0)
    drawn = [source.release(mechanism, 0) for _ in range(4000)]
    bound = math.sqrt(math.log(2 / FALSE_ALARM) / 8000)
    assert all(abs(sum(z <= k for z in drawn) / 4000 - float(exact.cdf(k))) < bound for k in range(-5, 6))
    wrong = sf.lab.probabilities(sf.Laplace(2, 1), 0)  # negative control: twice the scale
    assert not all(abs(sum(z <= k for z in drawn) / 4000 - float(wrong.cdf(k))) < bound for k in range(-5, 6))


def test_made_up_data():
    source = sf.lab.seeded(5)
    heights = source.integers(1, 300, 1000)
    assert 1 <= heights.min() < 10 < 290 < heights.max() <= 300
    assert 200 < source.coins(Fraction(1, 4), 1000).sum() < 300


@pytest.mark.parametrize("seed", [-1, 1.5, None, True, "1"], ids=str)
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(SfumatoError, match="seed"):
        sf.lab.seeded(seed)


def open_people(**more):
    return sf.protect(
        pd.DataFrame({"age": [30, 40]}), name="people", unit=sf.ROW, columns={"age": sf.Integer(0, 120)},
        budget=sf.Budget(epsilon=3), **more,
    )  # fmt: skip


def test_no_curator_takes_it():
    """By name, by position, as a ledger or as data: it is refused, and nothing is charged."""
    source = sf.lab.seeded(1)
    with pytest.raises(SfumatoError):
        open_people(ledger=source)
    with pytest.raises(SfumatoError):
        sf.protect(source, name="people", unit=sf.ROW, columns={"age": sf.Integer(0, 120)}, budget=sf.Budget(epsilon=3))
    with open_people() as people:
        for name in ("entropy", "noise", "seed", "source"):
            for call in (people.ask, people.preview, people.upgrade, people.ask_all, people.watch):
                with pytest.raises(TypeError, match="unexpected keyword"):
                    call("SELECT COUNT(*) AS n FROM people", **{name: source})
        with pytest.raises(SfumatoError):
            people.ask("SELECT COUNT(*) AS n FROM people", source)
        with pytest.raises(SfumatoError):
            people.ask("SELECT COUNT(*) AS n FROM people", epsilon=1, analyst=source)
        assert people.budget.spent.epsilon == 0
        with pytest.raises(SfumatoError, match="curator draws its own"):
            source.release(people, 3)
    for thing in (sf.protect, sf.open, Curator, sf.Budget):
        assert not {"entropy", "noise", "seed"} & set(inspect.signature(thing).parameters)


def test_it_is_no_entropy():
    """A sampler calls `take`: the object has none, and its bytes stay in its own file."""
    assert not hasattr(sf.lab.seeded(1), "take")
    with pytest.raises(AttributeError, match="take"):
        release_on_grid(sf.Laplace(1, 1).mechanism, 1, sf.lab.seeded(1))


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_its_file_knows_no_ledger_and_no_curator():
    """The seeded bytes are made in one file, which imports nothing that charges, stores or releases answers."""
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    assert [path.name for path, text in texts.items() if "_SeededBytes" in text] == ["seeded_noise.py"]
    named = {module for module in imports_of(SOURCE / "lab" / "seeded_noise.py") if module.startswith("sfumato")}
    forbidden = ("ledger", "curator", "opening", "answering", "engines", "kernel.release", "kernel.reservation")
    assert not [module for module in named if module.removeprefix("sfumato.").startswith(forbidden)]
    assert [module for module in ("sfumato.ledger.ledger",) if module.removeprefix("sfumato.").startswith(forbidden)]
