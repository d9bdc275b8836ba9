"""Tell me when: a sequence of counts against one threshold, at the price of one question."""

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.answering.receipt import cost_of
from sfumato.answering.recorded_question import asked, question
from sfumato.answers.answer import Cost
from sfumato.errors import LedgerError, UnsupportedSyntax
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.bundle import allowance, crosses
from sfumato.kernel.certify import Reservation, certify
from sfumato.kernel.losses import PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.parameters import Number, privacy_amount, whole_number
from sfumato.kernel.plan import Kind
from sfumato.kernel.release import Released
from sfumato.planning.planner import Planned
from sfumato.query.bind import bind
from sfumato.query.dp_options import refuse_epsilon
from sfumato.query.parse import parse
from sfumato.query.query import AggregateRef

if TYPE_CHECKING:
    from sfumato.curator import Curator

COUNTS = "Ask for one COUNT(*), COUNT(x) or COUNT(DISTINCT id), without GROUP BY."


@dataclass(frozen=True, slots=True)
class Watch:
    """Questions are answered with False until one is True; then the watch is over. It was paid for when it began."""

    curator: "Curator"
    reservation: Reservation
    sequence: AboveThreshold
    like: Planned
    cost: Cost
    process: int = field(default_factory=os.getpid)

    def ask(self, sql: str) -> bool:
        """Is this count, nearly, at or above the threshold? It must be like the one that the watch began with."""
        with self.curator.asking():
            return self._ask(sql)

    def _ask(self, sql: str) -> bool:
        if self.process != os.getpid():  # a fork copies its noise
            hint = "Ask it there, or begin a watch in this process: it is charged anew."
            raise LedgerError("ledger-foreign", "A watch belongs to the process that began it.", hint)
        planned = one_count(self.curator, sql)
        mine, like = planned.plan, self.like.plan
        (measured,), (first,) = mine.measurements, like.measurements
        if (measured.kind, measured.exponent, mine.unit.per_row) != (first.kind, first.exponent, like.unit.per_row):
            raise UnsupportedSyntax("watch", "This count is of another kind than the watch's.", COUNTS)
        if mine.reach != like.reach:
            raise UnsupportedSyntax("watch", "This count moves further than the one that the watch is for.", COUNTS)
        self.curator.engine.check(planned.plan)
        exact = self.curator.engine.aggregate(planned.plan)
        above = crosses(exact, planned.plan, self.sequence, self.reservation)
        if above:
            done = Released(self.reservation.entry_number, self.reservation.certificate, {"crossed": (1,)})
            self.curator.ledger().store(self.reservation, done)
        return above

    @property
    def finished(self) -> bool:
        """Has it said True?"""
        return self.sequence.finished

    def margin(self, confidence: Number = "0.95", questions: int | None = None) -> float:
        """A count answered False is at most this above the threshold, and the one answered True at most this below."""
        step = 2.0 ** self.like.plan.measurements[0].exponent
        return self.sequence.margin(confidence, questions) * step


def begin_watch(  # noqa: PLR0917 - its caller names what it passes
    curator: "Curator", sql: str, above: int, epsilon: Number, questions: int, analyst: str
) -> Watch:
    """Charge a watch for counts like this one; nothing is asked yet."""
    tree = parse(sql)
    planned = one_count(curator, sql)
    (measured,) = certify(planned.plan).measurements
    steps = whole_number(above, "above", 0) * 2 ** -planned.plan.measurements[0].exponent
    monotonic = planned.plan.unit.neighbours is Neighbours.ADD_REMOVE
    sequence = AboveThreshold(steps, measured.sensitivity.l1, privacy_amount(epsilon, "epsilon"), monotonic, questions)
    said = question("watch", asked(tree, bind(tree, curator.dataset)), above=above, questions_at_most=questions)
    who = curator.analyst(analyst)
    reservation, taken = curator.ledger().charge(who, allowance(sequence, planned.plan), said)
    return Watch(curator, reservation, sequence, planned, cost_of(taken))


def one_count(curator: "Curator", sql: str) -> Planned:
    query = bind(parse(sql), curator.dataset)
    refuse_epsilon(query.dp_options, "a watch is paid for when it begins")
    planned = curator.planned(query, PureDP(1))
    kinds = [each.kind for each in planned.plan.measurements]
    bare = [isinstance(post, AggregateRef) for _, post in query.columns] == [True]
    if query.having is not None or query.limit is not None or not bare:
        raise UnsupportedSyntax("watch", "A watch is of a count itself, and of nothing computed from it.", COUNTS)
    if planned.plan.cells != 1 or kinds not in ([Kind.COUNT], [Kind.PEOPLE]):
        raise UnsupportedSyntax("watch", "A watch compares one count with a threshold.", COUNTS)
    return planned
