"""One charge for questions that are chosen later. Claim K-54."""

import functools
import itertools
import math
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.answering.certified_plans import certify_plan
from sfumato.answering.charged_draws import charge_and_release
from sfumato.answering.prepaid_ledger import prepay
from sfumato.answering.prepayments import choose_prepayment
from sfumato.answering.psi_expressions import bind_psi, plan_sums
from sfumato.answering.reported_prepayment import prepay_and_report
from sfumato.kernel.certify import Certificate
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP, compose
from sfumato.ledger.ledger import Ledger, Limit

ROWS = pd.DataFrame({"smoker": [True, False, True, False] * 50})


def protect(**options):
    given = {"budget": sf.Budget(epsilon=3), "columns": {"smoker": sf.Boolean(nullable=False)}, **options}
    return sf.protect(ROWS, name="people", unit=sf.ROW, **given)


def prepay_pure(curator, epsilon):
    return prepay(curator.ledger(), "ann", PureDP(epsilon), PureDP(epsilon), "")


def ask(curator, ledger, epsilon, psi="smoker"):
    measured = bind_psi(psi, curator.dataset, "people").measure("psi", PureDP(epsilon))
    plan = plan_sums(curator.desk, "people", (measured,))
    return charge_and_release(curator.engine, ledger, certify_plan(plan), "ann", "")


def test_a_prepaid_ledger_spends_what_was_charged_and_no_more():
    with protect() as curator:
        prepaid, taken = prepay_pure(curator, 1)
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
        prepaid, _ = prepay_pure(curator, "0.5")
        with pytest.raises(sf.errors.BudgetExceeded):
            ask(curator, prepaid, "0.6")
        ask(curator, prepaid, "0.5")  # negative control
        prepaid.close()


def test_what_does_not_fit_is_refused_and_nothing_is_charged():
    with protect() as curator:
        with pytest.raises(sf.errors.BudgetExceeded):
            prepay_pure(curator, "3.1")
        assert curator.budget.spent.epsilon == 0
        with pytest.raises(sf.errors.InvalidParameter):
            prepay_pure(curator, -1)


def test_every_prepaid_ledger_is_another_charge_that_is_never_resumed():
    with protect() as curator:
        for total in (1, 2, 3):
            prepay_pure(curator, 1)[0].close()
            assert curator.budget.spent.epsilon == total
            assert curator.ledger().open_charges() == []


def test_a_forked_process_cannot_spend_it_again():
    with protect() as curator:
        prepaid, _ = prepay_pure(curator, 1)
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
                prepay_pure(curator, 1)
        assert len(curator.ledger().open_charges()) == 1
        prepay_pure(curator, 1)[0].close()
        assert curator.budget.spent.epsilon == 2


