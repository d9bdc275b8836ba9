"""Pairs that depend on the question: at its literals, with mixed extremes, and of keys at their threshold."""

import math
from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.kernel import release
from sfumato.lab.auditing.audit_stage import Setting, set_stage
from sfumato.lab.auditing.neighbouring_pairs import list_pairs
from sfumato.lab.auditing.query_replay import replay_pairs
from sfumato.lab.auditing.question_pairs import ComparedColumn, find_compared, make_question_pairs
from sfumato.lab.auditing.recorded_release import ExactIntegers

COLUMNS = {
    "person": sf.Id(),
    "cost": sf.Real(0, 500),
    "age": sf.Integer(0, 120),
    "city": sf.Category(["Rome", "Oslo", "Bonn"]),
    "job": sf.Text(),
    "day": sf.Date("2024-01-01", "2024-12-31"),
    "seen": sf.DateTime("2024-01-01T00:00:00", "2024-12-31T00:00:00"),
}
KEYS = "SELECT job, COUNT(*) AS n FROM t GROUP BY job"


def declare(neighbours="add-remove"):
    budget = sf.Budget(epsilon=3, delta="1e-6")
    return Dataset("d", [Table("t", None, "person", COLUMNS, 2, 2)], budget, None, neighbours)


def list_values(sql, column):
    """The values that the changed person has in a column, over all pairs of a question."""
    pairs = make_question_pairs(set_stage(declare(), sql), Setting(), 1)
    return {pair.second["t"][1][column].to_pylist()[-1] for pair in pairs}


def test_people_have_values_at_and_around_each_literal():
    sql = (
        "SELECT SUM(CASE WHEN cost > 37.5 THEN 1 ELSE 0 END) AS n FROM t WHERE age BETWEEN 18 AND 65 AND job = 'Baker' "
        "AND day >= DATE '2024-06-01' AND seen < TIMESTAMP '2024-06-01 12:00:00' AND city <> 'Oslo'"
    )
    near = {37.5, math.nextafter(37.5, 0), math.nextafter(37.5, 99)}
    assert near <= list_values(sql, "cost")
    assert {64, 65, 66} <= list_values(sql, "age")
    assert {"Baker", "Baker ", "bAKER"} <= list_values(sql, "job")
    assert {"2024-05-31", "2024-06-01", "2024-06-02"} <= list_values(sql, "day")
    assert {"2024-06-01 11:59:59", "2024-06-01 12:00:00", "2024-06-01 12:00:01"} <= list_values(sql, "seen")
    assert {"Rome", "Oslo", "Bonn"} <= list_values(sql, "city")


@pytest.mark.parametrize(
    "text", ["age < 1e99", f"age < {10**30}", "day < DATE '9999-12-31'", "cost > -1e-50", "age = 0.5"]
)
def test_unusual_literals_have_pairs(text):
    sql = f"SELECT COUNT(*) AS n FROM t WHERE {text}"
    pairs = list(make_question_pairs(set_stage(declare(), sql), Setting(), 1))
    assert len([pair for pair in pairs if "the literals" in pair.name]) == 3
    assert not any(found.faults for found in run(sql, pairs, declare()))


@pytest.mark.parametrize(
    ("kind", "literal"), [(sf.Integer(0, 9), math.inf), (sf.Integer(0, 9), 10**400), (sf.Real(0, 9), 10**400)]
)
def test_literals_beyond_the_floats_do_not_fail(kind, literal):
    for side in ("at", "just above", "just below"):
        assert ComparedColumn("x", kind, literal).move(side) == literal


def test_categories_of_numbers_move_to_their_neighbours():
    column = ComparedColumn("x", sf.Category([1, 2, 3]), 2)
    assert [column.move(side) for side in ("at", "just above", "just below")] == [2, 3, 1]


def test_a_question_without_literals_has_no_such_pairs():
    stage = set_stage(declare(), "SELECT COUNT(*) AS n FROM t")
    assert find_compared(stage) == []
    assert list(make_question_pairs(stage, Setting(), 1, crowds=False)) == []


