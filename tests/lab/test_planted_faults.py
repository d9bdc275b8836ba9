"""Faults that are planted in the code: an audit of one question finds each of them, with the pairs that reach it.

The three files of LISTS list them. A fault that is found on pairs names a part of
their names; one with `mechanism` is found by samples of that mechanism; the others by the checks that need no pair.
"""

import tomllib
from contextlib import ExitStack
from pathlib import Path

import pytest
from planted_datasets import DATASETS
from planted_faults import plant

import sfumato as sf
from sfumato.ingest.canonical import spell_value
from sfumato.lab.auditing.audit_stage import Setting, set_stage
from sfumato.lab.auditing.query_replay import replay_pairs
from sfumato.lab.auditing.question_checks import check_question
from sfumato.lab.auditing.question_pairs import make_pairs
from sfumato.lab.auditing.real_mechanisms import REAL_MECHANISMS

LISTS = ("planted_faults.toml", "planted_faults_of_new_forms.toml", "planted_faults_of_several_releases.toml")
LISTED = [fault for name in LISTS for fault in tomllib.loads((Path(__file__).parent / name).read_text())["fault"]]
FAULTS = {fault["name"]: fault for fault in LISTED}

SHARE = 7  # `make test` plants one fault of seven, and `make test-slow` all of them


def spread(cases):
    """The cases, most of them for `make test-slow` only."""
    return [
        pytest.param(*case, marks=[] if place % SHARE == 0 else [pytest.mark.slow]) for place, case in enumerate(cases)
    ]


WITH_OTHERS = {fault["sql"] for fault in LISTED if fault.get("others")}


def find_fault(fault, folder):
    """The first fault that an audit finds."""
    if "mechanism" in fault:
        found = next(one for one in REAL_MECHANISMS if one.name == fault["mechanism"]).audit(fault["samples"])
        return (found.event,) if found.verdict == "violated" else ()
    others = fault.get("others", False)
    limits = fault.get("limits", {})
    setting = Setting(**fault.get("price", {}), **limits, engine=fault.get("engine", "duckdb"), with_others=others)
    stage = set_stage(DATASETS[fault["data"]](), fault["sql"])
    pairs = make_pairs(stage, folder, 0, 1, setting)
    if "pair" not in fault:
        return check_question(stage, next(pairs), setting)
    chosen = [pair for pair in pairs if fault["pair"] in pair.name]
    assert chosen
    return next((found.faults for found in replay_pairs(stage, fault["sql"], chosen, setting) if found.faults), ())


@pytest.mark.parametrize("name", spread([(name,) for name in FAULTS]))
def test_a_planted_fault_is_found(name, tmp_path):
    fault = FAULTS[name]
    with ExitStack() as planted:
        for part in (fault, *fault.get("also", ())):
            planted.enter_context(plant(part["file"], part["text"], part["becomes"]))
        assert find_fault(fault, tmp_path)


@pytest.mark.parametrize(
    ("data", "sql"),
    spread(
        sorted({(one["data"], one["sql"]) for one in LISTED if not {"price", "limits"} & one.keys() and "sql" in one})
    ),
)
def test_the_same_checks_find_nothing_in_correct_code(data, sql, tmp_path):
    assert find_fault({"data": data, "sql": sql, "others": sql in WITH_OTHERS}, tmp_path) == ()


def test_no_two_faults_have_one_name():
    assert len(FAULTS) == len(LISTED)


def test_a_planted_fault_is_taken_out_again():
    text, becomes = 'return "true" if value else "false"', 'return "yes"'
    with plant("sfumato/ingest/canonical.py", text, becomes):
        assert spell_value(True) == "yes"
    assert spell_value(True) == "true"
    with pytest.raises(AssertionError, match="0 times"), plant("sfumato/ingest/canonical.py", "no such line", ""):
        pass
    assert sf.PureDP(1).epsilon == 1