@pytest.mark.parametrize(("method", "note"), [("void", "Entry 2 was charged and is spent"), ("charge", "Nothing was")])
def test_an_interrupt_says_what_became_of_the_charge(monkeypatch, method, note):
    with protect() as curator:

        def interrupt(self, *arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr(Ledger, method, interrupt)
        with pytest.raises(KeyboardInterrupt) as stopped:
            prepay_and_report(curator.ledger(), "analyst", sf.PureDP(1), sf.PureDP(1), "some queries")
        assert stopped.value.__notes__[0].startswith(note)
        assert curator.budget.spent.epsilon == (method == "void")


KILLED = """
import os, signal, sys
import pandas as pd
import sfumato as sf
from sfumato.answering.prepaid_ledger import prepay
from sfumato.kernel.losses import ZCDP, ApproxDP
rows = pd.DataFrame({"smoker": [True, False] * 50})
columns, budget = {"smoker": sf.Boolean(nullable=False)}, sf.Budget(epsilon=3, delta="1e-5")
people = sf.protect(rows, name="people", unit=sf.ROW, columns=columns, budget=budget, ledger=sys.argv[1])
print(people.budget.spent.epsilon, len(people.ledger().open_charges()), flush=True)
prepaid, _ = prepay(people.ledger(), "ann", ApproxDP(1, "1e-6"), ZCDP("0.01"), "")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_dies_between_charge_and_first_release_has_paid(tmp_path):
    (tmp_path / "home").mkdir()
    environment = {**os.environ, "SFUMATO_HOME": str(tmp_path / "home")}
    for spent in (0, 1):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(tmp_path / "ledger.db")],
            capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert done.stdout.split() == [str(spent), "0"]


NUMBER = itertools.count()


def make_ledger(limit):
    return Ledger.create(None, "people", Limit(limit))


def spend(ledger, loss):
    """Charge a loss to a ledger, as a release would. False: it does not fit."""
    name = f"plan {next(NUMBER)}"
    try:
        ledger.reserve("ann", Certificate((), "people", 0, (), loss, plan_digest=name, answer_key=name))
    except (sf.errors.BudgetExceeded, sf.errors.LedgerError):
        return False
    return True


BUDGETS = {PureDP: PureDP(100), ApproxDP: ApproxDP(100, "0.9"), ZCDP: ZCDP(100, "0.9")}
LOSSES = (
    PureDP("0.5"), PureDP(2), ApproxDP(1, 0), ApproxDP(1, "1e-6"), ApproxDP(3, "0.01"), ZCDP("0.05"), ZCDP(2, "1e-6"),
)  # fmt: skip
LIMITS = (
    PureDP("0.1"), PureDP("0.5"), PureDP(1), PureDP(2), ApproxDP("0.5", 0), ApproxDP(1, "1e-6"), ApproxDP(1, "1e-5"),
    ZCDP("0.005"), ZCDP("0.018"), ZCDP("0.019"), ZCDP("0.05"), ZCDP("0.4"), ZCDP(2), ZCDP("0.05", "1e-7"),
)  # fmt: skip


def implies(limit, loss):
    """Whether one loss implies another, by formulas in floats that share no code with the kernel."""

    def to_rho(epsilon):
        return epsilon * math.tanh(epsilon / 2)

    def to_epsilon(rho, delta):
        if delta <= 0:
            return math.inf
        orders = 1 + np.exp(np.linspace(-8, 12, 200_001))
        bounds = orders * rho + (-math.log(delta) - np.log(orders)) / (orders - 1) + np.log1p(-1 / orders)
        return float(bounds.min())

    own = float(getattr(limit, "delta", 0))
    match loss, limit:
        case PureDP(epsilon), ZCDP():
            return False
        case PureDP(epsilon), _:
            return own == 0 and limit.epsilon <= epsilon
        case ApproxDP(epsilon, delta), ZCDP(rho):
            return to_epsilon(float(rho), float(delta) - own) <= float(epsilon)
        case ApproxDP(epsilon, delta), _:
            return own <= float(delta) and limit.epsilon <= epsilon
        case ZCDP(rho, delta), ZCDP(other):
            return other <= rho and own <= float(delta)
        case ZCDP(rho, delta), _:
            return to_rho(float(limit.epsilon)) <= float(rho) and own <= float(delta)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_only_a_limit_that_implies_the_loss_is_accepted(loss):
    """Every pair of a charged loss and a limit. What is refused is not charged."""
    accepted = 0
    for limit in LIMITS:
        ledger = make_ledger(BUDGETS[type(loss)])
        if implies(limit, loss):
            prepaid, taken = prepay(ledger, "ann", loss, limit, "")
            assert taken.loss == taken.population == loss == ledger.totals().spent
            assert prepaid.totals().limit == limit
            accepted += 1
        else:
            with pytest.raises(sf.errors.SfumatoError):
                prepay(ledger, "ann", loss, limit, "")
            assert [entry.kind for entry in ledger.entries()] == ["open"]
    assert 0 < accepted < len(LIMITS)


@pytest.mark.parametrize(
    ("loss", "limit", "shares"),
    [
        (PureDP(1), PureDP(1), (PureDP("0.6"), PureDP("0.3"), ZCDP("0.01"), ApproxDP("0.1", "1e-9"))),
        (ApproxDP(1, "1e-6"), ZCDP("0.015"), (PureDP("0.1"), ZCDP("0.008"), ZCDP("0.003"), ApproxDP("0.1", "1e-9"))),
        (ZCDP("0.02"), ZCDP("0.02"), (PureDP("0.15"), ZCDP("0.008"), ZCDP("0.003"))),
        (ZCDP("0.5"), PureDP("0.9"), (PureDP("0.5"), PureDP("0.4"), PureDP("0.1"), ZCDP("0.001"))),
    ],
    ids=str,
)
def test_no_sequence_of_releases_exceeds_the_charge(loss, limit, shares):
    """All sequences of three releases: those that the prepaid ledger admits cost at most what was charged."""
    refused = 0
    for sequence in itertools.product(shares, repeat=3):
        prepaid, _ = prepay(make_ledger(BUDGETS[type(loss)]), "ann", loss, limit, "")
        admitted = [share for share in sequence if spend(prepaid, share)]
        refused += len(sequence) - len(admitted)
        if admitted:
            own = [share.to_zcdp() if isinstance(limit, ZCDP) else share for share in admitted]
            assert implies(functools.reduce(compose, own), loss), admitted
        prepaid.close()
    assert refused  # negative control: some did not fit


EPSILON, DELTA = Decimal(1), Decimal("0.01")


def mass(rho, centre):
    """The law of a count of 0 or 1 with discrete Gaussian noise that costs rho, on the integers around it."""
    outputs = np.arange(-60, 61)
    weights = np.exp(-((outputs - centre) ** 2) * rho)  # variance 1/(2 rho)
    return weights / np.exp(-(np.arange(-2000, 2001) ** 2) * rho).sum()


def find_delta(rho):
    """The least delta at EPSILON of releases that spend rho: a half first; then one, or two if the first is low."""

    def law(centre):
        first, one = mass(rho / 2, centre), mass(rho / 2, centre)
        two = np.outer(mass(rho / 4, centre), mass(rho / 4, centre)).ravel()
        half = len(first) // 2
        return np.concatenate((np.outer(first[half:], one).ravel(), np.outer(first[:half], two).ravel()))

    with_person, without = law(1), law(0)
    growth = math.exp(EPSILON)
    return max(np.maximum(with_person - growth * without, 0).sum(), np.maximum(without - growth * with_person, 0).sum())


def test_the_law_of_adaptive_releases_keeps_the_charged_epsilon_and_delta():
    """The privacy of a sequence that the prepaid ledger admits, enumerated over all outputs."""
    chosen = choose_prepayment(EPSILON, DELTA, BUDGETS[ApproxDP])
    assert chosen.loss == ApproxDP(EPSILON, DELTA)
    rho = chosen.limit.rho
    for shares in ((rho / 2, rho / 2), (rho / 2, rho / 4, rho / 4)):
        prepaid, _ = prepay(make_ledger(BUDGETS[ApproxDP]), "ann", chosen.loss, chosen.limit, "")
        assert all(spend(prepaid, ZCDP(share)) for share in shares)
        assert not spend(prepaid, ZCDP("1e-9"))
    assert find_delta(float(rho)) <= DELTA
    assert find_delta(2 * float(rho)) > DELTA  # negative control: twice the limit breaks the promise


def test_the_charge_is_in_the_currency_of_the_budget():
    amounts = Decimal(1), Decimal("1e-6")
    pure = choose_prepayment(Decimal(1), Decimal(0), BUDGETS[ZCDP])
    assert (pure.loss, pure.limit) == (PureDP(1), PureDP(1))
    with pytest.raises(sf.errors.InvalidParameter, match="zcdp"):
        choose_prepayment(*amounts, BUDGETS[PureDP])
    approximate, concentrated = (choose_prepayment(*amounts, BUDGETS[kind]) for kind in (ApproxDP, ZCDP))
    assert approximate.loss == ApproxDP(*amounts)
    assert approximate.limit == concentrated.limit == concentrated.loss
    assert implies(approximate.limit, approximate.loss)
    larger = ZCDP(approximate.limit.rho * Decimal("1.00002"))
    assert not implies(larger, approximate.loss)  # it is the largest, to its six digits


@pytest.mark.parametrize(
    ("loss", "budget"), [(ApproxDP(1, "1e-6"), PureDP(5)), (ZCDP("0.01"), PureDP(5)), (ZCDP("0.01"), ApproxDP(5, 0))],
    ids=str,
)  # fmt: skip
def test_a_loss_that_the_budget_cannot_count_is_refused_with_a_hint(loss, budget):
    ledger = make_ledger(budget)
    with pytest.raises(sf.errors.LedgerError) as refused:
        prepay(ledger, "ann", loss, ZCDP("0.01"), "")
    assert "budget" in refused.value.hint
    assert [entry.kind for entry in ledger.entries()] == ["open"]


def test_two_threads_share_one_limit():
    """Many threads charge a prepaid ledger at once: as many are admitted as fit."""
    for _ in range(5):
        prepaid, _ = prepay(make_ledger(BUDGETS[ApproxDP]), "ann", ApproxDP(1, "1e-6"), ZCDP("0.015"), "")
        with ThreadPoolExecutor(2) as threads:
            admitted = list(threads.map(spend, [prepaid] * 20, [ZCDP("0.002")] * 20))
        assert sum(admitted) == 7
        prepaid.close()


def find_callers(name, sources):
    return sorted(path for path, text in sources.items() if f".{name}(" in text)


def test_no_code_raises_the_limit_of_a_prepaid_ledger():
    root = Path(sf.__file__).parent
    sources = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")}
    assert find_callers("set_limit", sources) == ["folder_ledger.py"]  # the owner's, on the ledger of a folder
    assert find_callers("set_limit", {"learning/x.py": "prepaid.set_limit(Limit(loss))"})  # negative control
