"""The part of `make audit` that runs in `make test`: each aggregate in some setting, by replay; and the documentation.

tests/audit/run_audit.py audits all combinations, with samples.
"""

import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "tests" / "audit"), str(ROOT / "tests" / "engines")]

from audit_cases import AGGREGATES, Row, list_cases, run_case  # noqa: E402
from audited_engines import AuditedEngine  # noqa: E402

CASES = list(list_cases())
BY_AGGREGATE = {name: [case for case in CASES if case.kind == "aggregate" and case.name == name] for name in AGGREGATES}
# another setting for each aggregate, so that all of them occur
CHOSEN = [cases[(7 * place) % len(cases)] for place, cases in enumerate(BY_AGGREGATE.values())]
RANDOM = [case for case in CASES if case.kind == "random"]
RANDOM = [*RANDOM[:4], *RANDOM[-4:]]  # of the grammar of SQL, and of newer forms


@pytest.mark.parametrize("case", [*CHOSEN, *RANDOM], ids=lambda case: case.text)
def test_replays_are_consistent(case):
    row = run_case(case, 0)
    assert row.verdict in ("consistent", "refused"), row


def test_the_chosen_settings_differ():
    for part in ("unit", "neighbours", "accounting", "engine"):
        assert len({getattr(case, part) for case in CHOSEN}) == len({getattr(case, part) for case in CASES}), part


def test_all_combinations_are_listed():
    units = {case.unit for case in CASES if case.kind == "aggregate"}
    assert units == {"person", "row", "count", "public number of people", "public number of rows"}
    assert len([case for case in CASES if case.kind == "aggregate"]) > 400
    assert len([case for case in CASES if case.kind == "mechanism"]) > 25
    assert len([case for case in CASES if case.kind == "random"]) >= 50


def test_a_violation_fails_the_table(monkeypatch, capsys):
    """Negative control: the table ends with an error if one row is violated."""
    import run_audit

    monkeypatch.setattr(run_audit, "list_cases", lambda: iter(CHOSEN[:1]))
    monkeypatch.setattr(sys, "argv", ["run_audit.py"])

    def give_rows(cases):
        return [Row(case.text, "1", 2.0, None, 10, given.pop(), "detail") for case in cases]

    monkeypatch.setattr(run_audit, "run_all", give_rows)
    given = []
    for verdict, code in (("violated", 1), ("consistent", 0), ("failed", 1)):
        given.append(verdict)
        with pytest.raises(SystemExit) as left:
            run_audit.main()
        assert left.value.code == code
    shown = capsys.readouterr().out
    assert "VIOLATED" in shown
    assert "1/1" in shown


def test_every_row_comes_from_a_process_of_its_own():
    import run_audit

    cases = [case for case in CASES if case.text in ("random question 1", "random question 6")]
    assert {row.what for row in run_audit.run_all(cases)} == {case.text for case in cases}


def test_another_engine_joins_by_what_it_loads():
    """An engine that the lab does not know: it is replayed beside DuckDB, and a false one is found."""
    case = next(case for case in CASES if case.text == "sum · person · add-remove · zcdp · reference")
    verdicts = {}
    for name, load in {"honest": DuckDBEngine.of_tables, "false": load_false}.items():
        engine = AuditedEngine({"zcdp": 9}, lambda load=load: nullcontext(load))
        with patch.dict("audited_engines.ENGINES", {name: engine}):
            verdicts[name] = run_case(replace(case, engine=name), 2_000).verdict
    assert verdicts == {"honest": "consistent", "false": "violated"}


def load_false(tables):
    """The last row of each table is lost."""
    return DuckDBEngine.of_tables({name: (table, rows[:-1]) for name, (table, rows) in tables.items()})


def test_the_page_about_audits_runs():
    """Each block of docs/audit.md runs; a comment that states a value is checked."""
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "audit.md").read_text(), re.DOTALL)
    assert len(blocks) >= 5
    compared = 0
    for block in blocks:
        exec(compile(block, "docs/audit.md", "exec"), names)
        for line in block.splitlines():
            shown = re.match(r"(\S.*?)\s+# ('\w+'|True)$", line)
            if shown:
                assert repr(eval(shown[1], names)) == shown[2], line
                compared += 1
    assert compared >= 4
    names["visits"].close()
