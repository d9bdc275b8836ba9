from dataclasses import fields, replace
from datetime import date
from fractions import Fraction
from typing import get_args

import pytest

import sfumato as sf
from sfumato.answering.plan_digests import name_plan
from sfumato.errors import KernelFault
from sfumato.kernel.certify import certify
from sfumato.kernel.expressions import Call, Column, ColumnType, Literal
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit
from sfumato.kernel.plan import (
    BoundedPlan,
    Choice,
    Count,
    Curve,
    Extreme,
    Grid,
    Halves,
    Key,
    Keys,
    Measurement,
    Mode,
    People,
    Quantiles,
    Quantity,
    Sum,
    Thirds,
)
from sfumato.kernel.row_sources import Scan

AGE = Column("age", ColumnType.INTEGER)
COUNT = Measurement("n", Count(None), sf.PureDP("0.5"))
SUM = Measurement("s", Sum(AGE, Grid(0, 120, 0)), sf.PureDP("0.5"))
PLAN = BoundedPlan("people", Scan("people", "v1"), PrivacyUnit("people", ROW), 1, (), (), (COUNT, SUM))


def changed(measurement, **changes):
    """The measurement with other fields of its quantity, or other bounds of its grid."""
    grid = {name: changes.pop(name) for name in ("lower", "upper", "exponent") if name in changes}
    if grid:
        changes["grid"] = replace(measurement.quantity.grid, **grid)
    return replace(measurement, quantity=replace(measurement.quantity, **changes))


def filtered(value):
    return replace(PLAN, filters=(Call("=", (AGE, Literal(value))),))


VARIANTS = [
    PLAN,
    replace(PLAN, population="others"),
    replace(PLAN, source=Scan("t", "v1")),
    replace(PLAN, source=Scan("people", "v2")),
    replace(PLAN, unit=PrivacyUnit("people", ROW, Neighbours.REPLACE_ONE)),
    replace(PLAN, unit=PrivacyUnit("people", "id")),
    replace(PLAN, unit=PrivacyUnit("people", "id"), source=Scan("people", "v1", 2)),
    replace(PLAN, unit=PrivacyUnit("people", "id"), max_groups_per_unit=2),
    *(filtered(value) for value in (1, 1.0, True, "1", None, date(2020, 1, 1), 0.0, -0.0)),
    replace(PLAN, filters=(Call("<>", (AGE, Literal(1))),)),
    replace(PLAN, keys=(Key(AGE, (1, 2)),)),
    replace(PLAN, keys=(Key(AGE, (2, 1)),)),
    replace(PLAN, measurements=(COUNT,)),
    replace(PLAN, measurements=(COUNT, changed(SUM, upper=121))),
    replace(PLAN, measurements=(COUNT, changed(SUM, exponent=-1))),
    replace(PLAN, measurements=(COUNT, changed(SUM, offset=60))),
    replace(PLAN, measurements=(COUNT, changed(SUM, value=replace(AGE, nullable=False)))),
]


def test_digests_tell_plans_apart():
    for names in zip(*map(name_plan, VARIANTS), strict=True):  # digests, then keys of answers
        assert len(set(names)) == len(VARIANTS)
    assert name_plan(PLAN) == name_plan(replace(PLAN))


EVERY = (
    COUNT, SUM, Measurement("p", People(), sf.ZCDP("0.5")),
    Measurement("h", Halves(AGE, Grid(0, 120, 0)), sf.PureDP(1)),
    Measurement("t", Thirds(AGE, Grid(0, 120, 0)), sf.PureDP(1)),
    Measurement("c", Curve(AGE, Grid(0, 9, 1)), sf.PureDP(1)),
    Measurement("q", Quantiles(AGE, Grid(0, 120, 0), (Fraction(1, 2),)), sf.PureDP(1)),
    Measurement("e", Extreme(AGE, Grid(0, 120, 0), True), sf.PureDP(1)),
    Measurement("m", Mode(AGE, 2, (1, 2, 3)), sf.PureDP(1)),
)  # fmt: skip
DIGESTS = ["679242159d2b163f", "a6b01465b7d52bc5"]
ANSWER_KEYS = ["d84e0636d7a9fc20", "d9e1190ae075ff7e"]


