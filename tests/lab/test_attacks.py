"""Every attack succeeds against the naive release and stays within the limit against Sfumato.

Sfumato's noise is never seeded. A correct release is reported with probability 1e-6 at most (FALSE_ALARM).
"""

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from draw_attacks import DOCS, SEED, make_document
from scipy import stats
from test_figures import check_self_contained
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.lab import COMMANDS
from sfumato.cli.main import app
from sfumato.errors import InvalidParameter
from sfumato.lab.attack_names import ATTACKS, find_attack, list_attacks
from sfumato.lab.attack_result import FALSE_ALARM
from sfumato.lab.attack_setup import read_setup
from sfumato.lab.attacks import differencing, least_significant_bits, precision
from sfumato.lab.attacks.ingestion import _make_dates, _make_ids
from sfumato.lab.attacks.numpy_laplace import is_reachable
from sfumato.lab.attacks.timing import draw_naively
from sfumato.lab.attacks.two_worlds import Case, World, close, play
from sfumato.lab.attacks.understated_sensitivity import _make_nan, _make_overflow, _make_rounding
from sfumato.lab.guess_limits import limit_guess


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
    "reconstruction",
    "timing",
    "membership",
)


@pytest.mark.parametrize("name", GROWING)
def test_an_epsilon_that_is_larger_than_claimed_is_reported(name):
    """Negative control: Sfumato with ε = 400, against the limit of ε = 1."""
    spent = find_attack(name).load()(epsilon=400, seed=SEED, trials=64 if name == "reconstruction" else 100)
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
def test_a_narrow_terminal_is_enough(name):
    text = run(name).write_text(40)
    assert max(map(len, text.splitlines())) <= 40
    assert "█" not in text
    assert "limit: " in text


@pytest.mark.parametrize("name", list_attacks())
def test_pages_and_figures_are_self_contained(name, tmp_path):
    result = run(name)
    result.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    check_self_contained(page)
    assert result.story.learns.partition(".")[0] in page.replace("&#x27;", "'")
    check_self_contained(result.figure.svg())
    check_self_contained(result._repr_html_())
    assert repr(result) == str(result)
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
    "wrong",
    [{"epsilon": 0}, {"epsilon": -1}, {"epsilon": float("nan")}, {"trials": 0}, {"trials": 10**6}, {"seed": -1}],
)
@pytest.mark.parametrize("name", list_attacks())
def test_wrong_arguments_are_refused(name, wrong):
    with pytest.raises(InvalidParameter):
        find_attack(name).load()(**wrong)


@pytest.mark.parametrize("name", list_attacks())
def test_unusual_arguments_work(name):
    for epsilon, trials in (("0.01", 3), ("0.3333333333333333333333333", 1), ("1000", 2)):
        result = find_attack(name).load()(epsilon=epsilon, trials=trials)
        assert max(map(len, str(result).splitlines())) <= 80
        assert result.figure.svg()


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


def test_runs_of_differencing_have_their_own_ledgers(monkeypatch):
    """Runs with other budgets must not meet in one population, whatever the memory reuses."""
    seen = []
    real = differencing.protect

    def watch(*arguments, population, **options):
        seen.append(population)
        return real(*arguments, population=population, **options)

    monkeypatch.setattr(differencing, "protect", watch)
    rows = np.full((2, differencing.TEAM), 50)
    for epsilon in (1, 2):
        differencing._ask_difference(rows, read_setup(epsilon, SEED, 2))
    assert seen[0] == seen[1] != seen[2] == seen[3]


def test_an_unknown_name_is_refused_with_all_names_and_the_closest():
    shown = re.sub(r"[\s│]+", " ", CliRunner().invoke(app, ["lab", "linkge"]).output)
    assert "Did you mean 'linkage'?" in shown
    for command in COMMANDS:
        assert command.name in shown


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


def test_precision_finds_numpy_noise_in_place_of_sfumatos(monkeypatch):
    """Negative control."""
    monkeypatch.setattr(precision, "_release", precision._release_naively)
    assert precision.precision(seed=SEED).exceeds_limit


def test_no_output_with_the_fortune_proves_that_it_is_absent():
    """The proof is sound: it is never found where it would be wrong."""
    setup = read_setup(1, SEED, 20_000)
    assert precision._count_proofs(precision._release_naively(precision.FORTUNE, setup)).successes == 0
    assert precision._count_proofs(np.zeros(3)).successes == 0


class BrokenCurator:
    """Answers with the naive value plus noise for the claimed sensitivity."""

    def __init__(self, value, generator):
        self.value, self.generator = value, generator

    def ask(self, sql, epsilon):
        return SimpleNamespace(rows=[{"value": self.value + self.generator.laplace(0, 1 / float(epsilon))}])


def test_a_curator_that_adds_in_floats_is_reported():
    """Negative control of `sensitivity` and `ingestion`: their game finds an understated sensitivity."""
    setup = read_setup(1, SEED, 200)
    absent, present = (World(value, value, BrokenCurator(value, setup.generator)) for value in (0.0, 33.0))
    _, protected = play(Case("floats", 1.0, "SELECT {}", absent, present), setup)
    assert protected.lower_bound(FALSE_ALARM) > limit_guess(1)


def test_the_odd_records_change_the_naive_values_as_claimed(tmp_path):
    setup = read_setup(1, SEED, 1)
    cases = [make(setup) for make in (_make_rounding, _make_overflow, _make_nan)]
    cases += [make(setup, tmp_path) for make in (_make_ids, _make_dates)]
    changes = [case.naive_change for case in cases]
    close(cases)
    assert changes[:2] == [33, 2047]
    assert np.isnan(changes[2])
    assert min(changes[3:]) > 200
    assert all(abs(case.present.true_value - case.absent.true_value) <= case.sensitivity for case in cases)


def test_the_naive_sampler_draws_discrete_laplace_noise():
    """The timing attack's victim is correct apart from its running time."""
    flip = np.random.default_rng(SEED).random
    drawn = np.array([draw_naively(25, flip) for _ in range(4000)])
    ratio = np.exp(-1 / 25)
    assert stats.binomtest(int((drawn == 0).sum()), 4000, (1 - ratio) / (1 + ratio)).pvalue > FALSE_ALARM
    assert stats.binomtest(int((drawn > 0).sum()), int((drawn != 0).sum())).pvalue > FALSE_ALARM
    assert np.abs(drawn).mean() == pytest.approx(2 * ratio / (1 - ratio**2), rel=0.1)


def read_texts(svg):
    """The texts of a figure without their numbers, which differ from run to run."""
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return {without_numbers(node.text or "") for node in texts}


def without_numbers(text):
    return re.sub(r"-?\d[\d.,]*", "#", text)


@pytest.mark.parametrize("name", list_attacks())
def test_the_documented_figures_are_current(name):
    """If this fails: make figures."""
    drawn = (DOCS / "attacks" / f"{name}.svg").read_text()
    assert read_texts(drawn) == read_texts(run(name).figure.svg())


def test_the_document_is_current():
    """If this fails: make figures."""
    documented = (DOCS / "attacks.md").read_text()
    assert without_numbers(documented) == without_numbers(make_document([run(name) for name in list_attacks()]))
    (snippet,) = re.findall(r"```python\n(.*?)```", documented, re.DOTALL)
    for line in ("result.naive, result.protected", "result.limit, result.formula", "result.exceeds_limit"):
        assert line in snippet
        eval(line, {"result": run("linkage")})
