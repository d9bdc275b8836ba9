"""One charge for questions that are chosen later. Claim K-54."""

import os
import subprocess
import sys
from decimal import Decimal

import pandas as pd
import pytest

import sfumato as sf
from sfumato.answering.certified_plans import certify_plan
from sfumato.answering.charged_draws import charge_and_release
from sfumato.answering.prepaid_ledger import prepay
from sfumato.answering.psi_expressions import bind_psi, plan_sums
from sfumato.kernel.losses import PureDP
from sfumato.ledger.ledger import Ledger

ROWS = pd.DataFrame({"smoker": [True, False, True, False] * 50})


def protect(**options):
    given = {"budget": sf.Budget(epsilon=3), "columns": {"smoker": sf.Boolean(nullable=False)}, **options}
    return sf.protect(ROWS, name="people", unit=sf.ROW, **given)


def ask(curator, ledger, epsilon, psi="smoker"):
    measured = bind_psi(psi, curator.dataset, "people").measure("psi", PureDP(epsilon))
    plan = plan_sums(curator.desk, "people", (measured,))
    return charge_and_release(curator.engine, ledger, certify_plan(plan), "ann", "")


def test_a_prepaid_ledger_spends_what_was_charged_and_no_more():
    with protect() as curator:
        prepaid, taken = prepay(curator.ledger(), "ann", Decimal(1), "")
        assert curator.budget.spent.epsilon == 1
        assert taken.loss == PureDP(1)
        ask(curator, prepaid, "0.6")
        ask(curator, prepaid, "0.4", "NOT smoker")
        with pytest.raises(sf.errors.BudgetExceeded):
            ask(curator, prepaid, "0.000001", "smoker AND NOT smoker")
        assert curator.budget.spent.epsilon == 1  # the releases took nothing more
        assert curator.ledger().verify().ok
        prepaid.close()


def test_one_question_over_the_limit_is_refused():
    with protect() as curator:
        prepaid, _ = prepay(curator.ledger(), "ann", Decimal("0.5"), "")
        with pytest.raises(sf.errors.BudgetExceeded):
            ask(curator, prepaid, "0.6")
        ask(curator, prepaid, "0.5")  # negative control
        prepaid.close()


def test_what_does_not_fit_is_refused_and_nothing_is_charged():
    with protect() as curator:
        with pytest.raises(sf.errors.BudgetExceeded):
            prepay(curator.ledger(), "ann", Decimal("3.1"), "")
        assert curator.budget.spent.epsilon == 0
        with pytest.raises(sf.errors.InvalidParameter):
            prepay(curator.ledger(), "ann", Decimal(-1), "")


def test_every_prepaid_ledger_is_another_charge_that_is_never_resumed():
    with protect() as curator:
        for total in (1, 2, 3):
            prepay(curator.ledger(), "ann", Decimal(1), "")[0].close()
            assert curator.budget.spent.epsilon == total
            assert curator.ledger().open_charges() == []


def test_a_forked_process_cannot_spend_it_again():
    with protect() as curator:
        prepaid, _ = prepay(curator.ledger(), "ann", Decimal(1), "")
        child = os.fork()
        if child == 0:
            try:
                prepaid.totals()
            except sf.errors.LedgerError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        ask(curator, prepaid, 1)  # negative control: the parent can
        prepaid.close()


CRASH = """
import os, sys
import pandas as pd
import sfumato as sf
rows = pd.DataFrame({"smoker": [True, False] * 50})
columns = {"smoker": sf.Boolean(nullable=False)}
people = sf.protect(rows, name="people", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=3), ledger=sys.argv[1])
print(people.budget.spent.epsilon, len(people.ledger().open_charges()), flush=True)
oracle = people.statistical_queries(k=3, epsilon=1)
oracle.mean("smoker")
os._exit(9)
"""


def test_after_a_crash_nothing_is_left_to_ask_for_free(tmp_path):
    """A process dies after its first query: the whole is charged, and the next oracle pays anew."""
    (tmp_path / "home").mkdir()
    environment = {**os.environ, "SFUMATO_HOME": str(tmp_path / "home")}
    for spent in (0, 1):
        done = subprocess.run(
            [sys.executable, "-c", CRASH, str(tmp_path / "ledger.db")],
            capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip
        assert done.returncode == 9, done.stderr
        assert done.stdout.split() == [str(spent), "0"]


def test_a_crash_before_the_charge_is_closed_leaves_nothing_to_resume(monkeypatch):
    """The process dies between charge and closing: the charge stays open, and the next one is another charge."""
    with protect() as curator:

        def crash(self, reservation):
            raise KeyboardInterrupt

        with monkeypatch.context() as broken:
            broken.setattr(Ledger, "void", crash)
            with pytest.raises(KeyboardInterrupt):
                prepay(curator.ledger(), "ann", Decimal(1), "")
        assert len(curator.ledger().open_charges()) == 1
        prepay(curator.ledger(), "ann", Decimal(1), "")[0].close()
        assert curator.budget.spent.epsilon == 2
