from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from bin_flips import make_cell
from bounded_plans import AGE, COUNT, PLAN, SUM, changed
from test_bin_choice import loss_in_floats

import sfumato as sf
from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.certify import certify
from sfumato.kernel.expressions import Literal
from sfumato.kernel.neighbours import ROW, PrivacyUnit
from sfumato.kernel.plan import Curve, Grid, Halves, Key, Keys, Measurement, People, Quantiles, Thirds
from sfumato.kernel.row_sources import Derived, Scan
from sfumato.kernel.sensitivity import derive_sensitivity
from sfumato.ledger.stored_answers import bound_variance

SIGNED = changed(SUM, lower=-30, upper=120)
TWO_CELLS = (Key(AGE, (1, 2)),)
REPLACE = PrivacyUnit("people", ROW, "replace-one")
PERSON = PrivacyUnit("people", "id")
PERSON_REPLACE = PrivacyUnit("people", "id", "replace-one")
BOUND = {"source": Scan("people", "v1", 10), "max_groups_per_unit": 3}
AGES = Grid(0, 120, 0)
PEOPLE = replace(COUNT, quantity=People())
HALVES, THIRDS = replace(SUM, quantity=Halves(AGE, AGES)), replace(SUM, quantity=Thirds(AGE, AGES))
CURVE = replace(SUM, quantity=Curve(replace(AGE, nullable=False), AGES))


CHOICE = replace(SUM, quantity=Quantiles(AGE, AGES, (Fraction(1, 2),)))
STAYS = changed(SUM, lower=100, value=replace(AGE, nullable=False))
ONE_CELL = (Key(AGE, (1,)),)


@pytest.mark.parametrize(
    ("changes", "measurement", "l1", "l2_squared"),
    [
        ({}, COUNT, 1, 1),
        ({"keys": TWO_CELLS}, COUNT, 1, 1),
        ({"unit": REPLACE}, COUNT, 1, 1),
        ({"unit": REPLACE, "keys": TWO_CELLS}, COUNT, 2, 2),
        ({}, SUM, 120, 120**2),
        ({}, SIGNED, 120, 120**2),
        ({}, changed(SUM, lower=-300), 300, 300**2),
        ({}, changed(SUM, offset=60), 60, 60**2),
        ({"unit": REPLACE}, changed(SUM, offset=60), 120, 120**2),
        ({"unit": PERSON, **BOUND}, changed(SUM, offset=60), 600, 600**2),
        ({"unit": REPLACE}, SIGNED, 150, 150**2),
        ({"unit": REPLACE}, changed(SUM, lower=100), 120, 120**2),  # a NULL adds nothing: 0 is possible
        ({"unit": REPLACE}, changed(SUM, lower=100, value=replace(AGE, nullable=False)), 20, 20**2),
        ({"unit": REPLACE, "keys": TWO_CELLS}, SUM, 240, 2 * 120**2),
        ({"unit": REPLACE, "keys": TWO_CELLS}, SIGNED, 240, 4 * 120**2),
        ({"unit": PERSON, **BOUND}, COUNT, 10 << 16, (10 << 16) ** 2),
        ({"unit": PERSON, **BOUND, "keys": TWO_CELLS}, COUNT, 10 << 16, (10 << 16) ** 2),
        ({"unit": PERSON_REPLACE, **BOUND}, COUNT, 10 << 16, (10 << 16) ** 2),
        ({"unit": PERSON_REPLACE, **BOUND, "keys": TWO_CELLS}, COUNT, 20 << 16, 2 * (10 << 16) ** 2),
        ({"unit": PERSON, **BOUND}, SIGNED, 1200, 1200**2),
        ({"unit": PERSON_REPLACE, **BOUND}, SIGNED, 1500, 1500**2),
        ({"unit": PERSON, **BOUND}, PEOPLE, 1, 1),
        ({"unit": PERSON, **BOUND, "keys": TWO_CELLS}, PEOPLE, 2, 2),
        ({"unit": PERSON_REPLACE, **BOUND}, PEOPLE, 1, 1),
        ({"unit": PERSON_REPLACE, **BOUND, "keys": TWO_CELLS}, PEOPLE, 4, 4),
        ({"unit": REPLACE, "keys": TWO_CELLS}, PEOPLE, 2, 2),
        ({}, HALVES, 120, 120**2),
        ({}, changed(HALVES, lower=1), 119, 119**2),
        ({"keys": TWO_CELLS}, HALVES, 120, 120**2),
        ({"unit": REPLACE}, HALVES, 240, 240**2),
        ({"unit": PERSON, **BOUND}, changed(HALVES, upper=1 << 20), 10 << 20, (10 << 20) ** 2),
        ({"unit": PERSON, **BOUND}, changed(HALVES, upper=1), 20 << 16, (20 << 16) ** 2),
        ({"unit": PERSON_REPLACE, **BOUND}, changed(HALVES, upper=1 << 20), 20 << 20, (20 << 20) ** 2),
        ({}, THIRDS, 120**2, 120**4),
        ({"unit": PERSON_REPLACE, **BOUND, "keys": TWO_CELLS}, THIRDS, 20 * 120**2, (20 * 120**2) ** 2),
        ({}, CHOICE, 1, 1),
        ({"unit": REPLACE}, CHOICE, 2, 2),  # one row leaves a bin, another enters one
        ({"unit": REPLACE, "keys": TWO_CELLS}, CHOICE, 2, 2),
        ({"unit": PERSON, **BOUND, "keys": TWO_CELLS}, CHOICE, 10 << 16, (10 << 16) ** 2),
        ({"unit": PERSON_REPLACE, **BOUND}, CHOICE, 20 << 16, 2 * (10 << 16) ** 2),
        ({"unit": REPLACE, "keys": ONE_CELL}, STAYS, 120, 120**2),  # a row elsewhere adds nothing: 0 is possible
        ({"unit": REPLACE, "filters": (Literal(True),)}, STAYS, 120, 120**2),
        ({"unit": PERSON_REPLACE}, STAYS, 120, 120**2),  # a person may have no row
        ({"unit": REPLACE, "source": Derived(Scan("people", "v1"), (), ())}, STAYS, 120, 120**2),
        ({"unit": REPLACE}, CURVE, Fraction(9, 4) * 60**2, (Fraction(9, 4) * 60**2) ** 2),
    ],
)
def test_the_table_of_sensitivities(changes, measurement, l1, l2_squared):
    plan = replace(PLAN, measurements=(measurement,), **changes)
    found = derive_sensitivity(plan, measurement.quantity)
    assert (found.l1, found.l2_squared) == (l1, l2_squared)


