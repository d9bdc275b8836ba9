"""Replay: planted faults are found with a few runs, real questions show none, and no real ledger is accepted."""

import json

import pandas as pd
import pytest

import sfumato as sf
from sfumato.answering.certified_plans import certify_plan
from sfumato.catalog.dataset import Dataset, Table
from sfumato.errors import KernelFault
from sfumato.kernel.losses import PureDP
from sfumato.lab.auditing.audit_stage import Setting, set_stage
from sfumato.lab.auditing.broken_queries import BROKEN_QUERIES
from sfumato.lab.auditing.query_replay import replay, replay_pairs
from sfumato.lab.auditing.question_pairs import make_pairs
from sfumato.lab.auditing.recorded_release import RecordedEntropy, release_recorded, release_repeatedly
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.query.bind import bind
from sfumato.query.parse import parse

COLUMNS = {
    "person": sf.Id(),
    "cost": sf.Real(-5, 500),
    "age": sf.Integer(0, 120, nullable=False),
    "city": sf.Category(["Rome", "Oslo", "Bonn"]),
    "job": sf.Text(),
    "day": sf.Date("2024-01-01", "2024-12-31"),
    "smoker": sf.Boolean(),
}


def dataset(unit="person", neighbours="add-remove", accounting="basic", **options):
    columns = COLUMNS if unit == "person" else {name: kind for name, kind in COLUMNS.items() if name != "person"}
    bounds = {} if unit is sf.ROW else {"max_rows_per_unit": 2, "max_groups_per_unit": 2}
    budget = sf.Budget(epsilon=3, delta="1e-6", accounting=accounting)
    return Dataset("clinic", [Table("visits", None, unit, columns, **bounds, **options)], budget, None, neighbours)


@pytest.mark.parametrize("broken", BROKEN_QUERIES, ids=lambda broken: broken.name)
def test_every_planted_fault_is_found(broken, tmp_path):
    stage = set_stage(dataset(), broken.sql)
    pairs = make_pairs(stage, tmp_path, random_pairs=0, seed=1)
    replayed = replay_pairs(stage, broken.sql, pairs, Setting(wrap=broken.wrap))
    assert any(found.faults for found in replayed)  # the runs end with the first fault


@pytest.mark.slow  # `make test` replays every aggregate in some setting: test_audit_quick.py
@pytest.mark.parametrize("sql", sorted({broken.sql for broken in BROKEN_QUERIES}))
def test_the_same_questions_without_a_fault_are_consistent(sql):
    found = replay(dataset(), sql, random_pairs=1, seed=1)
    assert found.verdict == "consistent", found
    assert found.share > 0.4  # the pairs are hard: one person uses much of the sensitivity


@pytest.mark.slow  # `make test` replays every aggregate in some setting: test_audit_quick.py
@pytest.mark.parametrize(
    ("declared", "sql", "price"),
    [
        (dataset(sf.ROW), "SELECT SUM(cost) AS s, AVG(age) AS a FROM visits", {}),
        (dataset(sf.ROW, "replace-one", rows=50), "SELECT AVG(age) AS a, VARIANCE(age) AS v FROM visits", {}),
        (dataset(neighbours="replace-one", people=50), "SELECT AVG(cost) AS a FROM visits", {}),
        (dataset(accounting="zcdp"), "SELECT city, COUNT(*) AS n FROM visits GROUP BY city", {"rho": "0.1"}),
        (dataset(), "SELECT MAX(age) AS x, MODE(city) AS c FROM visits WHERE smoker AND day > DATE '2024-06-01'", {}),
        (dataset(), "SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) > 2 ORDER BY n LIMIT 2", {}),
    ],
)
def test_units_relations_and_accountings(declared, sql, price):
    found = replay(declared, sql, random_pairs=1, seed=2, **price)
    assert found.verdict == "consistent", found


def test_both_engines():
    found = replay(dataset(), "SELECT city, SUM(cost) AS s FROM visits GROUP BY city", engine="reference", seed=3)
    assert found.verdict == "consistent"
    assert found.engine == "reference"
    with pytest.raises(sf.errors.InvalidParameter, match="engine"):
        replay(dataset(), "SELECT COUNT(*) AS n FROM visits", engine="abacus")


def test_it_runs_all_hard_pairs_and_says_that_rows_are_made_up():
    found = replay(dataset(), "SELECT COUNT(*) AS n FROM visits", random_pairs=2)
    names = " ".join(replayed.pair for replayed in found.pairs)
    for hard in ("nobody against one", "NULL", "NaN", "many rows", "key of their own", "dtype", "malformed", "random"):
        assert hard in names
    assert "made up" in str(found)
    assert json.loads(found.to_json())["verdict"] == "consistent"


def test_a_refused_question_is_refused():
    with pytest.raises(sf.errors.QueryError):
        replay(dataset(), "SELECT cost FROM visits")


@pytest.fixture
def frame():
    rows = {"person": [1], "cost": [3.0], "age": [3], "city": ["Rome"], "job": ["x"], "day": ["2024-02-02"]}
    return pd.DataFrame({**rows, "smoker": [True]})


def test_no_real_ledger_gets_recorded_noise(frame, tmp_path):
    """Neither one on the disk nor one in memory that an owner's curator uses; nothing is spent on either."""
    sql = "SELECT COUNT(*) AS n FROM visits"
    for ledger in (None, tmp_path / "ledger.db"):
        budget = sf.Budget(epsilon=3)
        with sf.protect(frame, name="visits", unit="person", columns=COLUMNS, budget=budget, ledger=ledger) as curator:
            desk = curator.desk
            certified = certify_plan(desk.plan(bind(parse(sql), desk.dataset), PureDP(1)).plan)
            with pytest.raises(KernelFault, match="throwaway"):
                release_recorded(desk, certified, "analyst", RecordedEntropy())
            with pytest.raises(KernelFault, match="throwaway"):
                release_repeatedly(desk, certified, "analyst", 5)
            assert curator.budget.spent.epsilon == 0


def test_a_replay_of_a_curators_question_spends_nothing(frame):
    with sf.protect(frame, name="visits", unit="person", columns=COLUMNS, budget=sf.Budget(epsilon=3)) as curator:
        assert replay(curator, "SELECT COUNT(*) AS n FROM visits", random_pairs=0).verdict == "consistent"
        assert curator.budget.spent.epsilon == 0
        assert curator.ledger().head()[0] == 1  # and writes nothing


def test_a_ledger_in_memory_that_others_made_is_refused():
    from sfumato.lab.auditing.throwaway_desk import require_throwaway

    ledger = Ledger.create(None, "p", Limit(PureDP(1)))
    with pytest.raises(KernelFault, match="throwaway"):
        require_throwaway(ledger)
    ledger.close()


def test_a_tape_gives_the_same_bytes_again():
    tape = RecordedEntropy()
    first = [tape.take(5).tolist(), tape.take(70).tolist()]
    assert tape.taken == 75
    tape.rewind()
    assert [tape.take(5).tolist(), tape.take(70).tolist()] == first
    assert RecordedEntropy().take(70).tolist() != first[1]
