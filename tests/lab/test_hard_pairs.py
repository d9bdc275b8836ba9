"""The hard pairs reach faults that depend on categories, counts, bounds and texts."""

from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.engine import Engine
from sfumato.lab.auditing import query_replay
from sfumato.lab.auditing.audit_stage import Setting, set_stage
from sfumato.lab.auditing.pair_maker import UNUSUAL_TEXT
from sfumato.lab.auditing.query_replay import replay_pairs
from sfumato.lab.auditing.question_pairs import make_pairs
from sfumato.lab.auditing.recorded_release import ExactIntegers
from sfumato.lab.auditing.replay_comparison import Recording

COLUMNS = {"person": sf.Id(), "cost": sf.Real(-5, 500), "city": sf.Category(["Rome", "Oslo", "Bonn"]), "job": sf.Text()}
IN_ROME = "SELECT SUM(cost) AS s FROM t WHERE city = 'Rome'"
BY_CITY = "SELECT city, SUM(cost) AS s FROM t GROUP BY city"


def people(neighbours="add-remove"):
    return Dataset("d", [Table("t", None, "person", COLUMNS, 2, 2)], sf.Budget(epsilon=3), None, neighbours)


def counts():
    columns = {"city": COLUMNS["city"]}
    return Dataset("d", [Table("t", None, sf.ROW, columns, count_column="n")], sf.Budget(epsilon=3))


def run(dataset, sql, folder, words, wrap=None):
    stage = set_stage(dataset, sql)
    pairs = [pair for pair in make_pairs(stage, folder, 0, 1) if any(word in pair.name for word in words)]
    assert pairs
    return list(replay_pairs(stage, sql, pairs, Setting(wrap=wrap)))


@pytest.mark.parametrize(("neighbours", "sql"), [("add-remove", IN_ROME), ("replace-one", BY_CITY)])
def test_extreme_people_pass_filters_and_change_cells(neighbours, sql, tmp_path):
    found = run(people(neighbours), sql, tmp_path, ("highest values, city",))
    assert max(pair.share for pair in found) == 1
    assert not any(pair.faults for pair in found)


class Doubling:
    """An engine whose sums above a number are twice as large."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner

    def check(self, plan):
        self.inner.check(plan)

    def aggregate(self, plan):
        read = ExactIntegers.read(self.inner.aggregate(plan))
        doubled = {name: tuple(2 * x if x > 500 else x for x in cells) for name, cells in read.integers.items()}
        return replace(read, integers=doubled).to_exact(plan)

    def close(self):
        self.inner.close()


def test_raised_counts_find_a_fault_of_large_counts(tmp_path):
    sql = "SELECT SUM(n) AS s FROM t"
    assert not any(pair.faults for pair in run(counts(), sql, tmp_path, ("raised",)))
    assert any(pair.faults for pair in run(counts(), sql, tmp_path, ("raised",), Doubling))


def test_values_just_beyond_the_bounds_are_clamped(tmp_path):
    found = run(people(), "SELECT SUM(cost) AS s FROM t", tmp_path, ("just too", "twice", "unusual"))
    assert len(found) == 4
    assert not any(pair.faults or pair.note for pair in found)


def test_unusual_texts_are_in_a_pair(tmp_path):
    stage = set_stage(people(), IN_ROME)
    (pair,) = (pair for pair in make_pairs(stage, tmp_path, 0, 1) if "unusual" in pair.name)
    assert UNUSUAL_TEXT in pair.second["t"][1]["job"].to_pylist()
    assert "'" in UNUSUAL_TEXT
    assert len(UNUSUAL_TEXT) > 200


def test_a_load_that_one_dataset_refuses_is_a_fault(tmp_path, monkeypatch):
    stage = set_stage(people(), IN_ROME)
    pairs = list(make_pairs(stage, tmp_path, 0, 1))[:1]
    for refused, faults in (((False, True), 1), ((True, False), 1), ((True, True), 0)):
        runs = iter([Recording(load_refused=one) for one in refused])
        monkeypatch.setattr(query_replay, "record_run", lambda *_, runs=runs: next(runs))
        (found,) = replay_pairs(stage, IN_ROME, pairs, Setting())
        assert len(found.faults) == faults
        assert bool(found.note) == (refused == (True, True))
