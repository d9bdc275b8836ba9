"""Rules read the values of rows: those of Python, numpy and pandas alike."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sfumato.learning.hypotheses import ConjunctionRule, RangeRule, RuleList, StumpRule
from sfumato.learning.row_conditions import Condition

TRUE = Condition("a", '"a"')
ADULT = Condition("a", '"a" >= 18', 18.0)
ONE = [True, 1, 1.0, np.bool_(True), np.int64(1), np.uint8(1), np.float32(1), np.longdouble(1), Decimal(1), Fraction(1)]
MISSING = [
    None,
    float("nan"),
    np.float64("nan"),
    np.float32("nan"),
    pd.NA,
    pd.NaT,
    Decimal("nan"),
    Decimal("snan"),
    "1",
]


@pytest.mark.parametrize("one", ONE, ids=lambda one: type(one).__name__)
def test_a_rule_reads_numbers_of_every_kind(one: object) -> None:
    assert TRUE.check({"a": one})
    assert not TRUE.negate().check({"a": one})
    assert RangeRule("a", 0.5, 1.5, "").predict({"a": one})
    assert not RangeRule("a", 2, 3, "").predict({"a": one})


@pytest.mark.parametrize("value", MISSING, ids=repr)
def test_a_missing_value_is_false_before_a_negation(value: object) -> None:
    for condition in (TRUE, ADULT):
        assert not condition.check({"a": value})
        assert condition.negate().check({"a": value})
    assert not RangeRule("a", 0, 9, "").predict({"a": value})


def test_numbers_beyond_a_double_are_compared() -> None:
    assert ADULT.check({"a": 10**400})
    assert not ADULT.check({"a": -Fraction(10**400)})


def test_every_rule_reads_the_rows_of_a_frame() -> None:
    frame = pd.DataFrame({"a": [0, 18, 40], "b": [True, False, True]})
    yes = Condition("b", '"b"')
    rules = [
        (StumpRule(ADULT), [False, True, True]),
        (ConjunctionRule((ADULT, yes)), [False, False, True]),
        (RuleList(((yes.negate(), True),), False), [False, True, False]),
        (RangeRule("a", 1, 30, ""), [False, True, False]),
    ]
    for rule, expected in rules:
        assert [rule.predict(frame.iloc[place]) for place in range(3)] == expected
        assert [rule.predict(row) for row in frame.to_dict("records")] == expected
