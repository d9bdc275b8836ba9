"""A watch: a sequence of counts compared with one threshold, at the price of one question."""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from sfumato.accuracy.crossing_margins import balance_noise, compute_crossing_margin
from sfumato.answering.ask_together import refuse_several
from sfumato.answering.charged_draws import draw_once
from sfumato.answering.desk import AtDesk, Desk
from sfumato.answering.plan_digests import certify_and_name_sequence
from sfumato.answering.question_record import record_question, write_record
from sfumato.answering.receipt import compute_cost
from sfumato.answers.answer import Cost
from sfumato.errors import EngineFailed, LedgerError, QueryError, UnsupportedSyntax
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.certify import certify
from sfumato.kernel.losses import PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.plan import Count, People
from sfumato.kernel.release import ExactAggregates, Released, crosses
from sfumato.kernel.released_steps import find_exponent
from sfumato.kernel.reservation import Reservation
from sfumato.number_arguments import Number, read_privacy_amount, read_whole_number
from sfumato.planning.planner import Planned
from sfumato.query.bind import bind
from sfumato.query.dp_options import refuse_epsilon
from sfumato.query.parse import parse
from sfumato.query.query import AggregateRef

COUNTS = "Ask for one COUNT(*), COUNT(x) or COUNT(DISTINCT id), without GROUP BY."


@dataclass(frozen=True, slots=True)
class Watch:
    """Answers questions with False until one is True; then the watch is over. It was paid for when it began."""

    at_desk: AtDesk
    reservation: Reservation
    sequence: AboveThreshold
    like: Planned
    cost: Cost
    questions: int  # about how many are expected
    process: int = field(default_factory=os.getpid)
    crossed: threading.Event = field(default_factory=threading.Event)  # set when it answered True, and that is stored
    failed: threading.Event = field(default_factory=threading.Event)  # set when a question failed or was interrupted

    def __repr__(self) -> str:
        state = "over" if self.finished or self.failed.is_set() else "every answer was False so far"
        return f"<Watch, paid with {self.cost}: {state}>"

    def ask(self, sql: str) -> bool:
        """Is this count, up to noise, at or above the threshold? It must be like the first count of the watch."""
        if self.process != os.getpid():  # a fork copies the noise of the threshold
            hint = "Ask it there, or begin a watch in this process: it is charged anew."
            raise LedgerError("ledger-foreign", "A watch belongs to the process that began it.", hint)
        if self.failed.is_set():
            hint = "Begin another watch; it costs its own epsilon."
            message = "A question of this watch failed or was interrupted, so the watch is over."
            raise QueryError("watch-closed", message, hint)
        with self.at_desk() as desk:
            return _compare(desk, self, sql)

    @property
    def finished(self) -> bool:
        """Whether it has answered True. A True that could not be stored is not an answer."""
        return self.crossed.is_set()

    def margin(self, confidence: Number = "0.95", questions: int | None = None) -> float:
        """A count answered False is at most this above the threshold, and the one answered True at most this below."""
        plan = self.like.plan
        step = 2.0 ** find_exponent(plan.measurements[0].quantity, per_row=plan.unit.per_row)
        return (
            compute_crossing_margin(self.sequence, confidence, self.questions if questions is None else questions)
            * step
        )


def begin_watch(  # noqa: PLR0917 - its caller names what it passes
    at_desk: AtDesk, sql: str, above: int, epsilon: Number, questions: int, analyst: str
) -> Watch:
    """Charge a watch for counts like this one. It asks nothing yet."""
    with at_desk() as desk:
        tree = parse(sql)
        planned = plan_count(desk, sql)
        (measured,) = certify(planned.plan).measurements
        steps = read_whole_number(above, "above", 0) * 2**-measured.exponent
        monotonic = planned.plan.unit.neighbours is Neighbours.ADD_REMOVE
        amount, expected = read_privacy_amount(epsilon, "epsilon"), read_whole_number(questions, "questions", 1)
        moved = measured.sensitivity.l1
        noise = balance_noise(moved, amount, monotonic, expected)
        sequence = AboveThreshold(steps, moved, amount, monotonic, noise)
        question = record_question(tree, bind(tree, desk.dataset))
        record = write_record("watch", question, above=above, questions_at_most=questions)
        reservation, taken = desk.ledger.charge(
            desk.admit(analyst), certify_and_name_sequence(sequence, planned.plan), record
        )
        return Watch(at_desk, reservation, sequence, planned, compute_cost(taken), expected)


def plan_count(desk: Desk, sql: str) -> Planned:
    """Plan a question of a watch: one count, without groups."""
    query = bind(parse(sql), desk.dataset)
    refuse_several(query, "a watch")
    refuse_epsilon(query.dp_options, "a watch is paid for when it begins")
    planned = desk.plan(query, PureDP(1), laplace=True)
    quantities = [measurement.quantity for measurement in planned.plan.measurements]
    bare = [isinstance(post, AggregateRef) for _, post in query.columns] == [True]
    if query.having is not None or query.limit is not None or query.offset or query.finish is not None or not bare:
        raise UnsupportedSyntax("watch", "A watch compares the count itself, not something computed from it.", COUNTS)
    if planned.plan.cells != 1 or len(quantities) != 1 or not isinstance(quantities[0], Count | People):
        raise UnsupportedSyntax("watch", "A watch compares one count with a threshold.", COUNTS)
    return planned


def _compare(desk: Desk, watch: Watch, sql: str) -> bool:
    planned = plan_count(desk, sql)
    plan, like = planned.plan, watch.like.plan
    (measured,), (first,) = plan.measurements, like.measurements
    if type(measured.quantity) is not type(first.quantity) or plan.unit.per_row != like.unit.per_row:
        raise UnsupportedSyntax("watch", "This count is of another kind than the watch's.", COUNTS)
    if plan.reach != like.reach:
        raise UnsupportedSyntax(
            "watch", "One person changes this count by more than the watch was charged for.", COUNTS
        )
    desk.engine.check(plan)
    if not watch.finished:  # only True is stored, and a failure must not mean True
        desk.ledger.check_writable(watch.reservation)

    def compare_and_store(exact: Sequence[ExactAggregates]) -> bool:
        above = crosses(exact[0], watch.sequence, watch.reservation)
        if above:
            done = Released(watch.reservation.entry_number, watch.reservation.certificate, {"crossed": (1,)})
            desk.ledger.store(watch.reservation, done)
            watch.crossed.set()
        return above

    try:
        return draw_once(desk.engine, desk.ledger, (plan,), watch.reservation, compare_and_store)
    except (QueryError, EngineFailed):  # before the draw
        raise
    except BaseException:
        watch.failed.set()
        raise
