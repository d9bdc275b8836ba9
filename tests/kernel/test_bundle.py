"""Several releases on one reservation."""

from dataclasses import replace

import pytest

from sfumato.errors import KernelFault
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.bundle import allowance, apart, bundle, crosses, parts, together
from sfumato.kernel.certify import Reservation, certify
from sfumato.kernel.losses import PureDP
from sfumato.kernel.neighbours import ROW, PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Key, Kind, Literal, Measurement, digest
from sfumato.kernel.release import ExactAggregates, release
from sfumato.kernel.sources import Scan

COUNT = Measurement("n", Kind.COUNT, None, 0, 0, 0, PureDP("0.25"))
ONE = BoundedPlan("people", Scan("t", "1"), PrivacyUnit("t", ROW), 1, (), (), (COUNT,))
TWO = replace(ONE, keys=(Key(Literal(1), (1, 2)),), measurements=(replace(COUNT, loss=PureDP("0.5")),))


def test_a_bundle_costs_the_sum_and_releases_its_parts_only():
    certificates = [certify(ONE), certify(TWO)]
    whole = bundle(certificates)
    assert whole.loss == PureDP("0.75")
    assert [(each.name, each.width) for each in whole.measurements] == [("0.n", 1), ("1.n", 2)]
    reservation = Reservation(7, whole)
    one, two = parts(reservation, certificates)
    released = [
        release(ExactAggregates(digest(ONE), {"n": [5]}), one),
        release(ExactAggregates(digest(TWO), {"n": [5, 6]}), two),
    ]
    stored = together(reservation, released)
    assert {name: len(cells) for name, cells in stored.integers.items()} == {"0.n": 1, "1.n": 2}
    assert apart(stored, certificates) == released
    for others in ([certify(ONE)], certificates[::-1], [certify(ONE), certify(replace(TWO, filters=(Literal(True),)))]):
        with pytest.raises(KernelFault):
            parts(reservation, others)
    with pytest.raises(KernelFault):
        bundle([])
    with pytest.raises(KernelFault):
        bundle([certify(ONE), certify(replace(ONE, population="others"))])


def test_a_sequence_is_charged_once_and_checks_every_question():
    watch = AboveThreshold(10, 1, "0.5", True)
    certificate = allowance(watch, "people")
    assert certificate.loss == PureDP("0.5")
    assert certificate.plan_digest != allowance(watch, "people").plan_digest
    paid = Reservation(1, certificate)
    assert (
        crosses(ExactAggregates(digest(ONE), {"n": [0]}), certify(ONE), AboveThreshold(10**6, 1, "0.5"), paid) is False
    )
    assert crosses(ExactAggregates(digest(ONE), {"n": [10**6]}), certify(ONE), watch, paid) is True
    assert watch.finished
    fresh = AboveThreshold(10, 1, "0.5", True)
    for exact, about, reservation in [
        (ExactAggregates("other", {"n": [0]}), certify(ONE), paid),
        (ExactAggregates(digest(TWO), {"n": [0, 0]}), certify(TWO), paid),
        (ExactAggregates(digest(ONE), {"n": [0]}), certify(ONE), Reservation(1, certify(ONE))),
    ]:  # another plan, two cells, another loss
        with pytest.raises(KernelFault):
            crosses(exact, about, fresh, reservation)
    person = replace(
        ONE, unit=PrivacyUnit("t", "id"), source=Scan("t", "1", 3), measurements=(replace(COUNT, exponent=-16),)
    )
    with pytest.raises(KernelFault):  # it moves further than was declared
        crosses(ExactAggregates(digest(person), {"n": [0]}), certify(person), fresh, paid)
