"""The views explain with exact numbers: ratios, neighbours by enumeration, errors of real answers, polls."""

import json
import math
import re
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.main import app
from sfumato.errors import InvalidParameter
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.neighbours import Neighbours
from sfumato.lab.explanations.neighbour_tables import QUERIES, SmallTable, bound_change, list_neighbours
from sfumato.lab.explanations.repeated_errors import BETAS, compare_errors
from sfumato.lab.explanations.sliding_property import find_rho

FALSE_ALARM = 1e-6

VIEWS = {
    "laplace": lambda: sf.lab.mechanism(1, 1),
    "wide laplace": lambda: sf.lab.mechanism("0.1", 300),
    "real laplace": lambda: sf.lab.mechanism("0.5", "0.12"),
    "gaussian": lambda: sf.lab.mechanism(1, 1, "1e-3"),
    "epsilon": lambda: sf.lab.epsilon(1),
    "small epsilon": lambda: sf.lab.epsilon("0.01", people=100),
    "large epsilon": lambda: sf.lab.epsilon(1000),
    "no loss": lambda: sf.lab.epsilon(0),
    **{f"neighbours {query}": (lambda query=query: sf.lab.neighbours(query)) for query in QUERIES},
    "error": lambda: sf.lab.error("count", repeats=10),
    "poll": lambda: sf.lab.randomized_response(seed=1, repeats=20),
    "large poll": lambda: sf.lab.randomized_response(50_000, "0.01", epsilon=3, repeats=10, seed=2),
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_a_text_a_page_and_json(name, tmp_path):
    view = VIEWS[name]()
    text = str(view)
    assert max(map(len, text.splitlines())) <= 80
    assert "nan" not in text
    view.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<svg" in page
    assert "prefers-color-scheme" in page
    assert 'name="viewport"' in page
    assert "<script" not in page
    assert set(re.findall(r"https?://[^\"' <)]+", page)) <= {"http://www.w3.org/2000/svg"}  # nothing is loaded
    assert not re.findall(r"=\"nan|,nan| nan|inf\"", page)  # no coordinate is missing
    assert json.loads(json.dumps(view.to_dict()))
    assert "<svg" in view._repr_html_()
    assert repr(view) == text  # at a prompt: not a dump of its fields
    with pytest.raises(AttributeError):
        setattr(view, fields(view)[0].name, None)  # frozen


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1, 1), ("0.1", 300), ("0.5", "0.12"), (3, 2)])
def test_ratios_slide_between_the_bounds(epsilon, sensitivity):
    view = sf.lab.mechanism(epsilon, sensitivity)
    bound = math.exp(float(epsilon))
    ratios = [cell.ratio for cell in view.cells]
    assert max(ratios) <= bound * (1 + 1e-12)
    assert min(ratios) >= 1 / bound * (1 - 1e-12)
    assert max(ratios) > bound * 0.999  # the bound is reached
    assert min(ratios) < 1 / bound * 1.001
    assert ratios == sorted(ratios, reverse=True) or max(a - b for a, b in zip(ratios[1:], ratios, strict=False)) < 1e-6
    assert sum(cell.first for cell in view.cells) > 0.98
    assert view.exact_delta == 0


def test_a_wrong_scale_is_seen_in_the_view():
    """Negative control: with half of the noise, the greatest ratio is far above the bound."""
    view = sf.lab.mechanism(1, 2)
    half = LaplaceNoise(view.first.noise.scale / 2)
    wrong = replace(view, first=replace(view.first, noise=half), second=replace(view.second, noise=half))
    assert wrong.greatest_ratio > math.exp(1) * 2
    assert wrong.exact_delta > 0.1


def test_gaussian_noise_pays_for_its_delta():
    view = sf.lab.mechanism(1, 1, "1e-3")
    assert 0 < view.exact_delta <= 1e-3
    assert view.greatest_ratio == math.inf


