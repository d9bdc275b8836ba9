"""Noise with a delta: the delta of every table is what its enumerated laws have, and devices refuse it by default."""

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from local_laws import HEADS, TAILS, join_words, units_of
from make_vectors import BEGINS, FixedKey
from scripted import Scripted

import sfumato as sf
from sfumato.errors import BudgetExceeded, CatalogError, InvalidParameter, SfumatoError
from sfumato.local.collect.results import make_results
from sfumato.local.mechanisms.coin_tables import UNITS
from sfumato.local.mechanisms.shifted_noise import ShiftedNoise, bound_growth
from sfumato.local.randomisers.mean_values import list_report_numbers, list_report_probabilities
from sfumato.local.survey.manifest import identify, read_manifest
from sfumato.local.survey.new_survey import Renewal, new_survey

KEY = FixedKey()
FALSE_ALARM = 1e-6
QUARTER = UNITS // 4
SMALL = {
    "two": ShiftedNoise(1, (2 * QUARTER, QUARTER), Decimal("0.5")),
    "four steps": ShiftedNoise(4, (UNITS - 2 * (900_000_000 + 5_000_000), 900_000_000, 5_000_000), Decimal(1)),
    "not falling": ShiftedNoise(2, (UNITS - 2 * (1000 + 900_000_000), 1000, 900_000_000), Decimal(2)),
    "wide": ShiftedNoise(2, (UNITS - 2 * 4 * 400_000_000, *[400_000_000] * 4), Decimal("0.1")),
}
POSITIONS = [0, 1, UNITS // 3, UNITS // 2, UNITS - 1, UNITS]


def report(table, position, *words):
    return int(table.draw(np.array([position]), Scripted(join_words(*words)))[0])


def law(table, position):
    """The distribution of a report, measured with scripted randomness."""
    total = [Fraction(0)] * table.outputs
    up = Fraction(position * table.steps % UNITS, UNITS)
    for rounded, weight in ((HEADS, up), (TAILS, 1 - up)):
        below = 0
        for column in range(table.outputs):
            units = units_of(lambda word, r=rounded, c=column: report(table, position, r, word) <= c)
            total[column] += weight * Fraction(units - below, UNITS)
            below = units
    return total


def hockey_stick(first, second, growth):
    return sum(max(own - growth * other, 0) for own, other in zip(first, second, strict=True))


@pytest.mark.parametrize("name", SMALL)
def test_delta_is_what_the_enumerated_laws_have(name):
    table = SMALL[name]
    with mpmath.workdps(80):
        growth = Fraction(str(mpmath.exp(mpmath.mpf(str(table.epsilon)))))
    grid = [place * UNITS // table.steps for place in range(table.steps + 1)]
    laws = {position: law(table, position) for position in {*grid, *POSITIONS}}
    assert all(sum(chances) == 1 for chances in laws.values())
    steps = max(hockey_stick(laws[a], laws[b], growth) for a, b in product(grid, repeat=2))
    every = max(hockey_stick(a, b, growth) for a, b in product(laws.values(), repeat=2))
    assert every <= Fraction(table.delta)  # also between positions that are rounded at random
    assert Fraction(table.delta) - steps <= Fraction(1, 10**28)
    assert Fraction(table.delta) >= steps - Fraction(1, 10**60)
    for place in range(table.steps + 1):
        assert laws[place * UNITS // table.steps] == list(list_report_probabilities(table, place))
    less = ShiftedNoise(table.steps, table.noise, table.epsilon + 1)
    assert less.delta <= table.delta


@pytest.mark.parametrize("name", SMALL)
def test_reports_are_unbiased(name):
    table, numbers = SMALL[name], list_report_numbers(SMALL[name])
    for position in POSITIONS:
        mean = sum(chance * number for chance, number in zip(law(table, position), numbers, strict=True))
        assert mean == Fraction(position, UNITS)


@pytest.mark.parametrize("epsilon", ["0.001", "0.5", "1", "2.718281828", "10", "64"])
def test_growth_is_rounded_down(epsilon):
    with mpmath.workdps(120):
        exact = mpmath.exp(mpmath.mpf(epsilon)) * 2**192
        assert 0 <= exact - bound_growth(Fraction(epsilon)) < exact / 2**150


@pytest.mark.parametrize(("epsilon", "delta"), [("0.2", "1e-5"), (1, "1e-6"), (1, "0.01"), (4, "1e-7"), (8, "1e-6")])
def test_the_noise_is_the_least_whose_delta_is_small_enough(epsilon, delta):
    made = sf.local.mean_randomiser("gaussian", lower=0, upper=10, epsilon=epsilon, delta=delta)
    assert 0.8 * float(delta) < float(made.delta) <= float(delta)
    assert made.epsilon == Decimal(str(epsilon))
    noise = made.table.noise
    spread = (2 * sum(units * place**2 for place, units in enumerate(noise)) / UNITS) ** 0.5 / made.table.steps
    analytic = least_scale(float(epsilon), float(delta))
    assert spread == pytest.approx(analytic, rel=0.05 if float(epsilon) <= 4 else 0.5)  # units of 2**-32 cut the tails


def least_scale(epsilon, delta):
    """The scale of the continuous Gaussian mechanism of sensitivity 1, by its exact condition."""

    def found(scale):
        a, b = 1 / (2 * scale), epsilon * scale
        return mpmath.ncdf(a - b) - mpmath.exp(epsilon) * mpmath.ncdf(-a - b)

    low, high = 1e-3, 1e3
    for _ in range(80):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if found(middle) <= delta else (middle, high)
    return high


def test_estimates_cover_the_mean():
    made = sf.local.mean_randomiser("gaussian", lower=0, upper=10, epsilon=2, delta="1e-6")
    values = np.linspace(2, 4, 50_000)
    found = made.estimate(made.randomise(values), confidence="0.999999")
    assert found.low < 3 < found.high
    assert found.error == pytest.approx(made.margin(50_000) / 1.96, rel=0.05)


@pytest.mark.parametrize("epsilon", ["0.5", 1, 2, 4, 8])
def test_it_does_not_beat_the_pure_mechanism(epsilon):
    """For one number, the delta buys nothing: the variance is several times that of hybrid at the same epsilon."""
    noisy = sf.local.mean_randomiser("gaussian", lower=0, upper=1, epsilon=epsilon, delta="1e-6")
    pure = sf.local.mean_randomiser("hybrid", lower=0, upper=1, epsilon=epsilon)
    assert noisy.margin(1000) > 1.5 * pure.margin(1000)
    assert noisy.variance_asked(0.5) > 15 * pure.variance_asked(0.5)


def test_descriptions_come_back_and_altered_ones_are_refused():
    made = sf.local.mean_randomiser("gaussian", lower=0, upper=10, epsilon=1, delta="1e-4")
    document = json.loads(json.dumps(made.describe()))
    assert sf.local.rebuild(document) == made
    noise = document["noise"]
    for change in (
        {"noise": [noise[0] + 1, *noise[1:]]}, {"noise": [UNITS]}, {"noise": [*noise, 0]},
        {"noise": [str(noise[0]), *noise[1:]]},
        {"steps": 3}, {"steps": 64}, {"steps": "16"}, {"epsilon": "0"}, {"epsilon": "65"}, {"epsilon": 1}, {"more": 1},
        {"noise": [UNITS - 2 * 8193] + [1] * 8193}, *({"epsilon": spelled} for spelled in ("+1", " 1", "1.", "1E0")),
        {"epsilon": f"0.{'9' * 61}"}, {"epsilon": f"0.{'9' * 60}e-1"},
    ):  # fmt: skip
        with pytest.raises(InvalidParameter):
            sf.local.rebuild({**document, **change})
    for options in (
        {"epsilon": 1},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": "1e-12"},
        {"epsilon": 65, "delta": "0.1"},
        {"epsilon": f"1.{'1' * 61}", "delta": "0.1"},
    ):
        with pytest.raises(InvalidParameter):
            sf.local.mean_randomiser("gaussian", lower=0, upper=10, **options)
    with pytest.raises(InvalidParameter, match="only for it"):
        sf.local.mean_randomiser("hybrid", lower=0, upper=10, epsilon=1, delta="1e-6")


# the survey


def ask(**changes):
    options = {"bounds": (0, 24), "mechanism": "gaussian", "epsilon": 1, "delta": "1e-5", "begins": BEGINS, **changes}
    return new_survey("How long?", key=KEY, **options)


def test_a_survey_with_a_delta_is_of_version_3_and_states_it():
    survey = ask()
    assert survey.manifest.statement["version"] == 3
    assert survey.manifest.statement["delta"] == survey.manifest.statement["lifetime_delta"] == "0.00001"
    assert 0 < survey.delta <= Decimal("1e-5")
    assert new_survey("How long?", key=KEY, epsilon=1, bounds=(0, 24)).delta == 0
    for change in ({"delta": "1e-6"}, {"lifetime_delta": "1e-6"}):
        statement = {**survey.manifest.statement, **change}
        statement["id"] = identify(statement)
        with pytest.raises(CatalogError) as refused:
            read_manifest(KEY.sign(statement))
        assert refused.value.code == "survey-delta"
    old = {name: value for name, value in survey.manifest.statement.items() if "delta" not in name} | {"version": 2}
    old["id"] = identify(old)
    with pytest.raises(CatalogError) as refused:
        read_manifest(KEY.sign(old))
    assert refused.value.code == "survey-table"


def test_a_device_refuses_a_delta_unless_the_persons_caps_allow_it(tmp_path):
    place = tmp_path / "device.db"
    survey = sf.local.Survey(ask(period_days=7, lifetime_epsilon=4, lifetime_delta="1e-4").manifest, place)
    device = sf.local.Device(place)
    assert device.caps().delta == 0
    weeks = [BEGINS + timedelta(weeks=week) for week in range(4)]
    with pytest.raises(BudgetExceeded, match="your cap on delta"):
        survey.report(8, at=weeks[0])
    assert device.sum_spent(survey.manifest, weeks[0]).lifetime == 0  # the refusal cost nothing
    device.set_caps(delta="2e-5")
    first = survey.report(8, at=weeks[0])
    assert (first.epsilon, first.delta) == (survey.longitudinal_epsilon, survey.delta)
    assert survey.report(9, at=weeks[0]).delta == 0  # the same report again
    survey.report(8, at=weeks[1])
    assert Fraction(device.sum_spent(survey.manifest, weeks[1]).delta) == 2 * Fraction(survey.delta)
    with pytest.raises(BudgetExceeded, match="your cap on delta"):
        survey.report(8, at=weeks[2])
    device.set_caps(delta="0.5", per_survey=30, per_month=30)
    strict = sf.local.Survey(ask(period_days=7, lifetime_epsilon=9).manifest, place)
    strict.report(8, at=weeks[0])
    with pytest.raises(BudgetExceeded, match="the survey's lifetime delta"):
        strict.report(8, at=weeks[1])
    assert device.set_caps(delta=0).delta == 0
    with pytest.raises(InvalidParameter):
        device.set_caps(delta=1)


def test_a_permanent_report_pays_its_delta_once(tmp_path):
    survey = sf.local.Survey(ask(period_days=7, renewal=Renewal(1, 10)).manifest, tmp_path / "device.db")
    sf.local.Device(tmp_path / "device.db").set_caps(delta="1e-5")
    made = [survey.report(8, at=BEGINS + timedelta(weeks=week)) for week in range(3)]
    assert [report.delta > 0 for report in made] == [True, False, False]
    assert len({report.report for report in made}) == 1


def test_a_ledger_of_the_first_format_is_upgraded_and_keeps_its_charges(tmp_path):
    place = tmp_path / "device.db"
    pure = sf.local.Survey(new_survey("How long?", key=KEY, epsilon=1, bounds=(0, 24)).manifest, place)
    made = pure.report(3)
    with closing(sqlite3.connect(place)) as ledger, ledger:  # as an earlier version wrote it
        ledger.execute("ALTER TABLE charges DROP COLUMN delta")
        ledger.execute("DROP TABLE floors")
        ledger.execute("DELETE FROM settings WHERE name = 'delta'")
        ledger.execute("UPDATE settings SET value = 'sfumato-device 1' WHERE name = 'format'")
    device = sf.local.Device(place)
    assert device.caps() == sf.local.Caps()
    assert pure.report(4).to_json() == made.to_json()
    assert device.sum_spent(pure.manifest, BEGINS).survey == pure.longitudinal_epsilon


def test_results_state_the_delta_and_claim_no_amplification():
    manifest = ask(minimum_batch=1).manifest
    reports = manifest.table.randomise(np.full(3000, 8.0))
    found = make_results(manifest, 0, manifest.table.tally(reports), confidence="0.999999")
    assert found.lines[0].low < 8 < found.lines[0].high
    assert found.local_delta == manifest.price_delta
    assert found.shuffle_bound.epsilon == manifest.price
    assert found.shuffle_bound.delta == manifest.price_delta
    assert found.to_dict()["delta"] != "0"


@pytest.mark.parametrize(
    "changes", [{"delta": None}, {"mechanism": "hybrid"}, {"mechanism": None}, {"delta": 0}, {"delta": "2"},
                {"lifetime_delta": "1e-9"}, {"bounds": None, "labels": ["a", "b"]}],
)  # fmt: skip
def test_wrong_requests_are_refused(changes):
    with pytest.raises(SfumatoError):
        ask(**changes)


def test_old_reports_of_a_device_are_removed_and_cannot_be_made_again(tmp_path):
    place = tmp_path / "device.db"
    manifest = new_survey(
        "How long?", key=KEY, epsilon="0.01", bounds=(0, 24), period_days=1, lifetime_epsilon=4, begins=BEGINS
    ).manifest
    survey = sf.local.Survey(manifest, place)
    for day in range(60):
        survey.report(8, at=BEGINS + timedelta(days=day))
    with closing(sqlite3.connect(place)) as ledger:
        periods = [row[0] for row in ledger.execute("SELECT period FROM reports ORDER BY period")]
        charges = ledger.execute("SELECT COUNT(*) FROM charges").fetchone()[0]
    assert periods == list(range(8, 60))
    assert charges == 60
    with pytest.raises(CatalogError) as refused:
        survey.report(8, at=BEGINS + timedelta(days=7))
    assert refused.value.code == "survey-past"
    assert survey.report(9, at=BEGINS + timedelta(days=8)).repeated