def test_scales_pay_for_the_sensitivity():
    certificate = certify(PLAN)
    assert [measurement.noise.scale for measurement in certificate.measurements] == [Fraction(2), Fraction(240)]
    assert certificate.loss == sf.PureDP(1)
    gaussian = certify(replace(PLAN, measurements=(replace(SUM, loss=sf.ZCDP("0.5")),)))
    assert gaussian.measurements[0].noise.variance == Fraction(120**2)
    assert gaussian.loss == sf.ZCDP("0.5")
    assert [bound_variance(measurement) for measurement in certificate.measurements] == [8, 2 * 240**2]


def test_what_cannot_be_certified():
    with pytest.raises(InvalidParameter, match="constant"):
        certify(replace(PLAN, measurements=(changed(SUM, lower=0, upper=0),)))
    with pytest.raises(KernelFault):
        certify(replace(PLAN, measurements=(replace(COUNT, loss=sf.PureDP(0)),)))
    with pytest.raises(InvalidParameter, match="epsilon"):
        certify(replace(PLAN, measurements=(replace(COUNT, loss=sf.PureDP("1e-50")),)))


def choice_of(unit, keys, fraction=Fraction(3, 4), bins=200):
    choice = Measurement("s", Quantiles(AGE, Grid(0, bins - 1, 0), (fraction,)), sf.PureDP("0.5"))
    (certified,) = certify(replace(PLAN, unit=unit, keys=keys, measurements=(choice,))).measurements
    return certified


def test_a_choice_keeps_its_epsilon_over_all_cells():
    """A replaced row leaves one cell and enters another: the certified rule's loss, from its own flips, is within."""
    empty = [0] * 197
    one, two = make_cell(29, *empty, 1, 9), make_cell(29, *empty, 1, 10)  # where a unit moves the most
    several, single = choice_of(REPLACE, TWO_CELLS).noise, choice_of(REPLACE, ()).noise
    assert 0.9 < 2 * loss_in_floats(several, two, one) <= 1 + 1e-9
    assert 2 * loss_in_floats(single, two, one) > 1, "negative control: the rule for one cell would not do"
    unnamed = (Key(AGE, None),)
    keys = Measurement("keys", Keys(), sf.ApproxDP(1, "1e-6"))
    plan = replace(
        PLAN,
        unit=REPLACE,
        keys=unnamed,
        measurements=(keys, replace(changed(CHOICE, upper=199), loss=sf.PureDP("0.5"))),
    )
    assert certify(plan).measurements[1].noise.several, "the data names the cells: there may be more than one"


@pytest.mark.parametrize("unit", [REPLACE, PrivacyUnit("people", ROW)], ids=str)
def test_a_choice_is_certified_for_what_one_unit_moves(unit):
    """Weights of all small neighbours, in one cell and in two: at most the certified number, and it is met."""
    for keys in ((), TWO_CELLS):
        certified = choice_of(unit, keys, bins=3)
        places = [(part, place) for part in range(1 + bool(keys)) for place in range(3)]
        rest = dict.fromkeys(places, 1)
        moves = []
        for mine, yours in product(places, [None, *places]):
            if unit is not REPLACE and yours is not None:
                continue
            one = rest | {mine: 2}
            two = rest if yours is None else rest | {yours: 2}
            moves.append(sum(abs(one[place] - two[place]) for place in places))
        assert max(moves) == certified.sensitivity.l1
