from dataclasses import replace
from fractions import Fraction

import pytest
from bounded_plans import AGE, COUNT, PLAN, SUM, changed

import sfumato as sf
from sfumato.errors import KernelFault
from sfumato.kernel.certify import certify
from sfumato.kernel.plan import (
    Grid,
    Key,
    Keys,
    Measurement,
    Mode,
    Quantiles,
)
from sfumato.kernel.row_sources import Scan


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