def run(sql, pairs, dataset, wrap=None):
    return list(replay_pairs(set_stage(dataset, sql), sql, pairs, Setting(wrap=wrap)))


class Doubling:
    """An engine whose integers are twice as large: a fault that is seen where half of a sensitivity is used."""

    def __init__(self, inner):
        self.inner = inner

    def check(self, plan):
        self.inner.check(plan)

    def aggregate(self, plan):
        read = ExactIntegers.read(self.inner.aggregate(plan))
        doubled = {name: tuple(2 * cell for cell in cells) for name, cells in read.integers.items()}
        return replace(read, integers=doubled).to_exact(plan)

    def close(self):
        self.inner.close()


def test_a_fault_that_only_a_literal_shows_is_found(tmp_path):
    """Only a person with this cost is counted. The other pairs do not have one."""
    sql = "SELECT COUNT(*) AS n FROM t WHERE cost = 37.5"
    stage = set_stage(declare(), sql)
    others = list_pairs(stage.tables, stage.public, stage.unit, tmp_path, 1)
    assert not any(found.faults for found in run(sql, others, declare(), Doubling))
    pairs = list(make_question_pairs(stage, Setting(), 1))
    assert not any(found.faults for found in run(sql, pairs, declare()))
    assert any(found.faults for found in run(sql, pairs, declare(), Doubling))


def test_mixed_extremes_use_all_of_a_sensitivity():
    sql = "SELECT SUM(cost - age) AS s FROM t"
    pairs = list(make_question_pairs(set_stage(declare(), sql), Setting(), 1, crowds=False))
    assert {pair.name for pair in pairs} == {
        "a person with lowest age, highest cost values",
        "a person with highest age, lowest cost values",
    }
    assert max(found.share for found in run(sql, pairs, declare())) == 1


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_key_is_brought_to_its_threshold(neighbours):
    stage = set_stage(declare(neighbours), KEYS)
    pairs = [pair for pair in make_question_pairs(stage, Setting(), 1) if "threshold" in pair.name]
    assert len(pairs) == 2
    found = run(KEYS, pairs, declare(neighbours))
    assert not any(pair.faults or pair.note for pair in found), found
    assert all(pair.share > 0 for pair in found)
    threshold = int(pairs[0].name.split()[-1].rstrip(")"))
    sizes = [len(set(pair.second["t"][1]["person"].to_pylist())) for pair in pairs]
    assert sizes == [threshold, threshold + 1]


def test_a_threshold_that_is_compared_before_the_noise_is_found_at_the_threshold(monkeypatch):
    """The integers and the charge are right. The recorded noise shows which keys must be released."""
    listed = make_question_pairs(set_stage(declare(), KEYS), Setting(), 1)
    pairs = [pair for pair in listed if "threshold" in pair.name]
    threshold = int(pairs[0].name.split()[-1].rstrip(")"))
    add = release.add_saturating

    def release_large(integers, noise):
        drawn = add(integers, noise)
        return np.where(integers >= threshold, np.maximum(drawn, threshold), drawn)

    monkeypatch.setattr(release, "add_saturating", release_large)
    faults = [fault for _ in range(6) for found in run(KEYS, pairs, declare()) for fault in found.faults]
    assert any("released keys" in fault or "certified noise" in fault for fault in faults)


def test_noise_that_is_not_the_recorded_draw_is_found(monkeypatch, tmp_path):
    """Noise of half its size, equal on both datasets: a comparison of the two runs alone does not see it."""
    sql = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"
    stage = set_stage(declare(), sql)
    pairs = list(list_pairs(stage.tables, stage.public, stage.unit, tmp_path, 1))[:1]
    add = release.add_saturating
    monkeypatch.setattr(release, "add_saturating", lambda integers, noise: add(integers, noise // 2))
    (found,) = run(sql, pairs, declare())
    assert any("certified noise" in fault for fault in found.faults)
