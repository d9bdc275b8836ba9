"""The exact loss of private choices: it equals exact probabilities, and shows spreads that are too narrow."""

from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.kernel import bin_choice
from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.neighbours import Neighbours
from sfumato.lab.auditing.audit_stage import Setting, set_stage
from sfumato.lab.auditing.choice_losses import find_choice_loss, find_marks, list_distributions
from sfumato.lab.auditing.query_audit import audit_pairs
from sfumato.lab.auditing.query_replay import ReplayResult, replay_pairs
from sfumato.lab.auditing.question_pairs import make_pairs
from sfumato.lab.distributions.choice_distributions import distribute_bins

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE
HALF = (Fraction(1, 2),)
CHOICES = [
    ExtremeChoice(True, 6, 1, ADD, Decimal(1)),
    ExtremeChoice(False, 6, 2, REPLACE, Decimal("0.7")),
    ExtremeChoice(True, 6, 500, ADD, Decimal(2)),  # the noise of the target is integrated
    ModeChoice(1, 6, 3, REPLACE, Decimal(1)),
    QuantileChoice(HALF, 6, 1, ADD, False, Decimal(1)),
    QuantileChoice((Fraction(1, 4),), 6, 2, REPLACE, True, Decimal(3)),
]
CELLS = [{0: 1, 5: 4}, {2: 7}, {}, {place: 2 * place for place in range(6)}]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_chances_are_those_of_the_exact_distribution(choice, cell):
    held = {place: weight * choice.reach for place, weight in cell.items()}
    (found,) = list_distributions(choice, held, find_marks(choice, held, held))
    exact = dict(distribute_bins(choice, [held.get(place, 0) for place in range(6)]).items())
    for place, chance in zip(found.bins, found.chances, strict=True):
        outcome = place if isinstance(choice, ExtremeChoice) else (place,)
        assert chance == pytest.approx(float(exact[outcome].low), rel=1e-4)


def list_neighbours(bins, most, *, replaced):
    for weights in product(range(most + 1), repeat=bins):
        before = dict(enumerate(weights))
        for old, new in product(range(bins), repeat=2):
            if before[old] and (old != new or not replaced):
                after = {**before, old: before[old] - 1}
                yield before, {**after, new: after[new] + 1} if replaced else after


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("kind", ["extreme", "mode", "median", "fullest"])
def test_correct_spreads_keep_epsilon_on_all_small_neighbours(neighbours, kind):
    choice = {
        "extreme": ExtremeChoice(True, 3, 1, neighbours, Decimal(1)),
        "mode": ModeChoice(1, 3, 1, neighbours, Decimal(1)),
        "median": QuantileChoice(HALF, 3, 1, neighbours, False, Decimal(1)),
        "fullest": ModeChoice(2, 3, 1, neighbours, Decimal(1)),
    }[kind]
    pairs = list_neighbours(3, 4, replaced=neighbours is REPLACE)
    worst = max(find_choice_loss(choice, [before], [after]) for before, after in pairs)
    assert 0.4 < worst <= 1 + 1e-9


def test_a_maximum_needs_the_factor_of_replace_one():
    """With the spread of add-remove, a replaced person costs 2 epsilon: a crowd at its target, one person moves in."""
    narrow = ExtremeChoice(True, 4, 1, ADD, Decimal(1))
    assert find_choice_loss(narrow, [{3: 6}], [{3: 5, 1: 1}]) == pytest.approx(2, rel=1e-6)
    wide = ExtremeChoice(True, 4, 1, REPLACE, Decimal(1))
    assert find_choice_loss(wide, [{3: 6}], [{3: 5, 1: 1}]) <= 1


def test_losses_of_cells_add_up():
    narrow = ModeChoice(1, 2, 1, ADD, Decimal(1))
    one = find_choice_loss(narrow, [{0: 4}], [{0: 3}])
    assert find_choice_loss(narrow, [{0: 4}, {0: 4}], [{0: 3}, {0: 3}]) == pytest.approx(2 * one)


COLUMNS = {"mark": sf.Integer(1, 10), "city": sf.Category(["Rome", "Oslo", "Bonn"])}


def replay_choice(sql, neighbours, folder):
    stage = set_stage(Dataset("d", [Table("t", None, sf.ROW, COLUMNS)], sf.Budget(epsilon=3), None, neighbours), sql)
    pairs = [pair for pair in make_pairs(stage, folder, 0, 1) if "people with" in pair.name]
    return ReplayResult(sql, "duckdb", tuple(replay_pairs(stage, sql, pairs, Setting())))


def drop_factor(self):
    return self.reach / Fraction(self.epsilon)


def drop_term(self):
    moved = sum((max(share, 1 - share) for share in self.fractions), Fraction(0))
    return moved * self.reach / Fraction(self.epsilon)


@pytest.mark.parametrize(
    ("sql", "neighbours", "kind", "fault"),
    [
        ("SELECT MAX(mark) AS m FROM t", "replace-one", ExtremeChoice, drop_factor),
        ("SELECT MIN(mark) AS m FROM t", "replace-one", ExtremeChoice, drop_factor),
        ("SELECT MODE(city) AS m FROM t", "replace-one", ModeChoice, drop_factor),
        ("SELECT MEDIAN(mark) AS m FROM t", "add-remove", QuantileChoice, drop_term),
    ],
)
def test_a_replay_finds_spreads_that_are_too_narrow(sql, neighbours, kind, fault, monkeypatch, tmp_path):
    assert replay_choice(sql, neighbours, tmp_path).verdict == "consistent"
    monkeypatch.setattr(kind, "spread", property(fault))
    found = replay_choice(sql, neighbours, tmp_path)
    assert found.verdict == "violated"
    assert "times likelier" in found.faults[0]


def test_an_audit_finds_a_choice_that_is_not_drawn_as_certified(monkeypatch, tmp_path):
    """A target without noise: the spread is right, so only the samples show it."""
    sql = "SELECT MAX(mark) AS m FROM t"
    stage = set_stage(Dataset("d", [Table("t", None, sf.ROW, COLUMNS)], sf.Budget(epsilon=3)), sql)
    pairs = [pair for pair in make_pairs(stage, tmp_path, 0, 1) if "people with highest" in pair.name][:1]
    assert audit_pairs(stage, sql, pairs, Setting(), 1_000, 1).verdict == "consistent"
    monkeypatch.setattr(bin_choice, "geometric", lambda _scale, size, _entropy: np.zeros(size, np.int64))
    found = audit_pairs(stage, sql, pairs, Setting(), 1_000, 1)
    assert any("another probability" in fault for fault in found.complete_faults)
