"""Audits of questions with max_rows and max_groups, and the rules of keys by weight and of unique keys."""

from dataclasses import replace

import pytest
from planted_datasets import DATASETS

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.kernel.row_sources import Capped
from sfumato.kernel.weighted_keys import find_weight
from sfumato.lab.auditing.audit_stage import Setting, plan_question, set_stage
from sfumato.lab.auditing.independent_sensitivities import find_least
from sfumato.lab.auditing.neighbouring_pairs import list_pairs
from sfumato.lab.auditing.plain_unique_keys import drop_repeated_keys
from sfumato.lab.auditing.question_pairs import make_pairs

COUNT = "SELECT COUNT(*) AS n FROM t"
JOIN = "SELECT COUNT(*) AS n FROM t a JOIN t b ON a.person = b.person"


def plan(data, sql, tmp_path, **limits):
    stage, setting = set_stage(DATASETS[data](), sql), Setting(**limits)
    pair = next(list_pairs(stage.tables, stage.public, stage.unit, tmp_path, 1))
    with setting.open(stage.dataset, pair.first) as desk:
        certified = plan_question(desk, sql, setting)
        return certified.plans[0], certified.certificate, {name: table for name, (table, _) in pair.first.items()}


def test_limits_are_part_of_the_audited_plan(tmp_path):
    bounded, certificate, tables = plan("people", JOIN, tmp_path, max_rows=3)
    assert isinstance(bounded.source, Capped)
    least = find_least(bounded, bounded.measurements[0].quantity, tables, {})
    assert certificate.measurements[0].sensitivity.l1 == least.l1 == 3 << 16


@pytest.mark.parametrize("limits", [{"max_rows": 0}, {"max_groups": 0}])
def test_a_limit_that_cannot_be_is_refused_at_once(limits):
    with pytest.raises(InvalidParameter):
        sf.lab.replay(DATASETS["people"], COUNT, **limits)
    with pytest.raises(InvalidParameter):
        sf.lab.audit_query(DATASETS["people"], COUNT, samples=100, **limits)


def test_rows_that_are_people_have_no_limits():
    with pytest.raises(InvalidParameter, match="each row is one person"):
        sf.lab.replay(DATASETS["rows"], COUNT, max_rows=1)


@pytest.mark.parametrize(("data", "people"), [("people, many keys", 1), ("people, many keys, replaced", 2)])
def test_the_second_rule_of_keys_by_weight(data, people, tmp_path):
    weighed, certificate, tables = plan(data, "SELECT job, COUNT(*) AS n FROM t GROUP BY job", tmp_path)
    least = find_least(weighed, weighed.measurements[0].quantity, tables, {})
    assert least.l2_squared == people << 32 == certificate.measurements[0].sensitivity.l2_squared
    assert least.l1 == people * 8 * find_weight(8) <= certificate.measurements[0].sensitivity.l1


def test_a_join_by_a_declared_key_reaches_as_far_as_its_left_side(tmp_path):
    sql = "SELECT COUNT(*) AS n FROM lines l JOIN orders o ON l.cid = o.cid AND l.oid = o.oid"
    joined, _, tables = plan("shop", sql, tmp_path)
    assert find_least(joined, joined.measurements[0].quantity, tables, {}).l1 == 4 << 16
    undeclared = {
        **tables,
        "orders": replace(tables["orders"], unique=()),
    }  # the plan says so, and the catalog does not
    assert find_least(joined, joined.measurements[0].quantity, undeclared, {}).l1 == 12 << 16


def test_repeated_keys_are_dropped_in_plain_python():
    table = replace(DATASETS["shop"]().tables["orders"], max_rows_per_unit=2)
    row = {"price": 1.5, "note": "a", "__sfumato_unit": "p", "__sfumato_rows": 4}
    rows = [{**row, "oid": "1"}, {**row, "oid": "1", "note": "b"}, {**row, "oid": None}, {**row, "oid": None}]
    other = {**row, "oid": "1", "__sfumato_unit": "q", "__sfumato_rows": 1}
    kept = drop_repeated_keys(table, [*rows, other])
    assert len(kept) == 4  # two rows without the key, one with it, and the other person's
    assert other in kept
    assert {one["__sfumato_rows"] for one in kept if one["__sfumato_unit"] == "p"} == {3}  # more than the bound


def test_every_pair_of_the_shop_is_listed_once(tmp_path):
    sql = "SELECT COUNT(*) AS n FROM lines l JOIN orders o ON l.cid = o.cid AND l.oid = o.oid"
    names = [pair.name for pair in make_pairs(set_stage(DATASETS["shop"](), sql), tmp_path, 0, 1)]
    for part in ("repeats unique keys", "the unique keys of another", "in another order", "meet (all)", "one by one"):
        assert sum(part in name for name in names) == 1
