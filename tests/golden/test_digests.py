"""Digests of plans and keys of stored answers do not change: the ledgers of earlier versions hold them."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
from test_queries import DATASET, VERSIONS

import sfumato as sf
from sfumato.answering.plan_digests import name_plan
from sfumato.catalog.dataset import Dataset
from sfumato.kernel.plan import Keys, WeightedKeys
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

RECORDED = json.loads((Path(__file__).parent / "digests.json").read_text())
LOSSES = {"epsilon": sf.PureDP("0.5"), "rho": sf.ZCDP("0.5")}


def names(sql, neighbours, loss):
    """The digest of a question's plan, and the key under which its answer is stored."""
    parts = {field.name: getattr(DATASET, field.name) for field in fields(Dataset)}
    dataset = Dataset(**parts | {"neighbours": neighbours})
    delta = dataset.budget.delta / 10  # what a question took without a delta of its own when these were recorded
    plan = choose_plan(bind(parse(sql), dataset), LOSSES[loss], dataset, VERSIONS, delta=delta).plan
    parts = [
        replace(one, quantity=Keys() if isinstance(one.quantity, WeightedKeys) else one.quantity)
        for one in plan.measurements
    ]
    return list(name_plan(replace(plan, measurements=tuple(parts))))  # weights of keys came later


@pytest.mark.parametrize("neighbours", sorted(RECORDED))
def test_digests_are_those_of_existing_ledgers(neighbours):
    for loss, questions in RECORDED[neighbours].items():
        for sql, recorded in questions.items():
            assert names(sql, neighbours, loss) == recorded, (neighbours, loss, sql)


def test_every_kind_of_measurement_is_recorded():
    recorded = " ".join(RECORDED["add-remove"]["epsilon"])
    assert all(
        aggregate in recorded
        for aggregate in ("COUNT(*)", "SUM(", "AVG(", "STDDEV", "MEDIAN", "MAX(", "TOP_K", "DISTINCT")
    )
    assert all(len(questions) >= 20 for losses in RECORDED.values() for questions in losses.values())
