"""Find values of a row that a question counts, so that pairs about numbers of rows pass its filters."""

from collections.abc import Mapping, Sequence
from itertools import islice, product

from sfumato.errors import SfumatoError
from sfumato.kernel.certify import Certificate
from sfumato.lab.auditing.audit_stage import Setting, Stage, plan_question
from sfumato.lab.auditing.pair_maker import LARGEST, Held, PairMaker
from sfumato.lab.auditing.recorded_release import ExactIntegers
from sfumato.lab.auditing.replay_comparison import find_moves
from sfumato.lab.auditing.throwaway_desk import Data

MOST_TRIED = 512  # combinations of values
ENOUGH = 0.9  # of a certified sensitivity: no other row is searched


def find_counted(  # noqa: PLR0917 - its caller names what it passes
    stage: Stage,
    setting: Setting,
    maker: PairMaker,
    first: Data,
    crowd: Held,
    options: Mapping[str, Sequence[object]],
) -> dict[str, object]:
    """Values of a row that the question counts: the first counted combination of `options`.

    None are needed if a row of extreme values is counted: pairs with such rows are made for every question.
    """
    try:
        certificate, before = _measure(stage, setting, first)

        def share_moved(*rows: dict[str, object]) -> float:
            """How far people with these values move the integers, in certified sensitivities."""
            second = maker.add({}, crowd)
            for place, values in enumerate(rows):
                maker.add(second, maker.make_person(f"somebody {place}", LARGEST, values))
            _, after = _measure(stage, setting, maker.as_tables(second))
            return _share_moved(certificate, before, after)

        extreme = share_moved({})
        if extreme >= ENOUGH:
            return {}
        listed = [
            dict(zip(options, combination, strict=True))
            for combination in islice(product(*options.values()), MOST_TRIED)
        ]
        start, end = 0, len(listed)
        if not share_moved(*listed):
            return {}
        while end - start > 1:  # the first counted row is in this range
            middle = (start + end) // 2
            start, end = (start, middle) if share_moved(*listed[start:middle]) else (middle, end)
        return listed[start] if share_moved(listed[start]) > extreme else {}
    except SfumatoError:  # the pairs show the same refusal
        return {}


def _measure(stage: Stage, setting: Setting, data: Data) -> tuple[Certificate, ExactIntegers]:
    with setting.open(stage.dataset, data) as desk:
        certified = plan_question(desk, stage.sql, setting.split(stage)[0])
        desk.engine.check(certified.plans[0])
        return certified.certificate, ExactIntegers.read(desk.engine.aggregate(certified.plans[0]))


def _share_moved(certificate: Certificate, before: ExactIntegers, after: ExactIntegers) -> float:
    """The largest share of a certified L1 sensitivity that one person used."""
    return max(
        (
            float(sum(find_moves(measured, before, after)) / measured.sensitivity.l1)
            for measured in certificate.measurements
            if measured.sensitivity.l1
        ),
        default=0.0,
    )
