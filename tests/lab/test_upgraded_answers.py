"""Stored answers and upgrades in complete runs: each planted fault is found, and the real ones show none."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import sfumato as sf
from sfumato.answering import certified_plans, upgrade
from sfumato.answering.desk import Desk
from sfumato.catalog.dataset import Dataset, Table
from sfumato.kernel import release
from sfumato.kernel.losses import PureDP
from sfumato.lab.auditing import complete_answers, upgraded_answers
from sfumato.lab.auditing.audit_stage import Setting, set_stage
from sfumato.lab.auditing.complete_answers import check_real_path
from sfumato.lab.auditing.question_pairs import make_pairs
from sfumato.ledger.ledger import Ledger

COLUMNS = {"person": sf.Id(), "cost": sf.Real(-5, 500), "city": sf.Category(["Rome", "Oslo"])}
COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_CITY = "SELECT city, SUM(cost) AS s FROM visits GROUP BY city"


def audit(sql=COUNT, rho=None):
    budget = sf.Budget(epsilon=3, delta="1e-6", accounting="zcdp" if rho else "basic")
    stage = set_stage(Dataset("clinic", [Table("visits", None, "person", COLUMNS, 2, 2)], budget), sql)
    with TemporaryDirectory() as folder:
        pair = next(make_pairs(stage, Path(folder), 0, 1))
        return " ".join(check_real_path(stage, sql, pair, Setting(rho=rho)))


@pytest.mark.parametrize(("sql", "rho"), [(COUNT, None), (BY_CITY, None), (BY_CITY, "0.1")])
def test_real_upgrades_show_no_fault(sql, rho, monkeypatch):
    seen = []
    real = upgraded_answers.upgrade_answer

    def watch(*arguments):
        seen.append(real(*arguments))
        return seen[-1]

    monkeypatch.setattr(complete_answers, "upgrade_answer", watch)
    assert audit(sql, rho) == ""
    assert len(seen) == 6
    assert all(len(upgraded.releases) == 1 for upgraded in seen)


def test_an_upgrade_without_noise_is_found(monkeypatch):
    """The first release of each run is correct."""

    def forget_noise(exact, reservation):
        released = release.release(exact, reservation)
        if reservation.entry_number < 3:
            return released
        return replace(released, integers={name: tuple(cells.tolist()) for name, cells in exact._integers.items()})

    monkeypatch.setattr(certified_plans, "release", forget_noise)
    monkeypatch.setattr(complete_answers, "check_releases", lambda *_: ())
    found = audit()
    assert "upgrades: " in found
    assert "complete answers: " not in found


def test_an_upgrade_with_the_noise_of_its_answer_is_found(monkeypatch):
    kept = {}

    def repeat_noise(exact, reservation):
        released = release.release(exact, reservation)
        if reservation.entry_number < 3:
            kept["integers"] = released.integers
        return replace(released, integers=kept["integers"])

    monkeypatch.setattr(certified_plans, "release", repeat_noise)
    monkeypatch.setattr(complete_answers, "check_releases", lambda *_: ())
    assert "noise of its answer" in audit()


def test_an_upgrade_that_is_charged_too_little_is_found(monkeypatch):
    class Forgetful:
        """Totals of which the second charge is missing."""

        def __init__(self, totals):
            self.spent = PureDP(min(totals.spent.epsilon, 1))

    totals = Ledger.totals
    monkeypatch.setattr(Ledger, "totals", lambda self: Forgetful(totals(self)))
    assert "charged less than their losses" in audit()


def test_an_answer_that_is_not_stored_is_found(monkeypatch):
    """The same question again is released again, for another charge."""

    def answer_anew(self, certified, analyst, question):
        (plan,) = certified.plans
        counted.append(1)
        anew = certified_plans.certify_plan(replace(plan, repeat=len(counted)))
        return upgrade.charge_and_release(self.engine, self.ledger, anew, analyst, question())

    counted = []
    monkeypatch.setattr(Desk, "answer", answer_anew)
    assert "charged again" in audit()
