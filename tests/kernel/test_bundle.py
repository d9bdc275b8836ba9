"""Several releases on one reservation."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from sfumato.accuracy.crossing_margins import balance_noise
from sfumato.answering.joined_releases import join_releases, split_release
from sfumato.errors import KernelFault
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.bundle import bundle, certify_sequence
from sfumato.kernel.certify import certify
from sfumato.kernel.expressions import Literal
from sfumato.kernel.losses import ApproxDP, PureDP
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Count, Extreme, Grid, Key, Keys, Measurement, People, Sum
from sfumato.kernel.release import ExactAggregates, crosses, release, release_bundle
from sfumato.kernel.reservation import Reservation
from sfumato.kernel.row_sources import Scan
from sfumato.ledger.stored_answers import find_shape


def watching(sensitivity, monotonic=False):
    noise = balance_noise(sensitivity, Decimal("0.5"), monotonic, 100)
    return AboveThreshold(10, sensitivity, Decimal("0.5"), monotonic, noise)


COUNT = Measurement("n", Count(None), PureDP("0.25"))
ONE = BoundedPlan("people", Scan("t", "1"), PrivacyUnit("t", ROW), 1, (), (), (COUNT,))
TWO = replace(ONE, keys=(Key(Literal(1), (1, 2)),), measurements=(replace(COUNT, loss=PureDP("0.5")),))


NAMED = replace(
    ONE, keys=(Key(Literal("a"), None),), measurements=(Measurement("k", Keys(), ApproxDP("0.25", "1e-6")),)
)


def test_undeclared_keys_are_released_beside_other_parts():
    """Deltas add, each part has its own keys, and what is stored becomes the same parts again."""
    certificates = [certify(NAMED), certify(TWO), certify(replace(NAMED, filters=(Literal(True),)))]
    whole = bundle(certificates)
    assert (whole.loss, whole.cells) == (ApproxDP("1.0", "2e-6"), None)
    exact = [
        ExactAggregates(NAMED, {"k": [10**6, 10**6, 0]}, (("b",), ("a",), ("nobody",))),
        ExactAggregates(TWO, {"n": [5, 6]}),
        ExactAggregates(replace(NAMED, filters=(Literal(True),)), {"k": [1]}, (("lonely",),)),
    ]
    released = release_bundle(exact, certificates, Reservation(7, whole))
    assert [part.keys for part in released] == [(("a",), ("b",)), None, ()]
    stored = join_releases(whole, released)
    assert stored.keys == ((0, "a"), (0, "b"))
    assert {name: len(cells) for name, cells in stored.integers.items()} == {"0.k": 2, "1.n": 2, "2.k": 0}
    assert find_shape(stored) == {"0.k": 2, "1.n": 2, "2.k": 0}
    assert find_shape(replace(stored, keys=((0, "a"), (2, "a")))) == {"0.k": 1, "1.n": 2, "2.k": 1}
    assert split_release(7, stored.integers, certificates, stored.keys) == released


def test_a_bundle_costs_the_sum_and_releases_its_parts_only():
    certificates = [certify(ONE), certify(TWO)]
    whole = bundle(certificates)
    assert whole.loss == PureDP("0.75")
    assert [(measurement.name, measurement.width) for measurement in whole.measurements] == [("0.n", 1), ("1.n", 2)]
    reservation = Reservation(7, whole)
    exact = [ExactAggregates(ONE, {"n": [5]}), ExactAggregates(TWO, {"n": [5, 6]})]
    for wrong in (exact[:1], exact[::-1], [exact[0], ExactAggregates(TWO, {"n": [5]})]):
        with pytest.raises((KernelFault, ValueError)):
            release_bundle(wrong, certificates, reservation)
    released = release_bundle(exact, certificates, reservation)
    assert [(part.entry_number, part.certificate) for part in released] == [(7, part) for part in certificates]
    for again in (lambda: release_bundle(exact, certificates, reservation), lambda: release(exact[0], reservation)):
        with pytest.raises(KernelFault):  # once, and only as the bundle that was charged
            again()
    stored = join_releases(whole, released)
    assert {name: len(cells) for name, cells in stored.integers.items()} == {"0.n": 1, "1.n": 2}
    assert split_release(7, stored.integers, certificates) == released
    for others in ([certify(ONE)], certificates[::-1], [certify(ONE), certify(replace(TWO, filters=(Literal(True),)))]):
        with pytest.raises(KernelFault, match="not charged together"):
            release_bundle(exact, others, Reservation(7, whole))
    with pytest.raises(KernelFault):
        bundle([])
    with pytest.raises(KernelFault, match="one whose keys are declared"):
        bundle([certify(NAMED)])
    with pytest.raises(KernelFault):
        bundle([certify(ONE), certify(replace(ONE, population="others"))])


def measured(plan, *cells):
    return ExactAggregates(plan, {plan.measurements[0].name: list(cells)})


def test_a_sequence_is_charged_once_and_checks_every_question():
    watch = watching(Fraction(1), True)
    certificate = certify_sequence(watch, ONE)
    assert certificate.loss == PureDP("0.5")
    assert certificate == certify_sequence(watch, replace(ONE, filters=(Literal(True),))), (
        "it is for all questions alike"
    )
    assert certificate != certify_sequence(watching(Fraction(1), True), ONE)
    paid = Reservation(1, certificate)
    assert crosses(measured(ONE, -(10**6)), watch, paid) is False
    others = [
        (measured(ONE, 0, 0), paid),
        (ExactAggregates(ONE, {"m": [0]}), paid),
        (measured(TWO, 0, 0), paid),
        (measured(ONE, 0), Reservation(1, certify(ONE))),
        (measured(ONE, 0), Reservation(1, replace(certificate, loss=PureDP("0.1")))),
        (measured(replace(ONE, population="others"), 0), paid),
    ]  # other cells, another measurement, a plan of two cells, another charge, another loss, other people
    for exact, reservation in others:
        with pytest.raises(KernelFault):
            crosses(exact, watch, reservation)
    with pytest.raises(KernelFault):  # of the same threshold, loss and questions: it was not paid for
        crosses(measured(ONE, 10**6), watching(Fraction(1), True), paid)
    assert crosses(measured(ONE, 10**6), watch, paid) is True
    assert watch.finished


PERSON = replace(ONE, unit=PrivacyUnit("t", "id"), source=Scan("t", "1", 3), measurements=(COUNT,))
PEOPLE = replace(PERSON, measurements=(replace(COUNT, quantity=People()),))
REPLACED = replace(ONE, unit=PrivacyUnit("t", ROW, Neighbours.REPLACE_ONE))


def test_a_sequence_is_of_counts_of_one_kind():
    """Moving no further than was declared is not enough: units, kinds, steps and neighbours are the same too."""
    wide = watching(Fraction(3 << 16))
    for plan in (ONE, PERSON, PEOPLE, REPLACED):
        paid = Reservation(1, certify_sequence(wide, plan))
        assert crosses(measured(plan, -(10**9)), wide, paid) is False
        for other in (ONE, PERSON, PEOPLE, REPLACED):
            if other is not plan:
                with pytest.raises(KernelFault, match="not paid"):
                    crosses(measured(other, 0), wide, paid)
    narrow = watching(Fraction((3 << 16) - 1))
    with pytest.raises(KernelFault, match="further than"):
        crosses(measured(PERSON, 0), narrow, Reservation(1, certify_sequence(narrow, PERSON)))


@pytest.mark.parametrize(
    "plan",
    [
        replace(ONE, measurements=(Measurement("s", Sum(Literal(1), Grid(-1, 1, 0)), PureDP(1)),)),
        replace(ONE, measurements=(Measurement("q", Extreme(Literal(1), Grid(0, 9, 0), True), PureDP(1)),)),
        replace(ONE, measurements=(COUNT, replace(COUNT, name="m"))),
        TWO,
    ],
)
def test_what_is_no_count_has_no_sequence(plan):
    with pytest.raises(KernelFault, match="one count"):
        certify_sequence(watching(Fraction(9)), plan)


def test_the_cheaper_rule_is_for_counts_that_move_one_way():
    """Of two people, one may be counted by one question and the other by the next."""
    assert certify_sequence(watching(Fraction(1), False), REPLACED).loss == PureDP("0.5")
    with pytest.raises(KernelFault, match="same way"):
        certify_sequence(watching(Fraction(1), True), REPLACED)


def test_a_charged_sequence_serves_one_sequence_and_no_release():
    watch, plan = watching(Fraction(1), True), ONE
    paid = Reservation(1, certify_sequence(watch, plan))
    for _ in range(3):
        assert crosses(measured(plan, -(10**6)), watch, paid) is False
    for forged in (measured(plan, 5), ExactAggregates(plan, {"crossed": [5]})):
        with pytest.raises(KernelFault, match="another plan"):
            release(forged, paid)
    taken = Reservation(2, certify_sequence(watch, plan))
    taken.take(object())
    with pytest.raises(KernelFault, match="pays for one release"):
        crosses(measured(plan, 0), watch, taken)
