"""Digests of plans and keys of answers: different plans have different ones, and those of existing ledgers stay."""

from dataclasses import fields, replace
from datetime import date
from fractions import Fraction
from typing import get_args

import pytest
from bounded_plans import AGE, COUNT, PLAN, SUM, changed

import sfumato as sf
from sfumato.answering.plan_digests import name_plan
from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Call, Column, ColumnType, Literal
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit
from sfumato.kernel.plan import (
    Choice,
    Curve,
    Different,
    Distinct,
    Extreme,
    Factor,
    Grid,
    Halves,
    Key,
    Keys,
    Measurement,
    Mode,
    People,
    Pivot,
    Products,
    Quantiles,
    Quantity,
    Strategy,
    Thirds,
    WeightedKeys,
)
from sfumato.kernel.row_sources import Scan


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
ANSWER_KEYS = ["0c10a4c11b3ae86d", "36621fd042d52ffd"]


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
        encoded_whole = (*get_args(Choice), *get_args(Different), Pivot, Products, Strategy, WeightedKeys)
        assert quantity in encoded_whole or names <= {"value", "grid", "offset"}, quantity


def test_keys_in_two_rounds_are_another_plan():
    unit = PrivacyUnit("t", "id")
    keys = [Measurement("k", WeightedKeys(rounds), sf.ApproxDP(1, "1e-5")) for rounds in (1, 2)]
    plans = [replace(PLAN, unit=unit, keys=(Key(AGE, None),), measurements=(one,)) for one in keys]
    assert len({name for plan in plans for name in name_plan(plan)}) == 4


def test_different_values_of_other_expressions_or_lists_are_other_plans():
    listed = [Distinct((Key(AGE, values),)) for values in ((1, 2), (1, 3), None)]
    plans = [replace(PLAN, measurements=(Measurement("m", one, sf.PureDP(1)),)) for one in listed]
    assert len({name_plan(plan) for plan in plans}) == 3


def test_products_of_other_factors_or_terms_are_other_plans():
    grids = Grid(-8, 8, 0), Grid(-8, 9, 0)
    columns = [Column(name, ColumnType.REAL) for name in ("x", "y")]
    products = [
        Products((Factor(column, grid),), (term,)) for column in columns for grid in grids for term in ((0,), (0, 0))
    ]
    plans = [replace(PLAN, measurements=(Measurement("m", one, sf.PureDP(1)),)) for one in products]
    assert len({name_plan(plan) for plan in plans}) == len({name_plan(plan)[1] for plan in plans}) == 8


def test_other_strategies_are_other_plans():
    matrices = [((1, 0), (0, 1)), ((1, 1), (0, 1)), ((1, 1), (1, -1))]
    strategies = [Strategy(part, (matrix,)) for part in (COUNT.quantity, SUM.quantity) for matrix in matrices]
    keyed = replace(PLAN, keys=(Key(AGE, (1, 2)),))
    plans = [replace(keyed, measurements=(Measurement("m", one, sf.PureDP(1)),)) for one in strategies]
    assert len({name_plan(plan) for plan in plans}) == len({name_plan(plan)[1] for plan in plans}) == 6


def test_answer_keys_ignore_what_is_spent():
    dearer = replace(PLAN, measurements=(replace(COUNT, loss=sf.PureDP(1)), replace(SUM, loss=sf.ZCDP(1))))
    (digest, key), (dearer_digest, dearer_key) = name_plan(PLAN), name_plan(dearer)
    assert key == dearer_key
    assert digest != dearer_digest


def test_a_plan_that_holds_something_else_has_no_digest():
    with pytest.raises(KernelFault, match="no canonical text"):
        name_plan(filtered(object()))