def test_digests_of_every_quantity_are_those_of_existing_ledgers():
    """Recorded when all quantities were one class: a stored answer is found by its key."""
    unit, keys = PrivacyUnit("people", "id"), Measurement("k", Keys(), sf.ApproxDP(1, "1e-6"))
    person = replace(PLAN, unit=unit, source=Scan("people", "v1", 2, most_met=16), measurements=EVERY)
    undeclared = replace(PLAN, keys=(Key(Call("extract", (AGE,), "month"), None),), measurements=(keys, *EVERY))
    assert [name_plan(plan)[0][:16] for plan in (person, undeclared)] == DIGESTS
    assert [name_plan(plan)[1][:16] for plan in (person, undeclared)] == ANSWER_KEYS


def test_every_field_of_a_quantity_is_part_of_its_digest():
    """A field that is added to a class must be added to the record that is hashed, or two plans share a digest."""
    for quantity in get_args(Quantity):
        names = {field.name for field in fields(quantity)}
        assert quantity in get_args(Choice) or names <= {"value", "grid", "offset"}, quantity


def test_answer_keys_ignore_what_is_spent():
    dearer = replace(PLAN, measurements=(replace(COUNT, loss=sf.PureDP(1)), replace(SUM, loss=sf.ZCDP(1))))
    (digest, key), (dearer_digest, dearer_key) = name_plan(PLAN), name_plan(dearer)
    assert key == dearer_key
    assert digest != dearer_digest


@pytest.mark.parametrize(
    "build",
    [
        lambda: changed(SUM, lower=121),
        lambda: replace(COUNT, loss=sf.ApproxDP(1, 1e-6)),
        lambda: Measurement("k", Keys(), sf.PureDP(1)),
        lambda: Measurement("q", Quantiles(AGE, Grid(0, 9, 0), (Fraction(1, 2),)), sf.ZCDP(1)),
        lambda: certify(replace(PLAN, measurements=(Measurement("q", Mode(AGE, 1, ()), sf.PureDP(1)),))),
        lambda: certify(replace(PLAN, measurements=(Measurement("q", Mode(AGE, 0, (1, 2)), sf.PureDP(1)),))),
        lambda: certify(
            replace(PLAN, measurements=(Measurement("q", Quantiles(AGE, Grid(0, 9, 0), ()), sf.PureDP(1)),))
        ),
        lambda: Measurement("k", Keys(), sf.ZCDP(1)),
        lambda: replace(COUNT, loss=sf.ZCDP(1, 1e-6)),
        lambda: Key(AGE, ()),
        lambda: Key(AGE, (1, 1)),
        lambda: replace(PLAN, source=Scan("people", "v1", 2)),
        lambda: replace(PLAN, measurements=()),
        lambda: replace(PLAN, measurements=(COUNT, COUNT)),
        lambda: name_plan(filtered(object())),
    ],
)
def test_plans_that_cannot_be(build):
    with pytest.raises(KernelFault):
        build()


def test_bounds_are_whole_doubles():
    """Engines clamp in doubles: a bound of more than 2**53 steps may be rounded there, and let more in than is paid."""
    assert float(2**53 + 1) != 2**53 + 1, "the first whole number that is no double"
    for most in (2**53 - 1, 2**53):
        assert float(most) == most
        for bounds in ({"upper": most}, {"lower": -most}, {"offset": most}, {"offset": -most}):
            assert changed(SUM, **bounds)
    for bounds in ({"upper": 2**53 + 1}, {"lower": -(2**53) - 1}, {"offset": 2**53 + 1}, {"offset": -(2**53) - 1}):
        with pytest.raises(KernelFault, match="too many steps"):
            changed(SUM, **bounds)