@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-9"])
@pytest.mark.parametrize("epsilon", ["0.1", "0.7", "1", "3"])
def test_rho_is_the_greatest_that_fits(epsilon, delta):
    rho = find_rho(Decimal(epsilon), Decimal(delta))
    assert sf.ZCDP(rho).to_approx(delta).epsilon <= Decimal(epsilon)
    assert sf.ZCDP(rho * Decimal("1.002")).to_approx(delta).epsilon > Decimal(epsilon)


def test_beliefs_move_between_both_factors():
    meaning = sf.lab.epsilon(1)
    for belief in meaning.beliefs:
        odds = belief.prior / (1 - belief.prior)
        assert belief.most / (1 - belief.most) == pytest.approx(odds * math.e)
        assert belief.least / (1 - belief.least) == pytest.approx(odds / math.e)
        assert belief.group_most / (1 - belief.group_most) == pytest.approx(odds * math.e**4)
    shown = meaning.to_dict()
    assert shown["factors"] == pytest.approx([1 / math.e, math.e])
    assert shown["approximation"] == [0, 2]
    assert "nearly 1 + ε" in str(sf.lab.epsilon("0.1"))
    assert "nearly 1 + ε" not in str(sf.lab.epsilon(1))


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("size", [2, 3])
def test_bounds_are_the_worst_case_over_all_tables(query, relation, size):
    """All tables of this size over 1 to 4, with all their neighbours: the greatest change is the bound exactly."""
    worst, bounds = Fraction(0), set()
    for rows in product(range(1, 5), repeat=size):
        table = SmallTable("all", "number", 1, 4, rows, 2, True)
        worst = max(worst, list_neighbours(query, table, relation).worst.distance)
        bounds.add(bound_change(query, table, relation)[0])
    assert bounds == {worst}


def test_every_neighbour_is_listed_once():
    view = sf.lab.neighbours("sum", "integers", rows=(3, 5))
    added, replaced = view.relations
    assert [neighbour.rows for neighbour in added.neighbours] == [(5,), (3,), *((3, 5, n) for n in range(1, 11))]
    assert len(replaced.neighbours) == len({neighbour.rows for neighbour in replaced.neighbours}) == 18
    assert all(sum(a != b for a, b in zip(n.rows, (3, 5), strict=True)) == 1 for n in replaced.neighbours)
    assert added.worst.change == "add 10"
    assert replaced.worst.distance == 7


def test_mean_of_heights_by_hand():
    view = sf.lab.neighbours("average", relation="replace-one")
    (found,) = view.relations
    assert found.worst.rows[-1] == 1
    assert found.worst.distance == Fraction(195 - 1, 5)
    assert found.bound == Fraction(299, 5)


@pytest.mark.parametrize(
    "arguments",
    [{"query": "median"}, {"data": "weights"}, {"relation": "both"}, {"rows": (5,)}, {"rows": (0, 5)}, {"query": None}],
    ids=str,
)
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(InvalidParameter):
        sf.lab.neighbours(**arguments)


@pytest.mark.parametrize("amount", [0, -1, "x", 11, "0.001", math.nan], ids=str)
def test_epsilons_without_a_picture_are_refused(amount):
    with pytest.raises(InvalidParameter, match="epsilon"):
        sf.lab.mechanism(amount)


@pytest.mark.parametrize(("query", "sensitivity"), [("count", 1), ("sum", 10), ("average", 0.1)])
def test_errors_stay_within_their_bounds(query, sensitivity):
    """At most a share of β lies beyond each bound, up to chance (Hoeffding, at FALSE_ALARM)."""
    view = sf.lab.error(query, repeats=60)
    assert view.sensitivity == pytest.approx(sensitivity)
    slack = math.sqrt(math.log(len(BETAS) / FALSE_ALARM) / (2 * len(view.errors)))
    assert all(bound.observed <= bound.beta + slack for bound in view.bounds)
    assert all(bound.formula <= bound.bound for bound in view.bounds)
    assert len(set(view.errors)) > 2  # no stored answer was repeated
    step = 1 / view.rows if query == "average" else 1
    wrong = compare_errors(0.01, sensitivity / 8, step, tuple(15 * (abs(error) + step) for error in view.errors))
    assert wrong.observed == 1  # negative control: errors that are all too large


