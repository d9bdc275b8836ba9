"""Every attack succeeds against the naive release and stays within the limit against Sfumato.

Sfumato's noise is never seeded. A correct release is reported with probability 1e-6 at most (FALSE_ALARM).
"""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from test_figures import check_self_contained
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.main import app
from sfumato.errors import InvalidParameter
from sfumato.lab.attack_names import ATTACKS, find_attack, list_attacks
from sfumato.lab.attack_result import FALSE_ALARM
from sfumato.lab.attacks import least_significant_bits
from sfumato.lab.attacks.numpy_laplace import is_reachable
from sfumato.lab.guess_limits import limit_guess

SEED = 7


@cache
def run(name):
    return find_attack(name).load()(seed=SEED)


@pytest.mark.parametrize("name", list_attacks())
def test_the_naive_release_breaks_the_limit_and_sfumato_does_not(name):
    result = run(name)
    assert not result.exceeds_limit
    tries = iter(range(3 if name == "timing" else 0))  # a busy machine disturbs its clock
    while result.naive.lower_bound(FALSE_ALARM) <= result.limit and next(tries, None) is not None:
        result = find_attack(name).load()(seed=SEED)
    assert result.naive.lower_bound(FALSE_ALARM) > result.limit
    assert "within its limit" in result.verdict


@pytest.mark.parametrize("name", list_attacks())
def test_a_protected_release_that_breaks_the_limit_is_reported(name):
    """Negative control: the naive release, passed off as the protected one."""
    broken = replace(run(name), protected=run(name).naive)
    assert broken.exceeds_limit
    assert "EXCEEDS" in broken.verdict
    assert "EXCEEDS" in str(broken)
    assert broken.to_dict()["exceeds_limit"]


# attacks whose success grows with epsilon, and so finds an epsilon that is larger than claimed
GROWING = (
    "linkage",
    "homogeneity",
    "collusion",
    "differencing",
    "averaging",
    "least-significant-bits",
    "ingestion",
    "membership",
)


@pytest.mark.parametrize("name", GROWING)
def test_an_epsilon_that_is_larger_than_claimed_is_reported(name):
    """Negative control: Sfumato with ε = 400, against the limit of ε = 1."""
    spent = find_attack(name).load()(epsilon=400, seed=SEED, trials=100)
    values = round(1 + (1 / run(name).limit - 1) * np.e)  # of the secret
    assert limit_guess(1, values=values) == pytest.approx(run(name).limit)
    assert not spent.exceeds_limit
    assert replace(spent, limit=run(name).limit).exceeds_limit


@pytest.mark.parametrize("name", list_attacks())
def test_a_terminal_of_80_columns_is_enough(name):
    lines = str(run(name)).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("limit") and run(name).formula in line for line in lines)


@pytest.mark.parametrize("name", list_attacks())
def test_pages_and_figures_are_self_contained(name, tmp_path):
    result = run(name)
    result.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    check_self_contained(page)
    assert result.story.learns.partition(".")[0] in page.replace("&#x27;", "'")
    check_self_contained(result.figure.svg())
    check_self_contained(result._repr_html_())
    assert all(panel.alt for panel in result.figure.panels)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_each_attack_is_a_function_of_the_lab(attack):
    function = getattr(sf.lab, attack.function_name)
    assert function is attack.load()
    assert function.__doc__
    assert attack.function_name in dir(sf.lab)
    assert len(attack.summary) <= 56  # with its name, in one line of 80 columns


@pytest.mark.parametrize("name", list_attacks())
def test_a_seed_fixes_the_data_and_the_naive_noise(name):
    if name != "timing":  # clocks are not seeded
        attack = find_attack(name).load()
        assert len({attack(seed=SEED, trials=12).naive for _ in range(2)}) == 1


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0}, {"epsilon": -1}, {"epsilon": float("nan")}, {"trials": 0}, {"seed": -1}]
)
@pytest.mark.parametrize("name", list_attacks())
def test_wrong_arguments_are_refused(name, wrong):
    with pytest.raises(InvalidParameter):
        find_attack(name).load()(**wrong)


def test_the_command_line_runs_an_attack(tmp_path):
    page = tmp_path / "out.html"
    result = CliRunner().invoke(app, ["lab", "collusion", "--seed", "7", "--epsilon", "0.5", "--html", str(page)])
    assert result.exit_code == 0
    assert "Collusion" in result.output
    check_self_contained(page.read_text())
    shown = json.loads(CliRunner().invoke(app, ["lab", "collusion", "--seed", "7", "--json"]).output)
    assert shown["naive"]["share"] == 1
    assert shown["formula"] == "e^ε / (e^ε + 9)"


def test_the_command_line_lists_the_attacks():
    result = CliRunner().invoke(app, ["lab"])
    assert result.exit_code == 0
    for attack in ATTACKS:
        assert attack.name in result.output
        assert attack.summary in result.output


def test_the_command_line_refuses_wrong_arguments():
    assert CliRunner().invoke(app, ["lab", "collusion", "--epsilon", "0"]).exit_code == 4
    assert CliRunner().invoke(app, ["lab", "nothing"]).exit_code == 2


@pytest.mark.parametrize("scale", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("value", [0.0, 1.0, 16.0])
def test_every_output_of_numpy_is_reachable(scale, value):
    """The support of numpy's generator is known exactly: none of its outputs is called impossible."""
    outputs = value + np.random.default_rng(SEED).laplace(0, scale, 2000)
    assert all(is_reachable(float(output), value, scale) for output in outputs)


def test_most_doubles_are_not_reachable():
    """Negative control: doubles that lie beside outputs of numpy."""
    outputs = np.nextafter(np.random.default_rng(SEED).laplace(0, 1, 2000), 9)
    assert sum(is_reachable(float(output), 0.0, 1.0) for output in outputs) < 1000


def test_numpy_noise_in_place_of_sfumatos_is_reported(monkeypatch):
    """Negative control: least-significant-bits finds a mechanism whose noise has holes."""
    monkeypatch.setattr(least_significant_bits, "_attack_sfumato", least_significant_bits._attack_numpy)
    assert least_significant_bits.least_significant_bits(seed=SEED).exceeds_limit


def test_all_attacks_make_an_index(tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.cli.lab.ATTACKS", tuple(map(find_attack, ("collusion", "precision"))))
    result = CliRunner().invoke(app, ["lab", "all", "--seed", "7", "--html", str(tmp_path / "pages")])
    assert result.exit_code == 0
    assert "collusion" in result.output
    index = (tmp_path / "pages" / "index.html").read_text()
    check_self_contained(index)
    for name in ("collusion", "precision"):
        assert f'href="{name}.html"' in index
        check_self_contained((tmp_path / "pages" / f"{name}.html").read_text())
    shown = json.loads(CliRunner().invoke(app, ["lab", "all", "--seed", "7", "--json"]).output)
    assert [attack["attack"] for attack in shown] == ["collusion", "precision"]