def test_bounds_on_whole_numbers_hold_exactly():
    """P(|Z| > ceil(s ln(1/β))) <= β for discrete noise; without the rounding it would not hold."""
    found = sf.lab.probabilities(sf.Laplace(1, 1), 0)
    for beta in BETAS:
        reach = math.ceil(math.log(1 / beta))
        assert 1 - found.total(-reach, reach).low <= Fraction(beta)
    assert float(1 - found.total(-2, 2).low) > 0.05  # ln(1/0.05) = 2.996: the numbers within it are -2 to 2


@pytest.mark.parametrize("arguments", [{"query": "median"}, {"rows": 0}, {"repeats": 5}, {"repeats": 10**6}], ids=str)
def test_wrong_experiments_are_refused(arguments):
    with pytest.raises(InvalidParameter):
        sf.lab.error(**arguments)


def test_a_poll_with_a_seed_is_reproducible():
    assert sf.lab.randomized_response(seed=4, repeats=20) == sf.lab.randomized_response(seed=4, repeats=20)
    assert sf.lab.randomized_response(seed=4, repeats=20) != sf.lab.randomized_response(seed=5, repeats=20)
    assert sf.lab.randomized_response(repeats=20).seed is None


def test_the_price_of_the_local_model():
    """Four times the class: twice the local error, the same central error. Theory and measurement agree."""
    view = sf.lab.randomized_response(seed=1)
    assert view.response.loss.epsilon == pytest.approx(Decimal(math.log(3)))
    for small, large in zip(view.errors, view.errors[1:], strict=False):
        assert large.local_theory / small.local_theory == pytest.approx(2)
        assert large.central_theory == small.central_theory
    for error in view.errors:
        assert error.local == pytest.approx(error.local_theory, rel=0.3)
        assert error.central == pytest.approx(error.central_theory, rel=0.5)
        assert error.local_theory == pytest.approx(math.sqrt(0.75 * error.students))
    exact = sf.lab.probabilities(sf.Laplace(1, view.response.loss.epsilon), 0)
    variance = sum(z * z * float(exact.p(z)) for z in range(-80, 81))
    assert view.errors[0].central_theory == pytest.approx(math.sqrt(variance))


@pytest.mark.parametrize("arguments", [{"students": 1}, {"share": 2}, {"epsilon": 0}, {"repeats": 1}, {"seed": -1}])
def test_wrong_polls_are_refused(arguments):
    with pytest.raises(InvalidParameter):
        sf.lab.randomized_response(**arguments)


COMMANDS = [
    ["epsilon", "1"],
    ["lab", "mechanism", "--epsilon", "1", "--sensitivity", "1"],
    ["lab", "mechanism", "--delta", "1e-3"],
    ["lab", "neighbours", "--query", "maximum", "--relation", "add-remove", "--rows", "1,10"],
    ["lab", "error", "--repeats", "10", "--query", "sum"],
    ["lab", "randomized-response", "--students", "30", "--repeats", "10", "--seed", "1"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_print_and_write(command, tmp_path):
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(app, [*command, "--html", str(page)])
    assert shown.exit_code == 0, shown.output
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert str(page) in shown.output.replace("\n", "")
    as_json = CliRunner().invoke(app, [*command, "--json"])
    assert as_json.exit_code == 0
    assert json.loads(as_json.output)


@pytest.mark.parametrize(
    "command",
    [
        ["neighbours", "--rows", "1,x"],
        ["neighbours", "--query", "x"],
        ["mechanism", "--epsilon", "0"],
        ["error", "--rows", "0"],
    ],
    ids=" ".join,
)
def test_commands_refuse_with_a_sentence(command):
    refused = CliRunner().invoke(app, ["lab", *command])
    assert refused.exit_code in (2, 4)
    assert "Refused:" in refused.stderr
